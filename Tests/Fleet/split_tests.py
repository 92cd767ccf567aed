# SPDX-License-Identifier: Apache-2.0
"""A chain on two machines: the two examples, each in a network of its own, and the cable between them is pulled.

Each picture has the moment of its capture painted in, so the recordings themselves say which pictures are missing: no counter of framehost is
believed before it agrees with them.
"""
import json
import os
import re
import signal
import subprocess
import time
import unittest

from place import HOST, ROOT, Case, without_comments, without_losses

RATE, WIDTH, HEIGHT = 25, 640, 360
# Cuts of the cable, seconds: TCP carries on after the first, the other side has given the stream up in the second.
SHORT, LONG = 2, 15
CAMERA, ARCHIVE = "10.77.0.1", "10.77.0.2"


def run(*command):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, check=True).stdout


def crc8(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 7) & 0xFF if crc & 0x80 else crc << 1 & 0xFF
    return crc


def stamps(file):
    """Moments of capture of a recording's pictures, seconds; None where the strip cannot be read."""
    rows = 3
    raw = subprocess.run(
        ["ffmpeg", "-nostdin", "-v", "error", "-i", file, "-vf", f"extractplanes=y,crop={WIDTH}:{rows}:0:{HEIGHT // 48 - 1}", "-fps_mode", "passthrough",
         "-f", "rawvideo", "-"], capture_output=True, timeout=60, check=True).stdout
    found = []
    for at in range(0, len(raw), WIDTH * rows):
        picture, word = raw[at:at + WIDTH * rows], 0
        for cell in range(64):
            x = (2 * cell + 1) * WIDTH // 128
            mean = sum(picture[row * WIDTH + x + side] for row in range(rows) for side in (-1, 0, 1)) / 9
            word = word << 1 | (mean >= 126)
        data = word.to_bytes(8, "big")
        found.append(int.from_bytes(data[1:7], "big") / 1e6 if data[0] == 0xB2 and crc8(data[1:7]) == data[7] else None)
    return found


