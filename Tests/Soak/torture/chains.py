# SPDX-License-Identifier: Apache-2.0
"""Random chain files. Options come from `framehost describe ID --json`, so a new option is drawn from the day it exists."""

import json
import re
import subprocess

SOURCES = ["test-source", "file-source"]
FILTERS = ["convert", "crop-orient", "rate", "fps-meter", "text", "replicate", "frei0r", "face-effect"]
SINKS = ["recorder", "rtsp-sink", "null-sink"]
SOUND_FILTERS = ["gain", "audio-meter", "audio-resample"]
KINDS = SOURCES + FILTERS + ["frei0r-mixer", "x264-encoder", "tone-source", "audio-encoder"] + SOUND_FILTERS + SINKS
EFFECTS = ["glow", "brightness", "invert0r", "cartoon", "pixeliz0r", "vertigo", "delay0r", "nosync0r", "sobel", "flippo", "hqdn3d", "plasma", "onecol0r"]
MIXERS = ["addition", "blend", "screen", "multiply", "alphaover", "xfade0r", "composition"]
FACE_WEIGHT = 0.25
ODD = [None, True, -1, 0, 1e308, -0.0, 0.1, 2**63 - 1, 2**63, -(2**63), 10**40, "", " ", "x", "a" * 5000, "${HOME}", "${NO_SUCH_NAME}", "$$", "../../..", "\u0000",
       "\u202e\U0001f600", "-", "%s%n%d", [], {}, [[]], {"a": {"a": 1}}, "NaN", "1e999", "/dev/null", "{n}", "%%", "\n\x1b[31m"]
SIZES = ["64x48", "32x32", "16x16", "128x96", "66x50", "63x47", "176x144", "2x2", "8x8", "640x2", "160x120"]
ODD_SIZES = ["1x1", "0x0", "16384x1", "99999x99999", "4096x16", "-1x5", "16385x16385", "3x3", "15x1001"]
COLOURS = ["#000000", "#ff0000", "#20a0ff", "#FFF", "red", "#12345", "#1234567890"]


class Kinds:
    """What the program says of its stages."""

    def __init__(self, program):
        self.stages = {}
        for name in KINDS:
            told = subprocess.run([program, "describe", name, "--json"], capture_output=True, text=True)
            if told.returncode == 0:
                self.stages[name] = json.loads(told.stdout)
        if not self.stages:
            raise SystemExit(f"torture: {program} describes no stage")

    def options(self, kind):
        return self.stages[kind]["options"]


def number(dice, option, whole):
    low = option["minimum"] if isinstance(option["minimum"], (int, float)) else 0
    high = option["maximum"] if isinstance(option["maximum"], (int, float)) else 1000
    kind = dice.random()
    if kind < 0.15:
        value = low
    elif kind < 0.22:
        value = high
    elif kind < 0.7:
        value = min(high, low + (high - low) * dice.random() ** 6)
    else:
        value = min(high, max(low, dice.choice([0.01, 0.1, 0.5, 1, 2, 3, 8, 30, 100])))
    return int(value) if whole else round(value, 4)


