#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every frei0r effect that is installed, each in a process of its own, and writes the table of docs/frei0r.md.

    frei0r-table.py [--write] [NAME...]

An effect is described (`framehost describe`), then runs over 30 frames of each size. $FRAMEHOST names the program. Exit status 1 when an effect crashes, hangs or
fails that is not among those explained below.
"""
import json, os, pathlib, re, signal, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
HOST = os.environ.get('FRAMEHOST', str(ROOT / '.build/release/framehost'))
PAGE = ROOT / 'docs/frei0r.md'
FOLDERS = os.environ.get('FREI0R_PATH', '/usr/lib/frei0r-1').split(':')
SIZES = ['640x360', '1280x720', '179x133']
FRAMES = 30
SECONDS = 60
# Set so that the effect is a filter of its input, and why.
NEEDS = {'curves': ({'Show curves': False}, 'with `"Show curves": false`: it draws its graph by default, and loops for ever doing so')}

# Faults of an effect that are known, by size, and what they are.
KNOWN = {('partik0l', '179x133'): 'writes beyond the end of pictures smaller than about 320x240, which may crash'}


def run(arguments):
    """Exit status (negative: the signal; None: killed for time) and standard error or output."""
    try:
        done = subprocess.run([HOST, *arguments], capture_output=True, text=True, errors='replace', timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, '', ''
    return done.returncode, done.stdout, done.stderr


def describe(name):
    """Stage, kind and number of parameters; or None, None, and what went wrong."""
    for stage in ('frei0r', 'frei0r-mixer'):
        status, out, error = run(['describe', stage, name, '--json'])
        if status == 0:
            topic = json.loads(out)
            return stage, topic['facts']['kind'], len(topic['values']), ''
        if 'Use the stage' not in error:
            break
    return None, '?', None, verdict(status, error)


def verdict(status, error):
    if status is None:
        return f'hangs (killed after {SECONDS} s)'
    if status < 0:
        return f'crashes ({signal.Signals(-status).name})'
    return error.strip().split('\n')[0]


def chain(stage, kind, name, size):
    effect = {'id': 'effect', 'use': stage, 'effect': name}
    if name in NEEDS:
        effect['parameters'] = NEEDS[name][0]
    pictures = {'id': 'pictures', 'use': 'test-source', 'size': size, 'frames': FRAMES}
    stages = [pictures, effect, {'id': 'end', 'use': 'null-sink'}]
    if stage == 'frei0r-mixer':
        others = {'other': 'balls', 'third': 'gradient'}
        effect['from'] = ['pictures', *others][:3 if kind == 'mixer of three' else 2]
        stages[1:1] = [{**pictures, 'id': id, 'pattern': others[id]} for id in effect['from'][1:]]
    return {'stages': stages}


def measure(stage, kind, name, size, folder):
    """Milliseconds per frame as text, or what went wrong."""
    path, stats = folder / 'chain.json', folder / 'stats.json'
    path.write_text(json.dumps(chain(stage, kind, name, size)))
    stats.unlink(missing_ok=True)
    status, _, error = run([str(path), '--quiet', '--stats', str(stats)])
    if status != 0:
        return None, verdict(status, error)
    figures = json.loads(stats.read_text())
    effect = next(s for s in figures['stages'] if s['id'] == 'effect')
    if effect['framesOut'] != FRAMES:
        return None, f'{effect["framesOut"]} of {FRAMES} frames came out'
    return f'{effect["p50Us"] / 1000:.1f}', None


def main():
    wanted = [a for a in sys.argv[1:] if not a.startswith('-')]
    names = sorted({f.stem for folder in FOLDERS for f in pathlib.Path(folder).glob('*.so')} & set(wanted) if wanted else
                   {f.stem for folder in FOLDERS for f in pathlib.Path(folder).glob('*.so')})
    head = ['effect', 'kind', 'parameters', *SIZES, 'what happened']
    lines = ['| ' + ' | '.join(head) + ' |', '|---|---|---|' + '---:|' * len(SIZES) + '---|']
    counts, bad = {}, 0
    with tempfile.TemporaryDirectory() as temporary:
        for name in names:
            stage, kind, parameters, what = describe(name)
            times = [''] * len(SIZES)
            if stage:
                results = [measure(stage, kind, name, size, pathlib.Path(temporary)) for size in SIZES]
                times = [time or '' for time, _ in results]
                faults = [f'{size}: {fault}' for size, (_, fault) in zip(SIZES, results) if fault and (name, size) not in KNOWN]
                bad += bool(faults)
                known = [text for (effect, _), text in KNOWN.items() if effect == name]
                what = '; '.join(faults or ['ran', *known]) + (', ' + NEEDS[name][1] if name in NEEDS else '')
            else:
                bad += 1
            counts[kind] = counts.get(kind, 0) + 1
            lines.append(f'| {name} | {kind} | {"" if parameters is None else parameters} | ' + ' | '.join(times) + f' | {what} |')
            print(lines[-1], file=sys.stderr, flush=True)
    summary = ', '.join(f'{count} {kind if count == 1 else kind.replace("filter", "filters").replace("source", "sources").replace("mixer", "mixers")}' for kind, count in sorted(counts.items()))
    table = f'{len(names)} effects: {summary}; {bad} that did not run.\n\n' + '\n'.join(lines)
    if '--write' in sys.argv:
        text = PAGE.read_text()
        PAGE.write_text(re.sub(r'<!-- table -->\n.*<!-- end -->', lambda _: f'<!-- table -->\n{table}\n<!-- end -->', text, flags=re.S))
    else:
        print(table)
    return 1 if bad else 0


sys.exit(main())
