# SPDX-License-Identifier: Apache-2.0
"""What is in the packets: RTP and RTCP (RFC 3550), H.264 in RTP (RFC 6184). Each rule over TCP and over UDP."""

import struct
import threading
import time

import wire
from rules import NotApplicable, demand, rule
from session import PortPair, Session, describe, over_tcp

# Long enough for two sender reports.
SECONDS = 8


def parts(are_there):
    """Times to listen for, seconds: SECONDS in all, and more until two sender reports of each medium `are_there`, as long as the patience goes."""
    begin = time.monotonic()
    for _ in range(SECONDS):
        yield 1
    while not are_there() and time.monotonic() - begin < wire.PATIENCE:
        yield 1


class Packet:
    """An RTP packet without its padding; Unmet where it is none."""

    def __init__(self, data, at):
        demand(len(data) >= 12 and data[0] >> 6 == 2, f"{data[:12].hex()} is no RTP packet")
        self.marker, self.type = data[1] >> 7, data[1] & 127
        self.sequence, self.time, self.ssrc = struct.unpack("!HII", data[2:12])
        start = 12 + 4 * (data[0] & 15)
        if data[0] & 16:
            start += 4 + 4 * int.from_bytes(data[start + 2:start + 4], "big")
        self.payload = data[start:len(data) - (data[-1] if data[0] & 32 else 0)]
        self.at = at


class Capture:
    """A few seconds of a stream, taken once and looked at by all rules."""

    kept = {}
    locks = {"tcp": threading.Lock(), "udp": threading.Lock()}

    @classmethod
    def of(cls, target, transport):
        if transport == "udp" and target.is_secure:
            raise NotApplicable("over TLS packets travel on the connection")
        with cls.locks[transport]:
            if transport not in cls.kept:
                try:
                    cls.kept[transport] = cls(target, transport)
                except Exception as fault:
                    cls.kept[transport] = fault
        found = cls.kept[transport]
        if isinstance(found, Exception):
            raise found
        return found

    def __init__(self, target, transport):
        with target.connect() as c:
            self.rtp, self.rtcp, self.senders = [], [], set()
            if transport == "tcp":
                session = over_tcp(c)
                self.track, self.transport = session.track, session.transport
                session.play()
                self.began = time.monotonic()
                for seconds in parts(self.has_reports):
                    for frame in c.frames(seconds):
                        if frame.channel == session.channels[0]:
                            self.rtp.append(Packet(frame.payload, frame.at))
                        else:
                            demand(frame.channel == session.channels[1], f"a frame came on channel {frame.channel}")
                            self.rtcp.append((frame.payload, frame.at))
            else:
                with PortPair(target) as ports:
                    session = Session(c, describe(c), ports.transport)
                    self.track, self.transport = session.track, session.transport
                    session.play()
                    self.began = time.monotonic()
                    for seconds in parts(self.has_reports):
                        for is_control, data, at, port in ports.receive(seconds):
                            self.senders.add((is_control, port))
                            if is_control:
                                self.rtcp.append((data, at))
                            else:
                                self.rtp.append(Packet(data, at))
                        session.ask("GET_PARAMETER")
            self.seconds = round(time.monotonic() - self.began)
            demand(self.rtp, f"no RTP packet came within {self.seconds} s")

    def has_reports(self):
        return len(list(self.reports())) > 1

    @property
    def nal_units(self):
        """Types and first bytes of all NAL units in order, with their packet; of a cut one at its start."""
        for packet in self.rtp:
            data = packet.payload
            kind = data[0] & 31
            if kind == 24:
                at = 1
                while at + 2 < len(data):
                    size = int.from_bytes(data[at:at + 2], "big")
                    yield data[at + 2] & 31, data[at + 2:at + 2 + size], packet
                    at += 2 + size
            elif kind == 28:
                if data[1] & 0x80:
                    yield data[1] & 31, bytes([data[0] & 0xe0 | data[1] & 31]) + data[2:], packet
            else:
                yield kind, data, packet

    def reports(self):
        """Sender reports: (NTP seconds, RTP time, arrival)."""
        for data, at in self.rtcp:
            if data[1] == 200:
                yield int.from_bytes(data[8:16], "big") / 2**32, int.from_bytes(data[16:20], "big"), at


def media(name, level, what, source):
    """Registers the rule for both transports; it takes a capture."""
    def register(check):
        for transport in ("tcp", "udp"):
            rule("media", f"{name}-{transport}", level, what, source)(lambda target, t=transport: check(Capture.of(target, t)))
        return check
    return register


@media("header", "must", "Version, payload type and SSRC are those that were said", "RFC 3550, 5.1")
def _(capture):
    types, sources = {p.type for p in capture.rtp}, {p.ssrc for p in capture.rtp}
    demand(types == {capture.track.payload_type}, f"payload types {types}, described as {capture.track.payload_type}")
    demand(len(sources) == 1, f"{len(sources)} sources")
    said = capture.transport.lower().partition("ssrc=")[2].split(";")[0]
    demand(not said or int(said, 16) in sources, f"SSRC {sources} and not {said}, as Transport says")


@media("sequence", "must", "Sequence numbers rise by one", "RFC 3550, 5.1")
def _(capture):
    for a, b in zip(capture.rtp, capture.rtp[1:]):
        demand((b.sequence - a.sequence) & 0xffff == 1, f"{b.sequence} follows {a.sequence}")
    return f"{len(capture.rtp)} packets"


@media("marker", "must", "The marker stands on the last packet of each picture and nowhere else", "RFC 6184, 5.1")
def _(capture):
    for a, b in zip(capture.rtp, capture.rtp[1:]):
        demand(bool(a.marker) == (a.time != b.time), f"packet {a.sequence} has marker {a.marker}, and the next has {'another' if a.time != b.time else 'the same'} time")


