# SPDX-License-Identifier: Apache-2.0
"""One run: drawn from its seed, made, watched, judged."""

import json
import os
import random
import re
import select
import shutil
import signal
import stat
import subprocess
import time

import chains
import clients
import folders

STATES = ["starting", "streaming", "streaming", "draining", "finishing"]
# What asks a run to end; SIGHUP has it read its file again.
SIGNALS = [signal.SIGTERM, signal.SIGINT]
CALLS = ["open", "write", "short", "read", "rename", "mmap", "socket", "bind", "listen", "accept", "send", "recv", "ftruncate", "sync", "unlink", "mkdir", "flock", "stat",
         "fstat", "statvfs", "opendir", "readdir", "close", "seek", "times", "chmod", "thread", "loop"]
# On top of what the program states: this machine may be busy.
MARGIN = float(os.environ.get("TORTURE_MARGIN", 30))
# Faults that a busy machine makes too, where it holds a thread up for longer than the program waits for it.
HELD_UP = {"abandoned", "drain", "late"}
FAULTY_TEXT = re.compile(r"Fatal error|Optional\(|FrameHostError|\w\(code: |precondition|Swift/|errorDescription|\bnil\b|NIOCore|NIOPosix")


def recorded(stage):
    """A recorder's path, and those of the files beside each recording."""
    path = stage.get("path")
    if not isinstance(path, str) or not path:
        return []
    stem = os.path.splitext(path)[0]
    return [path] + [stem + ending for option, ending in (("gcsv", ".gcsv"), ("vtt", ".vtt")) if stage.get(option)]


