# SPDX-License-Identifier: Apache-2.0
"""Runs random chains over damaged files, in odd folders, for rude clients, with signals and refused system calls; ends with 1 where the program breaks a promise.

    python3 Tests/Soak/torture [--runs 2000] [--seconds 120] [--seed N] [--jobs 2] [--program .build/release/framehost] [--keep FOLDER] [-v]
    python3 Tests/Soak/torture --seed 4711 --runs 1 -v        one run again, as it was drawn

Each run must end with 0, 1 or 2 and a sentence where it failed, by no signal, within the drain it states; its ledger must balance; every file that was there
must be there and unchanged unless the chain says otherwise; every recording must open; no process or shared memory may be left. What a run is follows from its
seed alone; threads and the machine's load do the rest, so that a rare failure may need several tries.

Everything happens in namespaces of their own (mounts, processes, network with a loopback alone, IPC), where all of the machine's file systems are read-only. Standard library only; `cc` builds the library that
refuses system calls, `ffmpeg` makes the clips.
"""

import argparse
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def main():
    parser = argparse.ArgumentParser(prog="torture", description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=2000, help="at most so many")
    parser.add_argument("--seconds", type=float, default=1e9, help="at most so long")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the others follow")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--program", default=".build/release/framehost")
    parser.add_argument("--keep", default="torture-failures", help="folder for what failed")
    parser.add_argument("--models", default="../shared/models", help="folder with a YuNet model")
    parser.add_argument("--progress", help="file for the figures, written anew every ten seconds")
    parser.add_argument("--reasons", action="store_true", help="count why chains that nobody meddled with end with 1 or 2")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for each run; the whole report of one")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.program, options.keep = os.path.abspath(options.program), os.path.abspath(options.keep)
    if options.worker:
        import worker
        return worker.run(options)
    sys.exit(Torture(options).run())