def value(dice, option, wild):
    """Something for this option; where `wild`, perhaps something that nobody meant."""
    if wild and dice.random() < 0.25:
        return dice.choice(ODD)
    kind, name = option["type"], option["name"]
    choices = re.findall(r'"([^"]*)"', kind)
    if kind in ("integer", "number"):
        return number(dice, option, kind == "integer")
    if kind == "true or false":
        return dice.random() < 0.5
    if choices and kind.startswith('"') and "pixels" not in kind:
        return dice.choice(choices)
    if re.fullmatch(r"[\d, ]+", kind):
        return dice.choice([int(text) for text in kind.split(",")])
    if kind == "size":
        return dice.choice(SIZES if not wild or dice.random() < 0.7 else ODD_SIZES)
    if kind == "colour":
        return dice.choice(COLOURS[:3] if not wild else COLOURS)
    if kind == "frame rate":
        return dice.choice([25, 30, 50, 120, 1000, "30000/1001", 7, 0.5, 100000, "1/1000"])
    if kind == "part of a picture":
        return dice.choice(["32x32", "16x16+8+8", "8x48", "64x48+0+0", "2x2+2+2", "32x32+40+40"])
    if kind == "aspect ratio":
        return dice.choice(["1:1", "16:9", "9:16", "1:100", "4:3"])
    if kind.startswith("pixels or share"):
        return dice.choice([0, 1, 8, "5%", "100%", "40%", "3%", 300])
    if kind == "grid":
        return dice.choice(["1x1", "2x2", "3x1", "8x8", "5x4"])
    if kind == "H.264 level":
        return dice.choice(["1", "1b", "3.1", "4", "5.2", "6.2", 4.1])
    if kind == "text with fields":
        return dice.choice(["{date} {time}", "{frame}\n{pts}", "{{}}", "{fps} {name} {chain}", "{time:%H:%M:%S}", "{seconds}" * 20, "{nope}", "ä€😀", "{", "x" * 400, "{date:" + "%Y" * 200 + "}"])
    if kind == "object":
        return copy_values(dice, wild)
    if kind.startswith("list of object"):
        return [copy_values(dice, wild) for _ in range(dice.randrange(3))]
    if kind.startswith("list"):
        return dice.choice([[], ["127.0.0.1"], ["10.0.0.0/8"], ["::1/128", "127.0.0.0/8"], ["300.1.1.1"]])
    return dice.choice(["a", "name", "", "x y", "é"])


def copy_values(dice, wild):
    """What replicate takes for its copies, and names that nobody has."""
    numbers = {"x": [0, 1, 0.5, -1, 50], "y": [0, 0.3, -2], "scale": [1, 0.5, 0.01, 3], "rotate": [0, 90, 33, -720], "delay": [0, 1, 7], "gain": [1, 0.5, 2], "opacity": [1, 0.5, 0],
               "hue": [0, 180, 33], "mirror": [True, False], "tint": ["#ff8800"]}
    names = dice.sample(sorted(numbers), dice.randrange(4))
    drawn = {name: dice.choice(numbers[name]) for name in names}
    if wild and dice.random() < 0.5:
        drawn[dice.choice(["blurr", "type", "x", "delay"])] = dice.choice(ODD)
    return drawn


