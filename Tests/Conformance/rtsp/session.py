# SPDX-License-Identifier: Apache-2.0
"""From a URL to a stream that plays: description, transports, session."""

import base64
import re
import selectors
import socket
import time

from wire import Unmet


class Track:
    """The first H.264 track of a session description (RFC 4566)."""

    def __init__(self, response, target):
        if response.status != 200:
            raise Unmet(f"DESCRIBE was answered with {response}")
        self.text = response.body.decode("utf-8", "replace")
        self.base = response.get("Content-Base") or response.get("Content-Location") or target.url
        media = re.split(r"(?m)^(?=m=)", self.text)
        found = next((m for m in media[1:] if m.startswith("m=video") and re.search(r"a=rtpmap:\d+ H264/90000", m)), None)
        if not found:
            raise Unmet("the description has no track a=rtpmap:… H264/90000")
        self.media, self.session_lines = found, media[0]
        self.payload_type = int(re.search(r"a=rtpmap:(\d+) H264", found)[1])
        format_line = re.search(r"(?m)^a=fmtp:\d+ (.*?)\r?$", found)
        self.format = dict(p.strip().split("=", 1) for p in (format_line[1] if format_line else "").split(";") if "=" in p)
        control = re.search(r"(?m)^a=control:(.*?)\r?$", found)
        self.control = control[1].strip() if control else "*"
        self.url = self.resolve(self.control)

    def resolve(self, control):
        """RFC 2326, C.1.1."""
        if control == "*":
            return self.base
        if re.match(r"rtsps?://", control, re.IGNORECASE):
            return control
        return self.base + ("" if self.base.endswith("/") else "/") + control

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
        pair = re.search(r"interleaved=(\d+)-(\d+)", self.transport)
        self.channels = (int(pair[1]), int(pair[2])) if pair else None

    def ask(self, method, headers=(), url=None, body=b""):
        return self.connection.ask(method, url or self.track.base, [("Session", self.id), *headers], body)

    def play(self, headers=(("Range", "npt=0.000-"),), url=None):
        response = self.ask("PLAY", headers, url)
        if response.status != 200:
            raise Unmet(f"PLAY was answered with {response}")
        return response

    def plays(self, seconds=5.0):
        """Demands that RTP comes on the connection."""
        if not self.first_frame(seconds):
            raise Unmet(f"no RTP packet came within {seconds:g} s of PLAY")

    def first_frame(self, seconds):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            item = self.connection.item(left)
            if item is None:
                return None
            if getattr(item, "channel", None) == self.channels[0]:
                return item
        return None


def describe(connection, headers=(("Accept", "application/sdp"),)):
    return Track(connection.ask("DESCRIBE", None, headers), connection.target)


def over_tcp(connection, transport="RTP/AVP/TCP;unicast;interleaved=0-1"):
    """A session over the connection, set up and not yet playing."""
    return Session(connection, describe(connection), transport)


class PortPair:
    """Two UDP sockets that follow each other, RTP on the even one (RFC 3550, 11)."""

    def __init__(self, target):
        family = socket.getaddrinfo(target.host, None)[0][0]
        for port in range(40_000 + 2 * (time.monotonic_ns() // 1000 % 8000), 65_000, 2):
            self.rtp, self.rtcp = socket.socket(family, socket.SOCK_DGRAM), socket.socket(family, socket.SOCK_DGRAM)
            try:
                self.rtp.bind(("", port))
                self.rtcp.bind(("", port + 1))
            except OSError:
                self.close()
                continue
            self.rtp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
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

    @property
    def transport(self):
        return f"RTP/AVP;unicast;client_port={self.port}-{self.port + 1}"

    def receive(self, seconds):
        """All datagrams of this time: (is RTCP, bytes, arrival, the sender's port)."""
        deadline = time.monotonic() + seconds
        found = []
        # Not select(2), which ends at descriptor 1023: rules of crowds run beside this one.
        with selectors.PollSelector() as poller:
            for port in (self.rtp, self.rtcp):
                poller.register(port, selectors.EVENT_READ)
            while (left := deadline - time.monotonic()) > 0:
                for key, _ in poller.select(left):
                    data, sender = key.fileobj.recvfrom(65536)
                    found.append((key.fileobj is self.rtcp, data, time.monotonic(), sender[1]))
        return found
