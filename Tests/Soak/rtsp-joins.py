# SPDX-License-Identifier: Apache-2.0
"""Joins a stream and leaves it, many thousand times, in every way clients do; ends with 1 where the server keeps anything of it.

    python3 Tests/Soak/rtsp-joins.py [--joins 100000] [--program .build/release/framehost]
    python3 Tests/Soak/rtsp-joins.py --at PORT --seconds 5

Starts a chain of its own; with --at it only sends clients to a server that runs, and does not mind when that ends. Four of five clients take packets over TCP, the others over UDP; of either some say TEARDOWN, some close the connection, some reset it
in the middle of a packet, some never come as far as PLAY. At each of ten stops, when all sessions must have ended, resident memory, descriptors, threads and
readers of the server are read: none may have grown since the first. Standard library only.
"""

import argparse
import json
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Tools"))
from exit_status import without_losses  # noqa: E402

SESSION_SECONDS = 5
# Memory that may come and go between two stops: buffers, and what malloc keeps of them.
ROOM_KIB = 4096
CHAIN = """
{
  "stages": [
    { "id": "camera", "use": "test-source", "size": "160x120", "rate": 25, "live": true },
    { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 200, "keyframeSeconds": 0.5 },
    { "id": "live", "use": "rtsp-sink", "port": %d, "path": "/live", "sessionSeconds": %d, "maxReaders": 20000 }
  ]
}
"""


class Client:
    """One client's whole life."""

    def __init__(self, port, dice):
        self.url, self.dice, self.sequence = f"rtsp://127.0.0.1:{port}/live", dice, 0
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""

    def ask(self, method, headers=""):
        """The answer's status and head; interleaved frames before it are left out."""
        self.sequence += 1
        self.socket.sendall(f"{method} {self.url} RTSP/1.0\r\nCSeq: {self.sequence}\r\n{headers}\r\n".encode())
        while True:
            while self.data[:1] == b"$" and len(self.data) >= 4:
                size = 4 + int.from_bytes(self.data[2:4], "big")
                if len(self.data) < size:
                    break
                self.data = self.data[size:]
            end = self.data.find(b"\r\n\r\n") if self.data[:1] == b"R" else -1
            if end >= 0:
                head, self.data = self.data[:end], self.data[end + 4:]
                return int(head.split()[1]), head.decode()
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionError("it closed the connection")
            self.data += more

    def live(self):
        """Joins and leaves; what it did."""
        dice = self.dice
        is_udp = dice.random() < 0.2
        if dice.random() < 0.02:
            return self.leave("before SETUP")
        port = 20_000 + 2 * dice.randrange(20_000)
        transport = f"RTP/AVP;unicast;client_port={port}-{port + 1}" if is_udp else "RTP/AVP/TCP;unicast;interleaved=0-1"
        status, head = self.ask("SETUP", f"Transport: {transport}\r\n")
        if is_udp and status == 461:
            # Another client of this address has the port.
            return self.leave("port taken")
        if status != 200:
            raise ConnectionError(f"SETUP was answered with {status}")
        session = next(line for line in head.split("\r\n") if line.lower().startswith("session:")).split(":")[1].split(";")[0].strip()
        if dice.random() < 0.05:
            return self.leave("before PLAY")
        status, _ = self.ask("PLAY", f"Session: {session}\r\n")
        if status != 200:
            raise ConnectionError(f"PLAY was answered with {status}")
        if dice.random() < 0.5:
            if self.ask("TEARDOWN", f"Session: {session}\r\n")[0] != 200:
                raise ConnectionError("TEARDOWN was refused")
            return self.leave("teardown, udp" if is_udp else "teardown, tcp")
        if is_udp:
            return self.leave("closed, udp")
        if dice.random() < 0.5:
            return self.leave("closed, tcp")
        # Cut while a packet is on its way, with a reset.
        if not self.data:
            self.socket.recv(7)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return self.leave("cut, tcp")

    def leave(self, how):
        self.socket.close()
        return how


