# SPDX-License-Identifier: Apache-2.0
"""Requests and the answers RFC 2326 asks for."""

import re
import time

from rules import NotApplicable, demand, demand_status, rule
from session import PortPair, Session, describe, over_tcp

TCP = "RTP/AVP/TCP;unicast;interleaved=0-1"

# Messages


@rule("message", "options", "must", "OPTIONS names the methods in Public", "RFC 2326, 10.1")
def _(target):
    with target.connect() as c:
        response = c.ask("OPTIONS")
        demand_status(response, 200)
        offered = {m.strip() for m in response.get("Public", "").split(",")}
        missing = {"DESCRIBE", "SETUP", "PLAY", "TEARDOWN"} - offered
        demand(not missing, f"Public has no {', '.join(sorted(missing))}")
        return response.get("Public")


@rule("message", "options-star", "must", "OPTIONS * is answered", "RFC 2326, 10.1; Media Foundation")
def _(target):
    with target.connect() as c:
        return demand_status(c.ask("OPTIONS", "*"), 200)


@rule("message", "public-get-parameter", "must", "Public lists GET_PARAMETER, FFmpeg's sign of life", "FFmpeg")
def _(target):
    with target.connect() as c:
        demand("GET_PARAMETER" in c.ask("OPTIONS").get("Public", ""), "Public has no GET_PARAMETER")


@rule("message", "cseq", "must", "CSeq is given back, a large one too", "RFC 2326, 12.17")
def _(target):
    with target.connect() as c:
        c.cseq = 2_147_483_645
        demand_status(c.ask("OPTIONS"), 200)


@rule("message", "cseq-missing", "must", "A request without CSeq is 400", "RFC 2326, 12.17")
def _(target):
    with target.connect() as c:
        c.send(f"OPTIONS {target.url} RTSP/1.0\r\n\r\n")
        return demand_status(c.response(), 400)


@rule("message", "version-2", "must", "RTSP/2.0, another protocol, is 505 or answered in it", "RFC 2326, 7.1.1; RFC 7826")
def _(target):
    with target.connect() as c:
        response = c.ask("OPTIONS", version="RTSP/2.0")
        if response.version == "RTSP/2.0" and response.status == 200:
            return "it speaks RTSP 2.0"
        return demand_status(response, 505)


@rule("message", "method-unknown", "must", "A method nobody knows is 501", "RFC 2326, 10")
def _(target):
    with target.connect() as c:
        return demand_status(c.ask("DANCE"), 501, 405)


@rule("message", "method-record", "must", "RECORD at a server that only plays is refused", "RFC 2326, D.2")
def _(target):
    with target.connect() as c:
        return demand_status(c.ask("RECORD", headers=[("Session", "12345678")]), 405, 454, 455, 501)


@rule("message", "require", "must", "An option nobody knows is 551, and named in Unsupported", "RFC 2326, 12.32 and 11.3.14")
def _(target):
    with target.connect() as c:
        response = c.ask("DESCRIBE", headers=[("Require", "org.example.nonsense")])
        demand_status(response, 551)
        demand("org.example.nonsense" in response.get("Unsupported", ""), f"Unsupported is '{response.get('Unsupported')}'")


@rule("message", "header-case", "must", "Names of header fields are read without regard to case", "RFC 2326, 4.2")
def _(target):
    with target.connect() as c:
        c.send(f"OPTIONS {target.url} RTSP/1.0\r\ncSEQ: 7\r\n\r\n")
        response = c.response()
        demand_status(response, 200)
        demand(response.get("CSeq") == "7", f"CSeq is {response.get('CSeq')}")


@rule("message", "header-folding", "must", "A header field may go on in the next line", "RFC 2326, 4.2")
def _(target):
    with target.connect() as c:
        c.send(f"OPTIONS {target.url} RTSP/1.0\r\nCSeq:\r\n 7\r\nUser-Agent: a\r\n\tb\r\n\r\n")
        response = c.response()
        demand_status(response, 200)
        demand(response.get("CSeq") == "7", f"CSeq is {response.get('CSeq')}")


@rule("message", "header-unknown", "must", "Unknown header fields are left alone", "RFC 2326, 4.2")
def _(target):
    with target.connect() as c:
        return demand_status(c.ask("OPTIONS", headers=[("X-Nonsense", "\"a;b,c=d"), ("x-empty", "")]), 200)


@rule("message", "line-ends", "should", "LF alone ends a line", "RFC 2326, 4")
def _(target):
    with target.connect() as c:
        c.send(f"OPTIONS {target.url} RTSP/1.0\nCSeq: 1\n\n")
        return demand_status(c.response(), 200)


