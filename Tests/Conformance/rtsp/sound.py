# SPDX-License-Identifier: Apache-2.0
"""A second medium beside the pictures: its description, SETUP of one and of both, one clock (RFC 3550), AAC (RFC 3640) and Opus (RFC 7587) in RTP.

Without a medium of sound in the description these rules say nothing.
"""

import re
import threading
import time

import wire
from media import Packet, parts
from rules import NotApplicable, demand, demand_status, rule
from session import PortPair, Session, describe, everything
from wire import Frame, Response, Unmet, deadline_in

PICTURES, SOUND = "RTP/AVP/TCP;unicast;interleaved=0-1", "RTP/AVP/TCP;unicast;interleaved=2-3"


def sound(name, level, what, source, is_long=False):
    """Registers a rule that takes the target, a connection and the description."""
    def register(check):
        def guarded(target):
            with target.connect() as c:
                track = describe(c)
                if not track.sound:
                    raise NotApplicable("the description has no sound")
                return check(target, c, track)
        rule("sound", name, level, what, source, is_long)(guarded)
        return check
    return register


def over_udp(target):
    if target.is_secure:
        raise NotApplicable("over TLS packets travel on the connection")
    return PortPair(target)


def packets(connection, seconds):
    """How many frames come on each channel in this time."""
    counts = {}
    for frame in connection.frames(seconds):
        counts[frame.channel] = counts.get(frame.channel, 0) + 1
    return counts


def still_come(connection, *channels):
    """The channels on which frames still come, and not only those on their way, until each of these has one."""
    packets(connection, 0.5)
    return {frame.channel for frame in connection.brings(channels)}


def goes_on(session):
    """Demands that packets of both media still come on the connection."""
    pairs = {name: pair for name, pair in (("pictures", session.channels), ("sound", session.sound_channels)) if pair}
    there = still_come(session.connection, *(pair[0] for pair in pairs.values()))
    for name, pair in pairs.items():
        demand(pair[0] in there, f"no packet of the {name} comes any more")


def came(pair, seconds):
    """RTP packets of these ports: those of this time, and where there is none, the first one after it."""
    found = [Packet(data, at) for is_control, data, at, _ in pair.receive(seconds) if not is_control]
    if not found:
        for is_control, data, at, _ in pair.arrivals(wire.PATIENCE):
            if not is_control:
                return [Packet(data, at)]
    return found


# Description


@sound("control", "must", "Each medium has a control URL of its own", "RFC 2326, C.1.1 and C.3")
def _(target, c, track):
    for medium in (track, track.sound):
        demand(medium.control != "*", "a medium has no a=control of its own")
    demand(track.url != track.sound.url, f"both lead to '{track.url}'")
    return track.sound.url


@sound("control-aggregate", "should", "The description has a control URL for both media together", "RFC 2326, C.3")
def _(target, c, track):
    found = re.search(r"(?m)^a=control:(.*?)\r?$", track.session_lines)
    demand(found, "there is no a=control before the first medium")
    return found[1]


@sound("sdp-format", "must", "The medium's payload type is dynamic and has an rtpmap", "RFC 4566, 6; RFC 3551, 6")
def _(target, c, track):
    said = re.match(r"m=audio \d+(?:/\d+)? RTP/\S+ (\d+)", track.sound.text)
    demand(said, f"it is described as '{track.sound.text.splitlines()[0]}'")
    if int(said[1]) < 96:
        return f"the static type {said[1]}"
    demand(track.sound.payload_type == int(said[1]), f"m= has the type {said[1]}, a=rtpmap has {track.sound.payload_type}")
    return f"{track.sound.encoding}/{track.sound.rate}/{track.sound.channels}"


def is_aac(medium):
    return medium.encoding.lower() == "mpeg4-generic"


def is_opus(medium):
    return medium.encoding.lower() == "opus"


# ISO/IEC 14496-3, table 1.18
RATES = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350)


def audio_config(medium):
    """Object type, sample rate and channels of `config`, an AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1)."""
    text = medium.format.get("config", "")
    demand(re.fullmatch(r"([0-9A-Fa-f]{2}){2,}", text), f"config is '{text}', not hexadecimal digits")
    bits = "".join(f"{byte:08b}" for byte in bytes.fromhex(text)) + "0" * 64

    def take(count):
        nonlocal bits
        value, bits = int(bits[:count], 2), bits[count:]
        return value
    kind = take(5)
    kind = 32 + take(6) if kind == 31 else kind
    index = take(4)
    demand(index < len(RATES) or index == 15, f"config has the reserved sampling frequency index {index}")
    rate = take(24) if index == 15 else RATES[index]
    return kind, rate, {7: 8}.get(channels := take(4), channels)


