#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the tables of options and keys in docs/ and in the plugins' READMEs equal to what the built program says.

    option-tables.py --check    exit status 1 and a diff when a table is not what the program says
    option-tables.py --write    writes them anew

A table of a stage type's options stands between `<!-- options ID -->` and `<!-- end -->`, and is what `framehost describe` says. One of an object's
keys in the chain file stands between `<!-- keys OBJECT -->` and `<!-- end -->`, and is what `framehost schema` says.
"""
import difflib, json, os, pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HOST = os.environ.get('FRAMEHOST', str(ROOT / '.build/release/framehost'))


def with_members(options, path=''):
    """Options, and behind each the members of its objects: `areas`, `areas[].polygon`."""
    for option in options:
        name = path + option['name']
        yield {**option, 'name': name}
        yield from with_members(option.get('members', []), name + ('[]' if option['type'].startswith('list') else '') + '.')


def table(plugin):
    stage = json.loads(subprocess.check_output([HOST, 'describe', plugin, '--json'], text=True))
    if stage['kind'] == 'service':
        lines = [f'{stage["summary"]} The key `{stage["key"]}` of the chain file.', '']
    else:
        lines = [f'{stage["summary"]} Takes {stage["input"]}; gives {stage["output"]}.', '']
    if not stage['options']:
        return lines + ['No options.']
    lines += ['| key | type | default | range | live | what |', '|---|---|---|---|---|---|']
    for option in with_members(stage['options']):
        default = '' if option['default'] is None else f'`{json.dumps(option["default"])}`'
        bounds = '' if option['minimum'] is None else f'{option["minimum"]}...{option["maximum"]}'
        bounds = ' '.join(x for x in (bounds, option['unit']) if x)
        lines.append(f'| `{option["name"]}` | {option["type"]} | {default} | {bounds} | {"yes" if option["live"] else ""} | {option["help"]}{" Required." if option.get("required") else ""} |')
    for command in stage.get('commands', []):
        lines += ([''] if command is stage['commands'][0] else []) + [f'Command `{command["name"]}`: {command["summary"]}']
    for event in stage.get('events', []):
        members = [f'`{m["name"]}` ({m["type"]}) {m["summary"].rstrip(".")}' for m in event['members']]
        tail = f' {"; ".join(members)}.' if members else ''
        lines += ([''] if event is stage['events'][0] else []) + [f'- Event `{event["name"]}`: {event["summary"]}{tail}']
    return lines


def kind(schema):
    """The type of a value in words."""
    if 'anyOf' in schema and 'type' not in schema:
        return ' or '.join(kind(one) for one in schema['anyOf'])
    if '$ref' in schema:
        return schema['$ref'].split('/')[-1]
    # Of stage types and events there are too many.
    if len(schema.get('enum', [])) > 12:
        return 'string'
    if 'enum' in schema:
        return ', '.join(f'"{word}"' for word in schema['enum'])
    most = f' of at most {schema["maxItems"]}' if 'maxItems' in schema else ''
    return {'boolean': 'true or false', 'array': f'list{most}', None: ''}.get(schema.get('type'), schema.get('type'))


def keys(name):
    schema = json.loads(subprocess.check_output([HOST, 'schema'], text=True))
    stage, rule = schema['$defs']['stage'], schema['$defs']['rule']
    whole = {'chain': schema, 'stage': stage, 'rule': rule, 'link': stage['properties']['link'],
             'join': stage['properties']['join'], 'otherwise': rule['properties']['otherwise']}[name]
    lines = ['| key | type | default | range | what |', '|---|---|---|---|---|']
    for key, schema in whole['properties'].items():
        default = f'`{json.dumps(schema["default"])}`' if 'default' in schema else ''
        bounds = f'{schema["minimum"]}...{schema["maximum"]}' if 'minimum' in schema else ''
        if 'exclusiveMinimum' in schema:
            bounds = f'above {schema["exclusiveMinimum"]}, up to {schema["maximum"]}'
        needed = ' Required.' if key in whole.get('required', []) else ''
        lines.append(f'| `{key}` | {kind(schema)} | {default} | {bounds} | {schema["description"]}{needed} |')
    return lines


def renewed(text):
    def replace(match):
        lines = table(match[2]) if match[1] == 'options' else keys(match[2])
        return '\n'.join([f'<!-- {match[1]} {match[2]} -->', *lines, '<!-- end -->'])
    return re.sub(r'<!-- (options|keys) ([a-z0-9-]+) -->\n.*?<!-- end -->', replace, text, flags=re.S)


def main():
    wrong = 0
    found = set()
    for path in [ROOT / 'docs/chain-file.md', ROOT / 'docs/events.md', ROOT / 'docs/rules.md', *sorted(ROOT.glob('Sources/Plugins/*/*/README.md'))]:
        old = path.read_text()
        found |= set(re.findall(r'<!-- options ([a-z0-9-]+) -->', old)) if path.name == 'chain-file.md' else set()
        new = renewed(old)
        if new == old:
            continue
        if '--write' in sys.argv:
            path.write_text(new)
        else:
            wrong += 1
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), str(path.relative_to(ROOT)), 'framehost'))
    plugins = json.loads(subprocess.check_output([HOST, 'plugins', '--json'], text=True))['plugins']
    # Services have pages of their own (docs/control.md), encoders no options.
    there = {p['id'] for p in plugins if p['kind'] not in ('service', 'encoder')}
    for plugin in sorted(there - found):
        wrong += 1
        print(f'docs/chain-file.md has no table of {plugin}')
    print(f'{len(found)} tables of options checked, {wrong} faults' if '--write' not in sys.argv else 'written')
    return 1 if wrong and '--write' not in sys.argv else 0


sys.exit(main())
