#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks whether every source file names its licence in its first lines; `--write` adds the line where it is missing."""
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[1]
LINE = "SPDX-License-Identifier: Apache-2.0"
SLASHES = {".swift", ".c", ".h", ".cpp", ".js", ".modulemap"}
HASHES = {".py", ".sh"}


def comment(path, text):
    if path.suffix in SLASHES:
        return f"// {LINE}"
    if path.suffix == ".css":
        return f"/* {LINE} */"
    return f"# {LINE}" if path.suffix in HASHES or text.startswith("#!") else None


def with_line(path, text, line):
    """After what must come first: the interpreter, the version of SwiftPM."""
    first, mark, rest = text.partition("\n")
    if first.startswith("#!") or "swift-tools-version" in first:
        return first + mark + line + "\n" + rest
    return line + "\n" + ("\n" if path.suffix in SLASHES else "") + text


def main():
    missing = []
    for name in subprocess.check_output(["git", "-C", root, "ls-files"], text=True).splitlines():
        path = root / name
        if not path.is_file() or path.is_symlink():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        line = comment(path, text)
        if line is None or LINE in "\n".join(text.split("\n")[:3]):
            continue
        missing.append(name)
        if "--write" in sys.argv[1:]:
            path.write_text(with_line(path, text, line), encoding="utf-8")
    if missing and "--write" not in sys.argv[1:]:
        print("\n".join(f"{name}: the licence is missing. scripts/spdx.py --write adds it." for name in missing))
        return 1
    return 0


sys.exit(main())
