#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a filter in a process of its own costs, beside the same filter in framehost's process, in one run.

    Benchmarks/isolation.py [FOLDER] [ROUNDS]

FOLDER is a release build's (.build/release). `fps-meter` only reads its frames, `mask` covers a small area. Pictures of 1280x720, as fast as they go and at
30 a second. A figure is the difference to the filter in the program's process for each frame: time that passes (only as fast as they go) and processor time of
both processes, less those of a run of one frame; the median of ROUNDS (5) runs of each in turn, with their range.
"""
import json, os, resource, statistics, subprocess, sys, tempfile, time

# By whether they come at 30 a second.
FRAMES = {False: 3000, True: 300}
FILTERS = {
    'fps-meter, reads': {'use': 'fps-meter'},
    'mask, modifies': {'use': 'mask', 'areas': [{'polygon': [[0, 0], [0.1, 0], [0.1, 0.1], [0, 0.1]]}]},
}


def cost(command):
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    return end - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def beyond_start(program, work, *arguments):
    whole, start = (cost([program, chain(work, *arguments, frames), '--quiet']) for frames in (FRAMES[arguments[-1]], 1))
    return whole[0] - start[0], whole[1] - start[1]


def chain(folder, name, filter, isolated, paced, frames):
    path = os.path.join(folder, f'{name.split(",")[0]}-{isolated}-{paced}-{frames}.json')
    source = {'id': 'in', 'use': 'test-source', 'size': '1280x720', 'pattern': 'none', 'number': False, 'frames': frames}
    if paced:
        source |= {'rate': 30, 'live': True}
    with open(path, 'w') as file:
        json.dump({'stages': [source, {'id': 'it', **filter, **({'isolate': True} if isolated else {})}, {'id': 'out', 'use': 'null-sink'}]}, file)
    return path


def main(folder, rounds):
    program = os.path.join(folder, 'framehost')
    print(f'{"720p, µs a frame more than in process":40} {"time":>8} {"processor":>10}  range of the processor time, {rounds} rounds')
    with tempfile.TemporaryDirectory() as work:
        for paced, frames in FRAMES.items():
            for name, filter in FILTERS.items():
                passed, spent = [], []
                for again in range(rounds + 1):
                    inside, outside = (beyond_start(program, work, name, filter, isolated, paced) for isolated in (False, True))
                    # The first round only warms up.
                    if again > 0:
                        passed.append((outside[0] - inside[0]) / frames * 1e6)
                        spent.append((outside[1] - inside[1]) / frames * 1e6)
                shown = '' if paced else f'{statistics.median(passed):8.1f}'
                print(f'{name + (", 30 fps" if paced else ""):40} {shown:>8} {statistics.median(spent):10.1f}  {min(spent):.1f} to {max(spent):.1f}', flush=True)


main(sys.argv[1] if len(sys.argv) > 1 else '.build/release', int(sys.argv[2]) if len(sys.argv) > 2 else 5)
