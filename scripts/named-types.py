#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every type which docs/architecture.md names in backquotes exists in the sources; exit status 1 where one does not."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[1]
text = (root / "docs/architecture.md").read_text()
named = {name for name in re.findall(r"`([A-Z][A-Za-z0-9]*)`", text) if re.search(r"[a-z]", name)}
sources = "\n".join(path.read_text() for path in (root / "Sources").rglob("*.swift") if ".build" not in path.parts)
declared = set(re.findall(r"\b(?:struct|class|enum|protocol|actor|typealias)\s+([A-Z][A-Za-z0-9]*)", sources))
missing = sorted(named - declared)
for name in missing:
    print(f"docs/architecture.md names '{name}', and no source declares it.")
print(f"{len(named)} types named, {len(missing)} missing")
sys.exit(1 if missing or not named else 0)
