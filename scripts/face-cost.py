#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What face-effect costs within a whole chain: MP4, decode, face stage, crop 720x720, x264 as the yardstick has it, MP4.

    face-cost.py CLIP [--rounds 3]                     as fast as it goes, cases in turns, medians: "Cost" of docs/face-effect.md
    face-cost.py CLIP --live [--seconds 20 --core 0]   at the clip's own pace on one core (taskset): "Live"

$FRAMEHOST names the program. "slow detector": a cascade in steps of 2 %, which takes some hundred milliseconds a search; before a live test picture.
"""
import argparse, json, os, pathlib, resource, statistics, subprocess, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
HOST = os.environ.get('FRAMEHOST', str(ROOT / '.build/release/framehost'))
CASES = {
    'none': None, 'yunet, pixelate': {'detector': 'yunet'}, 'yunet, blur': {'detector': 'yunet', 'effect': 'blur'},
    'yunet, smooth': {'detector': 'yunet', 'effect': 'smooth'}, 'yunet, privacy, detectionSize 320': {'detector': 'yunet', 'privacy': True, 'detectionSize': 320}, 'lbp': {'detector': 'lbp'},
    'haar': {'detector': 'haar', 'equalize': True}}
SLOW = {'detector': 'haar', 'equalize': True, 'detectionSize': 640, 'scaleStep': 1.02, 'smallestFace': 0.03}
LIVE = {name: CASES[name] for name in ('none', 'yunet, pixelate', 'yunet, privacy, detectionSize 320', 'lbp', 'haar')} | {
    'slow detector': SLOW, 'slow detector, privacy': {**SLOW, 'privacy': True, 'acceptMissedFaces': True}}


def run(source, face, threads, prefix=()):
    """Processor's milliseconds per frame, frames captured, frames lost."""
    with tempfile.TemporaryDirectory() as folder:
        stages = [
            {'id': 'in', **source}, *([{'id': 'face', 'use': 'face-effect', **face}] if face else []),
            {'id': 'crop', 'use': 'crop-orient', 'aspect': '1:1'},
            {'id': 'h264', 'use': 'x264-encoder', 'preset': 'veryfast', 'tune': 'zerolatency', 'bitrateKbps': 2500, 'vbvMaxKbps': 2500, 'vbvBufferKbits': 1500,
             'keyframeSeconds': 2, 'threads': threads},
            {'id': 'out', 'use': 'recorder', 'path': 'out.mp4'}]
        chain = pathlib.Path(folder, 'chain.json')
        chain.write_text(json.dumps({'stages': stages}))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*prefix, HOST, str(chain), '--quiet', '--stats', f'{folder}/stats.json'], check=True, timeout=300)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        ledger = json.loads(pathlib.Path(folder, 'stats.json').read_text())['ledger']
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return cpu / ledger['captured'] * 1000, ledger['captured'], ledger['captured'] - ledger['delivered']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('clip', type=pathlib.Path)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--live', action='store_true')
    parser.add_argument('--seconds', type=float, default=20)
    parser.add_argument('--core', default='0')
    given = parser.parse_args()
    file = {'use': 'file-source', 'path': str(given.clip.resolve())}
    if given.live:
        print('| chain | frames | lost | CPU ms / frame | share of the core at 30 fps |\n|---|---|---|---|---|')
        for name, face in LIVE.items():
            # A file waits where a camera would not: what is lost is asked of a live source.
            is_slow = name.startswith('slow')
            live = {'use': 'test-source', 'size': '1280x720', 'rate': 30, 'live': True, 'frames': int(given.seconds * 30)}
            source = live if is_slow else {**file, 'pace': 'realtime', 'duration': given.seconds}
            cpu, frames, lost = run(source, face, 1, ('taskset', '-c', given.core))
            print(f'| {name} | {frames} | {lost} | {cpu:.1f} | {cpu * 0.03:.2f} |', flush=True)
        return
    found = {name: [] for name in CASES}
    for _ in range(given.rounds):
        for name, face in CASES.items():
            found[name].append(run(file, face, 2)[0])
    print('| face stage | CPU ms / frame, median | least to most |\n|---|---|---|')
    for name, values in found.items():
        print(f'| {name} | {statistics.median(values):.1f} | {min(values):.1f} to {max(values):.1f} |')


if __name__ == '__main__':
    main()
