# SPDX-License-Identifier: Apache-2.0
"""Changes a live chain at random while a recording and an RTSP reader go on beside it; ends with 1 where either suffers.

    python3 Tests/Soak/changes.py [--operations 1000] [--seed 1] [--http] [--program .build/release/framehost] [--keep DIR]

The chain gives 30 pictures a second to an encoder, from there to a recorder and an RTSP sink. Everything else is changed: branches of previews, filters, second recordings and second RTSP paths come, are replaced, paused, set, read again from the file,
and go. Pictures of stages are taken. Each operation must be answered, with success or a sentence. With --http they go to the control server, viewers of pictures come and go, and
requests that make no sense are among them. At the end:

- the recording has every picture that the source gave, and ffprobe decodes it without a word;
- neither its times nor those of what the RTSP reader (ffprobe over TCP) got have a gap of more than two pictures' time. The source stamps pictures when they are taken, so a machine that is busy with others makes such gaps without any change:
  only with --quiet they are judged so. Else those of a quarter of a second more must be at most one for each ten operations, and what is missing in them what the source says that it missed;
- the run ends with status 0 and a balanced ledger, and the recordings of the branches decode;
- with --http the program's memory is not above what it was after the first fifth of the operations by more than a tenth and 32 MB.

How late packets came to the reader is printed, not judged: that depends on the machine. Needs ffprobe.
"""

import argparse
import http.client
import json
import os
import pathlib
import queue
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Tools"))
from exit_status import without_losses  # noqa: E402

