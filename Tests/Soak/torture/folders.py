# SPDX-License-Identifier: Apache-2.0
"""The folder a chain runs in: its clips, its neighbours, and what may have become of them afterwards."""

import fcntl
import hashlib
import os
import re
import shutil
import stat

import corpus

RECORDINGS = ["cam-{nnnn}.mp4", "cam-{n}.mp4", "cam-%Y.mp4", "cam-%S.mp4", "out.mp4", "out.mov", "out.mkv", "cam-{nn}.mkv", "sub/{n}.mp4", "new/%Y-%m-%d/x-{nn}.mkv",
              "full/cam-{n}.mp4", "full/out.mkv", "ro/out.mp4", "missing/out.mp4", "link.mp4", "fifo.mp4", "a%%b-{n}.mov", "%f.mp4", "sub"]
FAR = [2**33, 9223372036, 9223372037, -1, 0, 2**40, -(2**35)]


class Place:
    """A fresh folder for one run."""

    def __init__(self, folder, mounts, corpus_folder, dice, model=None):
        self.folder, self.mounts, self.corpus, self.dice, self.model = folder, mounts, corpus_folder, dice, model
        self.clips, self.locks, self.done = 0, [], []
        empty(folder)
        empty(mounts["full"])
        self.names = sorted(name for name in os.listdir(corpus_folder) if not name.endswith(".pem"))

    def path(self, name):
        return os.path.join(self.folder, name)

    # --- before the run ---

    def clip(self, dice):
        """A file to play, made from the corpus; its name."""
        kind = dice.random()
        if kind < 0.06:
            return dice.choice(["nothing.mp4", "sub", "fifo", "dangling.mp4", "link.mp4", "cam-0001.mp4", "/dev/zero", "-", "rtsp://127.0.0.1:1/x", "chain.json", "full/clip.mp4"])
        name = dice.choice(self.names)
        with open(os.path.join(self.corpus, name), "rb") as file:
            data = file.read()
        done = "whole"
        if kind > 0.35:
            data, done = corpus.damage(data, dice)
            if dice.random() < 0.2:
                data, more = corpus.damage(data, dice)
                done += "+" + more
        target = f"clip-{self.clips}{os.path.splitext(name)[1]}"
        if dice.random() < 0.05:
            target = "cam-0001.mp4"
        self.clips += 1
        self.done.append(f"{target}: {name}, {done}")
        self.write(target, data)
        return target

    def output(self, dice, names):
        return dice.choice(names)

    def recording(self, dice):
        return dice.choice(RECORDINGS[:9]) if dice.random() < 0.7 else dice.choice(RECORDINGS)

    def write(self, name, data):
        try:
            with open(self.path(name), "wb") as file:
                file.write(data)
        except OSError:
            pass

    def furnish(self):
        """What lies about."""
        dice, path = self.dice, self.path
        os.makedirs(path("sub"), exist_ok=True)
        os.symlink(self.mounts["full"], path("full"))
        os.symlink(self.mounts["ro"], path("ro"))
        self.write("existing.txt", b"Somebody's text.\n")
        self.write("sub/precious.mp4", self.small())
        for name, target in (("link.txt", "existing.txt"), ("link.mp4", "sub/precious.mp4"), ("dangling.mp4", "nowhere/at/all.mp4")):
            os.symlink(target, path(name))
        if dice.random() < 0.3:
            os.mkfifo(path("fifo"))
        if dice.random() < 0.3:
            os.mkfifo(path("fifo.mp4"))
        for name in ("certificate.pem", "key.pem", "picture.png"):
            source = os.path.join(self.corpus, name)
            if os.path.exists(source):
                shutil.copy(source, path("clip-picture.png" if name == "picture.png" else name))
        self.write("users.txt", dice.choice([b"a:b\n", b"a:b\nnonsense", b"", b"\xff\xfe:x\n"]))
        if dice.random() < 0.5:
            for _ in range(dice.choice([1, 3, 8])):
                self.neighbour()
        if dice.random() < 0.3:
            self.write("../" + os.path.basename(self.mounts["full"]) + "/filler", b"x" * dice.choice([1000, 100_000, 10_000_000]))

    def small(self):
        with open(os.path.join(self.corpus, "plain.mp4"), "rb") as file:
            return file.read()

    def neighbour(self):
        dice = self.dice
        name = dice.choice([
            "cam-0001.mp4", "cam-0002.mp4", "cam-0003.mp4", "cam-0007.mp4", "cam-1.mp4", "cam-2.mp4", "cam-9223372036854775807.mp4", "cam-9223372036854775806.mp4",
            "cam-99999999999999999999999.mp4", "cam-2026.mp4", "cam-2025.mp4", "cam-30.mp4", "out.mp4", "out.mov", "out.mkv", "out-0001.mp4", "out-0002.mp4", "cam-01.mkv",
            "sub/1.mp4", "sub/2.mp4", "sub/9223372036854775807.mp4", "full/cam-1.mp4", "full/out.mkv", ".cam-0001.mp4.finalising", ".out.mp4.finalising", "stats.json.tmp",
            "stats.json", "cam-0001~2.mp4", "cam-0001.mp4.bak", "cam-x.mp4", "a%b-1.mov", "faces.jsonl", "dump.raw", "existing.txt.tmp", "cam-\udcff.mp4", "cam--1.mp4"])
        path = self.path(name)
        if os.path.lexists(path):
            return
        kind = dice.choices(["file", "folder", "link", "fifo", "empty", "secret"], [10, 1, 1, 1, 2, 2])[0]
        try:
            if kind == "folder":
                os.mkdir(path)
            elif kind == "link":
                os.symlink(self.path(dice.choice(["sub/precious.mp4", "nowhere", os.path.basename(name)])), path)
            elif kind == "fifo":
                os.mkfifo(path)
            else:
                with open(path, "wb") as file:
                    file.write(b"" if kind == "empty" else self.small() * dice.choice([1, 1, 20]))
                if kind == "secret":
                    os.chmod(path, 0o600)
                if dice.random() < 0.4:
                    time = dice.choice(FAR)
                    os.utime(path, ns=(time * 10**9, time * 10**9))
                if dice.random() < 0.2:
                    handle = os.open(path, os.O_RDONLY)
                    fcntl.flock(handle, dice.choice([fcntl.LOCK_EX, fcntl.LOCK_SH]))
                    self.locks.append((handle, os.path.normpath(path)))
        except (OSError, OverflowError):
            pass

    def release(self):
        for handle, _ in self.locks:
            os.close(handle)
        self.locks = []

    # --- before and after ---

    def snapshot(self):
        """Everything in the folder and on its mounts, by path: what it is and what it holds."""
        found = {}
        for root in (self.folder, self.mounts["full"], self.mounts["ro"], "/tmp", "/dev"):
            for folder, folders, files in os.walk(root):
                if root == "/tmp" and folder == "/tmp":
                    folders[:] = [name for name in folders if name not in ("t", "bin")]
                for name in folders + files:
                    path = os.path.join(folder, name)
                    try:
                        found[path] = self.look(path)
                    except OSError:
                        pass
        return found

    @staticmethod
    def look(path):
        status = os.lstat(path)
        mode = status.st_mode
        if stat.S_ISLNK(mode):
            return "link", os.readlink(path)
        if stat.S_ISREG(mode):
            with open(path, "rb") as file:
                data = file.read(4_000_000)
            return "file", status.st_size, hashlib.blake2b(data, digest_size=8).hexdigest(), stat.S_IMODE(mode), status.st_uid
        if stat.S_ISDIR(mode):
            return "folder", stat.S_IMODE(mode)
        return "node", stat.S_IFMT(mode), status.st_rdev

    def resolve(self, name):
        """Where a name of the chain leads, links followed, and without following the last."""
        path = os.path.normpath(os.path.join(self.folder, name))
        return {path, os.path.realpath(path), os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))}


def empty(folder):
    os.makedirs(folder, exist_ok=True)
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)


# One part of a path; without a slash, by which expressions are taken apart.
ANY = r"[\w:+.%~-]+"


def parents(expression):
    """The folders in it, from the outermost on."""
    parts = expression.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def beside(expression):
    """The copy that is made beside a recording while it is finalised."""
    folder, slash, name = expression.rpartition("/")
    return folder + slash + r"\." + name + r"\.finalising"


def pattern(path, makes_more):
    """What names a recorder's `path` stands for, as a regular expression over absolute paths."""
    if makes_more and not re.search(r"%[a-zA-Z]|\{n+\}", path):
        stem, ending = os.path.splitext(path)
        path = stem + "-{nnnn}" + ending
    out, at = "", 0
    for found in re.finditer(r"%%|%[a-zA-Z]|\{n+\}", path):
        out += re.escape(path[at:found.start()])
        text = found[0]
        out += "%" if text == "%%" else r"\d+" if text[0] == "{" else ANY
        at = found.end()
    rest = path[at:]
    stem, dot, ending = rest.rpartition(".")
    return out + re.escape(stem) + r"(~\d+)?" + re.escape(dot + ending)
