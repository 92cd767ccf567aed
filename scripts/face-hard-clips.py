#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes clips that are hard for privacy, with their truth, for face-figures.py: what lies between a face and its detector.

    face-hard-clips.py PORTRAIT TRUTH FOLDER [NAME...]

PORTRAIT is a square picture with one face, TRUTH the JSON file with its box. Needs ffmpeg and numpy. FOLDER gets the clips and truth/.
A face counts as true while at least half of its box is in the picture and not hidden. The box of a tilted one is that of its ellipse.
"""
import json, math, pathlib, subprocess, sys
import numpy as np

FRAMES, RATE, WIDTH, HEIGHT = 120, 30, 640, 360
# One portrait in a frame: its middle, its side in pixels, its tilt in degrees, mirrored or not.
M, S = (WIDTH / 2, HEIGHT / 2), 340


def one(x=M[0], y=M[1], side=S, tilt=0.0, mirrored=False):
    return (x, y, side, tilt, mirrored)


def enters(t):
    return [one(x=-170 + 130 * t)]


def drops(t):
    return [one(y=-180 + 160 * t)]


def fast(t):
    return [one(x=M[0] + 220 * math.sin(2 * math.pi * t / 1.0), side=300)]


def jump(t):
    return [one(x=M[0] + (150 if int(t * 2) % 2 else -150), side=300)]


def grows(t):
    return [one(side=70 * 12 ** (t / 4))]


def huge(t):
    # About the face's middle, which stands above that of the portrait.
    side = 600 + 200 * t
    return [one(x=M[0] + 0.063 * side, y=M[1] + 0.264 * side, side=side)]


def rushes(t):
    return [one(x=-150 + 900 * (t % 1), side=300)]


def spins(t):
    return [one(tilt=45 * math.sin(2 * math.pi * t))]


def tilts(t):
    return [one(tilt=45 * math.sin(2 * math.pi * t / 4))]


def two(t):
    return [one(x=150 + 40 * math.sin(2 * t), side=260), one(x=480, y=M[1] + 40 * math.sin(3 * t), side=280, mirrored=True)]


def crossing(t):
    return [one(x=80 + 120 * t, side=240), one(x=560 - 120 * t, y=M[1] + 20, side=240, mirrored=True)]


def scenes(t):
    return [] if int(t / 0.5) % 3 == 2 else [one(x=180 if int(t / 0.5) % 2 else 460, side=260 + 60 * (int(t / 0.5) % 2))]


def still(t):
    return [one()]


# name: path, what else.
CLIPS = {
    'enters': (enters, {}), 'drops': (drops, {}), 'fast': (fast, {}), 'fast-blurred': (fast, {'blur': 8}), 'jump': (jump, {}), 'grows': (grows, {}), 'huge': (huge, {}), 'rushes': (rushes, {}), 'spins': (spins, {}),
    'dusk': (fast, {'light': lambda t: 0.2, 'noise': 10}),
    'tilts': (tilts, {}), 'two': (two, {}), 'crossing': (crossing, {}), 'scenes': (scenes, {'cuts': True}), 'dark': (still, {'light': lambda t: 0.12 + 0.1 * math.sin(3 * t)}),
    'flicker': (still, {'light': lambda t: 1.0 if int(t * 5) % 2 else 0.35}), 'bars': (fast, {'bar': True}), 'hand': (still, {'hand': True}),
    'upright-phone': (tilts, {'turn': True}), 'noisy': (still, {'noise': 28}),
}


def read(path):
    side = int(subprocess.check_output(['ffprobe', '-v', 'error', '-show_entries', 'stream=width', '-of', 'csv=p=0', path], text=True))
    raw = subprocess.check_output(['ffmpeg', '-nostdin', '-v', 'error', '-i', path, '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-'])
    return np.frombuffer(raw, np.uint8).reshape(side, side, 3).astype(np.float32)


def paste(picture, levels, place):
    """Bilinear, from the level of the portrait whose size is next above."""
    x, y, side, tilt, mirrored = place
    source = next((level for level in levels if level.shape[0] <= 2 * side), levels[-1])
    n, angle = source.shape[0], math.radians(tilt)
    reach = int(side * 0.75) + 2
    x0, x1, y0, y1 = max(int(x) - reach, 0), min(int(x) + reach, WIDTH), max(int(y) - reach, 0), min(int(y) + reach, HEIGHT)
    if x0 >= x1 or y0 >= y1:
        return
    gx, gy = np.meshgrid(np.arange(x0, x1) + 0.5 - x, np.arange(y0, y1) + 0.5 - y)
    u = (gx * math.cos(angle) + gy * math.sin(angle)) / side
    v = (gy * math.cos(angle) - gx * math.sin(angle)) / side
    u = (0.5 - u if mirrored else 0.5 + u) * n - 0.5
    v = (v + 0.5) * n - 0.5
    inside = (u >= 0) & (v >= 0) & (u < n - 1) & (v < n - 1)
    i, j = np.clip(u.astype(int), 0, n - 2), np.clip(v.astype(int), 0, n - 2)
    a, b = (u - i)[..., None], (v - j)[..., None]
    value = (source[j, i] * (1 - a) + source[j, i + 1] * a) * (1 - b) + (source[j + 1, i] * (1 - a) + source[j + 1, i + 1] * a) * b
    part = picture[y0:y1, x0:x1]
    part[inside] = value[inside]


def box_of(place, box, full):
    x, y, side, tilt, mirrored = place
    factor, angle = side / full, math.radians(tilt)
    dx, dy = (box[0] + box[2] / 2 - full / 2) * factor, (box[1] + box[3] / 2 - full / 2) * factor
    dx = -dx if mirrored else dx
    cx, cy = x + dx * math.cos(angle) - dy * math.sin(angle), y + dx * math.sin(angle) + dy * math.cos(angle)
    w0, h0, c, s = box[2] * factor, box[3] * factor, math.cos(angle), math.sin(angle)
    w, h = math.hypot(w0 * c, h0 * s), math.hypot(w0 * s, h0 * c)
    return [cx - w / 2, cy - h / 2, w, h]


def seen(box, hidden):
    """The part of the box that is in the picture, and whether that is enough of it."""
    left, top, right, bottom = max(box[0], 0), max(box[1], 0), min(box[0] + box[2], WIDTH), min(box[1] + box[3], HEIGHT)
    if right <= left or bottom <= top:
        return None
    area = (right - left) * (bottom - top)
    for h in hidden:
        w, k = min(right, h[2]) - max(left, h[0]), min(bottom, h[3]) - max(top, h[1])
        area -= max(w, 0) * max(k, 0)
    return [left, top, right - left, bottom - top] if area >= 0.5 * box[2] * box[3] else None


def make(name, portrait, box, folder):
    path, extra = CLIPS[name]
    full, levels = portrait.shape[0], [portrait]
    while levels[-1].shape[0] > 32:
        level = levels[-1]
        levels.append((level[::2, ::2] + level[1::2, ::2] + level[::2, 1::2] + level[1::2, 1::2]) / 4)
    rng, frames, clip = np.random.default_rng(5), [], folder / f'{name}.mp4'
    turned = extra.get('turn')
    stored = folder / f'{name}.stored.mp4' if turned else clip
    size = f'{HEIGHT}x{WIDTH}' if turned else f'{WIDTH}x{HEIGHT}'
    encoder = subprocess.Popen(
        ['ffmpeg', '-nostdin', '-v', 'error', '-y', '-f', 'rawvideo', '-pix_fmt', 'rgb24', '-s', size, '-r', str(RATE), '-i', 'pipe:', '-pix_fmt', 'yuv420p',
         '-c:v', 'libx264', '-preset', 'veryfast', '-crf', '18', str(stored)], stdin=subprocess.PIPE)
    ground = np.stack([np.add.outer(np.linspace(90, 130, HEIGHT), np.linspace(-20, 20, WIDTH)) + c for c in (0, 5, 12)], -1).astype(np.float32)
    for n in range(FRAMES):
        t, steps = n / RATE, extra.get('blur', 1)
        sum_ = np.zeros_like(ground)
        for step in range(steps):
            # Half of a frame's time is open shutter.
            picture = ground.copy()
            for place in path(t + (step / steps - 0.5) * 0.5 / RATE if steps > 1 else t):
                paste(picture, levels, place)
            sum_ += picture
        picture = sum_ / steps
        if extra.get('cuts'):
            picture += 40 * ((int(t / 0.5) % 3) - 1) * np.linspace(-1, 1, WIDTH)[None, :, None]
        hidden = []
        if extra.get('bar'):
            left = (WIDTH + 60) * (t % 1) - 60
            hidden.append((left, 0, left + 60, HEIGHT))
        if extra.get('hand'):
            # Rises over the mouth up to the eyes and goes.
            top = HEIGHT * (0.62 - 0.2 * max(math.sin(2 * math.pi * t / 2), 0))
            hidden.append((WIDTH * 0.3, top, WIDTH * 0.7, top + 120))
        for l, u, r, d in hidden:
            picture[max(int(u), 0):max(int(d), 0), max(int(l), 0):max(int(r), 0)] = (60, 55, 50)
        light = extra['light'](t) if 'light' in extra else 1
        picture = picture * light + rng.normal(0, extra.get('noise', 2), picture.shape)
        picture = np.clip(picture, 0, 255).astype(np.uint8)
        # A phone held upright stores its picture lying, and says by how much it is to be turned.
        encoder.stdin.write((np.rot90(picture) if turned else picture).tobytes())
        places = path(t)
        # What comes later lies in front.
        squares = [(x - side / 2, y - side / 2, x + side / 2, y + side / 2) for x, y, side, _, _ in places]
        boxes = [seen(box_of(place, box, full), hidden + squares[i + 1:]) for i, place in enumerate(places)]
        frames.append([{'id': i, 'box': [round(v, 2) for v in b]} for i, b in enumerate(boxes) if b])
    encoder.stdin.close()
    if encoder.wait():
        sys.exit(f'{name}: ffmpeg failed')
    if turned:
        subprocess.run(['ffmpeg', '-nostdin', '-v', 'error', '-y', '-i', str(stored), '-c', 'copy', '-metadata:s:v', 'rotate=270', str(clip)], check=True)
        stored.unlink()
    truth = {'clip': clip.name, 'width': WIDTH, 'height': HEIGHT, 'fps': RATE, 'ignore': [], 'frames': frames}
    (folder / 'truth' / f'{clip.name}.json').write_text(json.dumps(truth))


def main():
    portrait, truth, folder = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text()), pathlib.Path(sys.argv[3])
    (folder / 'truth').mkdir(parents=True, exist_ok=True)
    for name in sys.argv[4:] or CLIPS:
        make(name, read(portrait), truth['frames'][0][0]['box'], folder)


if __name__ == '__main__':
    sys.exit(main() if len(sys.argv) >= 4 else __doc__)
