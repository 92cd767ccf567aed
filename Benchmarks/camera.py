#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a camera to the decoded picture at a client, beside GStreamer in the same run; processor time likewise.

    python3 Benchmarks/camera.py [ROUNDS]       needs the release build and what `make test-camera` needs, no camera and no yardstick

In the virtual machine of Tests/Camera/vm a framehost chain feeds a camera of v4l2loopback with pictures that carry the moment they were painted (the
strip of `test-source`). Each server in turn takes them from there, encodes with the same settings of x264 and serves RTSP; a client of GStreamer decodes
and reads the strip. The machine is emulated, five to twenty times slower than this one: compare within a run.

gst, default   v4l2src ! x264enc ! rtph264pay behind gst-rtsp-server as it comes: its sinks hold each buffer until its time and the pipeline's latency
gst, no sync   the same with the sinks' clock sync switched off by the application: gst-rtsp-server at its best

In the guest: camera.py serve PORT LAUNCH [--nosync], camera.py play URL SECONDS.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
WIDTH, HEIGHT, RATE, SECONDS = 320, 240, 15, 10


# --- in the guest ---------------------------------------------------------------------------------------------------------------------

def gstreamer():
    import gi
    gi.require_version('Gst', '1.0')
    from gi.repository import GLib, Gst
    Gst.init(None)
    return gi, GLib, Gst


def serve(port, launch, *flags):
    gi, GLib, Gst = gstreamer()
    gi.require_version('GstRtspServer', '1.0')
    from gi.repository import GstRtspServer
    server = GstRtspServer.RTSPServer()
    server.set_address('127.0.0.1')
    server.set_service(port)
    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(f'( {launch} )')
    factory.set_shared(True)

    def unsync(media):
        pipeline = media.get_element().get_parent()
        elements = pipeline.iterate_recurse()
        while True:
            result, element = elements.next()
            if result != Gst.IteratorResult.OK:
                break
            if element.find_property('sync'):
                element.set_property('sync', False)
        return False

    def configure(_, media):
        # PLAY switches it on again: later.
        media.connect('new-state', lambda media, _: GLib.timeout_add(500, unsync, media))

    if '--nosync' in flags:
        factory.connect('media-configure', configure)
    server.get_mount_points().add_factory('/live', factory)
    server.attach(None)
    print('serving', flush=True)
    GLib.MainLoop().run()


def crc8(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 7) & 0xFF if crc & 0x80 else crc << 1 & 0xFF
    return crc


def read_strip(luma, width, height, stride):
    """Microseconds of CLOCK_MONOTONIC, or None (shared/timestamp-strip: 64 cells across the top 24th)."""
    y, word = height // 48, 0
    for k in range(64):
        x = (2 * k + 1) * width // 128
        mean = sum(luma[(y + dy) * stride + x + dx] for dy in (-1, 0, 1) for dx in (-1, 0, 1)) / 9
        word = word << 1 | (mean >= 126)
    data = word.to_bytes(8, 'big')
    return int.from_bytes(data[1:7], 'big') if data[0] == 0xB2 and crc8(data[1:7]) == data[7] else None


