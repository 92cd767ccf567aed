#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at what privacy lets through, in the pixels that come out: the figures "In the pixels" of docs/face-effect.md.

    face-pixels.py MEDIA [--options '{"detectionSize": 480}']

MEDIA has clips and truth/ as for face-figures.py. Each clip is run twice, untouched and with faces replaced by a colour; what differs was covered. A true face
counts as uncovered where less than 95 % of its box differ. Clips that are stored lying are left out. Needs numpy. $FRAMEHOST names the program.
"""
import argparse, json, os, pathlib, subprocess, tempfile
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
HOST = os.environ.get('FRAMEHOST', str(ROOT / '.build/release/framehost'))


def planes(clip, stages, folder):
    """All samples that come out, in a row."""
    out, chain = os.path.join(folder, 'out.raw'), os.path.join(folder, 'chain.json')
    with open(chain, 'w') as file:
        json.dump({'stages': [{'id': 'in', 'use': 'file-source', 'path': str(clip)}, *stages, {'id': 'out', 'use': 'null-sink', 'dump': out}]}, file)
    subprocess.run([HOST, chain, '--quiet'], check=True, timeout=600)
    return np.fromfile(out, np.uint8)


def changed(a, b, width, height):
    """Where a pixel's luma or its colour differ (i420)."""
    luma = (a[:width * height] != b[:width * height]).reshape(height, width)
    both = a[width * height:] != b[width * height:]
    half = (both[:both.size // 2] | both[both.size // 2:]).reshape((height + 1) // 2, (width + 1) // 2)
    return luma | half.repeat(2, 0).repeat(2, 1)[:height, :width]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('media', type=pathlib.Path)
    parser.add_argument('--options', type=json.loads, default={})
    given = parser.parse_args()
    print('| clip | true faces | uncovered | least covered | area, 95th percentile |\n|---|---|---|---|---|')
    for path in sorted((given.media / 'truth').glob('*.json')):
        truth = json.loads(path.read_text())
        width, height, frames = truth['width'], truth['height'], truth['frames']
        if 'fps' not in truth or not any(frames) or len(frames) < 2:
            continue
        clip = given.media / truth['clip']
        stored = subprocess.check_output(
            ['ffprobe', '-v', 'error', '-select_streams', 'v', '-show_entries', 'stream=width', '-of', 'default=nk=1:nw=1', str(clip)], text=True)
        if int(stored) != width:
            continue
        with tempfile.TemporaryDirectory() as folder:
            before = planes(clip, [], folder)
            after = planes(clip, [{'id': 'face', 'use': 'face-effect', 'privacy': True, 'effect': 'replace', 'color': '#ff00ff', **given.options}], folder)
        size, shares, areas = before.size // len(frames), [], []
        for number, faces in enumerate(frames):
            where = changed(before[number * size:(number + 1) * size], after[number * size:(number + 1) * size], width, height)
            for x, y, w, h in (face['box'] for face in faces):
                part = where[max(round(y), 0):round(y + h), max(round(x), 0):round(x + w)]
                shares.append(part.mean() if part.size else 1.0)
            if faces:
                areas.append(where.sum() / sum(face['box'][2] * face['box'][3] for face in faces))
        print(f'| {truth["clip"]} | {len(shares)} | {sum(s < 0.95 for s in shares)} | {min(shares):.3f} | {np.percentile(areas, 95):.2f} |', flush=True)


if __name__ == '__main__':
    main()
