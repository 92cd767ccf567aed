# SPDX-License-Identifier: Apache-2.0
"""Records one live scene with motion-detect and with Motion (Debian's package `motion`), side by side.

    python3 Tests/Soak/motion-live.py [--program .build/release/framehost] [--server PROGRAM] [--clip FILE] [--keep DIR]

A chain serves a clip with a number in each picture, and beeps, by RTSP, and records all of it. A second chain takes the stream, detects motion and
records with sound from three seconds before it; Motion takes the same stream with `pre_capture 45`. Then each picture's number is read back: how many
pictures of the motion are in each recording, how many before it, how many are missing in between; and how far the beeps are from the pictures,
beside the first chain's recording. Ends with 1 where framehost's recording misses a picture, begins too late or has its sound out of step by more
than a picture's time. Needs ffmpeg, numpy, and a clip of Tests/Soak/motion.py, such as walker.mp4.
"""

import argparse
import glob
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

import numpy

BITS, SIDE, LEFT, TOP = 10, 6, 16, 4
RATE = 15


def number_clip(source, target):
    """The clip with the number of each picture as white and black squares."""
    boxes = [f"drawbox=x={LEFT + 2 * SIDE * bit}:y={TOP}:w={SIDE}:h={SIDE}:color=white:t=fill:enable='eq(mod(floor(n/{1 << bit}),2),1)'"
             for bit in range(BITS)]
    ground = f"drawbox=x={LEFT - SIDE}:y=0:w={2 * SIDE * BITS + SIDE}:h={SIDE + 2 * TOP}:color=black:t=fill"
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", "-i", source, "-vf", ",".join([ground, *boxes]), "-c:v", "libx264", "-preset",
                    "veryfast", "-crf", "12", "-an", target], check=True)


def numbers(path):
    """Times and numbers of the pictures of a recording."""
    shown = subprocess.check_output(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "frame=pts_time", "-of", "csv=p=0", path],
                                    text=True)
    times = [float(line.split(",")[0]) for line in shown.split() if re.match(r"^[\d.]", line)]
    pixels = subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-i", path, "-vf", f"crop={LEFT + 2 * SIDE * BITS}:{SIDE + 2 * TOP}:0:0",
                             "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt", "gray", "-"], capture_output=True, check=True).stdout
    rows, columns = SIDE + 2 * TOP, LEFT + 2 * SIDE * BITS
    pictures = numpy.frombuffer(pixels, numpy.uint8).reshape(-1, rows, columns)
    found = []
    for picture in pictures:
        squares = [picture[TOP + 1:TOP + SIDE - 1, LEFT + 2 * SIDE * bit + 1:LEFT + 2 * SIDE * bit + SIDE - 1].mean() > 128 for bit in range(BITS)]
        found.append(sum(1 << bit for bit, on in enumerate(squares) if on))
    return list(zip(times, found))


def beeps(path):
    """When beeps begin in a recording."""
    raw = subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-i", path, "-map", "a:0?", "-ac", "1", "-ar", "8000", "-af",
                          "aresample=async=1:first_pts=0", "-f", "f32le", "-"], capture_output=True).stdout
    sound = numpy.abs(numpy.frombuffer(raw, numpy.float32))
    if len(sound) == 0:
        return []
    loud = sound > 0.3 * sound.max()
    starts = numpy.flatnonzero(loud & ~numpy.concatenate(([False], loud[:-1])))
    return [start / 8000 for index, start in enumerate(starts) if index == 0 or start - starts[index - 1] > 2000]


def lead(pictures, sounds):
    """By how many seconds beeps come after the time at which their pictures' clip had a whole second; the median."""
    late = []
    for beep in sounds:
        before = [(at, number) for at, number in pictures if at <= beep]
        if before:
            late.append((before[-1][1] / RATE + beep - before[-1][0]) % 1)
    return float(numpy.median(late)) if late else None


