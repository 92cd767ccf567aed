# SPDX-License-Identifier: Apache-2.0
"""Asks an RTSP 1.0 server of H.264 what the RFCs and real clients ask, and says which rules it keeps.

    python3 Tests/Conformance/rtsp rtsp://[user:password@]host[:port]/path

Exit status: 0 when no "must" is broken (with --strict: no "should" either), 1 otherwise, 2 when the server cannot be reached or the arguments are wrong.
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor

import access
import hostile
import media
import personas
import sound
import transcripts
import tunnel
import wire
from rules import RULES, judge
from wire import Target

PARTS = (transcripts, access, media, sound, personas, tunnel, hostile)


def arguments():
    parser = argparse.ArgumentParser(prog="rtsp-conformance", description=__doc__.partition("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--long", action="store_true", help="also rules that wait for timeouts: up to two minutes and more")
    parser.add_argument("--only", default="", metavar="TEXT", help="rules whose group/name has this text in it")
    parser.add_argument("--strict", action="store_true", help="a broken 'should' counts as well")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each rule instead of the table")
    parser.add_argument("--patience", type=float, default=5.0, metavar="SECONDS", help="how long to wait for what must come (5)")
    parser.add_argument("--jobs", type=int, default=4, help="rules at a time (4)")
    return parser.parse_args()


def show(results):
    width = max(len(f"{r.rule.group}/{r.rule.name}") for r in results)
    for r in results:
        print(f"{r.outcome:7}  {r.rule.level:6}  {r.rule.group + '/' + r.rule.name:{width}}  {r.rule.what}{f' [{r.rule.source}]' if r.outcome in ('FAILED', 'differs') else ''}")
        if r.detail:
            print(f"{'':{19 + width}}-> {r.detail}")
    counts = {name: sum(r.outcome == name for r in results) for name in ("ok", "FAILED", "differs", "n/a")}
    print("\n" + ", ".join(f"{count} {name}" for name, count in counts.items()))


def main():
    options = arguments()
    wire.PATIENCE = options.patience
    try:
        target = Target(options.url)
        target.connect().socket.close()
    except (ValueError, OSError) as fault:
        print(f"rtsp-conformance: {options.url}: {fault}", file=sys.stderr)
        return 2
    chosen = [r for r in RULES if options.only in f"{r.group}/{r.name}" and (options.long or not r.is_long)]
    if not chosen:
        print(f"rtsp-conformance: no rule has '{options.only}' in its name", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda one: judge(one, target), chosen))
    if options.json:
        for r in results:
            print(json.dumps({"rule": f"{r.rule.group}/{r.rule.name}", "level": r.rule.level, "outcome": r.outcome, "detail": r.detail}))
    else:
        show(results)
    broken = {"FAILED", "differs"} if options.strict else {"FAILED"}
    return int(any(r.outcome in broken for r in results))


sys.exit(main())