@sound("sdp-aac", "must", "mpeg4-generic has streamtype, profile-level-id, mode, config and the sizes of its mode, and they agree", "RFC 3640, 3.3 and 4.1")
def _(target, c, track):
    medium = track.sound
    if not is_aac(medium):
        raise NotApplicable(f"the sound is {medium.encoding}")
    missing = [name for name in ("profile-level-id", "mode", "config") if name not in medium.format]
    demand(not missing, f"fmtp has no {', '.join(missing)}")
    demand(medium.format.get("streamtype") == "5", f"streamtype is '{medium.format.get('streamtype')}', and sound is 5")
    demand(medium.format["profile-level-id"].isdigit(), f"profile-level-id is '{medium.format['profile-level-id']}', not a decimal number")
    sizes = {"aac-hbr": ("13", "3", "3"), "aac-lbr": ("6", "2", "2")}.get(medium.format["mode"].lower())
    said = tuple(medium.format.get(name) for name in ("sizelength", "indexlength", "indexdeltalength"))
    demand(not sizes or said == sizes, f"mode {medium.format['mode']} has the sizes {said}, not {sizes}")
    kind, rate, channels = audio_config(medium)
    # An object type 5 (SBR) names the core's rate first, and plays at twice that.
    demand(medium.rate in (rate, 2 * rate), f"rtpmap has the rate {medium.rate}, config has {rate}")
    demand(channels in (0, medium.channels), f"rtpmap has {medium.channels} channels, config has {channels}")
    return f"object type {kind}, {rate} Hz, {channels} channels"


@sound("sdp-opus", "must", "opus is 48000/2, whatever it plays", "RFC 7587, 7")
def _(target, c, track):
    medium = track.sound
    if not is_opus(medium):
        raise NotApplicable(f"the sound is {medium.encoding}")
    demand((medium.rate, medium.channels) == (48000, 2), f"rtpmap has {medium.encoding}/{medium.rate}/{medium.channels}")
    stereo = medium.format.get("sprop-stereo", "0")
    demand(stereo in ("0", "1"), f"sprop-stereo is '{stereo}'")


# SETUP


@sound("alone-tcp", "must", "Each medium can be set up alone, and only its packets come", "RFC 2326, 10.4")
def _(target, c, track):
    counts = []
    for medium in (track.sound, track):
        with target.connect() as own:
            describe(own)
            session = Session(own, medium, "RTP/AVP/TCP;unicast;interleaved=4-5")
            demand(session.channels == (4, 5), f"the channels are {session.channels}")
            session.play()
            session.plays()
            frames = own.frames(1) + own.brings([4])
            strange = {frame.channel for frame in frames} - {4, 5}
            demand(not strange, f"packets came on the channels {sorted(strange)}, too")
            types = {Packet(frame.payload, frame.at).type for frame in frames if frame.channel == 4}
            demand(types == {medium.payload_type}, f"payload types {types} came, and {medium.payload_type} was set up")
            counts.append(len(frames))
    return f"{counts[0]} packets of sound, {counts[1]} of pictures in a second"


@sound("alone-udp", "must", "The same over UDP", "RFC 2326, 10.4")
def _(target, c, track):
    for medium in (track.sound, track):
        with target.connect() as own, over_udp(target) as ports:
            describe(own)
            session = Session(own, medium, ports.transport)
            session.play()
            types = {packet.type for packet in came(ports, 2)}
            demand(types == {medium.payload_type}, f"payload types {types} came, and {medium.payload_type} was set up")
            session.ask("TEARDOWN")


@sound("both-tcp", "must", "A second SETUP with the session's id adds the other medium, on channels of its own", "RFC 2326, 10.4 and 12.39")
def _(target, c, track):
    session = everything(c, track)
    demand(session.sound_channels, f"the sound's Transport is '{session.sound_transport}'")
    demand(not set(session.channels) & set(session.sound_channels), f"both have channels of {session.channels} and {session.sound_channels}")
    session.play()
    session.plays()
    return session.sound_transport


@sound("both-udp", "must", "The same over UDP, each medium to the ports that were named for it", "RFC 2326, 10.4 and 12.39")
def _(target, c, track):
    with over_udp(target) as ports:
        session = everything(c, track, ports)
        demand(f"client_port={ports.sound.port}-{ports.sound.port + 1}" in session.sound_transport, f"the sound's Transport is '{session.sound_transport}'")
        session.play()
        for pair, medium in ((ports, track), (ports.sound, track.sound)):
            types = {packet.type for packet in came(pair, 2)}
            demand(types == {medium.payload_type}, f"payload types {types} came at the ports of type {medium.payload_type}")
        session.ask("TEARDOWN")
        return session.sound_transport


@sound("both-reversed", "must", "The sound may be set up first", "RFC 2326, 10.4")
def _(target, c, track):
    session = Session(c, track.sound, PICTURES)
    response = session.ask("SETUP", [("Transport", SOUND)], track.url)
    demand_status(response, 200)
    demand(response.get("Session", "").split(";")[0] == session.id, f"Session is '{response.get('Session')}', not '{session.id}'")
    session.play()
    demand(session.first_frame(), "no packet of the sound came")
    demand(session.first_frame(2), "no packet of the pictures came")


