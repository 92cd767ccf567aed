# SPDX-License-Identifier: Apache-2.0
"""The container's recipe. No container engine runs here: hadolint reads it, and the instructions of its run-time stage are carried out one by one in a
Debian that debootstrap made, with the package of `make deb` as what the build stage gave. The build stage is looked at and not run."""
import glob
import json
import os
import re
import shlex
import shutil
import unittest

from debian import ROOT, BareDebian, Unavailable, run
from manager import without_losses

CONTAINERFILE = os.path.join(ROOT, "packaging/container/Containerfile")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def stages():
    """The recipe's stages: (image, [(instruction, words)]), with the defaults of its ARGs put in."""
    lines = [line for line in read(CONTAINERFILE).split("\n") if not line.lstrip().startswith("#")]
    arguments, found = {}, []
    for line in "\n".join(lines).replace("\\\n", " ").split("\n"):
        name, _, rest = line.strip().partition(" ")
        for key, value in arguments.items():
            rest = rest.replace("${" + key + "}", value)
        if name == "ARG" and not found:
            key, _, value = rest.partition("=")
            arguments[key] = value
        elif name == "FROM":
            found.append((rest, []))
        elif name:
            found[-1][1].append((name, rest.strip()))
    return found


class RecipeTests(unittest.TestCase):
    """What the recipe says."""

    def test_linterFindsNothing(self):
        if not shutil.which("hadolint"):
            self.assertNotEqual(os.environ.get("CI"), "true", "hadolint is missing: make test-package installs it")
            print("\nSKIPPED hadolint: it is not installed", flush=True)
            self.skipTest("hadolint is not installed")
        outcome = run("hadolint", "--no-color", CONTAINERFILE)
        self.assertEqual((outcome.returncode, outcome.stdout), (0, ""))

    def test_bothStagesAreTheDebianOfTheDocumentation(self):
        (build, _), (last, _) = stages()
        self.assertRegex(build, r"^docker\.io/library/swift:6\.3\.\d+-bookworm AS build$")
        self.assertEqual(last, "docker.io/library/debian:bookworm-slim")

    def test_buildStageCallsTheMakefileAlone(self):
        instructions = stages()[0][1]
        commands = [command.strip() for name, rest in instructions if name == "RUN" for command in rest.split("&&")]
        targets = [command.split()[1] for command in commands if command.startswith("make ")]
        self.assertEqual(targets, ["packages", "deb"])
        known = run("make", "-C", ROOT, "-n", "packages").stdout
        self.assertIn("libx264-dev", known)
        # No list of packages of its own, but for make.
        installed = [command.split("--no-install-recommends")[1].split() for command in commands if "apt-get install" in command]
        self.assertEqual(installed, [["make"]])
        # `make packages` runs before the sources are there.
        self.assertEqual([rest for name, rest in instructions if name == "COPY"], ["Makefile ./", ". ."])

    def test_nothingThatTheBuildNeedsIsLeftOut(self):
        patterns = [line for line in read(os.path.join(ROOT, ".dockerignore")).split("\n") if line and not line.startswith("#")]
        self.assertIn("**/.build", patterns)
        # All of them are what git ignores too, or git itself.
        for pattern in set(patterns) - {".git"}:
            path = pattern.replace("**/", "Sources/").replace("/*", "/film.mp4")
            path += "" if path.endswith(".mp4") else "/file"
            self.assertEqual(run("git", "-C", ROOT, "check-ignore", "-q", "--no-index", path).returncode, 0, pattern)


