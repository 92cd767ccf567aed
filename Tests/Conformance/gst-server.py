#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gst-rtsp-server with a live test picture: a second opinion beside framehost's own server (docs/rtsp-conformance.md).

    Tests/Conformance/gst-server.py [--port 8555] [--user NAME:PASSWORD] [--sound aac|opus]

One shared live stream for all clients: 320x240 at 50 pictures a second, x264enc zerolatency, a keyframe every 2 s; everything of the server's is as it
comes. The test picture comes from a pipeline of its own, as from a camera: videotestsrc itself can seek, and a client that asks for a second 1000 would
end the stream for all. So does the tone of `--sound`, 48 kHz stereo. A reader of both media then stays for as long as the server runs, because
gst-rtsp-server 1.22 fails for all ("not-linked") where the first client sets up one medium of a live stream.

Debian packages: gir1.2-gst-rtsp-server-1.0 python3-gi gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad
gstreamer1.0-plugins-ugly, for AAC gstreamer1.0-libav.
"""

import argparse
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

FORMAT = "video/x-raw,format=I420,width=320,height=240,framerate=50/1"
CAMERA = f"videotestsrc is-live=true ! {FORMAT} ! intervideosink channel=camera"
STREAM = (f"intervideosrc channel=camera ! {FORMAT} ! x264enc tune=zerolatency speed-preset=ultrafast bitrate=1500 key-int-max=100"
          " ! rtph264pay name=pay0 pt=96 config-interval=-1")
SOUND = "audio/x-raw,format=S16LE,layout=interleaved,rate=48000,channels=2"
MICROPHONE = f"audiotestsrc is-live=true wave=sine ! {SOUND} ! interaudiosink channel=microphone"
ENCODERS = {"aac": "avenc_aac bitrate=128000 ! aacparse ! rtpmp4gpay", "opus": "opusenc bitrate=96000 ! rtpopuspay"}


def digest(user):
    """Nobody but this user, by Digest."""
    name, _, password = user.partition(":")
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "user")
    auth = GstRtspServer.RTSPAuth()
    auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
    auth.add_digest(name, password, token)
    return auth


def stay(port, user, ready):
    """Reads both media from now on; calls `ready` once they are set up."""
    name, _, password = user.partition(":")
    login = f'user-id="{name}" user-pw="{password}"' if user else ""
    reader = Gst.parse_launch(f"rtspsrc name=source location=rtsp://127.0.0.1:{port}/live protocols=tcp {login} source. ! fakesink source. ! fakesink")
    reader.get_by_name("source").connect("no-more-pads", lambda _: ready())
    reader.set_state(Gst.State.PLAYING)
    return reader


def permissions():
    found = GstRtspServer.RTSPPermissions()
    found.add_permission_for_role("user", "media.factory.access", True)
    found.add_permission_for_role("user", "media.factory.construct", True)
    return found


def main():
    parser = argparse.ArgumentParser(prog="gst-server", description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=8555)
    parser.add_argument("--user", metavar="NAME:PASSWORD", help="who may play; without it everybody")
    parser.add_argument("--sound", choices=tuple(ENCODERS), help="also a tone, as a second medium")
    options = parser.parse_args()
    Gst.init(None)
    camera = Gst.parse_launch(f"{CAMERA} {MICROPHONE}" if options.sound else CAMERA)
    camera.set_state(Gst.State.PLAYING)
    server = GstRtspServer.RTSPServer(service=str(options.port))
    factory = GstRtspServer.RTSPMediaFactory()
    sound = (f" interaudiosrc channel=microphone ! {SOUND} ! audioconvert ! {ENCODERS[options.sound]} name=pay1 pt=97" if options.sound else "")
    factory.set_launch(f"( {STREAM}{sound} )")
    factory.set_shared(True)
    if options.user:
        server.set_auth(digest(options.user))
        factory.set_permissions(permissions())
    server.get_mount_points().add_factory("/live", factory)
    if not server.attach(None):
        sys.exit(f"gst-server: port {options.port} is taken")
    # The library leaves sessions without a sign of life to its user.
    GLib.timeout_add_seconds(2, lambda: server.get_session_pool().cleanup() >= 0)

    def ready():
        print(f"rtsp://127.0.0.1:{options.port}/live", flush=True)

    reader = stay(options.port, options.user or "", ready) if options.sound else ready()  # noqa: F841, it is kept
    GLib.MainLoop().run()


main()
