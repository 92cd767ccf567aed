# SPDX-License-Identifier: Apache-2.0
"""Batches over one folder that are killed, frozen and started side by side; ends with 1 where an output is lost, doubled or other than undisturbed.

    python3 Tests/Soak/batch.py [--clips 60] [--kills 200] [--freezes 30] [--batches 2] [--seed 1] [--program .build/release/framehost]
    python3 Tests/Soak/batch.py --count       # metadata operations for each file, counted by strace
    python3 Tests/Soak/batch.py --names 1000000   # memory and time to the first file of a long list

The clips are made with ffmpeg. An undisturbed batch gives the bytes that every output must have. Then several batches work into a second folder; at random moments one of their processes, batch or worker, is ended by SIGKILL, or a batch with its workers is frozen by SIGSTOP until its lease has gone, and let
go on. A batch that ended is started again, until one ends with status 0. In the end each output is there once, whole and equal; nothing but outputs is in the folder; every unit has one record, whose files are there; no attempt is left that nobody has.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

CHAIN = {
    "stages": [
        {"use": "file-source", "path": "${input}"},
        {"use": "x264-encoder", "preset": "ultrafast"},
        {"use": "recorder", "path": "${output}"},
    ]
}


class Batch:
    """One `framehost batch` in a process group of its own; its workers have theirs."""

    def __init__(self, program, chain, inputs, out, lease):
        self.process = subprocess.Popen(
            [program, "batch", chain, inputs, "--out", out, "--quiet", "--lease", str(lease)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.frozen_until = None

    def processes(self):
        """The batch and its workers."""
        found = [self.process.pid]
        try:
            for thread in os.listdir(f"/proc/{self.process.pid}/task"):
                with open(f"/proc/{self.process.pid}/task/{thread}/children") as children:
                    found += [int(word) for word in children.read().split()]
        except OSError:
            pass
        return found

    def send(self, number, pids):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def outputs(out):
    """Digests of all files in DIR but what is hidden."""
    found = {}
    for folder, folders, files in os.walk(out):
        folders[:] = [name for name in folders if name != ".framehost"]
        for name in files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, out)] = digest(path)
    return found


def leavings(out):
    """What is left below .framehost beside one record for each output."""
    records, rest = {}, []
    for folder, _, files in os.walk(os.path.join(out, ".framehost")):
        for name in files:
            path = os.path.join(folder, name)
            unit = os.path.relpath(os.path.dirname(folder), os.path.join(out, ".framehost"))
            if name == "done":
                with open(path) as file:
                    records.setdefault(unit, []).append(json.load(file))
            elif os.path.basename(folder) != "owners":
                # That of a batch that was killed goes with the next batch.
                rest.append(os.path.relpath(path, out))
    return records, rest


def make_clips(folder, count):
    os.makedirs(folder)
    for number in range(count):
        subprocess.run(
            ["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", f"testsrc2=s=320x180:r=25,hue=h={number * 5}",
             "-frames:v", str(20 + number % 40), "-c:v", "libx264", "-preset", "ultrafast", f"{folder}/clip{number:03}.mp4"],
            check=True)


def disturbed(options, folder, chain):
    dice = random.Random(options.seed)
    inputs, straight, out = (os.path.join(folder, name) for name in ("in", "straight", "out"))
    make_clips(inputs, options.clips)
    subprocess.run([options.program, "batch", chain, inputs, "--out", straight, "--quiet"], check=True)
    wanted = outputs(straight)
    assert len(wanted) == options.clips, f"{len(wanted)} outputs of an undisturbed batch"

    kills, freezes, starts, late, faults = 0, 0, 0, 0, []
    batches = []
    rounds = 0
    is_done = False
    deadline = time.monotonic() + options.seconds
    while not is_done or batches:
        if time.monotonic() > deadline:
            faults.append(f"not done after {options.seconds} s: {kills} kills, {freezes} freezes, {len(outputs(out))} outputs")
            for batch in batches:
                batch.send(signal.SIGKILL, batch.processes())
            break
        for batch in list(batches):
            status = batch.process.poll()
            if status is None:
                if batch.frozen_until and time.monotonic() > batch.frozen_until:
                    batch.send(signal.SIGCONT, batch.processes())
                    batch.frozen_until = None
                continue
            batches.remove(batch)
            said = batch.process.stderr.read()
            # -9 is ours. Workers that are killed count as failed attempts.
            if status not in (0, -signal.SIGKILL):
                faults.append(f"a batch ended with {status}: {said[-400:]}")
            is_done = status == 0 and kills >= options.kills and freezes >= options.freezes
            if status == 0 and not is_done:
                # All is done and more is to be tried: another round, into a folder of its own.
                found = outputs(out)
                if found != wanted:
                    faults.append(f"round {rounds}: {sum(found.get(n) != d for n, d in wanted.items())} of {len(wanted)} outputs are not as undisturbed")
                for other in batches:
                    other.send(signal.SIGCONT, other.processes())
                for other in batches:
                    other.process.wait(60)
                rounds += 1
                check(out, wanted, faults)
                out = os.path.join(folder, f"out{rounds}")
                batches.clear()
                break
        more = kills < options.kills or freezes < options.freezes
        while len(batches) < options.batches and (more or not batches) and not is_done:
            batches.append(Batch(options.program, chain, inputs, out, options.lease))
            starts += 1
            if not more:
                break
        time.sleep(dice.random() * 0.4)
        if not more:
            continue
        batch = dice.choice(batches)
        if freezes < options.freezes and batch.frozen_until is None and dice.random() < 0.2:
            batch.send(signal.SIGSTOP, batch.processes())
            batch.frozen_until = time.monotonic() + dice.choice([0.2, options.lease * 1.5, options.lease * 3])
            freezes += 1
        elif kills < options.kills:
            # The batch itself: its workers end with it. A killed worker is a failed attempt, of which a unit has few.
            batch.send(signal.SIGKILL, [batch.process.pid])
            kills += 1
    check(out, wanted, faults)
    print(f"{options.clips} clips, {kills} kills, {freezes} freezes, {starts} batches, {rounds + 1} rounds: {len(faults)} faults")
    for fault in faults[:20]:
        print("  " + fault)
    return 1 if faults else 0


def check(out, wanted, faults):
    found = outputs(out)
    for name in sorted(set(wanted) | set(found)):
        if name not in found:
            faults.append(f"{out}: {name} is not there")
        elif name not in wanted:
            faults.append(f"{out}: {name} is there and should not be")
        elif found[name] != wanted[name]:
            faults.append(f"{out}: {name} differs from the undisturbed one")
    records, rest = leavings(out)
    for name in wanted:
        if len(records.get(name, [])) != 1:
            faults.append(f"{out}: {name} has {len(records.get(name, []))} records")
    failed = [name for name in rest if name.endswith(".failed")]
    if failed:
        faults.append(f"{out}: failed attempts: {failed[:3]}")
    if rest:
        faults.append(f"{out}: left over: {rest[:5]}")


def count_operations(options, folder, chain):
    """System calls on names of one unit by the batch and by its worker, medians over the clips."""
    inputs, out = os.path.join(folder, "in"), os.path.join(folder, "out")
    make_clips(inputs, 20)
    log = os.path.join(folder, "strace")
    subprocess.run(
        ["strace", "-f", "-q", "-o", log, "-e",
         "trace=link,linkat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,open,openat,stat,lstat,newfstatat,access,faccessat,faccessat2,fsync,utimensat",
         options.program, "batch", chain, inputs, "--out", out, "--quiet", "--jobs", "1"], check=True)
    counts = {}
    with open(log) as lines:
        for line in lines:
            if out not in line and "fsync" not in line:
                continue
            name = line.split(None, 1)[1].split("(")[0]
            if "strace" not in name:
                counts[name] = counts.get(name, 0) + 1
    for name, number in sorted(counts.items()):
        print(f"{name:12} {number / 20:6.1f} a file")
    return 0


def long_list(options, folder, chain):
    """Memory and time until the first file of a list of names, none of which is there."""
    names = os.path.join(folder, "names")
    with open(names, "w") as file:
        for number in range(options.names):
            file.write(f"/archive/2024/camera-{number % 100:02}/recording-{number:08}.mp4\n")
    begin = time.monotonic()
    process = subprocess.Popen(
        [options.program, "batch", chain, "--list", names, "--out", os.path.join(folder, "out"), "--base", "/archive"],
        stderr=subprocess.PIPE, text=True)
    first = process.stderr.readline()
    seconds = time.monotonic() - begin
    with open(f"/proc/{process.pid}/status") as status:
        peak = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    process.kill()
    process.wait()
    print(f"{options.names} names: {seconds:.1f} s, {peak:.0f} MiB at most; {first.strip()}")
    return 0 if str(options.names) in first else 1


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--clips", type=int, default=60)
    options.add_argument("--kills", type=int, default=200)
    options.add_argument("--freezes", type=int, default=30)
    options.add_argument("--batches", type=int, default=2)
    options.add_argument("--lease", type=float, default=1)
    options.add_argument("--seconds", type=float, default=1800, help="how long at most")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", action="store_true")
    options.add_argument("--names", type=int)
    options.add_argument("--program", default=".build/release/framehost")
    options = options.parse_args()
    options.program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as folder:
        chain = os.path.join(folder, "chain.json")
        with open(chain, "w") as file:
            json.dump(CHAIN, file)
        if options.count:
            return count_operations(options, folder, chain)
        if options.names:
            return long_list(options, folder, chain)
        return disturbed(options, folder, chain)


if __name__ == "__main__":
    sys.exit(main())
