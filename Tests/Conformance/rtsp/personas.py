# SPDX-License-Identifier: Apache-2.0
"""Whole dialogues as real clients hold them, with their habits and faults. A client that meets an unexpected answer gives up: so does its persona."""

import re
import time

import wire
from rules import NotApplicable, demand, demand_status, rule
from session import PortPair, Session, Track, describe, everything
from wire import Unmet


def persona(name, what, source, level="must", is_long=False):
    return rule("persona", name, level, what, source, is_long)


def datagrams(ports, what="PLAY", since=0.0):
    """Demands RTP of each medium, which arrived at this time or later."""
    demand(ports.comes(since=since), f"no RTP packet came within {wire.PATIENCE:g} s of {what}")
    demand(not ports.sound or ports.sound.comes(since=since), f"no RTP packet of the sound came within {wire.PATIENCE:g} s of {what}")


# VLC, by live555

LIVE555 = ("User-Agent", "LibVLC/3.0.20 (LIVE555 Streaming Media v2016.11.28)")


def live555_challenge(response):
    """`sscanf` with exactly this format; then the Basic form."""
    for value in response.all("WWW-Authenticate"):
        if match := re.match(r'Digest realm="([^"]*)", nonce="([^"]*)"(, stale=([a-zA-Z]*))?', value):
            return f'Digest realm="{match[1]}", nonce="{match[2]}"'
        if match := re.match(r'Basic realm="([^"]*)"', value):
            return match[0]
    raise Unmet(f"live555 cannot read WWW-Authenticate: {response.get('WWW-Authenticate')}")


def live555_opening(c):
    """OPTIONS without credentials, DESCRIBE, and once more with them."""
    demand_status(c.ask("OPTIONS", headers=[LIVE555]), 200)
    c.send(c.line("DESCRIBE", headers=[LIVE555, ("Accept", "application/sdp")]))
    response = c.response()
    if response.status == 401 and c.target.user is not None:
        c.challenge = live555_challenge(response)
        response = c.ask("DESCRIBE", headers=[LIVE555, ("Accept", "application/sdp")])
    track = Track(response, c.target)
    # Digests are made with the base URL, whatever is asked for.
    c.signed_url = track.base
    return track


@persona("vlc-udp", "VLC over UDP: OPTIONS, DESCRIBE, SETUP, PLAY, pings, TEARDOWN; digests with the base URL", "live555 RTSPClient.cpp")
def _(target):
    if target.is_secure:
        raise NotApplicable("over TLS packets travel on the connection")
    with target.connect() as c, PortPair(target) as ports:
        track = live555_opening(c)
        session = everything(c, track, ports, [LIVE555])
        demand_status(session.ask("PLAY", [LIVE555, ("Range", "npt=0.000-")]), 200)
        datagrams(ports)
        for _ in range(2):
            demand_status(session.ask("GET_PARAMETER", [LIVE555]), 200)
        demand_status(session.ask("TEARDOWN", [LIVE555]), 200)


@persona("vlc-tcp", "VLC over TCP: '$' cut from session ids, PAUSE and PLAY from now", "live555 RTSPClient.cpp")
def _(target):
    with target.connect() as c:
        session = everything(c, live555_opening(c), headers=[LIVE555])
        session.id = session.id.replace("$", "")
        demand_status(session.ask("PLAY", [LIVE555, ("Range", "npt=0.000-")]), 200)
        session.plays()
        demand_status(session.ask("PAUSE", [LIVE555]), 200)
        demand_status(session.ask("PLAY", [LIVE555]), 200)
        session.plays()
        demand_status(session.ask("TEARDOWN", [LIVE555]), 200)


@persona("vlc-dialect", "VLC after a failure: SETUP of the stream's own URL; 4xx or a session that plays", "live555 RTSPClient.cpp")
def _(target):
    with target.connect() as c:
        track = live555_opening(c)
        url = track.base.rstrip("/")
        response = c.ask("SETUP", url, [LIVE555, ("Transport", "RTP/AVP/TCP;unicast;interleaved=0-1")])
        if response.status != 200:
            demand(400 <= response.status < 500, f"answered with {response}")
            return str(response)
        session = Session(c, track, "RTP/AVP/TCP;unicast;interleaved=0-1", [LIVE555, ("Session", response.get("Session").split(";")[0])], url)
        session.play(url=url)
        session.plays()
        return "plays"


# openRTSP, by live555 as VLC is

OPENRTSP = ("User-Agent", "openRTSP (LIVE555 Streaming Media v2023.01.19)")


