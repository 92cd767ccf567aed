#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a filter in Python costs: alone, in framehost, and beside GStreamer's and PyAV's way, in one run.

    /usr/bin/python3 Benchmarks/python.py [FOLDER] [ROUNDS]

FOLDER is a release build's (.build/release). Debian's Python with python3-numpy, python3-opencv, python3-av, python3-gst-1.0 and
gstreamer1.0-python3-plugin-loader. Figures are medians of ROUNDS (5) runs of each in turn, with their range.

1. Frames a second of 1280x720, as fast as they go: a filter that does nothing, and OpenCV's 9x9 blur of the luma, beside a loop of the same blur over an array.
2. The same numpy blur of the luma at 30 frames a second into x264 (ultrafast): processor time of all processes for each frame, less that of a chain without the
   filter.
"""
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

IDENTITY = '''
import framehost


class Identity(framehost.Filter):
    """Does nothing."""

    formats = ["i420"]

    def process(self, frame):
        pass
'''
OPENCV = '''
import cv2
import framehost

cv2.setNumThreads(1)


class Blur(framehost.Filter):
    """Blurs the luma."""

    formats = ["i420"]
    modifies = True

    def process(self, frame):
        cv2.blur(frame.planes[0], (9, 9), dst=frame.planes[0])
'''
# The mean of each value and its eight neighbours, with numpy alone.
BLUR = '''
import numpy


def blur(plane):
    sums = plane.astype(numpy.uint16)
    sums[1:-1] += plane[:-2]
    sums[1:-1] += plane[2:]
    wide = sums.copy()
    wide[:, 1:-1] += sums[:, :-2]
    wide[:, 1:-1] += sums[:, 2:]
    plane[:] = wide // 9
'''
NUMPY = '''
import framehost
from blur import blur


class Blur(framehost.Filter):
    """Blurs the luma."""

    formats = ["i420"]
    modifies = True

    def process(self, frame):
        blur(frame.planes[0])
'''
ELEMENT = '''
import sys
sys.path.insert(0, "WORK")
import gi
gi.require_version("Gst", "1.0")
gi.require_version("GstBase", "1.0")
from gi.repository import GObject, Gst, GstBase
import numpy
from blur import blur

CAPS = Gst.Caps.from_string("video/x-raw,format=I420,width=1280,height=720")


class PyBlur(GstBase.BaseTransform):
    __gstmetadata__ = ("blur", "Filter", "Blurs the luma", "nobody")
    __gsttemplates__ = (Gst.PadTemplate.new("src", Gst.PadDirection.SRC, Gst.PadPresence.ALWAYS, CAPS),
                        Gst.PadTemplate.new("sink", Gst.PadDirection.SINK, Gst.PadPresence.ALWAYS, CAPS))

    def do_transform_ip(self, buffer):
        with buffer.map(Gst.MapFlags.READ | Gst.MapFlags.WRITE) as info:
            blur(numpy.ndarray((720, 1280), numpy.uint8, info.data))
        return Gst.FlowReturn.OK


GObject.type_register(PyBlur)
__gstelementfactory__ = ("pyblur", Gst.Rank.NONE, PyBlur)
'''
LOOP = '''
import sys, time
sys.path.insert(0, "WORK")
import av
import numpy
from blur import blur

filtered, frames = sys.argv[1] == "blur", int(sys.argv[2])
out = av.open("/dev/null", "w", format="h264")
stream = out.add_stream("libx264", rate=30, options={"preset": "ultrafast"})
stream.width, stream.height, stream.pix_fmt = 1280, 720, "yuv420p"
picture = numpy.arange(1280 * 1080, dtype=numpy.uint32).astype(numpy.uint8).reshape(1080, 1280)
begin = time.monotonic()
for number in range(frames):
    frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
    if filtered:
        plane = frame.planes[0]
        blur(numpy.frombuffer(plane, numpy.uint8).reshape(720, plane.line_size)[:, :1280])
    for packet in stream.encode(frame):
        out.mux(packet)
    time.sleep(max(0, begin + (number + 1) / 30 - time.monotonic()))
for packet in stream.encode():
    out.mux(packet)
'''


def cost(command, **how):
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([str(each) for each in command], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **how)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    return end - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def chain(work, name, stages):
    path = work / f"{name}.json"
    path.write_text(json.dumps({"stages": stages}), encoding="utf-8")
    return path


def source(frames, **more):
    return {"use": "test-source", "size": "1280x720", "pattern": "none", "number": False, "format": "i420", "frames": frames, **more}


def row(name, values, unit, form="8.1f"):
    print(f"{name:52} {statistics.median(values):{form}} {unit}  {min(values):.1f} to {max(values):.1f}", flush=True)


def fast(program, work, rounds):
    """Frames a second beyond the time that a run of one frame takes."""
    frames = 3000
    alone = textwrap.dedent(f'''
        import cv2, numpy, time
        cv2.setNumThreads(1)
        plane = numpy.zeros((720, 1280), numpy.uint8)
        for _ in range(100): cv2.blur(plane, (9, 9), dst=plane)
        begin = time.monotonic()
        for _ in range({frames}): cv2.blur(plane, (9, 9), dst=plane)
        print({frames} / (time.monotonic() - begin))''')
    rates = {"identity": [], "opencv": [], "alone": []}
    for _ in range(rounds):
        for name in "identity", "opencv":
            whole, start = (cost([program, chain(work, f"{name}-{count}", [source(count), {"use": f"python:{name}.py"}, {"use": "null-sink"}]), "--quiet"])[0]
                            for count in (frames, 1))
            rates[name].append((frames - 1) / (whole - start))
        rates["alone"].append(float(subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, check=True).stdout))
    row("a filter that does nothing", rates["identity"], "frames/s")
    row("OpenCV's blur in framehost", rates["opencv"], "frames/s")
    row("OpenCV's blur in a loop", rates["alone"], "frames/s")
    row("  framehost's share of the loop's rate", [100 * a / b for a, b in zip(rates["opencv"], rates["alone"])], "%")


def paced(program, work, rounds):
    """Processor time of a frame beyond that of the chain without the filter."""
    frames = 300
    encoder = {"use": "x264-encoder", "preset": "ultrafast"}
    plugins = work / "plugins" / "python"
    plugins.mkdir(parents=True)
    (plugins / "pyblur.py").write_text(ELEMENT.replace("WORK", str(work)), encoding="utf-8")
    environment = {**os.environ, "GST_PLUGIN_PATH": str(work / "plugins"), "GST_REGISTRY": str(work / "registry")}

    def gst(filtered):
        return ["gst-launch-1.0", "-q", "videotestsrc", f"num-buffers={frames}", "is-live=true", "pattern=black", "!",
                "video/x-raw,format=I420,width=1280,height=720,framerate=30/1", "!", *(["pyblur", "!"] if filtered else []),
                "x264enc", "speed-preset=ultrafast", "!", "fakesink"]

    def ours(filtered):
        stages = [source(frames, rate=30, live=True), *([{"use": "python:numpyblur.py"}] if filtered else []), encoder, {"use": "null-sink"}]
        return [program, chain(work, f"paced-{filtered}", stages), "--quiet"]

    def loop(filtered):
        return [sys.executable, work / "loop.py", "blur" if filtered else "none", frames]

    ways = {"framehost": ours, "gst-python": gst, "PyAV": loop}
    spent = {name: [] for name in ways}
    for again in range(rounds + 1):
        for name, way in ways.items():
            with_it, without = (cost(way(filtered), env=environment)[1] for filtered in (True, False))
            # The first round only warms up.
            if again > 0:
                spent[name].append((with_it - without) / frames * 1e3)
    for name, values in spent.items():
        row(f"numpy blur at 30 fps, {name}", values, "ms of a processor a frame", "8.2f")


def main(folder, rounds):
    # framehost's filters run in the Python that runs this.
    os.environ["PATH"] = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    program = pathlib.Path(folder).resolve() / "framehost"
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        for file, text in {"identity": IDENTITY, "opencv": OPENCV, "numpyblur": NUMPY, "blur": BLUR, "loop": LOOP.replace("WORK", name)}.items():
            (work / f"{file}.py").write_text(text, encoding="utf-8")
        fast(program, work, rounds)
        paced(program, work, rounds)


main(sys.argv[1] if len(sys.argv) > 1 else ".build/release", int(sys.argv[2]) if len(sys.argv) > 2 else 5)
