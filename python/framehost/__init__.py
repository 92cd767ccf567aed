# SPDX-License-Identifier: Apache-2.0
"""Filters for framehost in Python: docs/python.md.

    import framehost

    class Invert(framehost.Filter):
        "Inverts the picture."
        formats = ["bgra"]
        modifies = True

        def process(self, frame):
            frame.pixels[..., :3] = 255 - frame.pixels[..., :3]

A chain names the file: {"use": "python:invert.py"}.
"""
from __future__ import annotations

import dataclasses
from typing import Any, Callable, Optional, Sequence

import numpy

__all__ = ["DROP", "Event", "Command", "Filter", "Frame", "Member", "Format", "Refusal", "options", "option", "member", "command", "open", "Reader", "Error"]


options = dataclasses.dataclass
"""Marks a filter's class `Options`: a dataclass."""


class _Drop:
    def __repr__(self) -> str:
        return "framehost.DROP"


DROP = _Drop()
"""What `process` returns for a frame that must not go on."""


class Refusal(Exception):
    """Says that an option, a format or a command cannot be: what is wrong, and what to do about it."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


def option(default: Any, help: str, *, minimum: Any = None, maximum: Any = None, unit: str = "", live: bool = False,
           choices: Optional[Sequence[str]] = None) -> Any:
    """A field of a filter's `Options`: its default, one sentence of help, and its bounds.

    `live` options may change while the chain runs; `options_changed` is called then. The type is that of the annotation:
    bool, int, float, str, each also as `Optional`; with `choices`, one of these words.
    """
    about = {"help": help, "minimum": minimum, "maximum": maximum, "unit": unit, "live": live, "choices": choices}
    return dataclasses.field(default=default, metadata={"framehost": about})


@dataclasses.dataclass(frozen=True)
class Member:
    """A member of an event's details or of a command's arguments."""

    name: str
    type: str
    summary: str
    required: bool = False


def member(name: str, type: type, summary: str, *, required: bool = False) -> Member:
    """Declares a member. `type` is bool, int, float, str, list or dict."""
    words = {bool: "boolean", int: "number", float: "number", str: "string", list: "list", dict: "object"}
    return Member(name, words[type], summary, required)


@dataclasses.dataclass(frozen=True)
class Event:
    """An event that a filter posts: rules of a chain file can name it."""

    name: str
    summary: str
    members: Sequence[Member] = ()


@dataclasses.dataclass(frozen=True)
class Command:
    """A command that a filter takes while the chain runs."""

    name: str
    summary: str
    arguments: Sequence[Member] = ()


def command(summary: str, *arguments: Member, name: str = "") -> Callable[[Callable], Callable]:
    """Makes a method a command of the filter: `{"stage": "blur", "command": "reset"}`. Its arguments are keyword
    arguments."""

    def mark(method: Callable) -> Callable:
        method.__framehost_command__ = Command(name or method.__name__.replace("_", "-"), summary, arguments)  # type: ignore
        return method

    return mark


class Frame:
    """One picture. It lies in memory that framehost sees: write into the arrays, never keep them."""

    __slots__ = ("planes", "pts", "duration", "captured_at", "number", "is_discontinuity", "is_substitute")

    planes: Sequence[numpy.ndarray]
    """An array for each plane of the format: rows first. What lies behind them is another frame after the call."""
    pts: int
    """When it is shown, in nanoseconds from the start of the chain's clock."""
    duration: int
    """Nanoseconds; 0 where it is not known."""
    captured_at: int
    """When its light fell on the sensor, in nanoseconds of the monotonic clock; 0 where it is not known."""
    number: int
    """The number that the source has given it."""
    is_discontinuity: bool
    """Whether frames are missing before this one."""
    is_substitute: bool
    """Whether it is a slate or a repeated picture in place of a camera's."""

    @property
    def pixels(self) -> numpy.ndarray:
        """The picture of a format with one plane: bgra, rgb24, yuyv and gray8."""
        if len(self.planes) != 1:
            raise TypeError("this format has several planes: use frame.planes")
        return self.planes[0]


@dataclasses.dataclass(frozen=True)
class Format:
    """What all frames have in common."""

    pixel_format: str
    width: int
    height: int
    frame_rate: float
    """Frames a second; 0 where it is not known."""


class Filter:
    """What a filter is: a class that derives from this one, in a file that a chain names.

    Its doc string's first line is what `framehost describe` shows.
    """

    formats: Sequence[str] = ("i420",)
    """Pixel formats that it takes, best first: i420, nv12, yuyv, bgra, rgb24, gray8."""
    modifies: bool = False
    """Whether it writes into frames."""
    longest_call: float = 1.0
    """Seconds that a call of `process` takes at most when all is well."""
    Options: Optional[type] = None
    """A dataclass with `option` fields."""
    events: Sequence[Event] = ()

    options: Any
    """The present options: an `Options`."""
    format: Format
    id: str
    """The id of the stage in its chain."""
    folder: str
    """The chain file's folder."""
    is_live: bool
    """Whether the chain has a live source."""
    figures: Optional[dict] = None
    """Figures of its own, shown by `framehost top`, the page and `--stats`: set it to a dictionary of numbers and texts."""

    def negotiate(self) -> None:
        """Called once `options` and `format` are known, before the chain starts. Raise `Refusal` for what cannot be."""

    def start(self) -> None:
        """Called when the chain starts, before the first frame."""

    def process(self, frame: Frame) -> Any:
        """Called for each frame. Returns nothing, or `DROP`."""
        raise NotImplementedError

    def options_changed(self) -> None:
        """Called between two frames after live options have changed."""

    def stop(self) -> None:
        """Called after the last frame."""

    def post(self, event: str, text: str, *, level: str = "info", **details: Any) -> None:
        """Posts one of `events`. [any thread]"""
        if event not in (each.name for each in self.events):
            raise ValueError(f"the event '{event}' is not one of `events`")
        self._say({"event": event, "level": level, "text": text, "details": details})

    def log(self, text: str, *, level: str = "info") -> None:
        """Writes a line to the log. [any thread]"""
        self._say({"event": "log", "level": level, "text": text, "details": {}})

    _say: Callable[[dict], None]


def open(what: Any, *, latest: Optional[bool] = None, format: str = "bgra", at: Optional[str] = None,
         timeout: Optional[float] = None) -> "Reader":
    """The frames of an address (`rtsp://…`), a device (`/dev/video0`), a file, or a chain (a file or a dictionary).

        with framehost.open("rtsp://camera/stream") as camera:
            for frame in camera:
                print(frame.number, frame.pixels.mean())

    Args:
        latest: Whether frames that come while you work are left out, so that the next one is never old. Otherwise frames wait for
            you. Default: true, but false where no source is live.
        format: The pixel format of the arrays.
        at: Of a chain: the stage whose pictures you want. Default: its last stage, which must not be a sink then.
        timeout: Seconds to wait for a frame. Default: for ever.
    """
    return Reader(what, latest=latest, format=format, at=at, timeout=timeout)


from framehost._open import Error, Reader  # noqa: E402  The types above are theirs too.
