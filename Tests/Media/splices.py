# SPDX-License-Identifier: Apache-2.0
"""Random splices of two to five clips, recorded in each way; ends with 1 where a second is wrong and nothing said so.

    python3 Tests/Media/splices.py [--count 500] [--seed 1] [--only N] [--program .build/release/framehost] [--keep FOLDER]

Clips with numbered pictures and beeps (measure.py) are joined as people's recordings are: times go on, step back or ahead, wrap at 33 bits, with a hole in both
tracks or in one, with one wrong time, trimmed by an edit list. Each is decoded and encoded, its sound copied, or passed through undecoded, into MP4, MOV and MKV.
A second counts as wrong where its picture is missing, comes twice or in another order, or its beep stands more than 10 ms from where it stood in its clip.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import measure
import transport

SECOND = 90_000
X264 = ["-c:v", "libx264", "-preset", "ultrafast", "-g", 25, "-sc_threshold", 0]
# Open groups of pictures, as cameras with H.265 send them.
X265 = ["-c:v", "libx265", "-preset", "ultrafast", "-crf", 16, "-x265-params", "log-level=none:keyint=25:min-keyint=25:scenecut=0:open-gop=1"]
SOUNDS = {"mp2": ["-c:a", "mp2", "-b:a", "192k"], "aac": ["-c:a", "aac", "-b:a", "128k"], "ac3": ["-c:a", "ac3", "-b:a", "192k"], "mp3": ["-c:a", "libmp3lame", "-b:a", "128k"]}
# Where a time is said to be wrong: of an edit's, ffmpeg's own rounding to the sound's frame is not ours.
TOLERANCE = 0.010


class Clips:
    """Each kind of clip is made once."""

    def __init__(self, folder):
        self.folder = folder

    def get(self, first_second, seconds, codec, frames_between, sound, ending):
        path = f"{self.folder}/{first_second}-{seconds}-{codec}-{frames_between}-{sound}.{ending}"
        if not os.path.exists(path):
            measure.make_clip(path, first_second, seconds, [*(X264 if codec == "h264" else X265), "-bf", frames_between, *SOUNDS[sound]])
        return path


class Splice:
    """An input and what is true of it: `seconds` are the numbers in their order, `unsure` those that a hole or a mistake may have taken."""

    def __init__(self, number, seed, clips, folder):
        self.random = random.Random(f"{seed}-{number}")
        self.name = f"{number}"
        self.folder = folder
        self.clips = clips
        self.story = []
        self.seconds, self.unsure, self.late = [], set(), {}
        kind = self.random.choice(["ts"] * 6 + ["mp4", "mov", "mkv", "flv"])
        if kind == "ts":
            self._join()
        else:
            self._trim(kind)

    def _clip(self, first_second, ending):
        self.sound = getattr(self, "sound", None) or self.random.choice(["mp2", "aac", "ac3", "mp3"] if ending == "ts" else ["aac", "mp3"])
        self.between = getattr(self, "between", None)
        if self.between is None:
            self.between = self.random.choice([0, 2])
        seconds = self.random.randint(3, 6)
        self.codec = getattr(self, "codec", None) or ("h265" if ending != "flv" and self.random.random() < 0.25 else "h264")
        path = self.clips.get(first_second, seconds, self.codec, self.between, self.sound, ending)
        for time, second, late in measured(path).pairs():
            self.late[second] = late
        return path, seconds

    def _join(self):
        r = self.random
        whole = bytearray()
        # Where the next clip's times begin.
        next_time = r.choice([10 * SECOND, 95_000 * SECOND, transport.WRAP - r.randint(1, 8) * SECOND, r.randint(0, transport.WRAP - 1)])
        first_second = 0
        for index in range(r.randint(2, 5)):
            path, seconds = self._clip(first_second, "ts")
            stream = transport.Stream(open(path, "rb").read())
            length, begin = stream.length()
            if index:
                step = r.choice(["on", "on", "back", "ahead", "far"])
                if step == "back":
                    next_time -= int(r.choice([r.uniform(1.5, 20), r.uniform(20, 40_000)]) * SECOND)
                elif step == "ahead":
                    next_time += int(r.uniform(11, 600) * SECOND)
                elif step == "far":
                    next_time += int(r.uniform(600, 80_000) * SECOND)
                self.story.append(f"clip {first_second} goes {step}")
            stream.shift(next_time - begin)
            next_time += length + SECOND // RATE
            self.seconds += range(first_second, first_second + seconds)
            what = r.choice(["whole"] * 3 + ["hole", "hole of sound", "hole of pictures", "mistake", "mistake in sound"])
            if what.startswith("hole"):
                low = r.randint(20, seconds * RATE - 45)
                high = low + r.randint(2, 40)
                stream.hole(low, high, video=what != "hole of sound", sound=what != "hole of pictures")
                # The sound lies up to a second away from the pictures that are multiplexed beside it.
                self.unsure.update(range(first_second + low // RATE - 1, first_second + high // RATE + 2))
            elif what.startswith("mistake"):
                count = sum(1 for one in stream.pes() if one[2] == (what == "mistake"))
                number = r.randint(3, count - 4)
                ticks = int(r.choice([-1, 1]) * r.choice([r.uniform(2, 60), r.uniform(60, 30_000)]) * SECOND)
                stream.mistake(what == "mistake", number, ticks)
                what += f" {number} by {ticks / SECOND:.1f} s"
            if what != "whole":
                self.story.append(f"clip {first_second}: {what}")
            whole += stream.data
            first_second += seconds
        self.path = f"{self.folder}/{self.name}.ts"
        with open(self.path, "wb") as file:
            file.write(whole)

    def _trim(self, ending):
        r = self.random
        path, seconds = self._clip(0, ending)
        self.path = f"{self.folder}/{self.name}.{ending}"
        begin = r.choice([0, r.uniform(0.1, seconds - 1.5)])
        offset = r.choice([0, 0, r.uniform(0.1, 2)])
        words = ["-ss", f"{begin:.3f}", "-i", path]
        # Sound that begins later than the pictures, or earlier: an empty edit in MP4.
        if offset:
            words += ["-itsoffset", f"{r.choice([-1, 1]) * offset:.3f}", "-ss", f"{begin:.3f}", "-i", path, "-map", "0:v", "-map", "1:a"]
        measure.tool("ffmpeg", "-nostdin", "-v", "error", "-y", *words, "-c", "copy", self.path)
        self.story.append(f"{ending} from {begin:.3f} s, {' '.join(words)}")
        # What a player of this file shows is the truth, for it was the muxer's to say.
        truth = measured(self.path)
        self.seconds = [second for _, second, _ in truth.pairs()]
        self.late = {second: late for _, second, late in truth.pairs()}


RATE = measure.RATE
_known = {}


def measured(path):
    if path not in _known:
        _known[path] = measure.Measured(path, right=False)
    return _known[path]


def chain(splice, way, out):
    source = {"id": "in", "use": "file-source", "path": splice.path}
    recorder = {"id": "file", "use": "recorder", "path": out, "overwrite": True}
    if way == "decoded":
        return [source, {"id": "h264", "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 1},
                {"id": "sound", "use": "audio-encoder", "from": "in.audio"}, {**recorder, "from": ["h264", "sound"]}]
    if way == "sound copied":
        return [source, {"id": "h264", "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 1}, {**recorder, "audio": "copy"}]
    return [{**source, "decode": False}, {**recorder, "audio": "copy"}]


def judge(splice, way, out, said):
    """What is wrong, as a list of texts."""
    wrong = []
    result = measure.Measured(out, right=False)
    seen = {}
    order = []
    for time, second, late in result.pairs():
        # What a decoder shows in a hole is an earlier picture.
        if splice.unsure and (second is None or second in splice.unsure or second in seen):
            continue
        if second is None or second not in splice.seconds:
            wrong.append(f"a picture of no second at {time:.3f} s")
            continue
        if second in seen:
            wrong.append(f"second {second} comes twice, at {seen[second]:.3f} and {time:.3f} s")
        seen[second] = time
        order.append(second)
        meant = splice.late.get(second)
        if meant is None:
            continue
        if late is None:
            wrong.append(f"second {second} at {time:.3f} s has no beep")
        elif abs(late - meant) > TOLERANCE:
            wrong.append(f"second {second} at {time:.3f} s has its beep {1000 * (late - meant):+.0f} ms from its place")
    for second in splice.seconds:
        if second not in seen and second not in splice.unsure:
            wrong.append(f"second {second} is missing")
    if order != sorted(order):
        wrong.append(f"the order is {order}")
    times = sorted(result.times_of_packets())
    twice = [time for time, next_ in zip(times, times[1:]) if next_ - time < 0.0005]
    # Behind a hole the decoder guesses the order, and says that it does.
    if twice and not splice.unsure:
        wrong.append(f"{len(twice)} pictures have the time of another, the first {twice[0]} s")
    return wrong


def run(program, splice, way, ending, folder):
    out = f"{folder}/{splice.name}-out.{ending}"
    path = f"{folder}/{splice.name}.json"
    with open(path, "w") as file:
        json.dump({"stages": chain(splice, way, out)}, file)
    done = subprocess.run([program, "run", path], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    said = done.stderr
    if done.returncode or not os.path.exists(out):
        return [f"status {done.returncode}"], said
    return judge(splice, way, out, said), said


def told(said):
    """What is said of a loss or a mistake, with its number, time or place."""
    return [line for line in said.splitlines() if re.search(r"warning|error|hides \d+", line) and re.search(r"\d", line)]


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--count", type=int, default=500)
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--only", type=int, help="this splice alone")
    words.add_argument("--program", default=os.environ.get("FRAMEHOST", ".build/release/framehost"))
    words.add_argument("--keep", help="a new folder for the inputs and results of what failed")
    asked = words.parse_args()
    failed = runs = silent = 0
    with tempfile.TemporaryDirectory() as folder:
        clips = Clips(folder)
        for number in [asked.only] if asked.only is not None else range(asked.count):
            splice = Splice(number, asked.seed, clips, folder)
            for way in ["decoded", "sound copied", "undecoded"]:
                ending = splice.random.choice(["mp4", "mov", "mkv"])
                try:
                    wrong, said = run(asked.program, splice, way, ending, folder)
                except (measure.Wrong, subprocess.TimeoutExpired) as error:
                    wrong, said = [str(error)], ""
                runs += 1
                if wrong:
                    failed += 1
                    words_said = told(said)
                    silent += not words_said
                    print(f"{'Wrong, and said:' if words_said else 'FAILED'} splice {number}, {way}, {ending}, {splice.codec}, {splice.sound}, {splice.between} B-frames: {'; '.join(splice.story)}")
                    for text in wrong[:6]:
                        print(f"    {text}")
                    for line in (words_said or [line for line in said.splitlines()])[:4]:
                        print(f"    said: {line[:300]}")
                    sys.stdout.flush()
                    if asked.keep:
                        os.makedirs(asked.keep, exist_ok=True)
                        shutil.copy(splice.path, asked.keep)
                        shutil.copy(f"{folder}/{splice.name}.json", asked.keep)
            for name in os.listdir(folder):
                if name.startswith(f"{splice.name}-out.") or name == os.path.basename(splice.path):
                    os.remove(f"{folder}/{name}")
            _known.pop(splice.path, None)
    print(f"{runs} runs, {failed} with wrong seconds, {silent} of them without a word (seed {asked.seed})")
    return 1 if silent or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
