# SPDX-License-Identifier: Apache-2.0
"""`framehost.open`: the frames of a camera, a stream, a file or a chain as numpy arrays."""
from __future__ import annotations

import json
import mmap
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from typing import Any, Iterator, List, Optional, Union

import numpy

from framehost import Format, Frame

TAP = str(pathlib.Path(__file__).with_name("_tap.py"))


class Error(Exception):
    """The chain could not be run, or ended with a fault: what framehost said."""


def program() -> str:
    """The program `framehost`: `$FRAMEHOST`, else the one of `$PATH`."""
    found = os.environ.get("FRAMEHOST") or shutil.which("framehost")
    if not found or not os.access(found, os.X_OK):
        raise Error("the program framehost was not found: put its folder into $PATH, or its path into $FRAMEHOST")
    return found


def without_comments(text: str) -> str:
    """Chain files may have comments, and a comma behind the last member, which JSON has not."""
    parts, index, is_text = [], 0, False
    while index < len(text):
        if is_text:
            if text[index] == "\\":
                parts.append(text[index:index + 2])
                index += 2
                continue
            is_text = text[index] != '"'
        elif text[index] == '"':
            is_text = True
        elif text.startswith("//", index):
            index = text.find("\n", index)
            if index < 0:
                break
        elif text.startswith("/*", index):
            end = text.find("*/", index + 2)
            index = len(text) if end < 0 else end + 2
            continue
        if not is_text and text[index] in "]}":
            while parts and (parts[-1].isspace() or parts[-1] == ","):
                if parts.pop() == ",":
                    break
        parts.append(text[index])
        index += 1
    return "".join(parts)


def source(address: str) -> dict:
    """The stage that gives the pictures of an address, a device or a file."""
    if "://" in address:
        return {"use": "network-source", "url": address}
    if address.startswith("/dev/video"):
        return {"use": "v4l2-source", "device": address}
    return {"use": "file-source", "path": os.path.abspath(address)}


def is_live(stage: dict) -> bool:
    """Whether a stage gives frames when they come, and not when they are wanted."""
    return stage.get("use") in ("network-source", "v4l2-source") or stage.get("live") is True or stage.get("pace") == "realtime"


