# SPDX-License-Identifier: Apache-2.0
"""RTSP through HTTP (Apple's "Tunnelling RTSP and RTP over HTTP"): a GET on which the server speaks, a POST on which the client does, in Base64."""

import base64
import time
import uuid

from personas import LIVE555
from rules import NotApplicable, demand, demand_status, rule
from session import Session, describe, everything
from wire import Connection, Unmet

MEDIA_TYPE = "application/x-rtsp-tunnelled"


def head(target, method, cookie, *more):
    path = "/" + target.url.partition("://")[2].partition("/")[2]
    fields = [("x-sessioncookie", cookie), ("Pragma", "no-cache"), ("Cache-Control", "no-cache"), *more]
    return f"{method} {path} HTTP/1.0\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields) + "\r\n"


class Tunnel(Connection):
    """The connection of the GET, which says what it is told on that of a POST."""

    def __init__(self, target, step=None, gap=0.0):
        super().__init__(target)
        self.cookie = uuid.uuid4().hex[:22]
        self.step, self.gap = step, gap
        self.post = None
        super().send(head(target, "GET", self.cookie, ("User-Agent", "tunnel"), ("Accept", MEDIA_TYPE)))
        response = self.response()
        if response.status in (400, 404, 405, 501):
            raise NotApplicable(f"the server has no tunnel: {response}")
        demand_status(response, 200)
        demand(response.get("Content-Type") == MEDIA_TYPE, f"the answer to GET has Content-Type '{response.get('Content-Type')}'")
        self.open_post()

    def open_post(self):
        if self.post:
            self.post.socket.close()
        self.post = self.target.connect()
        self.post.send(head(self.target, "POST", self.cookie, ("Content-Type", MEDIA_TYPE), ("Content-Length", "32767")))

    def send(self, data):
        coded = base64.b64encode(data if isinstance(data, bytes) else data.encode())
        step = self.step or len(coded)
        for start in range(0, len(coded), step):
            self.post.send(coded[start:start + step])
            time.sleep(self.gap)

    def __exit__(self, *_):
        self.post.socket.close()
        self.socket.close()


def tunnel(name, what, level="should", is_long=False):
    return rule("tunnel", name, level, what, "Apple, Tunnelling RTSP over HTTP", is_long)


def dialogue(c, headers=()):
    session = everything(c, describe(c, [*headers, ("Accept", "application/sdp")]), headers=headers)
    session.play([*headers, ("Range", "npt=0.000-")])
    session.plays()
    demand_status(session.ask("GET_PARAMETER", headers), 200)
    demand_status(session.ask("TEARDOWN", headers), 200)


@tunnel("plays", "A GET and a POST of one cookie play as one connection does")
def _(target):
    with Tunnel(target) as c:
        dialogue(c)


@tunnel("openrtsp", "openRTSP -T: User-Agent of live555, OPTIONS first")
def _(target):
    with Tunnel(target) as c:
        demand_status(c.ask("OPTIONS", headers=[LIVE555]), 200)
        dialogue(c, [LIVE555])


@tunnel("split", "Base64 that is cut in the middle of its groups of four")
def _(target):
    with Tunnel(target, step=21, gap=0.001) as c:
        dialogue(c)


@tunnel("another-post", "QuickTime ends its POST and goes on with another")
def _(target):
    with Tunnel(target) as c:
        session = Session(c, describe(c), "RTP/AVP/TCP;unicast;interleaved=0-1")
        session.play()
        session.plays()
        c.open_post()
        demand_status(session.ask("TEARDOWN"), 200)


@tunnel("post-alone", "A POST whose cookie nobody has is refused or closed")
def _(target):
    with target.connect() as c:
        c.send(head(target, "POST", uuid.uuid4().hex, ("Content-Type", MEDIA_TYPE), ("Content-Length", "32767")))
        try:
            response = c.response()
            demand(400 <= response.status < 600, f"answered with {response}")
            return str(response)
        except Unmet:
            if not c.is_closed:
                raise
            return "closed"


@tunnel("get-alone", "A GET whose POST does not come is ended within a minute", is_long=True)
def _(target):
    with target.connect() as c:
        c.send(head(target, "GET", uuid.uuid4().hex, ("Accept", MEDIA_TYPE)))
        if c.response().status != 200:
            raise NotApplicable("the server has no tunnel")
        begin = time.monotonic()
        demand(c.closes(60), "the connection is still open after 60 s")
        return f"{time.monotonic() - begin:.0f} s"


@tunnel("get-twice", "Both requests on one connection end nobody else's service")
def _(target):
    cookie = uuid.uuid4().hex
    with target.connect() as c:
        c.send(head(target, "GET", cookie, ("Accept", MEDIA_TYPE)) + head(target, "POST", cookie, ("Content-Length", "32767")))
        c.send(b"A" * 5000)
        c.fill(time.monotonic() + 1)
    with target.connect() as other:
        demand_status(other.ask("OPTIONS"), 200)
