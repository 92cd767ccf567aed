#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for faces that privacy shows: pictures and clips made at random, whose faces are known.

    /usr/bin/python3 Tests/Soak/privacy.py [--stills 500] [--crowds 20] [--turned 20] [--clips 20] [--live 20] [--seed 1] [--only KIND] [--keep DIR]

One face, cut from the portrait of examples/media (and from the labelled clips of $FRAMEHOST_MEDIA, where these are), is laid into pictures at random sizes and places; `face-effect` with `"privacy": true` and otherwise its defaults covers
them with one colour, and the pictures that come out are looked at. From files each face must be covered that OpenCV's own FaceDetectorYN (python3-opencv) finds alone, in one search of the whole picture in full size, with a confidence of 0.9; live
each that it finds so in the size in force, which the stage says. A face is covered where the colour has at least 90 % of the middle of its box, or where the whole picture is covered.

stills   pictures through image-source, one to four faces of 10 to 300 pixels
crowds   10 to 300 faces
turned   clips that lie in each of eight orientations, by the container and by the bitstream; half of them with pixels that are not square
clips    clips with gaps, wrong times, light that changes in a part of the picture, and cuts; both ways and one way
live     the same from a server, with a slow reader that makes the chain drop pictures, pauses by command, and a busy machine

Ends with 1 where a face is uncovered, or where fewer than half of the faces were found at all, so that nothing was tested. A find is printed with its seed: `--seed N --only KIND` makes it again.
"""
import argparse, json, os, pathlib, random, socket, subprocess, sys, tempfile, threading, time

import cv2
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FRAMEHOST", str(ROOT / ".build/release/framehost"))
MEDIA = pathlib.Path(os.environ.get("FRAMEHOST_MEDIA", ROOT.parent / "shared/media"))
MODELS = pathlib.Path(os.environ.get("FRAMEHOST_MODELS", ROOT.parent / "shared/models"))
PORTRAIT = ROOT / "examples/media/astronaut_portrait.png"
# Of the portrait's face in its picture of 512x512: left, top, width.
FACE = (178, 70, 91)
COLOUR = "#ff00ff"
SURE = 0.9


def model():
    name = "face_detection_yunet_2023mar.onnx" if tuple(map(int, cv2.__version__.split(".")[:2])) >= (4, 8) else "face_detection_yunet_2022mar.onnx"
    path = MODELS / name
    if not path.exists():
        if not os.environ.get("CI"):
            print(f"SKIPPED privacy: {path} is not there")
            sys.exit(0)
        sys.exit(f"{path} is not there. Fetch it with 'framehost models fetch', and name its folder in $FRAMEHOST_MODELS.")
    return str(path)


class Oracle:
    """One search alone, by OpenCV's own classes."""

    def __init__(self):
        self.detector = cv2.FaceDetectorYN.create(model(), "", (320, 320), SURE, 0.3, 5000)

    def faces(self, rgb, side=None):
        """Boxes (x, y, width, height) in pixels of `rgb`, whose pixels are square."""
        height, width = rgb.shape[:2]
        factor = 1 if side is None else min(side / max(width, height), 1)
        size = (max(round(width * factor), 1), max(round(height * factor), 1))
        bgr = cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR)
        if factor != 1:
            bgr = cv2.resize(bgr, size, interpolation=cv2.INTER_AREA)
        self.detector.setInputSize(size)
        found = self.detector.detect(bgr)[1]
        return [] if found is None else [tuple(row[:4] / factor) for row in found]


def covered(rgb, box):
    """Whether the middle of a face's box is hidden."""
    height, width = rgb.shape[:2]
    x, y, w, h = box
    left, right = max(int(x + 0.1 * w), 0), min(int(np.ceil(x + 0.9 * w)), width)
    top, bottom = max(int(y + 0.1 * h), 0), min(int(np.ceil(y + 0.9 * h)), height)
    if right <= left or bottom <= top:
        return True
    part = rgb[top:bottom, left:right].astype(int)
    return ((part[..., 0] > 150) & (part[..., 1] < 120) & (part[..., 2] > 150)).mean() >= 0.9


