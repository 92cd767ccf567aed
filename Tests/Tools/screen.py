#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a person does before a screen, for tests: screen.py DISPLAY COMMAND TITLE [ARGUMENT…].

wait TITLE [N]     until N windows of that title are there (1), two minutes at most
size TITLE         its width and height
pixels TITLE x,y … the colour at each place, as r,g,b
move TITLE X Y     where it is (no window manager places them)
resize TITLE W H
key TITLE NAME     presses and lets go of a key in it
close TITLE        asks it to close, as a window manager's button does
"""
import sys
import time

from Xlib import X, XK, display, error, protocol
from Xlib.ext import xtest

screen = display.Display(sys.argv[1])
command, title, rest = sys.argv[2], sys.argv[3], sys.argv[4:]


def windows(node):
    found = []
    try:
        for child in node.query_tree().children:
            name = child.get_full_text_property(screen.intern_atom("_NET_WM_NAME")) or child.get_wm_name()
            if name == title and child.get_attributes().map_state == X.IsViewable:
                found.append(child)
            found += windows(child)
    except (error.BadWindow, error.BadDrawable):
        pass  # It has gone meanwhile.
    return found


def wait(count):
    deadline = time.monotonic() + 120
    while True:
        found = list(windows(screen.screen().root))
        if len(found) == count:
            return found
        if time.monotonic() > deadline:
            sys.exit(f"{len(found)} windows '{title}' after two minutes, not {count}")
        time.sleep(0.05)


if command == "wait":
    wait(int(rest[0]) if rest else 1)
    sys.exit()
window = wait(1)[0]
geometry = window.get_geometry()
if command == "size":
    print(f"{geometry.width}x{geometry.height}")
elif command == "pixels":
    for place in rest:
        x, y = map(int, place.split(","))
        data = window.get_image(x, y, 1, 1, X.ZPixmap, 0xFFFFFFFF).data
        print(f"{data[2]},{data[1]},{data[0]}")
elif command == "move":
    window.configure(x=int(rest[0]), y=int(rest[1]))
elif command == "resize":
    window.configure(width=int(rest[0]), height=int(rest[1]))
elif command == "key":
    window.set_input_focus(X.RevertToParent, X.CurrentTime)
    screen.sync()
    code = screen.keysym_to_keycode(XK.string_to_keysym(rest[0]))
    xtest.fake_input(screen, X.KeyPress, code)
    xtest.fake_input(screen, X.KeyRelease, code)
elif command == "close":
    window.send_event(
        protocol.event.ClientMessage(
            window=window, client_type=screen.intern_atom("WM_PROTOCOLS"),
            data=(32, [screen.intern_atom("WM_DELETE_WINDOW"), X.CurrentTime, 0, 0, 0])))
else:
    sys.exit(f"no command '{command}'")
screen.sync()
