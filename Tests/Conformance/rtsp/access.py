# SPDX-License-Identifier: Apache-2.0
"""Who may play: rules for a server that demands a password. Without a user in the URL they say nothing."""

from copy import copy

from rules import NotApplicable, demand, demand_status, rule
from session import over_tcp


def access(name, level, what, source):
    def register(check):
        def guarded(target):
            if target.user is None:
                raise NotApplicable("no user is named in the URL")
            with target.connect() as c:
                return check(target, c)
        rule("access", name, level, what, source)(guarded)
        return check
    return register


def challenge(c):
    c.send(c.line("DESCRIBE"))
    return c.response()


@access("options", "must", "OPTIONS needs no password", "every client asks it first")
def _(target, c):
    c.send(c.line("OPTIONS"))
    return demand_status(c.response(), 200)


@access("challenge", "must", "DESCRIBE without a password is 401 with a challenge", "RFC 2326, 7.1.1 and 12.44")
def _(target, c):
    response = challenge(c)
    demand_status(response, 401)
    demand(response.get("WWW-Authenticate", "").split(" ")[0] in ("Digest", "Basic"), f"it says '{response.get('WWW-Authenticate')}'")
    return response.get("WWW-Authenticate")


@access("challenge-order", "must", "A Digest challenge begins with realm and nonce", "live555 reads no other order")
def _(target, c):
    from personas import live555_challenge
    live555_challenge(challenge(c))


@access("stays-open", "should", "The connection stays after 401", "live555 and FFmpeg go on with it")
def _(target, c):
    challenge(c)
    return demand_status(c.ask("DESCRIBE"), 200)


@access("wrong", "must", "A wrong password is 401, a right one then plays", "RFC 2326, 7.1.1 and 12.44")
def _(target, c):
    c.challenge = challenge(c).get("WWW-Authenticate", "")
    c.target = copy(target)
    c.target.password = "wrong"
    c.send(c.line("DESCRIBE"))
    demand_status(c.response(), 401)
    with target.connect() as other:
        session = over_tcp(other)
        session.play()
        session.plays()


@access("session", "must", "A session's id alone is no password on another connection", "security")
def _(target, c):
    session = over_tcp(c)
    with target.connect() as other:
        other.send(other.line("PLAY", session.track.base, [("Session", session.id)]))
        return demand_status(other.response(), 401)


@access("stale", "should", "A nonce of another connection is stale: the next answer is taken", "RFC 2069, 2.1.1")
def _(target, c):
    with target.connect() as other:
        c.challenge = challenge(other).get("WWW-Authenticate", "")
    c.send(c.line("DESCRIBE"))
    response = c.response()
    if response.status == 200:
        return "it is taken"
    demand_status(response, 401)
    c.challenge = response.get("WWW-Authenticate", "")
    return demand_status(c.ask("DESCRIBE"), 200) + ", " + ("said to be stale" if "stale" in response.get("WWW-Authenticate", "").lower() else "not said to be stale")