class People:
    """Pictures with one face each, and where it is in them."""

    def __init__(self):
        self.all = [(cv2.cvtColor(cv2.imread(str(PORTRAIT)), cv2.COLOR_BGR2RGB), FACE)]
        for name in ("webcam_man.mkv", "webcam_woman.mkv"):
            truth = MEDIA / "truth" / f"{name}.json"
            if not truth.exists():
                continue
            capture = cv2.VideoCapture(str(MEDIA / name))
            for number, faces in enumerate(json.loads(truth.read_text())["frames"]):
                good, picture = capture.read()
                if not good or number % 40:
                    continue
                x, y, w, _ = faces[0]["box"]
                self.all.append((cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), (x, y, w)))

    def patch(self, chance, width):
        """A person with a face of this width and what is around it."""
        picture, (x, y, w) = chance.choice(self.all)
        side = int(w * 2)
        left, top = max(int(x - w / 2), 0), max(int(y - w / 3), 0)
        cut = picture[top : top + side, left : left + side]
        factor = width / w
        size = (max(int(cut.shape[1] * factor), 4), max(int(cut.shape[0] * factor), 4))
        return cv2.resize(cut, size, interpolation=cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC)


def background(chance, width, height):
    grain = np.random.default_rng(chance.randrange(1 << 30))
    kind = chance.randrange(3)
    if kind == 0:
        return np.full((height, width, 3), [chance.randrange(40, 200) for _ in range(3)], np.uint8)
    if kind == 1:
        ramp = np.linspace(chance.randrange(0, 100), chance.randrange(120, 255), width)
        return np.repeat(np.repeat(ramp[None, :, None], height, 0), 3, 2).astype(np.uint8)
    coarse = grain.integers(30, 220, (height // 40 + 1, width // 40 + 1, 3)).astype(np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


def paste(picture, patch, x, y):
    height, width = picture.shape[:2]
    h, w = min(patch.shape[0], height - y), min(patch.shape[1], width - x)
    if h > 0 and w > 0:
        picture[y : y + h, x : x + w] = patch[:h, :w]


class Bench:
    def __init__(self, folder):
        self.folder, self.oracle, self.people = pathlib.Path(folder), Oracle(), People()
        self.environment = dict(os.environ, FRAMEHOST_DATA=str(MODELS))
        self.known = self.found = self.uncovered = 0
        self.finds = []

    def chain(self, source, face, name, **link):
        stages = [source, {"id": "face", "use": "face-effect", "effect": "replace", "color": COLOUR, "privacy": True, **face}]
        if name.endswith(".mp4"):
            stages.append({"id": "h264", "use": "x264-encoder", "preset": "veryfast", "qp": 8, "bframes": 0})
            stages.append({"id": "out", "use": "recorder", "path": str(self.folder / name)})
        else:
            stages.append({"id": "out", "use": "y4m-sink", "path": str(self.folder / name), **link})
        path = self.folder / "chain.json"
        path.write_text(json.dumps({"stages": stages}))
        return str(path)

    def run(self, source, face, name="out.y4m"):
        out = self.folder / name
        out.unlink(missing_ok=True)
        outcome = subprocess.run([PROGRAM, self.chain(source, face, name), "--quiet"], env=self.environment, capture_output=True, text=True, timeout=600)
        if outcome.returncode != 0:
            raise RuntimeError(f"status {outcome.returncode}: {outcome.stderr[-1500:]}")
        return self.pictures(out)

    def pictures(self, path, args=(), size=None):
        """All pictures of a file, as they are stored."""
        probe = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "stream=width,height", "-of", "csv=p=0", str(path)], capture_output=True, text=True).stdout.split("\n")[0].split(",")
        width, height = size or (int(probe[0]), int(probe[1]))
        raw = subprocess.run(["ffmpeg", "-v", "error", "-noautorotate", "-i", str(path), *args, "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True).stdout
        return np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3)

    def judge(self, kind, seed, before, after, place=lambda box: box, side=None):
        """`before` upright and in square pixels, `after` as stored; `place` brings a box from one to the other."""
        bad = 0
        faces = self.oracle.faces(before, side)
        self.found += len(faces)
        for box in faces:
            if not covered(after, place(box)):
                bad += 1
        self.uncovered += bad
        if bad:
            self.finds.append((kind, seed))
        return bad

    def write(self, name, frames, rate=25, options=(), input_options=()):
        height, width = frames[0].shape[:2]
        path = self.folder / name
        command = ["ffmpeg", "-v", "error", "-y", *input_options, "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(rate), "-i", "-", "-c:v", "libx264", "-preset", "veryfast", "-qp", "12", "-pix_fmt", "yuv420p", *options, str(path)]
        subprocess.run(command, input=b"".join(frame.tobytes() for frame in frames), check=True)
        return path

    # The kinds. Each makes one case from its seed, and returns how many faces are uncovered.

    def stills(self, seed):
        chance = random.Random(f"stills {seed}")
        width, height = chance.choice([(640, 360), (1280, 720), (1920, 1080), (720, 1280), (800, 600)])
        picture = background(chance, width, height)
        for _ in range(chance.choice([1, 1, 1, 2, 4])):
            face = int(np.exp(chance.uniform(np.log(10), np.log(min(300, width / 4)))))
            patch = self.people.patch(chance, face)
            paste(picture, patch, chance.randrange(max(width - patch.shape[1], 1)), chance.randrange(max(height - patch.shape[0], 1)))
        path = self.folder / "still.png"
        cv2.imwrite(str(path), cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
        after = self.run({"id": "in", "use": "image-source", "path": str(path), "seconds": 0.2, "rate": 10}, chance.choice([{}, {}, {"lookAheadSeconds": 0}]))
        return sum(self.judge("stills", seed, picture, one) for one in after)

    def crowds(self, seed):
        chance = random.Random(f"crowds {seed}")
        count = chance.choice([10, 40, 60, 64, 66, 100, 300])
        cell = 48 if count == 300 else chance.randrange(60, 110)
        columns = int(np.ceil((count * 16 / 9) ** 0.5))
        rows = -(-count // columns)
        picture = background(chance, columns * cell // 2 * 2, rows * cell // 2 * 2)
        for index in range(count):
            patch = self.people.patch(chance, cell / 2.1)
            paste(picture, patch, index % columns * cell, index // columns * cell)
        frames = [picture] * 6
        path = self.write("crowd.mp4", frames)
        after = self.run({"id": "in", "use": "file-source", "path": str(path)}, chance.choice([{}, {"lookAheadSeconds": 0}]))
        return sum(self.judge("crowds", seed, picture, one) for one in after[::3])

    def moving(self, chance, count, width=640, height=360, shadow=False, cuts=False):
        """One or two people that move slowly; or that sit still while the light goes out over one of them, in the frames whose numbers are given besides."""
        scenes = []
        for _ in range(2):
            people = [(self.people.patch(chance, chance.randrange(26, 70)), chance.uniform(0, 1)) for _ in range(chance.choice([1, 2]))]
            scenes.append((background(chance, width, height), people))
        frames, dark = [], set()
        for number in range(count):
            ground, people = scenes[number // 20 % 2 if cuts else 0]
            frame = ground.copy()
            for index, (patch, phase) in enumerate(people):
                x = int((width / len(people) - patch.shape[1]) * (0.5 + 0.45 * np.sin((0 if shadow else number / 40) + 6 * phase)) + index * width / len(people))
                paste(frame, patch, max(x, 0), int((height - patch.shape[0]) * phase))
            if shadow and number % 30 in range(18, 28):
                dark.add(number)
                half = frame[:, width // 2 :]
                frame[:, width // 2 :] = (half * 0.12).astype(np.uint8)
            frames.append(frame)
        return frames, dark

    def turned(self, seed):
        chance = random.Random(f"turned {seed}")
        frames, _ = self.moving(chance, 12, 360, 640)
        mirrored, turns = chance.randrange(2), chance.randrange(4)
        squeeze = chance.choice([1, 1, 0.5])
        by_stream = bool(mirrored) or chance.randrange(2)

        # As stored: a turn back, then mirrored. Players mirror, then turn clockwise.
        def lie(frame):
            frame = np.rot90(frame, turns)
            frame = frame[:, ::-1] if mirrored else frame
            if squeeze != 1:
                frame = cv2.resize(frame, (int(frame.shape[1] * squeeze) // 2 * 2, frame.shape[0]), interpolation=cv2.INTER_AREA)
            return np.ascontiguousarray(frame)

        stored = [lie(frame) for frame in frames]
        aspect = () if squeeze == 1 else ("-vf", "setsar=2/1")
        path = self.write("lies.mp4", stored, options=(*aspect, "-bf", "0"))
        result = self.folder / ("lies.ts" if by_stream else "lies-box.mp4")
        if by_stream:
            # H.264, D.2.17: mirrored first, then turned counter-clockwise by anticlockwise_rotation.
            what = f"h264_metadata=display_orientation=insert:rotate={-90 * turns}" + (":flip=horizontal" if mirrored else "")
            subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", str(path), "-c", "copy", "-bsf:v", what, "-f", "mpegts", str(result)], check=True)
        else:
            subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", str(path), "-c", "copy", "-metadata:s:v", f"rotate={90 * turns % 360}", str(result)], check=True)
        after = self.run({"id": "in", "use": "file-source", "path": str(result)}, chance.choice([{}, {"lookAheadSeconds": 0}]))
        height, width = stored[0].shape[:2]
        upright_height, upright_width = frames[0].shape[:2]

        def place(box):
            x, y, w, h = box
            corners = [(x, y), (x + w, y + h)]
            points = []
            for px, py in corners:
                wide, high = upright_width, upright_height
                for _ in range(turns):
                    px, py = py, wide - px
                    wide, high = high, wide
                if mirrored:
                    px = wide - px
                points.append((px * squeeze, py))
            (ax, ay), (bx, by) = points
            return min(ax, bx), min(ay, by), abs(ax - bx), abs(ay - by)

        return sum(self.judge("turned", seed, frame, one, place) for frame, one in zip(frames, after))

    def clips(self, seed):
        chance = random.Random(f"clips {seed}")
        kind = chance.choice(["shadow", "cuts", "gap", "back", "plain"])
        frames, dark = self.moving(chance, 50, shadow=kind == "shadow", cuts=kind == "cuts")
        options = {"gap": ("-vf", "setpts='PTS+gte(N,20)*3/TB'"), "back": ("-vf", "setpts='PTS+gte(N,20)*3/TB'")}.get(kind, ())
        path = self.write("clip.mp4" if kind != "back" else "clip.ts", frames, options=(*options, "-bf", "0", "-vsync", "passthrough"))
        after = self.run({"id": "in", "use": "file-source", "path": str(path)}, chance.choice([{}, {"lookAheadSeconds": 0}, {"detectionSize": 320, "lookAheadSeconds": 0}]), "out.mp4")
        # In the dark no search finds the face: what the picture before shows must stay covered.
        bad = sum(self.judge("clips", seed, frame, one, side=320) for number, (frame, one) in enumerate(zip(frames, after)) if number not in dark)
        for number in sorted(dark):
            if number < min(len(after), len(frames)) and number - 18 >= 0:
                lit = frames[number - number % 30 + 17]
                bad += self.judge("clips", seed, lit, after[number], side=320)
        return bad

    def live(self, seed):
        chance = random.Random(f"live {seed}")
        count = 150
        frames, dark = self.moving(chance, count, shadow=chance.randrange(2) == 0)
        for number, frame in enumerate(frames):
            frame[:12] = 0
            for bit in range(12):
                if number >> bit & 1:
                    frame[:12, 16 * bit : 16 * bit + 16] = 255
        path = self.write("live.ts", frames, rate=30, options=("-bf", "0", "-g", "15", "-tune", "zerolatency"))
        slow, busy, pauses = chance.choice([0, 0.05]), chance.randrange(2), chance.randrange(2)
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)

        def serve():
            peer, _ = listener.accept()
            feed = subprocess.Popen(["ffmpeg", "-v", "error", "-re", "-i", str(path), "-c", "copy", "-f", "mpegts", "-"], stdout=subprocess.PIPE)
            try:
                while data := feed.stdout.read1(65536):
                    peer.sendall(data)
            except OSError:
                feed.kill()
            peer.close()
            feed.wait()

        server = threading.Thread(target=serve)
        server.start()
        pipe = self.folder / "out.pipe"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        source = {"id": "net", "use": "network-source", "url": f"tcp://127.0.0.1:{listener.getsockname()[1]}", "whileLost": "stop"}
        chain = self.chain(source, {"facesFile": str(self.folder / "faces.jsonl"), "waitMs": 200, "detectionSize": 320}, pipe.name, link={"queue": 0})
        load = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 if busy else 0)]
        program = subprocess.Popen([PROGRAM, chain, "--for", "12", "--commands", "--quiet"], env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        answers = []
        threading.Thread(target=lambda: answers.extend(program.stdout), daemon=True).start()
        out = []
        try:
            with open(pipe, "rb") as reader:
                reader.readline()
                size, begin, paused = 640 * 360 * 3 // 2, time.monotonic(), 0
                while reader.readline():
                    data = reader.read(size)
                    if len(data) < size:
                        break
                    out.append(data)
                    time.sleep(slow)
                    if pauses and paused == 0 and time.monotonic() - begin > 2:
                        paused = 1
                        program.stdin.write('{"stage": "face", "command": "pause"}\n')
                        program.stdin.flush()
                        threading.Timer(0.5, lambda: (program.stdin.write('{"stage": "face", "command": "resume"}\n'), program.stdin.flush())).start()
        finally:
            for one in load:
                one.kill()
            program.terminate()
            program.wait(20)
            if paused and not any('"ok":true' in answer for answer in answers):
                raise RuntimeError(f"the pause was not answered: {answers}")
            server.join()
            listener.close()
        raw = subprocess.run(["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", "640x360", "-i", "-", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], input=b"".join(out), capture_output=True).stdout
        bad = 0
        for one in np.frombuffer(raw, np.uint8).reshape(-1, 360, 640, 3):
            # A picture that is covered whole hides its number too, and shows nothing.
            if ((one[..., 0] > 150) & (one[..., 1] < 120) & (one[..., 2] > 150)).mean() > 0.95:
                continue
            number = sum(int(one[6, 16 * bit + 8].mean() > 128) << bit for bit in range(12))
            if number >= count:
                continue
            source_of = number if number not in dark else number - number % 30 + 17
            if source_of < 0 or source_of >= count:
                continue
            bad += self.judge("live", seed, frames[source_of], one, side=320)
        return bad


def main():
    options = argparse.ArgumentParser()
    kinds = {"stills": 500, "crowds": 20, "turned": 20, "clips": 20, "live": 20}
    for kind, count in kinds.items():
        options.add_argument(f"--{kind}", type=int, default=count)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", choices=list(kinds))
    options.add_argument("--keep", help="a folder for what is made, which stays")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        bench = Bench(folder)
        for kind in [options.only] if options.only else kinds:
            count, begin, bad = getattr(options, kind), time.monotonic(), 0
            found = bench.found
            for seed in range(options.seed, options.seed + count):
                one = getattr(bench, kind)(seed)
                if one:
                    print(f"{kind} {seed}: {one} faces uncovered", flush=True)
                bad += one
            found = bench.found - found
            print(f"{kind}: {count} cases, {found} faces that one search alone finds, {bad} uncovered ({time.monotonic() - begin:.0f} s)", flush=True)
            if count and found < count // 2:
                print(f"{kind}: too few faces are found to test anything")
                bench.uncovered += 1
    print(f"{int(bench.uncovered == 0)} passed, {int(bench.uncovered > 0)} failed")
    sys.exit(1 if bench.uncovered else 0)


if __name__ == "__main__":
    main()
