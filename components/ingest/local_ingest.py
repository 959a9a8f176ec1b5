"""Runs an ingest on this machine: its tasks one after the other, or in parallel processes.

Types are guessed from the first rows of each file, and each row is checked against the guess when it is read.
If a guess turns out wrong, the types are inferred from all rows and the work is done again, so the result is
always the same as with types inferred from all rows.
"""

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from slipway.components.available_memory import available_memory_bytes
from slipway.components.counted_words import counted
from slipway.components.errors import ComponentError
from slipway.components.ingest.blocks import check_columns
from slipway.components.ingest.column_types import Columns, merge
from slipway.components.ingest.convert import Report, convert
from slipway.components.ingest.formats import format_of
from slipway.components.ingest.options import Options
from slipway.components.ingest.planning import Task
from slipway.components.ingest.storage import fetched
from slipway.components.ingest.typed_rows import GuessError
from slipway.components.process_pool import ProcessPool, TaskProgress, WorkerDiedError
from slipway.components.progress import report as tell

# This worker does without TensorFlow, so it starts in a few tenths of a second, even while the engine is
# still importing TensorFlow.
WORKER = "slipway.components.ingest.worker"
# Input for which one more process is worth its start of a few tenths of a second; about a second of work.
WORKER_BYTES = 24 << 20
# Memory that one more process may need: it held 0.2 GB while it read 10 million rows.
WORKER_MEMORY_BYTES = 512 << 20
GUESSED_BLOCKS = 1


def run_tasks(
    tasks: Sequence[Task], options: Options, known: Columns, *, workers: int, clear: Callable[[], None]
) -> Report:
    """Infer the types and convert the files of all tasks.

    Args:
        tasks: the tasks; with several workers, their outputs must be on this machine's disk.
        known: types of columns that need not be inferred.
        workers: the number of processes including this one, >= 1; see `worker_count`.
        clear: removes what was written, before the work is done again.

    Returns:
        The merged reports of all tasks, in their order.

    Raises:
        ComponentError: as `convert`; the error of the first task that fails.
    """
    guess = replace(options, inferred_blocks=GUESSED_BLOCKS)
    try:
        return _run(tasks, options, known, workers, infer_by=guess)
    except GuessError:
        tell("types change further down: reading all rows first to find them")
        clear()
        return _run(tasks, options, known, workers, infer_by=options)


def worker_count(tasks: Sequence[Task], *, at_most: int) -> int:
    """Return the number of processes that pay off, including this one, given the memory that there is.

    Args:
        at_most: the maximum that the user gave; 0: the number of cores.
    """
    cores = len(os.sched_getaffinity(0))
    worth = sum(file.read_bytes for task in tasks for file in task.files) // WORKER_BYTES
    fits = 1 + available_memory_bytes() // WORKER_MEMORY_BYTES
    return max(min(at_most or cores, len(tasks), worth, fits), 1)


def infer_columns(task: Task, *, options: Options, known: Columns) -> Columns:
    """Return the columns of a task's files with their types."""
    columns: Columns = {}
    for stored in task.files:
        with fetched(stored) as file:
            columns = merge(columns, format_of(options).infer(file, options, known))
            check_columns(columns, options.limits, of=f"the source up to {file.name}")
    return columns


def _run(
    tasks: Sequence[Task], options: Options, known: Columns, workers: int, *, infer_by: Options
) -> Report:
    columns: Columns = {}
    report = Report()
    progress = _Progress(tasks)
    infer = partial(_infer_here, options=infer_by, known=known)
    try:
        with ProcessPool(workers, worker=WORKER) as processes:
            for found in processes.map(infer, tasks, progress=progress.tell):
                columns = merge(columns, found)
            check_columns(columns, options.limits, of="the source")
            work = partial(_convert_here, options=options, columns=columns, known=tuple(known))
            for done in processes.map(work, tasks, progress=progress.tell):
                report.add(done)
    except WorkerDiedError as error:
        raise ComponentError(
            f"one of the {workers} processes of Ingest died",
            hint="if it ran out of memory (see dmesg | tail), run with --beam=--direct_num_workers=1",
        ) from error
    return report


class _Progress:
    """Counts the rows and bytes done so far, over all tasks."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._total = tasks[0].total_bytes if tasks else 0
        self._done: dict[int, tuple[int, int]] = {}
        self._lock = Lock()

    def tell(self, task: Task, rows: int, done_bytes: int) -> None:
        with self._lock:
            self._done[task.index] = rows, done_bytes
            all_rows, all_bytes = map(sum, zip(*self._done.values(), strict=True))
            tell(counted(all_rows, "row"), done=all_bytes, total=self._total)


def _infer_here(task: Task, _: TaskProgress, *, options: Options, known: Columns) -> Columns:
    return infer_columns(task, options=options, known=known)


def _convert_here(
    task: Task, progress: TaskProgress, *, options: Options, columns: Columns, known: Collection[str]
) -> Report:
    return convert(task, options, columns, known=known, open_output=_open, progress=progress)


def _open(path: str) -> BinaryIO:
    return Path(path).open("wb")
