#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the plugins' painting and reading of pictures costs in two builds of framehost, one beside the other.

    Benchmarks/paint.py FOLDER OTHER_FOLDER [ROUNDS]

Each folder is a release build's (.build/release, or a copy of its program and libraries). Every piece of work is one chain; the two programs run it
in turn, and the ratio is taken round by round. Figures are the whole process's processor time for each frame: source and sink cost some 0.1 µs of it.
"""
import json, os, resource, statistics, subprocess, sys, tempfile


def source(size, **options):
    return {'use': 'test-source', 'size': size, 'pattern': 'none', **options}


WORK = {
    # name: (frames, source, stage)
    'balls, I420 1280x720: rows filled': (2000, source('1280x720', pattern='balls', number=False), None),
    'balls, RGB24 1280x720': (800, source('1280x720', pattern='balls', format='rgb24', number=False), None),
    'bars, I420 1280x720: rows copied': (6000, source('1280x720', pattern='bars', number=False), None),
    'figures drawn, I420 320x240': (60_000, source('320x240'), {'use': 'fps-meter', 'draw': True}),
    'figures drawn, RGB24 320x240': (60_000, source('320x240', format='rgb24'), {'use': 'fps-meter', 'draw': True}),
    'text, I420 640x360': (10_000, source('640x360'), {'use': 'text', 'text': 'Frame {frame}', 'box': True}),
    'sixteen copies, I420 640x360': (300, source('640x360'), {'use': 'replicate', 'grid': '4x4', 'step': {'hue': 22.5}}),
    'BGRA to I420, 640x360': (3000, source('640x360', format='bgra'), {'use': 'convert', 'format': 'i420'}),
    'I420 to RGB24, 640x360': (3000, source('640x360'), {'use': 'convert', 'format': 'rgb24'}),
    'crop, turn, scale, NV12 640x360': (
        6000, source('640x360', format='nv12'), {'use': 'crop-orient', 'crop': '360x360', 'rotate': 90, 'mirror': True, 'size': '240x240'}),
}


def measure(program, chain):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, chain, '--quiet'], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(folders, rounds):
    programs = [os.path.join(folder, 'framehost') for folder in folders]
    print(f'{"work":34} {"first":>10} {"second":>10}  second / first: median (range), {rounds} rounds')
    with tempfile.TemporaryDirectory() as work:
        for name, (frames, first, stage) in WORK.items():
            stages = [{'id': 'in', 'frames': frames, **first}, *([{'id': 'stage', **stage}] if stage else []), {'id': 'out', 'use': 'null-sink'}]
            chain = os.path.join(work, 'chain.json')
            with open(chain, 'w') as file:
                json.dump({'stages': stages}, file)
            times = [[measure(program, chain) for program in programs] for _ in range(rounds + 1)][1:]
            ratios = [second / first for first, second in times]
            costs = [f'{statistics.median(column) / frames * 1e6:7.2f} µs' for column in zip(*times)]
            print(f'{name:34} {costs[0]:>10} {costs[1]:>10}  {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})', flush=True)


if len(sys.argv) < 3:
    sys.exit(__doc__.strip())
main(sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) > 3 else 9)
