#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well face-effect finds and follows faces, on labelled clips: the figures of docs/face-effect.md.

    face-figures.py MEDIA [--detector yunet|haar|lbp]... [--privacy] [--options '{"every": 3}']

MEDIA has clips and, in truth/, a JSON file for each with its faces (see --help-truth). $FRAMEHOST names the program.
A true face counts as found where a reported box overlaps it by an IoU of 0.3, and as covered where 95 % of its area lie within covered regions.
"""
import argparse, json, os, pathlib, resource, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
HOST = os.environ.get('FRAMEHOST', str(ROOT / '.build/release/framehost'))
TRUTH = '{"clip", "width", "height", "fps", "ignore": [{"frames": [first, last], "box"}], "frames": [[{"id", "box": [x, y, w, h]}, ...], ...]}'
SAME = 0.3
COVERED = 0.95


def overlap(a, b):
    w = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    h = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return w * h if w > 0 and h > 0 else 0.0


def iou(a, b):
    both = overlap(a, b)
    return both / (a[2] * a[3] + b[2] * b[3] - both)


def share_covered(box, regions):
    """By a grid of 20 by 20 points."""
    inside = 0
    for row in range(20):
        for column in range(20):
            x, y = box[0] + box[2] * (column + 0.5) / 20, box[1] + box[3] * (row + 0.5) / 20
            inside += any(r[0] <= x <= r[0] + r[2] and r[1] <= y <= r[1] + r[3] for r in regions)
    return inside / 400


def area(regions, width, height):
    """Of what they cover together within the picture."""
    edges = sorted({min(max(v, 0), width) for r in regions for v in (r[0], r[0] + r[2])})
    total = 0.0
    for left, right in zip(edges, edges[1:]):
        end = 0.0
        for top, bottom in sorted((max(r[1], 0), min(r[1] + r[3], height)) for r in regions if r[0] <= left and r[0] + r[2] >= right):
            total += (right - left) * max(bottom - max(top, end), 0)
            end = max(end, bottom)
    return total


def percentile(values, share):
    values = sorted(values)
    return values[min(int(len(values) * share), len(values) - 1)] if values else float('nan')


def run(clip, options):
    """The lines of face-effect for a clip, and the processor's seconds of all the run (decoding too)."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'faces.jsonl')
        stage = {'id': 'face', 'use': 'face-effect', 'facesFile': out, **options}
        if not options.get('privacy'):
            stage['draw'] = False
        chain = os.path.join(folder, 'chain.json')
        with open(chain, 'w') as file:
            json.dump({'stages': [{'id': 'in', 'use': 'file-source', 'path': str(clip)}, stage, {'id': 'out', 'use': 'null-sink'}]}, file)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([HOST, chain, '--quiet'], check=True, timeout=600)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(out) as file:
            lines = [json.loads(line) for line in file]
        return lines, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def judge(truth, lines, margin):
    ignored = truth.get('ignore', [])
    found = total = covered = false = switches = 0
    first = next((i for i, line in enumerate(lines) if line['faces']), len(lines))
    after = after_total = 0
    ious, areas, raw = [], [], 0
    last_ids = {}
    whole = 0
    for index, (faces, line) in enumerate(zip(truth['frames'], lines)):
        taken = set()
        is_whole = line.get('mode') in ('starting', 'late', 'failed')
        whole += is_whole
        regions = line['covered'] if 'mode' in line else [face['box'] for face in line['faces']]
        grown = [[x - w * margin / 2, y - h * margin / 2, w * (1 + margin), h * (1 + margin)] for x, y, w, h in regions]
        for face in faces:
            total += 1
            after_total += index >= first
            is_covered = is_whole or share_covered(face['box'], grown) >= COVERED
            covered += is_covered
            best = max(((iou(face['box'], other['box']), i) for i, other in enumerate(line['faces']) if i not in taken), default=(0, -1))
            if best[0] >= SAME:
                taken.add(best[1])
                found += 1
                after += index >= first
                ious.append(best[0])
                number = line['faces'][best[1]]['id']
                switches += last_ids.get(face['id'], number) != number
                last_ids[face['id']] = number
        for i, other in enumerate(line['faces']):
            box = other['box']
            if i in taken or any(f[0] <= index <= f[1] and overlap(box, b) > 0.3 * box[2] * box[3] for f, b in ((x['frames'], x['box']) for x in ignored)):
                continue
            false += 1
        if faces and not is_whole:
            size = truth['width'], truth['height']
            areas.append(area(grown, *size) / area([f['box'] for f in faces], *size))
    frames = len(lines)
    return {
        'frames': frames, 'faces': total, 'found': found / total if total else None, 'after first': after / after_total if after_total else None,
        'covered': covered / total if total else None, 'false/frame': false / frames, 'switches': switches,
        'IoU p5': percentile(ious, 0.05) if ious else None, 'IoU p50': percentile(ious, 0.5) if ious else None,
        'area p95': percentile(areas, 0.95) if areas else None, 'searched on': sum(line['searched'] for line in lines) / frames,
        'whole': whole / frames,
    }


def jitter(lines):
    """Of a face that stands still: deviation of its middle from its mean, in pixels, after the first second."""
    boxes = [line['faces'][0]['box'] for line in lines[30:] if len(line['faces']) == 1]
    if not boxes:
        return None
    middles = [(x + w / 2, y + h / 2) for x, y, w, h in boxes]
    mean = [sum(m[i] for m in middles) / len(middles) for i in (0, 1)]
    return (sum((m[0] - mean[0]) ** 2 + (m[1] - mean[1]) ** 2 for m in middles) / len(middles)) ** 0.5


def text(value):
    return '' if value is None else f'{value:.3f}' if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('media', type=pathlib.Path, nargs='?')
    parser.add_argument('--detector', action='append')
    parser.add_argument('--privacy', action='store_true')
    parser.add_argument('--options', type=json.loads, default={})
    parser.add_argument('--clip', action='append', help='only these')
    parser.add_argument('--help-truth', action='store_true')
    given = parser.parse_args()
    if given.help_truth:
        return print(TRUTH)
    heads = None
    for detector in given.detector or ['yunet', 'haar', 'lbp']:
        for path in sorted((given.media / 'truth').glob('*.json')):
            truth = json.loads(path.read_text())
            clip = given.media / truth['clip']
            if 'fps' not in truth or not clip.exists() or (given.clip and truth['clip'] not in given.clip):
                continue
            options = {'detector': detector, 'effect': 'pixelate', **({'privacy': True, **({} if detector == 'yunet' else {'acceptMissedFaces': True})} if given.privacy else {}), **given.options}
            lines, seconds = run(clip, options)
            figures = judge(truth, lines, options.get('margin', 0.3))
            figures['jitter px'] = jitter(lines) if truth['clip'].startswith('still') else None
            figures['CPU ms/frame'] = seconds * 1000 / len(lines)
            if heads is None:
                heads = list(figures)
                print('| detector | clip | ' + ' | '.join(heads) + ' |')
                print('|---|---|' + '---|' * len(heads))
            print(f'| {detector} | {truth["clip"]} | ' + ' | '.join(text(figures[head]) for head in heads) + ' |', flush=True)


if __name__ == '__main__':
    sys.exit(main())
