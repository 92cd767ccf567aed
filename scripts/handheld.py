#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes examples/media/handheld.csv: eight seconds of a camera that is held by hand and pushed now and then, as motion-source reads it.

Made up, 100 samples a second: a slow sway, a tremor of a few hertz, and pushes of 0.1 s and back. Always the same.
"""
import math
import random

G = 9.80665
random.seed(16)
print("t,gx,gy,gz,ax,ay,az,qx,qy,qz,qw")
tremor = [(random.uniform(3, 9), random.uniform(0, 2 * math.pi), random.uniform(0.1, 0.3)) for _ in range(6)]
pushes = [(1.0, 1, 0), (2.2, -1, 0), (3.4, 0, 1), (4.4, 0.7, -0.7), (5.4, -1.2, 0), (6.0, 1.2, 0), (6.6, -1.2, 0)]


def push(t, start):
    return 1 if start <= t < start + 0.1 else -1 if start + 0.1 <= t < start + 0.2 else 0


def roll(t):
    return math.radians(4 * math.sin(0.7 * t) + 1.5 * math.sin(2.3 * t + 1))


for index in range(801):
    t = index / 100
    angle = roll(t)
    rate = (roll(t + 0.001) - roll(t - 0.001)) / 0.002
    # Up in the picture's axes (x right, y down) of a camera that is turned clockwise about its line of sight.
    up = (-math.sin(angle), -math.cos(angle))
    shake = [sum(a * math.sin(2 * math.pi * f * t + p) for f, p, a in tremor[k : k + 3]) for k in (0, 3)]
    ax = G * (up[0] + sum(x * push(t, s) for s, x, _ in pushes)) + shake[0]
    ay = G * (up[1] + sum(y * push(t, s) for s, _, y in pushes)) + shake[1]
    # Camera to world (z up): looks at the horizon, turned by the roll.
    half = angle / 2
    s = math.sqrt(0.5)
    qx, qy, qz, qw = -s * math.cos(half), s * math.sin(half), s * math.sin(half), s * math.cos(half)
    print(f"{t:.2f},0,0,{rate:.5f},{ax:.4f},{ay:.4f},0,{qx:.6f},{qy:.6f},{qz:.6f},{qw:.6f}")
