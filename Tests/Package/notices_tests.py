# SPDX-License-Identifier: Apache-2.0
"""What a chain tells the service manager, and when (docs/design/024-installing.md)."""
import json
import os
import shutil
import signal
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
        began = time.monotonic()
        manager.take(3)
        self.assertEqual(manager.status(), "streaming")
        times = [at for at, line in manager.lines if line == "WATCHDOG=1" and at >= began]
        # Twice in each second that is waited for one; a busy machine may be late, never early.
        self.assertGreaterEqual(len(times), 4, times)
        self.assertLessEqual(len(times), 7, times)
        self.assertLess(max(b - a for a, b in zip(times, times[1:])), 1)
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
                manager.close()
                os.unlink(manager.name)

    def test_isNotReadyBeforeTheFirstFrame(self):
        chain, pictures = self.pictures(rests=True)
        manager = self.manager()
        service = self.run_service(chain, manager, watchdog=1)
        self.assertIsNone(manager.wait("READY=1", 2), service.said())
        pictures.flows.set()
        self.assertTrue(manager.wait("READY=1", 5), service.said())
        service.end()

    def test_aChainThatStandsStillIsNotAlive(self):
        chain, pictures = self.pictures()
        manager = self.manager()
        service = self.run_service(chain, manager, watchdog=1)
        self.assertTrue(manager.wait("READY=1"), service.said())
        pictures.flows.clear()
        self.assertTrue(manager.wait("STATUS=streaming, not healthy: cam", 15), manager.lines)
        manager.take(1)
        self.assertNotIn("WATCHDOG=1", manager.take(3))
        self.assertRegex(manager.status(), r"cam.* has given nothing for \d+ s\.$")
        pictures.flows.set()
        self.assertTrue(manager.wait("WATCHDOG=1", 5), manager.lines)
        manager.take(1.5)
        self.assertEqual(manager.status(), "streaming")
        service.end()

    def test_aCameraThatIsNotThereYetIsNoReasonToStartAnew(self):
        chain = {"stages": [{"use": "v4l2-source", "id": "cam", "device": "/dev/video99", "ifMissing": "wait", "size": "320x240"}, {"use": "null-sink"}]}
        manager = self.manager()
        service = self.run_service(chain, manager, watchdog=1)
        self.assertTrue(manager.wait("READY=1"), service.said())
        manager.take(2)
        self.assertTrue(manager.status().startswith("recovering: cam"), manager.lines)
        self.assertIn("WATCHDOG=1", manager.take(2))
        self.assertIn("has given nothing of its own yet", manager.status())
        service.end()

    def test_aReloadIsToldAndEnds(self):
        manager = self.manager()
        service = self.run_service({"spare": 8, **LIVE}, manager)
        self.assertTrue(manager.wait("READY=1"), service.said())
        self.write({"spare": 8, "stages": LIVE["stages"] + [{"use": "null-sink", "id": "second", "from": "cam"}]})
        service.signal(signal.SIGHUP)
        self.assertTrue(manager.wait("READY=1", 5), manager.lines)
        manager.take(0.5)
        self.assertEqual(manager.names(), ["READY=1", "RELOADING=1", "READY=1"])
        self.assertTrue(any(line.startswith("MONOTONIC_USEC=") for _, line in manager.lines))
        self.assertEqual(manager.status(), "streaming")
        # One that is refused ends as well, and the status says why.
        self.write('{ "stages": [ { "use": "test-sauce" } ] }')
        service.signal(signal.SIGHUP)
        self.assertTrue(manager.wait("READY=1", 5), manager.lines)
        manager.take(1.5)
        self.assertRegex(manager.status(), r"^streaming\. The last reload changed nothing: .*no kind of stage 'test-sauce'")
        self.write({"spare": 8, **LIVE})
        service.signal(signal.SIGHUP)
        self.assertTrue(manager.wait("READY=1", 5), manager.lines)
        manager.take(1.5)
        self.assertEqual(manager.status(), "streaming")
        self.assertEqual(service.end(), 0, service.said())

    def test_aChainThatIsOverAtOnceWasReady(self):
        chain = {"stages": [{"use": "test-source", "size": "64x48", "frames": 2}, {"use": "null-sink"}]}
        manager = self.manager()
        service = self.run_service(chain, manager)
        self.assertEqual(service.process.wait(20), 0)
        manager.take(0.3)
        self.assertEqual(manager.names(), ["READY=1", "STOPPING=1"])

    def test_aChainFileWithAFaultIsNeverReady(self):
        manager = self.manager()
        service = self.run_service({"stages": [{"use": "test-sauce"}]}, manager)
        self.assertEqual(service.process.wait(20), 2)
        self.assertEqual(manager.take(0.3), [])

    def test_aDrainAsksForTheTimeThatItNeeds(self):
        # Nobody reads what is written, so the drain lasts as long as it may.
        os.mkfifo(self.path("out"))
        reader = os.open(self.path("out"), os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        chain = {
            "drainSeconds": 5,
            "stages": [
                {"use": "test-source", "size": "640x480", "rate": 25, "live": True},
                {"use": "y4m-sink", "path": self.path("out")},
            ],
        }
        manager = self.manager()
        service = self.run_service(chain, manager)
        self.assertTrue(manager.wait("READY=1"), service.said())
        manager.take(1)
        service.signal(signal.SIGTERM)
        self.assertTrue(manager.wait("STOPPING=1", 2), manager.lines)
        while service.process.poll() is None:
            manager.take(0.1)
        manager.take(0.3)
        asked = [at for at, line in manager.lines if line == "EXTEND_TIMEOUT_USEC=10000000"]
        self.assertGreaterEqual(len(asked), 2, manager.lines)
        self.assertGreaterEqual(min(b - a for a, b in zip(asked, asked[1:])), 1.9)

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
                self.assertEqual(service.process.wait(20), 0)
                self.assertIn(f"warning: NOTIFY_SOCKET '{name}': is not a usable socket. It must be", service.said())
                self.assertEqual(service.said().count("NOTIFY_SOCKET"), 1)

    def test_aSocketThatIsNotThereIsSaidOnce(self):
        service = self.run_service(LIVE, environment={"NOTIFY_SOCKET": self.path("none"), "WATCHDOG_USEC": "100000"})
        time.sleep(1)
        self.assertEqual(service.end(), 0, service.said())
        self.assertIn("none': cannot be reached: No such file or directory. The service manager is no longer notified.", service.said())
        self.assertEqual(service.said().count("NOTIFY_SOCKET"), 1)

    def test_aManagerThatReadsNothingHoldsNothingUp(self):
        manager = self.manager()
        # The kernel keeps ten datagrams for a reader (net.unix.max_dgram_qlen) and refuses what is over that.
        service = self.run_service(LIVE, manager, watchdog=0.002)
        time.sleep(4)
        began = time.monotonic()
        self.assertEqual(service.end(), 0, service.said())
        self.assertLess(time.monotonic() - began, 3)
        manager.take(0.3)
        self.assertIn("READY=1", manager.names())


if __name__ == "__main__":
    unittest.main()
