# SPDX-License-Identifier: Apache-2.0
"""The files that chains read: good ones by ffmpeg, and what is made of them by flipping, cutting and writing impossible numbers."""

import os
import shutil
import struct
import subprocess

PICTURE = "testsrc=s=64x48:r=25:d=0.8"
SOUND = ["-f", "lavfi", "-i", "sine=f=440:r=8000:d=0.8"]
H264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "5"]
AAC = ["-c:a", "aac", "-b:a", "32k"]

# Name: further inputs and options of ffmpeg. One that this machine's ffmpeg cannot make is left out, and said.
CLIPS = {
    "plain.mp4": H264,
    "sound.mp4": SOUND + H264 + AAC,
    "bframes.mp4": ["-c:v", "libx264", "-bf", "3", "-pix_fmt", "yuv420p", "-g", "8"],
    "fragments.mp4": SOUND + H264 + AAC + ["-movflags", "frag_keyframe+empty_moov+default_base_moof"],
    "turned.mov": H264 + ["-metadata:s:v", "rotate=90"],
    "aspect.mp4": ["-vf", "setsar=4/3"] + H264,
    "tall.mp4": ["-vf", "scale=16:200"] + H264,
    "tiny.mkv": ["-vf", "scale=2:2", "-c:v", "ffv1"],
    "plain.mkv": SOUND + H264 + AAC,
    "stream.mkv": H264 + ["-live", "1", "-cluster_time_limit", "200"],
    "ten-bit.mkv": ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le", "-g", "5"],
    "hevc.mp4": ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none", "-pix_fmt", "yuv420p"],
    "vp8.webm": ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8"],
    "vp9.webm": ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-frames:v", "8"],
    "mpeg4.avi": ["-c:v", "mpeg4"],
    "mjpeg.avi": ["-c:v", "mjpeg", "-pix_fmt", "yuvj422p"],
    "rgb.mov": ["-c:v", "png", "-frames:v", "6"],
    "mpeg2.ts": SOUND + ["-c:v", "mpeg2video", "-c:a", "mp2"],
    "h264.ts": H264,
    "flash.flv": H264,
    "raw.h264": H264 + ["-f", "h264"],
    "raw.y4m": ["-pix_fmt", "yuv420p", "-frames:v", "6"],
    "odd.y4m": ["-vf", "scale=63:47", "-pix_fmt", "yuv444p", "-frames:v", "6"],
    "grey.mkv": ["-c:v", "ffv1", "-pix_fmt", "gray"],
    "interlaced.mpg": ["-c:v", "mpeg2video", "-flags", "+ildct+ilme"],
    "theora.ogv": ["-c:v", "libtheora"],
    "some.gif": ["-frames:v", "8"],
    "picture.png": ["-frames:v", "1"],
    "picture.jpg": ["-frames:v", "1"],
    "sound.wav": None,
    "sizes.ts": None,
}
EXTREMES = [0, 1, -1, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63), 2**62, 9223372036860000, 10**15, 2**33]
BOXES = [b"mvhd", b"mdhd", b"tkhd", b"stts", b"ctts", b"elst", b"tfdt", b"trun", b"tfhd", b"trex", b"mehd", b"stsz", b"stsc", b"stco", b"stss",
         b"pasp", b"colr", b"avc1", b"avcC", b"hvcC", b"hdlr", b"sidx", b"udta"]
EBML = [b"\x1f\x43\xb6\x75", b"\xe7", b"\x2a\xd7\xb1", b"\xb0", b"\xba", b"\x54\xb0", b"\x54\xba", b"\x23\xe3\x83", b"\x9b", b"\xa3", b"\x44\x89"]


def make(folder):
    """Fills `folder`; the names of what could not be made."""
    os.makedirs(folder, exist_ok=True)
    missing = []

    def ffmpeg(name, *arguments):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return
        command = ["ffmpeg", "-nostdin", "-v", "error", "-y", "-bitexact", *arguments, "-threads", "1", path]
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            missing.append(name)
            if os.path.exists(path):
                os.remove(path)

    for name, options in CLIPS.items():
        if options is not None:
            ffmpeg(name, "-f", "lavfi", "-i", PICTURE, *options)
    ffmpeg("sound.wav", "-f", "lavfi", "-i", "sine=f=440:r=8000:d=0.3")
    if not missing and not os.path.exists(os.path.join(folder, "sizes.ts")):
        # The picture's size changes in mid-file.
        ffmpeg("other.ts", "-f", "lavfi", "-i", "testsrc=s=32x96:r=25:d=0.4", *H264)
        with open(os.path.join(folder, "sizes.ts"), "wb") as out:
            for part in ("h264.ts", "other.ts"):
                with open(os.path.join(folder, part), "rb") as piece:
                    shutil.copyfileobj(piece, out)
    write(folder, "empty.mp4", b"")
    write(folder, "text.mp4", b"This is not a film.\n" * 40)
    write(folder, "zeros.mkv", bytes(5000))
    late_cluster(folder)
    if shutil.which("openssl") and not os.path.exists(os.path.join(folder, "key.pem")):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", os.path.join(folder, "key.pem"), "-out",
             os.path.join(folder, "certificate.pem"), "-days", "30", "-subj", "/CN=localhost"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return missing


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def late_cluster(folder):
    """Matroska whose second cluster has the time 9223372036860000 ms."""
    try:
        with open(os.path.join(folder, "stream.mkv"), "rb") as file:
            data = file.read()
    except OSError:
        return
    write(folder, "late.mkv", cluster_times(data, lambda number, time: 9223372036860000 if number == 1 else time))


