#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many faces privacy covers, by their width in pixels: "Small faces" of docs/face-effect.md.

    face-sizes.py MEDIA [--widths 8,12,16] [--side N]... [--frames N]

Each labelled clip of MEDIA is made smaller, so that its faces have about each of the widths, and laid into the middle of the clip without faces
(640x360), which stays as it is around it; then privacy covers it from a file, with the default search and with each `detectionSize` of --side.
Covered: 95 % of the true face's box lie within what is covered. $FRAMEHOST names the program, $FRAMEHOST_DATA a folder with the model.
"""
import argparse, collections, importlib.util, json, pathlib, statistics, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location('figures', HERE / 'face-figures.py')
figures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(figures)
BACKGROUND, WIDTH, HEIGHT = 'no_face_bottles.mp4', 640, 360
BINS = [6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 160]
MARGIN = 0.3


def make(media, truth, width, count, path):
    """The clip with faces of about this width within the background; its frames' true boxes."""
    faces = [face['box'][2] for frame in truth['frames'] for face in frame]
    scale = width / statistics.median(faces)
    w, h = (max(2 * round(truth[side] * scale / 2), 2) for side in ('width', 'height'))
    if w > WIDTH or h > HEIGHT or scale > 1:
        return None
    x, y = (WIDTH - w) // 4 * 2, (HEIGHT - h) // 4 * 2
    graph = (f'[0]fps=30,setpts=N/30/TB[b];[1]setpts=N/30/TB,scale={w}:{h}:flags=area[f];'
             f'[b][f]overlay=x={x}:y={y}:shortest=1,format=yuv420p[v]')
    subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-y', '-stream_loop', '-1', '-i', media / BACKGROUND, *(['-loop', '1', '-t', '1'] if truth['clip'].endswith('.png') else []),
                    '-i', media / truth['clip'], '-filter_complex', graph, '-map', '[v]', '-frames:v', str(count), '-c:v', 'libx264', '-preset', 'ultrafast',
                    '-crf', '10', path], check=True)
    sx, sy = w / truth['width'], h / truth['height']
    return [[[x + box[0] * sx, y + box[1] * sy, box[2] * sx, box[3] * sy] for box in (face['box'] for face in frame)] for frame in truth['frames'][:count]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('media', type=pathlib.Path)
    parser.add_argument('--widths', default='7,9,11,13,15,18,22,28,40,56,80,128')
    parser.add_argument('--side', type=int, action='append', default=[])
    parser.add_argument('--frames', type=int, default=10_000)
    given = parser.parse_args()
    cases = {'default': {}, **{str(side): {'detectionSize': side} for side in given.side}}
    counts = {name: collections.defaultdict(lambda: [0, 0]) for name in cases}
    spent = dict.fromkeys(cases, 0.0)
    frames = extra = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted((given.media / 'truth').glob('*.json')):
            truth = json.loads(path.read_text())
            if not any(truth['frames']):
                continue
            for width in map(int, given.widths.split(',')):
                count = min(len(truth['frames']), given.frames)
                clip = pathlib.Path(folder, 'clip.mp4')
                boxes = make(given.media, truth, width, count, clip)
                if not boxes:
                    continue
                frames += len(boxes)
                for name, options in cases.items():
                    lines, seconds = figures.run(clip, {'detector': 'yunet', 'effect': 'pixelate', 'privacy': True, **options})
                    spent[name] += seconds
                    for faces, line in zip(boxes, lines, strict=True):
                        whole = line['mode'] in ('starting', 'late', 'failed')
                        grown = [[x - w * MARGIN / 2, y - h * MARGIN / 2, w * (1 + MARGIN), h * (1 + MARGIN)] for x, y, w, h in line['covered']]
                        for box in faces:
                            place = counts[name][max((b for b in BINS if b <= box[2]), default=0)]
                            place[0] += 1
                            place[1] += whole or figures.share_covered(box, grown) >= figures.COVERED
                        if name == 'default':
                            extra += sum(all(figures.overlap(region, face) == 0 for face in faces) for region in line['covered'])
    print('| width, pixels | faces | ' + ' | '.join(f'covered, {name}' for name in cases) + ' |\n|---|---|' + '---|' * len(cases))
    for low, high in zip(BINS, BINS[1:] + [None]):
        total = counts['default'][low][0]
        if total:
            print(f'| {low} to {high or ""} | {total} | ' + ' | '.join(f'{counts[name][low][1] / total:.3f}' for name in cases) + ' |')
    print(f'\n{frames} frames; regions without a face, default: {extra / frames:.4f} a frame; CPU ms a frame, decoding too: '
          + ', '.join(f'{name} {spent[name] * 1000 / frames:.1f}' for name in cases))


if __name__ == '__main__':
    sys.exit(main())