class Chain:
    """A drawn chain file, and what it may do to files."""

    def __init__(self, dice, kinds, place, ports):
        self.dice, self.kinds, self.place, self.ports = dice, kinds, place, ports
        self.wild = dice.random() < 0.2
        self.stages, self.open_video, self.open_coded, self.video, self.coded = [], [], [], [], []
        self.recorders, self.written, self.servers, self.clips = [], [], [], []
        self.live = False
        self.draw()

    # --- one stage ---

    def id(self, kind):
        base = {"recorder": ["rec", "r", "recorder", "cam"], "test-source": ["camera", "src", "t"]}.get(kind, [kind, kind[:3]])
        name = self.dice.choice(base)
        taken = {stage.get("id") for stage in self.stages}
        if self.dice.random() < 0.01:
            return name
        while name in taken:
            name = f"{name}{self.dice.randrange(10)}"
        return name

    def add(self, kind, source=None):
        dice = self.dice
        stage = {"id": self.id(kind), "use": kind}
        if source is not None:
            stage["from"] = source
        options = self.kinds.options(kind) if kind in self.kinds.stages else []
        for option in dice.sample(options, min(len(options), dice.choice([0, 0, 1, 1, 2, 3, 5]))):
            stage[option["name"]] = value(dice, option, self.wild)
        if source is not None and dice.random() < 0.25:
            stage["link"] = self.link(source in self.coded)
        if dice.random() < 0.1:
            stage["onError"] = dice.choice(["stop", "continue"])
        if self.wild and dice.random() < 0.1:
            stage[dice.choice(["nope", "path", "rate", "bitrate", "size"])] = dice.choice(ODD)
        self.stages.append(stage)
        return stage

    def link(self, is_coded):
        dice = self.dice
        link = {"queue": dice.choice([0, 1, 2, 3, 8, 100, 4096])}
        if dice.random() < 0.6 and link["queue"] > 0:
            choices = ["wait", "dropToKeyframe"] if is_coded else ["wait", "dropOldest", "dropNewest", "latest"]
            link["whenFull"] = dice.choice(choices if dice.random() < 0.95 else ["latest", "dropToKeyframe", "dropOldest"])
            if link["whenFull"] == "latest":
                link.pop("queue")
        if is_coded and dice.random() < 0.1 and link.get("queue"):
            link[dice.choice(["seconds", "megabytes"])] = dice.choice([0.1, 1, 100] if dice.random() < 0.8 else [0.01, 0.001, 1e9, 1e12])
        return link

    @staticmethod
    def ends(stage, open_ends, ends):
        open_ends.append(stage["id"])
        ends.append(stage["id"])

    # --- kinds ---

    def source(self):
        dice = self.dice
        if dice.random() < 0.5:
            stage = self.add("test-source")
            stage["size"] = dice.choice(SIZES) if dice.random() < 0.95 else dice.choice(ODD_SIZES + ["1920x1080"])
            if not self.wild:
                stage.pop("stamp", None)
            if stage.get("live") is True or dice.random() < 0.2:
                stage["live"] = True
                stage["rate"] = dice.choice([25, 50, 100, 500])
                self.live = True
        else:
            stage = self.add("file-source")
            stage["path"] = self.place.clip(dice)
            if "start" in stage and not self.wild:
                stage["start"] = dice.choice([0, 0.1, 0.5, 0.5, 3])
            if not self.wild and dice.random() < 0.9:
                stage.pop("track", None)
            self.clips.append(stage["path"])
        self.ends(stage, self.open_video, self.video)

    def filter(self):
        dice = self.dice
        weights = [1] * (len(FILTERS) - 1) + [FACE_WEIGHT]
        kind = dice.choices(FILTERS, weights)[0]
        stage = self.add(kind, self.take(self.open_video))
        if kind == "rate" and "rate" not in stage and dice.random() < 0.95:
            stage["rate"] = dice.choice([10, 25, 30, 60])
        if kind == "frei0r":
            stage["effect"] = dice.choice(EFFECTS)
            if dice.random() < 0.9:
                stage.pop("parameters", None)
        if kind == "convert" and str(stage.get("format")).startswith(("i0", "p0")) and dice.random() < 0.9:
            stage["format"] = "nv12"
        if kind == "replicate" and not self.wild:
            for name in ("first", "step", "each"):
                stage.pop(name, None) if dice.random() < 0.6 else None
        if kind == "replicate" and "size" not in stage:
            stage["size"] = "64x48"
        if kind == "face-effect":
            for name in ("model", "image"):
                stage.pop(name, None)
            if stage.get("effect") == "sticker" or dice.random() < 0.1:
                stage["image"] = dice.choice(["clip-picture.png", "nope.png", "clip-0.mp4"])
            if self.place.model and (stage.get("detector") == "yunet" or dice.random() < 0.3):
                stage["model"] = self.place.model
            if "facesFile" in stage or dice.random() < 0.15:
                stage["facesFile"] = self.place.output(dice, ["faces.jsonl", "sub/faces.jsonl", "existing.txt", "full/faces.jsonl"])
                self.written.append(stage["facesFile"])
        if kind == "text":
            stage.pop("font", None) if dice.random() < 0.7 else None
        self.ends(stage, self.open_video, self.video)

    def mixer(self):
        first, second = self.take(self.open_video), self.take(self.open_video, keeps=True)
        stage = self.add("frei0r-mixer", [first, second])
        stage["effect"] = self.dice.choice(MIXERS)
        if self.dice.random() < 0.9:
            stage.pop("parameters", None)
        self.ends(stage, self.open_video, self.video)

    def encoder(self):
        dice = self.dice
        stage = self.add("x264-encoder", self.take(self.open_video))
        if not self.wild:
            for name in ("level", "profile", "bframes", "vbvMaxKbps", "vbvBufferKbits"):
                if dice.random() < 0.7:
                    stage.pop(name, None)
            if "crf" in stage:
                for name in ("bitrateKbps",):
                    stage.pop(name, None)
        if stage.get("preset") in ("placebo", "veryslow", "slower") and dice.random() < 0.8 or "preset" not in stage:
            stage["preset"] = dice.choice(["ultrafast", "superfast", "veryfast"])
        if dice.random() < 0.6:
            stage["keyframeSeconds"] = dice.choice([0.04, 0.1, 0.2, 0.5])
        self.ends(stage, self.open_coded, self.coded)

    def sound(self):
        """Encoded sound of a file or of a tone; the id of its encoder."""
        dice = self.dice
        files = [stage["id"] for stage in self.stages if stage["use"] == "file-source"]
        if files and dice.random() < 0.5:
            end = dice.choice(files) + (".audio" if dice.random() < 0.97 else ".sound")
        else:
            stage = self.add("tone-source")
            if stage.get("live") is True or (self.live and dice.random() < 0.8):
                stage["live"] = True
                self.live = True
            if not self.wild:
                stage["sampleRate"] = dice.choice([8000, 16000, 44100, 48000])
            end = stage["id"]
        while dice.random() < 0.3:
            end = self.add(dice.choice(SOUND_FILTERS), end)["id"]
        stage = self.add("audio-encoder", end)
        self.coded.append(stage["id"])
        return stage["id"]

    def sink(self, kind, inputs):
        dice = self.dice
        stage = self.add(kind, self.take(inputs, keeps=dice.random() < 0.4))
        if kind != "null-sink" and dice.random() < 0.3:
            # Behind the sink in the file: the order of a file's stages is free.
            stage["from"] = [stage["from"]] + [self.sound() for _ in range(dice.choices([1, 2], [90, 10])[0])]
            if dice.random() < 0.2:
                stage["from"].reverse()
        if kind == "null-sink":
            if dice.random() < 0.25:
                stage["dump"] = self.place.output(dice, ["dump.raw", "existing.txt", "full/dump", "-", "sub/dump", "ro/dump", "fifo", "link.txt"])
            else:
                stage.pop("dump", None)
            if isinstance(stage.get("dump"), str):
                self.written.append(stage["dump"])
        elif kind == "recorder":
            if dice.random() < 0.97:
                stage["path"] = self.place.recording(dice)
            if "keepMegabytes" in stage or "keepSeconds" in stage:
                for name in ("keepMegabytes", "keepSeconds"):
                    stage.pop(name, None)
            if "preEventSeconds" in stage and not self.wild:
                stage["preEventSeconds"] = dice.choice([0.1, 1, 5])
            if "preEventMegabytes" in stage and dice.random() < 0.9:
                stage["preEventMegabytes"] = dice.choice([0.01, 0.1, 1])
            if dice.random() < 0.35:
                stage["segmentSeconds"] = dice.choice([0.01, 0.1, 0.2, 0.5])
            if dice.random() < 0.25:
                stage["overwrite"] = True
            if dice.random() < 0.15 and (re.search("[%{]", str(stage.get("path"))) or "segmentSeconds" in stage or dice.random() < 0.05):
                name = dice.choice(["keepMegabytes", "keepSeconds"])
                stage[name] = dice.choice([0.001, 0.02, 0.1, 1] if name == "keepMegabytes" else [0.1, 0.5, 1000])
            if dice.random() < 0.2:
                stage["record"] = "onCommand"
            self.recorders.append(stage)
        elif kind == "rtsp-sink":
            port = self.ports[0] if dice.random() < 0.85 else self.ports[1]
            stage["port"] = port
            stage["path"] = f"/live{len(self.servers)}" if dice.random() < 0.95 else dice.choice(["/live0", "live", "/", "/ä b?x"])
            stage["address"] = "127.0.0.1"
            for name in ("certificate", "key", "users", "allow"):
                if dice.random() < 0.8:
                    stage.pop(name, None)
            if dice.random() < 0.12:
                stage["users"] = dice.choice(["users.txt", "env:TORTURE_USERS", "nope.txt", "sub"])
            if dice.random() < 0.06:
                stage["certificate"], stage["key"] = "certificate.pem", "key.pem"
            stage["sessionSeconds"] = dice.choice([5, 60])
            if dice.random() < 0.5:
                stage["queueSeconds"] = dice.choice([0.1, 0.2, 1])
            self.servers.append({"port": port, "path": stage["path"], "tls": "certificate" in stage})

    def recorders_of_sound(self):
        """The ids of the recorders that get no pictures."""
        sounds = {stage["id"] for stage in self.stages if stage["use"] == "audio-encoder"}
        found = set()
        for stage in self.recorders:
            given = stage.get("from")
            given = given if isinstance(given, list) else [given]
            if given and all(isinstance(one, str) and one in sounds for one in given):
                found.add(stage["id"])
        return found

    def take(self, open_ends, keeps=False):
        """An end to go on from; one that was gone on from already makes a fork."""
        dice = self.dice
        everything = [stage["id"] for stage in self.stages]
        if dice.random() < 0.01:
            return dice.choice(everything + ["nobody"])
        if not open_ends:
            open_ends = list(self.coded if open_ends is self.open_coded else self.video)
        choice = dice.choice(open_ends)
        if not keeps and dice.random() < 0.8:
            open_ends.remove(choice)
        return choice

    # --- the whole ---

    def draw(self):
        dice = self.dice
        for _ in range(dice.choices([1, 2, 3], [85, 12, 3])[0]):
            self.source()
        for _ in range(dice.choices([0, 1, 2, 3, 5, 12], [30, 30, 20, 12, 6, 2])[0]):
            if dice.random() < 0.08:
                self.mixer()
            else:
                self.filter()
        if dice.random() < 0.8:
            for _ in range(dice.choices([1, 2], [85, 15])[0]):
                self.encoder()
        if self.open_coded:
            for _ in range(dice.choices([1, 2, 3], [70, 22, 8])[0]):
                kind = dice.choices(["recorder", "rtsp-sink", "null-sink"], [60, 25, 15])[0]
                self.sink(kind, self.open_coded)
        read = {source for stage in self.stages for source in (stage.get("from") if isinstance(stage.get("from"), list) else [stage.get("from")])}
        for stage in list(self.stages):
            if stage["id"] not in read and stage["use"] not in SINKS and dice.random() < 0.97:
                self.stages.append({"id": f"rest-{len(self.stages)}", "use": "null-sink", "from": stage["id"]})
        if dice.random() < 0.02:
            dice.shuffle(self.stages)
        chain = {"stages": self.stages}
        self.drain_seconds = dice.choice([0, 0.2, 0.5, 1, 2])
        if dice.random() < 0.05:
            self.drain_seconds = 10
        else:
            chain["drainSeconds"] = self.drain_seconds
        if dice.random() < 0.06:
            chain["buffers"] = {dice.choice(self.stages)["id"]: dice.choice([1, 2, 3, 8, 64])}
        if self.wild and dice.random() < 0.05:
            chain[dice.choice(["drainSeconds", "buffers", "nope"])] = dice.choice(ODD)
        self.text = json.dumps(chain, indent=1)
        if dice.random() < 0.02:
            text = bytearray(self.text.encode())
            for _ in range(dice.choice([1, 1, 3])):
                text[dice.randrange(len(text))] = dice.randrange(256)
            self.bytes = bytes(text)
            self.is_garbled = True
        else:
            self.bytes = self.text.encode()
            self.is_garbled = False
