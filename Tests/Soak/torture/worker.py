# SPDX-License-Identifier: Apache-2.0
"""One worker, in namespaces of its own: puts everything out of harm's way, then runs one trial after the other."""

import collections
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

import chains
import probe
import trial

ROOT = "/tmp/t"


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def protect(folders):
    """[worker] All that was mounted becomes read-only; /tmp, /dev and the trial's folder are memory of our own."""
    mount("--make-rprivate", "/")
    fields = [line.split(" ") for line in open("/proc/self/mountinfo")]
    points = [re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), field[4]) for field in fields]
    saved = "/mnt"
    mount("-t", "tmpfs", "-o", "size=16m", "tmpfs", saved)
    for name, folder in folders.items():
        os.makedirs(f"{saved}/{name}")
        mount("--bind", folder, f"{saved}/{name}")
    for point in sorted(set(points), key=len):
        if point.startswith("/dev") or point in ("/proc",):
            continue
        subprocess.run(["mount", "-o", "remount,bind,ro", point], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    device()
    mount("-t", "tmpfs", "-o", "size=700m,mode=1777", "tmpfs", "/tmp")
    for folder in ("w", "full", "ro", "small"):
        os.makedirs(f"{ROOT}/{folder}")
    mount("-t", "tmpfs", "-o", "size=300k,mode=777", "tmpfs", f"{ROOT}/full")
    mount("-t", "tmpfs", "-o", "size=600k,mode=777", "tmpfs", f"{ROOT}/small")
    mount("-t", "tmpfs", "-o", "size=64k", "tmpfs", f"{ROOT}/ro")
    with open(f"{ROOT}/ro/out.mp4", "w") as file:
        file.write("read-only\n")
    mount("-o", "remount,ro", f"{ROOT}/ro")
    os.chmod(ROOT, 0o777)
    left = [point for point in points if not point.startswith(("/dev", "/proc", "/tmp")) and writable(point)]
    if left:
        raise SystemExit(f"torture: {', '.join(left)} could still be written: nothing is run")


def writable(point):
    try:
        return not os.statvfs(point).f_flag & os.ST_RDONLY
    except OSError:
        return False


def device(again=False):
    """A /dev of our own, with nodes of our own; made anew where a run has replaced them."""
    nodes = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9)}
    if again:
        for name, (major, minor) in nodes.items():
            path = f"/dev/{name}"
            if not os.path.exists(path) or not stat.S_ISCHR(os.stat(path).st_mode):
                if os.path.lexists(path):
                    os.unlink(path)
                os.mknod(path, 0o20666, os.makedev(major, minor))
                os.chmod(path, 0o666)
        return
    os.makedirs("/mnt/dev")
    mount("--rbind", "/dev", "/mnt/dev")
    mount("-t", "tmpfs", "-o", "size=64k,mode=755", "tmpfs", "/dev")
    os.umask(0)
    for name, (major, minor) in nodes.items():
        try:
            os.mknod(f"/dev/{name}", 0o20666, os.makedev(major, minor))
        except PermissionError:
            # Inside a user namespace nobody makes nodes.
            open(f"/dev/{name}", "w").close()
            subprocess.run(["mount", "--bind", f"/mnt/dev/{name}", f"/dev/{name}"], check=True)
    os.umask(0o022)
    subprocess.run(["umount", "-R", "-l", "/mnt/dev"], check=True)
    os.symlink("/proc/self/fd", "/dev/fd")
    os.makedirs("/dev/shm")
    mount("-t", "tmpfs", "-o", "size=64m,mode=1777", "tmpfs", "/dev/shm")


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        import fcntl
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14s", b"lo", 0x1 | 0x40, b""))