@sound("same-channels", "must", "A second medium that asks for the first one's channels has others or is refused", "RFC 2326, 10.12")
def _(target, c, track):
    session = Session(c, track, PICTURES)
    try:
        session.add_sound(PICTURES)
    except Unmet:
        session.play()
        session.plays()
        return "refused"
    demand(session.sound_channels and not set(session.channels) & set(session.sound_channels), f"both have channels of {session.channels} and {session.sound_channels}")
    session.play()
    session.plays()
    return session.sound_transport


@sound("session-unknown", "must", "SETUP of the sound in a session that is none is 454", "RFC 2326, 11.3.5")
def _(target, c, track):
    Session(c, track, PICTURES)
    return demand_status(c.ask("SETUP", track.sound.url, [("Transport", SOUND), ("Session", "0123456789abcdef")]), 454)


@sound("session-other", "should", "Pictures in one session and sound in another, on two connections, both play", "RFC 2326, C.2")
def _(target, c, track):
    with target.connect() as other:
        describe(other)
        one, two = Session(c, track, PICTURES), Session(other, track.sound, PICTURES)
        demand(one.id != two.id, "both have one id")
        for session in (one, two):
            session.play()
        for session in (one, two):
            session.plays()


@sound("other-transport", "must", "The sound over UDP beside pictures over TCP joins the session or is refused, and what was set up plays", "RFC 2326, 10.4")
def _(target, c, track):
    with over_udp(target) as ports:
        session = Session(c, track, PICTURES)
        try:
            session.add_sound(ports.transport)
            said = session.sound_transport
        except Unmet as refusal:
            said = str(refusal)
            demand("answered with 4" in said, said)
        session.play()
        session.plays()
        demand("answered with 4" in said or ports.comes(), "SETUP of the sound was answered with 200, and no packet of it came")
        return said


@sound("setup-playing", "must", "SETUP of the sound while pictures play is refused, or they play on; and then both can play", "RFC 2326, 10.4 and A.2")
def _(target, c, track):
    session = Session(c, track, PICTURES)
    session.play()
    session.plays()
    try:
        session.add_sound(SOUND)
        said = "it is added"
    except Unmet as refusal:
        said = str(refusal)
        demand("answered with 4" in said, said)
    demand(session.channels[0] in still_come(c, session.channels[0]), f"the pictures ended ({said})")
    return said


@sound("password", "must", "SETUP of the sound without a password is 401", "RFC 2326, 7.1.1 and 12.44")
def _(target, c, track):
    if target.user is None:
        raise NotApplicable("no user is named in the URL")
    with target.connect() as other:
        other.send(other.line("SETUP", track.sound.url, [("Transport", PICTURES)]))
        return demand_status(other.response(), 401)


# PLAY and what follows


@sound("rtp-info", "should", "PLAY of the aggregate answers with an RTP-Info that has each medium, and numbers that are true", "RFC 2326, 12.33")
def _(target, c, track):
    session = everything(c, track)
    c.send(c.line("PLAY", track.base, [("Session", session.id), ("Range", "npt=0.000-")]))
    first, response = {}, None
    # The first packets may come with the answer.
    deadline = deadline_in()
    while response is None or not {0, 2} <= first.keys():
        item = c.item(max(deadline - time.monotonic(), 0))
        if isinstance(item, Frame):
            first.setdefault(item.channel, Packet(item.payload, item.at) if item.channel in (0, 2) else None)
        elif isinstance(item, Response):
            response = item
        else:
            break
    demand(response, "no answer came")
    demand_status(response, 200)
    info = response.get("RTP-Info")
    demand(info, "there is no RTP-Info")
    entries = {}
    for entry in re.split(r",\s*(?=url=)", info):
        values = dict(part.strip().split("=", 1) for part in entry.split(";") if "=" in part)
        entries[values.get("url", "").strip('"').rstrip("/")] = values
    for medium, channel in ((track, 0), (track.sound, 2)):
        values = entries.get(medium.url.rstrip("/"))
        demand(values, f"it has no entry for {medium.url}: '{info}'")
        demand(first.get(channel), f"no packet came on channel {channel}")
        for name, have in (("seq", first[channel].sequence), ("rtptime", first[channel].time)):
            demand(name not in values or int(values[name]) == have, f"{name} of {medium.control} is said to be {values.get(name)}, and is {have}")
    return info


@sound("rtp-info-one", "should", "RTP-Info has only what was set up", "RFC 2326, 12.33")
def _(target, c, track):
    info = Session(c, track.sound, PICTURES).play().get("RTP-Info")
    demand(info, "there is no RTP-Info")
    urls = [url.rstrip("/") for url in re.findall(r"url=\"?([^;,\"]+)", info)]
    demand(urls == [track.sound.url.rstrip("/")], f"it is '{info}'")


