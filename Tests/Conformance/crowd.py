# SPDX-License-Identifier: Apache-2.0
"""Many readers of a stream at once, which take what comes until the server closes them.

    python3 Tests/Conformance/crowd.py rtsp://host:port/path --count 500 [--transport tcp|udp|mixed]

Prints `ready` once all play, and at the end how many were closed by the server. Exit status: 1 where a reader could not play.
"""

import argparse
import os
import resource
import selectors
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "rtsp"))

from session import PortPair, Session  # noqa: E402
from wire import Target, Unmet  # noqa: E402


class Known:
    """The stream's one track, without asking each time."""

    def __init__(self, url):
        self.url, self.base = url + "/trackID=0", url


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--transport", choices=("tcp", "udp", "mixed"), default="mixed")
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit[1], 16384), limit[1]))
    target = Target(options.url)
    selector = selectors.DefaultSelector()
    kept, open_ones = [], 0
    # Ports of one client and of a crowd: taken in turn, or each would look through all of them.
    for number in range(options.count):
        connection = target.connect()
        over_udp = options.transport == "udp" or options.transport == "mixed" and number % 2
        try:
            if over_udp:
                ports = PortPair(target)
                kept.append(ports)
                for one in (ports.rtp, ports.rtcp):
                    selector.register(one, selectors.EVENT_READ, False)
                transport = ports.transport
            else:
                transport = "RTP/AVP/TCP;unicast;interleaved=0-1"
            Session(connection, Known(options.url), transport).play()
        except Unmet as fault:
            print(f"reader {number}: {fault}", file=sys.stderr)
            return 1
        kept.append(connection)
        connection.socket.setblocking(False)
        selector.register(connection.socket, selectors.EVENT_READ, True)
        open_ones += 1
        for key, _ in selector.select(0):
            try:
                key.fileobj.recv(1 << 16)
            except OSError:
                pass
    print("ready", flush=True)
    closed, end = 0, time.monotonic() + options.seconds
    while closed < open_ones and time.monotonic() < end:
        for key, _ in selector.select(0.2):
            try:
                data = key.fileobj.recv(1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if key.data and not data:
                selector.unregister(key.fileobj)
                closed += 1
    print(f"{closed} of {open_ones} readers were closed")
    return 0


sys.exit(main())