class SplitTests(Case):
    def setUp(self):
        super().setUp()
        run("ip", "link", "set", "lo", "up")
        # The other machine: a network namespace that lasts as long as this process.
        other = self.start("unshare", "-n", "sleep", "600", log="other.log")
        mine = os.readlink("/proc/self/ns/net")
        self.soon(lambda: os.readlink(f"/proc/{other.pid}/ns/net") != mine, 60)
        self.there = ("nsenter", "-t", str(other.pid), "-n")
        run("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", other.pid)
        self.addCleanup(lambda: subprocess.run(["ip", "link", "delete", "cable"], check=False, capture_output=True))
        for inside, address in ((), CAMERA), (self.there, ARCHIVE):
            run(*inside, "ip", "link", "set", "lo", "up")
            run(*inside, "ip", "address", "add", f"{address}/24", "dev", "cable")
            run(*inside, "ip", "link", "set", "cable", "up")

    def figures(self, port, inside=()):
        return json.loads(run(*inside, HOST, "ctl", f"127.0.0.1:{port}", "figures"))

    def of_stage(self, port, stage, inside=()):
        return next(each for each in self.figures(port, inside)["stages"] if each["id"] == stage)

    def recorded(self):
        return self.of_stage(8081, "archive", self.there)["framesIn"]

    def cut(self, seconds):
        """When the cable was pulled, not before and not after; and how long it was away, at most."""
        before = time.clock_gettime(time.CLOCK_MONOTONIC)
        run("ip", "link", "set", "cable", "down")
        after = time.clock_gettime(time.CLOCK_MONOTONIC)
        time.sleep(seconds)
        run("ip", "link", "set", "cable", "up")
        return before, after, time.clock_gettime(time.CLOCK_MONOTONIC) - before

    def goes_on(self, seconds=60):
        before = self.recorded()
        self.soon(lambda: self.recorded() > before + RATE, seconds, lambda: self.said("archive.log"))

    def events(self, log, name=None):
        """What a run has logged, a member of JSON each; what a library prints by itself is left out."""
        lines = [json.loads(line) for line in self.said(log).splitlines() if line.startswith("{")]
        return [line for line in lines if name is None or line.get("event") == name]

    def done(self, log):
        """Frames, delivered and dropped ones, as the run said at its end."""
        found = [re.match(r"(?:Done|Failed): (\d+) frames .* (\d+) delivered, (\d+) dropped", line["message"]) for line in self.events(log)]
        return next(tuple(map(int, match.groups())) for match in found if match)

    def test_aShortCutLosesNothingAndALongOneWhatItsFiguresSay(self):
        for name in "camera", "archive":
            chain = without_comments(ROOT / f"examples/split-{name}.json")
            (self.folder / f"{name}.json").write_text(json.dumps(chain), encoding="utf-8")
        (self.folder / "out").mkdir()
        as_json = ("--log-format", "json")
        camera = self.start(HOST, "camera.json", *as_json, log="camera.log")
        self.soon(lambda: self.events("camera.log", "serving"), 60, lambda: self.said("camera.log"))
        archive = self.start(HOST, "archive.json", *as_json, log="archive.log", inside=self.there, env={**os.environ, "CAMERA": CAMERA})
        self.soon(lambda: self.events("archive.log", "segment-did-start"), 60, lambda: self.said("archive.log"))
        self.goes_on()

        # On a busy machine a short cut can become a longer one.
        while self.cut(SHORT)[2] > 4:
            self.goes_on()
        self.goes_on()
        self.assertEqual(self.of_stage(8081, "yard", self.there)["figures"]["losses"], 0, self.said("archive.log"))

        earliest, latest, lasted = self.cut(LONG)
        self.goes_on()
        yard = self.of_stage(8081, "yard", self.there)["figures"]
        self.assertEqual((yard["losses"], yard["state"]), (1, "streaming"), self.said("archive.log"))
        self.goes_on()

        # The recording is ended first, so that its last picture is none that was lost on the way.
        for process, log in (archive, "archive.log"), (camera, "camera.log"):
            process.send_signal(signal.SIGINT)
            status = process.wait(60)
            self.assertEqual(without_losses(status, self.said(log)), 0, self.said(log))

        files = sorted((self.folder / "out").iterdir(), key=lambda file: file.name)
        captured = [stamp for file in files for stamp in stamps(file)]
        self.assertNotIn(None, captured)
        self.assertEqual(captured, sorted(set(captured)), "each picture once, in its order")
        # The gap that holds the cut. Others are a busy camera side's, and count below.
        wide = [index for index in range(1, len(captured)) if captured[index - 1] < latest + LONG / 2 < captured[index]]
        self.assertEqual(len(wide), 1, (captured[0], latest, captured[-1]))
        before, after = range(wide[0]), range(wide[0], len(captured))
        self.assertGreater(min(len(before), len(after)), 2 * RATE)

        def missing(earlier, later):
            """How many are missing between two stretches. A picture may be late, on a busy machine, but the next ones make up for it: the least
            late one of a stretch is in time, and behind a missing picture all are a place further on."""
            def begin(stretch):
                return min(captured[index] - index / RATE for index in stretch)

            return round((begin(later) - begin(earlier)) * RATE)

        lost = missing(before[-RATE:], after[:RATE])
        elsewhere = missing(before[:RATE], before[-RATE:]) + missing(after[:RATE], after[-RATE:])
        # It lasts from the cut, at least as long, and is over soon after: the other side tries each second.
        gap = captured[wide[0]] - captured[wide[0] - 1]
        self.assertTrue(earliest - 1.5 <= captured[wide[0] - 1] <= latest + 1.5, (earliest, captured[wide[0] - 1], latest))
        self.assertTrue(LONG - 1 < gap < lasted + 8, (gap, lasted))

        # Both sides' counts agree with the pictures.
        frames, delivered, dropped = self.done("archive.log")
        self.assertEqual((frames, delivered, dropped), (len(captured), len(captured), 0), self.said("archive.log"))
        given, _, too_late = self.done("camera.log")
        missed = sum(event["missed"] for event in self.events("camera.log", "late"))
        self.assertGreaterEqual(given + missed, len(captured) + lost)
        # Nothing is missing elsewhere, but for what a busy machine's camera side says that it dropped itself.
        self.assertTrue(0 <= elsewhere <= too_late + missed, f"{elsewhere} missing, {too_late} dropped, {missed} missed")
        self.assertAlmostEqual(lost / RATE, gap, delta=1)
        # The gap is one of the recording's times as well. A stream's first picture has the time at which it came, which on a busy machine is
        # seconds after its capture.
        ended = self.events("archive.log", "recording-did-stop")[-1]
        self.assertEqual(ended["frames"], len(captured))
        self.assertAlmostEqual(ended["seconds"], captured[-1] - captured[0], delta=LONG / 3)
        # What is lost is said: why, and for how long.
        self.assertRegex(self.events("archive.log", "stream-lost")[0]["reason"], "no video for|ended|timed out|route")
        away = self.events("archive.log", "stream-back")[-1]["awayMs"] / 1000
        self.assertLess(away, gap)
        self.assertGreater(away, 1)
        print(
            f"\nsplit: a cut of {SHORT} s lost nothing; one of {LONG} s lost {lost} pictures, {gap:.1f} s (the stream counted as lost for {away:.1f} s of it); "
            f"{len(captured)} recorded of {given} captured, {elsewhere} missing elsewhere ({too_late} dropped, {missed} missed by the camera's side)")


if __name__ == "__main__":
    unittest.main(verbosity=2)
