#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what job.sh brought back from the guest: check.py FOLDER. One line for each point; exit status 1 where one fails."""
import array
import cmath
import csv
import itertools
import json
import math
import pathlib
import statistics
import struct
import subprocess
import sys
from operator import sub

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'Tools'))
from exit_status import without_losses  # noqa: E402

out = pathlib.Path(sys.argv[1])
failed = 0


def point(text, is_right, found=''):
    global failed
    failed += not is_right
    print(f'{"ok    " if is_right else "FAILED"}  {text}{f": {found}" if found != "" else ""}', flush=True)


def text(name):
    path = out / name
    return path.read_text(errors='replace') if path.exists() else ''


def events(name):
    return [json.loads(line) for line in text(f'{name}.events').splitlines() if line.startswith('{')]


def figures(name):
    stages = json.loads(text(f'{name}.stats') or '{"stages": []}')['stages']
    return next((stage['figures'] for stage in stages if stage['id'] == 'cam'), {})


def ledger(name):
    return json.loads(text(f'{name}.stats') or '{}').get('ledger', {})


def picture_values(name, size=(320, 180)):
    """Of each picture: the smallest and largest sample of each plane."""
    width, height = size
    raw = subprocess.run(
        ['ffmpeg', '-v', 'error', '-i', out / f'{name}.mp4', '-fps_mode', 'passthrough', '-enc_time_base', '-1', '-pix_fmt', 'yuv420p', '-f', 'rawvideo', '-'],
        capture_output=True, check=False)
    point(f'{name}: decodes without a word', not raw.stderr, raw.stderr.decode()[:200])
    luma, chroma = width * height, width * height // 4
    pictures = [raw.stdout[i:i + luma + 2 * chroma] for i in range(0, len(raw.stdout), luma + 2 * chroma)]
    return pictures, [
        tuple((min(plane), max(plane)) for plane in (p[:luma], p[luma:luma + chroma], p[luma + chroma:])) for p in pictures]


def planes(file, size=(320, 180)):
    """The samples of each picture as they were encoded: full range stays full range."""
    width, height = size
    raw = subprocess.run(
        ['ffmpeg', '-v', 'error', '-i', out / file, '-fps_mode', 'passthrough', '-enc_time_base', '-1', '-pix_fmt', 'yuvj420p', '-f', 'rawvideo', '-'],
        capture_output=True, check=False).stdout
    count = width * height * 3 // 2
    return [raw[i:i + count] for i in range(0, len(raw), count)]


def times(name):
    file = name if '.' in name else f'{name}.mp4'
    found = subprocess.run(
        ['ffprobe', '-v', 'error', '-select_streams', 'v', '-show_entries', 'packet=pts_time', '-of', 'csv=p=0', out / file],
        capture_output=True, text=True, check=False)
    return sorted(float(line.strip(',')) for line in found.stdout.split())


def mean_step(at, steps):
    """The slope of all times, seconds: the guest's timer is late by milliseconds now and then, and by more where its processor is taken away."""
    return statistics.linear_regression(list(itertools.accumulate(steps, initial=0)), at).slope


def check_rate(name, rate):
    at = times(name)
    if len(at) < 2:
        return point(f'{name}: has times', False)
    # What was missed, or a busy machine's encoder had no time for, is between them as well.
    steps = [max(1, round((b - a) * rate)) for a, b in zip(at, at[1:])]
    mean = mean_step(at, steps)
    point(f'{name}: times rise', all(b > a for a, b in zip(at, at[1:])))
    point(f'{name}: mean step within 1 % of 1/{rate} s', abs(mean * rate - 1) < 0.01, f'{mean * 1000:.3f} ms')


RED = ((81, 81), (90, 90), (239, 239))


def check_status(name):
    errors = text(f'{name}.errors')
    is_right = without_losses(int(text(f'{name}.status') or -1), errors) == 0
    point(f'{name}: exit status 0', is_right, '' if is_right else errors[-300:])


def check_balance(name):
    account = ledger(name)
    check_status(name)
    whole = account.get('captured', -1) + account.get('made', 0) + account.get('copies', 0)
    parts = sum(account.get(key, 0) for key in ('delivered', 'merged', 'idle', 'dropped', 'replaced', 'inFlight'))
    point(f'{name}: the ledger is balanced', whole == parts and whole > 0, f'{whole} = {parts}')


