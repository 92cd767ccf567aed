#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs framehost among readers that do not read, strangers, brokers that are none and signals, and asks whether it listens all the time; ends with 1 where it did not.

    python3 Tests/Soak/listening.py [--seconds 180] [--seed 1] [--margin 2] [--program .build/release/framehost]

Each round is a run of one chain or of two, each with a recording in short segments and a control server. By the seed:

- standard error is a terminal or a pipe, and is read, never read, or read late; standard output is read, read late, read slowly or never;
- standard input is non-blocking or not, and gets bursts of commands with a tag each; some say nothing that makes sense;
- clients of the control server ask, set and ask for nothing; strangers connect and send nothing or half a request, and stay;
- few descriptors are allowed, and strangers take all that they get while segments begin;
- events go to a NATS server, an MQTT broker and a web address that answer well, or never, with garbage, with floods of what nobody asked for, with messages without an end, or close at once;
- SIGUSR1 and SIGHUP come at any time.

The round ends by SIGTERM, SIGINT, a command, a request, `--for`, or a signal while the chains are planned. Then:

- the program has ended within a second (and --margin seconds, for a machine that has other work), with status 0, or 1 where it says why;
- each command that it read has one answer, in order, where its answers were read: no tag is there twice, and none is missing between two that are there. Where the program was not told to end before, none is missing;
- each request that a client has sent before the end was told is answered;
- of the events `option-changed`, each is there or counted by a `lines-lost`, where standard output was read to its end;
- each segment that the program says it has finished is there and no smaller than it says; no number is missing among them, and in ffprobe's eyes they have pictures;
- a lost line of standard output makes the status 1, and nothing else does but frames that a busy machine lost;
- of the events for a server that answers well, each has reached it, waits in the spool, or is said to be lost;
- it has left no folder in TMPDIR.
"""
import argparse
import contextlib
import http.client
import json
import os
import pathlib
import pty
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tty


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Reader(threading.Thread):
    """Reads a stream as a program may: at once, late, slowly or never."""

    def __init__(self, file, kind, rng):
        super().__init__(daemon=True)
        self.file, self.kind, self.text = file, kind, bytearray()
        self.delay = rng.uniform(0.5, 3) if kind == "late" else 0
        self.go = threading.Event()
        if kind != "never":
            self.go.set()
        self.start()

    def run(self):
        time.sleep(self.delay)
        # What is never read while the program runs is read afterwards, where the pipe still has it.
        self.go.wait()
        while True:
            try:
                part = os.read(self.file, 512 if self.kind == "slow" else 65536)
            except OSError:
                break
            if not part:
                break
            self.text += part
            if self.kind == "slow":
                time.sleep(0.002)
        os.close(self.file)


class Server(threading.Thread):
    """A NATS server, an MQTT broker or a web address that answers well, or in one of the ways of whoever may stand in its place."""

    FLOODS = {
        "nats": {
            "PING": b"PING\r\n", "-ERR": b"-ERR 'no'\r\n", "+OK": b"+OK\r\n", "MSG": b"MSG a 1 4\r\nabcd\r\n",
            "INFO": b'INFO {"headers":true,"max_payload":1048576,"a":"' + b"x" * 50_000 + b'"}\r\n',
        },
        "mqtt": {
            "PUBACK": b"\x40\x02\x09\x09", "PINGRESP": b"\xd0\x00", "SUBACK": b"\x90\x03\x00\x00\x01",
            "PUBLISH": b"\x32\x07\x00\x01a\x00\x01hi",
        },
        "webhook": {"100": b"HTTP/1.1 100 Continue\r\n\r\n", "field": b"X-A: " + b"a" * 1000 + b"\r\n"},
    }
    # Messages without an end, whose bytes come together or one by one.
    LONG = {"nats": b"MSG a 1 64000000\r\n", "mqtt": b"\x30\xff\xff\xff\x7f", "webhook": b"HTTP/1.1 200 OK\r\nX-A: "}

    def __init__(self, kind, rng):
        super().__init__(daemon=True)
        self.kind = kind
        floods = list(self.FLOODS[kind])
        self.way = rng.choice(["well", "well", "silent", "closes", "drops", "garbage", "long", "drip", *floods, *(f"{name} at once" for name in floods)])
        self.garbage = rng.randbytes(1 << 16)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        # Numbers of events that it has acknowledged.
        self.numbers, self.connections = set(), []
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.connections.append(client)
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def close(self):
        for one in [self.listener, *self.connections]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def serve(self, client):
        with contextlib.suppress(OSError, EOFError, ValueError):
            if self.way == "closes":
                client.close()
            elif self.way == "garbage":
                client.sendall(self.garbage)
            elif self.way.endswith(" at once"):
                self.send_too_much(client)
            elif self.way != "silent":
                {"nats": self.be_nats, "mqtt": self.be_mqtt, "webhook": self.be_webhook}[self.kind](client)

    def send_too_much(self, client):
        with contextlib.suppress(OSError):
            if self.way == "drops":
                time.sleep(0.05)
                client.shutdown(socket.SHUT_RDWR)
            elif self.way in ("long", "drip"):
                client.sendall(self.LONG[self.kind])
                while True:
                    client.sendall(b"a" * (65536 if self.way == "long" else 1))
            elif self.way != "well":
                flood = self.FLOODS[self.kind][self.way.removesuffix(" at once")]
                while True:
                    client.sendall(flood * max(1, 65536 // len(flood)))

    def begin_too_much(self, client):
        threading.Thread(target=self.send_too_much, args=(client,), daemon=True).start()

    @staticmethod
    def read(file, count):
        data = file.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def take(self, payload):
        with contextlib.suppress(ValueError, AttributeError):
            number = json.loads(payload).get("number")
            self.numbers |= {number} if isinstance(number, int) else set()

    def be_nats(self, client):
        client.sendall(b'INFO {"server_id":"x","version":"2.10.0","headers":true,"max_payload":1048576,"proto":1}\r\n')
        file = client.makefile("rb")
        while line := file.readline():
            words = line.split()
            if words[:1] == [b"PING"]:
                client.sendall(b"PONG\r\n")
            elif words[:1] in ([b"PUB"], [b"HPUB"]):
                subject, reply, total = words[1].decode(), words[2].decode(), int(words[-1])
                body = self.read(file, total + 2)[:total]
                if "STREAM.MSG.GET" in subject:
                    answer = {"error": {"code": 404, "err_code": 10037, "description": "no message found"}}
                elif subject.startswith("$JS.API"):
                    answer = {"config": {"name": subject.split(".")[-1]}}
                else:
                    self.take(body[int(words[-2]) :])
                    answer = {"stream": "framehost", "seq": len(self.numbers)}
                text = json.dumps(answer).encode()
                client.sendall(f"MSG {reply} 1 {len(text)}\r\n".encode() + text + b"\r\n")
                if "STREAM.INFO" in subject:
                    self.begin_too_much(client)

    def be_mqtt(self, client):
        file = client.makefile("rb")
        while first := file.read(1):
            length = shift = 0
            while True:
                byte = self.read(file, 1)[0]
                length |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            body = self.read(file, length)
            kind = first[0] >> 4
            if kind == 1:
                client.sendall(b"\x20\x02\x00\x00")
                self.begin_too_much(client)
            elif kind == 3 and first[0] & 6:
                begin = 2 + int.from_bytes(body[:2], "big")
                self.take(body[begin + 2 :])
                client.sendall(b"\x40\x02" + body[begin : begin + 2])
            elif kind == 8:
                client.sendall(b"\x90\x03" + body[:2] + b"\x01")
            elif kind == 12:
                client.sendall(b"\xd0\x00")

    def be_webhook(self, client):
        file = client.makefile("rb")
        while line := file.readline():
            length = 0
            while line not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                line = file.readline()
            self.take(self.read(file, length))
            if self.way != "well":
                return self.send_too_much(client)
            client.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")


class Round:
    def __init__(self, program, folder, seed, margin):
        self.rng = rng = random.Random(seed)
        self.folder, self.margin, self.faults = folder, margin, []
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.several = rng.random() < 0.4
        self.ports, self.servers, files = [], [], []
        for name in ["a", "b"] if self.several else ["a"]:
            self.ports.append(free_port())
            chain = {
                "control": {"listen": f"127.0.0.1:{self.ports[-1]}"},
                "stages": [
                    {"id": "cam", "use": "test-source", "size": "64x64", "rate": rng.choice([20, 50]), "live": True},
                    {"id": "text", "use": "text", "text": "a", "link": {"queue": rng.choice([4, 100])}},
                    {"id": "h264", "use": "x264-encoder", "preset": "ultrafast", "tune": "zerolatency", "keyframeSeconds": 0.2},
                    {"id": "rec", "use": "recorder", "path": f"{name}-{{nnnn}}.mp4", "segmentSeconds": 0.2, "finalize": "never"},
                ],
            }
            for kind, key in (("nats", "servers"), ("mqtt", "broker"), ("webhook", "url")):
                if rng.random() < 0.6:
                    server = Server(kind, rng)
                    address = f"{'http' if kind == 'webhook' else kind}://127.0.0.1:{server.port}"
                    self.servers.append((name, server))
                    chain[kind] = {key: [address] if kind == "nats" else address, "spool": f"{name}.{kind}", "level": rng.choice(["info", "debug"])}
            (folder / f"{name}.json").write_text(json.dumps(chain))
            files.append(f"{name}.json")
        self.end = rng.choice(["SIGTERM", "SIGTERM", "SIGINT", "command", "request", "for", "early"])
        self.length = rng.uniform(1.5, 4)
        arguments = files + ["--commands", "--snapshot-on-signal", "a:cam=now.jpg" if self.several else "cam=now.jpg"]
        self.has_events = rng.random() < 0.6
        arguments += ["--events"] if self.has_events else []
        arguments += rng.choice([[], ["-v"], ["-v"], ["--log-format", "json"], ["--watch"], ["--watch-plugins"]])
        arguments += ["--for", f"{self.length:.2f}"] if self.end == "for" else []
        self.output_kind = rng.choice(["read", "read", "late", "slow", "never"])
        self.log_kind = rng.choice(["read", "late", "never", "never"])
        self.on_terminal = rng.random() < 0.5
        self.status = None
        # The program's own are about 40 for a chain.
        self.descriptors = rng.choice([None, None, 200, 400])
        ways = ", ".join(f"{server.kind} of {name}: {server.way}" for name, server in self.servers)
        self.what = f"{' '.join(arguments)}; standard output {self.output_kind}, standard error {'a terminal, ' if self.on_terminal else ''}{self.log_kind}, end by {self.end}; {ways or 'no servers'}; descriptors: {self.descriptors}"

        read_end, self.input = os.pipe()
        if rng.random() < 0.5:
            os.set_blocking(read_end, False)
        output, output_end = os.pipe()
        if self.on_terminal:
            log, log_end = pty.openpty()
            tty.setraw(log_end)
        else:
            log, log_end = os.pipe()
        environment = {**os.environ, "TMPDIR": str(self.temporary)}
        self.process = subprocess.Popen(
            [program, *arguments], cwd=folder, stdin=read_end, stdout=output_end, stderr=log_end, env=environment, start_new_session=True,
            preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (self.descriptors,) * 2)) if self.descriptors else None,
        )
        for file in (read_end, output_end, log_end):
            os.close(file)
        self.output, self.log = Reader(output, self.output_kind, rng), Reader(log, self.log_kind, rng)
        self.is_over, self.is_enough = threading.Event(), threading.Event()
        # One that ends by itself may do so from here on.
        self.told_at = time.time() + self.length if self.end == "for" else None
        self.sent, self.sets, self.strangers = 0, set(), []
        # Long ones fill what waits for a reader.
        self.length_of_texts = rng.choice([0, 0, 3500])
        self.requests, self.unanswered, self.is_crowded = 0, 0, False
        self.lock = threading.Lock()
        os.set_blocking(self.input, False)

    # What happens to it

    def send_line(self, line):
        """False where the program does not take it, or is told to end meanwhile."""
        rest = line.encode() + b"\n"
        while rest and not self.is_over.is_set():
            try:
                rest = rest[os.write(self.input, rest) :]
            except BlockingIOError:
                time.sleep(0.002)
            except OSError:
                return False
        return not rest

    def send_commands(self, rng):
        while not self.is_over.is_set() and not self.is_enough.is_set():
            for _ in range(rng.choice([1, 5, 200])):
                tag = self.sent
                kind = rng.choice(["status", "set", "set", "figures", "odd"])
                line = {
                    "status": {"command": "status"},
                    "figures": {"command": "figures"},
                    "set": {"stage": "text", "set": {"text": f"{tag}" + "x" * self.length_of_texts}},
                    "odd": {"command": rng.choice(["", "dance", "\x1b[2J"]), "stage": 7},
                }[kind] | {"tag": tag}
                if self.several:
                    line["chain"] = rng.choice(["a", "b"])
                if not self.send_line(json.dumps(line)):
                    return
                self.sent += 1
                self.sets |= {tag} if kind == "set" else set()
            time.sleep(rng.choice([0.001, 0.05, 0.3]))

    def ask(self, rng):
        connection, is_known = None, False
        while not self.is_over.is_set():
            asked = time.time()
            try:
                is_known = is_known and connection is not None
                connection = connection or http.client.HTTPConnection("127.0.0.1", rng.choice(self.ports), timeout=20)
                connection.connect() if connection.sock is None else None
            except OSError:
                connection = None
                time.sleep(0.05)
                continue
            try:
                if rng.random() < 0.5:
                    connection.request("GET", rng.choice(["/api/v1/status", "/api/v1/figures", "/metrics", "/nothing"]))
                else:
                    connection.request("PATCH", "/api/v1/stages/text/options", '{"text":"x"}', {"Content-Type": "application/json"})
                asked = time.time()
                answer = connection.getresponse()
                answer.read()
                is_known = True
                with self.lock:
                    self.requests += 1
                if answer.getheader("Connection") == "close" or rng.random() < 0.1:
                    connection.close()
                    connection = None
            except (OSError, http.client.HTTPException):
                # A connection that waited, and was closed then, got no request. One without a request until now has to make room for further strangers.
                if (is_known or not self.is_crowded) and self.process.poll() is None and (self.told_at is None or asked < self.told_at - 0.1):
                    with self.lock:
                        self.unanswered += 1
                connection = None
            time.sleep(rng.choice([0, 0, 0.05]))

    def stray(self, rng):
        with contextlib.suppress(OSError):
            one = socket.create_connection(("127.0.0.1", rng.choice(self.ports)), 2)
            one.sendall(rng.choice([b"", b"GET", b"GET / HTTP/1.1\r\nHost: x", b"\x16\x03\x01\x00", b"POST /api/v1/drain HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"]))
            self.strangers.append(one)

    def take_descriptors(self, rng):
        """Strangers and readers of events who stay, as many as the program lets in."""
        self.is_crowded = True
        for _ in range(rng.choice([20, 100, 500])):
            try:
                one = socket.create_connection(("127.0.0.1", rng.choice(self.ports)), 2)
                if rng.random() < 0.5:
                    one.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                self.strangers.append(one)
            except OSError:
                return

    def is_listening(self):
        """Whether the first chain's server answers: the program takes signals then."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", self.ports[-1], timeout=5)
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return True
        return False

    def run(self):
        rng = self.rng
        if self.end == "early":
            time.sleep(rng.uniform(0.3, 0.8))
            return self.finish(rng)
        begin = time.time()
        while not self.is_listening():
            if self.process.poll() is not None or time.time() > begin + 60:
                self.faults.append("did not start")
                return self.finish(rng)
            time.sleep(0.05)
        self.sender = threading.Thread(target=self.send_commands, args=(random.Random(rng.random()),), daemon=True)
        threads = [self.sender] + [threading.Thread(target=self.ask, args=(random.Random(rng.random()),), daemon=True) for _ in range(rng.choice([1, 4, 12]))]
        for thread in threads:
            thread.start()
        until = time.time() + self.length
        while time.time() < until and self.process.poll() is None:
            kind = rng.choice(["stray", "stray", "SIGUSR1", "SIGHUP", "wait", "descriptors"])
            if kind == "stray":
                self.stray(rng)
            elif kind == "descriptors":
                self.take_descriptors(rng)
            # A terminal that has gone would make SIGHUP end the run.
            elif kind == "SIGUSR1" or (kind == "SIGHUP" and self.end != "for"):
                self.process.send_signal(getattr(signal, kind))
            time.sleep(rng.uniform(0.02, 0.3))
        self.finish(rng)

    def finish(self, rng):
        told = time.time()
        kind = self.end
        if kind != "for":
            self.told_at = told
        limit = 1 + self.margin
        if kind == "command" or kind == "request":
            taken = False
            if kind == "command":
                # Behind all that were sent before.
                self.is_enough.set()
                self.sender.join(60)
                names = ["a", "b"] if self.several else [None]
                lines = [{"command": "drain", "tag": f"end {name}"} | ({"chain": name} if name else {}) for name in names]
                # What nobody reads answers of is not read either.
                taken = self.output_kind != "never" and not self.sender.is_alive() and all(self.send_line(json.dumps(line)) for line in lines)
            else:
                for port in self.ports:
                    with contextlib.suppress(OSError, http.client.HTTPException):
                        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
                        connection.request("POST", "/api/v1/drain", "{}", {"Content-Type": "application/json"})
                        taken = connection.getresponse().status == 200
                    if not taken and self.process.poll() is None:
                        self.faults.append("did not take a request to drain")
            self.told_at = told = time.time()
            # Commands before it are carried out first, and a slow reader may read the rest.
            limit += 12 if self.output_kind in ("slow", "late") else 3
            if not taken:
                kind = "SIGTERM"
        if kind in ("SIGTERM", "SIGINT", "early"):
            limit = 1 + self.margin
            self.process.send_signal(signal.SIGINT if kind == "SIGINT" else signal.SIGTERM)
        if kind == "for":
            limit += 12 if self.output_kind in ("slow", "late") else 0
        try:
            status = self.process.wait(limit + 30)
            seconds = time.time() - told
            if seconds > limit:
                self.faults.append(f"took {seconds:.1f} s to end")
        except subprocess.TimeoutExpired:
            self.faults.append("did not end")
            self.process.kill()
            status = self.process.wait()
        self.is_over.set()
        self.output.go.set()
        self.log.go.set()
        for reader in (self.output, self.log):
            reader.join(60)
        os.close(self.input)
        for one in self.strangers:
            one.close()
        for _, server in self.servers:
            server.close()
        self.status = status
        self.judge(status)

    # What is asked of it

    def judge(self, status):
        log = self.log.text.decode(errors="replace")
        losses = re.search(r"the live chain lost|could not be taken", log)
        if self.end == "early":
            # Before there is a chain to end; or by the signal itself, before the program takes it.
            if status not in (0, 1, -signal.SIGTERM):
                self.faults.append(f"ended with status {status}")
        elif status != 0 and not (status == 1 and (losses or "lines of standard output were left out" in log or "1 line of standard output was left out" in log or self.log_kind == "never")):
            self.faults.append(f"ended with status {status}")
        if self.unanswered:
            self.faults.append(f"did not answer {self.unanswered} of {self.requests + self.unanswered} requests")
        left = [name for name in os.listdir(self.temporary) if name.startswith("framehost")]
        if left:
            self.faults.append(f"left {left}")
        if self.end == "early":
            return
        tags, done, changed, lost, unreadable, stopped = [], 0, 0, 0, 0, set()
        lines = self.output.text.split(b"\n")
        for line in lines[:-1]:
            try:
                event = json.loads(line)
            except ValueError:
                unreadable += 1
                continue
            if event["event"] == "command-answered" and isinstance(event.get("tag"), int):
                tags.append(event["tag"])
                done += event["ok"] and event["tag"] in self.sets
            elif event["event"] == "state" and event["state"] == "stopped":
                stopped.add(event.get("chain"))
            elif event["event"] == "option-changed":
                changed += 1
            elif event["event"] == "lines-lost":
                lost += event["lines"] if event["stream"] == "output" else 0
            elif event["event"] == "recording-did-stop":
                path = pathlib.Path(event["path"])
                if not path.is_absolute():
                    path = self.folder / path
                # The last one tells of all segments together.
                size = 1 if "files" in event else event.get("bytes", 1)
                if not path.exists() or path.stat().st_size < size:
                    self.faults.append(f"lost the recording {path.name}")
        if status == 0 and lost:
            self.faults.append(f"ended with status 0 though {lost} lines were left out")
        if status == 0 and self.has_events and len(stopped) != len(self.ports):
            self.faults.append("ended with status 0 though the last events are missing")
        # A request's change makes an event too. What a reader has not taken when the time of the end is over is said in the log, and by the status.
        is_said = status == 1 and ("of standard output w" in log or self.log_kind == "never")
        if self.has_events and self.output_kind != "never" and changed + lost < done and not is_said:
            self.faults.append(f"lost {done - changed - lost} events without a word")
        if unreadable:
            self.faults.append(f"wrote {unreadable} lines that are no JSON")
        if len(set(tags)) != len(tags):
            self.faults.append("answered a command twice")
        # Stages answer at different times: who waits a second for one before it is passed.
        if self.output_kind != "never" and sorted(tags) != list(range(len(tags))):
            missing = sorted(set(range(max(tags, default=-1) + 1)) - set(tags))
            self.faults.append(f"did not answer the commands {missing[:10]} of {self.sent}")
        if self.output_kind == "read" and self.end in ("command",) and len(tags) < self.sent:
            self.faults.append(f"answered {len(tags)} of {self.sent} commands")
        self.judge_recordings()
        self.judge_servers(log)
        self.figures = (len(tags), self.sent, lost, self.requests)


    def judge_recordings(self):
        for name in ["a", "b"] if self.several else ["a"]:
            files = sorted(self.folder.glob(f"{name}-*.mp4"))
            if [path.name for path in files] != [f"{name}-{number:04}.mp4" for number in range(1, len(files) + 1)] or not files:
                self.faults.append(f"lost recordings: has {[path.name for path in files][-20:]}")
            # Each begins when strangers may have the descriptors. Not all are looked at, for the sake of time.
            for path in self.rng.sample(files, min(len(files), 3)):
                command = ["ffprobe", "-v", "error", "-count_packets", "-select_streams", "v", "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0", path]
                found = subprocess.run(command, capture_output=True, text=True, check=False)
                if found.stderr or not found.stdout.strip().isdigit():
                    self.faults.append(f"spoilt {path.name}: {found.stdout.strip()} {found.stderr.strip()[:200]}")

    def judge_servers(self, log):
        for name, server in self.servers:
            if server.way != "well":
                continue
            waiting = set()
            for path in (self.folder / f"{name}.{server.kind}").glob("*.events"):
                waiting |= {int(line.split()[1]) for line in path.read_bytes().splitlines()}
            known = server.numbers | waiting
            missing = set(range(1, max(known, default=0) + 1)) - known
            # Nobody may have read that they are lost.
            said = "were lost" in log or "was lost" in log or self.log_kind == "never"
            if (missing and not said) or not known:
                self.faults.append(f"lost {len(missing)} events for {server.kind} of {len(known)} without a word")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--margin", type=float, default=float(os.environ.get("LISTENING_MARGIN", "2")))
    parser.add_argument("--program", default=".build/release/framehost")
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16_384), hard))
    program = str(pathlib.Path(options.program).resolve())
    begin, rounds, failed = time.time(), 0, 0
    totals = [0, 0, 0, 0]
    while time.time() - begin < options.seconds:
        seed = options.seed + rounds
        folder = pathlib.Path(tempfile.mkdtemp(prefix="framehost-listening-"))
        one = Round(program, folder, seed, options.margin)
        try:
            one.run()
        finally:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()
        for index, figure in enumerate(getattr(one, "figures", [])):
            totals[index] += figure
        if one.faults:
            failed += 1
            print(f"FAILED seed {seed}: {'; '.join(one.faults)}. Status {one.status}. {one.what}", flush=True)
            print("  " + "\n  ".join(one.log.text.decode(errors="replace")[-600:].splitlines()), flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        rounds += 1
    print(f"{rounds} rounds, {failed} failed: {totals[0]} answers to {totals[1]} commands, {totals[2]} lines left out and said, {totals[3]} requests answered.")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