RATE = 30
PATIENCE = 120


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def chain(port, control=None):
    """The chain as its file has it."""
    return {
        **({"control": {"listen": f"127.0.0.1:{control}"}} if control else {}),
        "spare": 8,
        "stages": [
            {"id": "camera", "use": "test-source", "size": "320x240", "rate": RATE, "live": True, "pattern": "balls"},
            # Long enough for neighbours on this machine: what is lost is then lost by a change.
            {"id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 400, "keyframeSeconds": 1, "link": {"queue": 600}},
            {"id": "file", "use": "recorder", "path": "main.mp4"},
            {"id": "live", "use": "rtsp-sink", "from": "h264", "port": port, "path": "/live", "queueSeconds": 30},
        ],
    }


class Changer:
    """Asks for changes and remembers what stands."""

    def __init__(self, seed, port, folder, send, further=()):
        self.dice, self.port, self.folder, self.send, self.further = random.Random(seed), port, folder, send, list(further)
        self.branches = {}
        self.made = 0

    def filters(self):
        """Some stages for raw pictures, that keep the size or not."""
        dice = self.dice
        kinds = [
            {"use": "crop-orient", "size": dice.choice(["160x120", "240x240"])},
            {"use": "text", "text": f"n{dice.randrange(100)}"},
            {"use": "fps-meter", "draw": dice.random() < 0.5},
            {"use": "rate", "rate": dice.choice([10, 15, 60])},
        ]
        return [dict(kind) for kind in dice.sample(kinds, dice.randrange(0, 3))]

    def branch(self):
        """A branch behind the camera or the encoder; its stages, the first one's id and where it goes."""
        dice = self.dice
        self.made += 1
        name = f"b{self.made}"
        kind = dice.choice(["null", "null", "record", "encode", "rtsp", "units"])
        if kind == "units":
            return name, "h264", [{"use": "recorder", "path": f"{name}.mp4"} if dice.random() < 0.5 else {"use": "null-sink"}]
        stages = self.filters()
        if kind == "null":
            stages.append({"use": "null-sink"})
        else:
            stages.append({"use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 200, "threads": 1})
            if kind == "record":
                stages.append({"use": "recorder", "path": f"{name}.mkv"})
            elif kind == "rtsp":
                stages.append({"use": "rtsp-sink", "port": self.port, "path": f"/{name}"})
            else:
                stages.append({"use": "null-sink"})
        return name, "camera", stages

    def step(self):
        """One random operation."""
        dice = self.dice
        choices = ["attach"] * (4 if len(self.branches) < 3 else 1) + ["snapshot"] + self.further
        if self.branches:
            choices += ["detach"] * 2 + ["replace"] * 3 + ["pause"] * 2 + ["resume"] * 2 + ["set", "reload"]
        what = dice.choice(choices)
        if what == "snapshot":
            stage = dice.choice(["camera"] + [stage["id"] for stages in self.branches.values() for stage in stages])
            self.made += 1
            self.send({"command": what, "stage": stage, "path": f"s{self.made}.{dice.choice(['jpg', 'png'])}", "width": dice.choice([64, 320])})
            return
        if what in self.further:
            self.send({"command": what, "dice": dice})
            return
        if what == "attach":
            name, at, stages = self.branch()
            for index, stage in enumerate(stages):
                stage["id"] = f"{name}-{index}"
            if self.send({"command": "attach", "at": at, "stages": stages}):
                self.branches[name] = stages
            return
        name = dice.choice(list(self.branches))
        stages = self.branches[name]
        stage = dice.choice(stages)
        if what == "detach":
            if self.send({"command": "detach", "stage": stages[0]["id"]}):
                del self.branches[name]
        elif what == "replace":
            other = dict(stage)
            if other["use"] == "x264-encoder":
                other["bitrateKbps"] = dice.randrange(100, 900)
            elif other["use"] == "text":
                other["text"] = f"n{dice.randrange(100)}"
            elif other["use"] == "fps-meter":
                other["draw"] = not other["draw"]
            elif other["use"] == "crop-orient":
                other["size"] = dice.choice(["160x120", "240x240", "120x160"])
            if self.send({"command": "replace", "stage": stage["id"], "with": other, "drop": dice.random() < 0.3}):
                stages[stages.index(stage)] = other
        elif what == "set":
            self.send({"stage": "h264", "set": {"bitrateKbps": dice.randrange(200, 800)}})
        elif what == "reload":
            # The file knows nothing of the branches: all of them go.
            if self.send({"command": "reload"}):
                self.branches.clear()
        else:
            self.send({"command": what, "stage": stage["id"]})


class Run:
    """The program, asked and answered line by line."""

    def __init__(self, program, folder, chain, *arguments):
        self.chain = chain
        self.errors = open(os.path.join(folder, "errors.txt"), "w")
        with open(os.path.join(folder, "chain.json"), "w") as file:
            json.dump(chain, file)
        self.process = subprocess.Popen(
            [program, "chain.json", "--commands", "--events", "--stats", "stats.json", *arguments], cwd=folder, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.errors, text=True, bufsize=1)
        self.answers, self.tag, self.done, self.refused, self.ended = queue.Queue(), 0, 0, [], threading.Event()
        self.streaming, self.late = threading.Event(), 0
        threading.Thread(target=self.read, daemon=True).start()
        if not self.streaming.wait(PATIENCE):
            raise SystemExit("the chain did not begin")

    def read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "command-answered":
                self.answers.put(event)
            elif event["event"] == "late":
                self.late += event["missed"]
            elif event.get("state") == "streaming":
                self.streaming.set()
        self.ended.set()

    def send(self, command):
        """Whether it was done; the run must answer."""
        self.tag += 1
        self.process.stdin.write(json.dumps({**command, "tag": self.tag}) + "\n")
        try:
            answer = self.answers.get(timeout=PATIENCE)
        except queue.Empty:
            raise SystemExit(f"no answer to {command}; {self.process.poll()}")
        if answer["tag"] != self.tag:
            raise SystemExit(f"the answer to another command came: {answer}")
        if answer["ok"]:
            self.done += 1
        else:
            self.refused.append(answer["error"])
        return answer["ok"]


def memory(process):
    """Bytes of memory that the program has now."""
    with open(f"/proc/{process.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Client:
    """Does the same by HTTP, and what only HTTP can."""

    further = ["look", "leave", "read", "nonsense"]

    def __init__(self, run, port):
        self.run, self.port, self.viewers, self.seen, self.statuses = run, port, [], 0, {}

    def request(self, method, path, body=None, kind="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"Content-Type": kind} if body is not None else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        self.statuses[answer.status] = self.statuses.get(answer.status, 0) + 1
        if answer.status >= 500 and answer.status != 503:
            raise SystemExit(f"{method} {path}: {answer.status} {content[:300]}")
        return answer.status, content

    def send(self, command):
        what, stage = command.get("command", "set"), command.get("stage")
        path = f"/api/v1/stages/{stage}"
        if what == "attach":
            return self.done("POST", "/api/v1/branches", {key: command[key] for key in ("at", "stages")})
        if what == "detach":
            return self.done("DELETE", path)
        if what == "replace":
            drop = "?drop=true" if command.get("drop") else ""
            return self.done("PUT", path + drop, command["with"])
        if what == "set":
            return self.done("PATCH", path + "/options", command["set"])
        if what == "reload":
            return self.done("PUT", "/api/v1/chain", self.run.chain)
        if what in ("pause", "resume"):
            return self.done("POST", f"{path}/{what}", {})
        if what == "snapshot":
            status, content = self.request("GET", f"{path}/picture?format={command['path'][-3:].replace('jpg', 'jpeg')}&width={command['width']}")
            self.run.done += status in (200, 204)
            if status == 200 and not content.startswith((b"\xff\xd8", b"\x89PNG")):
                raise SystemExit(f"no picture: {content[:40]}")
            if status not in (200, 204):
                self.run.refused.append(json.loads(content)["error"]["what"])
            return status == 200
        return getattr(self, what)(command["dice"])

    def done(self, method, path, body=None):
        status, content = self.request(method, path, body)
        if status < 300:
            self.run.done += 1
            return True
        self.run.refused.append(json.loads(content)["error"]["what"])
        return False

    def look(self, dice):
        """A viewer of a stage's pictures comes and reads, or does not."""
        if len(self.viewers) >= 6:
            return self.leave(dice)
        viewer = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        viewer.sendall(f"GET /api/v1/stages/camera/pictures?rate={dice.choice([5, 30])}&width={dice.choice([80, 160])} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
        if dice.random() < 0.8:
            threading.Thread(target=self.watch, args=(viewer,), daemon=True).start()
        self.viewers.append(viewer)
        self.run.done += 1

    def watch(self, viewer):
        try:
            while data := viewer.recv(65536):
                self.seen += data.count(b"image/jpeg")
        except OSError:
            pass

    def leave(self, dice):
        if self.viewers:
            viewer = self.viewers.pop(dice.randrange(len(self.viewers)))
            try:
                viewer.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            viewer.close()
        self.run.done += 1

    def read(self, dice):
        status, _ = self.request("GET", dice.choice(["/metrics", "/healthz", "/api/v1/status", "/api/v1/stages", "/api/v1/chain", "/api/v1/plan", "/api/v1/figures", "/openapi.json"]))
        if status not in (200, 503):
            raise SystemExit(f"reading gave {status}")
        self.run.done += 1

    def nonsense(self, dice):
        method, path, body, kind = dice.choice([
            ("POST", "/api/v1/branches", {"at": "nobody", "stages": []}, "application/json"), ("PUT", "/api/v1/chain", {"stages": [{"use": "nothing"}]}, "application/json"),
            ("PATCH", "/api/v1/stages/h264/options", {"bitrateKbps": "much"}, "application/json"), ("POST", "/api/v1/stages/h264/pause", {}, "text/plain"),
            ("GET", "/api/v1/stages/..%2f..%2fetc%2fpasswd", None, ""), ("DELETE", "/api/v1/stages/camera", None, ""), ("GET", "/api/v1/stages/camera/picture?width=0", None, ""),
        ])
        status, _ = self.request(method, path, body, kind)
        if not 400 <= status < 500:
            raise SystemExit(f"{method} {path} gave {status}")
        self.run.done += 1


class Reader:
    """Reads the stream until it ends; what came, when."""

    def __init__(self, port):
        self.times, self.arrivals = [], []
        self.process = subprocess.Popen(
            ["ffprobe", "-v", "error", "-rtsp_transport", "tcp", "-select_streams", "v:0", "-show_entries", "packet=pts_time", "-of", "csv=p=0",
             f"rtsp://127.0.0.1:{port}/live"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            if line.strip(" ,\n") not in ("", "N/A"):
                self.times.append(float(line.strip(" ,\n")))
                self.arrivals.append(time.monotonic())


def decoded(path):
    """Times of the pictures of a file, and what ffprobe had to say."""
    outcome = subprocess.run(
        ["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "frame=pts_time", "-of", "csv=p=0", path],
        capture_output=True, text=True)
    return [float(line.strip(" ,")) for line in outcome.stdout.splitlines() if line.strip(" ,")], outcome.stderr.strip()


def gaps(times, room):
    """Steps that are longer than two pictures' time and `room` seconds."""
    return [(a, b) for a, b in zip(times, times[1:]) if b - a > 2 / RATE + room]


def missing(found):
    """Pictures that gaps have room for, but for one that came late and ends them."""
    return sum(int((b - a) * RATE) - 2 for a, b in found)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--operations", type=int, default=1000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--http", action="store_true", help="by the control server instead of standard input")
    options.add_argument("--quiet", action="store_true", help="the machine has nothing else to do")
    options.add_argument("--program", default=".build/release/framehost")
    options.add_argument("--keep", help="the folder to work in; it stays")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or scratch
        os.makedirs(folder, exist_ok=True)
        port, control = free_port(), free_port() if options.http else None
        run = Run(os.path.abspath(options.program), folder, chain(port, control))
        client = Client(run, control) if options.http else None
        reader = Reader(port)
        faults = []
        deadline = time.monotonic() + PATIENCE
        while not reader.times and time.monotonic() < deadline:
            time.sleep(0.05)
        changer = Changer(options.seed, port, folder, client.send if client else run.send, client.further if client else ())
        begin, early = time.monotonic(), 0
        for number in range(options.operations):
            changer.step()
            time.sleep(changer.dice.choice([0, 0, 0.01, 0.1]))
            if number == options.operations // 5:
                early = memory(run.process)
        if client and memory(run.process) > early * 1.1 + (32 << 20):
            faults.append(f"memory: {early >> 20} MB after a fifth, {memory(run.process) >> 20} MB at the end")
        seconds = time.monotonic() - begin
        run.process.stdin.write('{"command": "drain", "tag": 0}\n')
        status = run.process.wait(PATIENCE)
        run.ended.wait(PATIENCE)
        reader.process.wait(PATIENCE)
        reader.thread.join()
        with open(os.path.join(folder, "errors.txt")) as file:
            errors = file.read()
        with open(os.path.join(folder, "stats.json")) as file:
            ledger = json.load(file)["ledger"]
        if (status if options.quiet else without_losses(status, errors)) != 0:
            faults.append(f"status {status}:\n{errors[-2000:]}")
        if ledger["inFlight"] or ledger["captured"] + ledger["made"] + ledger["copies"] != sum(
                ledger[key] for key in ("delivered", "merged", "idle", "dropped", "replaced")):
            faults.append(f"the ledger: {ledger}")
        times, complaint = decoded(os.path.join(folder, "main.mp4"))
        room = 0.001 if options.quiet else 0.25
        longest = max(b - a for a, b in zip(times, times[1:])) if len(times) > 1 else 0

        def are_bad(found):
            # What was late within the last second the source has not said yet.
            return found if options.quiet else len(found) > max(options.operations / 10, 5) or missing(found) > run.late + RATE

        if complaint or len(times) != ledger["captured"] or are_bad(gaps(times, room)):
            faults.append(f"main.mp4: {len(times)} of {ledger['captured']} pictures, gaps {gaps(times, room)[:5]}, ffprobe: {complaint[:500]}")
        complaint = reader.process.stderr.read().strip()
        # It had its first packet before the first operation, and reads until the end.
        expected = sum(at > times[-1] - seconds for at in times)
        if complaint or len(reader.times) < 0.8 * expected or are_bad(gaps(reader.times, room)):
            faults.append(f"the reader: {len(reader.times)} packets where the recording has {expected} pictures, gaps {gaps(reader.times, room)[:5]}, ffprobe: {complaint[:500]}")
        files = [name for name in os.listdir(folder) if name.startswith("b") and name.endswith((".mp4", ".mkv"))]
        for name in files:
            _, complaint = decoded(os.path.join(folder, name))
            # A recording that was paused, or taken away before its first keyframe, has fewer pictures or none.
            if complaint and "moov atom" not in complaint:
                faults.append(f"{name}: {complaint[:300]}")
        waits = sorted(b - a for a, b in zip(reader.arrivals, reader.arrivals[1:]))
        print(f"{run.done} operations done and {len(run.refused)} refused in {seconds:.0f} s; {ledger['captured']} pictures, {len(reader.times)} read live, longest gap {longest * 1000:.0f} ms, {len(gaps(times, room))} gaps with {missing(gaps(times, room))} pictures, source late for {run.late}, "
              f"longest wait of the reader {waits[-1] * 1000:.0f} ms (99 %: {waits[int(len(waits) * 0.99)] * 1000:.0f} ms), {len(files)} recordings beside it")
        if client:
            print(f"answers by status: {dict(sorted(client.statuses.items()))}; {client.seen} pictures seen by viewers; {early >> 20} MB after a fifth")
        for error in sorted(set(re.sub(r"stages\[\d+\]|b\d+-|needs \d+ buffers?", "…", error.split("\n")[0])[:160] for error in run.refused))[:12]:
            print(f"  refused: {error}")
        if run.done < options.operations / 2:
            faults.append(f"only {run.done} operations were done")
        for fault in faults:
            print(f"FAULT: {fault}")
        sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