def openrtsp(target, *play):
    """`openRTSP -t`: plays with these headers, and the answer's Range must be one that live555 can read."""
    with target.connect() as c:
        demand_status(c.ask("OPTIONS", headers=[OPENRTSP]), 200)
        track = describe(c, [OPENRTSP, ("Accept", "application/sdp")])
        c.signed_url = track.base
        session = everything(c, track, headers=[OPENRTSP])
        response = session.play([OPENRTSP, *play])
        if text := response.get("Range"):
            demand(re.match(r"npt *= *(now|[\d.:]+) *- *[\d.:]*|clock=", text), f"live555 cannot read Range: {text}")
        if "Scale" in dict(play):
            scale = response.get("Scale")
            demand(scale is not None and float(scale) == 1, f"Scale is '{scale}', and the pace is that of the stream")
        session.plays()
        demand_status(session.ask("TEARDOWN", [OPENRTSP]), 200)
        return response.get("Range") or "no Range"


@persona("openrtsp-udp", "openRTSP -d 3 over UDP: Range npt=0.000-3.000, a receiver report, TEARDOWN of its own", "live555 playCommon.cpp")
def _(target):
    if target.is_secure:
        raise NotApplicable("over TLS packets travel on the connection")
    with target.connect() as c, PortPair(target) as ports:
        demand_status(c.ask("OPTIONS", headers=[OPENRTSP]), 200)
        track = describe(c, [OPENRTSP, ("Accept", "application/sdp")])
        c.signed_url = track.base
        session = everything(c, track, ports, [OPENRTSP])
        demand_status(session.ask("PLAY", [OPENRTSP, ("Range", "npt=0.000-3.000")]), 200)
        datagrams(ports)
        demand_status(session.ask("TEARDOWN", [OPENRTSP]), 200)


@persona("openrtsp-duration", "openRTSP -t -d 3: Range npt=0.000-3.000", "live555 playCommon.cpp")
def _(target):
    return openrtsp(target, ("Range", "npt=0.000-3.000"))


@persona("openrtsp-seek", "openRTSP -t -s 5: Range npt=5.000-", "live555 playCommon.cpp")
def _(target):
    return openrtsp(target, ("Range", "npt=5.000-"))


@persona("openrtsp-clock", "openRTSP -t -U: Range clock=…, which a live stream may refuse with 457", "live555 playCommon.cpp", "should")
def _(target):
    return openrtsp(target, ("Range", "clock=20260101T000000Z-"))


@persona("openrtsp-scale", "openRTSP -t -z 2: Scale 2.000000, answered with the pace there is", "live555 playCommon.cpp; RFC 2326, 12.34", "should")
def _(target):
    return openrtsp(target, ("Scale", "2.000000"), ("Range", "npt=0.000-"))


@persona("double-slash", "Players that join a base and a name ask for //path", "gst-rtsp-server, live555", "should")
def _(target):
    with target.connect() as c:
        c.signed_url = target.url
        return demand_status(c.ask("DESCRIBE", target.root + "/" + target.url[len(target.root):], [("Accept", "application/sdp")]), 200)


# Microsoft Media Foundation

WINDOWS = ("User-Agent", "WMPlayer/12.0.22621.1 guid/3300AD50-2C39-46C0-AE0A-000000000000")


@persona("media-foundation", "Media Foundation: OPTIONS *, TCP, no ping but the connection", "MS-RTSP")
def _(target):
    with target.connect() as c:
        demand_status(c.ask("OPTIONS", "*", [WINDOWS]), 200)
        track = describe(c, [WINDOWS, ("Accept", "application/sdp"), ("Accept-Language", "en-US, *;q=0.1"),
                             ("Supported", "com.microsoft.wm.srvppair, com.microsoft.wm.sswitch")])
        session = everything(c, track, headers=[WINDOWS])
        session.play([WINDOWS, ("Range", "npt=0.000-"), ("Bandwidth", "2147483647")])
        session.plays()
        demand_status(session.ask("TEARDOWN", [WINDOWS]), 200)