@rule("message", "empty-lines", "should", "Empty lines before a request are skipped", "RFC 2068, 4.1")
def _(target):
    with target.connect() as c:
        c.send("\r\n\r\n")
        return demand_status(c.ask("OPTIONS"), 200)


@rule("message", "pipelining", "must", "Three requests at once are answered in their order", "RFC 2326, 9.1")
def _(target):
    with target.connect() as c:
        c.send(c.line("OPTIONS") + c.line("OPTIONS") + c.line("OPTIONS"))
        order = [c.response().get("CSeq") for _ in range(3)]
        demand(order == ["1", "2", "3"], f"the answers came in the order {', '.join(order)}")


@rule("message", "single-bytes", "must", "A request may come byte after byte", "TCP")
def _(target):
    with target.connect() as c:
        for byte in c.line("OPTIONS"):
            c.send(bytes([byte]))
        return demand_status(c.response(), 200)


@rule("message", "response-ignored", "should", "An answer nobody asked for does no harm", "hostile input")
def _(target):
    with target.connect() as c:
        c.send("RTSP/1.0 200 OK\r\nCSeq: 99\r\n\r\n")
        return demand_status(c.ask("OPTIONS"), 200)


@rule("message", "half-close", "should", "Who closes its sending side is still answered", "TCP")
def _(target):
    import socket
    with target.connect() as c:
        if target.is_secure:
            raise NotApplicable("over TLS that is the end of the connection")
        c.send(c.line("OPTIONS"))
        c.socket.shutdown(socket.SHUT_WR)
        return demand_status(c.response(), 200)


# Description


@rule("describe", "describe", "must", "DESCRIBE gives application/sdp with an H.264 track", "RFC 2326, 10.2")
def _(target):
    with target.connect() as c:
        response = c.ask("DESCRIBE", headers=[("Accept", "application/sdp")])
        demand_status(response, 200)
        kind = response.get("Content-Type", "")
        demand(kind.split(";")[0].strip() == "application/sdp", f"Content-Type is '{kind}'")
        return describe(c).url


@rule("describe", "not-found", "must", "A path without a stream is 404", "RFC 2326, 7.1.1")
def _(target):
    with target.connect() as c:
        return demand_status(c.ask("DESCRIBE", target.root + "/no/such/stream"), 404)


@rule("describe", "sdp-lines", "must", "The description has v, o, s and t in their order, and lines end with CR LF", "RFC 4566, 5")
def _(target):
    with target.connect() as c:
        text = describe(c).description
        demand("\n" not in text.replace("\r\n", ""), "a line ends with LF alone")
        kinds = "".join(line[0] for line in text.split("\r\n") if line)
        demand(re.match(r"vos[iuepcb]*t", kinds), f"the lines are {kinds}")


@rule("describe", "sdp-control", "must", "The track has a control URL below the base", "RFC 2326, C.1.1")
def _(target):
    with target.connect() as c:
        track = describe(c)
        demand(re.match(r"rtsps?://", track.url, re.IGNORECASE), f"it leads to '{track.url}'")
        return track.url


@rule("describe", "sdp-h264", "must", "The track has packetization-mode, profile-level-id and parameter sets that agree", "RFC 6184, 8.1")
def _(target):
    with target.connect() as c:
        track = describe(c)
        demand(track.format.get("packetization-mode", "0") in ("0", "1"), "packetization-mode is neither 0 nor 1")
        sets = track.parameter_sets
        demand([s[0] & 31 for s in sets] == [7, 8], f"sprop-parameter-sets has NAL units of the types {[s[0] & 31 for s in sets]}")
        level = track.format.get("profile-level-id", "").lower()
        demand(level == sets[0][1:4].hex(), f"profile-level-id is '{level}', the SPS says {sets[0][1:4].hex()}")
        return level


@rule("describe", "sdp-multicast", "must", "No multicast address stands in c=", "VLC goes to multicast then")
def _(target):
    with target.connect() as c:
        for address in re.findall(r"(?m)^c=IN IP[46] (\S+)", describe(c).description):
            first = address.split(".")[0]
            demand(not (address.lower().startswith("ff") or first.isdigit() and 224 <= int(first) < 240), f"c= has {address}")


@rule("describe", "url-other-host", "should", "A URL with another name of this server is the same stream", "port forwarding")
def _(target):
    with target.connect() as c:
        return demand_status(c.ask("DESCRIBE", target.url.replace(target.root, "rtsp://camera.example:8080", 1)), 200)


