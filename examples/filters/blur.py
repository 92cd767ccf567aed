# SPDX-License-Identifier: Apache-2.0
"""A filter in Python: { "use": "python:filters/blur.py", "radius": 6 }. docs/python.md."""
import framehost
import numpy


class Blur(framehost.Filter):
    """Blurs the picture by a box."""

    formats = ["i420", "gray8"]
    modifies = True

    @framehost.options
    class Options:
        radius: int = framehost.option(4, "Pixels to each side.", minimum=0, maximum=50, unit="px", live=True)

    def process(self, frame):
        radius = self.options.radius
        if radius > 0:
            for index, plane in enumerate(frame.planes):
                box(plane, radius if index == 0 else (radius + 1) // 2)


def box(plane, radius):
    """Replaces each value by the mean of those around it: running sums along columns, then along rows."""
    size = 2 * radius + 1
    padded = numpy.pad(plane, [(radius + 1, radius), (0, 0)], "edge")
    sums = numpy.cumsum(padded, axis=0, dtype=numpy.uint32)
    plane[:] = (sums[size:] - sums[:-size]) // size
    padded = numpy.pad(plane, [(0, 0), (radius + 1, radius)], "edge")
    sums = numpy.cumsum(padded, axis=1, dtype=numpy.uint32)
    plane[:] = (sums[:, size:] - sums[:, :-size]) // size