@media("pace", "must", "RTP time goes with the clock, 90 kHz", "RFC 6184, 5.1")
def _(capture):
    first, last = capture.rtp[0], capture.rtp[-1]
    played, passed = ((last.time - first.time) & 0xffffffff) / 90_000, last.at - first.at
    # A busy machine brings packets late and never early: the earliest of each half are the clock's.
    behind = [packet.at - first.at - ((packet.time - first.time) & 0xffffffff) / 90_000 for packet in capture.rtp]
    half = len(behind) // 2
    drift = min(behind[half:]) - min(behind[:half])
    demand(abs(drift) < 0.5, f"{played:.2f} s of RTP time in {passed:.2f} s, {drift:+.2f} s from the first half to the second")
    return f"{played:.2f} s in {passed:.2f} s"


@media("payload", "must", "Payloads are single NAL units, STAP-A and FU-A, whole and without start codes", "RFC 6184, 5.4 to 5.8")
def _(capture):
    mode = capture.track.format.get("packetization-mode", "0")
    is_open = False
    for p in capture.rtp:
        demand(len(p.payload) > 1, f"packet {p.sequence} is empty")
        kind = p.payload[0] & 31
        demand(1 <= kind <= 24 or kind == 28, f"packet {p.sequence} has type {kind}")
        demand(mode == "1" or kind < 24, f"packet {p.sequence} has type {kind} at packetization-mode {mode}")
        demand(not p.payload.startswith((b"\0\0\1", b"\0\0\0\1")), f"packet {p.sequence} begins with a start code")
        if kind != 28:
            demand(not is_open, f"packet {p.sequence} comes in the middle of a cut NAL unit")
            continue
        start, end, reserved = p.payload[1] >> 7, p.payload[1] >> 6 & 1, p.payload[1] >> 5 & 1
        demand(not (start and end) and not reserved, f"FU-A packet {p.sequence} has the bits S {start}, E {end}, R {reserved}")
        demand(bool(start) != is_open, f"FU-A packet {p.sequence} {'begins' if start else 'goes on with'} a NAL unit out of turn")
        is_open = not end


@media("parameter-sets", "must", "SPS and PPS come before each IDR picture, and are those of the description", "RFC 6184, 8.4")
def _(capture):
    seen, pictures = {}, 0
    for kind, data, packet in capture.nal_units:
        if kind in (7, 8):
            seen[kind] = (packet.time, data)
        if kind == 5:
            pictures += 1
            for needed in (7, 8):
                demand(seen.get(needed, (None,))[0] == packet.time, f"an IDR picture at RTP time {packet.time} has no NAL unit of type {needed} before it")
    demand(pictures, f"no IDR picture came within {capture.seconds} s")
    said = capture.track.parameter_sets
    demand(not said or [seen[7][1], seen[8][1]] == said, "they are not those of sprop-parameter-sets")


@media("first-picture", "should", "The first picture is an IDR picture", "players show nothing, or grey, until one comes")
def _(capture):
    kinds = [(kind, p) for kind, _, p in capture.nal_units if kind in (1, 5)]
    demand(kinds and kinds[0][0] == 5, "it is one that needs others")
    return f"{(kinds[0][1].at - capture.began) * 1000:.0f} ms after PLAY"


@media("report-early", "should", "A sender report comes within half a second of the first packet", "players need it to join sound and picture")
def _(capture):
    times = [at for *_, at in capture.reports()]
    demand(times, f"none came within {capture.seconds} s")
    demand(times[0] - capture.rtp[0].at < 0.5, f"it came after {times[0] - capture.rtp[0].at:.1f} s")


@media("report-compound", "must", "RTCP packets begin with a report and have a CNAME", "RFC 3550, 6.1")
def _(capture):
    demand(capture.rtcp, f"none came within {capture.seconds} s")
    for data, _ in capture.rtcp:
        kinds, at, names = [], 0, 0
        while at + 4 <= len(data):
            demand(data[at] >> 6 == 2, f"{data.hex()} is no RTCP")
            size = 4 + 4 * int.from_bytes(data[at + 2:at + 4], "big")
            kinds.append(data[at + 1])
            names += data[at + 1] == 202 and data[at + 8] == 1
            at += size
        demand(at == len(data), f"the sizes in {data.hex()} do not add up")
        demand(kinds[0] in (200, 201) and 202 in kinds and names, f"a compound has the types {kinds} and {names} CNAME")


@media("report-times", "must", "Sender reports pair the same instant of both clocks, to a millisecond", "RFC 3550, 6.4.1")
def _(capture):
    found = list(capture.reports())
    if len(found) < 2:
        raise NotApplicable(f"{len(found)} sender report came within {capture.seconds} s")
    for (ntp, rtp, _), (later, then, _) in zip(found, found[1:]):
        step = ((then - rtp + 2**31) % 2**32 - 2**31) / 90_000
        demand(abs(step - (later - ntp)) < 0.001, f"RTP time goes {step:.4f} s while wall-clock time goes {later - ntp:.4f} s")
    return f"{len(found)} reports"


@rule("media", "report-port", "must", "RTP comes from server_port, RTCP from the next", "some clients check")
def _(target):
    capture = Capture.of(target, "udp")
    said = capture.transport.partition("server_port=")[2].split(";")[0].split("-")
    have = {is_control: {port for kind, port in capture.senders if kind == is_control} for is_control in (False, True)}
    demand(have[False] == {int(said[0])}, f"RTP comes from {have[False]}, said is {said[0]}")
    demand(not have[True] or have[True] == {int(said[1])}, f"RTCP comes from {have[True]}, said is {said[1]}")