@rule("describe", "url-slash", "should", "A slash at the end changes nothing", "live555, FFmpeg")
def _(target):
    with target.connect() as c:
        return demand_status(c.ask("DESCRIBE", target.url + "/"), 200)


# SETUP


@rule("setup", "session-id", "must", "A session's id is eight characters or more", "RFC 2326, 3.4")
def _(target):
    with target.connect() as c:
        id = over_tcp(c).id
        demand(len(id) >= 8, f"it is '{id}'")
        return f"{len(id)} characters"


@rule("setup", "session-alphabet", "should", "It has letters and digits alone", "VLC strips $, dashes confuse some")
def _(target):
    with target.connect() as c:
        id = over_tcp(c).id
        demand(re.fullmatch("[0-9A-Za-z]+", id), f"it is '{id}'")


@rule("setup", "tcp", "must", "Transport names the one that was chosen, with its channels", "RFC 2326, 12.39; FFmpeg")
def _(target):
    with target.connect() as c:
        session = over_tcp(c)
        demand(session.transport.upper().startswith("RTP/AVP/TCP") and "," not in session.transport, f"it is '{session.transport}'")
        demand(session.channels == (0, 1), f"the channels are {session.channels}")
        return session.transport


@rule("setup", "udp", "must", "Transport has the server's ports, an even one and the next", "RFC 2326, 12.39; RFC 3550, 11")
def _(target):
    if target.is_secure:
        raise NotApplicable("over TLS packets travel on the connection")
    with target.connect() as c, PortPair(target) as ports:
        reply = Session(c, describe(c), ports.transport).transport
        demand(f"client_port={ports.port}-{ports.port + 1}" in reply and "," not in reply, f"it is '{reply}'")
        pair = re.search(r"server_port=(\d+)-(\d+)", reply)
        demand(pair and int(pair[1]) % 2 == 0 and int(pair[2]) == int(pair[1]) + 1, f"it is '{reply}'")
        return reply


@rule("setup", "transport-list", "must", "The first usable of several transports is chosen", "RFC 2326, 12.39")
def _(target):
    with target.connect() as c:
        session = over_tcp(c, "RAW/RAW/UDP;unicast,RTP/AVP/TCP;unicast;interleaved=0-1")
        return session.transport


@rule("setup", "transport-unknown", "must", "A transport nobody knows is 461", "RFC 2326, 11.3.12; FFmpeg then tries TCP")
def _(target):
    with target.connect() as c:
        track = describe(c)
        return demand_status(c.ask("SETUP", track.url, [("Transport", "RAW/RAW/UDP;unicast;client_port=4000-4001")]), 461)


@rule("setup", "transport-missing", "must", "SETUP without Transport is refused", "RFC 2326, 12.39")
def _(target):
    with target.connect() as c:
        track = describe(c)
        return demand_status(c.ask("SETUP", track.url), 400, 461)


@rule("setup", "port-0", "must", "UDP port 0 is refused", "hostile input")
def _(target):
    with target.connect() as c:
        track = describe(c)
        return demand_status(c.ask("SETUP", track.url, [("Transport", "RTP/AVP;unicast;client_port=0-1")]), 400, 461)


@rule("setup", "channel-255", "must", "Channels 255 and 256 are refused or replaced by others", "hostile input")
def _(target):
    with target.connect() as c:
        track = describe(c)
        response = c.ask("SETUP", track.url, [("Transport", "RTP/AVP/TCP;unicast;interleaved=255-256")])
        demand(response.status in (400, 461) or response.status == 200 and "256" not in response.get("Transport", ""),
               f"answered with {response} and '{response.get('Transport')}'")
        return f"{response} {response.get('Transport', '')}".strip()


@rule("setup", "twice", "must", "A second SETUP of the session is a change of transport or refused; the session plays", "RFC 2326, 10.4")
def _(target):
    with target.connect() as c:
        session = over_tcp(c)
        again = session.ask("SETUP", [("Transport", "RTP/AVP/TCP;unicast;interleaved=2-3")], session.track.url)
        demand(again.status == 200 or 400 <= again.status < 500, f"answered with {again}")
        if again.status == 200:
            pair = re.search(r"interleaved=(\d+)-(\d+)", again.get("Transport", ""))
            session.channels = (int(pair[1]), int(pair[2]))
        session.play()
        session.plays()
        return str(again)


