#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the option tables of docs/chain-file.md and of the plugins' READMEs equal to what the built plugins say.

    option-tables.py --check    exit status 1 and a diff when a table is not what `framehost describe` says
    option-tables.py --write    writes them anew

A table stands between `<!-- options ID -->` and `<!-- end -->`.
"""
import difflib, json, os, pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HOST = os.environ.get('FRAMEHOST', str(ROOT / '.build/release/framehost'))


def table(plugin):
    stage = json.loads(subprocess.check_output([HOST, 'describe', plugin, '--json'], text=True))
    if stage['kind'] == 'service':
        lines = [f'{stage["summary"]} The key `{stage["key"]}` of the chain file.', '']
    else:
        lines = [f'{stage["summary"]} Takes {stage["input"]}; gives {stage["output"]}.', '']
    if not stage['options']:
        return lines + ['No options.']
    lines += ['| key | type | default | range | live | what |', '|---|---|---|---|---|---|']
    for option in stage['options']:
        default = '' if option['default'] is None else f'`{json.dumps(option["default"])}`'
        bounds = '' if option['minimum'] is None else f'{option["minimum"]}...{option["maximum"]}'
        bounds = ' '.join(x for x in (bounds, option['unit']) if x)
        lines.append(f'| `{option["name"]}` | {option["type"]} | {default} | {bounds} | {"yes" if option["live"] else ""} | {option["help"]} |')
    for command in stage.get('commands', []):
        lines += ([''] if command is stage['commands'][0] else []) + [f'Command `{command["name"]}`: {command["summary"]}']
    for event in stage.get('events', []):
        members = [f'`{m["name"]}` ({m["type"]}) {m["summary"].rstrip(".")}' for m in event['members']]
        tail = f' {"; ".join(members)}.' if members else ''
        lines += ([''] if event is stage['events'][0] else []) + [f'- Event `{event["name"]}`: {event["summary"]}{tail}']
    return lines


def renewed(text):
    def replace(match):
        return '\n'.join([f'<!-- options {match[1]} -->', *table(match[1]), '<!-- end -->'])
    return re.sub(r'<!-- options ([a-z0-9-]+) -->\n.*?<!-- end -->', replace, text, flags=re.S)


def main():
    wrong = 0
    found = set()
    for path in [ROOT / 'docs/chain-file.md', ROOT / 'docs/events.md', *sorted(ROOT.glob('Sources/Plugins/*/*/README.md'))]:
        old = path.read_text()
        found |= set(re.findall(r'<!-- options ([a-z0-9-]+) -->', old)) if path.name == 'chain-file.md' else set()
        new = renewed(old)
        if new == old:
            continue
        if '--write' in sys.argv:
            path.write_text(new)
        else:
            wrong += 1
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), str(path.relative_to(ROOT)), 'describe'))
    plugins = json.loads(subprocess.check_output([HOST, 'plugins', '--json'], text=True))['plugins']
    # Services have pages of their own (docs/control.md), encoders no options.
    there = {p['id'] for p in plugins if p['kind'] not in ('service', 'encoder')}
    for plugin in sorted(there - found):
        wrong += 1
        print(f'docs/chain-file.md has no table of {plugin}')
    print(f'{len(found)} option tables checked, {wrong} faults' if '--write' not in sys.argv else 'written')
    return 1 if wrong and '--write' not in sys.argv else 0


sys.exit(main())
