#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A hop on one thread with and without per-stage timing (--stats), and start-up with all shipped plugins beside the executable.

Whole-process CPU by double difference, as in the yardstick's peer-hop.py; needs its lib.py in PYTHONPATH.
"""
import os, statistics
from lib import *
import hooks

F1, F2, N = 10000, 170000, 10


def per_hop(timed):
    extra = ['--stats', os.path.join(TMP, 'timing-stats.json')] if timed else []
    m = {(n, f): measure(hooks.hop(n, f, False) + extra) for n in (0, N) for f in (F1, F2)}
    return ((m[N, F2]['cpu'] - m[N, F1]['cpu']) - (m[0, F2]['cpu'] - m[0, F1]['cpu'])) / (N * (F2 - F1)) * 1e9


rows = {False: [], True: []}
with Noise():
    for _ in range(runs(5)):
        for timed in rows:
            rows[timed].append(per_hop(timed))
table(['hop on one thread, CPU ns per frame', 'median', 'range'],
      [['with per-stage timing (--stats)' if timed else 'without timing', f'{statistics.median(v):.0f}', f'{min(v):.0f}..{max(v):.0f}']
       for timed, v in rows.items()])
