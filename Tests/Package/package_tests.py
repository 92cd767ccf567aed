# SPDX-License-Identifier: Apache-2.0
"""What `make deb` and `make install` give, from its files to a service that systemd starts anew."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from container_tests import ContainerTests, RecipeTests  # noqa: F401: run with the others
from debian import ROOT, BareDebian, Booted, Unavailable, run
from manager import without_losses
from notices_tests import NoticesTests  # noqa: F401: run with the others

PREFIX = "/usr"
CI = os.environ.get("CI") == "true"


def package():
    found = glob.glob(os.path.join(ROOT, ".build/deb/framehost_*.deb"))
    assert len(found) == 1, f"{len(found)} packages in .build/deb: run `make deb`"
    return found[0]


def skip(case, what, why):
    """By name, so that it counts nowhere as passed; in CI there is no excuse."""
    if CI:
        case.fail(f"{what}: {why}")
    print(f"\nSKIPPED {what}: {why}", flush=True)
    case.skipTest(str(why))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class FilesTests(unittest.TestCase):
    """The package unpacked, not installed."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="framehost-deb-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        assert run("dpkg-deb", "--raw-extract", package(), cls.folder).returncode == 0
        cls.program = cls.folder + "/usr/lib/framehost/framehost"

    def path(self, path):
        return self.folder + path

    def ask(self, *arguments):
        outcome = subprocess.run([self.program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return outcome.stdout

    def test_lintianFindsNoError(self):
        outcome = run("lintian", "--allow-root", "--fail-on", "error,warning", package())
        self.assertEqual(outcome.returncode, 0, outcome.stdout)

    def test_imagesLookBesideThemselvesAlone(self):
        images = glob.glob(self.path("/usr/lib/framehost/**/*.so"), recursive=True) + [self.program]
        self.assertGreater(len(images), 30)
        for image in images:
            dynamic = run("readelf", "-d", image).stdout
            runpath = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic)
            if "/swift/" in image:
                self.assertIn(runpath, ([], ["$ORIGIN"]), image)
            else:
                self.assertEqual(runpath, ["$ORIGIN:$ORIGIN/swift"], image)
            # The runtime of the package, not one that this machine happens to have.
            for line in run("ldd", image).stdout.split("\n"):
                self.assertNotIn("not found", line, image)
                if "swift" in line or "Foundation" in line or "libFrame" in line:
                    self.assertIn(f"=> {self.folder}/", line, image)

    def test_noFileNamesTheMachineThatBuiltIt(self):
        for folder, _, names in os.walk(self.path("/usr/share")):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    with open(path, "rb") as file:
                        self.assertNotIn(ROOT.encode(), file.read(), name)

    def test_thereIsNoConfigurationAndLittleToRun(self):
        self.assertFalse(os.path.exists(self.path("/DEBIAN/conffiles")))
        self.assertEqual(sorted(set(os.listdir(self.path("/DEBIAN"))) - {"control", "md5sums"}), ["postinst"])
        postinst = read(self.path("/DEBIAN/postinst"))
        commands = set(re.findall(r"^\s+(systemd-\w+|deb-systemd\S*|systemctl|adduser)", postinst, re.M))
        self.assertEqual(commands, {"systemd-sysusers", "systemd-tmpfiles"}, "the service is not enabled, not started")

    def test_dependenciesAreThoseOfTheImages(self):
        fields = run("dpkg-deb", "--field", package(), "Depends").stdout
        for name in ["libx264-", "libavformat", "libyuv0", "libc6", "libopencv-core", "libv4l-0", "libcurl"]:
            self.assertIn(name, fields)
        for name in ["swift", "-dev", "ffmpeg,"]:
            self.assertNotIn(name, fields)

    def test_versionIsTheProgramsOwn(self):
        version = run("dpkg-deb", "--field", package(), "Version").stdout.strip()
        self.assertTrue(self.ask("--version").startswith(f"framehost {version.split('-')[0]} ("), version)

    def test_copyrightNamesWhatDecides(self):
        text = read(self.path("/usr/share/doc/framehost/copyright"))
        for word in ["libx264 (GPL", "Swift runtime", "BoringSSL", "public-domain"]:
            self.assertIn(word, text)

    def test_manualSaysWhatTheProgramSays(self):
        page = run("man", "--warnings", "-l", self.path("/usr/share/man/man1/framehost.1.gz"), env={**os.environ, "MANWIDTH": "400", "LC_ALL": "C.UTF-8"})
        self.assertEqual(page.returncode, 0, page.stdout)
        text = " ".join(page.stdout.replace("‐", "-").replace("−", "-").split())
        program = json.loads(self.ask("--experimental-dump-help"))["command"]
        words = 0

        def check(command, path):
            nonlocal words
            for child in command.get("subcommands", []):
                if child["commandName"] != "help":
                    check(child, path + [child["commandName"]])
            if not path:
                return
            self.assertIn("framehost " + " ".join(path), text)
            for argument in command.get("arguments", []):
                # What only the program itself says to itself is no option of people's.
                if argument["valueName"] in ("help", "version") or not argument.get("shouldDisplay", True):
                    continue
                for name in argument.get("names", []):
                    self.assertIn(("--" if name["kind"] == "long" else "-") + name["name"], text)
                said = " ".join(argument["abstract"].replace("`", "").split())
                self.assertIn(said, text)
                words += 1

        check(program, [])
        self.assertGreater(words, 30)
        for page in ["man1/framehost.1.gz", "man5/framehost-chain.5.gz"]:
            lint = run("mandoc", "-T", "lint", "-W", "warning", self.path("/usr/share/man/" + page))
            self.assertEqual(lint.stdout, "")

    def test_pageOfTheChainFileNamesEveryKey(self):
        text = run("man", "-l", self.path("/usr/share/man/man5/framehost-chain.5.gz")).stdout
        schema = json.loads(self.ask("schema"))
        keys = [key for key in schema["properties"] if key != "$schema"]
        self.assertIn("stages", keys)
        for key in keys:
            self.assertRegex(text, rf"\b{key}\b")

    def test_completionsAreThoseOfTheProgram(self):
        files = {
            "bash": "/usr/share/bash-completion/completions/framehost", "zsh": "/usr/share/zsh/vendor-completions/_framehost",
            "fish": "/usr/share/fish/vendor_completions.d/framehost.fish",
        }
        for shell, file in files.items():
            said = self.ask("--generate-completion-script", shell)
            if shell == "bash":
                said = said.split("\n", 1)[1]
            self.assertEqual(read(self.path(file)), said)
            self.assertEqual(run(shell, "-n", self.path(file)).returncode, 0, shell)

    def test_bashCompletesCommandsAndOptions(self):
        def complete(line):
            words = line.split(" ")
            script = (
                f'source "{self.path("/usr/share/bash-completion/completions/framehost")}"; function framehost {{ "{self.program}" "$@"; }}; '
                f'COMP_WORDS=({" ".join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; COMP_LINE={line!r}; COMP_POINT={len(line)}; '
                f'COMP_TYPE=9; COMP_KEY=9; handler=$(complete -p framehost | sed "s/.*-F \\([^ ]*\\).*/\\1/"); $handler framehost {words[-1]!r} {words[-2]!r} 2>/dev/null; printf "%s\\n" "${{COMPREPLY[@]}}"')
            return run("bash", "-c", script, cwd=self.folder).stdout.split()

        self.assertIn("describe", [w.strip() for w in complete("framehost des")])
        self.assertIn("--watch", [w.strip() for w in complete("framehost run --wa")])

    def test_unitIsSoundAndShutIn(self):
        # As it lies on a machine where the package is installed.
        unit = read(self.path("/usr/lib/systemd/system/framehost@.service")) if os.path.exists(
            self.path("/usr/lib/systemd/system/framehost@.service")) else read(self.path("/lib/systemd/system/framehost@.service"))
        self.assertIn("ExecStart=/usr/bin/framehost run /etc/framehost/%i.json\n", unit)
        folder = tempfile.mkdtemp(dir=self.folder)
        for page in ["framehost(1)", "framehost-chain(5)"]:
            unit = unit.replace(f"man:{page} ", "")
        file = os.path.join(folder, "framehost@cam.service")
        with open(file, "w", encoding="utf-8") as out:
            out.write(unit.replace("/usr/bin/framehost", self.program))
        verified = run("systemd-analyze", "verify", file)
        self.assertEqual([line for line in verified.stdout.split("\n") if "framehost" in line], [], verified.stdout)
        score = run("systemd-analyze", "security", "--offline=true", file).stdout
        exposure = float(re.search(r"Overall exposure level for framehost@cam.service: ([\d.]+)", score)[1])
        self.assertLessEqual(exposure, 2.0, score)

    def test_filesForAFleetAreThoseOfTheTree(self):
        ours = os.path.join(ROOT, "packaging/monitoring")
        names = [os.path.relpath(os.path.join(folder, name), ours) for folder, _, names in os.walk(ours) for name in names]
        self.assertGreaterEqual(len(names), 4)
        for name in names:
            self.assertEqual(read(self.path("/usr/share/framehost/monitoring/" + name)), read(os.path.join(ours, name)))

    def test_linksOfTheDocumentationLeadSomewhere(self):
        top = self.path("/usr/share/doc/framehost")
        count = 0
        for folder, _, names in os.walk(top):
            for name in names:
                if not name.endswith(".md"):
                    continue
                for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", read(os.path.join(folder, name))):
                    if "://" in link or link.startswith("mailto:"):
                        continue
                    # The sources and the tests are not installed; neither is what only developers run.
                    target = os.path.normpath(os.path.join(folder, link))
                    inside = os.path.relpath(target, top)
                    developers = ("Benchmarks", "Tests", "Makefile", ".github", ".ci", "packaging", "Sources/Core", "Sources/Host", "Sources/Plugins/support/Shims")
                    if inside.startswith(developers) or inside.endswith(".swift"):
                        continue
                    count += 1
                    self.assertTrue(os.path.lexists(target), f"{os.path.relpath(os.path.join(folder, name), top)}: {link}")
        self.assertGreater(count, 60)


class BareDebianTests(unittest.TestCase):
    """Installed by apt in a Debian that has nothing else: no toolchain above all."""

    @classmethod
    def setUpClass(cls):
        cls.why, cls.debian = None, None
        try:
            cls.debian = BareDebian("bare")
            outcome = cls.debian.install(package())
            if outcome.returncode != 0:
                if "Temporary failure resolving" in outcome.stdout or "Failed to fetch" in outcome.stdout:
                    raise Unavailable(outcome.stdout[-400:])
                raise AssertionError(outcome.stdout[-4000:])
        except Unavailable as why:
            cls.why = why

    @classmethod
    def tearDownClass(cls):
        if cls.debian:
            cls.debian.remove()

    def setUp(self):
        if self.why:
            skip(self, "bare Debian", self.why)

    def test_a_quickstartRuns(self):
        outcome = self.debian.do("cd /root && cp -r /usr/share/framehost/examples . && framehost examples/quickstart.json")
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        self.assertIn("240 delivered, 0 dropped.", outcome.stdout)
        # Looked at from outside.
        made = self.debian.path("/root/examples/out/quickstart.mp4")
        probed = run("ffprobe", "-v", "error", "-count_frames", "-of", "csv=p=0", "-show_entries", "stream=codec_name,width,height,nb_read_frames", made)
        self.assertEqual(probed.stdout.strip(), "h264,720,720,240")

    def test_b_everyPluginLoadsAndNoExampleHasAFault(self):
        listed = json.loads(self.debian.do("framehost plugins --json").stdout)
        self.assertEqual(listed["skipped"], [])
        self.assertEqual(listed["folders"], ["/usr/lib/framehost"])
        names = {p["id"] for p in listed["plugins"]}
        self.assertGreaterEqual(len(names), 25)
        for name in ["control-server", "rtsp-sink", "face-effect", "picture-encoder", "v4l2-source"]:
            self.assertIn(name, names)
        schema = self.debian.do("framehost schema").stdout
        self.assertEqual(json.loads(schema), json.loads(read(self.debian.path("/usr/share/framehost/examples/framehost.schema.json"))))
        checked = self.debian.do("framehost check /usr/share/framehost/examples/live.json")
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_c_coreIsThere(self):
        self.assertEqual(self.debian.do("framehost --core-path").stdout, "/usr/share/framehost/Core\n")
        self.assertEqual(self.debian.do("framehost --python-path").stdout, "/usr/share/framehost/python\n")
        made = self.debian.do("cd /root && framehost new filter night-mode && cat night-mode/Package.swift")
        self.assertEqual(made.returncode, 0, made.stdout)
        self.assertIn('.package(path: "/usr/share/framehost/Core")', made.stdout)

    def test_d_chainFilesAreForRootAndTheService(self):
        made = self.debian.do("systemd-tmpfiles --create framehost.conf; stat -c '%U %G %a' /etc/framehost; getent passwd framehost")
        lines = made.stdout.strip().split("\n")
        self.assertEqual(lines[0], "root framehost 750", made.stdout)
        self.assertRegex(lines[1], r"^framehost:.*:/var/lib/framehost:/usr/sbin/nologin$")
        # Neither enabled nor running.
        self.assertEqual(glob.glob(self.debian.path("/etc/systemd/system/*.wants/framehost*")), [])

    def test_e_systemdRunsAChain(self):
        chains = self.debian.path("/etc/framehost")
        os.makedirs(chains, exist_ok=True)
        recorded = "/var/lib/framehost/cam/cam.mp4"
        cam = {"spare": 8, "stages": [
            {"use": "test-source", "id": "cam", "size": "320x240", "rate": 25, "live": True}, {"use": "x264-encoder", "id": "h264"},
            {"use": "recorder", "path": recorded, "overwrite": True}]}
        still = {"stages": [{"use": "y4m-source", "id": "pipe", "path": "/var/lib/framehost/still/pipe"}, {"use": "null-sink"}]}

        def write(name, chain):
            with open(f"{chains}/{name}.json", "w", encoding="utf-8") as file:
                json.dump(chain, file)

        write("cam", cam)
        write("still", still)
        write("wrong", {"stages": [{"use": "test-sauce"}]})
        # The two machines of docs/fleet.md in one; the one that reads waits for the other, as the page says.
        for name, chain in ("yard", "split-camera"), ("archive", "split-archive"):
            text = read(os.path.join(ROOT, f"examples/{chain}.json")).replace('"out/', f'"/var/lib/framehost/{name}/')
            if name == "archive":
                self.assertIn('"decode": false', text)
                self.assertIn('"ifMissing": "wait"', read(os.path.join(ROOT, "docs/fleet.md")))
                text = text.replace('"decode": false', '"decode": false, "ifMissing": "wait"')
            with open(f"{chains}/{name}.json", "w", encoding="utf-8") as file:
                file.write(text)
        drop = self.debian.path("/etc/systemd/system/framehost@archive.service.d")
        os.makedirs(drop)
        with open(f"{drop}/short.conf", "w", encoding="utf-8") as file:
            file.write("[Service]\nWatchdogSec=20\n")
        drop = self.debian.path("/etc/systemd/system/framehost@still.service.d")
        os.makedirs(drop)
        with open(f"{drop}/short.conf", "w", encoding="utf-8") as file:
            file.write("[Service]\nWatchdogSec=4\nRestartSec=0\n")
        try:
            booted = Booted(self.debian)
        except Unavailable as why:
            skip(self, "systemd", why)
        try:
            self.watch(booted, write, cam, recorded)
            self.watchTheArchive(booted)
        finally:
            booted.stop()

    def watchTheArchive(self, booted):
        """A service that reads a stream outlasts a camera's machine that is away, at its start and later."""
        def show(name, what):
            return booted.do("systemctl", "show", f"framehost@{name}", "--value", "-p", what).stdout.strip()

        def status():
            return show("archive", "StatusText")

        def why():
            return status() + booted.do("journalctl", "-u", "framehost@archive", "--no-pager", "-o", "cat").stdout

        self.assertEqual(booted.do("systemctl", "start", "--no-block", "framehost@archive").returncode, 0)
        time.sleep(5)
        self.assertNotIn(show("archive", "ActiveState"), ("failed", "inactive"), why())
        self.assertEqual(booted.do("systemctl", "start", "framehost@yard").returncode, 0)
        self.soon(lambda: (show("archive", "ActiveState"), status()) == ("active", "streaming"), why)
        self.assertEqual(show("archive", "NRestarts"), "0", why())
        first = show("archive", "MainPID")
        self.assertEqual(show("yard", "WatchdogUSec"), "30s")
        self.assertEqual(show("archive", "WatchdogUSec"), "20s")
        self.assertEqual(booted.do("systemctl", "stop", "framehost@yard").returncode, 0)
        self.soon(lambda: "recovering: yard: " in status() and "not healthy" in status(), why)
        # The watchdog does not end what waits by itself.
        time.sleep(25)
        self.assertEqual(booted.do("systemctl", "start", "framehost@yard").returncode, 0)
        self.soon(lambda: status() == "streaming", why)
        self.assertEqual(show("archive", "MainPID"), first)
        self.assertEqual(booted.do("systemctl", "stop", "framehost@archive", "framehost@yard").returncode, 0)
        self.assertEndedWell(lambda what: show("archive", what), why())

    def watch(self, booted, write, cam, recorded):
        def show(name, what):
            return booted.do("systemctl", "show", f"framehost@{name}", "--value", "-p", what).stdout.strip()

        def journal(name):
            return booted.do("journalctl", "-u", f"framehost@{name}", "--no-pager", "-o", "cat").stdout

        # The folder was made when the system started.
        self.assertEqual(booted.do("stat", "-c", "%G %a", "/etc/framehost").stdout, "framehost 750\n")
        # `start` comes back when the chain is ready.
        outcome = booted.do("systemctl", "start", "framehost@cam")
        self.assertEqual(outcome.returncode, 0, outcome.stdout + journal("cam"))
        self.assertEqual((show("cam", "ActiveState"), show("cam", "StatusText")), ("active", "streaming"))
        first = show("cam", "MainPID")
        self.assertEqual(booted.do("stat", "-c", "%U", f"/proc/{first}").stdout, "framehost\n")
        # systemd-nspawn itself allows none, so what the service gets cannot be looked at here.
        self.assertEqual(show("cam", "LimitRTPRIO"), "1")
        # A reload with a fault changes nothing and is said; one without changes the chain.
        write("cam", {"stages": [{"use": "test-sauce"}]})
        self.reload(booted, show, lambda: "no stage type 'test-sauce'" in show("cam", "StatusText"), lambda: show("cam", "StatusText"))
        write("cam", {**cam, "stages": cam["stages"] + [{"use": "null-sink", "id": "second", "from": "cam"}]})
        self.reload(booted, show, lambda: show("cam", "StatusText") == "streaming", lambda: show("cam", "StatusText") + journal("cam"))
        self.assertEqual(show("cam", "MainPID"), first)
        time.sleep(1)
        began = time.monotonic()
        self.assertEqual(booted.do("systemctl", "stop", "framehost@cam").returncode, 0)
        self.assertLess(time.monotonic() - began, 10)
        self.assertEndedWell(lambda what: show("cam", what), journal("cam"))
        probed = run("ffprobe", "-v", "error", "-of", "csv=p=0", "-count_frames", "-show_entries", "stream=nb_read_frames", self.debian.path(recorded))
        self.assertGreater(int(probed.stdout), 20, probed.stdout)
        # What is wrong is tried once.
        self.assertNotEqual(booted.do("systemctl", "start", "framehost@wrong").returncode, 0)
        # The journal may come to a line later.
        self.soon(lambda: "Did you mean 'test-source'?" in journal("wrong"), lambda: journal("wrong"))
        self.assertEqual(show("wrong", "NRestarts"), "0")
        # One that stands still is started anew, twice in a row.
        folder = self.debian.path("/var/lib/framehost/still")
        booted.do("install", "-d", "-o", "framehost", "-g", "framehost", "/var/lib/framehost/still")
        booted.do("mkfifo", "-m", "666", "/var/lib/framehost/still/pipe")
        writer = "printf 'YUV4MPEG2 W64 H48 F25:1 C420jpeg\\n'; for i in 1 2 3; do printf 'FRAME\\n'; head -c 4608 /dev/zero; done; sleep 60"
        self.assertTrue(os.path.exists(folder + "/pipe"))
        feeder = subprocess.Popen(
            ["nsenter", "-t", booted.leader, "-m", "-p", "-r", "-w", "sh", "-c", f"({writer}) > /var/lib/framehost/still/pipe"],
            stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            outcome = booted.do("systemctl", "start", "framehost@still")
            self.assertEqual(outcome.returncode, 0, outcome.stdout + journal("still"))
            before = show("still", "MainPID")
            self.soon(lambda: int(show("still", "NRestarts")) >= 1, lambda: journal("still"))
            self.assertIn("Watchdog timeout (limit 4s)!", journal("still"))
            self.assertNotEqual(show("still", "MainPID"), before)
        finally:
            os.killpg(feeder.pid, signal.SIGKILL)
            feeder.wait()
            booted.do("systemctl", "kill", "-s", "KILL", "framehost@still")

    def reload(self, booted, show, condition, otherwise):
        """Reloads cam, again while a stage is too busy to be changed: a busy machine may hold one up for a second."""
        def holds():
            if "nothing was changed" in show("cam", "StatusText"):
                self.assertEqual(booted.do("systemctl", "reload", "framehost@cam").returncode, 0)
            return condition()

        self.assertEqual(booted.do("systemctl", "reload", "framehost@cam").returncode, 0)
        self.soon(holds, otherwise)

    def assertEndedWell(self, show, said):
        """A service that was stopped."""
        ended = (show("ActiveState"), show("Result"), show("ExecMainStatus"))
        is_busy = ended == ("failed", "exit-code", "1") and without_losses(1, said) == 0
        self.assertEqual(("inactive", "success", "0") if is_busy else ended, ("inactive", "success", "0"), said)

    def soon(self, condition, otherwise, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.2)
        self.fail(otherwise())

    def test_f_removedNothingOfItIsLeft(self):
        outcome = self.debian.do("dpkg --purge framehost; ls -d /usr/lib/framehost /usr/share/framehost /usr/share/doc/framehost /usr/bin/framehost 2>/dev/null")
        self.assertEqual([line for line in outcome.stdout.split("\n") if line.startswith("/usr")], [], outcome.stdout)


class InstallTests(unittest.TestCase):
    """`make install` without its build."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="framehost-install-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.prefix = cls.folder + "/opt/own tree".replace(" ", "-")
        cls.stage = cls.folder + "/stage"
        outcome = run("packaging/stage", cls.stage, cls.prefix, cwd=ROOT)
        assert outcome.returncode == 0, outcome.stdout

    def put(self, *arguments):
        return run("packaging/put", *arguments, cwd=ROOT)

    def framehost(self, *arguments, **how):
        return run(self.prefix + "/bin/framehost", *arguments, **how)

    @staticmethod
    def files(folder):
        return sorted(os.path.relpath(os.path.join(f, n), folder) for f, _, names in os.walk(folder) for n in names)

    def test_a_nothingOfOthersIsOverwritten(self):
        dest = tempfile.mkdtemp(dir=self.folder)
        other = dest + self.prefix + "/share/man/man1/framehost.1"
        os.makedirs(os.path.dirname(other))
        with open(other, "w", encoding="utf-8") as file:
            file.write("another's")
        outcome = self.put("install", self.stage, dest, self.prefix)
        self.assertEqual(outcome.returncode, 1, outcome.stdout)
        self.assertEqual(
            outcome.stdout, "make install: these files are there and not of an installation by make:\n"
            f"  {other}\nRemove them (a package: apt remove framehost), or name another PREFIX.\n")
        self.assertEqual(self.files(dest), [os.path.relpath(other, dest)])

    def test_b_comesAndGoesWithinItsFolders(self):
        dest = tempfile.mkdtemp(dir=self.folder)
        own = dest + self.prefix + "/lib/framehost/libMine.so"
        outcome = self.put("install", self.stage, dest, self.prefix)
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        count = len(self.files(dest))
        self.assertGreater(count, 200)
        # Again, over itself: what is no longer part of it goes.
        with open(dest + self.prefix + "/share/framehost/installed-files", "a", encoding="utf-8") as file:
            file.write(os.path.relpath(self.prefix, "/") + "/lib/framehost/libOld.so\n")
        shutil.copy(dest + self.prefix + "/lib/framehost/libRate.so", dest + self.prefix + "/lib/framehost/libOld.so")
        self.assertEqual(self.put("install", self.stage, dest, self.prefix).returncode, 0)
        self.assertEqual(len(self.files(dest)), count)
        with open(own, "w", encoding="utf-8") as file:
            file.write("mine")
        outcome = self.put("uninstall", dest, self.prefix)
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        self.assertEqual(self.files(dest), [os.path.relpath(own, dest)])
        outcome = self.put("uninstall", dest, self.prefix)
        self.assertEqual(outcome.returncode, 1)
        self.assertIn("is not there, so nothing was installed", outcome.stdout)

    def test_c_aPluginIsBuiltAgainstTheInstalledCore(self):
        outcome = self.put("install", self.stage, "", self.prefix)
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        core = self.prefix + "/share/framehost/Core"
        self.assertEqual(self.framehost("--core-path").stdout, core + "\n")
        work = tempfile.mkdtemp(dir=self.folder)
        made = self.framehost("new", "filter", "night-mode", cwd=work)
        self.assertEqual(made.returncode, 0, made.stdout)
        package = work + "/night-mode"
        self.assertIn(f'.package(path: "{core}")', read(package + "/Package.swift"))
        before = self.files(core)
        swift = os.environ.get("SWIFT", "swift")
        # Not optimised: the sources are all there or not, and Core takes most of the time.
        built = run(swift, "build", "-c", "release", "-Xswiftc", "-Onone", "--package-path", package, timeout=1200)
        self.assertEqual(built.returncode, 0, built.stdout[-4000:])
        self.assertEqual(self.files(core), before, "a build leaves nothing in the installed Core")
        outcome = self.framehost("--plugin-path", ".build/release", "chain.json", cwd=package)
        self.assertEqual(outcome.returncode, 0, outcome.stdout)
        self.assertIn("90 delivered, 0 dropped.", outcome.stdout)
        # The installed program has the sources that it was made of: another Core would be refused.
        listed = json.loads(self.framehost("plugins", "--json", "--plugin-path", package + "/.build/release").stdout)
        self.assertIn("night-mode", {p["id"] for p in listed["plugins"]})
        self.assertEqual(listed["folders"][-1], self.prefix + "/lib/framehost")

    def test_d_theProgramIsFoundByALinkAndByItsPath(self):
        self.assertEqual(self.put("install", self.stage, "", self.prefix).returncode, 0)
        link = self.folder + "/fh"
        os.symlink(self.prefix + "/bin/framehost", link)
        for program in [link, self.prefix + "/lib/framehost/framehost"]:
            self.assertEqual(run(program, "--core-path").stdout, self.prefix + "/share/framehost/Core\n")
        # Not by the toolchain's libraries.
        maps = run("sh", "-c", f"LD_DEBUG=libs {link} --version 2>&1 | grep 'calling init'").stdout
        self.assertIn(self.prefix + "/lib/framehost/swift/libswiftCore.so", maps)
        self.assertNotIn("swift/linux", maps)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"] + sys.argv[1:], warnings="ignore")
