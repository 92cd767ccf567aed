# SPDX-License-Identifier: Apache-2.0
"""What no client should send: the server may refuse it or close the connection, and must serve the next one."""

import resource
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor

import wire
from rules import NotApplicable, demand, demand_status, rule
from session import describe, over_tcp
from wire import Unmet

REFUSALS = range(400, 600)


def refused(target, connection, data, *also):
    """Sends it; demands an answer of 4xx, 5xx or `also`, or the end of the connection; then asks OPTIONS on a new one."""
    connection.send(data)
    try:
        response = connection.response()
        said = str(response)
        demand(response.status in REFUSALS or response.status in also, f"answered with {response}")
    except Unmet:
        if not connection.is_closed:
            raise
        said = "closed"
    with target.connect() as other:
        demand_status(other.ask("OPTIONS"), 200)
    return said


def hostile(name, what, level="must", is_long=False):
    return rule("hostile", name, level, what, "hostile input", is_long)


@hostile("nul", "A zero byte in the request line")
def _(target):
    with target.connect() as c:
        return refused(target, c, f"OPTIONS {target.url}\0 RTSP/1.0\r\nCSeq: 1\r\n\r\n")


@hostile("no-request", "A line that is no request")
def _(target):
    with target.connect() as c:
        return refused(target, c, "what is this\r\nCSeq: 1\r\n\r\n")


@hostile("header-64k", "A header field of 64 KiB")
def _(target):
    with target.connect() as c:
        return refused(target, c, c.line("OPTIONS", headers=[("X-Long", "a" * 65536)]), 200)


@hostile("header-10k", "Ten thousand header fields")
def _(target):
    with target.connect() as c:
        return refused(target, c, c.line("OPTIONS", headers=[(f"X-{n}", "a") for n in range(10_000)]), 200)


@hostile("url-64k", "A URL of 64 KiB")
def _(target):
    with target.connect() as c:
        return refused(target, c, c.line("DESCRIBE", target.url + "a" * 65536))


@hostile("length-negative", "Content-Length: -1")
def _(target):
    with target.connect() as c:
        return refused(target, c, c.line("OPTIONS", headers=[("Content-Length", "-1")]), 200)


@hostile("length-huge", "Content-Length: 99999999999")
def _(target):
    with target.connect() as c:
        return refused(target, c, c.line("GET_PARAMETER", headers=[("Content-Length", "99999999999")]))


@hostile("cseq-huge", "A CSeq of twenty digits")
def _(target):
    with target.connect() as c:
        return refused(target, c, f"OPTIONS {target.url} RTSP/1.0\r\nCSeq: 99999999999999999999\r\n\r\n", 200)


@hostile("frame-early", "An interleaved frame before any session")
def _(target):
    with target.connect() as c:
        return refused(target, c, b"$\0\0\4abcd" + c.line("OPTIONS"), 200)


@hostile("frame-foreign", "Frames on channels nobody set up, while it plays")
def _(target):
    with target.connect() as c:
        session = over_tcp(c)
        session.play()
        for _ in range(100):
            c.send(b"$\xff\x04\x00" + b"x" * 1024)
        try:
            session.plays()
            said = "plays on"
        except Unmet:
            demand(c.is_closed, "it plays no more")
            said = "closed"
        with target.connect() as other:
            demand_status(other.ask("OPTIONS"), 200)
        return said


@hostile("http-get", "GET of HTTP, as of a tunnel or a browser, has an answer or ends")
def _(target):
    with target.connect() as c:
        said = refused(target, c, "GET /live HTTP/1.1\r\nHost: a\r\nx-sessioncookie: abc\r\nAccept: application/x-rtsp-tunnelled\r\n\r\n", 200)
        return said


@hostile("garbage", "4 KiB of noise without a line end")
def _(target):
    with target.connect() as c:
        c.send(bytes((n * 197 + 31) % 251 + 1 if (n * 197 + 31) % 251 not in (9, 12, 35) else 65 for n in range(4096)) + b"\r\n\r\n")
        try:
            said = str(c.response(2))
        except Unmet:
            said = "closed" if c.is_closed else "waits"
        with target.connect() as other:
            demand_status(other.ask("OPTIONS"), 200)
        return said


