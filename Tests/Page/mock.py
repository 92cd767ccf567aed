# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the control server: the page's files and as much of the API as the page asks for, without a program.

The chain is that of chain.json; answers.json has its plan and kinds as `framehost check --json` and `describe --json`
print them. `python3 Tests/Page/mock.py [PORT]` serves it for a look at the page.
"""
import base64
import hashlib
import json
import os
import queue
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../Sources/Plugins/services/ControlServer/Page")
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; "
          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def read_chain():
    """chain.json without its comments and its services' options."""
    with open(os.path.join(HERE, "chain.json")) as file:
        chain = json.loads(re.sub(r"^\s*//.*$", "", file.read(), flags=re.M))
    return {**chain, "control": {}}


def make_pictures(count=40):
    """JPEGs of a moving picture."""
    made = subprocess.run(
        ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=10", "-frames:v", str(count),
         "-f", "image2pipe", "-c:v", "mjpeg", "-q:v", "6", "-"], stdout=subprocess.PIPE, check=True).stdout
    return [b"\xff\xd8\xff" + part for part in made.split(b"\xff\xd8\xff")[1:]]


def make_units(count=60):
    """Access units of the same picture, with start codes: two groups."""
    return encode(count, b"\0\0\0\1\x09", "h264", "-c:v", "libx264", "-tune", "zerolatency", "-pix_fmt", "yuv420p",
                  "-x264-params", "aud=1:sliced-threads=0")


def make_h265_units(count=60, pixels="yuv420p"):
    """The same in H.265."""
    return encode(count, b"\0\0\0\1\x46\x01", "hevc", "-c:v", "libx265", "-tune", "zerolatency", "-pix_fmt", pixels,
                  "-x265-params", "aud=1:repeat-headers=1:log-level=error")


def encode(count, delimiter, form, *options):
    """Access units of a moving picture, each with its delimiter."""
    made = subprocess.run(
        ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30", "-frames:v", str(count), *options,
         "-preset", "ultrafast", "-g", "30", "-f", form, "-"], stdout=subprocess.PIPE, check=True).stdout
    return [delimiter + part for part in made.split(delimiter)[1:]]


class Fault(Exception):
    def __init__(self, status, what, place="", remedy="", code="invalid-configuration"):
        super().__init__(what)
        self.status = status
        self.error = {"what": what, "place": place, "remedy": remedy, "code": code}


