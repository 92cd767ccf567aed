#!/usr/bin/env python3
"""Judges what job.sh brought back from the guest: check.py FOLDER. One line for each point; exit status 1 where one fails."""
import json
import pathlib
import subprocess
import sys

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


def times(name):
    found = subprocess.run(
        ['ffprobe', '-v', 'error', '-show_entries', 'packet=pts_time', '-of', 'csv=p=0', out / f'{name}.mp4'], capture_output=True,
        text=True, check=False)
    return sorted(float(line.strip(',')) for line in found.stdout.split())


def check_rate(name, rate):
    """The mean step: the guest's timer is late by milliseconds now and then, never on average."""
    at = times(name)
    if len(at) < 2:
        return point(f'{name}: has times', False)
    # What a busy machine's encoder had no time for is between them as well.
    steps = len(at) - 1 + figures(name).get('missed', 0) + ledger(name).get('dropped', 0)
    mean = (at[-1] - at[0]) / steps
    point(f'{name}: times rise', all(b > a for a, b in zip(at, at[1:])))
    point(f'{name}: mean step within 1 % of 1/{rate} s', abs(mean * rate - 1) < 0.01, f'{mean * 1000:.3f} ms')


RED = ((81, 81), (90, 90), (239, 239))


def check_balance(name):
    account = ledger(name)
    point(f'{name}: exit status 0', text(f'{name}.status').strip() == '0', text(f'{name}.errors')[-300:] if text(f'{name}.status').strip() != '0' else '')
    whole = account.get('captured', -1) + account.get('made', 0) + account.get('copies', 0)
    parts = sum(account.get(key, 0) for key in ('delivered', 'merged', 'idle', 'dropped', 'inFlight'))
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
point('controls: 999 is refused with the range', '999 is outside 0...255' in answers, answers[:300] if '999 is' not in answers else '')
point('controls: a wrong name is refused with the nearest', "Did you mean 'brightness'?" in answers)

# Who may not.
point('denied: names the group', "Join the group 'video'" in text('denied'), text('denied').strip()[:200])
point('busy: names the program', 'is in use by framehost (pid ' in text('busy'), text('busy').strip()[:200])

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
point('pulled: streaming again within 2 s of its return', late < 2, f'{late:.2f} s')
at = times('pulled')
longest = max((b - a for a, b in zip(at, at[1:])), default=99)
point('pulled: no gap in the recording of more than 0.5 s', longest < 0.5, f'{longest * 1000:.0f} ms')
_, values = picture_values('pulled')
point('pulled: the last picture stays meanwhile', len(values) > 60 and all(v == RED for v in values), len(values))

# A camera that comes later.
check_balance('wait')
_, values = picture_values('wait')
point('wait: a white slate, then the camera', values[:1] == [((235, 235), (128, 128), (128, 128))] and values[-1:] == [RED],
      (values[:1], values[-1:]))
point('every event came in time', text('late') == '', text('late').strip())
point('the guest\'s kernel had no fault', text('kernel.faults') == '', text('kernel.faults')[:300])
print(f'{failed} points failed')
sys.exit(1 if failed else 0)
