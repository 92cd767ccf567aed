#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends events through nats-events to a cluster of three while its leaders are killed and the network is away; ends with 1 where one is missing or there twice.

    python3 Tests/Soak/events.py [--events 100000] [--rate 1000] [--kills 3] [--away 60] [--crashes 0] [--program .build/release/framehost]

A chain posts an event for each `set` of a text (option-changed). Meanwhile the server that leads the stream is killed with -9 and started again four seconds later, the
network is taken away, and with --crashes framehost itself is killed with -9 and started again. In the end the stream is read: every event must be there once, in order, and
no id twice. Of a framehost that is killed only what it had answered counts, since what it had not written was nobody's yet.
Runs in a network of its own, so that the network can be away. Needs nats-server, iproute2 and unshare.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Tools"))
import jetstream  # noqa: E402

PORTS = [14222, 14223, 14224]
STREAM = "FRAMEHOST"


class Cluster:
    def __init__(self, folder):
        self.folder, self.servers = folder, {}
        for index, port in enumerate(PORTS):
            routes = ", ".join(f"nats://127.0.0.1:{port + 1000}" for port in PORTS)
            (folder / f"n{index}.conf").write_text(
                f'server_name: n{index}\nlisten: 127.0.0.1:{port}\njetstream {{ store_dir: "{folder}/store{index}", max_mem: 64M, max_file: 1G }}\n'
                f"cluster {{ name: soak, listen: 127.0.0.1:{port + 1000}, routes: [{routes}] }}\n"
            )
            self.start(index)

    def start(self, index):
        log = open(self.folder / f"n{index}.log", "ab")
        self.servers[index] = subprocess.Popen(["nats-server", "-c", self.folder / f"n{index}.conf"], stdout=log, stderr=log)

    def kill(self, index):
        self.servers[index].kill()
        self.servers[index].wait()

    def stop(self):
        for server in self.servers.values():
            server.kill()