@sound("play-medium", "must", "PLAY of one medium's URL in a session of both plays, or is 460 and PLAY of the aggregate plays", "RFC 2326, 10.5 and 11.3.11")
def _(target, c, track):
    session = everything(c, track)
    response = session.ask("PLAY", url=track.sound.url)
    demand_status(response, 200, 460, 459)
    if response.status == 200:
        demand(session.first_frame(session.sound_channels[0]), "no packet of the sound came")
    else:
        session.play()
        session.plays()
    return str(response)


@sound("pause", "must", "PAUSE ends the packets of both, PLAY brings both again", "RFC 2326, 10.6")
def _(target, c, track):
    session = everything(c, track)
    session.play()
    session.plays()
    demand_status(session.ask("PAUSE"), 200)
    c.frames(0.3)
    late = [f for f in c.frames(0.5) if f.channel in (session.channels[0], session.sound_channels[0])]
    demand(not late, f"{len(late)} packets came 0.3 s after PAUSE and later")
    session.play(headers=())
    session.plays()


@sound("teardown-medium", "must", "TEARDOWN of the sound alone ends it and leaves the pictures, or is refused and both go on", "RFC 2326, 10.7 and 11.3.11")
def _(target, c, track):
    session = everything(c, track)
    session.play()
    session.plays()
    response = session.ask("TEARDOWN", url=track.sound.url)
    demand(response.status == 200 or 400 <= response.status < 500, f"answered with {response}")
    pictures, tone = session.channels[0], session.sound_channels[0]
    there = still_come(c, pictures, *([] if response.status == 200 else [tone]))
    demand(pictures in there, f"answered with {response}, and the pictures ended, too")
    if response.status == 200:
        demand(tone not in there | packets(c, 1).keys(), "answered with 200, and the sound goes on")
        demand_status(session.ask("TEARDOWN"), 200)
    else:
        demand(tone in there, f"answered with {response}, and the sound ended")
    return str(response)


@sound("teardown", "must", "TEARDOWN of the aggregate ends both", "RFC 2326, 10.7")
def _(target, c, track):
    session = everything(c, track)
    session.play()
    session.plays()
    demand_status(session.ask("TEARDOWN"), 200)
    c.frames(0.3)
    late = packets(c, 0.7)
    demand(not late, f"frames came on the channels {sorted(late)} 0.3 s after TEARDOWN and later")
    return demand_status(session.ask("PLAY"), 454)


@sound("silence-udp", "should", "Receiver reports of the sound alone keep a session over UDP, twice the timeout", "RFC 2326, 12.37", is_long=True)
def _(target, c, track):
    with over_udp(target) as ports:
        session = everything(c, track, ports)
        server = re.search(r"server_port=\d+-(\d+)", session.sound_transport)
        demand(server, f"the sound's Transport is '{session.sound_transport}'")
        session.play()
        begin = time.monotonic()
        while time.monotonic() < begin + 2 * session.timeout + 2:
            ports.sound.rtcp.sendto(report(), (target.host, int(server[1])))
            ports.sound.receive(0.5)
            ports.receive(0.5)
        ports.sound.receive(0)
        demand(ports.comes(since=time.monotonic()), "the pictures ended")
        return f"{2 * session.timeout} s"


@sound("report-alone", "should", "A reader of one medium has its sender reports as one of both does: none is missing for 8 s", "RFC 3550, 6.2", is_long=True)
def _(target, c, track):
    with target.connect() as other, target.connect() as third:
        describe(other)
        whole = everything(third, describe(third))
        alone = {"pictures": Session(c, track, PICTURES), "sound": Session(other, track.sound, PICTURES)}
        given = {whole.channels[1]: [], whole.sound_channels[1]: []}
        found = {name: [] for name in alone}

        def listen():
            for at, channel in stamps(whole, 0.5):
                if channel in given:
                    given[channel].append(at)
            for name, session in alone.items():
                found[name] += [at for at, channel in stamps(session, 0.5) if channel == session.channels[1]]

        # The reader of both is there first, and goes on as long.
        for session in (whole, *alone.values()):
            session.play()
        listen()
        begins = [max(len(times) - 1, 0) for times in given.values()]
        end = time.monotonic() + 24
        while time.monotonic() < end:
            listen()
        # By the times that the reports tell. A server that is held up has none for anybody, and the last may be on its way.
        for (name, times), expected, begin in zip(found.items(), given.values(), begins):
            demand(len(expected) > begin + 2, f"a reader of both had {len(expected)} reports of the {name}")
            begin, until = expected[begin], expected[-2]
            most = max(8, 1 + longest_step(expected))
            gap = longest_step([begin, *(at for at in times if begin < at < until), until])
            demand(times and gap < most, f"the reports of the {name} came after {', '.join(f'{at - begin:.1f}' for at in times)} s")
        return "; ".join(", ".join(f"{at - times[0]:.1f}" for at in times) for times in found.values()) + " s"


