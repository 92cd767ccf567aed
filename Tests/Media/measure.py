# SPDX-License-Identifier: Apache-2.0
"""Makes clips whose pictures and sounds say when they are, and measures where they stand in any file.

    python3 Tests/Media/measure.py FILE [--patches]

Each picture of such a clip carries its number in twelve squares at the top (white is 1, the lowest bit first), and is bright below where it is the first of a
second; each second of sound begins with a beep of 100 ms whose pitch tells which second it is, an octave and a half higher on the right. So a recording can be
asked which picture stands at which time, and whether its beep stands with it, whatever was done to times, codecs and containers on the way.
"""

import argparse
import json
import subprocess
import sys

import numpy as np

RATE = 25
SIZE = (320, 180)
BITS, SQUARE = 12, 16
SOUND_RATE = 48000
# The pitch of second s is PITCHES[s % 12]; the right channel's is 2.8 times as high.
PITCHES = [600 + 110 * k for k in range(12)]
RIGHT = 2.8
BEEP = 0.1
# A file that claims to last longer is wrong as it is, and would fill the memory with silence.
MOST_SECONDS = 600
# 24 colours, as red, green and blue, in the middle of the picture: six by four.
PATCHES = [
    (115, 82, 68), (194, 150, 130), (98, 122, 157), (87, 108, 67), (133, 128, 177), (103, 189, 170),
    (214, 126, 44), (80, 91, 166), (193, 90, 99), (94, 60, 108), (157, 188, 64), (224, 163, 46),
    (56, 61, 150), (70, 148, 73), (175, 54, 60), (231, 199, 31), (187, 86, 149), (8, 133, 161),
    (243, 243, 242), (200, 200, 200), (160, 160, 160), (122, 122, 121), (85, 85, 85), (52, 52, 52),
]
PATCH = (48, 24, 32, 24)  # the first one's place and size


class Wrong(Exception):
    pass


def tool(*words, text=False, timeout=300):
    """What a program writes; its errors are an end."""
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
    if done.returncode:
        raise Wrong(f"{words[0]}: {done.stderr.decode('utf8', 'replace')[-600:]}")
    return done.stdout.decode() if text else done.stdout


def picture(number, first_of_second, patches):
    width, height = SIZE
    image = np.full((height, width, 3), 24, np.uint8)
    for bit in range(BITS):
        image[:SQUARE, bit * SQUARE:(bit + 1) * SQUARE] = 235 if number >> bit & 1 else 16
    if first_of_second:
        image[140:] = 235
    if patches:
        left, top, wide, high = PATCH
        for index, colour in enumerate(PATCHES):
            x, y = left + index % 6 * wide, top + 6 + index // 6 * high
            image[y:y + high, x:x + wide] = colour
    return image


def sound(first_second, seconds, channels=2):
    """Beeps as 16-bit samples, interleaved."""
    samples = np.zeros((int(round(seconds * SOUND_RATE)), channels))
    time = np.arange(int(BEEP * SOUND_RATE)) / SOUND_RATE
    # 2 ms up and down: no click that sounds at every pitch.
    shape = np.minimum(1, np.minimum(time, BEEP - time) / 0.002)
    for second in range(int(np.ceil(seconds))):
        begin = second * SOUND_RATE
        for channel in range(channels):
            pitch = PITCHES[(first_second + second) % len(PITCHES)] * (RIGHT if channel % 2 else 1)
            beep = 0.4 * np.sin(2 * np.pi * pitch * time) * shape
            part = samples[begin:begin + len(beep), channel]
            part += beep[:len(part)]
    return (samples * 32767).astype("<i2").tobytes()


