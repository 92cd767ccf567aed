# SPDX-License-Identifier: Apache-2.0
"""The last stage of a chain that `framehost.open` runs: hands its frames to the program that reads them."""
from __future__ import annotations

import array
import json
import mmap
import os
import select
import signal
import socket
import threading

import framehost

SLOTS = 4
"""One that the reader looks at, one that waits for it, one that is written, and one to spare."""


class Tap(framehost.Filter):
    """Hands frames to a Python program."""

    formats = ["bgra", "rgb24", "gray8", "i420", "nv12", "yuyv"]

    @framehost.options
    class Options:
        to: str = framehost.option("", "Path of the reader's socket.")
        waits: bool = framehost.option(False, "Whether frames wait for the reader.")

    def start(self) -> None:
        self.memory, self.planes, self.bytes, self.free = None, [], 0, []
        self.host, self.once = os.getppid(), threading.Lock()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.socket.connect(self.options.to)
        except OSError:
            return self.end()
        self.free = list(range(SLOTS))
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        """The reader may go while no frame comes."""
        poll = select.poll()
        poll.register(self.socket, select.POLLHUP)
        while not any(events & select.POLLHUP for _, events in poll.poll()):
            pass
        self.end()

    def end(self) -> None:
        """The reader has gone: so does the chain, which it has started."""
        self.free = []
        # Once: a second signal would have the host end without its files. Not to whoever has adopted this process.
        if self.once.acquire(blocking=False) and os.getppid() == self.host:
            os.kill(self.host, signal.SIGINT)

    def make(self, frame: framehost.Frame) -> None:
        """Makes the memory for frames, and tells the reader of it."""
        planes = []
        for plane in frame.planes:
            planes.append({"offset": self.bytes, "shape": list(plane.shape), "type": plane.dtype.str})
            self.bytes += (plane.nbytes + 63) // 64 * 64
        file = os.memfd_create("framehost frames", os.MFD_CLOEXEC)
        os.ftruncate(file, self.bytes * SLOTS)
        self.memory = mmap.mmap(file, self.bytes * SLOTS)
        self.planes = [[framehost.numpy.ndarray(each["shape"], each["type"], self.memory, slot * self.bytes + each["offset"]) for each in planes]
                       for slot in range(SLOTS)]
        format = self.format
        words = {"pixelFormat": format.pixel_format, "width": format.width, "height": format.height, "frameRate": format.frame_rate,
                 "bytes": self.bytes, "slots": SLOTS, "planes": planes}
        self.socket.sendmsg([json.dumps(words).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))])
        os.close(file)

    def take_back(self) -> None:
        """Slots that the reader does not look at any more. Waits for one if frames wait."""
        while True:
            waits = self.options.waits and not self.free
            try:
                said = self.socket.recv(64, 0 if waits else socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            if not said:
                return self.end()
            self.free.extend(json.loads(said))

    def process(self, frame: framehost.Frame) -> object:
        try:
            if self.memory is None and self.free:
                self.make(frame)
            self.take_back()
            if not self.free:
                return None
            slot = self.free.pop(0)
            for target, plane in zip(self.planes[slot], frame.planes):
                target[...] = plane
            words = {"slot": slot, "pts": frame.pts, "duration": frame.duration, "capturedAt": frame.captured_at, "number": frame.number,
                     "isDiscontinuity": frame.is_discontinuity, "isSubstitute": frame.is_substitute}
            self.socket.send(json.dumps(words).encode())
        except (BrokenPipeError, ConnectionResetError):
            self.end()
        return None
