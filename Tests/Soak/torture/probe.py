# SPDX-License-Identifier: Apache-2.0
"""Opens a finished recording with libavformat, in a process of its own: what ffprobe does, forty times as fast.

    python3 probe.py      reads paths, a line each; answers with `video-packets other-packets` (the first -1 without a video stream) or `error TEXT`
"""

import ctypes
import ctypes.util
import subprocess
import sys


class Prober:
    """[parent] Asks a child, and another one when that has died."""

    def __init__(self, script):
        self.script, self.child = script, None

    def ask(self, path, of_sound=False):
        """(video packets, None) or (0, what is wrong); of a recording of sound alone its packets."""
        if self.child is None or self.child.poll() is not None:
            self.child = subprocess.Popen([sys.executable, self.script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.child.stdin.write(path + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            return 0, answer or "the prober died"
        video, other = map(int, answer.split())
        if of_sound:
            return (other, None) if video < 0 and other > 0 else (0, f"of sound alone, and it has {video} pictures and {other} blocks")
        return (video, None) if video >= 0 else (0, "error it has no video stream")


def main():
    format = ctypes.CDLL(ctypes.util.find_library("avformat"))
    codec = ctypes.CDLL(ctypes.util.find_library("avcodec"))
    util = ctypes.CDLL(ctypes.util.find_library("avutil"))
    util.av_log_set_level(-8)
    codec.av_packet_alloc.restype = ctypes.c_void_p
    packet = ctypes.c_void_p(codec.av_packet_alloc())
    # AVPacket: buf, pts, dts, data, size, stream_index.
    stream_of = ctypes.cast(packet.value + 36, ctypes.POINTER(ctypes.c_int))

    def count(path):
        context = ctypes.c_void_p()
        result = format.avformat_open_input(ctypes.byref(context), path.encode(), None, None)
        if result < 0:
            return "error it does not open: " + text(result)
        try:
            result = format.avformat_find_stream_info(context, None)
            if result < 0:
                return "error its streams are not known: " + text(result)
            video = format.av_find_best_stream(context, 0, -1, -1, None, 0)
            counts = [0 if video >= 0 else -1, 0]
            while True:
                result = format.av_read_frame(context, packet)
                if result < 0:
                    break
                counts[0 if video >= 0 and stream_of[0] == video else 1] += 1
                codec.av_packet_unref(packet)
            if result != -541478725:
                return "error reading ends with: " + text(result)
            return f"{counts[0]} {counts[1]}"
        finally:
            format.avformat_close_input(ctypes.byref(context))

    def text(code):
        buffer = ctypes.create_string_buffer(128)
        util.av_strerror(code, buffer, 128)
        return buffer.value.decode(errors="replace")

    for line in sys.stdin:
        print(count(line.rstrip("\n")), flush=True)


if __name__ == "__main__":
    main()
