#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What looking both ways covers, beside what a live chain covers: "Looking both ways" of docs/face-effect.md.

    face-archive.py MEDIA [--kind NAME]... [--clip NAME]... [--case NAME]... [--keep FOLDER]

From each labelled clip of MEDIA clips are made in which its faces are hard to find for a while (ffmpeg). Each is covered from a file with privacy:
as a live chain does it (one way, a search on 320 pixels), one way with the search of a file, and both ways.
Uncovered: less than 95 % of a true face's box lie within what is covered. $FRAMEHOST names the program, $FRAMEHOST_DATA a folder with the model.
"""
import argparse, importlib.util, json, math, os, pathlib, statistics, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location('figures', HERE / 'face-figures.py')
figures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(figures)
MARGIN = 0.3
BACKGROUND, WIDTH, HEIGHT = 'no_face_bottles.mp4', 640, 360
CASES = {
    'live': {'lookAheadSeconds': 0, 'detectionSize': 320},
    'one way': {'lookAheadSeconds': 0},
    'both ways': {},
}


def fit(truth):
    """Clips that are made have at most 640 pixels a row."""
    return min(1, 640 / truth['width'])


def encode(source, graph, path, count):
    # Labels count decoded frames.
    subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-y', '-i', source, '-vf', f'{graph},format=yuv420p', '-an', '-frames:v', str(count), '-c:v', 'libx264',
                    '-preset', 'veryfast', '-crf', '14', path], check=True)


def dimmed(level):
    """Light by an expression of t, 0...1, and the noise that a camera has in the dark."""
    return f"eq=contrast='{level}':brightness='-0.5*(1-({level}))':eval=frame,noise=alls=14:allf=t"


def ramp(t, low, dark, edge=0.2):
    """1, but `low` from dark[0] to dark[1], with edges of `edge` seconds."""
    a, b = dark
    return f'1-{1 - low}*clip(min(({t}-{a})/{edge},({b}-{t})/{edge}),0,1)'


def as_it_is(media, truth, path):
    encode(media / truth['clip'], 'null', path, len(truth['frames']))
    return boxes(truth)


def scaled(truth):
    return f'scale=iw*{fit(truth)}:-2,' if fit(truth) < 1 else ''


def boxes(truth, scale=1):
    return [[[v * scale for v in face['box']] for face in frame] for frame in truth['frames']]


def light_comes_on(media, truth, path):
    encode(media / truth['clip'], scaled(truth) + dimmed('min(0.1+max(t-0.6,0)*0.9,1)'), path, len(truth['frames']))
    return boxes(truth, fit(truth))


def light_goes(media, truth, path):
    encode(media / truth['clip'], scaled(truth) + dimmed(ramp('mod(t,2.2)', 0.1, (0.7, 1.9))), path, len(truth['frames']))
    return boxes(truth, fit(truth))


def turned(media, truth, path):
    """The picture rolls to either side, as a phone does that is picked up: 100 degrees in two seconds."""
    w, h = (round(truth[side] * fit(truth)) for side in ('width', 'height'))
    side = int(math.hypot(w, h) / 2) * 2
    encode(media / truth['clip'], scaled(truth) + f"rotate=a='1.75*sin(2*PI*t/4)':ow={side}:oh={side}:c=0x505860", path, len(truth['frames']))
    result = []
    for number, frame in enumerate(boxes(truth, fit(truth))):
        angle = 1.75 * math.sin(2 * math.pi * number / truth['fps'] / 4)
        c, s = math.cos(angle), math.sin(angle)
        turned = []
        for x, y, bw, bh in frame:
            dx, dy = x + bw / 2 - w / 2, y + bh / 2 - h / 2
            cx, cy = side / 2 + dx * c - dy * s, side / 2 + dx * s + dy * c
            # The box of the turned ellipse.
            tw, th = math.hypot(bw * c, bh * s), math.hypot(bw * s, bh * c)
            turned.append([cx - tw / 2, cy - th / 2, tw, th])
        result.append(turned)
    return result


def small(media, truth, path, width=9):
    """Faces of this width in the middle of the clip without faces."""
    faces = [box[2] for frame in boxes(truth) for box in frame]
    scale = width / statistics.median(faces)
    w, h = (max(2 * round(truth[side] * scale / 2), 2) for side in ('width', 'height'))
    x, y = (WIDTH - w) // 4 * 2, (HEIGHT - h) // 4 * 2
    graph = (f'[0]fps=30,setpts=N/30/TB[b];[1]setpts=N/30/TB,scale={w}:{h}:flags=area[f];[b][f]overlay=x={x}:y={y}:shortest=1,format=yuv420p[v]')
    subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-y', '-stream_loop', '-1', '-i', media / BACKGROUND, '-i', media / truth['clip'], '-filter_complex', graph, '-map', '[v]',
                    '-frames:v', str(len(truth['frames'])), '-c:v', 'libx264', '-preset', 'veryfast', '-crf', '14', path], check=True)
    sx, sy = w / truth['width'], h / truth['height']
    return [[[x + b[0] * sx, y + b[1] * sy, b[2] * sx, b[3] * sy] for b in frame] for frame in boxes(truth)]


def comes_near(media, truth, path):
    """From a face of 5 pixels on to one of 30, as somebody walks up to the camera."""
    faces = [box[2] for frame in boxes(truth) for box in frame]
    first, last, count = 5 / statistics.median(faces), 30 / statistics.median(faces), len(truth['frames'])
    size = [(max(2 * round(truth['width'] * s / 2), 2), max(2 * round(truth['height'] * s / 2), 2)) for s in (first * (last / first) ** (n / count) for n in range(count))]
    result = []
    with tempfile.TemporaryDirectory() as folder:
        raw = subprocess.check_output(['ffmpeg', '-nostdin', '-v', 'error', '-stream_loop', '-1', '-i', media / BACKGROUND, '-frames:v', str(count), '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-'])
        import numpy as np
        ground = np.frombuffer(raw, np.uint8).reshape(count, HEIGHT, WIDTH, 3).copy()
        raw = subprocess.check_output(['ffmpeg', '-nostdin', '-v', 'error', '-i', media / truth['clip'], '-frames:v', str(count), '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-'])
        clip = np.frombuffer(raw, np.uint8).reshape(-1, truth['height'], truth['width'], 3)
        for number, (w, h) in enumerate(size):
            # Means over areas: whole rows and columns, then the rest by index.
            picture = clip[number].astype(np.float32)
            rows = np.add.reduceat(picture, np.arange(h) * truth['height'] // h, axis=0)
            rows /= np.diff(np.append(np.arange(h) * truth['height'] // h, truth['height']))[:, None, None]
            reduced = np.add.reduceat(rows, np.arange(w) * truth['width'] // w, axis=1)
            reduced /= np.diff(np.append(np.arange(w) * truth['width'] // w, truth['width']))[None, :, None]
            x, y = (WIDTH - w) // 2, (HEIGHT - h) // 2
            ground[number, max(y, 0):y + h, max(x, 0):x + w] = reduced[max(-y, 0):max(-y, 0) + HEIGHT, max(-x, 0):max(-x, 0) + WIDTH].clip(0, 255).astype(np.uint8)
            sx, sy = w / truth['width'], h / truth['height']
            result.append([[x + b[0] * sx, y + b[1] * sy, b[2] * sx, b[3] * sy] for b in boxes(truth)[number]])
        subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-y', '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-s', f'{WIDTH}x{HEIGHT}', '-r', '30', '-i', '-', '-pix_fmt', 'yuv420p', '-c:v', 'libx264',
                        '-preset', 'veryfast', '-crf', '14', path], input=ground.tobytes(), check=True)
    return result


KINDS = {f.__name__.replace('_', ' '): f for f in (as_it_is, light_comes_on, light_goes, turned, small, comes_near)}


def run(clip, options):
    """The lines of face-effect and the processor's seconds."""
    with tempfile.TemporaryDirectory() as folder:
        out, chain = os.path.join(folder, 'faces.jsonl'), os.path.join(folder, 'chain.json')
        stage = {'id': 'face', 'use': 'face-effect', 'detector': 'yunet', 'privacy': True, 'waitMs': 60_000, 'facesFile': out, **options}
        pathlib.Path(chain).write_text(json.dumps({'stages': [{'id': 'in', 'use': 'file-source', 'path': str(clip)}, stage, {'id': 'out', 'use': 'null-sink'}]}))
        child = subprocess.Popen([figures.HOST, chain, '--quiet'])
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f'{clip}: {options}: the run failed')
        lines = [json.loads(line) for line in open(out)]
        return lines, usage.ru_utime + usage.ru_stime


