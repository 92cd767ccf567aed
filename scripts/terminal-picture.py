#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs commands in a terminal of their own and draws what is seen there, as it is seen, as an animated SVG.

    scripts/terminal-picture.py OUT.svg COLUMNS ROWS 'command' ['command' ...]

Commands are shown as typed; their output keeps its timing, pauses cut to a second. Understood of terminal control: line ends, carriage
return, and "erase to the end of the line".
"""
import html, os, pty, re, select, sys, time

TYPING, PAUSE, HOLD = 0.03, 1.0, 4.0


def frames(commands, columns, rows):
    """(time, lines) for each change of the screen."""
    lines, now, seen = [''], 0.0, []

    def put(text):
        nonlocal lines
        for part in re.split(r'(\r\n|\n|\r|\x1b\[K)', text):
            if part in ('\r\n', '\n'):
                lines.append('')
            elif part == '\r':
                lines[-1] = ''
            elif part and part != '\x1b[K':
                lines[-1] += part
        # A terminal goes on in the next row where a line is too long.
        shown = [line[at:at + columns] for line in lines[-rows:] for at in range(0, max(len(line), 1), columns)]
        seen.append((now, shown[-rows:]))

    for command in commands:
        put('$ ')
        for word in re.findall(r' ?[^ ]+', command):
            now += TYPING * len(word)
            put(word)
        now += 0.3
        put('\n')
        child, terminal = pty.fork()
        if child == 0:
            os.environ['COLUMNS'] = str(columns)
            os.execvp('sh', ['sh', '-c', command])
        last = time.monotonic()
        while True:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            if not data:
                break
            now += min(time.monotonic() - last, PAUSE)
            last = time.monotonic()
            put(data.decode('utf-8', 'replace'))
        os.waitpid(child, 0)
        now += PAUSE
    return seen, now + HOLD


def svg(seen, length, columns, rows):
    width, height, cell = columns * 8.4 + 32, rows * 18 + 32, 18
    style, body = [], []
    for index, (begin, lines) in enumerate(seen):
        end = seen[index + 1][0] if index + 1 < len(seen) else length
        if end <= begin:
            continue
        a, b = begin / length * 100, end / length * 100
        style.append(f'@keyframes k{index}{{0%{{visibility:hidden}}{a:.3f}%{{visibility:visible}}{b:.3f}%{{visibility:hidden}}}}'
                     f'#f{index}{{visibility:hidden;animation:k{index} {length:.2f}s step-end infinite}}')
        text = ''.join(f'<text x="16" y="{16 + cell * (row + 0.8):.1f}">{html.escape(line)}</text>'
                       for row, line in enumerate(lines) if line.strip())
        body.append(f'<g id="f{index}">{text}</g>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}">'
            f'<style>text{{font:14px ui-monospace,DejaVu Sans Mono,monospace;fill:#d7dae0;white-space:pre}}{"".join(style)}</style>'
            f'<rect width="100%" height="100%" rx="8" fill="#1d2026"/>{"".join(body)}</svg>\n')


if __name__ == '__main__':
    out, columns, rows, *commands = sys.argv[1:]
    seen, length = frames(commands, int(columns), int(rows))
    with open(out, 'w') as file:
        file.write(svg(seen, length, int(columns), int(rows)))
