# SPDX-License-Identifier: Apache-2.0
"""framehost as an ONVIF camera in one network namespace, recorders in another, a cable between them: Home Assistant's client with its own WSDL files,
onvif-util of Debian, ffprobe, and strangers."""
import base64
import datetime
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "Fleet"))
from place import CI, HOST, ROOT, Case, without_losses  # noqa: E402

CAMERA, RECORDER, PORT, STREAMS = "10.78.0.1", "10.78.0.2", 8000, 8554
NAME, PASSWORD = "anna", "a secret <&> of Anna's"


def needs(*tools):
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return unittest.skipIf(missing and not CI, f"without {', '.join(missing)}")


def run(*command, timeout=120, **how):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=timeout, check=True, **how).stdout


def envelope(body, header=""):
    return (f'<?xml version="1.0"?><s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Header>{header}</s:Header>'
            f"<s:Body>{body}</s:Body></s:Envelope>")


def security(nonce, seconds=0, password=PASSWORD):
    created = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    digest = base64.b64encode(hashlib.sha1(nonce + created.encode() + password.encode()).digest()).decode()
    space = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
    return (f'<Security xmlns="{space}"><UsernameToken><Username>{NAME}</Username><Password Type="x#PasswordDigest">{digest}</Password>'
            f"<Nonce>{base64.b64encode(nonce).decode()}</Nonce><Created>{created}</Created></UsernameToken></Security>")


INFORMATION = '<GetDeviceInformation xmlns="http://www.onvif.org/ver10/device/wsdl"/>'


