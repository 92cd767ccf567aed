# SPDX-License-Identifier: Apache-2.0
"""Runs a filter in a test, without framehost.

    filter = framehost.testing.make(Blur, "gray8", 64, 48, radius=3)
    frame = framehost.testing.frame("gray8", 64, 48)
    filter.process(frame)
"""
from __future__ import annotations

import types
from typing import Any, List, Type

import numpy

from framehost import Filter, Format, Frame


def frame(pixel_format: str, width: int, height: int, fill: int = 0, *, number: int = 0, pts: int = 0) -> Frame:
    """A frame of one value, in memory of its own."""
    half_width, half_height = (width + 1) // 2, (height + 1) // 2
    shapes: dict = {
        "i420": [(height, width), (half_height, half_width), (half_height, half_width)],
        "nv12": [(height, width), (half_height, half_width, 2)],
        "yuyv": [(height, half_width * 2, 2)], "bgra": [(height, width, 4)], "rgb24": [(height, width, 3)], "gray8": [(height, width)],
    }
    made = Frame()
    planes: List[numpy.ndarray] = [numpy.full(shape, fill, numpy.uint8) for shape in shapes[pixel_format]]
    made.planes = planes
    made.pts, made.number, made.duration, made.captured_at = pts, number, 0, 0
    made.is_discontinuity = made.is_substitute = False
    return made


def make(kind: Type[Filter], pixel_format: str, width: int, height: int, frame_rate: float = 30.0, **options: Any) -> Any:
    """A filter that has been made, negotiated and started. What it posts is in its list `posted`."""
    made: Any = kind()
    made.posted = []
    made._say = made.posted.append
    made.id, made.folder, made.is_live = "test", ".", False
    made.format = Format(pixel_format, width, height, frame_rate)
    made.options = kind.Options(**options) if kind.Options is not None else types.SimpleNamespace()
    made.negotiate()
    made.start()
    return made