class ContainerTests(unittest.TestCase):
    """The run-time stage, carried out."""

    @classmethod
    def setUpClass(cls):
        cls.why = None
        cls.debian = None
        cls.settings = {"ENV": {}}
        try:
            cls.debian = BareDebian("container")
            for name, rest in stages()[-1][1]:
                cls.carry_out(name, rest)
        except Unavailable as why:
            cls.why = why

    @classmethod
    def carry_out(cls, name, rest):
        if name == "COPY":
            *sources, target = shlex.split(rest)
            if sources[0] == "--from=build":
                sources = [source.replace("/src/", ROOT + "/") for source in sources[1:]]
            for pattern in sources:
                found = glob.glob(os.path.join(ROOT, pattern))
                assert len(found) == 1, f"{pattern}: {found}: run `make deb`"
                shutil.copy(found[0], cls.debian.path(target))
        elif name == "RUN":
            outcome = cls.debian.fetch("set -e; " + rest)
            if outcome.returncode != 0:
                if "Temporary failure resolving" in outcome.stdout or "Failed to fetch" in outcome.stdout:
                    raise Unavailable(outcome.stdout[-400:])
                raise AssertionError(outcome.stdout[-4000:])
        else:
            assert name in ("USER", "WORKDIR", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"), f"{name}: this test does not know it"
            cls.settings[name] = rest

    @classmethod
    def tearDownClass(cls):
        if cls.debian:
            cls.debian.remove()

    def setUp(self):
        if self.why:
            if os.environ.get("CI") == "true":
                self.fail(f"container: {self.why}")
            print(f"\nSKIPPED container: {self.why}", flush=True)
            self.skipTest(str(self.why))

    def command(self, *words):
        """What the engine would start: as the recipe's user, in its folder."""
        user, group = self.settings["USER"].split(":")
        return f"cd {self.settings['WORKDIR']} && exec setpriv --reuid={user} --regid={group} --clear-groups --no-new-privs {shlex.join(words)}"

    def entry(self):
        return json.loads(self.settings["ENTRYPOINT"])

    def test_a_userHasItsFoldersAndNothingElse(self):
        user, group = self.settings["USER"].split(":")
        stat = self.debian.do("stat -c '%u %g %a' /var/lib/framehost /etc/framehost; getent passwd framehost").stdout.split("\n")
        self.assertEqual(stat[0], f"{user} {group} 750")
        self.assertEqual(stat[1], f"0 {group} 750")
        self.assertIn(f"framehost:x:{user}:{group}:", stat[2])
        # No systemd, and no lists or package left behind.
        self.assertEqual(self.debian.do("test -e /lib/systemd/systemd || ls /var/lib/apt/lists /tmp").stdout.split(), ["/tmp:", "/var/lib/apt/lists:"])

    def test_b_everyImageFindsItsLibraries(self):
        listed = self.debian.do(self.command(*self.entry(), "plugins", "--json"))
        self.assertEqual(json.loads(listed.stdout)["skipped"], [])
        missing = self.debian.do("for f in /usr/lib/framehost/*.so /usr/lib/framehost/framehost; do ldd $f; done | grep -c 'not found'").stdout
        self.assertEqual(missing.strip(), "0")
        # Letters and the older detector's data, which the package does not insist on.
        for stage in '{ "use": "text", "text": "yard" }', '{ "use": "face-effect", "effect": "blur" }':
            chain = '{ "stages": [ { "use": "test-source", "size": "320x240", "frames": 5 }, %s, { "use": "null-sink" } ] }' % stage
            with open(self.debian.path("/etc/framehost/look.json"), "w", encoding="utf-8") as file:
                file.write(chain)
            outcome = self.debian.do(self.command(*self.entry(), "run", "/etc/framehost/look.json"))
            self.assertEqual(outcome.returncode, 0, outcome.stdout)
            self.assertIn("5 delivered", outcome.stdout)

    def test_c_aChainRunsIsAskedAndDrained(self):
        chain = {
            "control": {"listen": "0.0.0.0:8080", "token": "${FRAMEHOST_TOKEN}"},
            "stages": [
                {"use": "test-source", "id": "cam", "size": "320x240", "rate": 25, "live": True}, {"use": "x264-encoder", "id": "h264"},
                {"use": "recorder", "path": "/var/lib/framehost/film.mp4"}]}
        with open(self.debian.path("/etc/framehost/chain.json"), "w", encoding="utf-8") as file:
            json.dump(chain, file)
        health = json.loads(re.search(r"CMD (\[.*\])$", self.settings["HEALTHCHECK"])[1])
        self.assertEqual(self.settings["STOPSIGNAL"], "SIGTERM")
        script = f"""
export FRAMEHOST_TOKEN=a-token-of-the-tests-0123
({self.command(*self.entry(), *json.loads(self.settings["CMD"]))}) >/tmp/log 2>&1 & chain=$!
export FRAMEHOST_HEALTH=127.0.0.1:8080
health() {{ ({self.command(*health)}) >/tmp/health 2>&1; echo "$1: $? $(head -c 60 /tmp/health)"; }}
for i in $(seq 300); do health running; grep -q '^{{"healthy":true' /tmp/health && break; sleep 0.2; done >/tmp/tries
sleep 4
health running
FRAMEHOST_TOKEN=wrong-wrong-wrong-wrong health "wrong token"
FRAMEHOST_HEALTH=127.0.0.1:8099 health "wrong port"
FRAMEHOST_HEALTH= health "nobody to ask"
kill -TERM $chain; wait $chain; echo "status $?"
health ended
cat /tmp/log
"""
        # The network is this namespace's own; its loopback is raised from outside, because the image has no `ip`.
        inner = 'ip link set lo up; mount -t proc proc "$1/proc" && exec chroot "$1" /bin/sh -c "$2"'
        outcome = run("unshare", "-m", "-n", "sh", "-c", inner, "sh", self.debian.folder, script, timeout=300)
        said = outcome.stdout
        self.assertRegex(said, r'running: 0 \{"healthy":true', said)
        self.assertRegex(said, r"wrong token: 1 ", said)
        self.assertRegex(said, r"wrong port: 1 ", said)
        self.assertRegex(said, r"nobody to ask: 0 *\n", said)
        status = int(re.search(r"^status (\d+)$", said, re.M)[1])
        self.assertEqual(without_losses(status, said), 0, said)
        self.assertRegex(said, r"ended: 1 ", said)
        probed = run("ffprobe", "-v", "error", "-of", "csv=p=0", "-count_frames", "-show_entries", "stream=nb_read_frames",
                     self.debian.path("/var/lib/framehost/film.mp4"))
        self.assertGreaterEqual(int(probed.stdout), 20, probed.stdout)


if __name__ == "__main__":
    unittest.main()
