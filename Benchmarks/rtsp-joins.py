#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a joiner of rtsp-sink has a picture, and what many joiners cost those who watch.

    Benchmarks/rtsp-joins.py [CLIP]          examples/media/portrait.mp4, which `make demo` makes, when no clip is named

The chain encodes a clip at its pace (x264 zerolatency, bitrate held by a buffer of one second, a keyframe every 10 s), serves it and records the same
access units. First picture: PLAY sent until the last packet of the first keyframe is in, at random moments. Storms: the recording of each run is
compared with the clip picture by picture, and with the run without joiners. Needs ffmpeg and ffprobe.

Passed through: the clip with a keyframe each 2, 5 and 10 s, served as it is (`file-source` with `"decode": false`), beside gst-rtsp-server with the same
access units where its Python bindings are there; how long until the last packet of the first keyframe is in. `PART=passed` runs that alone,
`KEYFRAME_SECONDS="2"` with these distances.
"""

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOST = os.environ.get("FRAMEHOST", os.path.join(ROOT, ".build/release/framehost"))
JOINS = os.path.join(ROOT, "Tests/Conformance/joins.py")
CLIP = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(ROOT, "examples/media/portrait.mp4")
PORT = int(os.environ.get("RTSP_PORT", "18554"))
URL = f"rtsp://127.0.0.1:{PORT}/live"
KBPS, RATE = 2500, 30
FIRST_JOINS = int(os.environ.get("JOINS", "200"))


class Run:
    """The chain in a folder of its own; ends after `frames`, or when it is told to."""

    def __init__(self, folder, frames=None):
        self.folder = folder
        chain = {"stages": [
            {"id": "clip", "use": "file-source", "path": CLIP, "pace": "realtime", "loop": True},
            {"id": "h264", "use": "x264-encoder", "tune": "zerolatency", "bitrateKbps": KBPS, "vbvMaxKbps": KBPS, "keyframeSeconds": 10},
            {"id": "live", "use": "rtsp-sink", "port": PORT, "path": "/live"},
            {"id": "file", "use": "recorder", "from": "h264", "path": "out.mp4"}]}
        with open(os.path.join(folder, "chain.json"), "w") as file:
            json.dump(chain, file)
        command = [HOST, "chain.json", "--events", "--stats", "stats.json"] + (["--frames", str(frames)] if frames else [])
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if '"state":"streaming"' in line:
                break
        self.begin = time.monotonic()

    def wait_until(self, second):
        time.sleep(max(0, self.begin + second - time.monotonic()))

    def end(self, by_signal=False):
        if by_signal:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=120)
        if self.process.returncode:
            sys.exit(f"framehost ended with {self.process.returncode}: {self.folder}")

    @property
    def encode_ms(self):
        """p50 and p99 of a call to the encoder."""
        with open(os.path.join(self.folder, "stats.json")) as file:
            stage = next(s for s in json.load(file)["stages"] if s["id"] == "h264")
        return stage["p50Us"] / 1000, stage["p99Us"] / 1000

    def packets(self):
        """Of the recording: bytes and whether it is a keyframe, in order."""
        text = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=size,flags", "-of", "csv=p=0",
                               "out.mp4"], cwd=self.folder, check=True, capture_output=True, text=True).stdout
        return [(int(size), "K" in flags) for size, flags in (line.split(",")[:2] for line in text.split())]

    def errors(self):
        """Mean squared error of each recorded picture's brightness beside the clip's."""
        log = os.path.join(self.folder, "psnr.txt")
        numbered = f"settb=1/{RATE},setpts=N"
        subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-i", "out.mp4", "-stream_loop", "-1", "-i", CLIP, "-lavfi",
                        f"[0:v]{numbered}[a];[1:v]{numbered}[b];[a][b]psnr=shortest=1:stats_file={log}", "-an", "-fps_mode", "passthrough",
                        "-enc_time_base", f"1:{RATE}", "-f", "null", "-"], cwd=self.folder, check=True)
        with open(log) as file:
            return [float(re.search(r"mse_y:(\S+)", line)[1]) for line in file]


def joins(*arguments):
    done = subprocess.run([sys.executable, JOINS, URL, *arguments], capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, math.ceil(part * len(values)) - 1)] if values else float("nan")


def times(name, values):
    return f"| {name} | {len(values)} | " + " | ".join(f"{percentile(values, p):.1f}" for p in (0.5, 0.9, 0.99, 1)) + " |"


def first_picture():
    print("| PLAY until the first picture is in, ms | joins | p50 | p90 | p99 | max |\n|---|---|---|---|---|---|")
    for transport in ("tcp", "udp"):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(folder)
            run.wait_until(2)
            seen = joins("--count", str(FIRST_JOINS), "--transport", transport)
            run.end(by_signal=True)
            for is_kept, name in ((True, "keyframe was kept"), (False, "keyframe was asked for")):
                print(times(f"{transport}, {name}", [s["pictureMs"] for s in seen if s["pictureMs"] is not None and s["isKept"] == is_kept]))
            failed = sum(s["pictureMs"] is None or not s["isKeyframe"] for s in seen)
            print(f"| {transport}: without picture or not from a keyframe | {failed} | | | | |")
            encode = run.encode_ms
    print(f"\nTwo frame times: {2000 / RATE:.1f} ms. The encoder's call: p50 {encode[0]:.1f} ms, p99 {encode[1]:.1f} ms.\n")


def decibels(errors):
    return 10 * math.log10(255 ** 2 / (sum(errors) / len(errors)))


def fullest(packets):
    """Most that ever waits in a buffer which is emptied at the bitrate, kbit: what a decoder's buffer must hold."""
    level = most = 0.0
    for size, _ in packets:
        level = max(0.0, level + size * 8 / 1000 - KBPS / RATE)
        most = max(most, level)
    return most


