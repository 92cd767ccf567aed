# SPDX-License-Identifier: Apache-2.0
"""A service manager's side of sd_notify(3), and chains that can be made to stand still."""
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Tools"))
from exit_status import without_losses  # noqa: E402

HEADER = b"YUV4MPEG2 W64 H48 F25:1 C420jpeg\n"
FRAME = b"FRAME\n" + bytes(64 * 48 * 3 // 2)
# socket(7), 64-bit Linux: the kernel says when each datagram was sent. Python has no name for it.
SO_TIMESTAMPNS = 35


class Manager:
    """The socket at which a service says how it is."""

    def __init__(self, folder, abstract=False):
        self.name = f"@framehost-test-{os.getpid()}-{time.monotonic_ns()}" if abstract else os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + self.name[1:] if abstract else self.name)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        # (when it was sent by time.time(), line), as they came.
        self.lines = []

    def close(self):
        self.socket.close()

    def take(self, seconds):
        """What comes in so many seconds."""
        end = time.monotonic() + seconds
        new = []
        while True:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.socket], [], [], left)[0]:
                break
            text, details, _, _ = self.socket.recvmsg(65536, 64)
            sent = next(struct.unpack("@ll", data) for level, kind, data in details if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS))
            new += [(sent[0] + sent[1] / 1e9, line) for line in text.decode().split("\n") if line]
        self.lines += new
        return [line for _, line in new]

    def wait(self, line, seconds=60):
        """Until `line` comes, or a line that begins so; it, or None."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for found in self.take(0.05):
                if found.startswith(line):
                    return found
        return None

    def soon(self, holds, seconds=60):
        """Takes what comes until it holds; whether it does."""
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                return False
            self.take(0.05)
        return True

    def status(self):
        found = [line[7:] for _, line in self.lines if line.startswith("STATUS=")]
        return found[-1] if found else ""

    def names(self):
        """Without signs of life and texts, which come when they will."""
        return [line for _, line in self.lines if not line.startswith(("WATCHDOG=", "STATUS=", "MONOTONIC_USEC=", "EXTEND_"))]


class Service:
    """The program as a service manager runs it."""

    def __init__(self, program, chain, manager=None, watchdog=None, environment=None):
        variables = dict(os.environ)
        if manager:
            variables["NOTIFY_SOCKET"] = manager.name
        if watchdog:
            variables["WATCHDOG_USEC"] = str(int(watchdog * 1e6))
        variables.update(environment or {})
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [program, "run", chain], env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors)

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, seconds=60):
        """Its status, after SIGTERM where it runs still; 0 also where all that went wrong is that a live chain lost frames: the machine is busy."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        return without_losses(status, self.said())

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.errors.close()

    def said(self):
        # The program writes where this descriptor stands, so that must not move.
        file = self.errors.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")


class Pictures:
    """Writes raw video into a named pipe, and holds still when told."""

    def __init__(self, path, rate=25, rests=False):
        os.mkfifo(path)
        self.path = path
        self.flows = threading.Event()
        if not rests:
            self.flows.set()
        self.ends = threading.Event()
        self.pause = 1 / rate
        self.thread = threading.Thread(target=self.write, daemon=True)
        self.thread.start()

    def write(self):
        file = None
        while file is None and not self.ends.is_set():
            try:
                file = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                time.sleep(0.02)
        if file is None:
            return
        os.set_blocking(file, True)
        try:
            os.write(file, HEADER)
            while not self.ends.is_set():
                if self.flows.wait(0.05):
                    os.write(file, FRAME)
                    time.sleep(self.pause)
        except BrokenPipeError:
            pass
        finally:
            os.close(file)

    def close(self):
        self.ends.set()
        self.thread.join(2)