@rule("setup", "same-channels", "must", "A second session on the connection has channels of its own", "RFC 2326, 10.12")
def _(target):
    with target.connect() as c:
        first, track = over_tcp(c), describe(c)
        second = c.ask("SETUP", track.url, [("Transport", TCP)])
        if second.status != 200:
            demand(400 <= second.status < 500, f"answered with {second}")
            return str(second)
        pair = re.search(r"interleaved=(\d+)-(\d+)", second.get("Transport", ""))
        ended = second.get("Session", "").split(";")[0] == first.id or first.ask("GET_PARAMETER").status == 454
        demand(ended or pair and int(pair[1]) not in first.channels, f"both have the channels {pair and pair[0]}")
        return second.get("Transport")


# PLAY and what follows


@rule("play", "play", "must", "PLAY answers with Session and lets RTP flow", "RFC 2326, 10.5")
def _(target):
    with target.connect() as c:
        session = over_tcp(c)
        response = session.play()
        demand(response.get("Session", "").split(";")[0] == session.id, f"Session is '{response.get('Session')}'")
        session.plays()


@rule("play", "response-first", "must", "The answer to PLAY comes before the first frame", "gortsplib")
def _(target):
    from wire import Response
    with target.connect() as c:
        session = over_tcp(c)
        c.send(c.line("PLAY", session.track.base, [("Session", session.id)]))
        demand(isinstance(c.item(), Response), "an interleaved frame came first")


@rule("play", "rtp-info", "should", "RTP-Info has the track's URL, and seq and rtptime of the first packet where it has them", "RFC 2326, 12.33")
def _(target):
    with target.connect() as c:
        session = over_tcp(c)
        info = session.play().get("RTP-Info")
        demand(info, "there is no RTP-Info")
        url = re.search(r"url=\"?([^;,\"]+)", info)
        demand(url and url[1].rstrip("/") == session.track.url.rstrip("/"), f"it is '{info}'")
        first = session.first_frame()
        demand(first, "no packet came")
        for name, have in (("seq", int.from_bytes(first.payload[2:4], "big")), ("rtptime", int.from_bytes(first.payload[4:8], "big"))):
            said = re.search(name + r"=(\d+)", info)
            demand(not said or int(said[1]) == have, f"{name} is said to be {said and said[1]}, and is {have}")
        return info


@rule("play", "range-live", "must", "npt=now-, npt=0.000- and no Range at all play", "RFC 2326, 12.29")
def _(target):
    for text in ("npt=now-", "npt=0.000-", "npt=0-", None):
        with target.connect() as c:
            session = over_tcp(c)
            response = session.ask("PLAY", [("Range", text)] if text else [])
            demand(response.status == 200, f"Range '{text}' was answered with {response}")
            session.plays()


@rule("play", "range-foreign", "should", "A time that a live stream does not have: it plays from now and says so, or 457, 456", "RFC 2326, 11.3.7 and 11.3.8")
def _(target):
    with target.connect() as c:
        response = over_tcp(c).ask("PLAY", [("Range", "npt=1000-2000")])
        demand_status(response, 200, 457, 456)
        said = response.get("Range")
        demand(response.status != 200 or said is None or not said.replace(" ", "").startswith("npt=1000"), f"it claims to play '{said}'")
        return f"{response}, Range {said}"


@rule("play", "range-nonsense", "must", "A Range that is none is refused, or left alone", "RFC 2326, 12.29")
def _(target):
    with target.connect() as c:
        return demand_status(over_tcp(c).ask("PLAY", [("Range", "apples=3-")]), 200, 400, 457, 501)


@rule("play", "session-unknown", "must", "PLAY and TEARDOWN of a session that is none are 454", "RFC 2326, 11.3.5")
def _(target):
    with target.connect() as c:
        track = describe(c)
        for method in ("PLAY", "TEARDOWN"):
            response = c.ask(method, track.base, [("Session", "0123456789abcdef")])
            demand(response.status == 454, f"{method} was answered with {response}")


@rule("play", "session-missing", "must", "PLAY without a session is refused", "RFC 2326, 10.5")
def _(target):
    with target.connect() as c:
        return demand_status(c.ask("PLAY", describe(c).base), 400, 454, 455)


@rule("play", "session-foreign", "should", "Another connection cannot end a session whose packets travel on this one", "security")
def _(target):
    with target.connect() as c, target.connect() as other:
        session = over_tcp(c)
        session.play()
        response = other.ask("TEARDOWN", session.track.base, [("Session", session.id)])
        demand_status(response, 454, 403, 455)
        session.plays()
        return str(response)


