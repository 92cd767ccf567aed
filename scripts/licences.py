#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/licences.md: what the release build links, and under which licences; `--check` compares and ends with 1 where it differs.

Read off the build in .build/release: the shared libraries that each of its images needs (readelf), the Debian package that each comes
from (dpkg), the licence that the package's copyright file gives for the library, and the Swift packages that were compiled in with
their own licence files.
"""
import ctypes
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[1]
build = root / ".build/release"
page = root / "docs/licences.md"

# Where a copyright file has no "Files: *", or says something else of the library than of its programs: what it says of the library.
OF_THE_LIBRARY = {
    "libc6": "LGPL-2.1+",
    "libgcc-s1": "GPL-3+ with the GCC Runtime Library Exception",
    "libstdc++6": "GPL-3+ with the GCC Runtime Library Exception",
    "libv4l-0": "LGPL-2.1+",
    "libasound2": "LGPL-2.1+",
    "libturbojpeg0": "BSD-3-clause, IJG (BSD-BY-LC-NE), Zlib",
}
# FFmpeg's own licence is LGPL; how it was built decides, which the library itself tells.
TELLS = {"libavutil": "avutil_license", "libavformat": "avformat_license", "libavcodec": "avcodec_license", "libswscale": "swscale_license", "libswresample": "swresample_license"}
# Not linked: files that stages load by name while they run.
LOADED = {"frei0r-plugins": "`frei0r`, `frei0r-mixer`", "opencv-data": "`face-effect` (cascades)", "fonts-dejavu-core": "`text`, slates"}


def needed(image):
    text = subprocess.run(["readelf", "-d", image], capture_output=True, text=True, check=True).stdout
    return re.findall(r"NEEDED.*\[(.*)\]", text)


def package(library):
    out = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    path = re.search(rf"^\s*{re.escape(library)} .* => (\S+)$", out, re.M)
    if not path:
        sys.exit(f"{library} is needed and not installed. Run 'make packages'.")
    for candidate in (path[1], str(pathlib.Path(path[1]).resolve()), path[1].replace("/lib/", "/usr/lib/", 1), "/" + path[1].split("/usr/", 1)[-1]):
        found = subprocess.run(["dpkg", "-S", candidate], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    sys.exit(f"No package owns {path[1]}.")


def licence(name, library=""):
    base = library.split(".so")[0]
    if base in TELLS:
        function = getattr(ctypes.CDLL(library), TELLS[base])
        function.restype = ctypes.c_char_p
        return "LGPL-2.1+; Debian's build: " + function().decode()
    if name in OF_THE_LIBRARY:
        return OF_THE_LIBRARY[name]
    text = pathlib.Path(f"/usr/share/doc/{name}/copyright").read_text(errors="replace")
    stanzas = [part for part in re.split(r"\n\s*\n", text) if re.match(r"Files: ?\*\s*\n", part.lstrip())]
    stanza = stanzas and re.search(r"^License: *(\S[^\n]*)", stanzas[0], re.M)
    if not stanza:
        sys.exit(f"/usr/share/doc/{name}/copyright says no licence for all files. Add it to OF_THE_LIBRARY in {__file__}.")
    return stanza[1].strip()


def swift_packages():
    # A folder is there for each target of each package; objects only for what is linked.
    compiled = {path.name[: -len(".build")] for path in build.glob("*.build") if next(path.rglob("*.o"), None)}
    found = {}
    for checkout in sorted((root / ".build/checkouts").iterdir()):
        targets = {path.name for path in (checkout / "Sources").iterdir() if path.is_dir()} & compiled
        if not targets:
            continue
        text = next((path.read_text() for path in sorted(checkout.glob("LICENSE*"))), "")
        if "Apache License" in text:
            found[checkout.name] = "Apache-2.0" + (" with the Swift Runtime Library Exception" if "Runtime Library Exception" in text else "")
        elif "Permission is hereby granted, free of charge" in text:
            found[checkout.name] = "MIT"
        else:
            sys.exit(f"{checkout.name} has no licence that this script knows.")
    return found


def images():
    return sorted(path for path in build.iterdir() if path.name == "framehost" or path.suffix == ".so")


def make():
    users, ours = {}, {path.name for path in images()}
    for image in images():
        for library in needed(image):
            if library in ours or library.startswith(("libswift", "libFoundation", "lib_Foundation", "libdispatch", "libBlocksRuntime", "ld-linux")):
                continue
            users.setdefault(library, set()).add(image.name)
    if not users:
        sys.exit(f"Nothing in {build}: run 'make build'.")
    rows = {}
    for library, by in users.items():
        name = package(library)
        rows.setdefault((name, licence(name, library)), (set(), set()))
        rows[(name, licence(name, library))][0].add(library)
        rows[(name, licence(name, library))][1].update(by)
    everywhere = len(ours)
    lines = [
        "# Licences of what framehost links",
        "",
        "Made by `python3 scripts/licences.py --write` from the release build; a test compares it.",
        "framehost itself is under the [Apache License 2.0](../LICENSE).",
        "",
        "x264, FFmpeg as Debian builds it, and frei0r's effects are under the GNU GPL, version 2 or later.",
        "Each plugin is an image of its own: a chain that uses none of theirs runs without them.",
        "Whoever distributes framehost together with these libraries distributes the whole under the GPL, version 3, with which the Apache License 2.0 is compatible.",
        "",
        "## Libraries from Debian",
        "",
        "| package | licence | linked by |",
        "|---|---|---|",
    ]
    for (name, text), (_, by) in sorted(rows.items()):
        who = "everything" if len(by) > everywhere / 2 else ", ".join(f"`{image.removeprefix('lib').removesuffix('.so')}`" for image in sorted(by))
        lines.append(f"| {name} | {text} | {who} |")
    lines += ["", "## Loaded while a chain runs", "", "| package | licence | by |", "|---|---|---|"]
    lines += [f"| {name} | {licence(name)} | {by} |" for name, by in sorted(LOADED.items())]
    lines += ["", "## Swift", "", "The runtime libraries of the Swift toolchain, Foundation's essentials and libdispatch among them: Apache-2.0 with the Swift Runtime Library Exception.", "", "| package | licence |", "|---|---|"]
    lines += [f"| {name} | {text} |" for name, text in swift_packages().items()]
    return "\n".join(lines) + "\n"


text = make()
if sys.argv[1:] == ["--write"]:
    page.write_text(text)
elif sys.argv[1:] == ["--check"]:
    if not page.exists() or page.read_text() != text:
        sys.exit("docs/licences.md is not what the build links. Run 'python3 scripts/licences.py --write'.")
    print("docs/licences.md is what the build links.")
else:
    print(text, end="")