def stamps(session, seconds):
    """The NTP time of each sender report that comes on the connection in this time, seconds, and its channel."""
    return [(int.from_bytes(f.payload[8:16], "big") / 2**32, f.channel) for f in session.connection.frames(seconds)
            if len(f.payload) >= 28 and f.payload[1] == 200]


def longest_step(times):
    return max(b - a for a, b in zip(times, times[1:]))


# Who does harm


def report(source=b"abcd"):
    """A receiver report without blocks, and a CNAME."""
    return bytes([0x80, 201, 0, 1]) + source + bytes([0x81, 202, 0, 2]) + source + bytes([1, 1, 97, 0])


@sound("rude-tcp", "must", "Noise, false reports and BYE on the sound's channels: its own pictures go on or it is closed, and another reader loses nothing",
       "hostile input")
def _(target, c, track):
    with target.connect() as other:
        describe(other)
        reader = everything(other, track)
        reader.play()
        reader.plays()
        session = everything(c, track)
        session.play()
        session.plays()
        noise = [b"", b"\x80", b"x" * 1400, report()[:9], bytes([0x80, 201, 255, 255]) + b"abcd", bytes([0x9f, 201, 0, 1]) + b"abcd",
                 report() + bytes([0x81, 203, 0, 1]) + b"abcd"]
        for data in noise * 20:
            for channel in session.sound_channels:
                c.send(b"$" + bytes([channel]) + len(data).to_bytes(2, "big") + data)
        try:
            goes_on(session)
            said = "it plays on"
        except Unmet:
            demand(c.is_closed, "its pictures or its sound ended, and the connection stays")
            said = "it was closed"
        untouched(reader, 1)
        return said


@sound("rude-udp", "should", "A client that has closed its ports for sound keeps its pictures", "ICMP port unreachable")
def _(target, c, track):
    with over_udp(target) as ports:
        session = everything(c, track, ports)
        session.play()
        demand(ports.comes(), "no packet of the pictures came")
        ports.sound.rtp.close()
        ports.sound.rtcp.close()
        ports.receive(1.5)
        demand(ports.comes(2, since=time.monotonic()), "the pictures ended")
        session.ask("TEARDOWN")


def untouched(session, seconds):
    """Demands that both media of a session come without a gap."""
    media = (("pictures", session.channels[0]), ("sound", session.sound_channels[0]))
    frames = session.connection.frames(seconds) + session.connection.brings([channel for _, channel in media], 3)
    for name, channel in media:
        numbers = [int.from_bytes(f.payload[2:4], "big") for f in frames if f.channel == channel]
        demand(len(numbers) > 2, f"{len(numbers)} packets of another reader's {name} came")
        for a, b in zip(numbers, numbers[1:]):
            demand((b - a) & 0xffff == 1, f"packet {b} of another reader's {name} follows {a}")


# Packets of both


class Half:
    """What came of one medium."""

    def __init__(self, medium, transport):
        self.medium, self.transport = medium, transport
        self.rtp, self.rtcp, self.senders = [], [], set()

    def take(self, is_control, data, at):
        if is_control:
            self.rtcp.append((data, at))
        else:
            self.rtp.append(Packet(data, at))

    def reports(self):
        """Sender reports: (NTP seconds, RTP time, arrival)."""
        for data, at in self.rtcp:
            if data[1] == 200:
                yield int.from_bytes(data[8:16], "big") / 2**32, int.from_bytes(data[16:20], "big"), at

    def names(self):
        """The CNAMEs of its compounds, each of which begins with a report (RFC 3550, 6.1)."""
        found = set()
        for data, _ in self.rtcp:
            kinds, at = [], 0
            while at + 4 <= len(data):
                demand(data[at] >> 6 == 2, f"{data.hex()} is no RTCP")
                size = 4 + 4 * int.from_bytes(data[at + 2:at + 4], "big")
                kinds.append(data[at + 1])
                if data[at + 1] == 202 and data[at + 8] == 1:
                    found.add(data[at + 10:at + 10 + data[at + 9]])
                at += size
            demand(at == len(data), f"the sizes in {data.hex()} do not add up")
            demand(kinds[0] in (200, 201) and 202 in kinds, f"a compound has the types {kinds}")
        return found

    def delay(self):
        """Seconds from the wall-clock time of a packet, as the reports have it, until it came: of the one that came soonest."""
        ntp, rtp, _ = next(self.reports())
        return min(p.at - ntp - ((p.time - rtp + 2**31) % 2**32 - 2**31) / self.medium.rate for p in self.rtp)


