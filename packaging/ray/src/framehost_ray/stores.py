# SPDX-License-Identifier: Apache-2.0
"""Batches on object stores, by fsspec.

A store has no hard links, so ``framehost batch`` cannot work in it. Each file is a task: it is copied to the node, done there by a batch of
one file, and uploaded to a name that belongs to this attempt alone. Whoever creates the record has won::

    OUT/clip.mp4                           the output, a copy of the attempt's that won
    OUT/.framehost/clip.mp4/KEY/UUID.mp4   an attempt's
    OUT/.framehost/clip.mp4/KEY/done       the record: created only where it is not there yet
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import os
import posixpath
import tempfile
import time
import uuid
from collections.abc import Sequence
from typing import Any

import ray

from .process import run_program
from .tasks import WRONG, _retried, _room, connect, in_order

log = logging.getLogger("framehost_ray")

CONDITIONAL = {"s3", "s3a", "gs", "gcs", "memory", "file", "local"}
"""Protocols whose file systems create a file only where there is none, in one step."""


def create(fs: Any, path: str, data: bytes) -> bool:
    """Creates a file with this content; False where it is there. In one step for the stores of ``CONDITIONAL``."""
    try:
        if _protocols(fs) & {"file", "local"}:
            fs.makedirs(posixpath.dirname(path), exist_ok=True)
            # The name appears with its content: a link of a whole file.
            temporary = f"{path}.{uuid.uuid4().hex}"
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(temporary, path)
            finally:
                os.unlink(temporary)
        else:
            # S3: If-None-Match; Google: ifGenerationMatch=0; others look first.
            fs.pipe_file(path, data, mode="create")
        return True
    except FileExistsError:
        return False
    except OSError as fault:
        # A store that answers 412 or 409, which its file system did not translate.
        if any(word in str(fault) for word in ("PreconditionFailed", "412", "ConditionalRequestConflict")):
            return False
        raise


def is_conditional(fs: Any) -> bool:
    return bool(_protocols(fs) & CONDITIONAL)


def _protocols(fs: Any) -> set[str]:
    return {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)


@dataclasses.dataclass(frozen=True)
class StoreBatch:
    """A chain over files of a store."""

    chain: str
    inputs: Sequence[str]
    out: str
    ending: str = ".mp4"
    program: str = "framehost"
    settings: Sequence[str] = ()
    cores: int = 2
    memory_bytes: int = 1 << 30
    report: str | None = None

    def run(self, *, retries: int = 5) -> int:
        """Runs the batch. Returns 0 where all files are done, 1 where some are not, 2 where the chain is wrong."""
        try:
            import fsspec
        except ImportError as fault:
            raise ImportError("object stores need fsspec. Install it: pip install fsspec.") from fault
        begin = time.monotonic()
        with open(self.chain, encoding="utf-8") as file:
            text = file.read()
        units = self._units(fsspec)
        out_fs, _ = fsspec.core.url_to_fs(self.out)
        if not is_conditional(out_fs):
            log.warning(
                "%s: this store is not known to refuse a second put. Where a task runs twice, the last copy stays.", self.out)
        unit = ray.remote(num_cpus=self.cores, memory=self.memory_bytes, max_retries=retries, retry_exceptions=True)(_do_unit)
        connect()
        words = dataclasses.asdict(self)
        results = in_order_named(
            [(url, name, lambda url=url, name=name: unit.options(name=f"framehost-{name}").remote(words, text, url, name))
             for url, name in units],
            at_once=_room(self.cores))
        states = [result["state"] for result in results]
        counts = {state: states.count(state) for state in ("made", "present", "set aside", "left")}
        if self.report:
            figures = {"files": len(units), **counts, "seconds": time.monotonic() - begin, "units": results}
            with open(self.report, "w", encoding="utf-8") as file:
                json.dump(figures, file, indent=2)
        log.info("%d files: %s", len(units), ", ".join(f"{count} {state}" for state, count in counts.items() if count))
        if any(result.get("status") == WRONG for result in results):
            return WRONG
        return 0 if counts["made"] + counts["present"] == len(units) else 1

    def _units(self, fsspec: Any) -> list[tuple[str, str]]:
        """URLs and the names of outputs, sorted. Raises ValueError where two would have one name."""
        found: dict[str, str] = {}
        for pattern in self.inputs:
            fs, path = fsspec.core.url_to_fs(pattern)
            paths = fs.glob(path) if any(mark in path for mark in "*?[") else [path]
            if not paths:
                raise ValueError(f"{pattern}: no file matches this pattern. Name another one.")
            for path in paths:
                name = posixpath.splitext(posixpath.basename(path))[0] + self.ending
                url = fs.unstrip_protocol(path)
                if found.setdefault(name, url) != url:
                    raise ValueError(f"{url}: would become {name}, and so would {found[name]}. Use a different --out for each of them.")
        return sorted((url, name) for name, url in found.items())


def in_order_named(tasks: list[tuple[str, str, Any]], *, at_once: int) -> list[dict[str, Any]]:
    """As ``tasks.in_order``; a task that failed for good has a result that says so."""
    results = {result["input"]: result for result in in_order(
        ((url, start) for url, _, start in tasks), at_once=at_once,
        stops=lambda result: result is not None and result.get("status") == WRONG) if result is not None}
    return [results.get(url, {"input": url, "output": name, "state": "left"}) for url, name, _ in tasks]


def _do_unit(words: dict[str, Any], chain: str, url: str, name: str) -> dict[str, Any]:
    import fsspec

    batch = StoreBatch(**words)
    fs, path = fsspec.core.url_to_fs(url)
    out_fs, out = fsspec.core.url_to_fs(batch.out)
    output = posixpath.join(out, name)
    info = fs.info(path)
    marks = [str(info.get(key, "")) for key in ("size", "ETag", "etag", "md5Hash", "mtime", "LastModified", "created")]
    key = hashlib.sha256("\n".join([chain, *batch.settings, *marks]).encode()).hexdigest()[:16]
    folder = posixpath.join(out, ".framehost", name, key)
    record = posixpath.join(folder, "done")
    result: dict[str, Any] = {"input": url, "output": name, "state": "present"}
    out_fs.makedirs(folder, exist_ok=True)
    done = _read(out_fs, record)
    if (foreign := _foreign(out_fs, out, name)) is not None and not (done and out_fs.exists(done["attempt"])):
        return {**result, "state": "set aside", "error": foreign}
    if done and not _is_there(out_fs, done, output):
        # Somebody has removed what was made, or another chain's output has its place.
        out_fs.rm_file(record)
        done = None
    if done is None:
        attempt = posixpath.join(folder, uuid.uuid4().hex + batch.ending)
        with tempfile.TemporaryDirectory(prefix="framehost-ray-") as scratch:
            made = _make(batch, chain, fs, path, name, scratch)
            if isinstance(made, dict):
                return {**result, **made}
            out_fs.put_file(made, attempt)
            size, digest = os.path.getsize(made), _digest(made)
        done = {"input": url, "output": name, "attempt": attempt, "bytes": size, "sha256": digest}
        if create(out_fs, record, json.dumps(done).encode()):
            result["state"] = "made"
        else:
            # Another copy of this task was first.
            done = _read(out_fs, record) or done
    if (foreign := _publish(out_fs, done["attempt"], out, name)) is not None:
        # The record and the attempt stay, so that the next batch publishes it once the name is free.
        return {**result, "state": "set aside", "error": foreign}
    for other in out_fs.ls(folder, detail=False):
        # Attempts that were killed or late. One that is still being uploaded removes itself.
        if other.endswith(batch.ending):
            with contextlib.suppress(FileNotFoundError):
                out_fs.rm_file(other)
    return {**result, "bytes": done["bytes"]}


MOST_RECORDS = 1000
"""The most records of one output, each of another chain or input, that are read to find out whose it is."""


def _foreign(fs: Any, out: str, name: str) -> str | None:
    """Why the file with the output's name is not replaced: no batch made it. None where it is not there, or a batch's."""
    output = posixpath.join(out, name)
    try:
        size = fs.info(output)["size"]
    except FileNotFoundError:
        return None
    try:
        folders = fs.ls(posixpath.join(out, ".framehost", name), detail=False)
    except FileNotFoundError:
        folders = []
    records = []
    for folder in folders[:MOST_RECORDS]:
        with contextlib.suppress(OSError, ValueError):
            if record := _read(fs, posixpath.join(folder, "done")):
                records.append(record)
    fitting = [record for record in records if record.get("bytes") == size]
    # In a store only the size is compared: for more, the file would have to be fetched.
    if fitting and _protocols(fs) & {"file", "local"} and all("sha256" in record for record in fitting):
        digest = _digest(output)
        fitting = [record for record in fitting if record["sha256"] == digest]
    if fitting:
        return None
    if records:
        return f"{output} has been changed since it was made. Remove the file to have it made again."
    return f"{output} already exists, and no record says that a batch made it. Remove the file, or name another folder with --out."


def _digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _read(fs: Any, record: str) -> dict[str, Any] | None:
    try:
        words: dict[str, Any] = json.loads(fs.cat_file(record))
    except FileNotFoundError:
        return None
    return words


def _is_there(fs: Any, done: dict[str, Any], output: str) -> bool:
    # In this order: the attempt goes when the output has come.
    if fs.exists(done["attempt"]):
        return True
    return bool(fs.exists(output) and fs.info(output)["size"] == done["bytes"])


def _publish(fs: Any, attempt: str, out: str, name: str) -> str | None:
    """Gives the output its name. Done by whoever finds the attempt: the one that committed it may be gone.

    Replaces what a batch has made, and nothing else: then it says why.
    """
    output = posixpath.join(out, name)
    try:
        if _protocols(fs) & {"file", "local"}:
            # A link never replaces a file.
            with contextlib.suppress(FileExistsError):
                os.link(attempt, output)
                os.unlink(attempt)
                return None
            if os.path.samefile(attempt, output):
                os.unlink(attempt)
                return None
            if (foreign := _foreign(fs, out, name)) is not None:
                return foreign
            os.replace(attempt, output)
        elif fs.exists(attempt):
            if (foreign := _foreign(fs, out, name)) is not None:
                return foreign
            fs.copy(attempt, output)
            fs.rm_file(attempt)
    except FileNotFoundError:
        # Another one was quicker, or it was published long ago.
        if not fs.exists(output):
            raise
    return None


def _make(batch: StoreBatch, chain: str, fs: Any, path: str, name: str, scratch: str) -> str | dict[str, Any]:
    """The made file, or what is to be said of one that was set aside. Raises TaskFailed where another try may help."""
    source = os.path.join(scratch, "in", posixpath.basename(path))
    os.makedirs(os.path.dirname(source))
    fs.get_file(path, source)
    chain_file = os.path.join(scratch, os.path.basename(batch.chain))
    with open(chain_file, "w", encoding="utf-8") as file:
        file.write(chain)
    report = os.path.join(scratch, "report.json")
    command = [batch.program, "batch", chain_file, source, "--out", os.path.join(scratch, "out"), "--ending", batch.ending]
    command += ["--quiet", "--jobs", "1", "--report", report]
    for setting in batch.settings:
        command += ["--set", setting]
    status = run_program(command, scratch, {})
    if status == WRONG:
        return {"state": "set aside", "status": WRONG, "error": "the chain is wrong; the task's log says why"}
    if status == 1 and os.path.exists(report):
        with open(report, encoding="utf-8") as file:
            unit = (json.load(file)["units"] or [{}])[0]
        if unit.get("state") == "set aside":
            # The batch has tried it several times.
            return {"state": "set aside", "error": unit.get("error", "")}
    _retried(status, name)
    return os.path.join(scratch, "out", name)