def make_clip(path, first_second, seconds, codec, *, patches=False, channels=2, sound_seconds=None):
    """A clip of whole seconds; pictures are numbered from `first_second * RATE`.

    `codec` are ffmpeg's words for the codecs and the container.
    """
    width, height = SIZE
    wave = path + ".wav.raw"
    with open(wave, "wb") as file:
        file.write(sound(first_second, sound_seconds or seconds, channels))
    frames = b"".join(
        picture(first_second * RATE + index, index % RATE == 0, patches).tobytes() for index in range(seconds * RATE))
    done = subprocess.run(
        ["ffmpeg", "-nostdin", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(RATE), "-i", "pipe:0",
         "-f", "s16le", "-ar", str(SOUND_RATE), "-ac", str(channels), "-i", wave,
         "-vf", "scale=out_color_matrix=bt709:out_range=tv,format=yuv420p", "-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709",
         "-color_range", "tv", *map(str, codec), path],
        input=frames, capture_output=True)
    if done.returncode:
        raise Wrong(f"ffmpeg: {done.stderr.decode('utf8', 'replace')[-600:]}")


class Measured:
    """What a file shows and sounds: `pictures` are (seconds, number), `flashes` those of a second's first picture, `beeps` are (seconds, second modulo 12)."""

    def __init__(self, path, right=True, patches=False):
        self.path = path
        probed = json.loads(tool("ffprobe", "-v", "error", "-show_streams", "-show_format", "-of", "json", path))
        self.streams = probed.get("streams", [])
        self.pictures, self.flashes, self.beeps, self.beeps_right = [], [], [], []
        self.length_of_sound = 0.0
        length = float(probed.get("format", {}).get("duration", 0))
        if length > MOST_SECONDS:
            raise Wrong(f"{path} lasts {length:.1f} s")
        self.colours = None
        if any(stream["codec_type"] == "video" for stream in self.streams):
            self._see(patches)
        if any(stream["codec_type"] == "audio" for stream in self.streams):
            self._hear(right)

    def _see(self, patches):
        shown = tool("ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "frame=best_effort_timestamp_time", "-of", "csv=p=0", self.path, text=True)
        times = []
        for line in shown.split():
            text = line.strip(",")
            times.append(float(text) if text not in ("", "N/A") else float("nan"))
        width, height = SIZE
        raw = tool("ffmpeg", "-nostdin", "-v", "error", "-i", self.path, "-map", "0:v:0", "-vf", f"scale={width}:{height}:flags=area,format=gray", "-vsync", "0",
                   "-f", "rawvideo", "-")
        images = np.frombuffer(raw, np.uint8)
        if not len(images):
            raise Wrong(f"{self.path} shows no picture")
        images = images[:len(images) // (width * height) * width * height].reshape(-1, height, width)
        # ffmpeg leaves out what the edit list hides, and so does ffprobe's decoder: the lengths must agree.
        if abs(len(images) - len(times)) > 0:
            raise Wrong(f"{self.path}: ffmpeg shows {len(images)} pictures and ffprobe {len(times)}")
        squares = images[:, 4:SQUARE - 4, :BITS * SQUARE].reshape(len(images), SQUARE - 8, BITS, SQUARE)[:, :, :, 4:12].mean(axis=(1, 3))
        numbers = ((squares > 127) * (1 << np.arange(BITS))).sum(axis=1)
        clear = np.abs(squares - 127).min(axis=1) > 40
        bright = images[:, 150:].mean(axis=(1, 2)) > 127
        for time, number, is_clear, is_bright in zip(times, numbers, clear, bright):
            self.pictures.append((time, int(number) if is_clear else None))
            if is_bright and (not is_clear or number % RATE == 0):
                self.flashes.append((time, int(number) if is_clear else None))
        if patches:
            self._colours()

    def _colours(self):
        width, height = SIZE
        raw = tool("ffmpeg", "-nostdin", "-v", "error", "-i", self.path, "-map", "0:v:0", "-frames:v", "5",
                   "-vf", f"scale={width}:{height}:flags=accurate_rnd+full_chroma_int,format=rgb24", "-f", "rawvideo", "-")
        image = np.frombuffer(raw, np.uint8)[-width * height * 3:].reshape(height, width, 3).astype(float)
        left, top, wide, high = PATCH
        self.colours = [
            tuple(image[top + 6 + index // 6 * high + 8:top + 6 + index // 6 * high + 16, left + index % 6 * wide + 12:left + index % 6 * wide + 20].mean(axis=(0, 1)))
            for index in range(len(PATCHES))
        ]

    def times_of_packets(self):
        """When each picture of the file is to be shown, in the order of the file."""
        text = tool("ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pts_time", "-of", "csv=p=0", self.path, text=True)
        return [float(line.strip(",")) for line in text.split() if line.strip(",") not in ("", "N/A")]

    def worst_colour(self):
        """The largest distance of a patch from what was put in, of 255."""
        return max(abs(value - meant) for colour, patch in zip(self.colours, PATCHES) for value, meant in zip(colour, patch))

    def _hear(self, right):
        channels = next(stream for stream in self.streams if stream["codec_type"] == "audio").get("channels", 1)
        # In the file's own time: silence before the first sound and in its holes.
        raw = tool("ffmpeg", "-nostdin", "-v", "error", "-copyts", "-i", self.path, "-map", "0:a:0", "-af",
                   f"aresample={SOUND_RATE}:async=1:min_hard_comp=0.001:first_pts=0", "-f", "s16le", "-c:a", "pcm_s16le", "-ac", str(channels), "-")
        wave = np.frombuffer(raw, "<i2").reshape(-1, channels).astype(np.float32) / 32768
        self.length_of_sound = len(wave) / SOUND_RATE
        self.beeps = onsets(wave[:, 0], 1)
        if right and channels > 1:
            self.beeps_right = onsets(wave[:, 1], RIGHT)

    def pairs(self):
        """For each flash: (its time, its second's number, how much later its beep begins, in seconds; None where there is none within half a second)."""
        found = []
        for time, number in self.flashes:
            second = None if number is None else number // RATE
            # The sound of picture 0 begins with it: of the beeps of that pitch the nearest.
            near = [at - time for at, pitch in self.beeps if second is not None and pitch == second % len(PITCHES) and abs(at - time) < 0.5]
            found.append((time, second, min(near, key=abs) if near else None))
        return found


def onsets(wave, times_as_high):
    """Where beeps begin: (seconds, which pitch)."""
    window = SOUND_RATE // 100
    if len(wave) < 2 * window:
        return []
    clock = np.arange(len(wave)) / SOUND_RATE
    strength = []
    for pitch in PITCHES:
        turned = wave * np.exp(-2j * np.pi * pitch * times_as_high * clock)
        total = np.concatenate(([0], np.cumsum(turned)))
        # The mean of the 10 ms around each sample: half of the beep's strength stands where it begins.
        strength.append(np.abs(total[window:] - total[:-window]) / window)
    strength = np.array(strength)
    best = strength.argmax(axis=0)
    loudest = strength.max(axis=0)
    # Half of 0.4 / 2, what a whole beep has.
    is_on = loudest > 0.1
    edges = np.flatnonzero(np.diff(np.concatenate(([0], is_on.astype(np.int8), [0]))))
    found = []
    for begin, end in zip(edges[::2], edges[1::2]):
        if end - begin < SOUND_RATE * 0.04:
            continue
        pitch = np.bincount(best[begin:end]).argmax()
        found.append(((begin + window / 2) / SOUND_RATE, int(pitch)))
    return found


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("file")
    words.add_argument("--patches", action="store_true", help="compare the colours too")
    asked = words.parse_args()
    measured = Measured(asked.file, patches=asked.patches)
    print(f"{len(measured.pictures)} pictures, {measured.length_of_sound:.3f} s of sound, {len(measured.flashes)} flashes, {len(measured.beeps)} beeps")
    for time, second, late in measured.pairs():
        print(f"  {time:8.3f} s  second {second}  beep {'none' if late is None else f'{1000 * late:+.1f} ms'}")
    if measured.colours:
        print(f"  worst colour {measured.worst_colour():.1f} of 255")


if __name__ == "__main__":
    sys.exit(main())
