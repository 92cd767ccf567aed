# SPDX-License-Identifier: Apache-2.0
"""One RTSP connection over a plain socket: bytes out, answers and interleaved frames in.

Nothing here corrects what it is told to send: a transcript says every byte that matters. Standard library only.
"""

import base64
import hashlib
import re
import socket
import ssl
import time
from urllib.parse import unquote, urlsplit

# Longest wait for what must come, seconds: a server that takes longer has failed. `--patience` sets it.
PATIENCE = 5.0


def deadline_in(seconds=None):
    """The monotonic time when so many seconds are over, or the patience."""
    return time.monotonic() + (PATIENCE if seconds is None else seconds)


class Unmet(Exception):
    """The server did not do what the rule asks; the text says what it did."""


class Response:
    def __init__(self, version, status, reason, headers, body):
        self.version, self.status, self.reason, self.headers, self.body = version, status, reason, headers, body

    def get(self, name, default=None):
        """The value of the first field of this name."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), default)

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def __str__(self):
        return f"{self.status} {self.reason}"


class Frame:
    """An interleaved frame (RFC 2326, 10.12) and when it came."""

    def __init__(self, channel, payload, at):
        self.channel, self.payload, self.at = channel, payload, at


class Target:
    """The server under test: rtsp[s]://[user:password@]host[:port]/path[?query]."""

    def __init__(self, url):
        parts = urlsplit(url)
        if parts.scheme not in ("rtsp", "rtsps") or not parts.hostname:
            raise ValueError(f"'{url}' is no URL of a stream. Write it as rtsp://host:port/path.")
        self.is_secure = parts.scheme == "rtsps"
        self.host, self.port = parts.hostname, parts.port or (322 if self.is_secure else 554)
        self.user = unquote(parts.username) if parts.username else None
        self.password = unquote(parts.password or "")
        shown = f"[{self.host}]" if ":" in self.host else self.host
        self.root = f"{parts.scheme}://{shown}:{self.port}"
        self.url = self.root + parts.path + (f"?{parts.query}" if parts.query else "")

    def connect(self):
        return Connection(self)