def cluster_times(data, choose):
    """Gives each cluster of a live Matroska file (of unknown size, so that nothing else changes) another time."""
    out, at, number = b"", 0, 0
    while True:
        begin = data.find(b"\x1f\x43\xb6\x75", at)
        if begin < 0:
            return out + data[at:]
        # ID, the size of eight bytes, the time stamp's ID and size.
        size_bytes = 1
        while size_bytes <= 8 and not data[begin + 4] >> (8 - size_bytes) & 1:
            size_bytes += 1
        element = begin + 4 + size_bytes
        if data[element:element + 1] != b"\xe7":
            out, at = out + data[at:element], element
            continue
        length = data[element + 1] & 0x7F
        time = int.from_bytes(data[element + 2:element + 2 + length], "big")
        out += data[at:element] + b"\xe7\x88" + struct.pack(">Q", choose(number, time) % 2**64)
        at, number = element + 2 + length, number + 1


def damage(data, dice):
    """Another file of the same kind, and what was done to it."""
    if not data:
        return data, "empty"
    kind = dice.choices(["flip", "cut", "head", "times", "numbers", "splice", "repeat", "clusters"], [4, 2, 1, 6, 3, 1, 1, 2])[0]
    out = bytearray(data)
    if kind == "flip":
        for _ in range(dice.choice([1, 3, 10, 100])):
            out[dice.randrange(len(out))] ^= 1 << dice.randrange(8)
    elif kind == "cut":
        del out[dice.randrange(len(out)):]
    elif kind == "head":
        del out[:dice.randrange(min(len(out), 400))]
    elif kind == "times":
        marks = [mark for mark in BOXES + EBML if mark in data]
        for _ in range(dice.choice([1, 1, 2, 5])):
            if not marks:
                break
            mark = dice.choice(marks)
            places, at = [], data.find(mark)
            while at >= 0 and len(places) < 50:
                places.append(at)
                at = data.find(mark, at + 1)
            at = dice.choice(places) + len(mark)
            if mark in BOXES:
                at += dice.choice([4, 8, 12, 16, 20, 24, 28]) if dice.random() < 0.8 else dice.randrange(60)
                value = dice.choice(EXTREMES)
                piece = (value % 2**64).to_bytes(8, "big") if dice.random() < 0.3 else (value % 2**32).to_bytes(4, "big")
            else:
                # Of the element keep the size, fill the value.
                size = data[at] & 0x7F if at < len(data) and data[at] & 0x80 else 0
                at += 1
                piece = (dice.choice(EXTREMES) % 256 ** max(size, 1)).to_bytes(max(size, 1), "big") if size <= 8 else b"\xff" * 4
            out[at:at + len(piece)] = piece
    elif kind == "numbers":
        for _ in range(dice.choice([1, 2, 6])):
            at = dice.randrange(min(len(out), 2000))
            out[at:at + 4] = (dice.choice(EXTREMES) % 2**32).to_bytes(4, dice.choice(["big", "little"]))
    elif kind == "splice":
        a, b = sorted(dice.randrange(len(out)) for _ in range(2))
        del out[a:b]
    elif kind == "repeat":
        a = dice.randrange(len(out))
        b = min(len(out), a + dice.randrange(1, 3000))
        out[b:b] = out[a:b] * dice.choice([1, 3])
    elif b"\x1f\x43\xb6\x75" in data:
        value = dice.choice([2**63 - 1, 2**63 // 1_000_000, 2**64 - 1, 2**62 // 1_000_000, 9223372036854, 9223372036854775, 10**12, 0])
        which = dice.randrange(4)
        out = bytearray(cluster_times(data, lambda number, time: value if number >= which else time))
    return bytes(out), kind