@hostile("leave-playing", "Twenty clients that leave without TEARDOWN in the middle of a packet")
def _(target):
    for _ in range(20):
        with target.connect() as c:
            session = over_tcp(c)
            session.play()
            session.plays()
    with target.connect() as c:
        session = over_tcp(c)
        session.play()
        session.plays()


@hostile("reset", "Twenty clients that reset their connection (RST)")
def _(target):
    for _ in range(20):
        with target.connect() as c:
            over_tcp(c).play()
            c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    with target.connect() as c:
        session = over_tcp(c)
        session.play()
        session.plays()


@hostile("slow-request", "A request of which a byte comes each second is cut off within 30 s", "should", is_long=True)
def _(target):
    with target.connect() as c:
        begin = time.monotonic()
        for byte in c.line("OPTIONS", headers=[("X", "a" * 100)]):
            c.send(bytes([byte]))
            if c.closes(1):
                return f"after {time.monotonic() - begin:.0f} s"
            demand(time.monotonic() - begin < 30, "it waits still after 30 s")
        raise Unmet("it took all of it")


@hostile("slow-handshake", "A TLS handshake that goes no further is cut off within 30 s", "should", is_long=True)
def _(target):
    if not target.is_secure:
        raise NotApplicable("it speaks no TLS")
    with socket.create_connection((target.host, target.port), timeout=30) as c:
        begin = time.monotonic()
        c.sendall(b"\x16\x03\x01\x02\x00\x01")
        try:
            demand(c.recv(1) == b"", "it answered half a handshake")
        except ConnectionError:
            pass
        except TimeoutError:
            raise Unmet("it waits still after 30 s") from None
        return f"after {time.monotonic() - begin:.0f} s"


@hostile("plain-to-tls", "RTSP without TLS at a port that speaks TLS")
def _(target):
    if not target.is_secure:
        raise NotApplicable("it speaks no TLS")
    with socket.create_connection((target.host, target.port), timeout=wire.PATIENCE) as c:
        c.sendall(b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n")
        try:
            while data := c.recv(4096):
                demand(not data.startswith(b"RTSP"), "it answered in the clear")
        except TimeoutError:
            raise Unmet("it neither answers nor closes") from None
        except (ConnectionError, ssl.SSLError):
            pass
    with target.connect() as other:
        return demand_status(other.ask("OPTIONS"), 200)


@hostile("many-joins", "Thirty clients that join at once all have a picture")
def _(target):
    def join(_):
        with target.connect() as c:
            session = over_tcp(c)
            session.play()
            session.plays()
            describe(c)
    # Each on a thread of its own: one after the other, those that wait for the last would be cut off on a busy machine.
    with ThreadPoolExecutor(30) as clients:
        list(clients.map(join, range(30)))


@hostile("idle", "A reader loses nothing while as many connections as may be, up to 10,000, come and stay idle", is_long=True)
def _(target):
    if target.is_secure:
        raise NotApplicable("asked in the clear")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held, frames = [], []
    with target.connect() as c:
        session = over_tcp(c)
        session.play()
        session.plays()
        try:
            while len(held) < min(10_000, hard - 200):
                held.append(socket.create_connection((target.host, target.port), timeout=wire.PATIENCE))
                if len(held) % 100 == 0:
                    frames += c.frames(0)
        except OSError:
            pass
        last = c.frames(2) + c.brings([session.channels[0]], 11)
        numbers = [int.from_bytes(f.payload[2:4], "big") for f in frames + last if f.channel == session.channels[0]]
        count = sum(f.channel == session.channels[0] for f in last)
        for s in held:
            s.close()
        demand(count > 10, f"{count} packets came when they were there")
        for a, b in zip(numbers, numbers[1:]):
            demand((b - a) & 0xffff == 1, f"packet {b} follows {a}")
    with target.connect() as other:
        demand_status(other.ask("OPTIONS"), 200)
    return f"{len(held)} connections"