class Trial:
    def __init__(self, seed, program, kinds, root, mounts, corpus_folder, shim, ports, prober, model=None):
        self.seed, self.program, self.kinds, self.root, self.shim, self.prober = seed, program, kinds, root, shim, prober
        self.dice = random.Random(f"torture {seed}")
        dice = self.dice
        where = mounts["small"] if dice.random() < 0.08 else os.path.join(root, "w")
        self.place = folders.Place(where, mounts, corpus_folder, random.Random(dice.getrandbits(64)), model)
        self.chain = chains.Chain(random.Random(dice.getrandbits(64)), kinds, self.place, ports)
        self.faults, self.notes = [], []
        self.draw(random.Random(dice.getrandbits(64)))

    # --- drawing ---

    def draw(self, dice):
        chain = self.chain
        self.arguments = ["chain.json"]
        self.limit = dice.choice([0.1, 0.3, 0.6, 1.0]) if chain.live or chain.servers else dice.choice([0.2, 0.5, 1.0])
        if dice.random() < (0.5 if chain.servers else 0.85):
            self.arguments += ["--frames", str(dice.choice([1, 2, 5, 10, 20, 40]))]
        if dice.random() < 0.15:
            self.arguments += ["--for", dice.choice(["0.05", "0.2", "0.01", "0.5"] * 6 + ["1e300", "1e10"])]
        self.stats = None
        if dice.random() < 0.4:
            self.stats = dice.choices(["stats.json", "existing.txt", "full/stats.json", "link.txt", "fifo", "ro/x", "missing/x", "sub", "dangling.mp4", "/dev/full", "/dev/null"],
                                      [60, 5, 5, 5, 2, 3, 3, 3, 2, 3, 3])[0]
            self.arguments += ["--stats", self.stats]
        self.has_events = dice.random() < 0.75
        if self.has_events:
            self.arguments.append("--events")
        self.has_commands = dice.random() < 0.3
        if self.has_commands:
            self.arguments.append("--commands")
        if dice.random() < 0.3:
            self.arguments.append("--quiet")
        if dice.random() < 0.08:
            stage = dice.choice(chain.stages)
            options = self.kinds.options(stage["use"]) if stage["use"] in self.kinds.stages else []
            if options:
                option = dice.choice(options)
                drawn = chains.value(dice, option, chain.wild)
                if option["name"] not in ("path", "address", "port", "dump", "facesFile", "overwrite", "keepSeconds", "keepMegabytes", "segmentSeconds", "record", "segmentMegabytes"):
                    self.arguments += ["--set", f"{stage['id']}.{option['name']}={drawn if isinstance(drawn, str) else json.dumps(drawn)}".replace("\0", "")]
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/nowhere", "TORTURE_USERS": "a:b", "SWIFT_BACKTRACE": "enable=yes,color=no,threads=crashed,images=none",
            "LANG": dice.choice(["C", "C.UTF-8", "tr_TR.UTF-8"]), "TZ": dice.choice(["UTC", "Asia/Kathmandu", "nonsense/zone", ":/etc/passwd"])}
        self.has_shim = dice.random() < 0.4
        self.limits = dice.random() < 0.06
        self.refusal_log = os.path.join(self.root, "refusals.log")
        if self.has_shim or self.limits:
            self.environment["LD_PRELOAD"] = self.shim
            self.environment["REFUSALS_LOG"] = self.refusal_log
        if self.has_shim:
            kind = dice.random()
            calls = CALLS if kind < 0.2 else [dice.choice(CALLS)] if kind < 0.7 else dice.sample(CALLS, 4)
            if chain.servers:
                # NIO ends the process where its loops cannot have what they need; the sink tries that before it asks, with a limit that holds still.
                calls = [call for call in calls if call not in ("loop", "thread")] or ["accept"]
            rate = dice.choice([1_000_000, 300_000, 100_000, 30_000, 10_000])
            skip = int(dice.choice([0, 1, 1, 1]) * 10 ** (dice.random() * 3))
            most = dice.choice([1, 1, 2, 5, 1_000_000])
            self.environment["REFUSALS"] = f"{dice.getrandbits(40)}:{rate}:{skip}:{most}:{','.join(calls)}"
            if dice.random() < 0.7:
                self.environment["REFUSALS_UNDER"] = self.root
        if self.limits:
            self.environment["LIMITS"] = dice.choice(["8:0", "12:0", "16:0", "24:0", "40:0", "0:0", "0:1000", "0:20000"])
        self.user = 65534 if dice.random() < 0.35 and os.environ.get("TORTURE_ROOT") == "1" else None
        self.output = dice.choices(["file", "gone", "full", "unread", "closed", "slow"], [86, 4, 3, 3, 2, 2])[0]
        self.errors = "file" if dice.random() < 0.97 else dice.choice(["gone", "full", "closed"])
        # What happens to it, and when.
        self.actions = []
        for _ in range(dice.choices([0, 1, 2, 3], [62, 26, 9, 3])[0]):
            self.actions.append((self.moment(dice), "signal", int(dice.choice(SIGNALS))))
        if dice.random() < 0.03:
            self.actions.append((self.moment(dice), "signal", int(signal.SIGKILL)))
        if dice.random() < 0.05:
            begin = self.moment(dice)
            self.actions += [(begin, "signal", int(signal.SIGSTOP)), (begin + dice.choice([0.01, 0.2]), "signal", int(signal.SIGCONT))]
        if dice.random() < 0.02:
            self.actions.append((self.moment(dice), "signal", int(signal.SIGPIPE)))
        if self.has_commands:
            for _ in range(dice.choice([0, 1, 2, 5, 30])):
                self.actions.append((self.moment(dice), "line", self.line(dice)))
            if dice.random() < 0.2:
                self.actions.append((self.moment(dice), "eof", None))
        # Some are asked to end at the moment when they say that they have come to a state, once or twice.
        self.stop_at = dice.choice(STATES) if dice.random() < 0.2 else None
        if self.stop_at:
            self.actions = [action for action in self.actions if action[1] != "signal"]
            self.output = "file"
            self.has_events = True
            self.arguments = [argument for argument in self.arguments if argument != "--events"] + ["--events"]
            self.stop_times = dice.choice([1, 2])
            # Long enough to come to it; draining and finishing come by themselves at the end of a short one.
            if self.stop_at in ("starting", "streaming") and "--frames" in self.arguments:
                at = self.arguments.index("--frames")
                del self.arguments[at:at + 2]
            if self.stop_at in ("draining", "finishing") and "--for" not in self.arguments:
                self.arguments += ["--for", "0.1"]
            self.limit = 2
        self.actions.sort(key=lambda action: action[0])
        self.crowd = clients.draw(dice, chain.servers) if chain.servers else []
        self.checks = dice.random() < 0.06

    @staticmethod
    def moment(dice):
        return 10 ** (dice.random() * 1.7 - 1.7) if dice.random() < 0.85 else 0.002 + dice.random() * 0.02

    def line(self, dice):
        stage = dice.choice(self.chain.stages)
        kind = dice.random()
        command = {"tag": dice.randrange(1000)}
        if kind < 0.25:
            command["command"] = dice.choice(["figures", "figures", "drain", "quit", "help"])
        elif kind < 0.55:
            command["stage"] = dice.choice([stage["id"]] + [one["id"] for one in self.chain.recorders] + ["nobody"])
            command["command"] = dice.choice(["start", "stop", "start", "stop", "keyframe", "readers", "nope"])
            if dice.random() < 0.1:
                command["arguments"] = dice.choice(chains.ODD)
        elif kind < 0.85:
            options = [option for option in self.kinds.options(stage["use"]) if option["live"] or dice.random() < 0.1] if stage["use"] in self.kinds.stages else []
            command["stage"] = stage["id"]
            command["set"] = {option["name"]: chains.value(dice, option, dice.random() < 0.2) for option in dice.sample(options, min(len(options), 2))}
        else:
            return dice.choice([b"garbage\n", b"[" * 10_000 + b"\n", b"x" * 70_000 + b"\n", b"\n\n\n", b"{\"stage\":", b"\xff\xfe\n", b"{}\n", b"[1]\n", b"null\n", b"{\"tag\":1}\n",
                                b"{\"command\":5}\n", b"\x00\n", b'{"command":"drain","command":"drain"}\n'])
        return (json.dumps(command) + "\n").encode()

    # --- running ---

    def run(self):
        place = self.place
        place.furnish()
        place.write("chain.json", self.chain.bytes)
        if not os.path.exists(place.path("chain.json")) or os.path.getsize(place.path("chain.json")) != len(self.chain.bytes):
            self.result = "skipped"
            place.release()
            return self
        os.chmod(place.folder, 0o777)
        os.chmod(place.path("sub"), 0o777)
        os.chmod(place.mounts["full"], 0o777)
        for name in ("refusals.log", "out", "err"):
            if os.path.exists(os.path.join(self.root, name)):
                os.unlink(os.path.join(self.root, name))
        if self.has_shim or self.limits:
            open(self.refusal_log, "w").close()
            os.chmod(self.refusal_log, 0o666)
        self.check_status = None
        if self.checks:
            plain = {name: value for name, value in self.environment.items() if name not in ("LD_PRELOAD",)}
            before = place.snapshot()
            try:
                told = subprocess.run([self.program, "check", "chain.json"], cwd=place.folder, env=plain, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, timeout=30, user=self.user)
                self.check_status = told.returncode
                if told.returncode not in (0, 1, 2):
                    self.fault("check-crash", f"check ended with {told.returncode}: {told.stderr[-600:].decode(errors='replace')}")
                if told.returncode and not told.stderr.strip():
                    self.fault("check-silent", f"check ended with {told.returncode} and said nothing")
            except subprocess.TimeoutExpired:
                self.fault("check-hang", "check did not end within 30 s")
            if place.snapshot() != before:
                self.fault("check-writes", "check changed the folder: " + self.difference(before, place.snapshot()))
        # Before anything can have changed what names lead to.
        self.allowed = self.rules()
        self.told = {path for written in self.chain.written + ([self.stats] if self.stats else []) for path in place.resolve(written)}
        self.before = place.snapshot()
        self.launch()
        self.watch()
        for client in self.crowd:
            for one in client.sockets:
                try:
                    one.close()
                except OSError:
                    pass
        self.after = place.snapshot()
        self.read_outputs()
        self.judge()
        place.release()
        self.result = "failed" if self.faults else "passed"
        return self

    def sink(self, kind, name):
        """A descriptor for standard output or error, and our end of it."""
        if kind in ("file", "closed"):
            return open(os.path.join(self.root, name), "wb"), None
        if kind == "full":
            return open("/dev/full", "wb"), None
        read, write = os.pipe()
        if kind == "gone":
            os.close(read)
            return os.fdopen(write, "wb"), None
        if kind == "unread":
            import fcntl
            fcntl.fcntl(write, 1031, 4096)
        return os.fdopen(write, "wb"), read

    def launch(self):
        out, self.out_end = self.sink(self.output, "out")
        err, self.err_end = self.sink(self.errors, "err")
        command = [self.program, *self.arguments]
        closed = [number for number, kind in ((1, self.output), (2, self.errors)) if kind == "closed"]
        self.start = time.monotonic()
        self.process = subprocess.Popen(
            command, cwd=self.place.folder, env=self.environment, stdin=subprocess.PIPE if self.has_commands else subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True, user=self.user, bufsize=0, preexec_fn=(lambda: [os.close(number) for number in closed]) if closed else None)
        out.close()
        err.close()
        for client in self.crowd:
            client.start()

    def watch(self):
        """Does what was drawn, asks it to stop at its limit, waits until it must have ended."""
        process, actions = self.process, list(self.actions)
        if self.has_commands:
            os.set_blocking(process.stdin.fileno(), False)
        handle = os.pidfd_open(process.pid)
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        asked, count, pauses = None, 0, 0.0
        drain = self.chain.drain_seconds if not (self.chain.wild or self.chain.is_garbled) else max(self.chain.drain_seconds, 10)
        self.sent, self.stopped = [], None
        awaited = self.stop_at
        while True:
            now = time.monotonic() - self.start
            if awaited and self.has_come_to(awaited):
                awaited = None
                for number in range(self.stop_times):
                    if number > 0:
                        time.sleep(0.02)
                    self.send(signal.SIGTERM)
                    count += 1
                asked = now = time.monotonic() - self.start
                self.stopped = (self.stop_at, self.stop_times, time.monotonic())
            next_action = actions[0][0] if actions else 1e9
            if asked is None and now >= self.limit and next_action > now:
                self.send(signal.SIGTERM)
                asked, count = now, count + 1
            if actions:
                wait = max(0, min(next_action, self.limit if asked is None else 1e9) - now)
            elif asked is None:
                wait = self.limit - now
            else:
                wait = asked + (1 if count >= 2 else drain + 1) + pauses + MARGIN - now
                if wait <= 0:
                    self.stuck(now, asked, count)
                    break
            if poller.poll(1 if awaited else max(0, wait) * 1000 + 1):
                break
            if awaited and wait > 0.001:
                continue
            now = time.monotonic() - self.start
            if not actions or actions[0][0] > now:
                continue
            _, kind, what = actions.pop(0)
            if kind == "signal":
                self.send(what)
                if what in SIGNALS:
                    count += 1
                    asked = now
                if what == signal.SIGSTOP:
                    pauses += 0.3
            elif process.stdin and not process.stdin.closed:
                try:
                    if kind == "line":
                        process.stdin.write(what)
                    else:
                        process.stdin.close()
                except OSError:
                    pass
        os.close(handle)
        process.wait()
        self.seconds = time.monotonic() - self.start
        # How long it took beyond what the chain states.
        self.stop = None
        if self.stopped and self.process.returncode >= 0:
            state, times, moment = self.stopped
            spare = 0 if times > 1 else drain
            self.stop = (f"{state}, {times}", round(max(0, time.monotonic() - moment - spare), 3))
        self.signals_asked = count
        if process.stdin and not process.stdin.closed:
            try:
                process.stdin.close()
            except OSError:
                pass
        for end in (self.out_end, self.err_end):
            if end is not None:
                os.close(end)

    def has_come_to(self, state):
        with open(os.path.join(self.root, "out"), "rb") as file:
            return f'"state":"{state}"'.encode() in file.read()

    def send(self, number):
        try:
            self.process.send_signal(number)
            self.sent.append((round(time.monotonic() - self.start, 4), int(number)))
        except ProcessLookupError:
            pass

    def stuck(self, now, asked, count):
        """It should have ended: where it is, and whether it ends after all."""
        report = stacks(self.process.pid)
        crashed = "_swift_spawnBacktracer" in report
        if self.output == "unread":
            report = "nobody reads its output\n" + report
        text = f"asked to end {now - asked:.1f} s ago ({count} signals), drainSeconds {self.chain.drain_seconds}"
        try:
            self.process.wait(20)
            if not crashed:
                self.fault("late", f"{text}; ended after {time.monotonic() - self.start - asked:.1f} s\n{report}")
        except subprocess.TimeoutExpired:
            self.fault("signal" if crashed else "hang", ("crashed: " if crashed else "") + f"{text}; still there 20 s later\n{report}")
            self.process.kill()

    # --- judging ---

    def fault(self, kind, text):
        self.faults.append((kind, text))

    def read_outputs(self):
        def read(name):
            try:
                with open(os.path.join(self.root, name), "rb") as file:
                    return file.read(4_000_000)
            except OSError:
                return b""
        self.out, self.err = read("out"), read("err")
        self.refused = read("refusals.log").decode(errors="replace") if self.has_shim or self.limits else ""
        self.events = []
        dumps = any(stage.get("dump") == "-" or stage.get("report") == "latency" for stage in self.chain.stages) or "report" in " ".join(self.arguments)
        if self.output == "file" and (self.has_events or self.has_commands):
            lines = self.out.split(b"\n")
            for index, line in enumerate(lines):
                if not line:
                    continue
                try:
                    self.events.append(json.loads(line))
                except ValueError:
                    # Of a line that could not be written to its end the next one is another.
                    if dumps or self.process.returncode < 0 and index >= len(lines) - 2 or "write" in self.refused or self.limits:
                        continue
                    self.fault("event-not-json", line[:300].decode(errors="replace"))
                    break
            self.events = [event for event in self.events if isinstance(event, dict)]

    def named(self, name):
        return [event for event in self.events if event.get("event") == name]

    def judge(self):
        self.judge_end()
        self.judge_figures()
        self.judge_files()
        self.judge_recordings()
        self.judge_leftovers()

    def judge_end(self):
        status = self.process.returncode
        if any(kind in ("hang",) for kind, _ in self.faults):
            return
        errors = self.err.decode(errors="replace")
        if status < 0:
            sent = [number for _, number in self.sent]
            by_design = -status == signal.SIGKILL and signal.SIGKILL in sent
            # Before it has set up its handling, a signal ends a process as ever.
            early = -status in sent and not self.out and not self.err and -status in [int(one) for one in SIGNALS] + [int(signal.SIGPIPE)]
            if not by_design and not early:
                self.fault("signal", f"ended by {signal.Signals(-status).name}: " + crash(errors))
            return
        if status not in (0, 1, 2):
            self.fault("status", f"ended with {status}\n{errors[-500:]}")
        if self.errors != "file":
            return
        # A sentence: two words, whatever quotes or signs stand between them, and a full stop.
        if status in (1, 2) and not re.search(r"[a-z]{2,}\W+[a-z]{2,}.*\.(\s|$)", errors):
            self.fault("silent", f"ended with {status} and {errors[-300:]!r} on standard error; signals {self.sent}")
        found = FAULTY_TEXT.search(errors)
        if found:
            self.fault("text", f"'{found[0]}' in what it says: {errors[max(0, found.start() - 300):found.end() + 300]}")
        if re.search(r"[\x00-\x08\x0b-\x1a\x1c-\x1f]", errors.replace("\r\x1b[K", "")) and not self.chain.is_garbled and not self.chain.wild:
            self.fault("control", f"control characters on standard error: {errors[-400:]!r}")
        waits = any(one[0] == "node" for path, one in self.before.items() if path.startswith(self.place.folder)) or self.output in ("unread", "slow") or self.has_shim
        if "did not return within" in errors and not waits:
            self.fault("abandoned", re.search(r"[^\n]*did not return within[^\n]*", errors)[0])
        if "drain did not finish" in errors and not waits and not self.chain.wild and self.chain.drain_seconds >= 1:
            self.fault("drain", re.search(r"[^\n]*drain did not finish[^\n]*", errors)[0])
        bad = [event for event in self.events if event.get("level") == "error"]
        if status == 0 and bad:
            self.fault("loss-without-status", f"status 0 with {bad[0].get('event')}: {bad[0].get('text')}")
        said_of_arguments = any(name in errors for name in ("--stats", "--events", "--commands"))
        if self.check_status == 0 and status == 2 and not said_of_arguments and not self.has_shim and not self.limits and not any(argument == "--set" for argument in self.arguments):
            self.fault("check-missed", errors[-600:])

    def judge_figures(self):
        for event in self.named("ledger-fault"):
            self.fault("ledger", event.get("text", ""))
        told = re.search(r"(?i)[^\n]*ledger[^\n]*", self.err.decode(errors="replace"))
        if told and not self.events:
            self.fault("ledger", told[0])
        status = self.process.returncode
        if status != 0 or not self.stats:
            return
        if self.stats in ("/dev/full", "ro/x", "missing/x", "sub"):
            self.fault("loss-without-status", f"status 0 with --stats {self.stats}")
        path = os.path.realpath(self.place.path(self.stats))
        if not os.path.isfile(path) or self.stats in self.chain.written or len({self.stats, *self.chain.written} & {"link.txt", "existing.txt"}) > 1:
            return
        try:
            with open(path) as file:
                ledger = json.load(file)["ledger"]
        except (OSError, ValueError, KeyError) as error:
            self.fault("figures", f"status 0, and {self.stats}: {error}")
            return
        left = ledger["captured"] + ledger["made"] + ledger["copies"]
        right = sum(ledger[name] for name in ("delivered", "merged", "idle", "dropped", "replaced", "inFlight"))
        if left != right or ledger["inFlight"] != 0:
            self.fault("ledger", f"figures do not balance: {ledger}")

    def rules(self):
        """Paths that may have been changed or removed, that may be new: as regular expressions."""
        changed, removed, new = [], [], []
        stages = self.chain.stages
        for written in self.chain.written + ([self.stats] if self.stats else []):
            for path in self.place.resolve(written):
                changed.append(re.escape(path))
                new.append(re.escape(path))
        for stage, path in ((stage, path) for stage in self.chain.recorders for path in recorded(stage)):
            more = "segmentSeconds" in stage or "segmentMegabytes" in stage or stage.get("record") == "onCommand" or self.has_commands
            for makes_more in {False, more}:
                expression = folders.pattern(path, makes_more)
                bases = {self.place.folder, os.path.realpath(self.place.folder)}
                if path.startswith("full/"):
                    bases, expression = {self.place.mounts["full"]}, expression.replace("full/", "", 1)
                if path.startswith("/"):
                    bases = {""}
                for base in bases:
                    whole = re.escape(base) + ("/" if base else "") + expression
                    new.append(whole)
                    removed.append(re.escape(base) + "/" + folders.beside(expression))
                    # Folders that the pattern makes.
                    for part in folders.parents(expression):
                        new.append(re.escape(base) + "/" + part)
                        removed.append(re.escape(base) + "/" + part)
                    if stage.get("overwrite"):
                        changed.append(whole)
            if stage.get("overwrite"):
                for place in self.place.resolve(path):
                    changed.append(re.escape(place))
                    new.append(re.escape(place))
        return [re.compile("|".join(f"(?:{one})" for one in some) + r"\Z") if some else re.compile(r"(?!)") for some in (changed, removed, new)]

    def difference(self, before, after):
        return "; ".join(f"{path}: {before.get(path)} → {after.get(path)}" for path in sorted(set(before) | set(after), key=str) if before.get(path) != after.get(path))[:900]

    def judge_files(self):
        changed, removed, new = self.allowed
        locked = {os.path.realpath(path) for _, path in self.place.locks}
        sources = {os.path.realpath(self.place.path(clip)) for clip in self.chain.clips}
        is_unclean = bool(self.refused) or self.process.returncode < 0 or self.signals_asked >= 2 or any(kind == "hang" or kind in HELD_UP for kind, _ in self.faults)
        told = self.told
        for path, was in self.before.items():
            now = self.after.get(path)
            if now == was or was[0] == "folder" and now and now[0] == "folder":
                continue
            what = "is gone" if now is None else "was changed"
            if was[0] == "folder":
                if now is not None or not removed.match(path):
                    self.fault("folder-lost", f"{path} {what}: {was} → {now}")
                continue
            if was[0] in ("node", "link"):
                self.fault("node-lost", f"{path}, a {was[0]}, {what}: {was} → {now}")
                continue
            if path in told and now and now[0] == "file":
                continue
            if path in locked:
                self.fault("locked-lost", f"{path}, which somebody had locked, {what}: {was} → {now}")
            elif path in sources:
                self.fault("source-lost", f"{path}, which the chain plays, {what}: {was} → {now}")
            elif now is None and removed.match(path) or changed.match(path):
                continue
            else:
                self.fault("file-lost", f"{path} {what}: {was} → {now}")
        for path, now in self.after.items():
            if path in self.before or new.match(path):
                continue
            if path.endswith((".finalising", ".tmp", ".new")) and is_unclean:
                continue
            self.fault("file-new", f"{path} is new: {now}")

    def judge_recordings(self):
        status = self.process.returncode
        told, of_sound = {}, set()
        alone = self.chain.recorders_of_sound()
        for event in self.events:
            if event.get("event") in ("segment-did-stop", "recording-did-stop", "recording-finalised") and isinstance(event.get("path"), str):
                path = os.path.normpath(os.path.join(self.place.folder, event["path"]))
                (of_sound.add if event.get("stage") in alone else of_sound.discard)(path)
                if "frames" in event and "files" not in event:
                    told[path] = event["frames"]
                else:
                    told.setdefault(path, None)
            if event.get("event") == "recording-removed" and isinstance(event.get("path"), str):
                told.pop(os.path.normpath(os.path.join(self.place.folder, event["path"])), None)
        shared = len(self.chain.recorders) > 1
        for path, frames in told.items():
            try:
                if not stat.S_ISREG(os.stat(path).st_mode):
                    continue
            except OSError:
                if not shared and not self.refused:
                    self.fault("recording-lost", f"'{path}' was finished with {frames} frames and is not there")
                continue
            self.notes.append("recording")
            packets, wrong = self.prober.ask(path, path in of_sound)
            if wrong:
                self.fault("recording", f"'{path}', finished with {frames} frames: {wrong}")
            elif frames is not None and packets != frames and not shared and path not in of_sound:
                self.fault("recording", f"'{path}' has {packets} pictures, told were {frames}")
        _, _, new = self.allowed
        for path, now in self.after.items():
            if path in self.before or path in told or now[0] != "file" or not path.endswith((".mp4", ".mov", ".mkv")) or not new.match(path) or path in self.told:
                continue
            if now[1] > 4096 and (status == 0 or self.process.returncode == -signal.SIGKILL):
                self.notes.append("recording, killed" if status else "recording")
                wrong = self.prober.ask(path)[1]
                if wrong and not (alone and self.prober.ask(path, True)[1] is None):
                    self.fault("recording-unfinished", f"'{path}' ({now[1]} bytes), status {status}: {wrong}")
            elif now[1] == 0 and status == 0 and not self.refused:
                self.fault("recording-empty", f"'{path}' is empty, status 0")

    def judge_leftovers(self):
        session = self.process.pid
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                try:
                    with open(f"/proc/{name}/stat") as file:
                        fields = file.read().rsplit(")", 1)[1].split()
                except OSError:
                    continue
                if int(fields[3]) == session and fields[0] != "Z" and b"Backtracing" not in self.err:
                    self.fault("process-left", f"process {name} of the run is still there")
        for name in os.listdir("/dev/shm"):
            self.fault("shared-memory-left", name)
            os.unlink(os.path.join("/dev/shm", name))

    def reason(self):
        """What it says of its end, where nothing was refused it: for looking at what the dice draw."""
        if self.refused or self.chain.wild or self.chain.is_garbled or self.process.returncode not in (1, 2):
            return ""
        lines = [line for line in self.err.decode(errors="replace").splitlines() if line.strip() and not line.startswith("  ")]
        lines = [line for line in lines if line.startswith(("error", "chain.json"))] or lines
        return lines[0] if lines else ""

    def keep(self, folder):
        """Copies everything that is needed to look into a failure."""
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for name in ("out", "err", "refusals.log"):
            if os.path.exists(os.path.join(self.root, name)):
                shutil.copy(os.path.join(self.root, name), folder)
        for name in os.listdir(self.place.folder):
            path = self.place.path(name)
            if os.path.isfile(path) and not os.path.islink(path):
                shutil.copy(path, os.path.join(folder, os.fsencode(name).decode(errors="replace")))
        with open(os.path.join(folder, "run.txt"), "w", errors="backslashreplace") as file:
            file.write(self.report())

    def report(self):
        lines = [f"seed {self.seed}", "arguments " + " ".join(self.arguments), f"status {self.process.returncode} after {self.seconds:.2f} s, signals {self.sent}, check {self.check_status}",
                 f"output {self.output}, errors {self.errors}, user {self.user}, folder {self.place.folder}", "environment " + " ".join(f"{k}={v}" for k, v in self.environment.items() if k not in ("PATH", "HOME")),
                 "clips " + ", ".join(self.place.done), "clients " + ", ".join(client.manner for client in self.crowd), "refused\n" + self.refused[:3000]]
        lines += [f"FAULT {kind}: {text}" for kind, text in self.faults]
        return "\n".join(lines) + "\n"


