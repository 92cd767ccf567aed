# SPDX-License-Identifier: Apache-2.0
"""Ray's local cluster. The cluster and framehost-ray run under the interpreter that has Ray: RAY_PYTHON, or the tests' own environment."""
import collections
import json
import os
import pathlib
import signal
import subprocess
import time

from clips import batches, kill, processes, said_of, wait_for

# A head without room for tasks, and two nodes. Says the address; "lose" on its standard input kills a node and adds another one.
CLUSTER = """
import random, sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args=dict(num_cpus=0, include_dashboard=False, object_store_memory=80 * 2**20))
add = lambda: cluster.add_node(wait=False, num_cpus=1, memory=2 * 2**30, object_store_memory=80 * 2**20)
nodes = [add(), add()]
cluster.wait_for_nodes(timeout=300)
print(cluster.address, flush=True)
for line in sys.stdin:
    cluster.remove_node(nodes.pop(random.randrange(2)), allow_graceful=False)
    nodes.append(add())
    cluster.wait_for_nodes(timeout=300)
    print("lost", flush=True)
cluster.shutdown()
"""


class RayCluster:
    def __init__(self, python, folder):
        folder.mkdir()
        log = open(folder / "cluster.out", "ab")
        self.process = subprocess.Popen(
            [python, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
        self.address = self.read()

    def read(self):
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError("Ray's cluster ended; cluster.out says why")
            if line.startswith("lost") or line.rpartition(":")[2].strip().isdigit():
                return line.strip()

    def lose(self):
        self.process.stdin.write("lose\n")
        self.process.stdin.flush()
        return self.read() == "lost"

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        # What the cluster has left behind, by the session's id: all that it started has it.
        for pid in session(self.process.pid):
            kill(pid)


def session(leader):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(words[3]) == leader and words[0] != "Z":
                found.append(int(entry.name))
    return found


def interpreter(root):
    """An interpreter with Ray and framehost-ray, in an environment of its own."""
    if named := os.environ.get("RAY_PYTHON"):
        return named
    environment = root / ".build/engine-tests"
    wanted = (root / "Tests/Engines/requirements.txt").read_text()
    kept = environment / "requirements.txt"
    if not kept.exists() or kept.read_text() != wanted:
        subprocess.run(["python3", "-m", "venv", "--clear", str(environment)], check=True)
        subprocess.run(
            [str(environment / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "-r", str(root / "Tests/Engines/requirements.txt")], check=True)
        kept.write_text(wanted)
    return str(environment / "bin/python")


def test(work, root, random, kills):
    python = interpreter(root)
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=str(root / "packaging/ray/src"))
    # Ray's sockets must have short names; they go below this folder.
    os.environ["RAY_TMPDIR"] = str(work.folder)
    shims = work.folder / "bin"
    shims.mkdir(exist_ok=True)
    command = shims / "framehost-ray"
    command.write_text(f'#!/bin/sh\nexec "{python}" -m framehost_ray "$@"\n')
    command.chmod(0o755)
    os.environ["PATH"] = f"{shims}:{os.environ['PATH']}"
    cluster = RayCluster(python, work.folder / "ray")
    os.environ["RAY_ADDRESS"] = cluster.address
    try:
        said = []
        for part in (lambda: batch(work, cluster, random, kills), lambda: cancelled(work), lambda: wrong(work),
                     lambda: store(work, python, random, min(5, kills // 2))):
            said.append(part())
            print(f"ray: {said[-1]}", flush=True)
        return f"{len(said)} parts"
    finally:
        cluster.end()


def start(work, out, *more, chain=None):
    return subprocess.Popen(
        [work.program, "batch", str(chain or work.chain), str(work.clips), "--out", str(out), "--on", "ray", "--cores", "1", "--attempts", "20", *more],
        stdout=open(work.folder / "ray.out", "ab"), stderr=subprocess.STDOUT, start_new_session=True)


def batch(work, cluster, random, kills):
    return batches(kills, lambda index, left: one_batch(work, cluster, random, left, work.folder / f"ray-out-{index}"))


def one_batch(work, cluster, random, kills, out):
    tasks = max(3, work.count // 5)
    begin, starts = time.monotonic(), 1
    driver = start(work, out, "--tasks", str(tasks))
    counts = collections.Counter()
    while sum(counts.values()) < kills:
        time.sleep(random.uniform(0.1, 1.0))
        if driver.poll() is not None:
            if all((out / name).exists() for name in work.outputs):
                break
            assert starts < kills + 10, f"the driver keeps ending; {work.folder}/ray.out says why"
            driver, starts = start(work, out, "--tasks", str(tasks)), starts + 1
            continue
        busy = processes(work.program, "batch", str(out), "--list", "--shard")
        if not busy:
            continue
        kind = random.choice(["worker", "worker", "task", "Ray's worker", "Ray's worker", "node", "driver"])
        if kind == "worker":
            found = processes("run", "--supervised", str(work.chain))
            counts[kind] += bool(found) and kill(random.choice(found))
        elif kind == "task":
            counts[kind] += kill(random.choice(busy))
        elif kind == "Ray's worker":
            parents = [parent(pid) for pid in busy]
            counts[kind] += kill(random.choice(parents)) if all(pid > 1 for pid in parents) else 0
        elif kind == "node":
            counts[kind] += cluster.lose()
        elif counts[kind] < max(1, kills // 10):
            counts[kind] += kill(driver.pid)
            driver.wait()
    for _ in range(10):
        status = driver.wait(600)
        runs = [path for path in (out / ".framehost/jobs").iterdir() if (path / "report.json").exists()]
        if status == 0 and runs:
            break
        driver, starts = start(work, out, "--tasks", str(tasks)), starts + 1
    assert status == 0, f"status {status}; {work.folder}/ray.out says why"
    figures = work.check(out, max(runs, key=lambda path: path.stat().st_mtime_ns) / "report.json")
    return counts, f"{work.count} files, {tasks} tasks, {said_of(counts)}, {starts} starts, {time.monotonic() - begin:.0f} s, report {figures['made']} made {figures['present']} present"


def parent(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def cancelled(work):
    """SIGTERM ends the tasks' programs soon, not when they are done."""
    out = work.folder / "ray-cancelled"
    driver = start(work, out, "--tasks", "2")
    wait_for("running tasks", 120, lambda: processes(work.program, str(out), "--shard"))
    begin = time.monotonic()
    driver.send_signal(signal.SIGTERM)
    status = driver.wait(60)
    wait_for("no task is left", 60, lambda: not processes(str(out)))
    assert status == 1, f"status {status} after SIGTERM"
    left = [path for path in out.rglob("*.mp4") if path.is_file() and str(path.relative_to(out)) not in work.outputs]
    assert not left, f"attempts that were not taken back: {left}"
    return f"cancelled within {time.monotonic() - begin:.1f} s"


def wrong(work):
    """A chain that becomes wrong after the job was written ends it, and no task is tried again."""
    chain = work.folder / "wrong.json"
    chain.write_text(work.chain.read_text())
    out = work.folder / "ray-wrong"
    plan = work.folder / "kept.json"
    shims = work.folder / "bin/framehost-ray"
    text = shims.read_text()
    shims.write_text(f'#!/bin/sh\ncp "$2" "{plan}"\n')
    try:
        assert start(work, out, "--tasks", "4", chain=chain).wait(120) == 0
    finally:
        shims.write_text(text)
    assert json.loads(plan.read_text())["files"] == work.count
    chain.write_text("{ \"stages\": [] }")
    done = subprocess.run([str(shims), "job", str(plan)], capture_output=True, text=True)
    assert done.returncode == 2, f"status {done.returncode} of a wrong chain: {done.stdout}{done.stderr}"
    return "a wrong chain: status 2"


def store(work, python, random, kills):
    """The same clips through a store's interface: two batches at once, programs killed, each output once."""
    out = work.folder / "store"
    flat = work.folder / "flat"
    flat.mkdir()
    names = {}
    # A few are enough here: the store's way is a task for each file, whatever their number.
    for path in work.inputs[:8]:
        os.link(path, flat / path.name)
        names[path.name] = str(path.relative_to(work.clips))
    report = work.folder / "store.json"
    command = [python, "-m", "framehost_ray", "store", str(work.chain), f"file://{flat}/*.mp4", "--out", f"file://{out}", "--cores", "1", "--program", work.program]
    log = open(work.folder / "store.out", "ab")
    begin, killed = time.monotonic(), 0
    runs = [subprocess.Popen([*command, *more], stdout=log, stderr=log) for more in ([], ["--report", str(report)])]
    while any(run.poll() is None for run in runs):
        time.sleep(random.uniform(0.1, 1.0))
        found = processes(work.program, "batch", "framehost-ray-")
        if killed < kills and found:
            killed += kill(random.choice(found))
    assert [run.returncode for run in runs] == [0, 0], f"status {[run.returncode for run in runs]}; {work.folder}/store.out says why"
    found = {path.name for path in out.iterdir() if path.is_file()}
    assert found == set(names), f"outputs {sorted(found)}"
    for name in found:
        assert (out / name).read_bytes() == (work.undisturbed / names[name]).read_bytes(), f"{name}: not as in the undisturbed run"
    left = [path for path in (out / ".framehost").rglob("*.mp4") if path.is_file()]
    assert not left, f"attempts that are left: {left}"
    figures = json.loads(report.read_text())
    assert figures["files"] == len(names) == figures["made"] + figures["present"] and figures["left"] == figures["set aside"] == 0, figures
    return f"store: {len(names)} files, two batches at once, killed {killed}, {time.monotonic() - begin:.0f} s"
