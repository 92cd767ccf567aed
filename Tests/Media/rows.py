# SPDX-License-Identifier: Apache-2.0
"""One clip in each container and over each protocol, into each container and over RTSP, decoded, with its sound copied, and undecoded.

    python3 Tests/Media/rows.py [--program .build/release/framehost] [--only INPUT] [--files]

Asked of each result (measure.py): each picture once and in order; flash to beep within 10 ms of where the input has it (live and over RTSP 40 ms), on both channels, at the right pitch; as
long as the input; 24 colours. What gets lost of a live stream on a busy machine is right where the run says so. Ends with 1 where one of them is wrong.
"""

import argparse
import functools
import http.server
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

import measure

SECONDS = 6
X264 = ["-c:v", "libx264", "-preset", "veryfast", "-g", 25, "-bf", 2, "-sc_threshold", 0, "-crf", 16]
AAC = ["-c:a", "aac", "-b:a", "160k"]
INPUTS = {
    "mp4": ("clip.mp4", [*X264, *AAC]),
    "mov": ("clip.mov", [*X264, "-c:a", "pcm_s16le"]),
    "mkv": ("clip.mkv", [*X264, *AAC]),
    "ts": ("clip.ts", [*X264, "-c:a", "mp2", "-b:a", "256k"]),
    "flv": ("clip.flv", [*X264, *AAC]),
    # Cameras do not reorder, and RTP of gst-rtsp-server has the pictures' own times.
    "rtsp": ("still.mp4", [*X264, "-bf", 0, *AAC]),
    "http": ("aac.ts", [*X264, *AAC]),
    "hls": ("hls.m3u8", None),
}
STREAMS = ["rtsp", "http", "hls"]
WAYS = ["decoded", "sound copied", "undecoded"]
TOLERANCE = 0.010
# Pictures of a stream are placed by when they come, and step where a connection settles; decoded sound follows within a second or two. ffmpeg's reader of RTP counts
# the samples from its first packet on, and moves them only where they are far off.
TOLERANCE_LIVE = 0.040


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Peers:
    """The clips and what serves them."""

    def __init__(self, folder):
        self.folder = folder
        for name, codec in INPUTS.values():
            if codec:
                measure.make_clip(f"{folder}/{name}", 0, SECONDS, codec, patches=True)
        # 2 s a part: a live reader begins three parts before the end, and this one is whole.
        measure.tool("ffmpeg", "-nostdin", "-v", "error", "-i", f"{folder}/clip.mp4", "-c", "copy", "-f", "hls", "-hls_time", 2, "-hls_playlist_type", "vod",
                     f"{folder}/hls.m3u8")
        self.web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
        threading.Thread(target=self.web.serve_forever, daemon=True).start()
        self.rtsp_port = free_port()
        self.rtsp = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), "serve.py"), str(self.rtsp_port), f"{folder}/still.mp4"],
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if self.rtsp.stdout.readline().strip() != b"ready":
            raise measure.Wrong("gst-rtsp-server does not start: gir1.2-gst-rtsp-server-1.0 is needed")

    def end(self):
        self.web.shutdown()
        self.rtsp.kill()
        self.rtsp.wait()

    def source(self, name):
        file = f"{self.folder}/{INPUTS[name][0]}"
        web = f"http://127.0.0.1:{self.web.server_address[1]}/{INPUTS[name][0]}"
        if name == "rtsp":
            return {"use": "network-source", "url": f"rtsp://127.0.0.1:{self.rtsp_port}/live", "whileLost": "stop"}
        if name in ("http", "hls"):
            return {"use": "network-source", "url": web, "whileLost": "stop"}
        return {"use": "file-source", "path": file, "pace": "realtime"}

    def truth(self, name):
        return {"hls": "clip.mp4"}.get(name, INPUTS[name][0])


def containers(name, way):
    """Those that can hold it; the others are refused by name before the run, as other tests check."""
    return ["mov", "mkv"] if name == "mov" and way != "decoded" else ["mp4", "mov", "mkv"]


def stages(peers, name, way, port):
    source = {"id": "in", **peers.source(name)}
    is_live = source["use"] == "network-source"
    found = [source]
    if way == "undecoded":
        source["decode"] = False
        video = "in"
    else:
        found.append({"id": "h264", "use": "x264-encoder", "preset": "veryfast", "crf": 18, "keyframeSeconds": 1})
        video = "h264"
    # The sound of a stream comes by a link, and is encoded unless the stream gives it as it is.
    links = way == "decoded" or is_live
    if links and not (is_live and way == "undecoded"):
        found.append({"id": "aac", "use": "audio-encoder", "from": "in.audio", "bitrateKbps": 160})
    sound = "in.audio" if is_live and way == "undecoded" else "aac"
    for ending in containers(name, way):
        recorder = {"id": f"to-{ending}", "use": "recorder", "path": f"{peers.folder}/out.{ending}", "overwrite": True}
        found.append({**recorder, "from": [video, sound]} if links else {**recorder, "from": video, "audio": "copy"})
    if links:
        found.append({"id": "live", "use": "rtsp-sink", "from": [video, sound], "port": port, "path": "/live", "address": "127.0.0.1"})
    return found


