# SPDX-License-Identifier: Apache-2.0
"""The stage's side of stage_link.h, version 1: the socket, the shared memory, and the wait for calls."""
from __future__ import annotations

import ctypes
import json
import math
import mmap
import platform
import socket
import threading
from typing import Any, Optional

VERSION = 1
SOCKET, CONTROL, BUFFERS = 3, 4, 5
TEXT, MESSAGE = 16384, 65536
FRAME, SET, COMMAND, RELEASE_CACHES, STOP = 1, 2, 3, 4, 5
FORWARD, DROP, DONE, FAILED, FAULT = 1, 2, 3, 4, 5
DISCONTINUITY, SUBSTITUTE = 1, 4


class Item(ctypes.Structure):
    _fields_ = [("pts", ctypes.c_int64), ("duration", ctypes.c_int64), ("captured_at", ctypes.c_int64), ("number", ctypes.c_uint64),
                ("metadata", ctypes.c_uint64), ("flags", ctypes.c_uint32), ("orientation", ctypes.c_uint32)]


class Call(ctypes.Structure):
    _fields_ = [("op", ctypes.c_uint32), ("buffer", ctypes.c_uint32), ("text_bytes", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("item", Item)]


class Reply(ctypes.Structure):
    _fields_ = [("verdict", ctypes.c_uint32), ("reason", ctypes.c_uint32), ("text_bytes", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("held", ctypes.c_uint64), ("item", Item)]


class Plane(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("stride", ctypes.c_uint32), ("rows", ctypes.c_uint32), ("row_bytes", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]


class Head(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("slots", ctypes.c_uint32), ("buffers", ctypes.c_uint32), ("starts", ctypes.c_uint32),
                ("buffer_bytes", ctypes.c_uint64), ("pixel_format", ctypes.c_char * 16), ("width", ctypes.c_uint32),
                ("height", ctypes.c_uint32), ("planes", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("plane", Plane * 4)]


# One of eight slots, whose parts lie in cache lines of their own.
_SLOT, _SLOT_BYTES, _SLOTS = (ctypes.sizeof(Head) + 63) // 64 * 64, 320, 8
_TEXTS = _SLOT + _SLOTS * _SLOT_BYTES
_CONTROL_BYTES = _TEXTS + _SLOTS * 2 * TEXT

_FUTEX_WAIT, _FUTEX_WAKE = 0, 1
_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}.get(platform.machine())


class _Time(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


class Gone(Exception):
    """The host has gone."""


def encoded(value: Any) -> bytes:
    """As JSON, which has no word for numbers that are not finite: these become null. What JSON does not know becomes text, and
    half a character of a text a question mark. Raises ValueError for lists in lists in lists, more than 50."""
    _check_depth(value, 50)
    try:
        text = json.dumps(value, default=_plain, allow_nan=False, ensure_ascii=False)
    except ValueError:
        text = json.dumps(_finite(value), default=lambda each: _finite(_plain(each)), allow_nan=False, ensure_ascii=False)
    return text.encode("utf-8", "replace")


def _check_depth(value: Any, left: int) -> None:
    if left < 0:
        raise ValueError("this has more than 50 lists in each other")
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        _check_depth(each, left - 1)


def _plain(value: Any) -> Any:
    """A number or a list in place of numpy's, else text."""
    to_plain = getattr(value, "tolist", None)
    return to_plain() if callable(to_plain) else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return value


class Socket:
    """JSON objects, one in each message."""

    def __init__(self) -> None:
        self._socket = socket.socket(fileno=SOCKET)
        self._lock = threading.Lock()

    def hear(self) -> dict:
        data = self._socket.recv(MESSAGE)
        if not data:
            raise Gone
        return json.loads(data)

    def say(self, message: dict) -> None:
        """[any thread] Raises ValueError for what is too long."""
        data = encoded(message)
        if len(data) > MESSAGE:
            raise ValueError(f"{len(data)} bytes are more than the {MESSAGE} that can be said at once")
        try:
            with self._lock:
                self._socket.send(data, socket.MSG_NOSIGNAL)
        except OSError:
            pass


class Memory:
    """What both processes see."""

    def __init__(self) -> None:
        self.control = mmap.mmap(CONTROL, _CONTROL_BYTES)
        self.head = Head.from_buffer(self.control)
        if self.head.version != VERSION:
            raise RuntimeError(f"framehost speaks version {self.head.version} of the stage protocol, and this package version {VERSION}")
        self.buffers = mmap.mmap(BUFFERS, max(self.head.buffers * self.head.buffer_bytes, 1))
        self._calls = ctypes.c_uint32.from_buffer(self.control, _SLOT)
        self._replies = ctypes.c_uint32.from_buffer(self.control, _SLOT + 64)
        self.call = Call.from_buffer(self.control, _SLOT + 128)
        self.reply = Reply.from_buffer(self.control, _SLOT + 192)
        self._count = 0
        self._fence = threading.Lock()
        if _FUTEX is None:
            raise RuntimeError(f"the number of futex(2) is not known for {platform.machine()}")
        system = ctypes.CDLL(None, use_errno=True).syscall
        system.restype = ctypes.c_long
        second = _Time(1, 0)
        self._second = second
        calls, replies = ctypes.c_void_p(ctypes.addressof(self._calls)), ctypes.c_void_p(ctypes.addressof(self._replies))
        number, zero, pause = ctypes.c_long(_FUTEX), ctypes.c_int(0), ctypes.c_void_p(ctypes.addressof(second))
        self._sleep = lambda count: system(number, calls, ctypes.c_int(_FUTEX_WAIT), ctypes.c_uint32(count), pause, None, zero)
        wake, all_of_them = ctypes.c_int(_FUTEX_WAKE), ctypes.c_int(0x7FFFFFFF)
        self._wake = lambda: system(number, replies, wake, all_of_them, None, None, zero)

    def wait(self) -> None:
        """Waits for the next call. Other threads of Python run meanwhile."""
        while self._calls.value == self._count:
            self._sleep(self._count)
        self._count = (self._count + 1) & 0xFFFFFFFF
        self._order()
        self.reply.verdict = self.reply.reason = self.reply.text_bytes = 0
        self.reply.held = 0

    def answer(self, verdict: int, text: Optional[bytes] = None) -> None:
        if text is not None:
            text = text[:TEXT]
            start = _TEXTS + TEXT
            self.control[start:start + len(text)] = text
            self.reply.text_bytes = len(text)
        self.reply.verdict = verdict
        self._order()
        self._replies.value = self._count
        self._wake()

    def _order(self) -> None:
        """What was written before is visible before what is written after, on processors that need to be told: a lock that
        is freed and taken orders both."""
        self._fence.acquire()
        self._fence.release()
        self._fence.acquire()
        self._fence.release()

    def text(self) -> bytes:
        """Beside the call."""
        return self.control[_TEXTS:_TEXTS + min(self.call.text_bytes, TEXT)]
