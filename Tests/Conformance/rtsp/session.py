# SPDX-License-Identifier: Apache-2.0
"""From a URL to a stream that plays: description, transports, session."""

import base64
import re
import selectors
import socket
import struct
import sys
import time

import wire
from wire import Unmet, deadline_in

# SO_TIMESTAMPNS of Linux, which the module socket has no name for: the kernel says when a datagram arrived.
STAMPS = 35 if sys.platform == "linux" else None


class Medium:
    """A medium of a session description (RFC 4566, 5.14) and how its packets are said to be."""

    def __init__(self, text, base):
        self.text, self.base = text, base
        said = re.search(r"(?m)^a=rtpmap:(\d+) ([^/\s]+)/(\d+)(?:/(\d+))?", text)
        self.payload_type, self.encoding = (int(said[1]), said[2]) if said else (None, "")
        self.rate, self.channels = (int(said[3]), int(said[4] or 1)) if said else (0, 0)
        format_line = re.search(r"(?m)^a=fmtp:\d+ (.*?)\r?$", text)
        pairs = (p.strip().split("=", 1) for p in (format_line[1] if format_line else "").split(";") if "=" in p)
        # Some write the names with capitals, and they mean the same (RFC 3640, 4.1).
        self.format = {name.lower(): value for name, value in pairs}
        control = re.search(r"(?m)^a=control:(.*?)\r?$", text)
        self.control = control[1].strip() if control else "*"
        self.url = self.resolve(self.control)

    def resolve(self, control):
        """RFC 2326, C.1.1."""
        if control == "*":
            return self.base
        if re.match(r"rtsps?://", control, re.IGNORECASE):
            return control
        return self.base + ("" if self.base.endswith("/") else "/") + control


class Track(Medium):
    """The first H.264 track of a session description (RFC 4566); `sound` is the first medium of sound beside it, or None."""

    def __init__(self, response, target):
        if response.status != 200:
            raise Unmet(f"DESCRIBE was answered with {response}")
        self.description = response.body.decode("utf-8", "replace")
        base = response.get("Content-Base") or response.get("Content-Location") or target.url
        media = re.split(r"(?m)^(?=m=)", self.description)
        found = next((m for m in media[1:] if m.startswith("m=video") and re.search(r"a=rtpmap:\d+ H264/90000", m)), None)
        if not found:
            raise Unmet("the description has no track a=rtpmap:… H264/90000")
        super().__init__(found, base)
        self.session_lines = media[0]
        self.sound = next((Medium(m, base) for m in media[1:] if m.startswith("m=audio")), None)

    @property
    def parameter_sets(self):
        """What `sprop-parameter-sets` has, as bytes."""
        return [base64.b64decode(text) for text in self.format.get("sprop-parameter-sets", "").split(",") if text]


class Session:
    """A session that was set up on a connection."""

    def __init__(self, connection, track, transport, headers=(), url=None):
        self.connection, self.track = connection, track
        self.response = connection.ask("SETUP", url or track.url, [("Transport", transport), *headers])
        if self.response.status != 200:
            raise Unmet(f"SETUP with '{transport}' was answered with {self.response}")
        self.header = self.response.get("Session", "")
        self.id = self.header.split(";")[0].strip()
        timeout = re.search(r"timeout=(\d+)", self.header)
        self.timeout = int(timeout[1]) if timeout else 60
        self.transport = self.response.get("Transport", "")
        self.channels = pair_in(self.transport, "interleaved")
        self.sound_transport, self.sound_channels = None, None

    def add_sound(self, transport, headers=(), url=None):
        """Sets the sound up as well, in the same session."""
        response = self.ask("SETUP", [("Transport", transport), *headers], url or self.track.sound.url)
        if response.status != 200:
            raise Unmet(f"SETUP of the sound with '{transport}' was answered with {response}")
        id = response.get("Session", "").split(";")[0].strip()
        if id != self.id:
            raise Unmet(f"SETUP of the sound in session '{self.id}' was answered with session '{id}'")
        self.sound_transport = response.get("Transport", "")
        self.sound_channels = pair_in(self.sound_transport, "interleaved")
        return response

    def ask(self, method, headers=(), url=None, body=b""):
        return self.connection.ask(method, url or self.track.base, [("Session", self.id), *headers], body)

    def play(self, headers=(("Range", "npt=0.000-"),), url=None):
        response = self.ask("PLAY", headers, url)
        if response.status != 200:
            raise Unmet(f"PLAY was answered with {response}")
        return response

    def plays(self):
        """Demands that RTP comes on the connection, of each medium that was set up there."""
        missing = {pair[0] for pair in (self.channels, self.sound_channels) if pair}
        deadline = deadline_in()
        while missing:
            item = self.connection.item(max(deadline - time.monotonic(), 0))
            if item is None:
                raise Unmet(f"no RTP packet came within {wire.PATIENCE:g} s of PLAY on channel {', '.join(map(str, sorted(missing)))}")
            missing.discard(getattr(item, "channel", None))

    def first_frame(self, channel=None):
        """The first RTP packet of the medium that was set up first, or of another channel; None where none comes."""
        channel = self.channels[0] if channel is None else channel
        return next((frame for frame in self.connection.brings([channel]) if frame.channel == channel), None)


