# SPDX-License-Identifier: Apache-2.0
"""What a chain tells the service manager, and when (docs/design/024-installing.md)."""
import json
import os
import re
import select
import shutil
import signal
import statistics
import tempfile
import time
import unittest

from manager import Manager, Pictures, Service

PROGRAM = os.environ.get("FRAMEHOST", "framehost")
LIVE = {"stages": [{"use": "test-source", "id": "cam", "size": "64x48", "rate": 25, "live": True}, {"use": "null-sink"}]}


class NoticesTests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="framehost-notices-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, chain, name="chain.json"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(chain if isinstance(chain, str) else json.dumps(chain))
        return self.path(name)

    def manager(self, **how):
        manager = Manager(self.folder, **how)
        self.addCleanup(manager.close)
        return manager

    def run_service(self, chain, *rest, **how):
        service = Service(PROGRAM, self.write(chain), *rest, **how)
        self.addCleanup(service.kill)
        return service

    def pictures(self, **how):
        pictures = Pictures(self.path("pipe"), **how)
        self.addCleanup(pictures.close)
        return {"stages": [{"use": "y4m-source", "id": "cam", "path": self.path("pipe")}, {"use": "null-sink"}]}, pictures

    def test_aLiveChainIsReadyAliveAndStops(self):
        manager = self.manager()
        service = self.run_service(LIVE, manager, watchdog=1)
        self.assertTrue(manager.wait("READY=1"), service.said())

        def sent(line):
            return [at for at, found in manager.lines if found == line]

        self.assertTrue(manager.soon(lambda: len(sent("WATCHDOG=1")) >= 6), manager.lines)
        self.assertTrue(manager.soon(lambda: manager.status() == "streaming"), manager.lines)
        # Twice in each second that is waited for one; a busy machine may be late, never early.
        times = sent("WATCHDOG=1")
        self.assertLessEqual(len(times), (times[-1] - sent("READY=1")[0] + 0.1) / 0.5 + 1, times)
        self.assertLess(statistics.median(b - a for a, b in zip(times, times[1:])), 1)
        self.assertEqual(service.end(), 0, service.said())
        manager.take(0.2)
        self.assertEqual(manager.names(), ["READY=1", "STOPPING=1"])

    def test_withoutAWatchdogThereAreNoSignsOfLife(self):
        manager = self.manager()
        service = self.run_service(LIVE, manager)
        self.assertTrue(manager.wait("READY=1"), service.said())
        manager.take(1.5)
        service.end()
        manager.take(0.2)
        self.assertNotIn("WATCHDOG=1", [line for _, line in manager.lines])

    def test_aWatchdogOfAnotherProcessIsNotFed(self):
        manager = self.manager()
        service = self.run_service(LIVE, manager, watchdog=0.2, environment={"WATCHDOG_PID": "1"})
        self.assertTrue(manager.wait("READY=1"), service.said())
        self.assertNotIn("WATCHDOG=1", manager.take(1))
        service.end()

    def test_numbersThatAreNoneAreNoWatchdog(self):
        for number in ["", "x", "-5", "0", "99999999999999999999", "1e6"]:
            with self.subTest(number):
                manager = Manager(self.folder)
                service = self.run_service(LIVE, manager, environment={"WATCHDOG_USEC": number})
                self.assertTrue(manager.wait("READY=1"), service.said())
                self.assertNotIn("WATCHDOG=1", manager.take(0.4))
                self.assertEqual(service.end(), 0, service.said())
                # An empty one is none.
                warning = f"warning: WATCHDOG_USEC '{number}': must be a whole number of microseconds from 1 to 86400000000."
                self.assertEqual(service.said().count("WATCHDOG_USEC"), 1 if number else 0, service.said())
                self.assertEqual(warning in service.said(), number != "", service.said())
                manager.close()
                os.unlink(manager.name)

    def test_aProcessThatIsNoNumberIsSaidAndNotFed(self):
        for number in ["x", "-1", "0", "1.5"]:
            with self.subTest(number):
                manager = Manager(self.folder)
                service = self.run_service(LIVE, manager, watchdog=0.2, environment={"WATCHDOG_PID": number})
                self.assertTrue(manager.wait("READY=1"), service.said())
                self.assertNotIn("WATCHDOG=1", manager.take(0.4))
                self.assertEqual(service.end(), 0, service.said())
                self.assertIn(f"warning: WATCHDOG_PID '{number}': must be the number of a process.", service.said())
                manager.close()
                os.unlink(manager.name)

    def test_isNotReadyBeforeTheFirstFrame(self):
        chain, pictures = self.pictures(rests=True)
        manager = self.manager()
        service = self.run_service(chain, manager, watchdog=1)
        self.assertIsNone(manager.wait("READY=1", 2), service.said())
        pictures.flows.set()
        self.assertTrue(manager.wait("READY=1"), service.said())
        service.end()

    def test_aChainThatStandsStillIsNotAlive(self):
        chain, pictures = self.pictures()
        manager = self.manager()
        service = self.run_service(chain, manager, watchdog=1)
        self.assertTrue(manager.wait("READY=1"), service.said())
        pictures.flows.clear()
        self.assertTrue(manager.wait("STATUS=streaming, not healthy: cam"), manager.lines)
        manager.take(1)
        self.assertNotIn("WATCHDOG=1", manager.take(3))
        self.assertRegex(manager.status(), r"cam.* has given nothing for \d+ s\.$")
        pictures.flows.set()
        self.assertTrue(manager.wait("WATCHDOG=1"), manager.lines)
        self.assertTrue(manager.soon(lambda: manager.status() == "streaming"), manager.lines)
        service.end()

    def test_aCameraThatIsNotThereYetIsNoReasonToStartAnew(self):
        chain = {"stages": [{"use": "v4l2-source", "id": "cam", "device": "/dev/video99", "ifMissing": "wait", "size": "320x240"}, {"use": "null-sink"}]}
        manager = self.manager()
        service = self.run_service(chain, manager, watchdog=1)
        self.assertTrue(manager.wait("READY=1"), service.said())
        self.assertTrue(manager.soon(lambda: manager.status().startswith("recovering: cam")), manager.lines)
        self.assertTrue(manager.soon(lambda: "has not been connected yet" in manager.status()), manager.lines)
        self.assertTrue(manager.wait("WATCHDOG=1"), manager.lines)
        service.end()

    def reload(self, manager, service):
        """SIGHUP, again while a stage is too busy to be changed; how often. A busy machine may hold one up for a second."""
        for count in range(1, 21):
            before = len(service.said())
            service.signal(signal.SIGHUP)
            self.assertTrue(manager.wait("READY=1"), manager.lines)
            answers = "takes effect at frame", "no stage type", "nothing was changed"
            self.assertTrue(manager.soon(lambda: any(words in service.said()[before:] for words in answers)), service.said())
            if "nothing was changed" not in service.said()[before:]:
                break
        return count

    def test_aReloadIsToldAndEnds(self):
        manager = self.manager()
        service = self.run_service({"spare": 8, **LIVE}, manager)
        self.assertTrue(manager.wait("READY=1"), service.said())
        self.write({"spare": 8, "stages": LIVE["stages"] + [{"use": "null-sink", "id": "second", "from": "cam"}]})
        count = self.reload(manager, service)
        self.assertTrue(manager.soon(lambda: manager.status() == "streaming"), manager.lines)
        self.assertEqual(manager.names(), ["READY=1"] + ["RELOADING=1", "READY=1"] * count)
        self.assertTrue(any(line.startswith("MONOTONIC_USEC=") for _, line in manager.lines))
        # One that is refused ends as well, and the status says why.
        self.write('{ "stages": [ { "use": "test-sauce" } ] }')
        self.reload(manager, service)
        why = r"^streaming\. The last reload changed nothing: .*no stage type 'test-sauce'"
        self.assertTrue(manager.soon(lambda: re.search(why, manager.status())), manager.lines)
        self.write({"spare": 8, **LIVE})
        self.reload(manager, service)
        self.assertTrue(manager.soon(lambda: manager.status() == "streaming"), manager.lines)
        self.assertEqual(service.end(), 0, service.said())

    def test_aChainThatIsOverAtOnceWasReady(self):
        chain = {"stages": [{"use": "test-source", "size": "64x48", "frames": 2}, {"use": "null-sink"}]}
        manager = self.manager()
        service = self.run_service(chain, manager)
        self.assertEqual(service.process.wait(60), 0)
        manager.take(0.3)
        self.assertEqual(manager.names(), ["READY=1", "STOPPING=1"])

    def test_aChainFileWithAFaultIsNeverReady(self):
        manager = self.manager()
        service = self.run_service({"stages": [{"use": "test-sauce"}]}, manager)
        self.assertEqual(service.process.wait(60), 2)
        self.assertEqual(manager.take(0.3), [])

    def test_aDrainAsksForTheTimeThatItNeeds(self):
        # Nobody reads what is written, so the drain lasts as long as it may.
        os.mkfifo(self.path("out"))
        reader = os.open(self.path("out"), os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        chain = {
            "drainSeconds": 15,
            "stages": [
                {"use": "test-source", "size": "640x480", "rate": 25, "live": True},
                {"use": "y4m-sink", "path": self.path("out")},
            ],
        }
        manager = self.manager()
        service = self.run_service(chain, manager)
        self.assertTrue(manager.wait("READY=1"), service.said())
        manager.take(1)
        began = time.monotonic()
        service.signal(signal.SIGTERM)
        self.assertTrue(manager.wait("STOPPING=1"), manager.lines)
        while service.process.poll() is None:
            manager.take(0.1)
        total = time.monotonic() - began
        manager.take(0.3)
        asked = [line for _, line in manager.lines if line == "EXTEND_TIMEOUT_USEC=10000000"]
        # Every two seconds; a busy machine may be late, never early.
        self.assertGreaterEqual(len(asked), 2, manager.lines)
        self.assertLessEqual(len(asked), total / 2 + 1, manager.lines)

    def test_namesThatAreInNoFileSystemWork(self):
        manager = self.manager(abstract=True)
        service = self.run_service(LIVE, manager)
        self.assertTrue(manager.wait("READY=1"), service.said())
        self.assertEqual(service.end(), 0, service.said())

    def test_aSocketThatCannotBeUsedIsSaidAndTheChainRuns(self):
        for name in ["notify", "vsock:2:1234", "/", "@", "/" + "x" * 107]:
            with self.subTest(name):
                service = self.run_service(
                    {"stages": [{"use": "test-source", "frames": 2}, {"use": "null-sink"}]}, environment={"NOTIFY_SOCKET": name})
                self.assertEqual(service.process.wait(60), 0)
                self.assertIn(f"warning: NOTIFY_SOCKET '{name}': is not a usable socket. It must be", service.said())
                self.assertEqual(service.said().count("NOTIFY_SOCKET"), 1)

    def test_aSocketThatIsNotThereIsSaidOnce(self):
        service = self.run_service(LIVE, environment={"NOTIFY_SOCKET": self.path("none"), "WATCHDOG_USEC": "100000"})
        end = time.monotonic() + 60
        while "cannot be reached" not in service.said() and time.monotonic() < end:
            time.sleep(0.1)
        # Signs of life that nobody can be told of follow.
        time.sleep(1)
        self.assertEqual(service.end(), 0, service.said())
        self.assertIn("none': cannot be reached: No such file or directory. The service manager is no longer notified.", service.said())
        self.assertEqual(service.said().count("NOTIFY_SOCKET"), 1)

    def test_aManagerThatReadsNothingHoldsNothingUp(self):
        manager = self.manager()
        # The kernel keeps ten datagrams for a reader (net.unix.max_dgram_qlen) and refuses what is over that.
        service = self.run_service(LIVE, manager, watchdog=0.002)
        self.assertTrue(select.select([manager.socket], [], [], 60)[0], service.said())
        time.sleep(4)
        began = time.monotonic()
        self.assertEqual(service.end(), 0, service.said())
        # Below `drainSeconds`, which is 10.
        self.assertLess(time.monotonic() - began, 9)
        manager.take(0.3)
        self.assertIn("READY=1", manager.names())


if __name__ == "__main__":
    unittest.main()
