#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What covering a tenth of a 1080p picture with `mask` costs, beside ffmpeg's drawbox, in one run.

    Benchmarks/mask.py [FOLDER] [ROUNDS]

FOLDER is a release build's (.build/release). Four polygons of 2.5 % each: slanted ones for `mask`, boxes of the same area for drawbox, which knows no
others. A figure is processor time of the whole process for each frame, less that of the same chain without the covering; the median of ROUNDS (9) runs
of each in turn, with their range. It needs ffmpeg.
"""
import json, os, resource, statistics, subprocess, sys, tempfile

SIZE, FRAMES = '1920x1080', 600
CORNERS = [(0.05, 0.05), (0.55, 0.1), (0.1, 0.6), (0.6, 0.7)]


def areas(cover):
    # 0.2 by 0.125: each row as long as a box's, but beginning further right from row to row.
    return [{'polygon': [[x, y], [x + 0.2, y], [x + 0.24, y + 0.125], [x + 0.04, y + 0.125]], 'with': cover} for x, y in CORNERS]


def cpu(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def framehost(program, folder, pixels, cover):
    stages = [{'id': 'in', 'use': 'test-source', 'size': SIZE, 'pattern': 'none', 'number': False, 'format': pixels, 'frames': FRAMES}]
    if cover:
        stages.append({'id': 'mask', 'use': 'mask', 'areas': areas(cover)})
    path = os.path.join(folder, f'{pixels}-{(cover or "none").strip("#")}.json')
    with open(path, 'w') as file:
        json.dump({'stages': [*stages, {'id': 'out', 'use': 'null-sink'}]}, file)
    return [program, path, '--quiet']


def ffmpeg(pixels, covers):
    boxes = ','.join(f'drawbox=x={int(x * 1920)}:y={int(y * 1080)}:w=384:h=135:color=black:t=fill' for x, y in CORNERS)
    return ['ffmpeg', '-v', 'error', '-threads', '1', '-filter_threads', '1', '-f', 'rawvideo', '-pix_fmt', {'i420': 'yuv420p'}.get(pixels, pixels),
            '-s', SIZE, '-i', '/dev/zero', '-frames:v', str(FRAMES), '-vf', boxes if covers else 'null', '-f', 'null', '-']


def main(folder, rounds):
    program = os.path.join(folder, 'framehost')
    print(f'{"1080p, a tenth covered":36} {"ms a frame":>10}  range, {rounds} rounds')
    with tempfile.TemporaryDirectory() as work:
        for pixels in ('i420', 'bgra'):
            pairs = [(f'mask, {name}, {pixels}', framehost(program, work, pixels, None), framehost(program, work, pixels, cover))
                     for name, cover in (('colour', '#000000'), ('pixelate', 'pixelate'), ('blur', 'blur'))]
            pairs.insert(1, (f'ffmpeg drawbox, {pixels}', ffmpeg(pixels, False), ffmpeg(pixels, True)))
            costs = {name: [] for name, _, _ in pairs}
            for again in range(rounds + 1):
                for name, without, covered in pairs:
                    cost = (cpu(covered) - cpu(without)) / FRAMES * 1000
                    # The first round only warms up.
                    if again > 0:
                        costs[name].append(cost)
            for name, values in costs.items():
                print(f'{name:36} {statistics.median(values):10.3f}  {min(values):.3f} to {max(values):.3f}', flush=True)


main(sys.argv[1] if len(sys.argv) > 1 else '.build/release', int(sys.argv[2]) if len(sys.argv) > 2 else 9)