class DeviceTests(Case):
    users = f"# those who may look\n{NAME}:{PASSWORD}\n"

    def setUp(self):
        super().setUp()
        run("ip", "link", "set", "lo", "up")
        other = self.start("unshare", "-n", "sleep", "600", log="other.log")
        mine = os.readlink("/proc/self/ns/net")
        self.soon(lambda: os.readlink(f"/proc/{other.pid}/ns/net") != mine, 60)
        self.there = ("nsenter", "-t", str(other.pid), "-n")
        run("ip", "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", other.pid)
        self.addCleanup(lambda: subprocess.run(["ip", "link", "delete", "cable"], check=False, capture_output=True))
        for inside, address in ((), CAMERA), (self.there, RECORDER):
            run(*inside, "ip", "link", "set", "lo", "up")
            run(*inside, "ip", "address", "add", f"{address}/24", "dev", "cable")
            run(*inside, "ip", "link", "set", "cable", "up")
            run(*inside, "ip", "route", "add", "224.0.0.0/4", "dev", "cable")

    def chain(self, onvif=None, users=True, **more):
        sink = {"use": "rtsp-sink", "port": STREAMS, **({"users": "people"} if users else {})}
        stages = [
            {"id": "door", "use": "file-source", "path": str(ROOT / "examples/media/passing.mp4"), "pace": "realtime", "loop": True},
            {"id": "moves", "use": "motion-detect", "endSeconds": 1},
            {"id": "hide", "use": "mask", "privacy": True, "areas": [{"polygon": [[0, 0], [0.5, 0], [0.5, 1], [0, 1]], "with": "#ff0000"}]},
            {"id": "h264", "use": "x264-encoder", "from": "hide", "tune": "zerolatency", "preset": "ultrafast", "bitrateKbps": 1500, "keyframeSeconds": 1},
            {"id": "main", **sink, "path": "/main"},
            {"id": "half", "use": "crop-orient", "from": "hide", "size": "320x180"},
            {"id": "little", "use": "x264-encoder", "tune": "zerolatency", "preset": "ultrafast", "bitrateKbps": 300, "keyframeSeconds": 1},
            {"id": "sub", **sink, "path": "/sub"},
        ]
        (self.folder / "people").write_text(self.users, encoding="utf-8")
        os.chmod(self.folder / "people", 0o600)
        chain = {"stages": stages, "onvif": {"listen": f"0.0.0.0:{PORT}", "name": "Front door", **(onvif or {})}, **more}
        (self.folder / "door.json").write_text(json.dumps(chain), encoding="utf-8")

    def begin(self):
        host = self.start(HOST, "door.json", "--log-format", "json", log="door.log")
        self.soon(lambda: self.said("door.log").count('"serving"') >= 2 or host.poll() is not None, 60, lambda: self.said("door.log"))
        self.assertIsNone(host.poll(), self.said("door.log"))
        return host

    def finish(self, host):
        """Nothing was lost, whatever clients did."""
        host.send_signal(signal.SIGINT)
        status = host.wait(60)
        self.assertEqual(status, 0, self.said("door.log"))
        self.assertIsNotNone(without_losses)
        self.assertRegex(self.said("door.log"), r"Done: \d+ frames? .* 0 dropped")

    def ask(self, *arguments, seconds=120):
        return json.loads(run(*self.there, sys.executable, HERE / "recorder.py", *arguments, timeout=seconds))

    def connect(self):
        return socket.create_connection((CAMERA, PORT), timeout=20)

    def send(self, text, path="/onvif/device_service", more="", method="POST", connection=None):
        """Status and body of an answer; None where the connection was closed."""
        body = text if isinstance(text, bytes) else text.encode()
        with connection or self.connect() as client:
            head = f"{method} {path} HTTP/1.1\r\nHost: {CAMERA}:{PORT}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n"
            try:
                client.sendall(head.encode() + body)
                answer = b""
                while part := client.recv(65536):
                    answer += part
            except OSError:
                return None
        match = re.match(rb"HTTP/1.1 (\d+)", answer)
        return (int(match[1]), answer.partition(b"\r\n\r\n")[2].decode(errors="replace")) if match else None

    def size(self, uri):
        login = uri.replace("rtsp://", f"rtsp://{NAME}:" + "".join(f"%{byte:02x}" for byte in PASSWORD.encode()) + "@")
        probe = run(
            *self.there, "ffprobe", "-v", "error", "-rtsp_transport", "tcp", "-select_streams", "v", "-read_intervals", "%+1", "-count_frames",
            "-show_entries", "stream=width,height,codec_name,nb_read_frames", "-of", "json", login)
        return json.loads(probe)["streams"][0]

    @needs("ffprobe", "ip", "nsenter")
    def test_homeAssistantFindsItPlaysItTakesPicturesAndHearsOfMotion(self):
        self.chain()
        host = self.begin()
        found = self.soon(lambda: self.ask("find"), 60, lambda: self.said("door.log"))
        self.assertEqual(len(found), 1, found)
        self.assertEqual(found[0]["urls"], [f"http://{CAMERA}:{PORT}/onvif/device_service"])
        # The library decodes them.
        self.assertIn("onvif://www.onvif.org/name/Front door", found[0]["scopes"])
        said = self.ask("use", CAMERA, PORT, NAME, PASSWORD, 60)
        self.assertIn(f"http://{CAMERA}:{PORT}/onvif/event_service", said["services"].values())
        self.assertEqual(said["device"]["model"], "Front door")
        self.assertEqual(said["device"]["version"], run(HOST, "--version").split()[1])
        self.assertIn(said["device"]["serial"], found[0]["address"])
        self.assertEqual(said["sources"], [["door", 1280, 720]])
        shown = [(each["token"], each["encoding"], each["size"], each["rate"], each["bitrate"], each["group"]) for each in said["profiles"]]
        self.assertEqual(shown, [("main", "H264", [1280, 720], 25, 1500, 25), ("sub", "H264", [320, 180], 25, 300, 25)])
        for profile in said["profiles"]:
            self.assertEqual(profile["uri"], f"rtsp://{CAMERA}:{STREAMS}/{profile['token']}")
            stream = self.size(profile["uri"])
            self.assertEqual([stream["width"], stream["height"]], profile["size"])
            self.assertGreater(int(stream["nb_read_frames"]), 10)
            self.see(bytes.fromhex(profile["snapshot"] or ""), profile["size"])
        states = {(topic.split(":")[-1], kind, name, value) for topic, kind, name, value in said["events"]}
        for topic, item in ("VideoSource/MotionAlarm", "State"), ("RuleEngine/CellMotionDetector/Motion", "IsMotion"):
            for value in "true", "false":
                self.assertIn((topic, "Changed", item, value), states)
        self.finish(host)

    def see(self, picture, size):
        """A snapshot is a JPEG of the stream's size, whose left half is covered."""
        self.assertEqual(picture[:2], b"\xff\xd8", picture[:200])
        raw = subprocess.run(
            ["ffmpeg", "-nostdin", "-v", "error", "-i", "-", "-pix_fmt", "rgb24", "-f", "rawvideo", "-"], input=picture, capture_output=True, check=True).stdout
        width, height = size
        self.assertEqual(len(raw), width * height * 3)
        for x, y in ((8, 8), (width // 4, height // 2), (8, height - 8)):
            red, green, blue = raw[(y * width + x) * 3:][:3]
            self.assertTrue(red > 200 and green < 60 and blue < 60, (x, y, red, green, blue))
        self.assertLess(raw[(height // 2 * width + width * 3 // 4) * 3], 256)

    @needs("onvif-util")
    def test_onvifUtilOfDebianFindsItAndLogsIn(self):
        self.chain()
        (self.folder / "people").write_text("anna:secret\n", encoding="utf-8")
        host = self.begin()
        found = self.soon(lambda: (text := run(*self.there, "onvif-util", "-a")) and CAMERA in text and text, 60)
        self.assertIn("Front door", found)
        session = subprocess.run(
            [*self.there, "onvif-util", "-u", "anna", "-p", "secret", CAMERA], input="get time\nget capabilities\nget rtsp\nget video\nget network\nquit\n",
            capture_output=True, text=True, timeout=120)
        said = session.stdout + session.stderr
        self.assertIn("successfully connected", said)
        self.assertIn(f"rtsp://{CAMERA}:{STREAMS}/main", said)
        self.assertIn("1280 x 720", said)
        wrong = subprocess.run(
            [*self.there, "onvif-util", "-u", "anna", "-p", "wrong", CAMERA], input="get rtsp\nquit\n", capture_output=True, text=True, timeout=120)
        self.assertNotIn("rtsp://", wrong.stdout + wrong.stderr)
        self.finish(host)

    def test_strangersGetNothingAndLoseNothing(self):
        self.chain()
        host = self.begin()
        bomb = ("<?xml version='1.0'?><!DOCTYPE z [<!ENTITY a0 'ha'>" + "".join(f"<!ENTITY a{n + 1} '{f'&a{n};' * 10}'>" for n in range(9)) + "]>")
        outside = "<!DOCTYPE z [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>"
        deep = "<a>" * 10_000 + "</a>" * 10_000
        for text in (
                bomb + envelope("&a9;"), outside + envelope("&e;"), envelope(deep), envelope("<a/>" * 5000), envelope(f"<a {'x' * 60_000}='1'/>"), "", "<", "\0" * 100,
                envelope(INFORMATION).encode("utf-16")):
            status, body = self.send(text)
            self.assertEqual(status, 400 if len(text) <= 65536 else 413, body)
            self.assertNotIn("root:", body)
        self.assertIn(self.send(b"x" * 1_000_000) or (413, ""), [(413, "A request has at most 65536 bytes.\n")])
        self.assertEqual((self.send("", more="X: " + "y" * 20_000 + "\r\n") or (400, ""))[0] // 100, 4)
        # A chunked body that never ends is cut at its bound.
        with self.connect() as client:
            client.sendall(f"POST /onvif/device_service HTTP/1.1\r\nHost: {CAMERA}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            try:
                for _ in range(200):
                    client.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
                client.sendall(b"0\r\n\r\n")
                self.assertIn(b" 413 ", client.recv(4096))
            except (BrokenPipeError, ConnectionResetError):
                pass
        # Logins: without, wrong, wrong in time, the same once more.
        self.assertEqual(self.send(envelope(INFORMATION))[0], 401)
        self.assertEqual(self.send(envelope(INFORMATION, security(b"1", password="wrong")))[0], 401)
        for seconds in -3600, -120, 120, 86_400 * 365:
            status, body = self.send(envelope(INFORMATION, security(b"2", seconds)))
            self.assertEqual((status, "differs by more than" in body), (400, True), body)
        once = envelope(INFORMATION, security(os.urandom(16)))
        self.assertEqual(self.send(once)[0], 200)
        status, body = self.send(once)
        self.assertEqual((status, "was used before" in body), (400, True), body)
        # Connections that say nothing leave room for one that does.
        silent = [socket.create_connection((CAMERA, PORT), timeout=20) for _ in range(150)]
        self.assertEqual(self.send(envelope(INFORMATION, security(os.urandom(16))))[0], 200)
        for one in silent:
            one.close()
        self.assertEqual(self.send("", method="GET", path="/onvif/snapshot/main")[0], 401)
        self.assertEqual(self.send("", method="GET", path="/onvif/snapshot/%2e%2e%2fpeople")[0], 401)
        self.assertNotIn(PASSWORD, self.said("door.log"))
        self.soon(lambda: '"login-failed"' in self.said("door.log"), 60)
        self.finish(host)

    def test_aClientThatLeavesWhileItWaitsLosesNoEvent(self):
        self.chain()
        host = self.begin()
        space = 'xmlns="http://www.onvif.org/ver10/events/wsdl"'

        def ask(operation, path, connection=None):
            return self.send(envelope(operation, security(os.urandom(16))), path, connection=connection)

        status, body = ask(f"<CreatePullPointSubscription {space}/>", "/onvif/event_service")
        path = re.search(r"/onvif/subscription/\w+", body)[0]
        pull = f"<PullMessages {space}><Timeout>PT20S</Timeout><MessageLimit>50</MessageLimit></PullMessages>"
        self.assertIn('PropertyOperation="Initialized"', ask(pull, path)[1])
        said = lambda event: self.said("door.log").count(f'"{event}"')
        ended = said("motion-ended")
        self.soon(lambda: said("motion-ended") > ended, 60)
        self.assertIn('PropertyOperation="Changed"', ask(pull, path)[1])
        # Nothing moves for some seconds now. Waits, and goes again. What happens in the moment of going may be on its way to who goes.
        began = said("motion-began")
        for _ in range(5):
            with self.connect() as client:
                text = envelope(pull, security(os.urandom(16)))
                client.sendall(f"POST {path} HTTP/1.1\r\nHost: {CAMERA}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
                client.settimeout(0.3)
                self.assertRaises(TimeoutError, client.recv, 65536)
        self.assertEqual(said("motion-began"), began)
        self.soon(lambda: said("motion-began") > began, 60)
        heard = ask(pull, path)[1]
        self.assertTrue('PropertyOperation="Changed"' in heard and 'Value="true"' in heard, heard)
        self.assertEqual(ask('<Unsubscribe xmlns="http://docs.oasis-open.org/wsn/b-2"/>', path)[0], 200)
        self.finish(host)

    def test_withoutUsersTheChainIsRefusedUnlessAnybodyMay(self):
        self.chain(users=False)
        host = self.start(HOST, "door.json", log="door.log")
        self.assertNotEqual(host.wait(60), 0)
        self.assertIn("onvif.anybody: 'main' has no users", self.said("door.log"))
        self.chain(users=False, onvif={"anybody": True})
        host = self.begin()
        self.assertEqual(self.send(envelope(INFORMATION))[0], 200)
        self.assertEqual(self.send(envelope(INFORMATION), more="Origin: http://evil.example\r\n")[0], 403)
        self.finish(host)

    def test_twoChainsOfOneProcessAreTwoDevices(self):
        for number, name in enumerate(("yard", "gate")):
            stages = [
                {"id": "cam", "use": "test-source", "size": "320x180", "rate": 25, "live": True},
                {"id": "h264", "use": "x264-encoder", "tune": "zerolatency", "preset": "ultrafast"},
                {"id": "main", "use": "rtsp-sink", "port": STREAMS + number},
            ]
            chain = {"stages": stages, "onvif": {"listen": f"0.0.0.0:{PORT + number}", "anybody": True}}
            (self.folder / f"{name}.json").write_text(json.dumps(chain), encoding="utf-8")
        host = self.start(HOST, "yard.json", "gate.json", log="door.log")
        self.soon(lambda: self.said("door.log").count("Readers can open") == 2, 60, lambda: self.said("door.log"))
        found = self.soon(lambda: len(them := self.ask("find")) == 2 and them, 60, lambda: self.said("door.log"))
        self.assertEqual({url for one in found for url in one["urls"]}, {f"http://{CAMERA}:{PORT + number}/onvif/device_service" for number in range(2)})
        said = [self.ask("use", CAMERA, PORT + number, "", "") for number in range(2)]
        self.assertEqual([each["device"]["model"] for each in said], ["yard", "gate"])
        self.assertEqual(len({tuple(each["hardware"]) for each in said}), 2)
        host.send_signal(signal.SIGINT)
        self.assertEqual(host.wait(60), 0, self.said("door.log"))

    def test_saysHelloAndBye(self):
        self.chain()
        listener = self.start(*self.there, sys.executable, "-c", LISTEN, RECORDER, log="heard.log")
        self.soon(lambda: "ready" in self.said("heard.log"), 60)
        host = self.begin()
        self.soon(lambda: "/discovery/Hello" in self.said("heard.log"), 60, lambda: self.said("door.log"))
        self.finish(host)
        self.soon(lambda: "/discovery/Bye" in self.said("heard.log"), 60)
        listener.kill()


LISTEN = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("", 3702))
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.255.255.250") + socket.inet_aton(sys.argv[1]))
print("ready", flush=True)
while True: print(s.recv(9000).decode(), flush=True)
"""

if __name__ == "__main__":
    unittest.main()