def play(url, seconds):
    _, GLib, Gst = gstreamer()
    pipeline = Gst.parse_launch(
        f'rtspsrc location={url} protocols=tcp latency=0 ! rtph264depay ! video/x-h264,stream-format=avc,alignment=au ! avdec_h264 max-threads=1 ! '
        'video/x-raw,format=I420 ! appsink name=z sync=false max-buffers=4 emit-signals=true')
    delays, unreadable = [], 0
    begin = None

    def look(sink):
        nonlocal begin, unreadable
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        sample = sink.emit('pull-sample')
        begin = begin or now
        # The first two seconds are for caches, clocks and the server's own begin.
        if sample and now - begin > 2_000_000:
            structure = sample.get_caps().get_structure(0)
            width, height = structure.get_value('width'), structure.get_value('height')
            buffer = sample.get_buffer()
            moment = read_strip(buffer.extract_dup(0, width * (height // 24 + 2)), width, height, (width + 3) // 4 * 4)
            if moment is None:
                unreadable += 1
            else:
                delays.append((now - moment) / 1000)
        return Gst.FlowReturn.OK

    pipeline.get_by_name('z').connect('new-sample', look)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(int(float(seconds) * Gst.SECOND), Gst.MessageType.ERROR | Gst.MessageType.EOS)
    if message:
        print(message.parse_error() if message.type == Gst.MessageType.ERROR else 'the stream ended', file=sys.stderr)
    pipeline.set_state(Gst.State.NULL)
    delays.sort()

    def quantile(share):
        return round(delays[int((len(delays) - 1) * share)], 1) if delays else None

    print(json.dumps({'frames': len(delays), 'unreadable': unreadable, 'min': quantile(0), 'p50': quantile(.5), 'p95': quantile(.95), 'max': quantile(1)}))


# --- here -----------------------------------------------------------------------------------------------------------------------------

JOB = r'''
cd /out
. ./environment
host="$BINARIES/framehost"
modprobe v4l2loopback devices=1 video_nr=10 card_label=camera exclusive_caps=1
"$host" run feed.json >feed.out 2>&1 &
feed=$!
for _ in $(seq 300); do v4l2-ctl -d /dev/video10 --info | sed -n '/Device Caps/,$p' | grep -q 'Video Capture' && break; sleep 0.1; done
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
measure() { # NAME PID URL
  # What plays first waits for the server's port, and for its own start.
  for _ in $(seq 300); do ss -ltn | grep -q ":$PORT " && break; sleep 0.1; done
  sleep 2
  local before=$(ticks $2) from=$(cut -d' ' -f1 /proc/uptime)
  python3 camera.py play "rtsp://127.0.0.1:$PORT/live" $WAIT >"$1.json" 2>"$1.err"
  echo "$(( $(ticks $2) - before )) $from $(cut -d' ' -f1 /proc/uptime)" >"$1.cpu"
  kill $2
  wait $2
}
for round in $(seq $ROUNDS); do
  PORT=$((8600 + 10 * round))
  sed "s/PORT/$PORT/" ours.json >ours-$round.json
  echo "framehost $round"
  "$host" run ours-$round.json >ours-$round.out 2>&1 &
  measure framehost-$round $!
  for way in default nosync; do
    PORT=$((PORT + 1))
    echo "gst $way $round"
    python3 camera.py serve $PORT "$LAUNCH" --$way >gst-$way-$round.out 2>&1 &
    measure gst-$way-$round $!
  done
done
kill $feed
exit 0
'''


def main(rounds=2):
    root = HERE.parent
    out = root / '.build/camera-bench'
    subprocess.run(['rm', '-rf', out], check=True)
    out.mkdir(parents=True)
    size = f'{WIDTH}x{HEIGHT}'
    encoder = {'id': 'h264', 'use': 'x264-encoder', 'preset': 'ultrafast', 'tune': 'zerolatency', 'bitrateKbps': 600, 'keyframeSeconds': 2, 'threads': 1}
    (out / 'feed.json').write_text(json.dumps({'stages': [
        {'id': 'p', 'use': 'test-source', 'size': size, 'rate': RATE, 'live': True, 'stamp': True, 'number': False},
        {'id': 'camera', 'use': 'v4l2-sink', 'device': '/dev/video10'}]}))
    (out / 'ours.json').write_text(json.dumps({'stages': [
        {'id': 'cam', 'use': 'v4l2-source', 'device': '/dev/video10', 'size': size, 'format': 'i420', 'rate': RATE}, encoder,
        {'id': 'live', 'use': 'rtsp-sink', 'port': 'PORT', 'path': '/live'}]}).replace('"PORT"', 'PORT'))
    launch = (f'v4l2src device=/dev/video10 ! video/x-raw,format=I420,width={WIDTH},height={HEIGHT} ! x264enc speed-preset=ultrafast tune=zerolatency '
              f'bitrate=600 key-int-max={2 * RATE} threads=1 ! rtph264pay name=pay0 pt=96 config-interval=-1')
    binaries = pathlib.Path(os.environ.get('BINARIES', root / '.build/release')).resolve()
    (out / 'environment').write_text(f"BINARIES={binaries} ROUNDS={rounds} WAIT={SECONDS + 10} LAUNCH='{launch}'\n")
    (out / 'job.sh').write_text(JOB)
    (out / 'camera.py').write_text(pathlib.Path(__file__).read_text())
    vm = root / 'Tests/Camera/vm'
    subprocess.run([vm, 'prepare'], check=True)
    subprocess.run([vm, 'run', out, str(120 + 120 * int(rounds))], check=True)
    hertz = os.sysconf('SC_CLK_TCK')
    print(f'{"camera to client":16} {"frames":>6} {"min ms":>7} {"p50":>7} {"p95":>7} {"max":>7} {"unreadable":>10} {"server CPU":>10}')
    for name, title in (('framehost', 'framehost'), ('gst-default', 'gst, default'), ('gst-nosync', 'gst, no sync')):
        found, loads = [], []
        for number in range(1, int(rounds) + 1):
            found.append(json.loads((out / f'{name}-{number}.json').read_text() or '{}'))
            ticks, begin, end = (float(word) for word in (out / f'{name}-{number}.cpu').read_text().split())
            loads.append(ticks / hertz / (end - begin) * 100)
        if not all(result.get('frames') for result in found):
            print(f'{title}: no picture: {found}')
            continue
        middle = [f'{statistics.median(result[key] for result in found):7.1f}' for key in ('min', 'p50', 'p95', 'max')]
        print(f'{title:16} {sum(r["frames"] for r in found):6} {" ".join(middle)} {sum(r["unreadable"] for r in found):10} {statistics.median(loads):9.0f}%')


if __name__ == '__main__':
    role = {'serve': serve, 'play': play}.get(sys.argv[1] if len(sys.argv) > 1 else '')
    role(*sys.argv[2:]) if role else main(*sys.argv[1:2])
