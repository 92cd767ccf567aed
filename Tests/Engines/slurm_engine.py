# SPDX-License-Identifier: Apache-2.0
"""Debian's Slurm with three nodes on one machine, all daemons as the user who tests."""
import collections
import getpass
import os
import pathlib
import pwd
import socket
import subprocess
import time

from clips import batches, kill, processes, said_of, wait_for

NODES = ["n1", "n2", "n3"]

# AuthInfo: a requeued job waits for its credential to lapse, two minutes by default. NoInAddrAny: no daemon listens on other addresses.
CONFIGURATION = """
ClusterName=t
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16817
SlurmUser={me}
SlurmdUser={me}
MpiDefault=none
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthInfo=socket={d}/munge.sock,cred_expire=5
StateSaveLocation={d}/state
SlurmctldPidFile={d}/ctld.pid
SlurmctldLogFile={d}/ctld.log
SlurmdSpoolDir={d}/spool.%n
SlurmdPidFile={d}/%n.pid
SlurmdLogFile={d}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherParams=OverMemoryKill
JobAcctGatherFrequency=task=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
SlurmdTimeout=10
ReturnToService=2
MinJobAge=3600
KillWait=120
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
NodeName=n[1-3] NodeHostname={host} NodeAddr=127.0.0.1 Port=[17001-17003] CPUs=1 RealMemory=2000
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(mode=0o711)
        (folder / "state").mkdir()
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o400)
        configuration = folder / "slurm.conf"
        configuration.write_text(
            CONFIGURATION.format(host=socket.gethostname().split(".")[0], me=pwd.getpwuid(os.getuid()).pw_name, d=folder))
        os.environ["SLURM_CONF"] = str(configuration)
        self.daemons = {}
        munge = [f"--{name}={folder}/{file}" for name, file in [
            ("key-file", "munge.key"), ("socket", "munge.sock"), ("pid-file", "munged.pid"), ("log-file", "munged.log"), ("seed-file", "munge.seed")]]
        self.start("munged", "munged", "--force", "--foreground", *munge)
        wait_for("munged's socket", 120, (folder / "munge.sock").exists)
        self.start("slurmctld", "slurmctld", "-D", "-f", str(configuration))
        for node in NODES:
            self.start_node(node)
        wait_for("three idle nodes", 300, lambda: self.say("sinfo", "-h", "-t", "idle", "-o", "%D") == "3")

    def start(self, name, program, *arguments):
        program = next((path for path in [f"/usr/sbin/{program}", f"/usr/bin/{program}"] if os.path.exists(path)), program)
        log = open(self.folder / f"{name}.out", "ab")
        self.daemons[name] = subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def start_node(self, node):
        self.start(node, "slurmd", "-D", "-N", node, "-f", str(self.folder / "slurm.conf"))

    def say(self, *command):
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    def jobs(self):
        """Jobs that have not ended, with their node and state: [(id, node, state)]."""
        lines = self.say("squeue", "-h", "-r", "-t", "PD,R,CG,CF,S", "-o", "%A %N %T").splitlines()
        return [(words[0], words[1] if len(words) > 2 else "", words[-1]) for words in (line.split() for line in lines) if words]

    def steps(self):
        """The daemons of running jobs: [(pid, job)], of this cluster alone."""
        found = []
        for pid in processes("slurmstepd:", ".batch]"):
            try:
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
                title = pathlib.Path(f"/proc/{pid}/cmdline").read_text()
            except OSError:
                continue
            job = title.partition("[")[2].partition(".")[0]
            if str(self.folder).encode() in environment or job in {id for id, _, _ in self.jobs()}:
                found.append((pid, job))
        return found

    def lose(self, node, with_script):
        """The node's daemons are killed; its jobs go on, or are killed with it. The controller is told at once, and a new node comes."""
        mine = {id for id, where, state in self.jobs() if where == node and state == "RUNNING"}
        steps = [pid for pid, job in self.steps() if job in mine]
        scripts = [pid for step in steps for pid in children(step)]
        self.daemons[node].kill()
        self.daemons[node].wait()
        for pid in steps + (scripts if with_script else []):
            kill(pid)
        self.say("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
        self.start_node(node)
        time.sleep(0.5)
        self.say("scontrol", "update", f"nodename={node}", "state=resume")
        return bool(steps)

    def end(self):
        self.say("scancel", "--user", pwd.getpwuid(os.getuid()).pw_name)
        end = time.monotonic() + 15
        while self.steps() and time.monotonic() < end:
            time.sleep(0.2)
        for name in [*NODES, "slurmctld", "munged"]:
            self.daemons[name].terminate()
            try:
                self.daemons[name].wait(10)
            except subprocess.TimeoutExpired:
                self.daemons[name].kill()


def children(pid):
    try:
        return [int(word) for task in os.listdir(f"/proc/{pid}/task") for word in pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    except OSError:
        return []


def test(work, root, random, kills):
    cluster = Cluster(work.folder / "slurm")
    try:
        checks(work, cluster)
        cancelled(work, cluster)
        return batch(work, cluster, random, kills)
    finally:
        cluster.end()


def submit(work, out, *more):
    done = subprocess.run(
        [work.program, "batch", str(work.chain), str(work.clips), "--out", str(out), "--on", "slurm", "--cores", "1", "--attempts", "20", *more],
        capture_output=True, text=True)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr}"
    array, report = done.stdout.split()
    jobs = sorted((out / ".framehost/jobs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    return array, report, jobs[-1]


def checks(work, cluster):
    """What a refused job says."""
    out = work.folder / "refused"
    done = subprocess.run(
        [work.program, "batch", str(work.chain), str(work.clips), "--out", str(out), "--on", "slurm", "--memory", "100000"], capture_output=True, text=True)
    assert done.returncode == 2 and "sbatch: rejected the job" in done.stderr, f"status {done.returncode}: {done.stderr}"
    assert "Memory specification can not be satisfied" in done.stderr or "Requested node configuration" in done.stderr, done.stderr
    done = subprocess.run(
        [work.program, "batch", str(work.chain), str(work.clips), "--out", str(out), "--on", "slurm"], capture_output=True, text=True, env=dict(os.environ, PATH="/nowhere"))
    assert done.returncode == 2 and "sbatch: is not installed" in done.stderr, f"status {done.returncode}: {done.stderr}"


def cancelled(work, cluster):
    """scancel ends the workers, and the batch takes their attempts back."""
    out = work.folder / "slurm-cancelled"
    array, report, run = submit(work, out, "--tasks", "3")
    wait_for("running workers", 60, lambda: processes("--supervised", str(work.chain)))
    cluster.say("scancel", array, report)
    # Slurm would kill them after KillWait.
    wait_for("no process is left", 60, lambda: not processes(str(out)) and not processes("--supervised", str(work.chain)))
    wait_for("no job is left", 60, lambda: not cluster.jobs())
    left = [path for path in (out / ".framehost").rglob("*.mp4") if path.is_file()]
    assert not left, f"attempts that were not taken back: {left}"
    assert not (run / "report.json").exists(), "a cancelled report was written"


def batch(work, cluster, random, kills):
    return batches(kills, lambda index, left: one_batch(work, cluster, random, left, work.folder / f"slurm-out-{index}"))


def one_batch(work, cluster, random, kills, out):
    tasks = max(3, work.count // 5)
    begin = time.monotonic()
    array, report, run = submit(work, out, "--tasks", str(tasks))
    names = (run / "list").read_text().splitlines()
    assert names == sorted(names) and len(names) == work.count and all(name.startswith("/") for name in names), names
    asked = cluster.say("scontrol", "-o", "show", "job", report)
    assert f"afterany:{array}" in asked and "Requeue=1" in asked, asked
    counts, submissions = collections.Counter(), 1
    while sum(counts.values()) < kills:
        time.sleep(random.uniform(0.1, 1.0))
        if not cluster.jobs():
            if all((out / name).exists() for name in work.outputs):
                break
            assert submissions < kills + 10, f"jobs keep ending; {run}/logs says why"
            array, report, run = submit(work, out, "--tasks", str(tasks))
            submissions += 1
            continue
        kind = random.choice(["worker", "worker", "task", "step", "node and work", "node, work left"])
        if kind == "worker":
            found = processes(work.program, "run", "--supervised") or processes("framehost run", "--supervised", str(work.chain))
            counts[kind] += bool(found) and kill(random.choice(found))
        elif kind == "task":
            found = processes(work.program, "batch", str(out), "--list")
            counts[kind] += bool(found) and kill(random.choice(found))
        elif kind == "step":
            found = [pid for pid, _ in cluster.steps()]
            counts[kind] += bool(found) and kill(random.choice(found))
        else:
            counts[kind] += cluster.lose(random.choice(NODES), with_script=kind == "node and work")
    while True:
        try:
            wait_for("the jobs' end", 600, lambda: not cluster.jobs())
        finally:
            for node in NODES:
                cluster.say("scontrol", "update", f"nodename={node}", "state=resume")
        if (run / "report.json").exists():
            break
        assert submissions < 50, "the report never came"
        # Its own job was killed: the same command again.
        array, report, run = submit(work, out, "--tasks", str(tasks))
        submissions += 1
    seconds = time.monotonic() - begin
    figures = work.check(out, run / "report.json")
    return counts, f"{work.count} files, {tasks} tasks, {said_of(counts)}, {submissions} submissions, {seconds:.0f} s, report {figures['made']} made {figures['present']} present"