class Torture:
    """[parent] Makes the corpus, starts the workers, counts."""

    def __init__(self, options):
        self.options = options
        self.statuses, self.faults, self.first = collections.Counter(), collections.Counter(), {}
        self.runs = self.recordings = self.failed = self.refusals = 0
        self.reasons = collections.Counter()
        self.stops = {}
        self.lock = threading.Lock()
        self.begin = time.monotonic()
        self.children = []
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self.give_up)

    def give_up(self, number, frame):
        """Takes the workers along."""
        for child in self.children:
            child.kill()
        shutil.rmtree(self.work, ignore_errors=True)
        os._exit(1)

    def run(self):
        import corpus
        options = self.options
        if not os.access(options.program, os.X_OK):
            print(f"torture: {options.program} is not there. Build it with `make build`.", file=sys.stderr)
            return 2
        os.makedirs(options.keep, exist_ok=True)
        self.work = tempfile.mkdtemp(prefix="torture-")
        try:
            missing = corpus.make(os.path.join(self.work, "corpus"))
            if missing:
                print(f"torture: this ffmpeg cannot make {', '.join(missing)}")
            if len(missing) > 10:
                print("torture: hardly a clip could be made. Install ffmpeg.", file=sys.stderr)
                return 2
            for target in ("refusals.so",):
                subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", os.path.join(self.work, target), os.path.join(HERE, "refusals.c"), "-ldl"], check=True)
            # What is made first takes a busy machine minutes, and is no run.
            self.begin = time.monotonic()
            threads = [threading.Thread(target=self.work_through, args=(number,)) for number in range(min(options.jobs, options.runs))]
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                time.sleep(0.2)
                if options.progress and int(time.monotonic() - self.begin) % 10 == 0:
                    self.write_progress()
            return self.finish()
        finally:
            shutil.rmtree(self.work, ignore_errors=True)

    def work_through(self, number):
        """One worker, and another one where it breaks."""
        options = self.options
        seed = options.seed + number
        end = options.seed + options.runs
        attempts = 0
        while seed < end and time.monotonic() - self.begin < options.seconds and attempts < 5:
            setting = {"seed": seed, "end": end, "step": options.jobs, "work": self.work, "number": number, "verbose": options.verbose and options.runs == 1,
                       "seconds": options.seconds - (time.monotonic() - self.begin), "models": os.path.abspath(options.models)}
            namespaces = ["--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
            child = subprocess.Popen(
                ["unshare", *namespaces, sys.executable, HERE, "--worker", json.dumps(setting), "--program", options.program, "--keep", options.keep],
                stdout=subprocess.PIPE, text=True, errors="replace")
            self.children.append(child)
            done = False
            for line in child.stdout:
                if not line.startswith("@"):
                    print(line, end="")
                    continue
                told = json.loads(line[1:])
                if "seed" in told:
                    seed = told["seed"] + options.jobs
                    self.count(told)
                done = done or told.get("done", False)
            child.wait()
            if done:
                return
            attempts += 1
            with self.lock:
                print(f"torture: a worker ended with {child.returncode} at seed {seed}", file=sys.stderr)
                self.faults["worker"] += 1
                seed += options.jobs

    def count(self, told):
        with self.lock:
            self.runs += 1
            self.statuses[str(told["status"])] += 1
            self.recordings += told["recordings"]
            self.refusals += told["refusals"]
            if told["stop"]:
                self.stops.setdefault(told["stop"][0], []).append(told["stop"][1])
            if told["reason"]:
                self.reasons[re.sub(r"'[^']*'|[\w-]+\.json[:\d]*|stages\[\d+\]|\d+", "#", told["reason"])[:170]] += 1
            if told["faults"]:
                self.failed += 1
            for kind, text in told["faults"]:
                signature = signature_of(kind, text)
                self.faults[signature] += 1
                if signature not in self.first:
                    self.first[signature] = told["seed"]
                    if not (self.options.verbose and self.options.runs == 1):
                        print(f"seed {told['seed']}: {kind}: {text[:700]}\n  {self.command(told['seed'])}", flush=True)
            if self.options.verbose:
                print(f"seed {told['seed']}: status {told['status']}, {told['seconds']:.2f} s{''.join(', ' + kind for kind, _ in told['faults'])}", flush=True)

    def command(self, seed):
        return f"python3 Tests/Soak/torture --seed {seed} --runs 1 -v --program {os.path.relpath(self.options.program)}"

    def figures(self):
        seconds = time.monotonic() - self.begin
        lines = [f"{self.runs} runs in {seconds:.0f} s ({self.runs / seconds:.1f} a second), seeds from {self.options.seed}; {self.recordings} recordings opened; {self.refusals} system calls refused; {self.failed} runs failed",
                 "ended with " + ", ".join(f"{status}: {count}" for status, count in sorted(self.statuses.items()))]
        for state, times in sorted(self.stops.items()):
            times = sorted(times)
            lines.append(f"asked to end when {state} time(s): {len(times)} runs, beyond the drain stated: median {times[len(times) // 2]:.3f} s, worst {times[-1]:.3f} s")
        lines += [f"{count:>6} {signature}  (first: seed {self.first.get(signature)})" for signature, count in self.faults.most_common()]
        return "\n".join(lines)

    def write_progress(self):
        with self.lock:
            text = time.strftime("%H:%M:%S ") + self.options.program + "\n" + self.figures() + "\n"
        with open(self.options.progress + ".new", "w") as file:
            file.write(text)
        os.replace(self.options.progress + ".new", self.options.progress)

    def finish(self):
        print(self.figures())
        if self.options.reasons:
            print("\n".join(f"{count:>6} {reason}" for reason, count in self.reasons.most_common(60)))
        if self.options.progress:
            self.write_progress()
        if self.faults:
            print(f"torture: {self.failed} of {self.runs} runs failed; chains, clips and output are in {self.options.keep}.", file=sys.stderr)
        elif not self.runs:
            print("torture: nothing ran.", file=sys.stderr)
            return 1
        return 1 if self.faults else 0


def waiting(report):
    """The functions of ours nearest to each thread's top."""
    tops = []
    for thread in report.split("Thread ")[1:]:
        found = re.search(r"in (\$s[\w$]{6,80})", thread)
        if found:
            tops.append(found[1][2:42])
    return " ".join(sorted(set(tops)))


def signature_of(kind, text):
    """Equal for failures of one cause, as far as their text tells."""
    lines = text.split("\n")
    text = lines[0]
    if kind in ("hang", "late"):
        text = (lines[1] + ": " if len(lines) > 1 and lines[1].startswith("nobody") else "") + waiting("\n".join(lines))
    if kind in ("file-lost", "source-lost", "locked-lost", "node-lost", "file-new"):
        text = re.sub(r"\(.*?\)", "(…)", text)
    text = re.sub(r"0x[0-9a-f]+|\d+", "#", text)
    text = re.sub(r"'[^']*'", "'…'", text)
    return f"{kind}: {text[:150]}"


if __name__ == "__main__":
    main()
