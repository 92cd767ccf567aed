# SPDX-License-Identifier: Apache-2.0
"""A program run by a task, which ends with the task whatever happens to it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

_GRACE = 10.0
"""Seconds from SIGTERM to SIGKILL; framehost needs less to take its attempts back."""


def run_program(command: Sequence[str], folder: str, variables: Mapping[str, str]) -> int:
    """Runs the command to its end and returns its status; below 0 it is a signal.

    Waits in short steps: an exception of ``ray.cancel`` only comes between two instructions of Python. A worker that is killed cannot
    end its child; the kernel does that then.
    """
    words = list(command)
    if setpriv := shutil.which("setpriv"):
        words = [setpriv, "--pdeathsig", "KILL", *words]
    try:
        child = subprocess.Popen(words, cwd=folder, env={**os.environ, **variables}, stdin=subprocess.DEVNULL)
    except FileNotFoundError as fault:
        raise FileNotFoundError(
            f"{fault.filename} is not on this node. Install framehost there at the same place, and share the folders.") from fault
    try:
        while True:
            try:
                return child.wait(timeout=0.3)
            except subprocess.TimeoutExpired:
                continue
    except BaseException:
        child.terminate()
        try:
            child.wait(timeout=_GRACE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise
