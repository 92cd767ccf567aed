# SPDX-License-Identifier: Apache-2.0
"""`framehost.open` with the program of `$FRAMEHOST`."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import framehost
from framehost import _open

PATTERN = {"use": "test-source", "pattern": "solid", "color": "#fff", "size": "64x48"}


def is_there(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@unittest.skipUnless(os.environ.get("FRAMEHOST") or os.environ.get("CI"), "without $FRAMEHOST")
class OpenTests(unittest.TestCase):
    def test_framesWaitForAReaderOfAFile(self):
        with framehost.open({"stages": [{**PATTERN, "frames": 40}]}, latest=False, timeout=60) as frames:
            numbers = []
            for frame in frames:
                numbers.append(frame.number)
                time.sleep(0.01)
        self.assertEqual(numbers, list(range(40)))

    def test_theNewestFrameIsNeverOld(self):
        live = {"stages": [{**PATTERN, "rate": 50, "live": True}]}
        ages, numbers = [], []
        with framehost.open(live, format="gray8", timeout=60) as frames:
            for frame in frames:
                ages.append((time.monotonic_ns() - frame.captured_at) / 1e9)
                numbers.append(frame.number)
                self.assertEqual(frame.pixels.shape, (48, 64))
                time.sleep(0.1)
                if len(ages) == 20:
                    break
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertGreater(numbers[-1] - numbers[0], 50)
        # Of a queue that grows, the last would be a second old and more.
        self.assertLess(sorted(ages[10:])[5], 0.5)

    def test_framesOfAStageOfAChainFile(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "chain.json"
            path.write_text("""{ // A comment with "quotes".
              "stages": [
                { "id": "white", "use": "test-source", "pattern": "solid", "color": "#fff", "size": "64x48", "frames": 5 },
                { "id": "file", "use": "y4m-sink", "path": "out.y4m" } ] /* the end */ }""", encoding="utf-8")
            with framehost.open(path, at="white", latest=False, timeout=60) as frames:
                means = [frame.pixels[..., :3].mean() for frame in frames]
            self.assertEqual(means, [255.0] * 5)
            self.assertEqual(sorted(os.listdir(folder)), ["chain.json", "out.y4m"])

    def test_faultsAreRaisedWithTheirPlace(self):
        with self.assertRaises(framehost.Error) as caught:
            with framehost.open("/nowhere.mp4", timeout=60) as frames:
                frames.read()
        self.assertIn("'/nowhere.mp4' does not exist", str(caught.exception))
        self.assertNotIn(".framehost-open", str(caught.exception))
        with framehost.open({"stages": [{**PATTERN, "live": True, "rate": 0.1}]}, timeout=1) as frames:
            frames.read()
            with self.assertRaises(TimeoutError):
                frames.read()

    def test_nothingIsLeftWhoeverEnds(self):
        drops = ("import framehost\nclass Drops(framehost.Filter):\n 'Drops.'\n formats = ['bgra']\n"
                 " def process(self, frame):\n  return framehost.DROP if frame.number > 5 else None\n")
        text = f"import framehost, time\nr = framehost.open({ {'stages': [{**PATTERN, 'live': True}, {'use': 'python:drops.py'}]} })\n"
        text += "r.read()\ntime.sleep(1)\nprint(r._process.pid, flush=True)\ntime.sleep(60)\n"
        for way in signal.SIGKILL, signal.SIGINT:
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "drops.py").write_text(drops, encoding="utf-8")
                reader = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder,
                                          env={**os.environ, "PYTHONPATH": str(pathlib.Path(framehost.__file__).parents[1])})
                program = int(reader.stdout.readline())
                self.assertTrue(is_there(program))
                reader.send_signal(way)
                reader.wait(60)
                reader.stdout.close()
                end = time.monotonic() + 60
                while is_there(program) and time.monotonic() < end:
                    time.sleep(0.1)
                self.assertFalse(is_there(program), way)
                self.assertEqual(os.listdir(folder), ["drops.py"])

    def test_framesComeOnWhenTheirProcessFalls(self):
        with framehost.open({"stages": [{**PATTERN, "rate": 50, "live": True}]}, timeout=30) as frames:
            for _ in range(3):
                before = frames.read().number
                fallen = self.children(frames._process.pid)
                self.assertEqual(len(fallen), 1)
                os.kill(fallen[0], signal.SIGKILL)
                self.assertGreater(frames.read().number, before)
                time.sleep(1)

    def children(self, pid):
        found = []
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{task}/children", encoding="utf-8") as file:
                    found += [int(each) for each in file.read().split()]
            except OSError:
                # A thread that has ended since.
                pass
        return found

    def test_commentsAreLeftOutAndTextsAreNot(self):
        text = '{"a": "b // c", /* d */ "e": "\\"// f", // g\n}'
        self.assertEqual(json.loads(_open.without_comments(text)), {"a": "b // c", "e": '"// f'})


if __name__ == "__main__":
    unittest.main()