def crash(errors):
    """What matters of a crash's text: why, and where in our own code, in its first line; then the stack."""
    why = re.search(r"Fatal error: ([^\n]*)|Swift runtime failure: ([^\n]*?) in |(terminate called[^\n]*|\*\*\* stack[^\n]*|corrupted[^\n]*|free\(\)[^\n]*|double free[^\n]*)", errors)
    frames = re.findall(r"^\s*\d+ [^\n]* in [^\n]*", errors, re.M)
    places = [found for frame in frames for found in re.findall(r"/(Sources/[^\s:]+:\d+)", frame)]
    text = next((one for one in why.groups() if one), "") if why else "no reason given"
    return f"{text} at {places[0] if places else '?'}\n" + "\n".join(frame.strip()[:200] for frame in frames[:14]) + ("" if frames else errors[-1500:])


def stacks(pid):
    lines = []
    try:
        for task in sorted(os.listdir(f"/proc/{pid}/task"), key=int):
            def read(name):
                try:
                    with open(f"/proc/{pid}/task/{task}/{name}") as file:
                        return file.read().strip()
                except OSError:
                    return "?"
            state = re.search(r"State:\s+(\S)", read("status"))
            lines.append(f"{read('comm')} {state[1] if state else '?'} {read('wchan')} {read('syscall').split(' ')[0]}")
    except OSError:
        pass
    if shutil.which("gdb"):
        try:
            told = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 14"], capture_output=True, text=True, timeout=60, errors="replace")
            lines += [line[:220] for line in told.stdout.splitlines() if line.startswith(("#", "Thread"))][:200]
        except subprocess.TimeoutExpired:
            pass
    return "\n".join(lines)
