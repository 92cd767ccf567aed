#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gst-rtsp-server with an MP4 file of H.264 and AAC, from its begin for each client. usage: serve.py PORT FILE"""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_service(sys.argv[1])
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(
    f'( filesrc location="{sys.argv[2]}" ! qtdemux name=file file.video_0 ! queue ! h264parse ! rtph264pay name=pay0 pt=96 config-interval=-1'
    " file.audio_0 ! queue ! aacparse ! rtpmp4gpay name=pay1 pt=97 )")
server.get_mount_points().add_factory("/live", factory)
server.attach(None)
print("ready", flush=True)
GLib.MainLoop().run()
