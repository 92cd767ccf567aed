#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a chain costs among many in one process, beside as many processes: processor time, memory, threads.

    python3 Benchmarks/several-chains.py [CHAINS] [SECONDS] [ROUNDS]       20 chains, 20 s, 3 rounds; needs the release build

Each chain is live: `test-source` (320x240, 15 fps) -> `x264-encoder` (ultrafast) -> `rtsp-sink` at a path of its own, or `recorder` with
`--sink recorder`. In one process all share a port; as processes each has a port of its own, since two cannot listen at one. Both ways run in turn in each
round, and the sum over all threads and processes is taken from the middle of the run:

    CPU       utime + stime of /proc/PID/stat over the middle, in percent of one core
    PSS       /proc/PID/smaps_rollup: private pages, and shared pages by the number of those who share them
    private   of these, pages that nobody shares
    threads   /proc/PID/status

Compare within a run only. The last lines are ratios: twenty processes over one.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOST = ROOT / '.build/release/framehost'
TICKS = os.sysconf('SC_CLK_TCK')


def chain(folder, number, port, sink):
    end = ({'id': 'live', 'use': 'rtsp-sink', 'port': port, 'path': f'/cam{number}'} if sink == 'rtsp-sink' else
           {'id': 'file', 'use': 'recorder', 'path': f'cam{number}.mp4', 'overwrite': True})
    path = folder / f'cam{number}.json'
    path.write_text(json.dumps({'stages': [
        {'id': 'camera', 'use': 'test-source', 'size': '320x240', 'rate': 15, 'live': True},
        {'id': 'h264', 'use': 'x264-encoder', 'preset': 'ultrafast', 'threads': 1, 'keyframeSeconds': 2}, end]}))
    return path


def processor_seconds(pids):
    total = 0
    for pid in pids:
        fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def memory(pids):
    pss = private = 0
    for pid in pids:
        for line in pathlib.Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines():
            words = line.split()
            if words[0] == 'Pss:':
                pss += int(words[1])
            elif words[0] in ('Private_Clean:', 'Private_Dirty:'):
                private += int(words[1])
    return pss / 1024, private / 1024


def threads(pids):
    return sum(len(os.listdir(f'/proc/{pid}/task')) for pid in pids)


def measure(commands, folder, seconds, chains):
    """Starts the programs, looks at the middle of the run, ends them."""
    begin = time.monotonic()
    logs = [open(folder / f'log{index}', 'w+') for index in range(len(commands))]
    running = [subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
               for command, log in zip(commands, logs)]
    try:
        while sum((folder / f'log{index}').read_text().count('"state":"streaming"') for index in range(len(commands))) < chains:
            if time.monotonic() - begin > 120 or any(process.poll() is not None for process in running):
                sys.exit('not all chains run:\n' + ''.join((folder / f'log{index}').read_text()[-2000:] for index in range(len(commands))))
            time.sleep(0.05)
        ready = time.monotonic() - begin
        time.sleep(3)
        pids = [process.pid for process in running]
        before, since = processor_seconds(pids), time.monotonic()
        time.sleep(seconds)
        spent = (processor_seconds(pids) - before) / (time.monotonic() - since)
        pss, private = memory(pids)
        found = {'cpu': spent * 100, 'pss': pss, 'private': private, 'threads': threads(pids), 'ready': ready}
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        statuses = [process.wait(timeout=30) for process in running]
    found['failed'] = sum(status != 0 for status in statuses)
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument('chains', nargs='?', type=int, default=20)
    options.add_argument('seconds', nargs='?', type=float, default=20)
    options.add_argument('rounds', nargs='?', type=int, default=3)
    options.add_argument('--sink', choices=['rtsp-sink', 'recorder'], default='rtsp-sink')
    options.add_argument('--host', default=str(HOST))
    given = options.parse_args()
    results = {'one process': [], f'{given.chains} processes': []}
    names = list(results)
    for number in range(given.rounds):
        for name in names if number % 2 == 0 else names[::-1]:
            with tempfile.TemporaryDirectory() as work:
                folder = pathlib.Path(work)
                is_one = name == names[0]
                files = [chain(folder, index, 18554 + (0 if is_one else index), given.sink) for index in range(given.chains)]
                base = [given.host, '--events']
                commands = [base + [str(file) for file in files]] if is_one else [base + [str(file)] for file in files]
                found = measure(commands, folder, given.seconds, given.chains)
                results[name].append(found)
                print(f'{name:13}  CPU {found["cpu"]:6.1f} %  PSS {found["pss"]:7.1f} MiB  private {found["private"]:7.1f} MiB'
                      f'  {found["threads"]:4} threads  all stream after {found["ready"]:.1f} s  failed {found["failed"]}', flush=True)
    print()
    for key, unit in (('cpu', '% of a core'), ('pss', 'MiB'), ('private', 'MiB'), ('threads', '')):
        one, many = (statistics.median(found[key] for found in results[name]) for name in names)
        print(f'{key:8} a chain: {one / given.chains:7.2f} {unit} in one process, {many / given.chains:7.2f} {unit} as processes;'
              f' processes / one = {many / one:.2f}')


if __name__ == '__main__':
    main()