class Host:
    """framehost; its answers are read on a thread."""

    def __init__(self, program, folder):
        self.folder, self.program = folder, program
        self.warnings, self.answered, self.refused = [], 0, 0
        self.start()

    def start(self):
        environment = dict(os.environ, XDG_STATE_HOME=str(self.folder))
        environment.pop("STATE_DIRECTORY", None)
        self.process = subprocess.Popen(
            [self.program, self.folder / "chain.json", "--commands", "--events", "--quiet"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(self.folder / "host.log", "ab"), text=True, env=environment,
        )
        self.reader = threading.Thread(target=self.read, args=(self.process.stdout,), daemon=True)
        self.reader.start()

    def read(self, stream):
        for line in stream:
            event = json.loads(line)
            if event["event"] == "command-answered" and event.get("tag"):
                self.answered = max(self.answered, int(event["tag"]))
                self.refused += not event["ok"]
            if event["event"] in ("events-lost", "publisher-disconnected", "publisher-connected", "spool-failed"):
                self.warnings.append(event["text"])

    def post(self, number):
        self.process.stdin.write(f'{{"stage":"text","set":{{"text":"{number}"}},"tag":"{number}"}}\n')


def network(state):
    subprocess.run(["ip", "link", "set", "lo", state], check=True)
    if state == "up":
        subprocess.run(["ip", "addr", "replace", "127.0.0.2/8", "dev", "lo"], check=True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--events", type=int, default=100_000)
    options.add_argument("--rate", type=int, default=1000, help="events a second")
    options.add_argument("--kills", type=int, default=3)
    options.add_argument("--away", type=float, default=60)
    options.add_argument("--crashes", type=int, default=0)
    options.add_argument("--program", default=".build/release/framehost")
    options.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = options.parse_args()
    if not options.inside:
        root = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-Urn"]
        os.execvp("unshare", [*root, sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--inside"])
    network("up")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="framehost-events-"))
    (folder / "chain.json").write_text(
        json.dumps(
            {
                "nats": {"servers": [f"nats://127.0.0.1:{port}" for port in PORTS], "replicas": 3, "host": "soak", "level": "debug", "events": ["option-changed"]},
                "stages": [
                    {"id": "cam", "use": "test-source", "size": "160x120", "rate": 50, "live": True},
                    {"id": "text", "use": "text", "text": "0"},
                    {"id": "sink", "use": "null-sink"},
                ],
            }
        )
    )
    cluster = Cluster(folder)
    jetstream.patiently(PORTS, lambda nats: nats.ask("$JS.API.INFO"))
    time.sleep(5)
    host = Host(os.path.abspath(options.program), folder)
    begin = time.monotonic()
    steps = [("kill", None)] * options.kills + [("crash", None)] * options.crashes
    steps.insert(len(steps) // 2, ("away", options.away))
    at = {int(options.events * (index + 1) / (len(steps) + 1)): step for index, step in enumerate(steps)}
    figures, busy, lost_by_crash = [], None, []
    for number in range(1, options.events + 1):
        host.post(number)
        if number % 50 == 0:
            host.process.stdin.flush()
            # A chain takes so many commands at once; a refused one posts no event.
            while host.answered < number - 200 and host.process.poll() is None:
                time.sleep(0.005)
            time.sleep(max(0, begin + number / options.rate - time.monotonic()))
        if number not in at:
            continue
        host.process.stdin.flush()
        what, seconds = at[number]
        if what == "crash":
            while host.answered < number:
                time.sleep(0.05)
            # The event is posted with the answer; the spool has it a moment later.
            time.sleep(1)
            host.process.kill()
            host.process.wait()
            host.reader.join(10)
            host.start()
            figures.append(f"framehost killed at event {number}")
            continue
        if busy:
            busy.join()

        def work(what=what, seconds=seconds, number=number):
            if what == "kill":
                leader = jetstream.patiently(PORTS, lambda nats: nats.leader(STREAM))
                cluster.kill(int(leader[1:]))
                time.sleep(4)
                cluster.start(int(leader[1:]))
                figures.append(f"leader {leader} killed at event {number}")
            else:
                network("down")
                time.sleep(seconds)
                network("up")
                figures.append(f"network away for {seconds:.0f} s from event {number} on")

        busy = threading.Thread(target=work)
        busy.start()
    host.process.stdin.flush()
    if busy:
        busy.join()
    posted = time.monotonic() - begin
    deadline = time.monotonic() + 300
    count, last = 0, time.monotonic()
    while time.monotonic() < deadline and count < options.events:
        now = jetstream.patiently(PORTS, lambda nats: nats.info(STREAM))["state"]["messages"]
        if now != count:
            count, last = now, time.monotonic()
        elif time.monotonic() - last > 60:
            break
        time.sleep(0.5)
    seconds = time.monotonic() - begin
    usage = (pathlib.Path(f"/proc/{host.process.pid}/status")).read_text()
    host.process.send_signal(signal.SIGINT)
    host.process.wait(30)
    # A server that has just been started may answer with what it had.
    for _ in range(2):
        time.sleep(5)
        jetstream.patiently(PORTS, lambda nats: nats.settled(STREAM), 120)
    messages = jetstream.patiently(PORTS, lambda nats: list(nats.dump(STREAM)))
    cluster.stop()
    ids = [message[2] for message in messages]
    numbers = [int(json.loads(message[3])["options"]["text"]) for message in messages]
    missing = sorted(set(range(1, options.events + 1)) - set(numbers))
    print(f"{options.events} events posted in {posted:.1f} s, all sent after {seconds:.1f} s; {len(messages)} in the stream")
    print("\n".join(figures))
    print("\n".join(host.warnings))
    print(f"{host.refused} commands refused")
    print(next(line for line in usage.splitlines() if line.startswith("VmHWM")))
    print(f"missing {len(missing)}, ids twice {len(ids) - len(set(ids))}, events twice {len(numbers) - len(set(numbers))}, out of order {sum(a > b for a, b in zip(numbers, numbers[1:]))}")
    if missing or len(set(ids)) != len(ids) or len(numbers) != options.events or numbers != sorted(numbers):
        sys.exit(f"FAILED: {missing[:10]}; see {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
