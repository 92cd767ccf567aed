#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pause that each kind of change makes in a live 720p30 chain, at the sink of the way that is changed and at another branch.

    Benchmarks/run changes          # RUNS=30 changes of each kind, ROOM=0.4 seconds after each

Two live sources go through a source-switch. Behind it are the way that is changed (filters, a sink) and an encoder; another branch leaves the first source before the switch. The sinks
write when each item arrived. The pause of a change is the longest time between two items, from the last one before the change to ROOM seconds after its answer, less the time of one
picture. The row *nothing* is the same without a change: what machine and sources do by themselves. *own* is what the pause must have by the stages themselves, and is taken off:
`lingering` holds a picture back, the time of one picture when it comes, and takes 20 ms for it when it leaves. The others hold nothing.
"""
import bisect
import importlib.util
import os
import pathlib
import random
import shutil
import struct
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PLUGINS = HERE / ".build" / "release"
RUNS, ROOM = int(os.environ.get("RUNS", 30)), float(os.environ.get("ROOM", 0.4))
PERIOD = 1 / 30
LINGER = 0.02

spec = importlib.util.spec_from_file_location("soak", HERE.parent / "Tests" / "Soak" / "changes.py")
soak = importlib.util.module_from_spec(spec)
spec.loader.exec_module(soak)


def camera(name):
    return {"id": name, "use": "test-source", "size": "1280x720", "rate": 30, "live": True}


def chain(behind=(), branches=()):
    """The chain, with further filters behind the stage `mid` of the way that is changed, and further branches."""
    way = [{"id": "mid", "use": "text", "text": "one", "from": "switch", "link": {"queue": 4}}, *behind]
    return {
        "spare": 8,
        "stages": [
            camera("left"), camera("right"),
            {"id": "switch", "use": "source-switch", "from": ["left", "right"]},
            *way, {"id": "pass", "use": "pass-through"}, {"id": "changed", "use": "arrivals", "path": "changed"},
            {"id": "h264", "use": "x264-encoder", "preset": "veryfast", "tune": "zerolatency", "bitrateKbps": 2500, "threads": 2,
             "from": "switch", "link": {"queue": 4}},
            {"id": "encoded", "use": "arrivals", "path": "encoded"},
            {"id": "small", "use": "crop-orient", "size": "320x180", "from": "left", "link": {"queue": 4}},
            {"id": "other", "use": "arrivals", "path": "other"},
            *branches,
        ],
    }


class Arrivals:
    """When each item came to a sink, seconds of CLOCK_MONOTONIC."""

    def __init__(self, path):
        self.path = path

    def pause(self, begin, end):
        data = self.path.read_bytes()
        times = [at / 1e9 for _, at in struct.iter_unpack("=QQ", data[:len(data) // 16 * 16])]
        first = max(bisect.bisect_left(times, begin) - 1, 0)
        found = times[first:bisect.bisect_right(times, end)]
        # Where the last item before the end is long ago, the way stands still at the end.
        return max(b - a for a, b in zip(found, found[1:] + [end])) - PERIOD


def kinds(run, plugin):
    """Each kind of change: what prepares it (not measured), the change, the sink of its way, the leaving stage's own time."""
    send, dice = run.send, random.Random(1)
    linger = {"id": "mid", "use": "lingering", "drainMs": int(LINGER * 1000)}
    text = {"id": "mid", "use": "text", "text": "one"}
    extra = {"id": "extra", "use": "crop-orient", "rotate": 180}
    shown = ["left", "right"]

    def rebuild():
        # Other bytes behind the same image: another build, for whoever compares files.
        with open(plugin, "rb") as file:
            data = file.read()
        with open(f"{plugin}.new", "wb") as file:
            file.write(data + b"\0")
        os.replace(f"{plugin}.new", plugin)

    def reload(**parts):
        return send({"command": "reload", "chain": chain(**parts)})

    def attach(**more):
        return send({"command": "attach", "at": "mid", "stages": [{"id": "more", "use": "null-sink"}], **more})

    def detach():
        return send({"command": "detach", "stage": "more"})

    def replace(stage, drop=False):
        return send({"command": "replace", "stage": stage["id"], "with": stage, "drop": drop})

    def switch():
        shown.reverse()
        return send({"stage": "switch", "command": "switch", "arguments": {"to": shown[0]}})

    nothing = (lambda: True)
    return {
        "nothing": (nothing, nothing, "changed", 0),
        "option set": (nothing, lambda: send({"stage": "mid", "set": {"text": f"n{dice.randrange(1000)}"}}), "changed", 0),
        "pause": (nothing, lambda: send({"stage": "mid", "command": "pause"}), "changed", 0),
        "resume": (nothing, lambda: send({"stage": "mid", "command": "resume"}), "changed", 0),
        "attach": (nothing, attach, "changed", 0),
        "detach": (nothing, detach, "changed", 0),
        "attach with a copy": (nothing, lambda: attach(copy=True), "changed", 0),
        "detach of a copy": (nothing, detach, "changed", 0),
        "insert": (nothing, lambda: reload(behind=[extra]), "changed", 0),
        "take out": (nothing, reload, "changed", 0),
        "replace": (nothing, lambda: replace({"id": "mid", "use": "fps-meter"}), "changed", 0),
        "replace by a filter that delays": (lambda: replace(text), lambda: replace(linger), "changed", PERIOD),
        "replace of one that holds a picture": (nothing, lambda: replace(text), "changed", LINGER),
        "replace of an encoder": (nothing, lambda: replace({
            "id": "h264", "use": "x264-encoder", "preset": "veryfast", "tune": "zerolatency", "threads": 2,
            "bitrateKbps": dice.randrange(1000, 4000)}), "encoded", 0),
        "source switch": (nothing, switch, "changed", 0),
        "reload: a filter, a branch": (
            nothing, lambda: reload(behind=[extra], branches=[{"id": "more", "use": "null-sink", "from": "left"}]), "changed", 0),
        "reload back": (nothing, reload, "changed", 0),
        "hot swap of a plugin": (rebuild, lambda: send({"command": "reload-plugin", "plugin": "pass-through"}), "changed", 0),
    }


