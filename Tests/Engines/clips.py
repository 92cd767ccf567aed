# SPDX-License-Identifier: Apache-2.0
"""The work that every engine gets, and what has to be true of it at the end."""
import csv
import filecmp
import json
import os
import pathlib
import signal
import subprocess
import time

CHAIN = """{
  "stages": [
    { "id": "clip", "use": "file-source", "path": "${input}" },
    { "id": "crop", "use": "crop-orient", "size": "${SIZE}" },
    { "id": "h264", "use": "x264-encoder", "preset": "medium", "crf": 23, "threads": 1 },
    { "id": "file", "use": "recorder", "path": "${output}" }
  ]
}
"""


class Work:
    def __init__(self, folder, program, count, seconds):
        self.folder, self.program, self.count = folder, program, count
        self.clips = folder / "clips of 'ours'"
        self.chain = folder / "crop.json"
        self.chain.write_text(CHAIN)
        os.environ["SIZE"] = "320x180"
        one = folder / "one.mp4"
        subprocess.run(
            ["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", f"testsrc2=size=640x360:rate=30:duration={seconds + count / 10}",
             "-c:v", "libx264", "-preset", "ultrafast", "-g", "30", str(one)], check=True)
        for index in range(count):
            path = self.clips / f"day {index % 3}" / f"clip {index:02}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            # No two are the same, so that an output under another's name is seen.
            subprocess.run(
                ["ffmpeg", "-nostdin", "-v", "error", "-i", str(one), "-t", f"{seconds + index / 10:.1f}", "-c", "copy", str(path)], check=True)
        self.inputs = sorted(self.clips.rglob("*.mp4"))
        self.outputs = {str(path.relative_to(self.clips)) for path in self.inputs}
        self.undisturbed = folder / "undisturbed"
        begin = time.monotonic()
        subprocess.run(
            [program, "batch", str(self.chain), str(self.clips), "--out", str(self.undisturbed), "--quiet"], check=True)
        self.seconds = time.monotonic() - begin
        sizes = {(self.undisturbed / name).stat().st_size for name in self.outputs}
        assert len(sizes) > count / 2, "the outputs of different clips do not differ"

    def check(self, out, report):
        """Each output once, whole, equal to the undisturbed run's; counts that add up."""
        found = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and ".framehost" not in path.relative_to(out).parts}
        assert found == self.outputs, f"missing {sorted(self.outputs - found)}, too many {sorted(found - self.outputs)}"
        different = [name for name in sorted(found) if not filecmp.cmp(out / name, self.undisturbed / name, shallow=False)]
        assert not different, f"not as in the undisturbed run: {different}"
        records = [str(path.relative_to(out / ".framehost").parents[1]) for path in (out / ".framehost").glob("*/*/*/done")]
        assert sorted(records) == sorted(self.outputs), f"records of {sorted(records)}"
        figures = json.loads(report.read_text())
        states = {"made": "made", "present": "present", "madeElsewhere": "made elsewhere", "setAside": "set aside"}
        assert figures["files"] == self.count and figures["left"] == 0 and figures["setAside"] == 0, figures
        assert sum(figures[key] for key in states) == self.count, figures
        for key, state in states.items():
            assert figures[key] == sum(unit["state"] == state for unit in figures["units"]), f"{key}: {figures}"
        assert sorted(unit["output"] for unit in figures["units"]) == sorted(self.outputs), "the report names other files"
        sizes = {unit["output"]: unit["bytes"] for unit in figures["units"]}
        assert all(sizes[name] == (out / name).stat().st_size for name in found), "the report has other sizes"
        rows = list(csv.DictReader(report.with_suffix(".csv").open(newline="")))
        assert [row["output"] for row in rows] == [unit["output"] for unit in figures["units"]], "the CSV has other rows"
        return figures


def batches(kills, run):
    """Batches into new folders, each accounted for, until as many kills as asked have happened: a fast machine may be done with one before.
    `run(index, left)` runs one with at most `left` kills; it answers their counts by kind and what to say."""
    killed, said = 0, []
    while killed < kills:
        assert len(said) < 2 * kills, f"only {killed} of {kills} kills in {len(said)} batches: use longer clips (--seconds)"
        counts, words = run(len(said), kills - killed)
        killed += sum(counts.values())
        said.append(words)
    return "; ".join(said)


def said_of(counts):
    return f"killed {sum(counts.values())} (" + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()) if count) + ")"


def processes(*marks):
    """Ids of processes whose command line has all of the marks, without zombies."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            is_dead = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if not is_dead and words and all(mark in words for mark in marks):
            found.append(int(entry.name))
    return found


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False


def wait_for(what, seconds, condition):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = condition()
        if answer:
            return answer
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds} s")
