# SPDX-License-Identifier: Apache-2.0
"""Joins a stream of H.264 over and over, and prints a line of JSON for each join.

    python3 Tests/Conformance/joins.py rtsp://host:port/path --count 100                 one after the other, at random moments
    python3 Tests/Conformance/joins.py rtsp://host:port/path --count 50 --per-second 50  at a rate, whether or not those before have ended

`answerMs` and `pictureMs` count from the moment PLAY is sent: until its answer, and until the last packet of the first keyframe is in. `isKept` says
whether that keyframe was there already (RTP-Info names the first packet), `isKeyframe` whether the first picture was one. Exit status: 1 when a join
had no picture.
"""

import argparse
import json
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "rtsp"))

from session import PortPair, Session, describe  # noqa: E402
from wire import Response, Target, Unmet  # noqa: E402

TCP = "RTP/AVP/TCP;unicast;interleaved=0-1"
# Longest wait for a picture, seconds.
PATIENCE = 60.0


class Join:
    """What one client sees."""

    def __init__(self):
        self.answer = self.picture = None
        self.is_kept = False
        # Of the first picture: None before a packet of it came.
        self.is_keyframe = None
        self.has_slice = False
        self.pictures = 0

    def see(self, packet, now):
        """An RTP packet (RFC 6184, 5.6 and 5.8): the marker ends a picture, type 5 is a slice of a keyframe."""
        kind = packet[12] & 31
        if kind == 28:
            kind = packet[13] & 31
        if kind in (1, 5) and self.is_keyframe is None:
            self.is_keyframe = kind == 5
        self.has_slice = self.has_slice or kind == 5
        if packet[1] & 128:
            self.pictures += 1
            if self.has_slice and self.picture is None:
                self.picture = now

    def answered(self, response, now):
        self.answer = now
        self.is_kept = "seq=" in response.get("RTP-Info", "")

    def result(self, begin):
        def since(moment):
            return None if moment is None else round(1000 * (moment - begin), 2)
        return {"isKept": self.is_kept, "isKeyframe": bool(self.is_keyframe), "answerMs": since(self.answer), "pictureMs": since(self.picture),
                "pictures": self.pictures}


def join(url, stay, transport, pause):
    """Opens the stream, waits for `pause`, plays; stays so long after the first picture."""
    target = Target(url)
    with target.connect() as connection:
        if transport == "udp":
            with PortPair(target) as ports:
                return play(connection, ports, ports.transport, stay, pause)
        return play(connection, None, TCP, stay, pause)


def play(connection, ports, transport, stay, pause):
    session, seen = Session(connection, describe(connection), transport), Join()
    time.sleep(pause)
    request = connection.line("PLAY", session.track.base, [("Session", session.id), ("Range", "npt=0.000-")])
    begin = time.monotonic()
    connection.send(request)
    if ports:
        seen.answered(connection.response(), time.monotonic())
    while time.monotonic() < (seen.picture + stay if seen.picture else begin + PATIENCE):
        if ports:
            for is_control, packet, at, _ in ports.receive(0.002):
                if not is_control:
                    seen.see(packet, at)
            continue
        item = connection.item(0.2)
        if isinstance(item, Response):
            seen.answered(item, time.monotonic())
        elif item is not None and item.channel == session.channels[0]:
            seen.see(item.payload, time.monotonic())
        elif item is None and connection.is_closed:
            break
    return seen.result(begin)


def attempt(*arguments):
    try:
        return join(*arguments)
    except (Unmet, OSError) as fault:
        return {"fault": str(fault), "pictureMs": None}


def main():
    parser = argparse.ArgumentParser(prog="joins", description=__doc__.partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--per-second", type=float, help="begin so many a second; without it one after the other")
    parser.add_argument("--stay", type=float, default=0, help="seconds after the first picture")
    parser.add_argument("--transport", choices=["tcp", "udp"], default="tcp")
    options = parser.parse_args()
    # The same moments in each run.
    chance = random.Random(1)
    with ThreadPoolExecutor(1 if not options.per_second else options.count) as pool:
        begin, jobs = time.monotonic(), []
        for number in range(options.count):
            if options.per_second:
                time.sleep(max(0, begin + number / options.per_second - time.monotonic()))
            pause = 0 if options.per_second else chance.uniform(0, 0.8)
            jobs.append(pool.submit(attempt, options.url, options.stay, options.transport, pause))
        results = [job.result() for job in jobs]
    for result in results:
        print(json.dumps(result))
    return int(any(result["pictureMs"] is None for result in results))


if __name__ == "__main__":
    sys.exit(main())