def pair_in(transport, name):
    """The two numbers of `interleaved=0-1`, `server_port=…` and the like in a Transport header, or None."""
    pair = re.search(rf"\b{name}=(\d+)-(\d+)", transport)
    return (int(pair[1]), int(pair[2])) if pair else None


def describe(connection, headers=(("Accept", "application/sdp"),)):
    return Track(connection.ask("DESCRIBE", None, headers), connection.target)


def over_tcp(connection, transport="RTP/AVP/TCP;unicast;interleaved=0-1"):
    """A session over the connection, set up and not yet playing."""
    return Session(connection, describe(connection), transport)


def everything(connection, track, ports=None, headers=()):
    """A session of all media, as players set them up: pictures and, where there is any, the sound; with these ports over UDP."""
    session = Session(connection, track, ports.transport if ports else "RTP/AVP/TCP;unicast;interleaved=0-1", headers)
    if track.sound:
        session.add_sound(ports.for_sound().transport if ports else "RTP/AVP/TCP;unicast;interleaved=2-3", headers)
    return session


class PortPair:
    """Two UDP sockets that follow each other, RTP on the even one (RFC 3550, 11)."""

    def __init__(self, target):
        self.target, self.sound = target, None
        family = socket.getaddrinfo(target.host, None)[0][0]
        for port in range(40_000 + 2 * (time.monotonic_ns() // 1000 % 8000), 65_000, 2):
            self.rtp, self.rtcp = socket.socket(family, socket.SOCK_DGRAM), socket.socket(family, socket.SOCK_DGRAM)
            try:
                self.rtp.bind(("", port))
                self.rtcp.bind(("", port + 1))
            except OSError:
                self.close()
                continue
            make_room(self.rtp, 4 << 20)
            if STAMPS:
                self.rtp.setsockopt(socket.SOL_SOCKET, STAMPS, 1)
                self.rtcp.setsockopt(socket.SOL_SOCKET, STAMPS, 1)
            self.port = port
            return
        raise OSError("no pair of UDP ports is free")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.rtp.close()
        self.rtcp.close()
        if self.sound:
            self.sound.close()

    def for_sound(self):
        """A further pair for a session's sound, closed with this one."""
        self.sound = PortPair(self.target)
        return self.sound

    @property
    def transport(self):
        return f"RTP/AVP;unicast;client_port={self.port}-{self.port + 1}"

    def receive(self, seconds):
        """All datagrams of this time, and what else has come by its end: (is RTCP, bytes, arrival, the sender's port)."""
        return list(self.arrivals(seconds))

    def comes(self, count=1, since=0.0):
        """Whether so many RTP packets come that arrived at this time or later; returns as soon as they have."""
        for is_control, _, at, _ in self.arrivals(wire.PATIENCE):
            count -= not is_control and at >= since
            if count <= 0:
                return True
        return False

    def arrivals(self, seconds):
        """The same as `receive`, one by one as they come."""
        deadline, offset = deadline_in(seconds), wall_clock_offset()
        # Not select(2), which ends at descriptor 1023: rules of crowds run beside this one.
        with selectors.PollSelector() as poller:
            for port in (self.rtp, self.rtcp):
                poller.register(port, selectors.EVENT_READ)
            while ready := poller.select(max(deadline - time.monotonic(), 0)):
                for key, _ in ready:
                    data, at, sender = self.take(key.fileobj, offset)
                    yield key.fileobj is self.rtcp, data, at, sender[1]

    @staticmethod
    def take(port, offset):
        """A datagram, its arrival in monotonic time, and the sender. By the kernel's clock where it tells: a busy machine looks late."""
        if STAMPS:
            data, more, _, sender = port.recvmsg(65536, socket.CMSG_SPACE(16))
            for level, kind, stamp in more:
                if (level, kind) == (socket.SOL_SOCKET, STAMPS) and len(stamp) == 16:
                    seconds, nanoseconds = struct.unpack("qq", stamp)
                    return data, seconds + nanoseconds / 1e9 + offset, sender
        else:
            data, sender = port.recvfrom(65536)
        return data, time.monotonic(), sender


def make_room(port, size):
    """A receive buffer of this size; beyond the system's limit where that is allowed."""
    port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    if sys.platform == "linux":
        try:
            # SO_RCVBUFFORCE
            port.setsockopt(socket.SOL_SOCKET, 33, size)
        except OSError:
            pass


def wall_clock_offset():
    """Monotonic time less wall-clock time, by the quickest of a few looks at both."""
    looks = []
    for _ in range(5):
        before, wall, after = time.monotonic(), time.time(), time.monotonic()
        looks.append((after - before, (before + after) / 2 - wall))
    return min(looks)[1]
