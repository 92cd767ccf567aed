#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists Swift files over 450 lines and functions over 60 lines in folders: `scripts/long-code.py FOLDER…`. Status 1 where there is one.

The code is laid out by swift-format: a function ends at the first line that has its own indentation and begins with a brace. What is exempt is named below, with its reason.
"""
import pathlib
import re
import sys

LINES, FUNCTION = 450, 60
# Tables: a function that has a sentence or an action for each case of a list, and a file of texts.
EXEMPT = {
    "CtlCommand.swift": ["run"], "LiveMessage.swift": ["init"], "NetworkFault.swift": ["opening"], "NetworkSourceOptions.swift": ["validate"],
    "SoundTrack.swift": ["init"],
}
TEXTS = ["StageTemplate.swift"]
HEAD = re.compile(r"^( *)(?:@\S+ )*(?:(?:public|package|private|fileprivate|internal|override|static|class|final|mutating|nonmutating|convenience|required|nonisolated|isolated) )*"
                  r"(func [^\s(<]+|init\??|deinit)\b")


def functions(lines):
    """Name, first line and length of each function that is not inside another one."""
    index = 0
    while index < len(lines):
        head = HEAD.match(lines[index])
        if not head:
            index += 1
            continue
        indent = head[1]
        end = index
        # A head of several lines ends with its brace; a requirement of a protocol has none.
        while end < len(lines) and not lines[end].rstrip().endswith("{"):
            if end > index and lines[end].startswith(indent) and not lines[end][len(indent):].startswith((" ", ")")):
                break
            if lines[end].rstrip().endswith("}"):
                break
            end += 1
        if end < len(lines) and lines[end].rstrip().endswith("{"):
            while end < len(lines) and lines[end].rstrip() != indent + "}":
                end += 1
        yield head[2].removeprefix("func "), index + 1, end - index + 1
        index = end + 1


def main():
    found = []
    for folder in sys.argv[1:]:
        for path in sorted(pathlib.Path(folder).rglob("*.swift")):
            if ".build" in path.parts:
                continue
            lines = path.read_text().split("\n")
            if len(lines) - 1 > LINES and path.name not in TEXTS:
                found.append(f"{path}: {len(lines) - 1} lines, more than {LINES}")
            for name, first, length in functions(lines):
                if length > FUNCTION and name not in EXEMPT.get(path.name, ()):
                    found.append(f"{path}:{first}: {name} has {length} lines, more than {FUNCTION}")
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
