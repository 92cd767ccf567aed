#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From exec to exit: one 720p frame through MP4 -> decode -> centre crop 720x720 -> x264 -> MP4, beside GStreamer and ffmpeg.

Most of it is the loading of libavformat's and libavcodec's own hundred libraries, which the last row shows alone. Needs the yardstick's
lib.py in PYTHONPATH.
"""
import os, subprocess
from lib import *
import hooks

clip = os.path.join(TMP, 'one-frame.mp4')
if not os.path.exists(clip):
    subprocess.check_call(['ffmpeg', '-nostdin', '-v', 'error', '-y', '-f', 'lavfi', '-i', 'testsrc2=s=1280x720:r=30', '-frames:v', '1',
                           '-pix_fmt', 'yuv420p', '-c:v', 'libx264', clip])
out = lambda name: os.path.join(TMP, f'one-{name}.mp4')
cases = {
    'gstreamer': ['gst-launch-1.0', '-q', 'filesrc', f'location={clip}', '!', 'qtdemux', '!', 'h264parse', '!', 'avdec_h264', '!', 'videocrop',
                  'left=280', 'right=280', '!', 'x264enc', 'speed-preset=veryfast', 'tune=zerolatency', 'threads=2', '!', 'h264parse', '!',
                  'mp4mux', '!', 'filesink', f'location={out("gst")}'],
    'ffmpeg': ['ffmpeg', '-nostdin', '-hide_banner', '-loglevel', 'error', '-y', '-i', clip, '-vf', 'crop=720:720', '-c:v', 'libx264', '-preset',
               'veryfast', '-tune', 'zerolatency', '-threads', '2', out('ffmpeg')],
    'ffprobe of the same file': ['ffprobe', '-v', 'error', clip],
}
command = hooks.chain(clip, out('framehost'), False)
if command:
    cases['framehost'] = command
with Noise():
    result = interleave(cases, runs(25), warmup=2)
versions()
table(['one frame through the file chain', 'wall ms', 'range', 'CPU ms', 'peak RSS MiB'],
      [[k, f"{med(v, 'wall') * 1e3:.1f}", f"{min(r['wall'] for r in v) * 1e3:.1f}..{max(r['wall'] for r in v) * 1e3:.1f}",
        f"{med(v, 'cpu') * 1e3:.1f}", f"{med(v, 'rss_mib'):.0f}"] for k, v in result.items()])
