# SPDX-License-Identifier: Apache-2.0
"""Runs framehost batches on a Ray cluster.

Ray runs a task at least once and does not stop a lost copy; ``framehost batch`` makes each output unique. So what is here only starts
tasks, and starts them again."""

from .job import Job
from .tasks import TaskFailed, run

__all__ = ["Job", "TaskFailed", "run"]
