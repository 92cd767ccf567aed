# SPDX-License-Identifier: Apache-2.0
"""The package without framehost: what a file says of itself, and how faults read."""
import os
import tempfile
import textwrap
import unittest
from typing import Optional

import framehost
import framehost.testing
from framehost import stage


class Every(framehost.Filter):
    """Has one of everything.

    And more to say.
    """

    formats = ["bgra"]
    modifies = True
    longest_call = 0.25
    events = [framehost.Event("seen", "Something was seen.", [framehost.member("count", int, "How many.")])]

    @framehost.options
    class Options:
        amount: float = framehost.option(1, "How much.", minimum=0, maximum=2, unit="x", live=True)
        count: Optional[int] = framehost.option(None, "How many.")
        way: str = framehost.option("up", "Which way.", choices=["up", "down"])

    @framehost.command("Forgets.", framehost.member("all", bool, "Everything.", required=True))
    def forget_it(self, all):
        self.forgotten = all

    def process(self, frame):
        frame.pixels[..., 0] = 9


class PackageTests(unittest.TestCase):
    def load(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "it.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return stage.load(path)

    def test_aClassSaysWhatItIs(self):
        words = stage.describe(Every)
        self.assertEqual(words["summary"], "Has one of everything.")
        self.assertEqual((words["formats"], words["modifies"], words["longestCallMs"]), (["bgra"], True, 250))
        amount, count, way = words["options"]
        self.assertEqual((amount["type"], amount["default"], amount["minimum"], amount["live"]), ("number", 1, 0, True))
        self.assertEqual((count["type"], count["default"]), ("integer", None))
        self.assertEqual((way["type"], way["choices"]), ("choice", ["up", "down"]))
        self.assertEqual(words["commands"][0]["name"], "forget-it")
        self.assertEqual(words["events"][0]["members"][0]["type"], "number")

    def test_optionsKeepTheirTypes(self):
        options = stage.Stage.typed(Every.Options(), {"amount": 2, "count": 3})
        self.assertIsInstance(options.amount, float)
        self.assertEqual((options.count, options.way), (3, "up"))

    def test_aFilterIsTriedWithoutTheProgram(self):
        filter = framehost.testing.make(Every, "bgra", 5, 3, amount=0.5)
        frame = framehost.testing.frame("bgra", 5, 3, fill=200)
        filter.process(frame)
        self.assertEqual(frame.pixels[2, 4].tolist(), [9, 200, 200, 200])
        filter.post("seen", "One.", count=1)
        self.assertEqual(filter.posted[0]["details"], {"count": 1})

    def test_whatCannotBeIsRefused(self):
        for text, what in [
            ("import framehost", "has no class"),
            ("import framehost\nclass A(framehost.Filter):\n 'a'\nclass B(framehost.Filter):\n 'b'", "has 2 filters"),
        ]:
            with self.assertRaises(framehost.Refusal) as caught:
                self.load(text)
            self.assertIn(what, caught.exception.what)
        for body, what in [
            ("pass", "no doc string"), ("'a'\n Options = int", "not a dataclass"),
            ("'a'\n @framehost.options\n class Options:\n  x: int = 3", "says nothing of itself"),
            ("'a'", "no method process"),
            ("'a'\n @framehost.options\n class Options:\n  x: list = framehost.option(None, 'x')", "has the type"),
        ]:
            with self.assertRaises(framehost.Refusal) as caught:
                stage.describe(self.load("import framehost\nclass A(framehost.Filter):\n " + body))
            self.assertIn(what, caught.exception.what)

    def test_ofAFamilyTheLastClassCounts(self):
        kind = self.load("import framehost\nclass Base(framehost.Filter):\n 'base'\nclass Leaf(Base):\n 'leaf'")
        self.assertEqual(kind.__name__, "Leaf")

    def test_aFaultNamesTheLineOfTheFile(self):
        kind = self.load("""
            import framehost, json

            class Wrong(framehost.Filter):
                "Is wrong."

                def process(self, frame):
                    json.loads("{")
        """)
        try:
            kind().process(None)
        except ValueError as error:
            fault = stage.fault(error, kind.process.__code__.co_filename)["faults"][0]
        self.assertTrue(fault["what"].startswith("it.py:8: JSONDecodeError: "), fault)
        self.assertIn('json.loads("{")', fault["cause"])

    def test_whatIsSaidIsJSON(self):
        import numpy
        from framehost import _link
        said = _link.encoded({"a": float("nan"), "b": numpy.float32(0.5), "c": [numpy.int64(3), float("inf")], "d": numpy.arange(2)})
        self.assertEqual(_link.encoded({"a": "caf\udce9"}), b'{"a": "caf?"}')
        deep = []
        for _ in range(60):
            deep = [deep]
        with self.assertRaises(ValueError):
            _link.encoded(deep)
        with self.assertRaises(ValueError):
            framehost.testing.make(Every, "bgra", 4, 4).post("unheard-of", "No.")
        self.assertEqual(said, b'{"a": null, "b": 0.5, "c": [3, null], "d": [0, 1]}')

    def test_planesOfSeveralNeedToBeNamed(self):
        with self.assertRaises(TypeError):
            framehost.testing.frame("i420", 4, 4).pixels


if __name__ == "__main__":
    unittest.main()
