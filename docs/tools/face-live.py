#!/usr/bin/env python3
"""What a live 720p30 chain with face-effect loses and costs, on one core: the figures "Live" of docs/face-effect.md.

    face-live.py CLIP [--seconds 20] [--core 0]

Needs taskset. The clip is played at its own pace (a live source), searched, cropped, encoded and written as MP4. $FRAMEHOST names the program.
"slow detector": a cascade in steps of 2 % on the whole picture, which takes some hundred milliseconds.
"""
import argparse, json, os, pathlib, resource, subprocess, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOST = os.environ.get('FRAMEHOST', str(ROOT / '.build/release/framehost'))
SLOW = {'detector': 'haar', 'detectionSize': 640, 'scaleStep': 1.02, 'smallestFace': 0.03}
CASES = {'no face stage': None, 'yunet': {'detector': 'yunet'}, 'yunet, privacy': {'detector': 'yunet', 'privacy': True}, 'haar': {'detector': 'haar'},
         'lbp': {'detector': 'lbp'}, 'slow detector': SLOW, 'slow detector, privacy': {**SLOW, 'privacy': True}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('clip', type=pathlib.Path)
    parser.add_argument('--seconds', type=float, default=20)
    parser.add_argument('--core', default='0')
    given = parser.parse_args()
    print('| chain | frames | dropped | share of one core | CPU ms / frame |\n|---|---|---|---|---|')
    for name, face in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            stages = [
                {'id': 'in', 'use': 'file-source', 'path': str(given.clip.resolve()), 'pace': 'realtime', 'duration': given.seconds},
                *([{'id': 'face', 'use': 'face-effect', 'effect': 'pixelate', **face}] if face else []),
                {'id': 'crop', 'use': 'crop-orient', 'aspect': '1:1'},
                {'id': 'h264', 'use': 'x264-encoder', 'preset': 'veryfast', 'tune': 'zerolatency', 'bitrateKbps': 2500, 'threads': 1},
                {'id': 'out', 'use': 'recorder', 'path': 'out.mp4'}]
            chain = pathlib.Path(folder, 'chain.json')
            chain.write_text(json.dumps({'stages': stages}))
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(['taskset', '-c', given.core, HOST, str(chain), '--quiet', '--stats', f'{folder}/stats.json'], check=True, timeout=300)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            ledger = json.loads(pathlib.Path(folder, 'stats.json').read_text())['ledger']
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            frames = ledger['captured']
            print(f'| {name} | {frames} | {frames - ledger["delivered"]} | {cpu / (frames / 30):.2f} | {cpu / frames * 1000:.1f} |', flush=True)


if __name__ == '__main__':
    main()