def storms():
    seconds, begin = 20, 5
    print("| 20 s, joins from second 5 on | keyframes | kbit/s, all | kbit/s, storm | PSNR, all | PSNR, storm | worst second | lost | buffer, kbit"
          " | first picture p50 / max, ms |\n|---|---|---|---|---|---|---|---|---|---|")
    calm = None
    for name, count, rate in (("none", 0, 0), ("50 in a second", 50, 50), ("50 a second for 10 s", 500, 50)):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(folder, frames=seconds * RATE)
            run.wait_until(begin)
            seen = joins("--count", str(count), "--per-second", str(rate), "--stay", "0.5") if count else []
            run.end()
            packets, errors = run.packets(), run.errors()
        calm = calm or errors
        # One second at least, and the one behind it, in which the encoder pays back.
        storm = range(begin * RATE, (begin + 1 + max(1, count // 50)) * RATE)
        part = [packets[i][0] for i in storm]
        worst = max((decibels(calm[i:i + RATE]) - decibels(errors[i:i + RATE]) for i in range(0, len(errors) - RATE + 1)), default=0)
        pictures = [s["pictureMs"] for s in seen if s["pictureMs"] is not None]
        everything, in_storm = sum(size for size, _ in packets), sum(part)
        now, before = decibels([errors[i] for i in storm]), decibels([calm[i] for i in storm])
        print(f"| {name} | {sum(is_keyframe for _, is_keyframe in packets)} | {everything * 8 / 1000 / seconds:.0f} | "
              f"{in_storm * 8 / 1000 * RATE / len(part):.0f} | {decibels(errors):.2f} | {now:.2f} ({now - before:+.2f}) | {0 - worst:+.2f} | "
              f"{count - len(pictures)} | {fullest(packets):.0f} | "
              + (f"{percentile(pictures, 0.5):.1f} / {max(pictures):.1f} |" if pictures else "– |"))


def served(path):
    """gst-rtsp-server with a file of start codes, one live stream for all, or nothing where its bindings are missing."""
    process = subprocess.Popen(["/usr/bin/python3", os.path.join(ROOT, "Benchmarks/gst-serve-file.py"), path, str(PORT), str(RATE)],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return process if process.stdout.readline().startswith("serving") else None


def passed_through():
    print("| passed through, a keyframe each | server | transport | joins | began with a keyframe | p50 | p90 | p99 | max, ms |\n|---|---|---|---|---|---|---|---|---|")
    for seconds in map(int, os.environ.get("KEYFRAME_SECONDS", "2 5 10").split()):
        with tempfile.TemporaryDirectory() as folder:
            clip = os.path.join(folder, "clip.mp4")
            subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-stream_loop", "-1", "-i", CLIP, "-t", str(max(20, 2 * seconds)), "-r", str(RATE), "-an",
                            "-c:v", "libx264", "-preset", "veryfast", "-b:v", f"{KBPS}k", "-maxrate", f"{KBPS}k", "-bufsize", f"{KBPS}k", "-bf", "0",
                            "-g", str(seconds * RATE), "-keyint_min", str(seconds * RATE), "-sc_threshold", "0", clip], check=True)
            subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-i", clip, "-c", "copy", "-bsf:v", "h264_mp4toannexb,h264_metadata=aud=insert", "-f", "h264",
                            clip + ".h264"], check=True)
            for server in ("framehost", "framehost, nextKeyframe", "gst-rtsp-server"):
                for transport in ("tcp", "udp"):
                    if server == "gst-rtsp-server":
                        process = served(clip + ".h264")
                        if process is None:
                            continue
                    else:
                        live = {"id": "live", "use": "rtsp-sink", "port": PORT, "path": "/live"}
                        if "next" in server:
                            live["joinAt"] = "nextKeyframe"
                        chain = {"stages": [{"id": "clip", "use": "file-source", "path": clip, "decode": False, "pace": "realtime", "loop": True}, live]}
                        with open(os.path.join(folder, "chain.json"), "w") as file:
                            json.dump(chain, file)
                        process = subprocess.Popen([HOST, "chain.json", "--events"], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                                   stderr=subprocess.DEVNULL, text=True)
                        for line in process.stdout:
                            if '"state":"streaming"' in line:
                                break
                    # Somebody watches all the time: gst-rtsp-server begins anew for a client that is alone.
                    viewer = subprocess.Popen(["ffmpeg", "-nostdin", "-v", "quiet", "-rtsp_transport", "tcp", "-i", URL, "-c", "copy", "-f", "null", "-"])
                    time.sleep(3)
                    count = FIRST_JOINS if server == "framehost" else min(FIRST_JOINS, 12)
                    seen = joins("--count", str(count), "--transport", transport)
                    viewer.kill()
                    viewer.wait()
                    process.send_signal(signal.SIGINT)
                    process.communicate(timeout=60)
                    values = [s["pictureMs"] for s in seen if s["pictureMs"] is not None]
                    starts = sum(bool(s.get("isKeyframe")) for s in seen)
                    print(f"| {seconds} s | {server} | {transport} | {len(seen)} | {starts} | "
                          + " | ".join(f"{percentile(values, p):.1f}" for p in (0.5, 0.9, 0.99, 1)) + " |", flush=True)


if os.environ.get("PART") != "passed":
    first_picture()
    storms()
passed_through()