# What there is.
devices = json.loads(text('devices.json') or '{"devices": []}')['devices']
point('devices: one camera, by name and path', [(d['name'], d['path']) for d in devices] == [('vivid', '/dev/video0')])
if devices:
    known = {f['format']: f for f in devices[0]['formats'] if f['format']}
    point('devices: nv12, i420 and yuyv', {'nv12', 'i420', 'yuyv'} <= set(known), sorted(known))
    size = next((s for s in known.get('nv12', {'sizes': []})['sizes'] if s['size'] == '640x480'), {'rates': []})
    point('devices: 640x480 at 1 to 25', size['rates'][:1] == [25] and size['rates'][-1:] == [1], size['rates'])
    control = next((c for c in devices[0]['controls'] if c['name'] == 'brightness'), {})
    point('devices: brightness 0...255', (control.get('minimum'), control.get('maximum')) == (0, 255))

# Pictures and their times.
for name, frames in (('yuyv', 300), ('nv12', 300), ('slow', 30)):
    check_balance(name)
    _, values = picture_values(name)
    point(f'{name}: {frames} frames, every one that was not dropped is there',
          ledger(name).get('captured') == frames and len(values) == frames - ledger(name)['dropped'] > 0.8 * frames, len(values))
    point(f'{name}: every pixel is the red that vivid makes', all(v == RED for v in values), next((v for v in values if v != RED), ''))
    point(f'{name}: the driver wrote each into the chain', figures(name).get('lent') == frames and figures(name).get('copied') == 0,
          figures(name))
    check_rate(name, 10 if name == 'slow' else 30)
for name in ('yuyv', 'nv12'):
    point(f'{name}: check says that nothing is copied', "no copy: the driver writes into the chain's buffers" in text(f'{name}.check'))

