#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libcurl as an RTSP client: OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, PLAY, TEARDOWN, with packets over the connection or UDP.

    Tests/Conformance/curl-client.py rtsp://host:port/path tcp|udp COUNT FOLDER

Takes COUNT pictures before the pause and COUNT after it. Writes them to FOLDER/1.h264 and FOLDER/2.h264 as they came, and their RTP times to
FOLDER/1.txt and FOLDER/2.txt, a line for each. The tool `curl` asks for OPTIONS only; its library knows the rest (CURLOPT_RTSP_REQUEST(3)).
"""

import ctypes
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "rtsp"))

from session import PortPair, Track  # noqa: E402
from wire import Response, Target  # noqa: E402

CURL = ctypes.CDLL("libcurl.so.4")
CURL.curl_easy_init.restype = ctypes.c_void_p
CURL.curl_easy_strerror.restype = ctypes.c_char_p
# curl.h: options, RTSP requests, and CURLINFO_RTSP_SESSION_ID.
URL, WRITE, REQUEST, SESSION, STREAM, TRANSPORT, INTERLEAVE, TIMEOUT = 10002, 20011, 189, 10190, 10191, 10192, 20196, 13
OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, RECEIVE = 1, 2, 4, 5, 6, 7, 11
SESSION_ID = 0x100000 + 36
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
# Longest wait for the pictures, seconds.
PATIENCE = 60


class Handle:
    """A libcurl easy handle, which keeps one connection."""

    def __init__(self, url):
        self.handle = ctypes.c_void_p(CURL.curl_easy_init())
        self.body, self.packets = b"", []
        # Kept here: libcurl keeps none of what it is handed.
        self.callbacks = CALLBACK(self.wrote), CALLBACK(self.interleaved)
        self.set(URL, url.encode())
        self.set(TIMEOUT, ctypes.c_long(PATIENCE))
        self.set(WRITE, self.callbacks[0])
        self.set(INTERLEAVE, self.callbacks[1])

    def wrote(self, data, size, count, _):
        self.body += ctypes.string_at(data, size * count)
        return size * count

    def interleaved(self, data, size, count, _):
        frame = ctypes.string_at(data, size * count)
        if frame[1] == 0:
            self.packets.append(frame[4:])
        return size * count

    def set(self, option, value):
        self.must(CURL.curl_easy_setopt(self.handle, option, value))

    def ask(self, request, **options):
        for option, value in options.items():
            self.set({"stream": STREAM, "transport": TRANSPORT}[option], value.encode())
        self.body = b""
        self.set(REQUEST, ctypes.c_long(request))
        self.must(CURL.curl_easy_perform(self.handle))

    @staticmethod
    def must(code):
        if code:
            sys.exit(f"libcurl: {CURL.curl_easy_strerror(code).decode()}")

    @property
    def session(self):
        found = ctypes.c_char_p()
        self.must(CURL.curl_easy_getinfo(self.handle, SESSION_ID, ctypes.byref(found)))
        return found.value


def annex_b(packet):
    """The NAL units of an RTP packet, or the part of one, with start codes (RFC 6184, 5.6 to 5.8)."""
    payload, code = packet[12:], b"\0\0\0\1"
    kind = payload[0] & 31
    if kind == 24:
        found, rest = b"", payload[1:]
        while rest:
            size = int.from_bytes(rest[:2], "big")
            found, rest = found + code + rest[2:2 + size], rest[2 + size:]
        return found
    if kind == 28:
        first = code + bytes([payload[0] & 0xe0 | payload[1] & 31]) if payload[1] & 128 else b""
        return first + payload[2:]
    return code + payload


def keep(packets, count, name):
    """Writes the first `count` pictures; a marker ends one."""
    with open(name + ".h264", "wb") as stream, open(name + ".txt", "w") as times:
        for packet in packets:
            stream.write(annex_b(packet))
            if packet[1] & 128:
                print(int.from_bytes(packet[4:8], "big"), file=times)
                count -= 1
                if count == 0:
                    return


def pictures(curl, ports, count):
    """Packets until so many pictures have come."""
    deadline = time.monotonic() + PATIENCE
    while sum(packet[1] >> 7 for packet in curl.packets) < count:
        if time.monotonic() > deadline:
            sys.exit(f"{len(curl.packets)} packets came within {PATIENCE} s")
        if ports:
            curl.packets += [data for is_control, data, _, _ in ports.receive(0.05) if not is_control]
        else:
            curl.ask(RECEIVE)
    return curl.packets


def main():
    url, transport, count, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    target, curl = Target(url), Handle(url)
    curl.ask(OPTIONS, stream=target.url)
    curl.ask(DESCRIBE)
    # libcurl hands over the description without its head; it lies below the URL that was asked for.
    track = Track(Response("RTSP/1.0", 200, "OK", [("Content-Base", target.url + "/")], curl.body), target)
    ports = PortPair(target) if transport == "udp" else None
    curl.ask(SETUP, stream=track.url, transport=ports.transport if ports else "RTP/AVP/TCP;unicast;interleaved=0-1")
    for part in ("1", "2"):
        curl.packets = []
        curl.ask(PLAY, stream=track.base)
        keep(pictures(curl, ports, count), count, os.path.join(folder, part))
        curl.ask(PAUSE, stream=track.base)
        if ports:
            ports.receive(0.2)
    curl.ask(TEARDOWN, stream=track.base)


main()