class Both:
    """A few seconds of both media, taken once and looked at by all rules."""

    kept = {}
    locks = {"tcp": threading.Lock(), "udp": threading.Lock()}

    @classmethod
    def of(cls, target, c, track, transport):
        with cls.locks[transport]:
            if transport not in cls.kept:
                try:
                    cls.kept[transport] = cls(target, c, track, transport)
                except Exception as fault:
                    cls.kept[transport] = fault
        found = cls.kept[transport]
        if isinstance(found, Exception):
            raise found
        return found

    def __init__(self, target, c, track, transport):
        if transport == "tcp":
            session = everything(c, track)
            self.halves(session, track)
            session.play()
            where = {channel: (half, n == 1) for half, pair in ((self.pictures, session.channels), (self.sound, session.sound_channels))
                     for n, channel in enumerate(pair)}
            begin = time.monotonic()
            for seconds in parts(self.has_reports):
                for frame in c.frames(seconds):
                    demand(frame.channel in where, f"a frame came on channel {frame.channel}")
                    half, is_control = where[frame.channel]
                    half.take(is_control, frame.payload, frame.at)
        else:
            with over_udp(target) as ports:
                session = everything(c, track, ports)
                self.halves(session, track)
                session.play()
                begin = time.monotonic()
                # Both at once, or the time of arrival would be that of the look.
                taken = {}
                for seconds in parts(self.has_reports):
                    waiting = [threading.Thread(target=lambda pair=pair: taken.update({pair: pair.receive(seconds)})) for pair in (ports, ports.sound)]
                    for thread in waiting:
                        thread.start()
                    for thread in waiting:
                        thread.join()
                    for pair, half in ((ports, self.pictures), (ports.sound, self.sound)):
                        for is_control, data, at, port in taken[pair]:
                            half.senders.add((is_control, port))
                            half.take(is_control, data, at)
                    session.ask("GET_PARAMETER")
                session.ask("TEARDOWN")
        self.seconds = round(time.monotonic() - begin)
        for name, half in (("pictures", self.pictures), ("sound", self.sound)):
            demand(half.rtp, f"no RTP packet of the {name} came within {self.seconds} s")

    def has_reports(self):
        return all(len(list(half.reports())) > 1 for half in (self.pictures, self.sound))

    def halves(self, session, track):
        self.pictures, self.sound = Half(track, session.transport), Half(track.sound, session.sound_transport)


def both(name, level, what, source):
    """Registers the rule for both transports; it takes what came."""
    def register(check):
        for transport in ("tcp", "udp"):
            sound(f"{name}-{transport}", level, what, source)(lambda target, c, track, t=transport: check(Both.of(target, c, track, t)))
        return check
    return register


@both("header", "must", "Payload type and SSRC of the sound are those that were said", "RFC 3550, 5.1")
def _(seen):
    half = seen.sound
    types, sources = {p.type for p in half.rtp}, {p.ssrc for p in half.rtp}
    demand(types == {half.medium.payload_type}, f"payload types {types}, described as {half.medium.payload_type}")
    demand(len(sources) == 1, f"{len(sources)} sources")
    said = half.transport.lower().partition("ssrc=")[2].split(";")[0]
    demand(not said or int(said, 16) in sources, f"SSRC {sources} and not {said}, as Transport says")


@both("sources", "should", "Pictures and sound have different SSRCs", "RFC 3550, 8")
def _(seen):
    demand(seen.pictures.rtp[0].ssrc != seen.sound.rtp[0].ssrc, f"both have {seen.sound.rtp[0].ssrc:08x}")


@both("sequence", "must", "Sequence numbers of both rise by one", "RFC 3550, 5.1")
def _(seen):
    for name, half in (("pictures", seen.pictures), ("sound", seen.sound)):
        for a, b in zip(half.rtp, half.rtp[1:]):
            demand((b.sequence - a.sequence) & 0xffff == 1, f"{b.sequence} follows {a.sequence} in the {name}")
    return f"{len(seen.pictures.rtp)} and {len(seen.sound.rtp)} packets"