check_balance('bars')
pictures, _ = picture_values('bars')
if pictures:
    # 75 % bars: white, yellow, cyan, green, magenta, red, blue, black; BT.601, video range.
    colors = [(191, 191, 191), (191, 191, 0), (0, 191, 191), (0, 191, 0), (191, 0, 191), (191, 0, 0), (0, 0, 191), (0, 0, 0)]
    worst = 0
    for index, (r, g, b) in enumerate(colors):
        luma = 0.299 * r + 0.587 * g + 0.114 * b
        wanted = (16 + luma * 219 / 255, 128 + (b - luma) / 1.772 * 224 / 255, 128 + (r - luma) / 1.402 * 224 / 255)
        x, y = 40 * index + 20, 90
        last = pictures[-1]
        found = (last[y * 320 + x], last[57600 + y // 2 * 160 + x // 2], last[72000 + y // 2 * 160 + x // 2])
        worst = max(worst, *(abs(a - b) for a, b in zip(wanted, found)))
    point('bars: the eight colours are where they belong', worst <= 2, f'worst difference {worst:.1f}')

# Controls.
_, values = picture_values('controls')
lumas = [v[0] for v in values]
point('controls: brightness 128, then 200 while it runs', lumas[:1] == [(81, 81)] and lumas[-1:] == [(153, 153)],
      (lumas[:1], lumas[-1:]))
answers = text('controls.events')
point('controls: 999 is refused with the range', '999 must be from 0 to 255' in answers, answers[:300] if '999 is' not in answers else '')
point('controls: a wrong name is refused with the nearest', "Did you mean 'brightness'?" in answers)

# Who may not.
point('denied: names the group', "Join the group 'video'" in text('denied'), text('denied').strip()[:200])
point('busy: names the program', 'is in use by framehost (pid ' in text('busy'), text('busy').strip()[:200])

# Priority, and a small machine.
policies = {line.rsplit(' ', 2)[0]: line.rsplit(' ', 2)[1:] for line in text('threads').splitlines()}
point('priority: the camera\'s thread is real-time, at the lowest priority', policies.get('src:cam') == ['1', '2'], policies)
point('priority: no other is', [name for name, what in policies.items() if what[1] != '0'] == ['src:cam'])
said = [e for e in events('usual') if e['event'] == 'usual-priority']
point('priority: where it is not permitted that is said once, with the remedy', len(said) == 1 and '@video - rtprio 1' in said[0]['text'],
      text('usual.errors')[-300:])
point('one processor: less is asked for, and said',
      'requests 640x480 instead of 1280x720 and 15 frames per second instead of 30' in text('one-processor'), text('one-processor')[-400:])

# Faults of the driver.
check_balance('faults')
got = figures('faults')
names = [e['event'] for e in events('faults') if e['event'].startswith('camera-')]
point('faults: lost twice and found twice', names == ['camera-lost', 'camera-back'] * 2, names)
point('faults: a marked picture is left out, dropped ones are missed', got.get('damaged', 0) >= 1 and got.get('missed', 0) >= 5, got)
point('faults: streaming at the end', got.get('state') == 'streaming')
_, values = picture_values('faults')
point('faults: the recording has every pixel red, the camera away or not', len(values) > 100 and all(v == RED for v in values),
      (len(values), next((v for v in values if v != RED), '')))

# Pulled and put back.
check_balance('pulled')
found = {e['event']: e for e in events('pulled')}
point('pulled: lost and back', 'camera-lost' in found and 'camera-back' in found, found.get('camera-lost', {}).get('text', ''))
returned = float(text('returned') or 0)
late = found.get('camera-back', {'time': 1e9})['time'] - returned
point('pulled: streaming again within 6 s of its return', late < 6, f'{late:.2f} s')
at = times('pulled')
longest = max((b - a for a, b in zip(at, at[1:])), default=99)
point('pulled: no gap in the recording of more than 2 s', longest < 2, f'{longest * 1000:.0f} ms')
_, values = picture_values('pulled')
point('pulled: the last picture stays meanwhile', len(values) > 60 and all(v == RED for v in values), len(values))

# A camera that comes later.
check_balance('wait')
_, values = picture_values('wait')
point('wait: a white slate, then the camera', values[:1] == [((235, 235), (128, 128), (128, 128))] and values[-1:] == [RED],
      (values[:1], values[-1:]))


def check_reader(name, least):
    """What a reader of the stream has kept."""
    kept = out / f'{name}.reader.mkv'
    found = subprocess.run(['ffmpeg', '-v', 'error', '-i', kept, '-fps_mode', 'passthrough', '-enc_time_base', '-1', '-f', 'null', '-'], capture_output=True, text=True, check=False)
    point(f'{name}: what the reader got decodes without a word', found.returncode == 0 and not found.stderr, found.stderr[:300])
    said = [line for line in text(f'{name}.reader').splitlines() if line]
    point(f'{name}: the reader had nothing to say', not said, said[:3])
    # ffmpeg, copying, gives the first two packets of a stream one time.
    at = times(f'{name}.reader.mkv')[1:]
    point(f'{name}: the reader got {least} pictures and more', len(at) >= least, len(at))
    return at


def check_gaps(name, at, most):
    """Times rise, and nothing is missing for long."""
    longest = max((b - a for a, b in zip(at, at[1:])), default=99)
    point(f'{name}: times rise, no gap of more than {most} s', len(at) > 1 and all(b > a for a, b in zip(at, at[1:])) and longest < most,
          f'{longest * 1000:.0f} ms')


# Lost again and again.
check_balance('losses')
count = int(dict(word.split('=') for word in text('environment').split())['LOSSES'])
names = [e['event'] for e in events('losses') if e['event'].startswith('camera-')]
point(f'losses: lost and found {count} times', names == ['camera-lost', 'camera-back'] * count, len(names))
returned = [float(line.split()[1]) for line in text('losses.returned').splitlines()]
back = [e['time'] for e in events('losses') if e['event'] == 'camera-back']
late = max((b - a for a, b in zip(returned, back)), default=99)
point('losses: streaming again within 6 s of each return', len(back) == len(returned) == count and late < 6, f'{late:.2f} s')
held = [[int(word) for word in line.split()[1:]] for line in text('losses.held').splitlines()]
point('losses: no descriptor is left behind', len(held) == count and len({h[0] for h in held[4:]}) == 1, [h[0] for h in held])
point('losses: no thread is left behind', len(held) == count and len({h[1] for h in held[4:]}) == 1, [h[1] for h in held])
# What leaks grows with the losses; the allocator takes a page more now and then, or once a huge one (2 MB).
sizes = [h[2] for h in held[4:]]
grown = sum(b > a for a, b in zip(sizes, sizes[1:]))
point('losses: memory does not grow with them', len(sizes) > 10 and grown <= len(sizes) // 4, f'{grown} of {len(sizes)} times: {sizes[0]} to {sizes[-1]} KB')
# The source shows nothing while it opens the camera, which takes a busy machine's guest half a second.
check_gaps('losses, recording', times('losses'), 1)
point('losses: the reader is connected at the end', text('losses.connected').strip() == 'connected')
check_gaps('losses, reader', check_reader('losses', 100), 1)
_, values = picture_values('losses')
point('losses: every recorded pixel is red', len(values) > 100 and all(v == RED for v in values), len(values))

# A virtual camera, and what comes back from it.
for name in ('i420', 'yuyv', 'nv12'):
    check_status(f'sink-{name}')
    check_balance(f'back-{name}')
    _, values = picture_values(f'back-{name}')
    point(f'sink-{name}: its red comes back', len(values) >= 10 and all(abs(a - b) <= 1 for v in values for p, q in zip(v, RED) for a, b in zip(p, q)),
          values[:1])
point('sink: a second writer is told that the device is in use',
      "'/dev/video10' is in use. End the program that writes to it. Only one program can write to a virtual camera." in text('second'), text('second').strip()[:200])
read_by_ffmpeg = [line for line in text('sink-ffmpeg.md5').splitlines() if line and not line.startswith('#')]
point('sink: ffmpeg reads five pictures from it, all equal', len(read_by_ffmpeg) == 5 and len({line.split(',')[-1] for line in read_by_ffmpeg}) == 1,
      text('sink-ffmpeg.errors')[:200])

# JPEG from another program.
check_balance('mjpeg')
found = planes('mjpeg.mp4')
given = planes('pictures.avi')
point('mjpeg: 300 frames, every one that was not dropped is there',
      ledger('mjpeg').get('captured') == 300 and len(found) == 300 - ledger('mjpeg')['dropped'] > 240, len(found))
point('mjpeg: each was decoded', figures('mjpeg').get('decoded') == 300, figures('mjpeg'))
numbers, worst = [], 0
for picture in found:
    number, sketch = 0, picture[::97]
    number = min(range(len(given)), key=lambda index: sum(map(abs, map(sub, sketch, given[index][::97]))))
    numbers.append(number)
    worst = max(worst, max(map(abs, map(sub, picture, given[number]))))
point('mjpeg: every picture is one that was given, sample by sample', len(given) == 50 and worst <= 6, f'worst difference {worst}')
steps = [(b - a) % len(given) for a, b in zip(numbers, numbers[1:])]
# By the pictures themselves: v4l2loopback 0.12 leaves out numbers where no picture is missing.
at = times('mjpeg.mp4')
mean = mean_step(at, steps) if len(at) == len(steps) + 1 > 2 else 0
point('mjpeg: mean step within 1 % of 1/25 s', abs(mean * 25 - 1) < 0.01 and all(b > a for a, b in zip(at, at[1:])), f'{mean * 1000:.3f} ms')
# A step back or a swap would be a step of half the 50 pictures or more, and a repeated picture one of 0.
point('mjpeg: in their order', all(0 < step < len(given) // 2 for step in steps), sorted(steps)[-5:])
left_out = figures('mjpeg').get('missed', 0) + ledger('mjpeg').get('dropped', 0)
# v4l2loopback leaves some out itself, which nobody can count, and more of them where the guest stands still.
point('mjpeg: hardly a picture is missing that was not counted', sum(steps) - len(steps) <= left_out + 12 and left_out < 40,
      (sum(steps) - len(steps), left_out))

# The whole product.
check_balance('product')
names = [e['event'] for e in events('product') if e['event'] in ('camera-lost', 'camera-back')]
point('product: a feeder that dies is a loss, and it comes back', names == ['camera-lost', 'camera-back'], names)
lost = next((e['text'] for e in events('product') if e['event'] == 'camera-lost'), '')
point('product: says that no picture came', 'no picture for' in lost, lost)
back = next((e['time'] for e in events('product') if e['event'] == 'camera-back'), 1e9)
point('product: streaming again within 6 s of its return', back - float(text('product.returned') or 0) < 6)
check_gaps('product, recording', times('product'), 3)
check_reader('product', 30)
for name in ('product.mp4', 'product.reader.mkv'):
    # #ff00ff has both chroma samples far above what a face, or anything in that clip, has.
    covered = [sum(u > 180 and v > 180 for u, v in zip(p[57600:72000], p[72000:])) for p in planes(name)]
    point(f'{name}: the face is covered', sum(c > 150 for c in covered) > 0.4 * len(covered) > 10,
          f'{sum(c > 150 for c in covered)} of {len(covered)}')

# Camera, sound card and motion sensors in one recording, each lost alone.
def samples(*arguments):
    """What ffmpeg decodes to floats of 8000 Hz in one channel."""
    raw = subprocess.run(['ffmpeg', '-v', 'error', *arguments, '-ac', '1', '-ar', '8000', '-f', 'f32le', '-'], capture_output=True, check=False).stdout
    found = array.array('f')
    found.frombytes(raw[:len(raw) // 4 * 4])
    return found


def check_sound(name, sound, hertz, lost, back, again=0.0):
    """The tone is there, silence while the card is away (lost to back, seconds of the sound), and the tone again, from `again` on."""
    heard = {'before': [], 'meanwhile': [], 'after': []}
    for start in range(0, len(sound) - 400, 400):
        at, window = start / 8000, sound[start:start + 400]
        part = 'before' if 0.5 < at < lost - 0.5 else 'meanwhile' if lost + 0.3 < at < back - 0.5 else 'after' if at > max(back, again) + 0.5 else None
        if not part:
            continue
        energy = sum(value * value for value in window) / 400
        turned = abs(sum(value * cmath.exp(-2j * math.pi * hertz * index / 8000) for index, value in enumerate(window))) / 400
        # Most of what is heard is the tone, and it is louder than -34 dBFS; silence is below -66.
        heard[part].append('tone' if energy > 0.02 ** 2 and 2 * turned ** 2 > 0.8 * energy else 'silence' if energy < 0.0005 ** 2 else 'noise')
    for part, wanted, share, least in (('before', 'tone', 0.7, 20), ('meanwhile', 'silence', 1, 10), ('after', 'tone', 0.7, 20)):
        # A guest that stands still loses sound.
        windows = heard[part]
        words = {'before': 'before the loss', 'meanwhile': 'meanwhile', 'after': 'after it'}[part]
        point(f'{name}: {f"the tone of {hertz} Hz" if wanted == "tone" else wanted} {words}', len(windows) >= least and windows.count(wanted) >= share * len(windows),
              f'{windows.count(wanted)} of {len(windows)} windows')


def check_motion(name, rate, found, lost, back, speed, measured):
    """Samples (time on the chain clock, values) lie on both sides of the loss, and are what sensor-hub.c measures at their times."""
    at = [time for time, _ in found]
    point(f'{name}: times rise', len(at) > 1 and all(b > a for a, b in zip(at, at[1:])), len(at))
    counts = [sum(time < lost for time in at), sum(lost + 0.1 < time < back - 0.5 for time in at), sum(time > back for time in at)]
    point(f'{name}: samples before the loss, none meanwhile, samples after it', min(counts[0], counts[2]) >= 50 and counts[1] == 0, counts)
    step = statistics.median(b - a for a, b in zip(at, at[1:])) if len(at) > 1 else 0
    point(f'{name}: about {rate} samples a second', 0.9 < step * rate < 1.5, f'{step * 1000:.2f} ms')
    # By how much the time of a sample must be wrong where a value is: the guest stands still between measuring and stamping now and then.
    late = sorted(max(abs(a - b) for a, b in zip(values, measured(math.pi / 2 * time))) / speed for time, values in found)
    middle = late[len(late) // 2] if late else 99
    point(f'{name}: the values are those of their times', middle < 0.01 and late[len(late) * 9 // 10] < 0.1,
          f'half within {middle * 1000:.1f} ms, nine of ten within {late[len(late) * 9 // 10] * 1000 if late else 0:.1f} ms')


def rows(name, columns):
    return [(float(row['t']), [float(row[column]) for column in columns]) for row in csv.DictReader(text(name).splitlines()) if row[columns[-1]]]


check_balance('together')
posted = events('together')
begun = next((e['startSeconds'] for e in posted if e['event'] == 'recording-did-start'), 0)
given_back = dict(line.split() for line in text('together.returned').splitlines())


def loss(stage, lost, back, what, log_name='together'):
    """When a device was lost and was back, on the chain clock. It can be silent for a second besides, where the guest stands still."""
    told = [e for e in events(log_name) if e.get('stage') == stage and (e['event'] == back or e['event'] == lost and ('ENODEV' in e['text'] or 'is gone' in e['text']))]
    gone = next((e['time'] for e in told if e['event'] == lost), 1e9)
    there = next((e['time'] for e in told if e['event'] == back and e['time'] > gone), 2e9)
    point(f'{log_name}: {stage} is lost once, and back', sum(e['event'] == lost for e in told) == 1 and there < 1e9, [e['event'] for e in told])
    late = there - float(given_back.get(what, 0))
    point(f'{log_name}: {stage} works again within 6 s of its return', late < 6, f'{late:.2f} s')
    return gone, there


told = text('cards')
point('cards: both are listed', 'hw:CARD=I82801AAICH,DEV=0' in told and 'hw:CARD=Loopback,DEV=1' in told)
found = subprocess.run(
    ['ffprobe', '-v', 'error', '-show_entries', 'stream=codec_type,codec_name,codec_tag_string,start_time,duration', '-of', 'json', out / 'together.mp4'],
    capture_output=True, text=True, check=False).stdout
tracks = json.loads(found or '{}').get('streams', [])
kinds = [t['codec_tag_string'] if t['codec_type'] == 'data' else t['codec_name'] for t in tracks]
point('together: pictures, sound and motion', kinds == ['h264', 'opus', 'camm'], kinds)
point('together: its index is in front', any(e['event'] == 'recording-finalised' for e in posted), text('together.errors')[-600:])
ends = [float(t['start_time']) + float(t['duration']) for t in tracks]
point('together: the tracks end within 3 s of each other', len(ends) == 3 and max(ends) - min(ends) < 3, [f'{end:.2f}' for end in ends])
check_gaps('together, pictures', times('together'), 2)
_, values = picture_values('together')
point('together: every recorded pixel is red', len(values) > 50 and all(v == RED for v in values), len(values))
loss('cam', 'camera-lost', 'camera-back', 'camera')
away = loss('mic', 'device-lost', 'device-back', 'card')
# Where packets are missing, silence stands in their place.
check_sound('together, sound', samples('-i', out / 'together.mp4', '-map', '0:a', '-af', 'aresample=async=1:min_hard_comp=0.05:first_pts=0'), 440,
            *(time - begun for time in away))
packets = subprocess.run(['ffprobe', '-v', 'error', '-select_streams', 'd', '-show_entries', 'packet=pts_time,size', '-of', 'csv=p=0', out / 'together.mp4'],
                         capture_output=True, text=True, check=False).stdout.split()
raw = subprocess.run(['ffmpeg', '-v', 'error', '-i', out / 'together.mp4', '-map', '0:d', '-c', 'copy', '-f', 'data', '-'], capture_output=True, check=False).stdout
# CAMM, type 2: rotation rates in 16 bytes.
point('together, motion: rotation rates in CAMM', bool(packets) and len(raw) == 16 * len(packets) and all(
    line.strip(',').split(',')[1] == '16' and raw[16 * index:16 * index + 4] == b'\0\0\2\0' for index, line in enumerate(packets)), len(packets))
rates = [(begun + float(line.split(',')[0]), struct.unpack_from('<3f', raw, 16 * index + 4)) for index, line in enumerate(packets)] if len(raw) == 16 * len(packets) else []
swing = math.pi / 2
check_motion('together, rotation rate', 50, rates, *loss('gyro', 'motion-lost', 'motion-returned', 'sensors'), swing,
             lambda p: (math.sin(p), 0.5 * math.cos(p), 0.25))
check_motion('together, acceleration', 20, rows('accel.csv', ('ax', 'ay', 'az')), *loss('accel', 'motion-lost', 'motion-returned', 'sensors'), 3 * swing,
             lambda p: (2 * math.sin(p), -3 * math.cos(p), 9.80665))
check_motion('together, attitude', 20, rows('turn.csv', ('qx', 'qy', 'qz', 'qw')), *loss('turn', 'motion-lost', 'motion-returned', 'sensors'), 0.25 * swing,
             lambda p: (0, 0, math.sin(0.25 * math.sin(p)), math.cos(0.25 * math.sin(p))))

check_balance('loop')
sound = samples('-f', 'f32le', '-ar', '8000', '-ac', '1', '-i', out / 'loop.raw')
lost, back = loss('mic', 'device-lost', 'device-back', 'loop', 'loop')
# It ends when the chain does.
begun = next((e['time'] for e in events('loop') if e.get('state') == 'draining'), 0) - len(sound) / 8000
check_sound('loop', sound, 1000, lost - begun, back - begun, float(given_back.get('player', 0)) - begun)

point('every event came in time', text('late') == '', text('late').strip())
point('the guest\'s kernel had no fault', text('kernel.faults') == '', text('kernel.faults')[:300])
print(f'{failed} points failed')
sys.exit(1 if failed else 0)
