# SPDX-License-Identifier: Apache-2.0
"""RTSP clients of all manners, each on a thread of its own; a socket that breaks ends its client."""

import os
import re
import socket
import ssl
import struct
import threading
import time

MANNERS = ["player", "player", "player", "udp", "slow", "frozen", "reset", "half", "garbage", "headers", "many", "drip", "interleaved", "http", "pause", "describe",
           "wrong-order", "stranger"]


class Client(threading.Thread):
    def __init__(self, server, manner, start, seconds, dice):
        super().__init__(daemon=True)
        self.server, self.manner, self.at, self.seconds, self.dice = server, manner, start, seconds, dice
        self.url = f"rtsp://127.0.0.1:{server['port']}{server['path']}"
        self.sequence, self.data, self.sockets = 0, b"", []
        self.answers = []

    def run(self):
        time.sleep(self.at)
        self.deadline = time.monotonic() + self.seconds
        try:
            getattr(self, "do_" + self.manner.replace("-", "_"))()
        except (OSError, ValueError, IndexError):
            pass
        finally:
            for one in self.sockets:
                one.close()

    def connect(self):
        while True:
            try:
                one = socket.create_connection(("127.0.0.1", self.server["port"]), timeout=1)
                break
            except ConnectionRefusedError:
                if time.monotonic() > self.deadline:
                    raise
                time.sleep(0.01)
        self.sockets.append(one)
        if self.server["tls"] and self.dice.random() < 0.8:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            one = context.wrap_socket(one)
            self.sockets.append(one)
        self.socket = one
        return one

    def send(self, method, headers="", url=None):
        self.sequence += 1
        self.socket.sendall(f"{method} {url or self.url} RTSP/1.0\r\nCSeq: {self.sequence}\r\n{headers}\r\n".encode())

    def ask(self, method, headers="", url=None):
        self.send(method, headers, url)
        while True:
            while self.data[:1] == b"$" and len(self.data) >= 4:
                size = 4 + int.from_bytes(self.data[2:4], "big")
                if len(self.data) < size:
                    break
                self.data = self.data[size:]
            end = self.data.find(b"\r\n\r\n") if self.data[:1] == b"R" else -1
            if end >= 0:
                head, self.data = self.data[:end].decode(errors="replace"), self.data[end + 4:]
                length = re.search(r"(?i)content-length: *(\d+)", head)
                while length and len(self.data) < int(length[1]):
                    self.more()
                self.data = self.data[int(length[1]):] if length else self.data
                status = int(head.split()[1])
                self.answers.append(status)
                return status, head
            self.more()

    def more(self):
        got = self.socket.recv(65536)
        if not got:
            raise ConnectionError("closed")
        self.data += got


    def play(self, transport="RTP/AVP/TCP;unicast;interleaved=0-1"):
        self.connect()
        self.ask("OPTIONS")
        self.ask("DESCRIBE", "Accept: application/sdp\r\n")
        status, head = self.ask("SETUP", f"Transport: {transport}\r\n", self.url + self.dice.choice(["", "/trackID=0", "/track1", "/streamid=0"]))
        if status != 200:
            status, head = self.ask("SETUP", f"Transport: {transport}\r\n")
        found = re.search(r"(?i)session: *([^;\r]+)", head)
        self.session = found[1] if found else "0"
        return self.ask("PLAY", f"Session: {self.session}\r\nRange: npt=0-\r\n")

    def read_on(self):
        while time.monotonic() < self.deadline:
            self.more()
            self.data = b""

    def do_player(self):
        self.play()
        self.read_on()
        if self.dice.random() < 0.5:
            self.send("TEARDOWN", f"Session: {self.session}\r\n")

    def do_udp(self):
        pair = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        self.sockets += pair
        for one in pair:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in pair]
        self.play(f"RTP/AVP;unicast;client_port={ports[0]}-{ports[1]}")
        while time.monotonic() < self.deadline:
            for one in pair:
                try:
                    one.settimeout(0.05)
                    one.recv(2000)
                except TimeoutError:
                    pass
            pair[1].sendto(self.dice.randbytes(self.dice.choice([0, 1, 8, 32, 1400])), ("127.0.0.1", self.server["port"]))
        if self.dice.random() < 0.5:
            self.send("TEARDOWN", f"Session: {self.session}\r\n")

    def do_slow(self):
        self.play()
        while time.monotonic() < self.deadline:
            self.socket.recv(100)
            time.sleep(0.02)

    def do_frozen(self):
        self.play()
        time.sleep(self.seconds)

    def do_reset(self):
        self.play()
        self.socket.recv(7)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def do_half(self):
        self.connect()
        text = f"SETUP {self.url} RTSP/1.0\r\nCSeq: 1\r\nTransport: RTP/AVP/TCP;unicast\r\n\r\n".encode()
        self.socket.sendall(text[:self.dice.randrange(len(text))])
        time.sleep(self.seconds)

    def do_garbage(self):
        self.connect()
        for _ in range(20):
            self.socket.sendall(self.dice.randbytes(self.dice.randrange(1, 3000)))
            time.sleep(0.01)

    def do_headers(self):
        self.connect()
        self.ask("SETUP", "Transport: " + "RTP/AVP;unicast;client_port=1-2," * self.dice.choice([3, 100, 400]) + "\r\n")
        self.ask("OPTIONS", "".join(f"X-{n}: {'y' * 50}\r\n" for n in range(self.dice.choice([10, 300]))))
        self.ask("DESCRIBE", "Content-Length: 99999999999999999999\r\n")

    def do_many(self):
        ones = []
        for _ in range(self.dice.choice([20, 60])):
            ones.append(self.connect())
        for one in ones:
            one.sendall(b"OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n")
        time.sleep(self.seconds / 2)

    def do_drip(self):
        self.connect()
        for byte in f"OPTIONS {self.url} RTSP/1.0\r\nCSeq: 1\r\n\r\n".encode():
            self.socket.sendall(bytes([byte]))
            time.sleep(0.005)

    def do_interleaved(self):
        self.play()
        for _ in range(50):
            self.socket.sendall(b"$" + bytes([self.dice.randrange(256)]) + struct.pack(">H", 20) + self.dice.randbytes(20))
        self.socket.sendall(b"$\x01\xff\xff")
        self.read_on()

    def do_http(self):
        self.connect()
        self.socket.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nx-sessioncookie: abc\r\nAccept: application/x-rtsp-tunnelled\r\n\r\n")
        self.more()
        self.socket.sendall(os.urandom(50))
        time.sleep(self.seconds / 2)

    def do_pause(self):
        self.play()
        while time.monotonic() < self.deadline:
            self.ask(self.dice.choice(["PAUSE", "PLAY", "GET_PARAMETER", "SET_PARAMETER", "OPTIONS"]),
                     f"Session: {self.session}\r\n" + self.dice.choice(["", "Range: npt=5.0-\r\n", "Range: clock=20200101T000000Z-\r\n", "Scale: 2.0\r\n"]))
            time.sleep(0.02)

    def do_describe(self):
        self.connect()
        while time.monotonic() < self.deadline:
            self.ask("DESCRIBE", url=self.url + self.dice.choice(["", "/", "?x=1", "//", "/nope"]))

    def do_wrong_order(self):
        self.connect()
        for method in self.dice.sample(["PLAY", "TEARDOWN", "PAUSE", "SETUP", "RECORD", "ANNOUNCE", "GET_PARAMETER", "FOO", "REDIRECT"], 5):
            self.ask(method, self.dice.choice(["Session: 1\r\n", "", "Session: " + "9" * 100 + "\r\n", "Transport: RTP/AVP/TCP;interleaved=300-301\r\n"]))

    def do_stranger(self):
        """Plays, and another connection ends its session."""
        self.play()
        mine = self.socket
        self.connect()
        self.data = b""
        self.ask(self.dice.choice(["TEARDOWN", "PAUSE", "SETUP"]), f"Session: {self.session}\r\nTransport: RTP/AVP/TCP;unicast;interleaved=2-3\r\n")
        self.socket = mine
        self.data = b""
        self.read_on()


def draw(dice, servers):
    """A crowd for these servers."""
    import random
    crowd = []
    for _ in range(dice.choice([0, 1, 1, 2, 4, 8])):
        start, seconds = dice.random() * 0.3, dice.choice([0.05, 0.2, 0.5])
        crowd.append(Client(dice.choice(servers), dice.choice(MANNERS), start, seconds, random.Random(dice.getrandbits(32))))
    return crowd
