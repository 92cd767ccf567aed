# SPDX-License-Identifier: Apache-2.0
"""framehost's column in the yardstick: each function returns the command for the work its docstring names, or None."""
import json, os
from lib import FRAMEHOST, HAAR, TMP, fixture

HERE = os.path.dirname(os.path.abspath(__file__))
PLUGINS = ['--plugin-path', os.path.join(HERE, '.build', 'release')]
# GStreamer's queue holds 200 buffers or 10 MB: 7 frames of 1280x720 I420. The same here, so that the work is the same.
QUEUE = 7
SIZE = {'size': '1280x720', 'rate': 30}


def write_config(name, graph):
    path = os.path.join(TMP, name)
    with open(path, 'w') as f:
        json.dump(graph, f)
    return path


def run(name, stages, *arguments, **top):
    """The command that runs these stages in a row."""
    if not FRAMEHOST:
        return None
    return [FRAMEHOST, write_config(name, dict(top, stages=stages)), '--quiet', *PLUGINS, *arguments]


def source(frames=None, **options):
    return dict({'id': 'source', 'use': 'test-source'}, **SIZE, **({'frames': frames} if frames else {}), **options)


def hop(n, frames, threaded):
    """Source of untouched frames, n pass-through stages, a sink that drops. threaded: each on a thread of its own behind a queue."""
    link = {'link': {'queue': QUEUE}} if threaded else {}
    stages = [source(frames, pattern='none')]
    stages += [dict({'id': f'hop{i}', 'use': 'pass-through'}, **link) for i in range(n)]
    return run(f'hop-{n}-{frames}-{threaded}.json', stages + [{'id': 'sink', 'use': 'null-sink'}])


def hop_pingpong(n, frames):
    """As hop(threaded=True) with a pool of one buffer: one frame in flight."""
    stages = [source(frames, pattern='none')]
    stages += [{'id': f'hop{i}', 'use': 'pass-through', 'link': {'queue': QUEUE}} for i in range(n)]
    return run(f'pingpong-{n}.json', stages + [{'id': 'sink', 'use': 'null-sink', 'report': 'latency'}], buffers={'source': 1})


def crop(fmt, frames):
    """Eight 1080p frames round and round -> centre crop 1080x1080 -> 90 degrees clockwise -> mirror -> 720x720 -> dropped; one thread."""
    return run(f'crop-{fmt}-{frames}.json', [
        {'id': 'source', 'use': 'frame-loop', 'format': fmt, 'frames': frames},
        {'id': 'crop', 'use': 'crop-orient', 'crop': '1080x1080', 'rotate': 90, 'mirror': True, 'size': '720x720'},
        {'id': 'sink', 'use': 'null-sink'},
    ])


def crop_null(fmt, frames):
    return run(f'crop-null-{fmt}-{frames}.json', [
        {'id': 'source', 'use': 'frame-loop', 'format': fmt, 'frames': frames}, {'id': 'sink', 'use': 'null-sink'}])


# As the x264 command line's in peer-encode.py.
X264 = {'id': 'h264', 'use': 'x264-encoder', 'preset': 'veryfast', 'tune': 'zerolatency', 'bitrateKbps': 2500, 'vbvMaxKbps': 2500,
        'vbvBufferKbits': 1500, 'keyframeSeconds': 2, 'threads': 2}


def encode(y4m, out):
    return run('encode.json', [
        {'id': 'in', 'use': 'file-source', 'path': y4m}, X264, {'id': 'out', 'use': 'null-sink', 'dump': out}])


# The work of GStreamer's faceblur: its cascade over every full frame, its steps of scale, neighbours and smallest window (30 pixels), a blur.
# FACE in the environment names another face stage's options, as JSON.
FACE = {'effect': 'blur', 'detector': 'haar', 'model': HAAR, 'every': 1, 'detectionSize': 1280, 'scaleStep': 1.25, 'neighbours': 3,
        'smallestFace': 0.042, 'equalize': False}
if 'FACE' in os.environ:
    FACE = json.loads(os.environ['FACE'])


def chain(mp4_in, mp4_out, face):
    """MP4 -> decode -> [faces found and blurred] -> centre crop 720x720 -> x264 -> MP4."""
    return run('chain-face.json' if face else 'chain.json', [
        {'id': 'in', 'use': 'file-source', 'path': mp4_in},
        *([{'id': 'face', 'use': 'face-effect', **FACE}] if face else []),
        {'id': 'crop', 'use': 'crop-orient', 'aspect': '1:1'},
        X264,
        {'id': 'out', 'use': 'recorder', 'path': mp4_out, 'overwrite': True},
    ])


def rtsp(port, *before):
    """What comes before, served to any number of readers; this machine's own are not limited but in their number."""
    return run(f'rtsp-{port}.json', [*before, {'id': 'live', 'use': 'rtsp-sink', 'port': port, 'path': '/live', 'maxReaders': 100000}])


def rtsp_stamped(port):
    """A live 720p30 test pattern with the timestamp strip and snow in a corner as in GStreamer's, encoded and served."""
    return rtsp(port, source(live=True, stamp=True, number=False), {'id': 'snow', 'use': 'snow'}, X264)


def rtsp_load(port):
    """The yardstick's H.264 file round and round, as its GStreamer server plays it: no encoder's time."""
    return rtsp(port, {'id': 'source', 'use': 'access-unit-loop', 'path': fixture('load720.h264')})


def first_frame():
    """One raw 1280x720 I420 frame on standard output."""
    return run('first.json', [source(1), {'id': 'sink', 'use': 'null-sink', 'dump': '-'}])


def idle(kind):
    """A live 720p30 test pattern, dropped; encoded and dropped; encoded and served to nobody."""
    if kind == 'null':
        return run('idle-null.json', [source(live=True), {'id': 'sink', 'use': 'null-sink'}])
    if kind == 'encode':
        return run('idle-encode.json', [
            source(live=True),
            X264,
            {'id': 'sink', 'use': 'null-sink'},
        ])
    if kind == 'rtsp':
        return rtsp(8790, source(live=True), X264)
    return None