def run(program, peers, name, way):
    port = free_port()
    path = f"{peers.folder}/chain.json"
    with open(path, "w") as file:
        json.dump({"stages": stages(peers, name, way, port)}, file)
    for ending in ["mp4", "mov", "mkv", "rtsp.mkv"]:
        if os.path.exists(f"{peers.folder}/out.{ending}"):
            os.remove(f"{peers.folder}/out.{ending}")
    host = subprocess.Popen([program, "run", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    reader = None
    if "rtsp-sink" in open(path).read():
        while host.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.01)
        # Readers come to a stream that runs.
        time.sleep(1.2)
        # Decoded there: ffmpeg cannot write reordered pictures of RTSP as they are, for it has no decoding times.
        reader = subprocess.Popen(
            ["ffmpeg", "-nostdin", "-v", "error", "-y", "-rtsp_transport", "tcp", "-i", f"rtsp://127.0.0.1:{port}/live", "-fps_mode", "passthrough",
             "-af", "aresample=async=1:min_hard_comp=0.001",
             "-c:v", "ffv1", "-c:a", "pcm_s16le", f"{peers.folder}/out.rtsp.mkv"], stderr=subprocess.DEVNULL)
    try:
        said = host.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        host.kill()
        said = host.communicate()[1] + "\nstill running after a minute"
    if reader:
        try:
            reader.wait(20)
        except subprocess.TimeoutExpired:
            reader.kill()
            reader.wait()
    return host.returncode, said


def judge(path, truth, is_reader, is_live, said):
    """What is wrong with a result, as texts. What a busy machine loses of a live stream must be said, and is then right."""
    has_lost = is_live and "dropped" in said
    result = measure.Measured(path, patches=True)
    wrong = []
    numbers = [number for _, number in result.pictures]
    if None in numbers:
        wrong.append(f"{numbers.count(None)} pictures cannot be read")
    meant = list(range(SECONDS * measure.RATE))
    # A reader of RTSP comes after the first pictures.
    if is_reader and numbers:
        meant = meant[numbers[0] if numbers[0] in meant else 0:]
        if len(meant) < 2 * measure.RATE:
            wrong.append(f"the reader begins at picture {numbers[0]} only")
    if numbers != meant and not (has_lost and numbers == sorted(set(numbers))):
        missing = sorted(set(meant) - set(numbers))
        wrong.append(f"{len(numbers)} pictures instead of {len(meant)}, missing {missing[:8]}{' in another order' if numbers != sorted(numbers) else ''}")
    meant_late = {second: late for _, second, late in truth.pairs()}
    for time_, second, late in result.pairs():
        if second not in meant_late:
            wrong.append(f"a second {second} at {time_:.3f} s")
        elif late is None:
            # The reader's sound begins where its pictures do, give or take a packet.
            if not (is_reader and second == numbers[0] // measure.RATE):
                wrong.append(f"second {second} has no beep")
        elif abs(late - meant_late[second]) > (TOLERANCE_LIVE if is_reader or is_live else TOLERANCE) and not (is_reader and second == numbers[0] // measure.RATE):
            wrong.append(f"second {second} has its beep {1000 * (late - meant_late[second]):+.1f} ms from its place")
    right = {pitch for _, pitch in result.beeps_right}
    left = {pitch for _, pitch in result.beeps}
    if right != left:
        wrong.append(f"beeps on the left are those of seconds {sorted(left)}, on the right {sorted(right)}")
    if not is_reader and numbers:
        length = max(time_ for time_, _ in result.pictures) - min(time_ for time_, _ in result.pictures)
        if abs(length - (SECONDS - 1 / measure.RATE)) > (0.1 if is_live else 0.002):
            wrong.append(f"the pictures last {length:.3f} s")
    if result.colours and result.worst_colour() > truth.worst_colour() + 6:
        wrong.append(f"a colour is {result.worst_colour():.0f} of 255 off, in the input {truth.worst_colour():.0f}")
    return wrong


def main():
    words = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    words.add_argument("--program", default=os.environ.get("FRAMEHOST", ".build/release/framehost"))
    words.add_argument("--only", choices=list(INPUTS))
    words.add_argument("--files", action="store_true", help="leave out the streams, which a busy machine plays late")
    asked = words.parse_args()
    count = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        peers = Peers(folder)
        try:
            for name in [asked.only] if asked.only else [name for name in INPUTS if not asked.files or name not in STREAMS]:
                truth = measure.Measured(f"{folder}/{peers.truth(name)}", patches=True)
                for way in WAYS:
                    status, said = run(asked.program, peers, name, way)
                    found = [ending for ending in ["mp4", "mov", "mkv", "rtsp.mkv"] if os.path.exists(f"{folder}/out.{ending}")]
                    is_live = name in STREAMS
                    # A stream that ends is a failure of the run: "whileLost": "stop".
                    if status and not is_live or len(found) < len(containers(name, way)):
                        count, failed = count + 1, failed + 1
                        print(f"FAILED {name}, {way}: status {status}: {said.strip()[-400:]}")
                    for ending in found:
                        count += 1
                        try:
                            wrong = judge(f"{folder}/out.{ending}", truth, ending == "rtsp.mkv", is_live, said)
                        except measure.Wrong as error:
                            wrong = [str(error)]
                        if wrong:
                            failed += 1
                            print(f"FAILED {name}, {way}, {'RTSP' if ending == 'rtsp.mkv' else ending}: {'; '.join(wrong[:5])}")
                            print("    said: " + " / ".join(line for line in said.splitlines() if "warning" in line)[:400])
                    sys.stdout.flush()
        finally:
            peers.end()
    print(f"{count} results, {failed} wrong")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
