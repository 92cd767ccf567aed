# SPDX-License-Identifier: Apache-2.0
"""Switches between two live sources while a recording and an RTSP reader go on behind; ends with 1 where either suffers.

    python3 Tests/Soak/switch.py [--switches 1000] [--quiet] [--program .build/release/framehost] [--keep DIR]

Two sources of other size, rate and phase go into a source-switch, from there to an encoder, a recorder and an RTSP sink. Every switch must be answered. At the end ffprobe decodes the recording and has read the stream without a word; the times of both rise, without a gap of
more than one picture's time beside the usual step (with --quiet; else from a quarter of a second more on); every picture that the switch gave is in the recording; the run ends with status 0 and a balanced ledger. Needs ffprobe.
"""

import argparse
import json
import os
import random
import socket
import sys
import tempfile
import time

from changes import PATIENCE, RATE, Reader, Run, decoded, gaps


def chain(port):
    """The chain as its file has it."""
    return {
        "stages": [
            {"id": "a", "use": "test-source", "size": "320x240", "rate": RATE, "live": True, "pattern": "balls"},
            {"id": "b", "use": "test-source", "size": "160x120", "rate": 25, "live": True, "pattern": "bars"},
            {"id": "sw", "use": "source-switch", "from": ["a", "b"]},
            {"id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 400, "keyframeSeconds": 1, "link": {"queue": 60}},
            {"id": "file", "use": "recorder", "path": "main.mp4"},
            {"id": "live", "use": "rtsp-sink", "from": "h264", "port": port, "path": "/live"},
        ],
    }


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--switches", type=int, default=1000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--quiet", action="store_true", help="the machine has nothing else to do")
    options.add_argument("--program", default=".build/release/framehost")
    options.add_argument("--keep", help="the folder to work in; it stays")
    options = options.parse_args()
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or scratch
        os.makedirs(folder, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        run = Run(os.path.abspath(options.program), folder, chain(port))
        reader = Reader(port)
        deadline = time.monotonic() + PATIENCE
        while not reader.times and time.monotonic() < deadline:
            time.sleep(0.05)
        begin = time.monotonic()
        for number in range(options.switches):
            run.send({"stage": "sw", "command": "switch", "arguments": {"to": "ba"[number % 2]}})
            time.sleep(dice.choice([0, 0.02, 0.05, 0.1]))
        seconds = time.monotonic() - begin
        run.process.stdin.write('{"command": "drain", "tag": 0}\n')
        status = run.process.wait(PATIENCE)
        reader.process.wait(PATIENCE)
        reader.thread.join()
        faults = []
        with open(os.path.join(folder, "errors.txt")) as file:
            errors = file.read()
        with open(os.path.join(folder, "stats.json")) as file:
            stats = json.load(file)
        ledger, switch = stats["ledger"], next(stage for stage in stats["stages"] if stage["id"] == "sw")
        if status != 0:
            faults.append(f"status {status}:\n{errors[-2000:]}")
        if ledger["inFlight"]:
            faults.append(f"the ledger: {ledger}")
        if run.done != options.switches or switch["figures"]["switches"] != options.switches:
            faults.append(f"{run.done} of {options.switches} switches were answered, {switch['figures']}: {run.refused[:3]}")
        times, complaint = decoded(os.path.join(folder, "main.mp4"))
        # Two pictures' time are the step and one more.
        room = 0.001 if options.quiet else 0.25
        longest = max(b - a for a, b in zip(times, times[1:])) if len(times) > 1 else 0
        for name, found, words in (("main.mp4", times, complaint), ("the reader", reader.times, reader.process.stderr.read().strip())):
            if words or len(found) < RATE * seconds * 0.8 or gaps(found, room) or any(b <= a for a, b in zip(found, found[1:])):
                faults.append(f"{name}: {len(found)} pictures in {seconds:.0f} s, gaps {gaps(found, room)[:5]}, ffprobe: {words[:500]}")
        print(f"{run.done} switches in {seconds:.0f} s; {len(times)} pictures recorded, {len(reader.times)} read live, longest step {longest * 1000:.1f} ms, left out {switch['figures']['missed']}")
        for fault in faults:
            print(f"FAULT: {fault}")
        sys.exit(1 if faults else 0)


main()