class Mock(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port=0):
        with open(os.path.join(HERE, "answers.json")) as file:
            answers = json.load(file)
        self.plan, self.kinds = answers["plan"], answers["kinds"]
        self.chain = read_chain()
        self.pictures = make_pictures()
        self.units = {"h264": make_units(), "h265": []}
        self.begin = time.monotonic()
        self.lock = threading.Lock()
        self.listeners = []
        self.is_over = False
        # What a test wants to be so.
        self.token = None
        # Names with password and rights; sessions with names; stages whose pictures are original.
        self.users, self.sessions, self.originals = {}, {}, set()
        self.has_pictures = True
        self.has_live = True
        # As behind a proxy that does not pass on Host.
        self.refuses_origins = False
        self.state = "streaming"
        self.problems = []
        self.failed = set()
        self.paused = set()
        self.lost = {}
        self.full = set()
        self.held = set()
        self.active = "left"
        # (method, path, query, body) of all requests, and the most pictures that were asked for at once.
        self.requests = []
        # Messages of pages over their WebSockets, the sockets that are open, and pictures sent by them.
        self.messages, self.pictures_sent = [], 0
        self.live = []
        self.pictures_now = self.pictures_most = 0
        super().__init__(("127.0.0.1", port), Handler)
        self.port = self.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        # A page that closes a preview leaves in the middle of an answer.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def sockets(self):
        return len(self.live)

    def drop(self):
        """Closes every WebSocket as a network that goes away does."""
        for live in list(self.live):
            live.handler.connection.shutdown(socket.SHUT_RDWR)
        while self.live:
            time.sleep(0.01)

    def end_previews(self, error):
        for live in list(self.live):
            for preview in list(live.previews):
                del live.previews[preview]
                live.tell({"ended": preview, "error": error})

    @property
    def frame(self):
        return int((time.monotonic() - self.begin) * 30)

    def post(self, event, text, stage=None, level="info", **details):
        message = {"time": time.monotonic(), "wallTime": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
                   "event": event, **({"stage": stage} if stage else {}), "level": level, "text": text, **details}
        with self.lock:
            for listener in self.listeners:
                listener.put(message)

    def login(self, secret):
        """Who sends a request: what the real server answers to GET login; None for whom it does not know."""
        if not self.token and not self.users:
            return {"by": "nobody", "name": None, "rights": ["watch", "control"]}
        if secret in self.sessions:
            name = self.sessions[secret]
            return {"by": "user", "name": name, "rights": self.users[name][1]}
        if self.token and secret == self.token:
            return {"by": "token", "name": None, "rights": ["watch", "control"]}
        return None

    def log_in(self, body):
        name = body["name"]
        if name not in self.users or self.users[name][0] != body["password"]:
            raise Fault(401, "the name or the password is wrong", "Authorization", "Log in with a name and a password.",
                        "unauthorized")
        secret = "session-" + os.urandom(32).hex()
        self.sessions[secret] = name
        return {"session": secret, **self.login(secret)}

    def forbids(self, login, stage):
        """The fault of a picture that is not for that login."""
        if stage in self.originals and "originals" not in login["rights"]:
            return Fault(403, "looking at it needs the right 'originals'", stage, "Log in as another user.", "forbidden").error
        return None

    def status(self):
        def state(stage):
            return ("failed" if stage in self.failed else "paused" if stage in self.paused else self.state)
        return {"name": "page", "state": self.state, "healthy": not self.problems, "problems": self.problems,
                "stages": [{"id": stage["id"], "state": state(stage["id"])} for stage in self.plan["stages"]]}

    def metrics(self):
        frame = self.frame

        def times(seconds):
            return {"count": frame, "sumSeconds": frame * seconds, "buckets": []}
        stages = []
        for index, stage in enumerate(self.plan["stages"]):
            name = stage["id"]
            given = 0 if name in self.paused else frame
            stages.append({
                "id": name, "use": stage["use"], "kind": stage["kind"], "framesIn": 0 if stage["kind"] == "source" else given,
                "framesOut": 0 if stage["kind"] == "sink" else given, "delivered": given if stage["kind"] == "sink" else 0,
                "dropped": {"noBuffer": frame // 3} if name in self.lost else {},
                "held": 3 if name in self.held else 1, "heldLimit": 3, "heldOldestSeconds": 4.2 if name in self.held else 0.01,
                "pixelCopies": 0, "busy": times(0.0004 * (index + 1)), "latency": times(0.002 * (index + 1)),
                **({"figures": {"active": self.active, "switches": 0, "inputs": {"left": "good", "right": "good"}}}
                   if name == "switch" else {})})
        links = []
        for link in self.plan["links"]:
            key = f"{link['from']}>{link['to']}"
            links.append({"from": link["from"], "to": link["to"], "capacity": link["queue"], "offered": frame,
                          "depth": link["queue"] if key in self.full else min(1, link["queue"]),
                          "dropped": {}, "replaced": frame // 2 if link["whenFull"] == "latest" else 0})
        return {"stages": stages, "links": links, "pools": [], "process": {}, "rates": self.rates(stages, links)}

    def rates(self, stages, links):
        """What the control server computes, of a chain that does the same all the time."""
        status = self.status()
        states = {stage["id"]: stage["state"] for stage in status["stages"]}

        def notes(stage):
            name = stage["id"]
            if states[name] == "failed":
                yield "bad", "failed", "The stage has failed."
            if name in self.lost:
                yield "warn", "lost 100", "100 items were lost in the last 10 s (queue full or no free buffer)."
            for link in links:
                if link["to"] == name and f"{link['from']}>{name}" in self.full:
                    yield "warn", "queue full", f"The queue from {link['from']} was full at the last 3 updates."
            if name in self.held:
                yield "warn", "held at limit", "It holds 3 of 3 buffers, the oldest for 4.2 s."
            if states[name] == "paused":
                yield "rest", "paused", "The stage is paused."
        return {
            **{key: status[key] for key in ("name", "state", "healthy", "problems")}, "captured": 60,
            "latency": {"sink": "file", "seconds": 0.014},
            "stages": [{"id": stage["id"], "state": states[stage["id"]], "rate": 0 if stage["id"] in self.paused else 30,
                        "busySeconds": 0.0004 * (index + 1),
                        "latencySeconds": 0.002 * (index + 1) if stage["kind"] == "sink" else None,
                        "lost": 100 if stage["id"] in self.lost else 0,
                        "lostInAll": sum(stage["dropped"].values()),
                        "notes": [{"level": level, "word": word, "text": text} for level, word, text in notes(stage)]}
                       for index, stage in enumerate(stages)],
            "links": [{"from": link["from"], "to": link["to"], "rate": 30, "lost": 0,
                       "full": f"{link['from']}>{link['to']}" in self.full} for link in links],
            "pools": []}

    def stage(self, name):
        for stage in self.plan["stages"]:
            if stage["id"] == name:
                return stage
        raise Fault(404, "no such stage", name, "The chain has other stages.")

    def set(self, name, options):
        known = {option["name"]: option for option in self.kinds[self.stage(name)["use"]]["options"]}
        for key, value in options.items():
            option = known.get(key)
            if option is None or not option["live"]:
                raise Fault(400, "cannot change while the chain runs", f"{name}.{key}", "Replace the stage.")
            low, high = option["minimum"], option["maximum"]
            if option["type"] in ("number", "integer") and low is not None and not low <= value <= high:
                raise Fault(400, f"{value} must be from {low} to {high}", f"{name}.{key}", f"Use {low} or more." if value < low else f"Use {high} or less.")
        for stage in self.chain["stages"]:
            if stage["id"] == name:
                stage.update(options)
        self.post("option-changed", f"{name}: {', '.join(repr(key) for key in options)} changed.", name, "debug", options=options)

    def attach(self, branch):
        self.stage(branch["at"])
        names = []
        for index, stage in enumerate(branch["stages"]):
            if stage.get("use") not in self.kinds:
                raise Fault(400, f"there is no stage '{stage.get('use')}'", f"stages[{index}].use", "Use null-sink.")
            name = stage.get("id", f"branch{len(self.plan['stages'])}")
            self.plan["stages"].append({**self.stage("watch"), "id": name, "use": stage["use"],
                                        "kind": self.kinds[stage["use"]]["kind"]})
            self.plan["links"].append({"from": names[-1] if names else branch["at"], "to": name, "queue": 4,
                                       "whenFull": "wait", "format": ""})
            self.chain["stages"].append({**stage, "id": name})
            names.append(name)
        self.post("structure-changed", "The chain has further stages.")

    def detach(self, name):
        self.stage(name)
        self.plan["stages"] = [stage for stage in self.plan["stages"] if stage["id"] != name]
        self.plan["links"] = [link for link in self.plan["links"] if name not in (link["from"], link["to"])]
        self.chain["stages"] = [stage for stage in self.chain["stages"] if stage["id"] != name]
        self.post("structure-changed", "The chain has fewer stages.")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", kind="application/json", **fields):
        self.send_response(status)
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        if body or status != 204:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        for key, value in fields.items():
            self.send_header(key.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def tell(self, value, status=200, **fields):
        self.answer(status, json.dumps(value).encode(), **fields)

    def handle_any(self):
        address = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(address.query))
        size = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(size)
        body = json.loads(text) if text else None
        mock = self.server
        if mock.is_over:
            # Of a connection that was kept open: an ended program would have closed it.
            self.close_connection = True
            return None
        with mock.lock:
            mock.requests.append((self.command, address.path, query, body))
        if not address.path.startswith("/api/"):
            return self.file(address.path)
        if address.path == "/api/v1/live" and mock.has_live:
            return self.live()
        is_login = (self.command, address.path) == ("POST", "/api/v1/login")
        self.login = mock.login(self.headers.get("Authorization", "").removeprefix("Bearer "))
        if self.login is None and not is_login:
            return self.tell({"error": {"what": "the request has no token", "place": "Authorization", "code": "unauthorized",
                                        "logins": (["user"] if mock.users else []) + (["token"] if mock.token else []),
                                        "remedy": "Send the token."}}, 401, WWW_Authenticate="Bearer")
        if not is_login and self.command not in ("GET", "DELETE") and "control" not in self.login["rights"]:
            return self.tell({"error": {"what": "a command needs the right 'control'", "code": "forbidden"}}, 403)
        if text and self.headers.get("Content-Type") != "application/json":
            return self.tell({"error": {"what": "the body must be application/json"}}, 415)
        try:
            self.api(self.command, [urllib.parse.unquote(part) for part in address.path.split("/")[3:]], query, body)
        except Fault as fault:
            self.tell({"error": fault.error}, fault.status)

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = handle_any

    def file(self, path):
        if self.server.refuses_origins and self.headers.get("Origin"):
            return self.tell({"error": {"what": "the page comes from elsewhere", "remedy": "Pass on Host.",
                                        "place": "Origin", "code": "forbidden"}}, 403)
        if self.command == "POST":
            return self.tell({"error": {"what": "this address does not support POST", "remedy": "Use GET or HEAD."}}, 405)
        name = "index.html" if path == "/" else path[1:]
        kind = TYPES.get(os.path.splitext(name)[1])
        if "/" in name or kind is None or not os.path.exists(os.path.join(PAGE, name)):
            return self.tell({"error": {"what": "there is nothing at this address"}}, 404)
        with open(os.path.join(PAGE, name), "rb") as file:
            self.answer(200, file.read(), kind)

    def api(self, method, path, query, body):
        mock = self.server
        done = {"frame": mock.frame, "text": "done"}
        match (method, path):
            case ("GET", ["status"]):
                return self.tell(mock.status())
            case ("GET", ["metrics"]):
                return self.tell(mock.metrics())
            case ("GET", ["plan" | "chain" | "kinds" as what]):
                return self.tell(getattr(mock, what))
            case ("GET", ["login"]):
                return self.tell(self.login)
            case ("POST", ["login"]):
                return self.tell(mock.log_in(body))
            case ("DELETE", ["login"]):
                mock.sessions.pop(self.headers.get("Authorization", "").removeprefix("Bearer "), None)
                return self.answer(204)
            case ("GET", ["stages"]):
                return self.tell([{"id": stage["id"], "use": stage["use"], "kind": stage["kind"], "state": mock.state,
                                   "showsOriginals": stage["id"] in mock.originals} for stage in mock.plan["stages"]])
            case ("GET", ["events"]):
                return self.events()
            case ("GET", ["stages", stage, "picture"]):
                mock.stage(stage)
                if error := mock.forbids(self.login, stage):
                    return self.tell({"error": error}, 403)
                return self.picture(query)
            case ("PATCH", ["stages", stage, "options"]):
                mock.set(stage, body)
            case ("POST", ["stages", stage, "commands", "switch"]):
                mock.active = body["to"]
            case ("POST", ["stages", stage, "commands", name]):
                if name not in [command["name"] for command in mock.kinds[mock.stage(stage)["use"]]["commands"]]:
                    raise Fault(404, f"has no command '{name}'", stage)
                mock.post(f"recording-did-{name}", f"{name} of 'page-1.mp4'", stage)
            case ("POST", ["stages", stage, "pause"]):
                mock.paused.add(mock.stage(stage)["id"])
            case ("POST", ["stages", stage, "resume"]):
                mock.paused.discard(mock.stage(stage)["id"])
            case ("DELETE", ["stages", stage]):
                mock.detach(stage)
            case ("POST", ["branches"]):
                mock.attach(body)
            case ("POST", ["drain"]):
                mock.state = "draining"
            case _:
                raise Fault(404, "there is nothing at this address")
        self.tell(done)

    def picture(self, query):
        mock = self.server
        with mock.lock:
            mock.pictures_now += 1
            mock.pictures_most = max(mock.pictures_most, mock.pictures_now)
        try:
            # The next frame is a while away.
            time.sleep(0.02 if mock.has_pictures else 0.2)
        finally:
            with mock.lock:
                mock.pictures_now -= 1
        if not mock.has_pictures:
            return self.answer(204)
        frame = mock.frame
        kind = query.get("format", "jpeg")
        self.answer(200, mock.pictures[frame // 3 % len(mock.pictures)], f"image/{kind}", Framehost_Frame=str(frame))

    def live(self):
        """The WebSocket: docs/control.md."""
        mock = self.server
        offered = [part.strip() for part in self.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        shown = next((part.removeprefix("framehost.token.") for part in offered if part.startswith("framehost.token.")), "")
        self.login = mock.login(bytes.fromhex(shown).decode())
        if self.login is None:
            return self.tell({"error": {"what": "the request has no token"}}, 401, WWW_Authenticate="Bearer")
        accept = base64.b64encode(hashlib.sha1(
            (self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        self.wfile.write((f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: framehost.v1\r\n\r\n").encode())
        self.close_connection = True
        live = LiveSocket(self)
        with mock.lock:
            mock.live.append(live)
        try:
            live.run()
        except (OSError, struct.error):
            pass
        finally:
            live.is_over = True
            with mock.lock:
                mock.live.remove(live)

    def events(self):
        mine = queue.Queue()
        mock = self.server
        with mock.lock:
            mock.listeners.append(mine)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        number = 0
        try:
            self.wfile.write(b"retry: 2000\n\n")
            while not mock.is_over:
                try:
                    number += 1
                    self.wfile.write(f"id: run-{number}\ndata: {json.dumps(mine.get(timeout=2))}\n\n".encode())
                except queue.Empty:
                    self.wfile.write(b": nothing new\n\n")
                self.wfile.flush()
        except OSError:
            pass
        finally:
            with mock.lock:
                mock.listeners.remove(mine)


class LiveSocket:
    """A page's WebSocket: a thread reads, another one sends what is due."""

    def __init__(self, handler):
        self.handler, self.mock = handler, handler.server
        self.lock = threading.Lock()
        self.previews = {}
        self.events = None
        self.is_over = False

    def send(self, opcode, payload):
        size = len(payload)
        head = bytes([0x80 | opcode]) + (bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size) if size < 65536
                                         else b"\x7f" + struct.pack(">Q", size))
        with self.lock:
            self.handler.wfile.write(head + payload)
            self.handler.wfile.flush()

    def tell(self, value):
        self.send(1, json.dumps(value).encode())

    def read(self):
        first, second = struct.unpack(">BB", self.handler.rfile.read(2))
        size = second & 127
        if size == 126:
            size, = struct.unpack(">H", self.handler.rfile.read(2))
        mask = self.handler.rfile.read(4)
        data = bytes(byte ^ mask[index % 4] for index, byte in enumerate(self.handler.rfile.read(size)))
        return first & 15, data

    def run(self):
        threading.Thread(target=self.pump, daemon=True).start()
        while not self.mock.is_over:
            opcode, data = self.read()
            if opcode == 8:
                return self.send(8, data[:2])
            if opcode == 1:
                self.take(json.loads(data))

    def take(self, message):
        with self.mock.lock:
            self.mock.messages.append(message)
        match message:
            case {"open": number, "stage": stage} if (error := self.mock.forbids(self.handler.login, stage)):
                self.tell({"ended": number, "error": error})
            case {"open": number}:
                known = self.previews.get(number, {"number": 0, "flying": False, "due": 0})
                self.previews[number] = {**known, "wish": message, "paused": False}
            case {"close": number}:
                self.previews.pop(number, None)
            case {"pause": number} | {"resume": number} if number in self.previews:
                self.previews[number]["paused"] = "pause" in message
            case {"shown": preview, "number": number} if preview in self.previews:
                if self.previews[preview]["number"] == number:
                    self.previews[preview]["flying"] = False
            case {"ping": number}:
                self.tell({"pong": number, "now": time.monotonic_ns()})
            case {"events": _}:
                self.events = queue.Queue()
                with self.mock.lock:
                    self.mock.listeners.append(self.events)

    def pump(self):
        count = 0
        try:
            while not self.is_over and not self.mock.is_over:
                time.sleep(0.01)
                while self.events and not self.events.empty():
                    count += 1
                    self.tell({"id": f"run-{count}", "event": self.events.get()})
                now = time.monotonic()
                for preview, state in list(self.previews.items()):
                    if state["wish"].get("kind") in self.mock.units:
                        self.send_unit(preview, state, now)
                        continue
                    if state["paused"] or state["flying"] or now < state["due"]:
                        continue
                    if not self.mock.has_pictures:
                        state["due"] = now + 0.2
                        self.tell({"none": preview})
                        continue
                    state.update(flying=True, number=state["number"] + 1, due=now + 1 / state["wish"].get("rate", 30))
                    frame = self.mock.frame
                    with self.mock.lock:
                        self.mock.pictures_sent += 1
                    self.send(2, struct.pack(">BBHIQqqII", 1, 1, preview, state["number"], frame, time.monotonic_ns(), 0, 0, 0)
                              + self.mock.pictures[frame // 3 % len(self.mock.pictures)])
        except OSError:
            pass
        finally:
            if self.events is not None:
                with self.mock.lock:
                    self.mock.listeners.remove(self.events)
            self.handler.connection.close()

    def send_unit(self, preview, state, now):
        if state["paused"]:
            state["next"] = 0
        elif now >= state["due"]:
            index = state.get("next", 0)
            state.update(number=state["number"] + 1, next=index + 1, due=max(state["due"] + 1 / 30, now - 0.1))
            kind = state["wish"]["kind"]
            units = self.mock.units[kind]
            unit = units[index % len(units)]
            flags = (1 if index % 30 == 0 else 0) | (2 if index == 0 else 0)
            self.send(2, struct.pack(">BBHIQqqII", {"h264": 2, "h265": 3}[kind], flags, preview, state["number"], self.mock.frame, time.monotonic_ns(),
                                     index * 33_333_333, 0, 33_333) + unit)


if __name__ == "__main__":
    server = Mock(int(sys.argv[1]) if len(sys.argv) > 1 else 8099)
    print(server.url)
    while True:
        time.sleep(5)
        server.post("fps", "29.97 frames a second", "title")