def access_units(packet, medium):
    """Sizes of the access units that the AU headers of a packet tell, and the bytes behind the headers (RFC 3640, 3.2.1)."""
    size, index, delta = (int(medium.format.get(name, 0)) for name in ("sizelength", "indexlength", "indexdeltalength"))
    others = [name for name in ("ctsdeltalength", "dtsdeltalength", "streamstateindication", "auxiliarydatasizelength") if int(medium.format.get(name, 0))]
    others += ["randomaccessindication"] if medium.format.get("randomaccessindication") == "1" else []
    if others or not size:
        raise NotApplicable(f"its AU headers have {', '.join(others) or 'no sizes'}")
    data = packet.payload
    demand(len(data) > 2, f"packet {packet.sequence} has {len(data)} bytes")
    length = int.from_bytes(data[:2], "big")
    bits = "".join(f"{byte:08b}" for byte in data[2:2 + (length + 7) // 8])
    demand(len(bits) >= length > 0, f"packet {packet.sequence} tells of {length} bits of AU headers in {len(data)} bytes")
    sizes, at = [], 0
    while at < length:
        own = size + (delta if sizes else index)
        demand(at + own <= length, f"packet {packet.sequence} tells of {length} bits of AU headers, no multiple of one header")
        sizes.append(int(bits[at:at + size], 2))
        number = bits[at + size:at + own]
        demand(not number or int(number, 2) == 0, f"packet {packet.sequence} has AU-Index or AU-Index-delta {number}, and nothing was said of interleaving")
        at += own
    return sizes, data[2 + (length + 7) // 8:]


# RFC 6716, 3.1: 48 kHz samples of a frame by the TOC byte's configuration
FRAMES = [480, 960, 1920, 2880] * 3 + [480, 960] * 2 + [120, 240, 480, 960] * 4


def opus_samples(packet):
    """How long an Opus packet plays, in 48 kHz samples (RFC 6716, 3.2)."""
    data = packet.payload
    demand(data, f"packet {packet.sequence} is empty")
    code = data[0] & 3
    demand(code < 3 or len(data) > 1, f"packet {packet.sequence} has a TOC of code 3 and no count of frames")
    count = (1, 2, 2)[code] if code < 3 else data[1] & 63
    demand(count, f"packet {packet.sequence} has no frames")
    demand(code != 1 or len(data) % 2, f"packet {packet.sequence} has two frames of one size in {len(data) - 1} bytes")
    samples = count * FRAMES[data[0] >> 3]
    demand(samples <= 5760, f"packet {packet.sequence} has {samples / 48:g} ms of sound, more than 120")
    return samples


@both("payload", "must", "Each payload is whole: AU headers that add up, or one Opus packet", "RFC 3640, 3.2; RFC 7587, 4.2")
def _(seen):
    medium, units = seen.sound.medium, 0
    if is_opus(medium):
        return f"{sum(opus_samples(p) for p in seen.sound.rtp) / 48_000:.2f} s of sound"
    if not is_aac(medium):
        raise NotApplicable(f"the sound is {medium.encoding}")
    open_size, have = 0, 0
    for p in seen.sound.rtp:
        sizes, data = access_units(p, medium)
        if len(sizes) == 1 and (open_size or len(data) < sizes[0]):
            # A fragment: each has the size of the whole (3.2.3).
            demand(not open_size or sizes[0] == open_size, f"packet {p.sequence} is a fragment of {sizes[0]} bytes, the one before of {open_size}")
            open_size, have = sizes[0], have + len(data)
            demand(have <= open_size, f"fragments of an access unit of {open_size} bytes have {have}")
            demand(bool(p.marker) == (have == open_size), f"packet {p.sequence} has marker {p.marker} after {have} of {open_size} bytes")
            if have == open_size:
                open_size, have, units = 0, 0, units + 1
            continue
        demand(not open_size, f"packet {p.sequence} comes in the middle of a cut access unit")
        demand(sum(sizes) == len(data), f"packet {p.sequence} tells of {sum(sizes)} bytes and has {len(data)}")
        units += len(sizes)
    return f"{units} access units"


@both("marker", "must", "AAC: set with the end of an access unit. Opus: clear but for the first packet after silence", "RFC 3640, 3.1; RFC 7587, 4.1; RFC 3551, 4.1")
def _(seen):
    medium = seen.sound.medium
    if is_aac(medium):
        for p in seen.sound.rtp:
            sizes, data = access_units(p, medium)
            demand(p.marker or sum(sizes) > len(data), f"packet {p.sequence} has whole access units and no marker")
    elif is_opus(medium):
        for a, b in zip(seen.sound.rtp, seen.sound.rtp[1:]):
            gap = (b.time - a.time) % 2**32 - opus_samples(a)
            demand(not b.marker or gap > 0, f"packet {b.sequence} has a marker and follows without silence")
    else:
        raise NotApplicable(f"the sound is {medium.encoding}")


@both("times", "must", "RTP time goes on by what each packet plays, in the clock that was said", "RFC 3640, 3.1; RFC 7587, 4.1")
def _(seen):
    medium = seen.sound.medium
    worst = 0
    for a, b in zip(seen.sound.rtp, seen.sound.rtp[1:]):
        if is_opus(medium):
            plays = opus_samples(a)
        elif is_aac(medium):
            sizes, data = access_units(a, medium)
            whole = sum(sizes) <= len(data) or a.marker
            plays = len(sizes) * 1024 * whole
        else:
            raise NotApplicable(f"the sound is {medium.encoding}")
        step = (b.time - a.time + 2**31) % 2**32 - 2**31
        # A clock of nanoseconds in between rounds by a tick.
        worst = max(worst, abs(step - plays))
        demand(abs(step - plays) <= medium.rate / 1000, f"packet {b.sequence} is {step} ticks after one that plays {plays}")
    return f"{worst} ticks off at most"


@both("pace", "must", "RTP time of the sound goes with the clock", "RFC 3550, 5.1")
def _(seen):
    half = seen.sound
    first, last = half.rtp[0], half.rtp[-1]
    played = ((last.time - first.time) & 0xffffffff) / half.medium.rate
    behind = [p.at - first.at - ((p.time - first.time) & 0xffffffff) / half.medium.rate for p in half.rtp]
    middle = len(behind) // 2
    drift = min(behind[middle:]) - min(behind[:middle])
    demand(abs(drift) < 0.5, f"{played:.2f} s of RTP time in {last.at - first.at:.2f} s, {drift:+.2f} s from the first half to the second")
    return f"{played:.2f} s in {last.at - first.at:.2f} s"


@both("report", "must", "Both media have RTCP: compounds with the source of their packets", "RFC 3550, 6.1")
def _(seen):
    for name, half in (("pictures", seen.pictures), ("sound", seen.sound)):
        demand(any(half.reports()), f"no sender report of the {name} came within {seen.seconds} s")
        half.names()
        sources = {int.from_bytes(data[4:8], "big") for data, _ in half.rtcp}
        demand(sources == {half.rtp[0].ssrc}, f"reports of the {name} are of {', '.join(f'{s:08x}' for s in sources)}, packets of {half.rtp[0].ssrc:08x}")


@both("report-early", "should", "A sender report of each comes within half a second of its first packet", "players need both to join sound and picture")
def _(seen):
    for name, half in (("pictures", seen.pictures), ("sound", seen.sound)):
        times = [at for *_, at in half.reports()]
        demand(times, f"none of the {name} came within {seen.seconds} s")
        demand(times[0] - half.rtp[0].at < 0.5, f"that of the {name} came after {times[0] - half.rtp[0].at:.1f} s")


@both("cname", "must", "Both have one CNAME, by which players know that they belong together", "RFC 3550, 6.5.1")
def _(seen):
    names = seen.pictures.names() | seen.sound.names()
    demand(len(names) == 1, f"they have {names}")


@both("report-times", "must", "Sender reports of the sound pair the same instant of both clocks, to a millisecond", "RFC 3550, 6.4.1")
def _(seen):
    found = list(seen.sound.reports())
    if len(found) < 2:
        raise NotApplicable(f"{len(found)} sender report came within {seen.seconds} s")
    worst = 0
    for (ntp, rtp, _), (later, then, _) in zip(found, found[1:]):
        step = ((then - rtp + 2**31) % 2**32 - 2**31) / seen.sound.medium.rate
        worst = max(worst, abs(step - (later - ntp)))
        demand(worst < 0.001, f"RTP time goes {step:.4f} s while wall-clock time goes {later - ntp:.4f} s")
    return f"{len(found)} reports, {worst * 1e6:.0f} µs off"


@both("one-clock", "must", "Reports of both media tell one wall clock", "RFC 3550, 6.4.1")
def _(seen):
    # A report tells when it was sent, so what the network adds is the same for both; the soonest of each are compared, since a busy machine brings late.
    late = []
    for half in (seen.pictures, seen.sound):
        found = [at - ntp for ntp, _, at in half.reports()]
        demand(found, f"a medium has no sender report within {seen.seconds} s")
        late.append(min(found))
    demand(abs(late[1] - late[0]) < 0.1, f"the reports of the sound tell a time that is {(late[0] - late[1]) * 1000:+.0f} ms from that of the pictures'")
    return f"{(late[0] - late[1]) * 1000:+.1f} ms"


@both("together", "must", "By these reports sound and pictures of one moment come at about the same time", "RFC 3550, 6.4.1; lip sync")
def _(seen):
    for half in (seen.pictures, seen.sound):
        demand(any(half.reports()), f"a medium has no sender report within {seen.seconds} s")
    apart = seen.sound.delay() - seen.pictures.delay()
    demand(abs(apart) < 0.5, f"the sound comes {apart:+.2f} s after pictures of its time")
    return f"the sound comes {apart * 1000:+.0f} ms after pictures of its time"


@sound("report-port", "must", "The sound's RTP comes from its server_port, its RTCP from the next", "some clients check")
def _(target, c, track):
    half = Both.of(target, c, track, "udp").sound
    said = half.transport.partition("server_port=")[2].split(";")[0].split("-")
    have = {is_control: {port for kind, port in half.senders if kind == is_control} for is_control in (False, True)}
    demand(have[False] == {int(said[0])}, f"RTP comes from {have[False]}, said is {said[0]}")
    demand(not have[True] or have[True] == {int(said[1])}, f"RTCP comes from {have[True]}, said is {said[1]}")
