# SPDX-License-Identifier: Apache-2.0
"""The job that ``framehost batch --on ray`` writes."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any


@dataclasses.dataclass(frozen=True)
class Job:
    """What the tasks of a batch are told; all paths are absolute and the same on every node."""

    name: str
    program: str
    folder: str
    """Relative names in the chain start here."""
    arguments: tuple[str, ...]
    """Of the program, for every task."""
    task: tuple[str, ...]
    """Further arguments of tasks."""
    report: tuple[str, ...]
    """Further arguments of the last one, which writes the report."""
    variables: dict[str, str]
    files: int
    tasks: int
    tasks_at_once: int | None
    cores: int
    """Of each task."""
    memory_bytes: int

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Job:
        """Reads ``job.json``. Raises ValueError, with the file's name, where it is none."""
        with open(path, encoding="utf-8") as file:
            try:
                return Job.of(json.load(file))
            except (KeyError, TypeError, ValueError) as fault:
                raise ValueError(
                    f"{os.fspath(path)}: is not a job of framehost batch --on ray: {fault!r}. Write it anew with that command."
                ) from fault

    @staticmethod
    def of(words: dict[str, Any]) -> Job:
        if words["format"] != 1:
            raise ValueError(f"its format is {words['format']}, and this package reads 1")
        at_once = words["tasksAtOnce"]
        job = Job(
            name=str(words["name"]), program=str(words["program"]), folder=str(words["folder"]),
            arguments=tuple(map(str, words["arguments"])), task=tuple(map(str, words["task"])), report=tuple(map(str, words["report"])),
            variables={str(key): str(value) for key, value in words["variables"].items()}, files=int(words["files"]),
            tasks=int(words["tasks"]), tasks_at_once=None if at_once is None else int(at_once), cores=int(words["cores"]),
            memory_bytes=int(words["memoryBytes"]))
        if not (1 <= job.tasks <= 1_000_000 and 1 <= job.cores <= 1024 and 1 <= job.memory_bytes < 1 << 60):
            raise ValueError("tasks, cores or memoryBytes is out of range")
        return job

    def command(self, shard: int | None) -> list[str]:
        """The command of a task, counted from 1; of the report for None."""
        last = self.report if shard is None else (*self.task, "--shard", f"{shard}/{self.tasks}")
        return [self.program, *self.arguments, *last]