def row(values):
    values = sorted(values)
    return [f"{1000 * values[min(int(len(values) * part), len(values) - 1)]:.1f}" for part in (0.5, 0.99)]


def main():
    program = os.environ["FRAMEHOST"]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        plugins = folder / "plugins"
        plugins.mkdir()
        for name in ("Changes", "PassThrough"):
            for file in PLUGINS.glob(f"lib{name}Plugin*"):
                if file.is_file():
                    shutil.copy(file, plugins)
            for file in PLUGINS.glob(f"{name}Plugin*.json"):
                shutil.copy(file, plugins)
        run = soak.Run(os.path.abspath(program), str(folder), chain(), "--plugin-path", str(plugins))
        time.sleep(3)
        sinks = {name: Arrivals(folder / name) for name in ("changed", "encoded", "other")}
        pauses = {}
        changes = kinds(run, next(plugins.glob("libPassThroughPlugin*.so")))
        try:
            for _ in range(RUNS):
                for kind, (prepare, change, sink, own) in changes.items():
                    prepare()
                    time.sleep(ROOM + random.random() * PERIOD)
                    begin = time.monotonic()
                    if not change():
                        raise SystemExit(f"{kind}: refused: {run.refused[-1]}")
                    answered = time.monotonic()
                    time.sleep(ROOM + PERIOD)
                    end = answered + ROOM
                    found = pauses.setdefault(kind, ([], [], []))
                    found[0].append(sinks[sink].pause(begin, end) - own)
                    found[1].append(sinks["other"].pause(begin, end))
                    found[2].append(answered - begin)
        except BaseException:
            run.process.kill()
            raise
        run.process.stdin.write('{"command": "drain", "tag": 0}\n')
        status = run.process.wait(60)
    rows = [[kind, f"{1000 * changes[kind][3]:.0f}", *row(way), *row(other), *row(answer)] for kind, (way, other, answer) in pauses.items()]
    head = ["pause, ms", "own", "way p50", "p99", "other p50", "p99", "answer p50", "p99"]
    widths = [max(len(line[column]) for line in [head, *rows]) for column in range(len(head))]
    for line in [head, *rows]:
        print("  ".join(cell.ljust(width) if not column else cell.rjust(width) for column, (cell, width) in enumerate(zip(line, widths))))
    print(f"{RUNS} of each kind; status {status}")


if __name__ == "__main__":
    main()
