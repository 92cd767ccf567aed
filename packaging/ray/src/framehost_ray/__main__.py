# SPDX-License-Identifier: Apache-2.0
"""The command ``framehost-ray``."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import subprocess
import sys

# Nothing is sent anywhere. Ray reads it when it is imported.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="framehost-ray",
        description="Runs framehost batches on a Ray cluster: that of RAY_ADDRESS, or else one on this machine. "
        "Exit status: 0 all files are done, 1 some are not, 2 nothing could begin.")
    commands = parser.add_subparsers(dest="command", required=True)
    job = commands.add_parser("job", help="run a job that framehost batch --on ray wrote")
    job.add_argument("file", help="job.json")
    store = commands.add_parser("store", help="files of an object store: each is copied, done, and written back")
    store.add_argument("chain", help="the chain file, with ${input} and ${output}")
    store.add_argument("inputs", nargs="+", metavar="URL", help="files or patterns, such as s3://bucket/clips/*.mp4")
    store.add_argument("--out", required=True, metavar="URL", help="the folder of the outputs")
    store.add_argument("--ending", default=".mp4", help="the ending of the outputs' names (.mp4)")
    store.add_argument("--program", default="framehost", help="framehost on the nodes")
    store.add_argument("--set", action="append", default=[], dest="settings", metavar="STAGE.OPTION=VALUE")
    store.add_argument("--cores", type=int, default=2, help="of each task (2)")
    store.add_argument("--memory", type=int, default=1024, metavar="MiB", help="of each task (1024)")
    store.add_argument("--report", metavar="FILE.json", help="write what became of each file")
    for each in (job, store):
        each.add_argument("--retries", type=int, default=5, help="further tries of a lost or failed task (5)")
    options = parser.parse_args()
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    # As ctrl-C: the tasks are cancelled and their programs ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(_run(options))
    except KeyboardInterrupt:
        print("Stopped. Run the same command again to continue.", file=sys.stderr)
        sys.exit(1)
    except (OSError, ValueError, ImportError, subprocess.SubprocessError) as fault:
        print(f"framehost-ray: {fault}", file=sys.stderr)
        sys.exit(2)


def _run(options: argparse.Namespace) -> int:
    # After the arguments were read: this takes a second.
    from . import Job, run

    if options.command == "job":
        return run(Job.read(options.file), retries=options.retries)
    from .stores import StoreBatch

    return StoreBatch(
        chain=options.chain, inputs=options.inputs, out=options.out, ending=options.ending, program=options.program,
        settings=options.settings, cores=options.cores, memory_bytes=options.memory << 20, report=options.report,
    ).run(retries=options.retries)


if __name__ == "__main__":
    main()
