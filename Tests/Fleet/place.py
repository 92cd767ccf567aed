# SPDX-License-Identifier: Apache-2.0
"""Where the tests of a fleet run: in a network and a file system of their own, with programs that are ended with them."""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Tools"))
from exit_status import without_losses  # noqa: E402, F401: for the tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOST = pathlib.Path(os.environ.get("FRAMEHOST", ROOT / ".build/release/framehost")).resolve()
MONITORING = ROOT / "packaging/monitoring"
CI = os.environ.get("CI") == "true"


def without_comments(path):
    """A chain file of examples/ as JSON: its comments have lines of their own."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    return json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))


class Case(unittest.TestCase):
    """A test with a folder, and programs that do not outlive it."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="framehost-fleet-")))
        self.running = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()

    def start(self, *command, log, inside=(), **how):
        """A program with its output in a file of the test's folder; `inside` puts it into another namespace."""
        with open(self.folder / log, "ab") as file:
            process = subprocess.Popen(
                [*map(str, (*inside, *command))], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, cwd=how.pop("cwd", self.folder), **how)
        self.running.append(process)
        return process

    def said(self, log):
        return (self.folder / log).read_text(encoding="utf-8", errors="replace")

    def soon(self, holds, seconds, why=lambda: ""):
        """Waits until it holds; what it gave."""
        end = time.monotonic() + seconds
        while True:
            result = holds()
            if result:
                return result
            if time.monotonic() > end:
                self.fail(f"not within {seconds} s: {why()}")
            time.sleep(0.1)


def get(address, path, token=None):
    """Status and text; None where nobody answers."""
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError:
        return None
    finally:
        connection.close()