def judge(true, lines):
    """Uncovered faces, and regions that lie on no face."""
    uncovered = false = 0
    for faces, line in zip(true, lines, strict=True):
        if line['mode'] in ('starting', 'late', 'failed'):
            continue
        grown = [[x - w * MARGIN / 2, y - h * MARGIN / 2, w * (1 + MARGIN), h * (1 + MARGIN)] for x, y, w, h in line['covered']]
        uncovered += sum(figures.share_covered(box, grown) < figures.COVERED for box in faces)
        false += sum(all(figures.overlap(region, face) == 0 for face in faces) for region in line['covered'])
    return uncovered, false


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('media', type=pathlib.Path)
    parser.add_argument('--kind', action='append', choices=list(KINDS))
    parser.add_argument('--clip', action='append', help='only these')
    parser.add_argument('--case', action='append', choices=list(CASES))
    parser.add_argument('--keep', type=pathlib.Path, help='folder for the clips')
    given = parser.parse_args()
    cases = {name: CASES[name] for name in given.case or CASES}
    totals = {name: [0, 0, 0.0, 0] for name in cases}
    everything = 0
    print('| clips | faces | ' + ' | '.join(f'uncovered, {name}' for name in cases) + ' |\n|---|---|' + '---|' * len(cases))
    with tempfile.TemporaryDirectory() as folder:
        folder = given.keep or pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for kind in given.kind or KINDS:
            counts, faces = dict.fromkeys(cases, 0), 0
            for path in sorted((given.media / 'truth').glob('*.json')):
                truth = json.loads(path.read_text())
                # Stored on its side: ffmpeg would turn it. The portrait is no clip.
                if given.clip and truth['clip'] not in given.clip:
                    continue
                if not any(truth['frames']) or truth['clip'].endswith('.png') or truth['clip'].startswith('phone'):
                    continue
                clip = folder / f'{kind.replace(" ", "-")}-{pathlib.Path(truth["clip"]).stem}.mp4'
                true = KINDS[kind](given.media, truth, clip)
                faces += sum(map(len, true))
                for name, options in cases.items():
                    lines, seconds = run(clip, options)
                    uncovered, false = judge(true, lines)
                    counts[name] += uncovered
                    total = totals[name]
                    total[0], total[1], total[2], total[3] = total[0] + uncovered, total[1] + false, total[2] + seconds, total[3] + len(lines)
            everything += faces
            print(f'| {kind} | {faces} | ' + ' | '.join(str(counts[name]) for name in cases) + ' |', flush=True)
    print(f'| **all** | {everything} | ' + ' | '.join(f'**{totals[name][0]}**' for name in cases) + ' |\n')
    print('| | ' + ' | '.join(cases) + ' |\n|---|' + '---|' * len(cases))
    print('| regions without a face, a frame | ' + ' | '.join(f'{t[1] / t[3]:.3f}' for t in totals.values()) + ' |')
    print('| CPU ms a frame, decoding too | ' + ' | '.join(f'{t[2] * 1000 / t[3]:.1f}' for t in totals.values()) + ' |')


if __name__ == '__main__':
    sys.exit(main())
