#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks into a JetStream stream for tests, over NATS's text protocol; nothing but Python is needed.

    jetstream.py PORTS leader STREAM                     the server that leads the stream (PORTS: 4222,4223,…; the first that answers)
    jetstream.py PORTS dump STREAM                       each message as a line: SEQUENCE SUBJECT ID TEXT
    jetstream.py PORTS count STREAM                      messages in the stream
    jetstream.py PORTS ready COUNT                       waits until so many servers form a cluster with a leader

Exit status 1 with a sentence where nobody answers.
"""
import base64
import json
import socket
import sys
import time


class NATS:
    """One connection; requests with answers."""

    def __init__(self, port, patience=5):
        self.socket = socket.create_connection(("127.0.0.1", port), patience)
        self.socket.settimeout(patience)
        self.buffer = b""
        self.line()
        self.next = 0
        self.socket.sendall(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\nSUB in.* 1\r\nPING\r\n')
        while self.line() != b"PONG":
            pass

    def fill(self):
        more = self.socket.recv(65536)
        if not more:
            raise OSError("the server has closed the connection")
        self.buffer += more

    def line(self):
        while b"\r\n" not in self.buffer:
            self.fill()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def bytes(self, count):
        while len(self.buffer) < count + 2:
            self.fill()
        data, self.buffer = self.buffer[:count], self.buffer[count + 2 :]
        return data

    def message(self):
        while True:
            line = self.line()
            if line == b"PING":
                self.socket.sendall(b"PONG\r\n")
            elif line.startswith(b"MSG "):
                parts = line.split()
                return parts[1], self.bytes(int(parts[-1]))
            elif line.startswith(b"HMSG "):
                parts = line.split()
                data = self.bytes(int(parts[-1]))
                return parts[1], data[int(parts[-2]) :] or b'{"error":{"description":"no responders"}}'

    def ask(self, subject, body=b""):
        self.next += 1
        inbox = b"in.%d" % self.next
        self.socket.sendall(b"PUB %s %s %d\r\n%s\r\n" % (subject.encode(), inbox, len(body), body))
        while True:
            to, data = self.message()
            if to == inbox:
                return json.loads(data)

    def info(self, stream):
        answer = self.ask(f"$JS.API.STREAM.INFO.{stream}")
        if "error" in answer:
            raise OSError(answer["error"]["description"])
        return answer

    def leader(self, stream):
        name = self.info(stream)["cluster"].get("leader")
        if not name:
            raise OSError("the stream has no leader")
        return name

    def settled(self, stream):
        """State of the stream once all its replicas are current: a server that has just been started may answer with what it has of old."""
        info = self.info(stream)
        lag = [replica["name"] for replica in info["cluster"].get("replicas", []) if not replica.get("current") or replica.get("offline") or replica.get("lag")]
        if lag or not info["cluster"].get("leader"):
            raise OSError(f"not current: {lag}")
        return info["state"]

    def dump(self, stream):
        """Sequence, subject, id and text of each message."""
        state = self.info(stream)["state"]
        if not state["messages"]:
            return
        for first in range(state["first_seq"], state["last_seq"] + 1, 200):
            wanted = {}
            for sequence in range(first, min(first + 200, state["last_seq"] + 1)):
                self.next += 1
                wanted[b"in.%d" % self.next] = sequence
                body = json.dumps({"seq": sequence}).encode()
                self.socket.sendall(b"PUB $JS.API.STREAM.MSG.GET.%s in.%d %d\r\n%s\r\n" % (stream.encode(), self.next, len(body), body))
            found = {}
            while len(found) < len(wanted):
                to, data = self.message()
                if to in wanted:
                    found[wanted[to]] = json.loads(data)
            for sequence in sorted(found):
                message = found[sequence].get("message")
                if not message:
                    raise OSError(f"message {sequence}: {found[sequence]}")
                headers = base64.b64decode(message.get("hdrs", "")).decode()
                id = next((x.split(":", 1)[1].strip() for x in headers.split("\r\n") if x.startswith("Nats-Msg-Id")), "-")
                yield sequence, message["subject"], id, base64.b64decode(message.get("data", "")).decode()


def connect(ports):
    fault = None
    for port in ports:
        try:
            return NATS(port)
        except OSError as error:
            fault = error
    raise OSError(f"no server answers: {fault}")


def patiently(ports, work, seconds=180):
    """What `work` gives of a connection, tried until it works."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return work(connect(ports))
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"jetstream.py: {error}")
            time.sleep(0.2)


def main():
    ports = [int(port) for port in sys.argv[1].split(",")]
    what, name = sys.argv[2:4]
    if what == "leader":
        print(patiently(ports, lambda nats: nats.leader(name)))
    elif what == "count":
        print(patiently(ports, lambda nats: nats.info(name))["state"]["messages"])
    elif what == "dump":
        for message in patiently(ports, lambda nats: list(nats.dump(name))):
            print(*message)
    elif what == "ready":
        # A stream of so many replicas can be made once all have joined.
        def make(nats):
            answer = nats.ask("$JS.API.STREAM.CREATE.READY", json.dumps({"name": "READY", "subjects": ["ready"], "num_replicas": int(name), "storage": "memory"}).encode())
            if "error" in answer:
                raise OSError(answer["error"]["description"])
            nats.ask("$JS.API.STREAM.DELETE.READY")

        patiently(ports, make)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
