#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""framehost-ray store replaces only what a batch has made. Stand-ins of a few lines take the place of Ray, fsspec and framehost.

Runs as Tests/Engines/store_tests.py; EndToEndTests runs it too."""
import dataclasses
import json
import os
import pathlib
import shutil
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging/ray/src"))

ray = types.ModuleType("ray")
ray.remote = lambda *_, **__: lambda function: function
ray.exceptions = types.SimpleNamespace(RayTaskError=Exception, WorkerCrashedError=Exception, RayError=Exception)
sys.modules["ray"] = ray


class Folder:
    """What framehost-ray uses of fsspec's local file system, or of a store where protocol is another one."""

    def __init__(self, protocol):
        self.protocol = protocol

    def makedirs(self, path, exist_ok=False):
        os.makedirs(path, exist_ok=exist_ok)

    def info(self, path):
        status = os.stat(path)
        return {"size": status.st_size, "mtime": status.st_mtime_ns}

    def exists(self, path):
        return os.path.exists(path)

    def ls(self, path, detail=False):
        return [f"{path}/{name}" for name in sorted(os.listdir(path))]

    def cat_file(self, path):
        return pathlib.Path(path).read_bytes()

    def put_file(self, source, path):
        shutil.copy(source, path)

    def pipe_file(self, path, data, mode):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.write(data)

    def copy(self, source, path):
        shutil.copy(source, path)

    rm_file = staticmethod(os.unlink)


fsspec = types.ModuleType("fsspec")
fsspec.core = types.SimpleNamespace(url_to_fs=lambda url: (Folder(url.split("://")[0]), url.split("://")[1]))
sys.modules["fsspec"] = fsspec

from framehost_ray import stores  # noqa: E402


class StoreTests(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="framehost-store-"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "clip.mov").write_text("input")
        self.output = self.folder / "out/clip.mp4"
        self.output.parent.mkdir()
        self.made = 0
        stores._make = self.make

    def make(self, batch, chain, fs, path, name, scratch):
        self.made += 1
        file = os.path.join(scratch, name)
        pathlib.Path(file).write_text(f"made by {chain}")
        return file

    def do(self, chain="one", protocol="file"):
        batch = stores.StoreBatch(chain="c.json", inputs=[], out=f"{protocol}://{self.folder}/out")
        return stores._do_unit(dataclasses.asdict(batch), chain, f"{protocol}://{self.folder}/clip.mov", "clip.mp4")

    def test_keeps_a_file_that_no_batch_made(self):
        for protocol in ["file", "s3"]:
            self.output.write_text("the only copy of something else\n")
            result = self.do(protocol=protocol)
            self.assertEqual(result["state"], "set aside")
            self.assertIn("already exists, and no record says that a batch made it. Remove the file", result["error"])
            self.assertEqual(self.output.read_text(), "the only copy of something else\n")
            # Nothing was computed in vain.
            self.assertEqual(self.made, 0)

    def test_keeps_a_file_that_comes_while_it_works(self):
        for protocol in ["file", "s3"]:
            shutil.rmtree(self.folder / "out")
            self.output.parent.mkdir()
            make = self.make

            def intruding(*words):
                self.output.write_text("somebody's")
                return make(*words)

            stores._make = intruding
            self.assertEqual(self.do(protocol=protocol)["state"], "set aside")
            self.assertEqual(self.output.read_text(), "somebody's")
            # Once the name is free, what was made is published and not made again.
            self.output.unlink()
            stores._make = make
            made = self.made
            self.assertEqual(self.do(protocol=protocol)["state"], "present")
            self.assertEqual((self.output.read_text(), self.made), ("made by one", made))

    def test_keeps_what_was_changed_since(self):
        self.assertEqual(self.do()["state"], "made")
        self.assertEqual(self.do()["state"], "present")
        # As many bytes.
        self.output.write_text("MADE BY ONE")
        result = self.do()
        self.assertEqual(result["state"], "set aside")
        self.assertIn("has been changed since it was made. Remove the file to have it made again.", result["error"])
        self.assertEqual(self.output.read_text(), "MADE BY ONE")

    def test_replaces_what_another_chain_made(self):
        for protocol in ["file", "s3"]:
            shutil.rmtree(self.folder / "out")
            self.output.parent.mkdir()
            for chain in ["one", "three", "one"]:
                self.assertEqual(self.do(chain, protocol)["state"], "made")
                self.assertEqual(self.output.read_text(), f"made by {chain}")
            self.output.unlink()
            self.assertEqual(self.do("one", protocol)["state"], "made")

    def test_reads_records_of_earlier_versions(self):
        self.do()
        for record in self.folder.glob("out/.framehost/clip.mp4/*/done"):
            words = json.loads(record.read_text())
            del words["sha256"]
            record.write_text(json.dumps(words))
        self.assertEqual(self.do()["state"], "present")


if __name__ == "__main__":
    unittest.main()
