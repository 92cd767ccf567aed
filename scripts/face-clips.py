#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes clips of one face on a known path, with their truth, for face-figures.py.

    face-clips.py PORTRAIT TRUTH FOLDER

PORTRAIT is a picture with one face, TRUTH the JSON file with its box. Needs ffmpeg. FOLDER gets the clips and truth/.
"""
import json, math, os, pathlib, subprocess, sys

FRAMES, RATE, WIDTH, HEIGHT, SIDE = 150, 30, 640, 360, 360


def path(name, n):
    """Middle of the portrait, its size as a factor of SIDE, its turn in radians."""
    t = n / RATE
    x, y, scale, turn = WIDTH / 2, HEIGHT / 2, 1.0, 0.0
    if name == 'pan':
        x += 130 * math.sin(2 * math.pi * t / 4)
        y += 25 * math.sin(2 * math.pi * t / 3)
    if name == 'zoom':
        scale = 0.8 + 0.4 * math.sin(math.pi * t / 5)
    if name == 'rotate':
        turn = math.radians(20) * math.sin(2 * math.pi * t / 4)
    return x, y, scale, turn


# The same, as ffmpeg's expressions of time.
FILTERS = {
    'still': '', 'dim': '', 'occlude': '',
    'pan': '', 'zoom': f"scale=w='2*trunc({SIDE}*(0.8+0.4*sin(PI*t/5))/2)':h=-1:eval=frame,", 'rotate': "rotate=a='20*PI/180*sin(2*PI*t/4)':c=none:ow=iw:oh=ih,",
}
PLACES = {'pan': ("(W-w)/2+130*sin(2*PI*t/4)", "(H-h)/2+25*sin(2*PI*t/3)")}


def bar(n):
    """Left and right edge of the bar of `occlude`, which crosses the picture in two seconds."""
    left = -80 + (WIDTH + 80) * ((n / RATE / 2) % 1)
    return left, left + 80


def make(name, portrait, box, side, folder):
    x, y = PLACES.get(name, ('(W-w)/2', '(H-h)/2'))
    graph = f"[0]scale={SIDE}:{SIDE}:flags=area,format=yuva420p,{FILTERS[name]}null[p];[1][p]overlay=x='{x}':y='{y}':eval=frame,"
    if name == 'dim':
        graph += "eq=brightness='-0.22+0.22*cos(2*PI*t/2.5)':eval=frame,"
    graph += 'noise=alls=6:allf=t[v]'
    if name == 'occlude':
        graph = graph.replace('noise=', f"null[b];[b][2]overlay=x='-80+{WIDTH + 80}*mod(t/2,1)':y=0:eval=frame,noise=")
    clip = folder / f'{name}.mp4'
    subprocess.run(
        ['ffmpeg', '-nostdin', '-v', 'error', '-y', '-loop', '1', '-r', str(RATE), '-i', portrait, '-f', 'lavfi', '-i', f'color=0x707880:s={WIDTH}x{HEIGHT}:r={RATE}',
         '-f', 'lavfi', '-i', f'color=0x303030:s=80x{HEIGHT}:r={RATE}', '-filter_complex', graph, '-map', '[v]', '-frames:v', str(FRAMES), '-pix_fmt', 'yuv420p',
         '-c:v', 'libx264', '-crf', '18', str(clip)], check=True)
    frames = []
    for n in range(FRAMES):
        middle_x, middle_y, scale, turn = path(name, n)
        factor = SIDE * scale / side
        dx, dy = (box[0] + box[2] / 2 - side / 2) * factor, (box[1] + box[3] / 2 - side / 2) * factor
        cx = middle_x + dx * math.cos(turn) - dy * math.sin(turn)
        cy = middle_y + dx * math.sin(turn) + dy * math.cos(turn)
        w, h = box[2] * factor, box[3] * factor
        face = [cx - w / 2, cy - h / 2, w, h]
        hidden = 0
        if name == 'occlude':
            left, right = bar(n)
            hidden = max(min(right, face[0] + w) - max(left, face[0]), 0) / w
        # A face of which less than half is seen is no true face.
        frames.append([] if hidden > 0.5 else [{'id': 0, 'box': [round(v, 2) for v in face]}])
    truth = {'clip': clip.name, 'width': WIDTH, 'height': HEIGHT, 'fps': RATE, 'ignore': [], 'frames': frames}
    if name == 'occlude':
        truth['ignore'] = [{'frames': [0, FRAMES], 'box': [WIDTH / 4, 0, WIDTH / 2, HEIGHT]}]
    (folder / 'truth' / f'{clip.name}.json').write_text(json.dumps(truth))


def main():
    portrait, truth, folder = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text()), pathlib.Path(sys.argv[3])
    (folder / 'truth').mkdir(parents=True, exist_ok=True)
    for name in FILTERS:
        make(name, portrait, truth['frames'][0][0]['box'], truth['width'], folder)


if __name__ == '__main__':
    sys.exit(main() if len(sys.argv) == 4 else __doc__)
