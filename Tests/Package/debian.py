# SPDX-License-Identifier: Apache-2.0
"""A bare Debian in a folder, as debootstrap makes it, and one that boots with systemd."""
import hashlib
import os
import shutil
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STORE = os.path.join(ROOT, ".build", "package-tests")


class Unavailable(Exception):
    """What a desk may lack, and CI may not."""


def run(*command, **how):
    how.setdefault("timeout", 600)
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, **how)


def system():
    """Codename and mirror of this machine's own apt."""
    with open("/etc/os-release", encoding="utf-8") as file:
        release = dict(line.rstrip().split("=", 1) for line in file if "=" in line)
    if release.get("ID") != "debian":
        raise Unavailable("this is no Debian")
    name = release["VERSION_CODENAME"].strip('"')
    for line in run("apt-cache", "policy").stdout.split("\n"):
        words = line.split()
        # `500 http://… bookworm/main amd64 Packages`
        if len(words) > 2 and words[2] == f"{name}/main" and words[1].startswith("http"):
            return name, words[1]
    raise Unavailable("apt has no mirror")


class BareDebian:
    """Made once by debootstrap, and kept as an archive; each test has a copy of its own."""

    def __init__(self, name):
        if os.geteuid() != 0:
            raise Unavailable("debootstrap and chroot need root")
        os.makedirs(STORE, exist_ok=True)
        self.folder = os.path.join(STORE, name)
        self.remove()
        archive = self.archive()
        os.makedirs(self.folder)
        made = run("tar", "-C", self.folder, "-xf", archive)
        if made.returncode != 0:
            raise Unavailable(made.stdout)

    @staticmethod
    def archive():
        name, mirror = system()
        key = hashlib.sha256(f"{name} {mirror}".encode()).hexdigest()[:12]
        archive = os.path.join(STORE, f"debian-{key}.tar")
        if not os.path.exists(archive):
            folder = tempfile.mkdtemp(dir=STORE)
            os.chmod(folder, 0o755)
            try:
                made = run("debootstrap", "--variant=minbase", name, folder, mirror, timeout=1800)
                if made.returncode != 0:
                    raise Unavailable(f"debootstrap: {made.stdout[-400:]}")
                # As this machine reaches its mirror.
                settings = [line for line in run("apt-config", "dump").stdout.split("\n") if "::Proxy" in line]
                with open(os.path.join(folder, "etc/apt/apt.conf.d/90proxy"), "w", encoding="utf-8") as file:
                    file.write("\n".join(settings) + "\n")
                run("chroot", folder, "apt-get", "clean")
                if run("tar", "-C", folder, "-cf", archive + ".new", ".").returncode == 0:
                    os.rename(archive + ".new", archive)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        return archive

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, path):
        return self.folder + path

    def do(self, script, network=False, timeout=900):
        """A shell's script in it. Without a network unless it needs one."""
        inner = f'mount -t proc proc "{self.folder}/proc" && exec chroot "{self.folder}" /bin/sh -c "$1"'
        flags = ["-m"] if network else ["-m", "-n"]
        return run("unshare", *flags, "sh", "-c", inner, "sh", f"export LC_ALL=C DEBIAN_FRONTEND=noninteractive\n{script}", timeout=timeout)

    def install(self, package):
        """By apt, with what it depends on and nothing more."""
        shutil.copy(package, self.path("/tmp/framehost.deb"))
        return self.fetch("apt-get update -q && apt-get install -y -q --no-install-recommends -o Dpkg::Options::=--force-unsafe-io /tmp/framehost.deb")

    def fetch(self, script):
        """A script that calls apt, with a network. What was fetched once is fetched no more."""
        kept = os.path.join(STORE, "archives")
        os.makedirs(os.path.join(kept, "partial"), exist_ok=True)
        archives = self.path("/var/cache/apt/archives")
        for file in os.listdir(kept):
            if file.endswith(".deb") and not os.path.exists(os.path.join(archives, file)):
                os.link(os.path.join(kept, file), os.path.join(archives, file))
        shutil.copy("/etc/resolv.conf", self.path("/etc/resolv.conf"))
        with open(self.path("/etc/apt/apt.conf.d/91keep"), "w", encoding="utf-8") as file:
            file.write('APT::Keep-Downloaded-Packages "true";\n')
        outcome = self.do(script, network=True)
        for file in os.listdir(archives):
            if file.endswith(".deb") and not os.path.exists(os.path.join(kept, file)):
                os.link(os.path.join(archives, file), os.path.join(kept, file))
        return outcome


class Booted:
    """A Debian that runs, with systemd as its first process, without a network."""

    def __init__(self, debian):
        self.process = subprocess.Popen(
            ["systemd-nspawn", "--quiet", f"--directory={debian.folder}", "--register=no", "--keep-unit", "--boot", "--private-network",
             "--console=pipe"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.leader = None
        end = time.monotonic() + 300
        while time.monotonic() < end and self.process.poll() is None:
            self.leader = self.leader or self.child()
            if self.leader and self.do("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"):
                return
            time.sleep(0.2)
        self.process.kill()
        said = self.process.communicate()[0]
        self.leader = None
        raise Unavailable(f"systemd-nspawn does not boot: {said[-400:]}")

    def child(self):
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
                return (file.read().split() or [None])[0]
        except OSError:
            return None

    def do(self, *command, timeout=120):
        return run("nsenter", "-t", self.leader, "-m", "-u", "-i", "-p", "-n", "-r", "-w", *command, timeout=timeout)

    def stop(self):
        # systemd(1): SIGRTMIN+4 powers off.
        if self.leader:
            run("kill", "-s", "RTMIN+4", self.leader)
        try:
            self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
