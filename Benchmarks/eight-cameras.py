#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to record cameras as they are: one process of framehost beside as many `ffmpeg -c copy -f segment`.

    python3 Benchmarks/eight-cameras.py [CAMERAS] [SECONDS] [ROUNDS]       8 cameras, 20 s, 3 rounds; needs the release build and ffmpeg

The cameras are one stream at eight addresses: 1080p, H.264, 25 pictures a second, 4 Mbit/s, a keyframe each two seconds, AAC with --sound; over RTSP (TCP) from a
framehost of its own, whose work counts for nobody. Each is written to MP4 in segments of ten seconds. Both programs run in turn in each round, and the sums are
taken from the middle of the run:

    CPU       utime + stime of /proc/PID/stat over the middle, in percent of one core
    PSS       /proc/PID/smaps_rollup
    switches  voluntary context switches of all threads a second (/proc/PID/task/*/status)
    threads   /proc/PID/status

Compare within a run only. The last lines are ratios: framehost over ffmpeg.
"""

import argparse
import importlib.util
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
specification = importlib.util.spec_from_file_location('chains', ROOT / 'Benchmarks/several-chains.py')
chains = importlib.util.module_from_spec(specification)
specification.loader.exec_module(chains)
PORT = 18654


def switches(pids):
    total = 0
    for pid in pids:
        for task in pathlib.Path(f'/proc/{pid}/task').iterdir():
            for line in (task / 'status').read_text().splitlines():
                if line.startswith('voluntary_ctxt_switches'):
                    total += int(line.split()[1])
    return total


def serve(host, folder, cameras, has_sound):
    """Eight addresses of one file, which is played in real time again and again."""
    clip = folder / 'clip.mp4'
    sound = ['-f', 'lavfi', '-i', 'sine=440:sample_rate=48000:duration=20', '-c:a', 'aac', '-b:a', '64k'] if has_sound else []
    subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=1920x1080:rate=25:duration=20', *sound, '-c:v', 'libx264', '-preset',
                    'ultrafast', '-b:v', '4M', '-maxrate', '4M', '-bufsize', '2M', '-g', '50', '-bf', '0', '-pix_fmt', 'yuv420p', str(clip)], check=True)
    taken = ['clip', 'clip.audio'] if has_sound else ['clip']
    stages = [{'id': 'clip', 'use': 'file-source', 'path': 'clip.mp4', 'decode': False, 'loop': True, 'pace': 'realtime'}]
    for index in range(cameras):
        stages.append({'id': f'live{index}', 'use': 'rtsp-sink', 'port': PORT, 'path': f'/cam{index}', 'from': taken})
    (folder / 'serve.json').write_text(json.dumps({'stages': stages}))
    log = open(folder / 'serve.log', 'w+')
    return subprocess.Popen([host, '--events', 'serve.json'], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


def framehost(host, folder, cameras, has_sound):
    files = []
    for index in range(cameras):
        taken = ['camera', 'camera.audio'] if has_sound else ['camera']
        path = folder / f'cam{index}.json'
        path.write_text(json.dumps({'stages': [
            {'id': 'camera', 'use': 'network-source', 'url': f'rtsp://127.0.0.1:{PORT}/cam{index}', 'decode': False},
            {'id': 'file', 'use': 'recorder', 'path': f'cam{index}-{{nnn}}.mp4', 'segmentSeconds': 10, 'from': taken}]}))
        files.append(str(path))
    return [[host, '--events', *files]]


def ffmpeg(folder, cameras, has_sound):
    kinds = [] if has_sound else ['-an']
    return [['ffmpeg', '-nostdin', '-v', 'error', '-rtsp_transport', 'tcp', '-i', f'rtsp://127.0.0.1:{PORT}/cam{index}', '-c', 'copy', *kinds, '-f', 'segment',
             '-segment_time', '10', '-reset_timestamps', '1', f'peer{index}-%03d.mp4'] for index in range(cameras)]


def measure(commands, folder, seconds):
    running = [subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(folder / 'log', 'a')) for command in commands]
    try:
        time.sleep(8)
        pids = [process.pid for process in running]
        before, waits, since = chains.processor_seconds(pids), switches(pids), time.monotonic()
        time.sleep(seconds)
        spent = time.monotonic() - since
        found = {'cpu': (chains.processor_seconds(pids) - before) / spent * 100, 'switches': (switches(pids) - waits) / spent}
        found['pss'], found['private'] = chains.memory(pids)
        found['threads'] = chains.threads(pids)
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        statuses = [process.wait(timeout=30) for process in running]
    # ffmpeg ends with 255 on a signal.
    found['failed'] = sum(status not in (0, 255) for status in statuses)
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument('cameras', nargs='?', type=int, default=8)
    options.add_argument('seconds', nargs='?', type=float, default=20)
    options.add_argument('rounds', nargs='?', type=int, default=3)
    options.add_argument('--sound', action='store_true')
    options.add_argument('--host', default=str(chains.HOST))
    given = options.parse_args()
    results = {'framehost': [], 'ffmpeg': []}
    with tempfile.TemporaryDirectory() as work:
        server = serve(given.host, pathlib.Path(work), given.cameras, given.sound)
        try:
            time.sleep(3)
            for number in range(given.rounds):
                for name in list(results) if number % 2 == 0 else list(results)[::-1]:
                    with tempfile.TemporaryDirectory() as place:
                        folder = pathlib.Path(place)
                        commands = framehost(given.host, folder, given.cameras, given.sound) if name == 'framehost' else ffmpeg(folder, given.cameras, given.sound)
                        found = measure(commands, folder, given.seconds)
                        sizes = sorted(path.stat().st_size for path in folder.glob('*.mp4'))
                        if found['failed'] or len(sizes) < given.cameras * 2:
                            sys.exit(f'{name}: {found["failed"]} failed, {len(sizes)} files\n' + (folder / 'log').read_text()[-2000:])
                        results[name].append(found)
                        print(f'{name:10} CPU {found["cpu"]:6.1f} %  PSS {found["pss"]:7.1f} MiB  {found["switches"]:7.0f} switches/s  {found["threads"]:4} threads', flush=True)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=30)
    print()
    for key, unit in (('cpu', '% of a core'), ('pss', 'MiB'), ('switches', '/s'), ('threads', '')):
        ours, theirs = (statistics.median(found[key] for found in results[name]) for name in results)
        print(f'{key:8} framehost {ours:8.1f} {unit}, ffmpeg {theirs:8.1f} {unit}; framehost / ffmpeg = {ours / theirs:.2f}')


if __name__ == '__main__':
    main()
