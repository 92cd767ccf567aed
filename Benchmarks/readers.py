#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RTSP readers of H.265 beside H.264: one shared 720p30 stream of 2.5 Mbit/s of each, N readers on the loopback over TCP and UDP (the yardstick's rtsp_load.c).

Both servers play a file round and round without coding it: framehost by `file-source` with `"decode": false`, gst-rtsp-server by `gst-serve-file.py`. The figure to
compare is what a reader adds: (CPU(N) - CPU(1)) / (N - 1). NS="1 50 300" and T (seconds measured per point) can be set in the environment. Compare within one run only.
"""
import json
import os
import statistics
import subprocess
import sys
import time

from lib import ENV, TMP, Noise, build, runs, table, versions

import hooks

NS = [int(word) for word in os.environ.get('NS', '1 50 300').split()]
SECONDS = os.environ.get('T', '5')
CODERS = {
    'h264': ['-c:v', 'libx264', '-preset', 'veryfast', '-bf', '0', '-x264-params', 'aud=1:keyint=60:min-keyint=60:scenecut=0'],
    'h265': ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'aud=1:keyint=60:min-keyint=60:scenecut=0:bframes=0:repeat-headers=1:log-level=none'],
}
PORT = 8950


def clip(codec):
    path = os.path.join(TMP, f'readers.{codec}')
    if not os.path.exists(path):
        subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-y', '-f', 'lavfi', '-i', 'testsrc2=size=1280x720:rate=30:duration=10,noise=alls=12:allf=t',
                        *CODERS[codec], '-b:v', '2500k', '-maxrate', '2500k', '-bufsize', '1500k', '-pix_fmt', 'yuv420p', '-f', codec.replace('h265', 'hevc'), path + '.new'],
                       check=True)
        os.rename(path + '.new', path)
    return path


def framehost(codec, port):
    timed = clip(codec) + '.mkv'
    if not os.path.exists(timed):
        subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-y', '-framerate', '30', '-i', clip(codec), '-c', 'copy', timed], check=True)
    return hooks.rtsp(port, {'id': 'source', 'use': 'file-source', 'path': timed, 'decode': False, 'loop': True, 'pace': 'realtime'})


def gstreamer(codec, port):
    return ['/usr/bin/python3', os.path.join(hooks.HERE, 'gst-serve-file.py'), clip(codec), str(port), '30']


def measure(load, command, port, arguments):
    server = subprocess.Popen(command, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1.5)
        done = subprocess.run([load, '--json', '--pid', str(server.pid), *arguments, f'rtsp://127.0.0.1:{port}/live'], stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout) if done.stdout else None
    finally:
        server.kill()
        server.wait()


def main():
    load = build('rtsp_load.c')
    port, found = PORT, {}
    with Noise():
        for _ in range(runs(1)):
            for codec in CODERS:
                for way in ('tcp', 'udp'):
                    for count in NS:
                        for name, server in (('gst-rtsp-server', gstreamer), ('framehost', framehost)):
                            port += 1
                            result = measure(load, server(codec, port), port, [f'--{way}', '-n', str(count), '-t', SECONDS])
                            if result is None:
                                print(f'# {name} {codec} {way} N={count}: nobody could play')
                                continue
                            found.setdefault((name, codec, way, count), []).append(result)
    versions()
    rows = []
    for (name, codec, way, count), results in found.items():
        def middle(key, of=results):
            return statistics.median(result[key] for result in of)
        alone = found.get((name, codec, way, 1))
        added = f"{(middle('server_cpu_pct') - middle('server_cpu_pct', alone)) / (count - 1):.3f}" if count > 1 and alone else '-'
        rows.append([name, codec, way, count, f"{middle('server_cpu_pct'):.1f}", added, f"{middle('loss_pct'):.3f}", f"{middle('fps'):.1f}",
                     middle('starved') + middle('failed'), f"{middle('delay_p50_ms'):.1f}", f"{middle('delay_p99_ms'):.1f}", f"{middle('connect_p50_ms'):.0f}",
                     f"{middle('server_rss_mib'):.0f}"])
    table(['readers', 'codec', 'via', 'N', 'server CPU %', '% per added', 'loss %', 'fps', 'starved', 'delay p50 ms', 'p99', 'join ms', 'RSS MiB'], rows)
    return 0 if len(found) == len(CODERS) * 2 * len(NS) * 2 else 1


if __name__ == '__main__':
    sys.exit(main())