@persona("media-foundation-ping", "Media Foundation over UDP: one ping exactly at the timeout, and it plays on", "MS-RTSP", is_long=True)
def _(target):
    if target.is_secure:
        raise NotApplicable("over TLS packets travel on the connection")
    for attempt in range(10):
        with target.connect() as c, PortPair(target) as ports:
            session = everything(c, describe(c, [WINDOWS]), ports, [WINDOWS])
            asked = time.monotonic()
            session.play([WINDOWS])
            begin = time.monotonic()
            while (left := begin + session.timeout - time.monotonic()) > 0:
                ports.receive(left)
            response = session.ask("GET_PARAMETER", [WINDOWS])
            answered = time.monotonic()
            # A busy machine may ping too late, and the server is right to have ended the session.
            if response.status != 200 and answered - asked > session.timeout + 0.5 and attempt < 9:
                continue
            demand_status(response, 200)
            datagrams(ports, "its ping", since=answered)
            return f"{session.timeout} s"


# ExoPlayer (Android)

EXO = ("User-Agent", "AndroidXMedia3/1.4.1")


@persona("exoplayer-udp", "ExoPlayer over UDP: OPTIONS as ping, Range npt=0.000-", "RtspClient.java")
def _(target):
    if target.is_secure:
        raise NotApplicable("over TLS packets travel on the connection")
    with target.connect() as c, PortPair(target) as ports:
        demand_status(c.ask("OPTIONS", headers=[EXO]), 200)
        session = everything(c, describe(c, [EXO]), ports, [EXO])
        session.play([EXO, ("Range", "npt=0.000-")])
        datagrams(ports)
        demand_status(session.ask("OPTIONS", [EXO]), 200)
        demand_status(session.ask("TEARDOWN", [EXO]), 200)


@persona("exoplayer-retry", "ExoPlayer where UDP is silent: TEARDOWN, a new connection, then TCP", "RtspMediaPeriod.java")
def _(target):
    with target.connect() as c:
        if not target.is_secure:
            with PortPair(target) as ports:
                session = everything(c, describe(c, [EXO]), ports, [EXO])
                session.play([EXO, ("Range", "npt=0.000-")])
                demand_status(session.ask("TEARDOWN", [EXO]), 200)
    with target.connect() as c:
        demand_status(c.ask("OPTIONS", headers=[EXO]), 200)
        session = everything(c, describe(c, [EXO]), headers=[EXO])
        session.play([EXO, ("Range", "npt=0.000-")])
        session.plays()
        demand_status(session.ask("TEARDOWN", [EXO]), 200)


# Network video recorders

@persona("nvr-onvif", "A recorder: asks for ONVIF's back channel first, is refused with 551, asks again without; pings by SET_PARAMETER",
         "ONVIF Streaming 5.3")
def _(target):
    with target.connect() as c:
        backchannel = c.ask("DESCRIBE", headers=[("Require", "www.onvif.org/ver20/backchannel"), ("Accept", "application/sdp")])
        demand_status(backchannel, 551, 200)
        session = everything(c, describe(c))
        session.play([("Range", "npt=now-"), ("Rate-Control", "no")])
        session.plays()
        demand_status(session.ask("SET_PARAMETER"), 200, 451)
        demand_status(session.ask("TEARDOWN"), 200)
        return f"{backchannel} to the back channel"


@persona("nvr-digest", "Recorders sign the URL without its slash (HappyTime), or the path alone (Bosch)", "gortsplib auth/verify.go", "should")
def _(target):
    if target.user is None:
        raise NotApplicable("no user is named in the URL")
    for signed in (target.url, target.url + "/", target.url.replace(target.root, "", 1)):
        with target.connect() as c:
            c.signed_url = signed
            session = Session(c, describe(c), "RTP/AVP/TCP;unicast;interleaved=0-1")
            demand_status(session.ask("PLAY"), 200)
            session.plays()


# QuickTime

QUICKTIME = ("User-Agent", "QuickTime/7.7.9 (qtver=7.7.9;os=Windows NT 6.1)")


@persona("quicktime", "QuickTime: TCP without channels, Range in SETUP, retransmission wishes, PAUSE and PLAY", "live555 RTSPServer.cpp")
def _(target):
    with target.connect() as c:
        track = describe(c, [QUICKTIME, ("Accept", "application/sdp"), ("Bandwidth", "1500000"), ("Accept-Language", "en")])
        session = Session(c, track, "RTP/AVP/TCP;unicast",
                          [QUICKTIME, ("x-dynamic-rate", "1"), ("x-transport-options", "late-tolerance=2.9"), ("Range", "npt=0.000-")])
        demand(session.channels, f"Transport names no channels: '{session.transport}'")
        if track.sound:
            session.add_sound("RTP/AVP/TCP;unicast", [QUICKTIME])
            demand(session.sound_channels and session.sound_channels != session.channels, f"the sound's Transport is '{session.sound_transport}'")
        session.play([QUICKTIME, ("Range", "npt=0.000-"), ("x-prebuffer", "maxtime=2.0")])
        session.plays()
        demand_status(session.ask("PAUSE", [QUICKTIME]), 200)
        session.play([QUICKTIME])
        session.plays()
        demand_status(session.ask("TEARDOWN", [QUICKTIME]), 200)


