# SPDX-License-Identifier: Apache-2.0
"""A job as tasks of Ray."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ray

from .job import Job
from .process import run_program

log = logging.getLogger("framehost_ray")

WRONG = 2
"""Exit status of a wrong chain or command line: another try would end the same way."""


class TaskFailed(Exception):
    """A task ended in a way that another try may mend."""


def run(job: Job, *, retries: int = 5) -> int:
    """Runs all tasks, then the report. Returns framehost's status: 0 all files are done, 1 some are not, 2 the chain is wrong.

    Ray must be initialised, or is by its own rules (``RAY_ADDRESS``). A task whose worker or node is lost is started again, up to
    ``retries`` times, and so is one that ended with status 1. What is left then, the report's batch does.
    An exception, such as KeyboardInterrupt, cancels the tasks and ends their programs.
    """
    connect()
    options = {"num_cpus": job.cores, "memory": job.memory_bytes, "max_retries": retries, "retry_exceptions": [TaskFailed]}
    shard = ray.remote(**options)(_run_shard)
    statuses = in_order(
        ((f"{job.name} {index}/{job.tasks}", lambda index=index: shard.options(name=f"{job.name}-{index}").remote(job, index))
         for index in range(1, job.tasks + 1)),
        at_once=job.tasks_at_once or _room(job.cores), stops=lambda status: status == WRONG)
    if WRONG in statuses:
        return WRONG
    # Its status 1 says that files are set aside: it is the answer, and no reason for another try.
    report = ray.remote(**{**options, "retry_exceptions": False})(_run_report)
    status = in_order([(f"{job.name} report", lambda: report.options(name=f"{job.name}-report").remote(job))], at_once=1)[0]
    return 1 if status is None or status < 0 else status


def in_order(
    tasks: Iterable[tuple[str, Callable[[], Any]]], *, at_once: int, stops: Callable[[Any], bool] = lambda _: False
) -> list[Any]:
    """Starts tasks, ``at_once`` at most under way, and gathers their results; None for a task that failed for good.

    No more are started once ``stops`` says so of a result; those under way are cancelled. SIGINT and SIGTERM raise KeyboardInterrupt.
    """
    under_way: dict[Any, str] = {}
    results: list[Any] = []

    def take_one() -> bool:
        ready = []
        while not ready:
            if signals:
                raise KeyboardInterrupt
            ready, _ = ray.wait(list(under_way), num_returns=1, timeout=0.3)
        name = under_way.pop(ready[0])
        try:
            results.append(ray.get(ready[0]))
        except (ray.exceptions.RayTaskError, ray.exceptions.WorkerCrashedError, ray.exceptions.RayError) as fault:
            log.warning("%s: failed for good: %s", name, str(fault).strip().splitlines()[-1] if str(fault).strip() else fault)
            results.append(None)
        return stops(results[-1])

    with _noted_signals() as signals:
        try:
            for name, start in tasks:
                while len(under_way) >= at_once:
                    if take_one():
                        return results
                under_way[start()] = name
            while under_way:
                if take_one():
                    return results
            return results
        finally:
            for ref in under_way:
                ray.cancel(ref)
            if under_way:
                # Their programs take their attempts back.
                ray.wait(list(under_way), num_returns=len(under_way), timeout=15)


@contextlib.contextmanager
def _noted_signals() -> Iterator[list[int]]:
    """SIGINT and SIGTERM that came: an exception from a handler in the middle of Ray's native code can abort the process."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def connect() -> None:
    """Ray must know its cluster before it is asked what that has."""
    if ray.is_initialized():
        return
    of_caller = signal.getsignal(signal.SIGTERM)
    ray.init()
    # Ray has put its own in its place, which leaves with the signal's number as the status.
    if threading.current_thread() is threading.main_thread() and of_caller is not None:
        signal.signal(signal.SIGTERM, of_caller)


def _room(cores: int) -> int:
    """Tasks that keep the cluster busy, and as many again that wait where a task would begin."""
    return max(2, 2 * int(ray.cluster_resources().get("CPU", 1)) // cores)


def _run_shard(job: Job, index: int) -> int:
    return _retried(run_program(job.command(index), job.folder, job.variables), f"{job.name} {index}/{job.tasks}")


def _run_report(job: Job) -> int:
    return run_program(job.command(None), job.folder, job.variables)


def _retried(status: int, name: str) -> int:
    if status in (0, WRONG):
        return status
    raise TaskFailed(f"{name}: framehost ended " + (f"by signal {-status}" if status < 0 else f"with status {status}"))