class Reader:
    """Frames of a running chain: iterate over it, in a `with` block."""

    format: Format
    """What all frames have in common; known from the first frame on."""

    def __init__(self, what: Union[str, os.PathLike, dict], *, latest: Optional[bool] = None, format: str = "bgra", at: Optional[str] = None,
                 timeout: Optional[float] = None) -> None:
        name = what if isinstance(what, dict) else os.fspath(what)
        is_chain = isinstance(name, dict) or name.endswith(".json")
        chain: dict = name if isinstance(name, dict) else {}
        folder = os.getcwd()
        self._name = name if isinstance(name, str) else "the chain"
        if isinstance(name, str):
            if is_chain:
                folder = os.path.dirname(os.path.abspath(name))
                try:
                    chain = json.loads(without_comments(pathlib.Path(name).read_text(encoding="utf-8")))
                except ValueError as error:
                    raise Error(f"{name} is not JSON: {error}") from None
            else:
                chain = {"stages": [{"id": "source", **source(name)}]}
        if latest is None:
            latest = any(is_live(stage) for stage in chain.get("stages", []))
        self.timeout = timeout
        self._condition = threading.Condition()
        self._waiting: List[dict] = []
        self._is_over, self._held = False, -1
        self._latest = latest
        self._connection: Optional[socket.socket] = None
        self._planes: List[List[numpy.ndarray]] = []
        self._place = tempfile.TemporaryDirectory(prefix="framehost-")
        self._start(chain, folder, at, format, latest)

    def _start(self, chain: dict, folder: str, at: Optional[str], format: str, latest: bool) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = os.path.join(self._place.name, "frames")
        self._listener.bind(path)
        self._listener.listen(1)
        tap: dict = {"id": "to-python", "use": f"python:{TAP}", "to": path, "waits": not latest}
        # A frame waits as long as the reader thinks; a reader that is only slow must not look like a process that hangs.
        tap["isolate"] = {"onDeath": "drop", **({} if latest else {"deadlineMs": 3_600_000})}
        wanted = {"id": "to-python-format", "use": "convert", "format": format, **({"from": at} if at is not None else {})}
        made = {**chain, "stages": [*chain.get("stages", []), wanted, tap, {"id": "to-python-end", "use": "null-sink"}]}
        # In the chain file's folder, from which its paths go.
        handle, self._file = tempfile.mkstemp(prefix=".framehost-open-", suffix=".json", dir=folder if os.access(folder, os.W_OK) else None)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(made, file)
        self._words = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen([program(), self._file, "--quiet"], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                             stderr=self._words)
        except BaseException:
            os.unlink(self._file)
            raise
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        """Takes what the chain hands over. Of frames that nobody has looked at yet, only the newest waits if `latest`."""
        try:
            self._listener.settimeout(0.2)
            # Again where the process that hands them over has ended, and another one has taken its place.
            while self._accept():
                self._take_frames()
        except OSError:
            pass
        finally:
            with self._condition:
                self._is_over = True
                self._condition.notify_all()

    def _accept(self) -> bool:
        """False when the chain has ended."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                if self._process is None or self._process.poll() is not None:
                    return False
                continue
            with self._condition:
                if self._connection is not None:
                    self._connection.close()
                connection.settimeout(None)
                self._connection, self._waiting, self._held = connection, [], -1
            # It has been read.
            self._remove_file()
            return True

    def _take_frames(self) -> None:
        connection = self._connection
        while connection is not None:
            try:
                words = self._receive(connection)
            except ConnectionResetError:
                return
            if words is None:
                return
            with self._condition:
                if self._latest:
                    self._give_back([each["slot"] for each in self._waiting])
                    self._waiting = []
                # Those of the process that has sent it: another one has memory of its own.
                self._waiting.append({**words, "planes": self._planes[words["slot"]]})
                self._condition.notify_all()

    def _remove_file(self) -> None:
        try:
            os.unlink(self._file)
        except OSError:
            pass

    def _receive(self, connection: socket.socket) -> Optional[dict]:
        try:
            data, files, _, _ = socket.recv_fds(connection, 65536, 1)
        except ConnectionResetError:
            # Said once, where the other side has ended without hearing our last words. What it said before is still there.
            data, files, _, _ = socket.recv_fds(connection, 65536, 1)
        if not data:
            return None
        words = json.loads(data)
        if not files:
            return words
        memory = mmap.mmap(files[0], words["bytes"] * words["slots"])
        os.close(files[0])
        self._planes = [[numpy.ndarray(each["shape"], each["type"], memory, slot * words["bytes"] + each["offset"]) for each in words["planes"]]
                        for slot in range(words["slots"])]
        self.format = Format(words["pixelFormat"], words["width"], words["height"], words["frameRate"])
        return self._receive(connection)

    def _give_back(self, slots: List[int]) -> None:
        slots = [slot for slot in slots if slot >= 0]
        if slots and self._connection is not None:
            try:
                self._connection.send(json.dumps(slots).encode())
            except OSError:
                pass

    def read(self) -> Optional[Frame]:
        """The next frame: the newest one if `latest`, waiting for it if it was read already. None at the end.

        Its arrays are another frame after the next call: copy what you keep. Raises `Error` if the chain ended with a fault, and
        TimeoutError after `timeout` seconds without a frame.
        """
        end = None if self.timeout is None else time.monotonic() + self.timeout
        with self._condition:
            self._give_back([self._held])
            self._held = -1
            while not self._waiting and not self._is_over:
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(f"no frame came within {self.timeout} s. {self._said()}".strip())
                self._condition.wait(left)
            if not self._waiting:
                return self._end()
            words = self._waiting.pop(0)
            self._held = words["slot"]
            frame = Frame()
            frame.planes = words["planes"]
        frame.pts, frame.duration, frame.captured_at, frame.number = words["pts"], words["duration"], words["capturedAt"], words["number"]
        frame.is_discontinuity, frame.is_substitute = words["isDiscontinuity"], words["isSubstitute"]
        return frame

    def _said(self) -> str:
        self._words.seek(0)
        return self._words.read().decode(errors="replace").strip().replace(self._file, self._name)

    def _end(self) -> None:
        if self._process is None:
            return None
        status = self._process.wait()
        said = self._said()
        self.close()
        if status != 0:
            raise Error(said or f"framehost ended with status {status}")
        return None

    def __iter__(self) -> Iterator[Frame]:
        while True:
            frame = self.read()
            if frame is None:
                return
            yield frame

    def close(self) -> None:
        """Ends the chain. Its recorders and encoders end their files."""
        process: Any = self._process
        if process is None:
            return
        self._process = None  # type: ignore
        if self._connection is not None:
            try:
                self._connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            self._connection.close()
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._listener.close()
        self._words.close()
        self._remove_file()
        self._place.cleanup()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            self.close()