def run(options):
    setting = json.loads(options.worker)
    program = options.program
    begin = time.monotonic()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        # A worker in the background of a shell has some of them ignored, and so would what it starts.
        signal.signal(number, lambda number, frame: None)
    folders = {"keep": options.keep, "work": setting["work"], "here": os.path.dirname(os.path.abspath(__file__)), "program": os.path.dirname(os.path.realpath(program))}
    if os.path.isdir(setting["models"]):
        folders["models"] = setting["models"]
    protect(folders)
    keep, work = "/mnt/keep", "/mnt/work"
    raise_loopback()
    os.environ["TORTURE_ROOT"] = "1" if can_change_user() else "0"
    # The program, where a user without rights may start it.
    copy_program(os.path.basename(program))
    program = "/tmp/bin/framehost"
    shutil.copytree(f"{work}/corpus", "/mnt/corpus")
    shutil.copy(f"{work}/refusals.so", "/mnt/refusals.so")
    model = find_model("/mnt/models")
    os.chmod("/mnt", 0o755)
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kinds = chains.Kinds(program)
    mounts = {name: f"{ROOT}/{name}" for name in ("full", "small", "ro")}
    mount("-o", "remount,ro", "/mnt")
    prober = probe.Prober("/mnt/here/probe.py")
    kept = {}
    for seed in range(setting["seed"], setting["end"], setting["step"]):
        # One at least: a busy machine may have needed all of the time until here.
        if seed > setting["seed"] and time.monotonic() - begin > setting["seconds"]:
            break
        one = run_until_sure(lambda: trial.Trial(seed, program, kinds, ROOT, mounts, "/mnt/corpus", "/mnt/refusals.so", (8554, 8555), prober, model))
        if one.result == "skipped":
            continue
        if one.faults:
            from __main__ import signature_of
            signature = signature_of(*one.faults[0])
            kept[signature] = kept.get(signature, 0) + 1
            if kept[signature] <= 3 or setting["verbose"]:
                one.keep(f"{keep}/{seed}")
        if setting["verbose"]:
            one.keep(f"{keep}/{seed}")
            print(one.report())
            print(one.chain.bytes.decode(errors="replace"))
            print(one.err.decode(errors="replace"))
            print(one.out.decode(errors="replace")[:6000])
        print("@" + json.dumps({"seed": seed, "status": one.process.returncode, "seconds": one.seconds, "faults": one.faults, "recordings": len(one.notes),
                          "reason": one.reason(), "stop": one.stop, "refusals": one.refused.count("\n")}), flush=True)
    print('@{"done": true}', flush=True)


def run_until_sure(make):
    """Runs a trial. Where it says that a thread was held up, the same again, twice at most: that is a fault if it comes again."""
    one, others, counts, words = None, [], collections.Counter(), {}
    for number in range(1, 4):
        before, one = one, make()
        one.run()
        device(again=True)
        if one.result == "skipped":
            return before or one
        held_up = {kind: text.partition("\n")[0] for kind, text in one.faults if kind in trial.HELD_UP}
        counts.update(held_up.keys())
        words.update(held_up)
        others += [fault for fault in one.faults if fault[0] not in trial.HELD_UP]
        if not counts or max(counts.values()) > 1:
            break
    for kind, text in words.items():
        if counts[kind] == 1:
            print(f"seed {one.seed}: once in {number} runs, so no fault: {kind}: {text}", flush=True)
    one.faults = others + [fault for fault in one.faults if counts[fault[0]] > 1]
    return one


def can_change_user():
    try:
        return subprocess.run(["true"], user=65534).returncode == 0
    except (PermissionError, OSError):
        return False


def copy_program(own):
    """Where nobody writes, and a user without rights may start it."""
    os.makedirs("/tmp/bin")
    for name in os.listdir("/mnt/program"):
        if name == own or name.endswith(".so"):
            shutil.copy(f"/mnt/program/{name}", "/tmp/bin/" + ("framehost" if name == own else name))
    mount("--bind", "/tmp/bin", "/tmp/bin")
    mount("-o", "remount,bind,ro", "/tmp/bin")


def find_model(folder):
    """A YuNet model, if there is one."""
    try:
        name = sorted(name for name in os.listdir(folder) if name.endswith(".onnx"))[-1]
        shutil.copy(f"{folder}/{name}", "/mnt/model.onnx")
        return "/mnt/model.onnx"
    except (OSError, IndexError):
        return None
