#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What sound costs: readers of rtsp-sink with sound beside readers without, and audio-encoder beside ffmpeg.

    python3 Benchmarks/rtsp-sound.py readers [--count 100] [--seconds 10] [--rounds 5]
    python3 Benchmarks/rtsp-sound.py encoder [--seconds 60] [--rounds 3]

readers: a clip (720p30, H.264 of 2.5 Mbit/s, AAC of 128 kbit/s, 48 kHz stereo) is passed through at its pace and served to readers that take all media,
over TCP and over UDP; the same with the pictures alone. No encoder's time is in it. Each run is a process of its own, and the ways take turns.

encoder: a tone of 48 kHz stereo is encoded to AAC in real time and dropped, by framehost and by `ffmpeg -re`, in turn. `source alone` is framehost's chain
without the encoder; `codec in real time` is paced-aac.c, which does nothing but call libavcodec every 21.3 ms, as the others must; `codec in one go` is
ffmpeg with the same sound as fast as it goes, less the same without the codec: caches stay warm. Needs cc and libavcodec's headers.

CPU is what all threads of the process ran (/proc/PID/task/*/schedstat, nanoseconds) in the middle of the run, in percent of one core. Needs ffmpeg and the
release build ($FRAMEHOST, else .build/release/framehost). Compare within a run only.
"""

import argparse
import json
import os
import pathlib
import resource
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "Tests/Conformance/rtsp"))

from session import PortPair, describe, everything  # noqa: E402
from wire import Target  # noqa: E402

HOST = os.environ.get("FRAMEHOST", str(ROOT / ".build/release/framehost"))
PORT = int(os.environ.get("RTSP_PORT", "18556"))
TONE = ["-f", "lavfi", "-i", "sine=frequency=1000:sample_rate=48000", "-ac", "2"]
AAC = ["-c:a", "aac", "-b:a", "128k"]


def processor_seconds(pid):
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except FileNotFoundError:
            pass
    return total / 1e9


class Chain:
    """framehost with these stages, until the end of the block."""

    def __init__(self, folder, stages):
        self.folder = folder
        (folder / "chain.json").write_text(json.dumps({"stages": stages}))

    def __enter__(self):
        self.process = subprocess.Popen([HOST, "chain.json", "--events", "--stats", "stats.json"], cwd=self.folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if '"state":"streaming"' in line:
                return self
        sys.exit(f"framehost ended: {HOST} {self.folder / 'chain.json'}")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)

    def figures(self, stage):
        stages = json.loads((self.folder / "stats.json").read_text())["stages"]
        return next(s for s in stages if s["id"] == stage).get("figures", {})


# Readers


def clip(folder, seconds):
    """Pictures with enough detail to need their bitrate, and a tone."""
    path = folder / "clip.mp4"
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=30", *TONE[:-2], "-ac", "2", "-t", str(seconds),
                    "-vf", "noise=alls=12:allf=t", "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p", "-g", "60",
                    "-b:v", "2500k", "-maxrate", "2500k", "-bufsize", "2500k", *AAC, str(path)], check=True)
    return path


class Crowd:
    """Readers that take what comes. Over UDP it counts packets and gaps of their numbers."""

    def __init__(self, transport, count):
        self.kept, self.bytes, self.packets, self.lost = [], 0, 0, 0
        self.poller = select.epoll()
        self.sockets = {}
        target = Target(f"rtsp://127.0.0.1:{PORT}/live")
        for _ in range(count):
            connection = target.connect()
            track = describe(connection)
            ports = PortPair(target) if transport == "udp" else None
            session = everything(connection, track, ports)
            session.play()
            self.kept.append((connection, ports, session))
            self.add(connection.socket, None)
            for pair in (ports, ports.sound if ports else None):
                if pair:
                    self.add(pair.rtp, [None])
                    self.add(pair.rtcp, None)
            self.take(0)

    def add(self, one, numbers):
        one.setblocking(False)
        self.sockets[one.fileno()] = (one, numbers)
        self.poller.register(one, select.EPOLLIN)

    def take(self, seconds):
        """All that comes in this time."""
        end = time.monotonic() + seconds
        buffer = bytearray(1 << 18)
        while True:
            for number, _ in self.poller.poll(max(0.0, min(0.1, end - time.monotonic()))):
                one, last = self.sockets[number]
                try:
                    while size := one.recv_into(buffer):
                        self.bytes += size
                        if last is None:
                            break
                        sequence = buffer[2] << 8 | buffer[3]
                        self.packets += 1
                        if last[0] is not None:
                            self.lost += (sequence - last[0] - 1) & 0xffff
                        last[0] = sequence
                except BlockingIOError:
                    pass
            if time.monotonic() >= end:
                return

    def close(self):
        for connection, ports, _ in self.kept:
            connection.socket.close()
            if ports:
                ports.close()
        self.poller.close()


def served(folder, source, with_sound, transport, count, seconds):
    chain = Chain(folder, [
        {"id": "clip", "use": "file-source", "path": str(source), "decode": False, "pace": "realtime"},
        {"id": "live", "use": "rtsp-sink", "from": ["clip", "clip.audio"] if with_sound else ["clip"], "port": PORT, "path": "/live",
         "maxReaders": 100000, "transport": transport}])
    with chain:
        crowd = Crowd(transport, count)
        crowd.take(2)
        bytes_before, packets_before, before, begin = crowd.bytes, crowd.packets, processor_seconds(chain.process.pid), time.monotonic()
        crowd.take(seconds)
        passed = time.monotonic() - begin
        used = processor_seconds(chain.process.pid) - before
        result = {"cpu": 100 * used / passed, "mbit": (crowd.bytes - bytes_before) * 8e-6 / passed, "packets": (crowd.packets - packets_before) / passed,
                  "lost": crowd.lost}
        crowd.close()
    figures = chain.figures("live")
    result["dropped"] = figures.get("droppedUnits", 0) + figures.get("droppedSounds", 0)
    return result


def readers(options):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
    print(f"| {options.count} readers | CPU without sound, % | with | ratio | Mbit/s | | datagrams/s | | lost or dropped |\n|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source = clip(folder, options.seconds + 30 + options.count / 10)
        for transport in ("tcp", "udp"):
            seen = {False: [], True: []}
            for turn in range(options.rounds):
                # Neither way is always the first of a round.
                for with_sound in ((False, True) if turn % 2 == 0 else (True, False)):
                    seen[with_sound].append(served(folder, source, with_sound, transport, options.count, options.seconds))
            without, sound = ([run["cpu"] for run in seen[way]] for way in (False, True))
            ratios = sorted(b / a for a, b in zip(without, sound))

            def middle(way, key):
                return f"{statistics.median(run[key] for run in seen[way]):.0f}"
            lost = sum(run["lost"] + run["dropped"] for way in seen.values() for run in way)
            print(f"| {transport} | {statistics.median(without):.2f} ({min(without):.2f} to {max(without):.2f}) | {statistics.median(sound):.2f} "
                  f"({min(sound):.2f} to {max(sound):.2f}) | {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) | {middle(False, 'mbit')} "
                  f"| {middle(True, 'mbit')} | {middle(False, 'packets')} | {middle(True, 'packets')} | {lost} |", flush=True)


# The encoder


def middle_of(process, seconds):
    """CPU of a process that runs, after two seconds for its start, in percent of a core."""
    time.sleep(2)
    before, begin = processor_seconds(process.pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (processor_seconds(process.pid) - before) / (time.monotonic() - begin)


def live(folder, seconds, *encoder):
    with Chain(folder, [{"id": "tone", "use": "tone-source", "live": True}, *encoder, {"id": "end", "use": "null-sink"}]) as chain:
        return middle_of(chain.process, seconds)


def ffmpeg_live(seconds, *codec):
    with subprocess.Popen(["ffmpeg", "-nostdin", "-v", "quiet", "-re", *TONE, *codec, "-f", "null", "-"]) as process:
        used = middle_of(process, seconds)
        process.terminate()
    return used


def ffmpeg_batch(codec, sound=600):
    """CPU for each second of sound, in percent."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["ffmpeg", "-nostdin", "-v", "quiet", *TONE, "-t", str(sound), *codec, "-f", "null", "-"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 100 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / sound


def codec_live(program, seconds):
    with subprocess.Popen([program, str(int(seconds) + 5)]) as process:
        used = middle_of(process, seconds)
        process.terminate()
    return used


def encoder(options):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        codec = folder / "paced-aac"
        subprocess.run(["cc", "-O2", "-o", codec, ROOT / "Benchmarks/paced-aac.c", "-lavcodec", "-lavutil", "-lm"], check=True)
        ways = {
            "framehost, live": lambda: live(folder, options.seconds, {"id": "aac", "use": "audio-encoder", "bitrateKbps": 128}),
            "ffmpeg -re": lambda: ffmpeg_live(options.seconds, *AAC),
            "framehost, source alone": lambda: live(folder, options.seconds),
            "ffmpeg -re, without the codec": lambda: ffmpeg_live(options.seconds, "-c:a", "pcm_f32le"),
            "codec in real time": lambda: codec_live(codec, options.seconds),
            "codec in one go": lambda: ffmpeg_batch(AAC) - ffmpeg_batch(["-c:a", "pcm_f32le"]),
        }
        seen = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, measure in ways.items():
                seen[way].append(measure())
    print("| 48 kHz stereo to AAC of 128 kbit/s | CPU, % of a core |\n|---|---|")
    for way, used in seen.items():
        print(f"| {way} | {statistics.median(used):.2f} ({min(used):.2f} to {max(used):.2f}) |")
    for other in ("ffmpeg -re", "codec in real time", "codec in one go"):
        apart = sorted(a - b for a, b in zip(seen["framehost, live"], seen[other]))
        print(f"| framehost less {other} | {statistics.median(apart):+.2f} ({apart[0]:+.2f} to {apart[-1]:+.2f}) |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("readers")
    one.add_argument("--count", type=int, default=100)
    one.add_argument("--seconds", type=float, default=10)
    one.add_argument("--rounds", type=int, default=5)
    one.set_defaults(part=readers)
    two = parts.add_parser("encoder")
    two.add_argument("--seconds", type=float, default=60)
    two.add_argument("--rounds", type=int, default=3)
    two.set_defaults(part=encoder)
    options = parser.parse_args()
    options.part(options)


main()