def apart(a, b):
    return None if a is None or b is None else min((a - b) % 1, (b - a) % 1)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--program", default=".build/release/framehost")
    options.add_argument("--server", help="the program that serves the stream; default: --program")
    options.add_argument("--clip", default=".build/motion-clips/walker.mp4")
    options.add_argument("--truth", type=float, nargs=2, default=[22, 28.5], help="when something moves in the clip: the motion that is looked at (s)")
    options.add_argument("--keep", help="the folder to work in; it stays")
    options = options.parse_args()
    program, server = os.path.abspath(options.program), os.path.abspath(options.server or options.program)
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.abspath(options.keep or scratch)
        os.makedirs(folder, exist_ok=True)
        number_clip(options.clip, f"{folder}/numbered.mp4")
        port = free_port()
        whole = {"stages": [
            {"id": "clip", "use": "file-source", "path": "numbered.mp4", "pace": "realtime"},
            {"id": "tone", "use": "tone-source", "pattern": "beep", "live": True, "level": -6},
            {"id": "h264", "use": "x264-encoder", "from": "clip", "tune": "zerolatency", "bitrateKbps": 4000, "keyframeSeconds": 1},
            {"id": "aac", "use": "audio-encoder", "from": "tone"},
            {"id": "live", "use": "rtsp-sink", "from": ["h264", "aac"], "port": port, "path": "/scene"},
            {"id": "all", "use": "recorder", "from": ["h264", "aac"], "path": "all.mp4", "overwrite": True}]}
        taking = {"stages": [
            {"id": "in", "use": "network-source", "url": f"rtsp://127.0.0.1:{port}/scene"},
            {"id": "motion", "use": "motion-detect", "from": "in", "ignore": [{"polygon": [[0, 0], [0.3, 0], [0.3, 0.05], [0, 0.05]]}]},
            {"id": "h264", "use": "x264-encoder", "tune": "zerolatency", "bitrateKbps": 4000, "keyframeSeconds": 1},
            {"id": "aac", "use": "audio-encoder", "from": "in.audio"},
            {"id": "rec", "use": "recorder", "from": ["h264", "aac"], "path": "ours-{n}.mp4", "record": "onCommand", "preEventSeconds": 3}],
            "on": [{"event": "motion-began", "stage": "motion", "do": {"stage": "rec", "command": "start"}},
                   {"event": "motion-ended", "stage": "motion", "do": {"stage": "rec", "command": "stop"}}]}
        for name, chain in (("whole", whole), ("taking", taking)):
            with open(f"{folder}/{name}.json", "w") as file:
                json.dump(chain, file)
        with open("/etc/motion/motion.conf") as file:
            text = file.read()
        for key, value in {"log_file": f"{folder}/log", "webcontrol_port": "0", "stream_port": "0", "target_dir": folder, "event_gap": "3",
                           "pre_capture": "45", "movie_filename": "theirs-%v", "movie_quality": "90"}.items():
            text = re.sub(rf"^{key} .*$", f"{key} {value}", text, flags=re.M)
        text = re.sub(r"^(video_device|text_left|text_right) .*$", "", text, flags=re.M)
        with open(f"{folder}/motion.conf", "w") as file:
            file.write(text + f"netcam_url rtsp://127.0.0.1:{port}/scene\n")
        running = [subprocess.Popen([server, f"{folder}/whole.json", "--quiet"], stdout=subprocess.DEVNULL)]
        time.sleep(1.5)
        running.append(subprocess.Popen([program, f"{folder}/taking.json", "--events", "--quiet"], stdout=open(f"{folder}/events", "w")))
        running.append(subprocess.Popen(["motion", "-n", "-c", f"{folder}/motion.conf"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        time.sleep(options.truth[1] + 8)
        for one in reversed(running):
            one.terminate()
        for one in running:
            one.wait(30)
        sys.exit(report(folder, options.truth))


def report(folder, truth):
    begin, end = (int(moment * RATE) for moment in truth)
    # Numbers of pictures go on beyond 1023 from 0 again; the clip is shorter.
    whole = numbers(f"{folder}/all.mp4")
    reference = lead(whole, beeps(f"{folder}/all.mp4"))
    status = 0
    for who in ("ours", "theirs"):
        best = None
        for path in glob.glob(f"{folder}/{who}-*.m*"):
            pictures = numbers(path)
            seen = [number for _, number in pictures]
            if best is None or sum(begin <= number < end for number in seen) > sum(begin <= number < end for number in best[1]):
                best = (path, seen, lead(pictures, beeps(path)))
        if best is None:
            print(f"{who}: recorded nothing")
            status = 1 if who == "ours" else status
            continue
        path, seen, sound = best
        missing = sorted(set(range(min(seen), max(seen) + 1)) - set(seen))
        step = apart(sound, reference)
        print(f"{who}: {os.path.basename(path)}: pictures {min(seen)} to {max(seen)}, {(begin - min(seen)) / RATE:.2f} s before the motion,"
              f" {len(missing)} missing, sound {'none' if step is None else f'{step * 1000:.0f} ms from its place'}")
        if who == "ours" and (missing or min(seen) > begin or step is None or step > 1 / RATE):
            status = 1
    return status


if __name__ == "__main__":
    main()
