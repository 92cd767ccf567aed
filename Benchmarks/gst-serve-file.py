#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gst-rtsp-server with the access units of a file, as from a camera that encodes: one shared live stream that nobody can ask for a keyframe.

    Benchmarks/gst-serve-file.py FILE.h264 PORT PICTURES-PER-SECOND       or FILE.h265

FILE has start codes and access unit delimiters. For rtsp-joins.py, readers.py. Debian packages: gir1.2-gst-rtsp-server-1.0 python3-gi gstreamer1.0-plugins-base
gstreamer1.0-plugins-good gstreamer1.0-plugins-bad.
"""

import re
import sys
import threading
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

CAPS = "video/x-{},stream-format=byte-stream,alignment=au"
# The first byte of an access unit delimiter (H.264, 7.3.1; H.265, 7.3.1.2).
DELIMITERS = {"h264": b"\x09", "h265": b"\x46"}


def units(path, codec):
    with open(path, "rb") as file:
        data = file.read()
    places = [found.start() for found in re.finditer(b"\x00\x00\x00\x01" + DELIMITERS[codec], data)] + [len(data)]
    return [data[begin:end] for begin, end in zip(places, places[1:])]


class Factory(GstRtspServer.RTSPMediaFactory):
    """The first client starts the stream, which goes on as long as anybody plays."""

    def __init__(self, path, rate):
        super().__init__()
        self.codec = "h265" if path.endswith(".h265") else "h264"
        self.units, self.rate = units(path, self.codec), rate
        self.set_shared(True)
        self.set_suspend_mode(GstRtspServer.RTSPSuspendMode.NONE)

    def do_create_element(self, url):
        pipeline = Gst.parse_launch(f"( appsrc name=source is-live=true format=time do-timestamp=true caps={CAPS.format(self.codec)} ! {self.codec}parse ! "
                                    f"rtp{self.codec}pay name=pay0 pt=96 config-interval=-1 )")
        source = pipeline.get_by_name("source")
        threading.Thread(target=self.feed, args=(source,), daemon=True).start()
        return pipeline

    def feed(self, source):
        begin = time.monotonic()
        number = 0
        while source.emit("push-buffer", Gst.Buffer.new_wrapped(self.units[number % len(self.units)])) == Gst.FlowReturn.OK:
            number += 1
            time.sleep(max(0, begin + number / self.rate - time.monotonic()))


def main():
    path, port, rate = sys.argv[1], sys.argv[2], float(sys.argv[3])
    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(port)
    server.get_mount_points().add_factory("/live", Factory(path, rate))
    server.attach(None)
    print("serving", flush=True)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main()