class Server:
    """framehost with the chain, in a folder of its own."""

    def __init__(self, program, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        path = os.path.join(folder, "chain.json")
        with open(path, "w") as file:
            file.write(CHAIN % (self.port, SESSION_SECONDS))
        self.said = os.path.join(folder, "stderr.txt")
        with open(self.said, "wb") as said:
            self.process = subprocess.Popen(
                [program, path, "--events", "--commands"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said)
        self.readers, self.is_streaming = None, False
        self.heard = threading.Condition()
        threading.Thread(target=self.listen, daemon=True).start()
        with self.heard:
            if not self.heard.wait_for(lambda: self.is_streaming, timeout=120):
                sys.exit(f"rtsp-joins: {program} does not stream")

    def listen(self):
        for line in self.process.stdout:
            if b'"readers"' not in line and b'"streaming"' not in line:
                continue
            event = json.loads(line)
            with self.heard:
                if event.get("event") == "readers":
                    self.readers = len(event["readers"])
                self.is_streaming = self.is_streaming or event.get("state") == "streaming"
                self.heard.notify_all()

    def count_readers(self):
        """How many there are; None where it does not say."""
        with self.heard:
            self.readers = None
        self.process.stdin.write(b'{ "stage": "live", "command": "readers" }\n')
        self.process.stdin.flush()
        with self.heard:
            self.heard.wait_for(lambda: self.readers is not None, timeout=60)
            return self.readers

    def figures(self):
        """Resident memory in KiB, descriptors, threads, readers: once there are none, or after a minute."""
        deadline = time.monotonic() + 60
        readers = self.count_readers()
        while readers != 0 and time.monotonic() < deadline:
            time.sleep(0.5)
            readers = self.count_readers()
        folder = f"/proc/{self.process.pid}"
        with open(f"{folder}/status") as file:
            status = dict(line.split(":", 1) for line in file)
        return int(status["VmRSS"].split()[0]), len(os.listdir(f"{folder}/fd")), int(status["Threads"]), readers

    def end(self):
        """What is wrong with how it ended; None where nothing is."""
        self.process.terminate()
        status = self.process.wait(120)
        with open(self.said, errors="replace") as file:
            said = file.read()
        return f"framehost ended with {status}: {said}" if without_losses(status, said) else None


def join(server, count, seed, totals, faults):
    dice = random.Random(seed)
    for _ in range(count):
        try:
            how = Client(server.port, dice).live()
        except OSError as error:
            faults.append(str(error))
            continue
        totals[how] = totals.get(how, 0) + 1


def come_and_go(port, deadline, seed):
    dice = random.Random(seed)
    while time.monotonic() < deadline:
        try:
            Client(port, dice).live()
        except OSError:
            time.sleep(0.005)


def main():
    parser = argparse.ArgumentParser(prog="rtsp-joins", description=__doc__.partition("\n")[0])
    parser.add_argument("--joins", type=int, default=100_000)
    parser.add_argument("--program", default=".build/release/framehost")
    parser.add_argument("--stops", type=int, default=10)
    parser.add_argument("--at", type=int, metavar="PORT")
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    threads = 8
    if options.at:
        deadline = time.monotonic() + options.seconds
        workers = [threading.Thread(target=come_and_go, args=(options.at, deadline, n)) for n in range(threads)]
        for worker in workers:
            worker.start()
        return
    totals, faults, stops = [{} for _ in range(threads)], [], []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.program, folder)
        print(f"{'joins':>8} {'RSS KiB':>8} {'files':>6} {'threads':>8} {'readers':>8} {'joins/s':>8}", flush=True)
        for stop in range(options.stops):
            begin = time.monotonic()
            share = options.joins // options.stops // threads
            workers = [
                threading.Thread(target=join, args=(server, share, stop * threads + n, totals[n], faults)) for n in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            rate = share * threads / (time.monotonic() - begin)
            # The sessions over UDP whose clients said nothing end now: a quarter later than the timeout, looked at once a second.
            time.sleep(SESSION_SECONDS * 1.25 + 2)
            stops.append(server.figures())
            print(f"{(stop + 1) * share * threads:>8} {stops[-1][0]:>8} {stops[-1][1]:>6} {stops[-1][2]:>8} {stops[-1][3]!s:>8} {rate:>8.0f}",
                  flush=True)
        fault = server.end()
    for how in sorted({how for total in totals for how in total}):
        print(f"{sum(total.get(how, 0) for total in totals):>8} {how}")
    first, last = stops[0], stops[-1]
    wrong = [f"{len(faults)} clients failed, the first: {faults[0]}"] if faults else []
    if last[0] > first[0] + ROOM_KIB:
        wrong.append(f"memory grew from {first[0]} to {last[0]} KiB")
    if last[1] > first[1] or last[2] > first[2]:
        wrong.append(f"descriptors and threads grew from {first[1:3]} to {last[1:3]}")
    if any(stop[3] != 0 for stop in stops):
        wrong.append(f"readers were left at the stops: {[stop[3] for stop in stops]}")
    if fault:
        wrong.append(fault)
    for text in wrong:
        print(f"rtsp-joins: {text}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