class Connection:
    def __init__(self, target):
        self.target = target
        self.socket = socket.create_connection((target.host, target.port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.is_secure:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket, server_hostname=target.host)
        self.buffer = b""
        self.cseq = 0
        self.is_closed = False
        self.challenge = None
        # The URL a client signs is not always the one it asks for: see personas.
        self.signed_url = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    # Out

    def send(self, data):
        try:
            self.socket.settimeout(PATIENCE)
            self.socket.sendall(data if isinstance(data, bytes) else data.encode())
        except OSError:
            # It may close while we speak; what follows finds out.
            self.is_closed = True

    def line(self, method, url=None, headers=(), body=b"", version="RTSP/1.0"):
        """A request's bytes, with the next CSeq."""
        self.cseq += 1
        url = self.target.url if url is None else url
        fields = [("CSeq", str(self.cseq)), *headers]
        if self.challenge:
            fields.append(("Authorization", self.authorization(method, self.signed_url or url)))
        if body:
            fields.append(("Content-Length", str(len(body))))
        return (f"{method} {url} {version}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields) + "\r\n").encode() + body

    def ask(self, method, url=None, headers=(), body=b"", version="RTSP/1.0"):
        """Sends a request and waits for its answer; once more with credentials where they are demanded and known."""
        self.send(self.line(method, url, headers, body, version))
        response = self.response()
        if response.status == 401 and self.target.user is not None and not self.challenge:
            self.challenge = response.get("WWW-Authenticate", "")
            self.send(self.line(method, url, headers, body, version))
            response = self.response()
        if response.get("CSeq") not in (None, str(self.cseq)):
            raise Unmet(f"{method} with CSeq {self.cseq} was answered with CSeq {response.get('CSeq')}")
        return response

    def authorization(self, method, uri):
        """Basic, or Digest as RFC 2069 has it (RFC 2326, 12.5)."""
        user, password = self.target.user, self.target.password
        if self.challenge.lower().startswith("basic"):
            return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        named = dict(re.findall(r'(\w+)=(?:"([^"]*)"|[^,\s]+)', self.challenge))
        use = hashlib.sha256 if "sha-256" in self.challenge.lower() else hashlib.md5
        def h(text):
            return use(text.encode()).hexdigest()
        realm, nonce = named.get("realm", ""), named.get("nonce", "")
        answer = h(f"{h(f'{user}:{realm}:{password}')}:{nonce}:{h(f'{method}:{uri}')}")
        more = ', algorithm="SHA-256"' if use is hashlib.sha256 else ""
        return f'Digest username="{user}", realm="{realm}", nonce="{nonce}", uri="{uri}", response="{answer}"{more}'

    # In

    def fill(self, deadline):
        """Reads what has come, even when the time is over; False at the end of the connection, or where nothing came in time."""
        if self.is_closed:
            return False
        self.socket.settimeout(max(deadline - time.monotonic(), 0))
        try:
            data = self.socket.recv(65536)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError:
            data = b""
        self.is_closed = not data
        self.buffer += data
        return bool(data)

    def item(self, seconds=None):
        """The next answer or frame; None when none came, see `is_closed`."""
        deadline = deadline_in(seconds)
        while True:
            found = self.parse()
            if found is not None:
                return found
            if not self.fill(deadline):
                return None

    def parse(self):
        if self.buffer[:1] == b"$":
            size = int.from_bytes(self.buffer[2:4], "big")
            if len(self.buffer) < 4 + size or len(self.buffer) < 4:
                return None
            frame = Frame(self.buffer[1], self.buffer[4:4 + size], time.monotonic())
            self.buffer = self.buffer[4 + size:]
            return frame
        head, separator, rest = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return None
        lines = head.decode("utf-8", "replace").split("\r\n")
        match = re.fullmatch(r"(RTSP/\d\.\d|HTTP/\d\.\d) (\d{3}) ?(.*)", lines[0])
        if not match:
            raise Unmet(f"it said {lines[0][:60]!r}, which is neither an answer nor an interleaved frame")
        headers = [(k.strip(), v.strip()) for k, _, v in (line.partition(":") for line in lines[1:])]
        size = int(next((v for k, v in headers if k.lower() == "content-length"), 0))
        if len(rest) < size:
            return None
        self.buffer = rest[size:]
        return Response(match[1], int(match[2]), match[3], headers, rest[:size])

    def response(self, seconds=None):
        """The next answer; frames before it are left out."""
        seconds = PATIENCE if seconds is None else seconds
        deadline = deadline_in(seconds)
        while True:
            found = self.item(max(deadline - time.monotonic(), 0))
            if isinstance(found, Response):
                return found
            if found is None:
                raise Unmet("it closed the connection without an answer" if self.is_closed else f"no answer within {seconds:g} s")

    def frames(self, seconds):
        """All frames that come in this time."""
        deadline = deadline_in(seconds)
        found = []
        while (item := self.item(max(deadline - time.monotonic(), 0))) is not None:
            if isinstance(item, Frame):
                found.append(item)
        return found

    def brings(self, channels, count=1):
        """Frames that come until there are so many of each channel, or until the patience is over."""
        deadline = deadline_in()
        found, missing = [], {channel: count for channel in channels}
        while any(left > 0 for left in missing.values()):
            item = self.item(max(deadline - time.monotonic(), 0))
            if item is None:
                break
            if isinstance(item, Frame):
                found.append(item)
                if item.channel in missing:
                    missing[item.channel] -= 1
        return found

    def closes(self, seconds):
        """Whether the server ends the connection within this time."""
        deadline = deadline_in(seconds)
        while self.fill(deadline):
            self.buffer = b""
        return self.is_closed