# FFmpeg, and mpv, OpenCV and OBS by it

FFMPEG = ("User-Agent", "Lavf59.27.100")


def ffmpeg(target, ports=None):
    """OPTIONS, DESCRIBE, SETUP of each medium, PLAY, a ping with its session, TEARDOWN."""
    with target.connect() as c:
        demand_status(c.ask("OPTIONS", headers=[FFMPEG]), 200)
        session = everything(c, describe(c, [("Accept", "application/sdp"), FFMPEG]), ports, [FFMPEG])
        session.play([("Range", "npt=0.000-"), FFMPEG])
        datagrams(ports) if ports else session.plays()
        demand_status(session.ask("GET_PARAMETER", [FFMPEG]), 200)
        demand_status(session.ask("TEARDOWN", [FFMPEG]), 200)


@persona("ffmpeg-tcp", "FFmpeg and mpv over TCP: every medium in one session", "rtsp.c")
def _(target):
    ffmpeg(target)


@persona("ffmpeg-udp", "FFmpeg and mpv over UDP: every medium with ports of its own", "rtsp.c")
def _(target):
    if target.is_secure:
        raise NotApplicable("over TLS packets travel on the connection")
    with PortPair(target) as ports:
        ffmpeg(target, ports)


@persona("ffmpeg-retry", "FFmpeg where UDP is silent: PAUSE, forgets the session, SETUP over TCP on the same connection", "rtspdec.c")
def _(target):
    if target.is_secure:
        raise NotApplicable("over TLS packets travel on the connection")
    with target.connect() as c, PortPair(target) as ports:
        track = describe(c, [FFMPEG])
        session = everything(c, track, ports, [FFMPEG])
        session.play([FFMPEG, ("Range", "npt=0.000-")])
        demand_status(session.ask("PAUSE", [FFMPEG]), 200)
        again = everything(c, track, headers=[FFMPEG])
        again.play([FFMPEG, ("Range", "npt=0.000-")])
        again.plays()


@persona("ffmpeg-query", "FFmpeg puts the track behind the query: …?a=b/trackID=0", "gortsplib server_session.go", "should")
def _(target):
    with target.connect() as c:
        url = target.url + ("&" if "?" in target.url else "?") + "quality=high"
        track = Track(c.ask("DESCRIBE", url, [FFMPEG]), target)
        def behind(medium):
            return url if medium.control == "*" or "://" in medium.control else url + "/" + medium.control
        session = Session(c, track, "RTP/AVP/TCP;unicast;interleaved=0-1", [FFMPEG], behind(track))
        if track.sound:
            session.add_sound("RTP/AVP/TCP;unicast;interleaved=2-3", [FFMPEG], behind(track.sound))
        session.play(url=url + "/")
        session.plays()


# GStreamer

GSTREAMER = ("User-Agent", "GStreamer/1.22.0")


def rtspsrc(target, ports=None):
    """OPTIONS, DESCRIBE, SETUP of each medium, PLAY; it pauses before it leaves."""
    with target.connect() as c:
        demand_status(c.ask("OPTIONS", headers=[GSTREAMER]), 200)
        session = everything(c, describe(c, [("Accept", "application/sdp"), GSTREAMER]), ports, [GSTREAMER])
        session.play([("Range", "npt=0-"), GSTREAMER])
        datagrams(ports) if ports else session.plays()
        demand_status(session.ask("OPTIONS", [GSTREAMER]), 200)
        demand_status(session.ask("PAUSE", [GSTREAMER]), 200)
        demand_status(session.ask("TEARDOWN", [GSTREAMER]), 200)


@persona("gstreamer-tcp", "rtspsrc over TCP: every medium in one session, PAUSE before TEARDOWN", "gstrtspsrc.c")
def _(target):
    rtspsrc(target)


@persona("gstreamer-udp", "rtspsrc over UDP: the same, every medium with ports of its own", "gstrtspsrc.c")
def _(target):
    if target.is_secure:
        raise NotApplicable("over TLS packets travel on the connection")
    with PortPair(target) as ports:
        rtspsrc(target, ports)
