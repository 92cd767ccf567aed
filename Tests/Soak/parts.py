# SPDX-License-Identifier: Apache-2.0
"""A film made in parts and as a whole; ends with 1 where they differ in more than they may.

    python3 Tests/Soak/parts.py [--seconds 600] [--parts 60] [--jobs 1,2,7] [--program .build/release/framehost] [--keep]

The film is made with ffmpeg: B-frames, open groups of pictures, sound. At a constant quantizer parts must give the same bytes whatever the number of workers,
and the whole run's frames, times, pictures and sound; processor time is compared with that of the whole run. With crf the distance between both is said.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile


def chain(**encoder):
    return {
        "stages": [
            {"use": "file-source", "path": "${input}"},
            {"id": "h264", "use": "x264-encoder", "preset": "veryfast", "threads": 1, "sceneCut": 0, **encoder},
            {"use": "recorder", "path": "${output}", "audio": "copy"},
        ]
    }


def make_film(path, seconds, size, sound):
    command = ["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", f"testsrc2=s={size}:r=30"]
    if sound:
        command += ["-f", "lavfi", "-i", "sine=frequency=330:sample_rate=48000", "-c:a", "aac", "-b:a", "64k"]
    subprocess.run(
        command + ["-t", str(seconds), "-c:v", "libx264", "-preset", "veryfast", "-g", "250", "-bf", "3", "-x264-params", "open-gop=1", "-pix_fmt", "yuv420p", path],
        check=True)


def batch(options, folder, words, out, *more):
    """Processor seconds and what the report says."""
    path = os.path.join(folder, f"{os.path.basename(out)}.json")
    with open(path, "w") as file:
        json.dump(words, file)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [options.program, "batch", path, os.path.join(folder, "film.mp4"), "--out", out, "--quiet", "--report", f"{out}.report.json", *more],
        capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr}"
    with open(f"{out}.report.json") as file:
        report = json.load(file)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, report


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def packets(path, stream, entries):
    found = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", stream, "-show_entries", f"packet={entries}", "-of", "csv=p=0", path],
        capture_output=True, text=True, check=True)
    assert not found.stderr, found.stderr
    return found.stdout.split()


def frame_digests(path, stream):
    """Of every decoded picture or block of sound, with its time."""
    kind = ["-map", f"0:{stream}", "-f", "framemd5", "-"]
    found = subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-i", path, *kind], capture_output=True, text=True, check=True)
    assert not found.stderr, found.stderr
    return [line for line in found.stdout.splitlines() if not line.startswith("#")]


def difference(a, b):
    """PSNR in dB of two films: the mean, and the worst picture."""
    found = subprocess.run(
        ["ffmpeg", "-nostdin", "-v", "error", "-i", a, "-i", b, "-lavfi", "psnr=stats_file=-", "-f", "null", "-"], capture_output=True, text=True, check=True)
    values = [float(word.partition(":")[2]) for word in found.stdout.split() if word.startswith("psnr_avg:")]
    finite = [value for value in values if value != float("inf")]
    return (sum(finite) / len(finite), min(finite)) if finite else (float("inf"), float("inf"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--parts", type=int, default=60)
    parser.add_argument("--jobs", default="1,2,7")
    parser.add_argument("--size", default="1280x720")
    parser.add_argument("--most", type=float, help="processor time of parts over that of the whole, at most; no limit unless given")
    parser.add_argument("--program", default=os.path.join(os.path.dirname(__file__), "../../.build/release/framehost"))
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    options.program = os.path.abspath(options.program)
    folder = tempfile.mkdtemp(prefix="framehost-parts-")
    faults = []
    try:
        make_film(f"{folder}/film.mp4", options.seconds, options.size, True)
        exact = chain(qp=24)
        whole_time, report = batch(options, folder, exact, f"{folder}/whole", "--jobs", "1")
        frames = report["frames"]
        whole = f"{folder}/whole/film.mp4"
        assert frames == options.seconds * 30, frames
        digests = {}
        for jobs in options.jobs.split(","):
            out = f"{folder}/of-{jobs}"
            time, report = batch(options, folder, exact, out, "--jobs", jobs, "--parts", str(options.parts))
            digests[jobs] = digest(f"{out}/film.mp4")
            print(f"{jobs} at once: {report['frames']} frames, {report['seconds']:.1f} s, processor time {time:.1f} s, {100 * (time / whole_time - 1):+.1f} % of the whole run's {whole_time:.1f} s", flush=True)
            if options.most and time > options.most * whole_time:
                faults.append(f"{jobs} at once took {time / whole_time:.3f} of the whole run's processor time")
            if report["frames"] != frames:
                faults.append(f"{report['frames']} frames, and {frames} of the whole run")
        if len(set(digests.values())) != 1:
            faults.append(f"the number of workers changes the bytes: {digests}")
        parts = f"{out}/film.mp4"
        for what, stream, entries in (("picture times", "v", "pts"), ("picture kinds", "v", "pts,dts,flags"), ("sound", "a", "pts,dts,duration,size")):
            a, b = packets(whole, stream, entries), packets(parts, stream, entries)
            if a != b:
                faults.append(f"{what} differ: {len(a)} and {len(b)}, first {next((p for p in zip(a, b) if p[0] != p[1]), '')}")
        for what, stream in (("pictures", "v:0"), ("blocks of sound", "a:0")):
            a, b = frame_digests(whole, stream), frame_digests(parts, stream)
            print(f"{what}: {sum(x != y for x, y in zip(a, b)) + abs(len(a) - len(b))} of {len(a)} differ from the whole run", flush=True)
            if a != b:
                faults.append(f"{what} differ")
        for text, encoder in (("crf 23", {"crf": 23}), ("2000 kbit/s", {"bitrateKbps": 2000})):
            for out, more in (("rate-whole", []), ("rate-parts", ["--parts", str(options.parts)])):
                shutil.rmtree(f"{folder}/{out}", ignore_errors=True)
                batch(options, folder, chain(**encoder), f"{folder}/{out}", *more)
            mean, worst = difference(f"{folder}/rate-whole/film.mp4", f"{folder}/rate-parts/film.mp4")
            print(f"{text}: parts and whole run are {mean:.1f} dB apart on average where they differ, {worst:.1f} dB at worst", flush=True)
            if worst < 30:
                faults.append(f"{text}: {worst:.1f} dB")
    finally:
        if options.keep or faults:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)
    for fault in faults:
        print(f"FAILED {fault}")
    sys.exit(1 if faults else 0)


main()