@rule("play", "twice", "must", "PLAY while it plays changes nothing", "RFC 2326, 10.5")
def _(target):
    with target.connect() as c:
        session = over_tcp(c)
        session.play()
        demand_status(session.ask("PLAY"), 200)
        session.plays()


@rule("play", "pause-state", "should", "PAUSE of what does not play is 455", "RFC 2326, A.2")
def _(target):
    with target.connect() as c:
        return demand_status(over_tcp(c).ask("PAUSE"), 455)


@rule("play", "pause", "must", "PAUSE ends the packets, PLAY brings them again", "RFC 2326, 10.6")
def _(target):
    with target.connect() as c:
        session = over_tcp(c)
        session.play()
        session.plays()
        demand_status(session.ask("PAUSE"), 200)
        c.frames(0.3)
        late = [f for f in c.frames(0.5) if f.channel == session.channels[0]]
        demand(not late, f"{len(late)} packets came 0.3 s after PAUSE and later")
        session.play(headers=())
        session.plays()


@rule("play", "teardown", "must", "TEARDOWN ends the session and not the connection", "RFC 2326, 10.7")
def _(target):
    with target.connect() as c:
        session = over_tcp(c)
        session.play()
        session.plays()
        demand_status(session.ask("TEARDOWN"), 200)
        response = session.ask("PLAY")
        demand(response.status == 454, f"PLAY was then answered with {response}")
        return demand_status(c.ask("OPTIONS"), 200)


@rule("play", "ping", "must", "GET_PARAMETER without a body is a sign of life, with a session and without", "RFC 2326, 10.8")
def _(target):
    with target.connect() as c:
        demand_status(c.ask("GET_PARAMETER"), 200)
        session = over_tcp(c)
        session.play()
        return demand_status(session.ask("GET_PARAMETER"), 200)


@rule("play", "parameter-unknown", "should", "A parameter nobody knows is 451", "RFC 2326, 10.8")
def _(target):
    with target.connect() as c:
        return demand_status(over_tcp(c).ask("SET_PARAMETER", [("Content-Type", "text/parameters")], body=b"nonsense: 1\r\n"), 451)


@rule("play", "frames-in", "must", "Receiver reports between requests are taken", "RFC 2326, 10.12")
def _(target):
    with target.connect() as c:
        session = over_tcp(c)
        session.play()
        report = bytes([0x80, 201, 0, 1]) + b"abcd" + bytes([0x81, 202, 0, 2]) + b"abcd" + bytes([1, 1, 97, 0])
        frame = b"$" + bytes([session.channels[1]]) + len(report).to_bytes(2, "big") + report
        c.send(frame + c.line("GET_PARAMETER", session.track.base, [("Session", session.id)]) + frame)
        return demand_status(c.response(), 200)


@rule("play", "silence-tcp", "must", "A session over TCP lives on though its client says nothing, twice the timeout", "MS-RTSP; mediamtx#5127",
      is_long=True)
def _(target):
    with target.connect() as c:
        session = over_tcp(c)
        session.play()
        end = time.monotonic() + 2 * session.timeout
        while time.monotonic() < end:
            demand(session.first_frame(), "the packets ended")
            c.frames(1)
        return f"{2 * session.timeout} s"


@rule("play", "silence-udp", "must", "A session over UDP without any sign of life ends, after its timeout and not before", "RFC 2326, 12.37",
      is_long=True)
def _(target):
    if target.is_secure:
        raise NotApplicable("over TLS packets travel on the connection")
    # On a busy machine it may seem to have ended early, and not every time.
    for _ in range(5):
        last, timeout = silent_life(target)
        demand(last < 2 * timeout + 4, f"packets came for {last:.0f} s and more, and the timeout is {timeout} s")
        if last >= timeout - 0.5:
            break
    demand(last >= timeout - 0.5, f"it ended after {last:.1f} s, and the timeout is {timeout} s")
    return f"{last:.1f} s at a timeout of {timeout} s"


def silent_life(target):
    """How long packets come over UDP to a client that says nothing, and the timeout it was told; seconds."""
    with target.connect() as c, PortPair(target) as ports:
        session = Session(c, describe(c), ports.transport)
        session.play()
        begin, last = time.monotonic(), None
        while (now := time.monotonic()) < begin + 2 * session.timeout + 5:
            if came := ports.receive(0.5):
                last = max(at for _, _, at, _ in came) - begin
            elif last is not None and now - begin > last + 3:
                break
        demand(last is not None, "no packet came at all")
        return last, session.timeout
