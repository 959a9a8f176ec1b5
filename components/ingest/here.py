"""The work of an ingest on this machine: its tasks one after the other, or side by side in processes.

Types are guessed from the first rows of each file, and each row is held against the guess when it is read.
Where one shows that the guess was wrong, all rows are looked at first and the work is done again: the result
is always that of looking at all rows.
"""

import multiprocessing
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from components.errors import ComponentError
from components.ingest.column_types import Columns, merge
from components.ingest.convert import Report, convert
from components.ingest.formats import format_of
from components.ingest.options import Options
from components.ingest.planning import Task
from components.ingest.storage import fetched
from components.ingest.typed_rows import GuessError
from components.progress import report as tell

# A process takes half a second to start, and a second of work is about this much.
WORKER_BYTES = 24 << 20
GUESSED_BLOCKS = 1

# Rows and bytes done so far by task; all workers share it.
_done: Any = None


def run_tasks(
    tasks: Sequence[Task], options: Options, known: Columns, *, workers: int, clear: Callable[[], None]
) -> Report:
    """Infers the types and converts.

    Args:
        tasks: their outputs are on this machine's disk where there are several workers.
        options: how.
        known: types of columns that need not be inferred.
        workers: processes with this one, >= 1; see `worker_count`.
        clear: takes away what was written, before it is written anew.

    Returns:
        What all tasks did, in their order.

    Raises:
        ComponentError: as `convert`, of the first task that fails.
    """
    guess = replace(options, inferred_blocks=GUESSED_BLOCKS)
    try:
        return _run(tasks, options, known, workers, infer_by=guess)
    except GuessError:
        tell("types change further down: reading all rows for them first")
        clear()
        return _run(tasks, options, known, workers, infer_by=options)


def worker_count(tasks: Sequence[Task], *, at_most: int | None) -> int:
    """How many processes are worth it.

    Args:
        tasks: what is to be done.
        at_most: as the user says; None: as many as there are cores.
    """
    cores = len(os.sched_getaffinity(0))
    worth = sum(file.size_bytes for task in tasks for file in task.files) // WORKER_BYTES
    return max(min(at_most or cores, len(tasks), worth), 1)


def infer_columns(task: Task, *, options: Options, known: Columns) -> Columns:
    """The columns of a task's files, with their types."""
    columns: Columns = {}
    for stored in task.files:
        with fetched(stored) as file:
            columns = merge(columns, format_of(options).infer(file, options, known))
    return columns


def _run(
    tasks: Sequence[Task], options: Options, known: Columns, workers: int, *, infer_by: Options
) -> Report:
    columns: Columns = {}
    report = Report()
    with _mapper(tasks, workers) as each:
        for found in each(partial(infer_columns, options=infer_by, known=known)):
            columns = merge(columns, found)
        for done in each(partial(_convert_here, options=options, columns=columns, known=tuple(known))):
            report.add(done)
    return report


def _convert_here(task: Task, *, options: Options, columns: Columns, known: Collection[str]) -> Report:
    def progress(rows: int, done_bytes: int) -> None:
        _done[2 * task.index : 2 * task.index + 2] = [rows, done_bytes]
        tell(f"{sum(_done[0::2]):,} rows", done=sum(_done[1::2]), total=task.total_bytes)

    return convert(task, options, columns, known=known, open_output=_open, progress=progress)


def _open(path: str) -> BinaryIO:
    return Path(path).open("wb")


@contextmanager
def _mapper(tasks: Sequence[Task], workers: int) -> Iterator[Any]:
    """A function that applies another to each task and gives the results in order."""
    if workers == 1:
        _share([0] * (2 * len(tasks)))
        yield lambda work: map(work, tasks)
        return
    context = multiprocessing.get_context("spawn")  # a fork of a process with TensorFlow's threads may hang
    shared = context.Array("q", 2 * len(tasks), lock=False)
    _share(shared)
    with ProcessPoolExecutor(workers - 1, context, initializer=_share, initargs=(shared,)) as pool:
        try:
            yield lambda work: _map_beside(pool, work, tasks)
        except BrokenProcessPool as error:
            raise ComponentError(
                f"one of the {workers} processes of Ingest died",
                hint="if for want of memory (dmesg | tail), run with --beam=--direct_num_workers=1",
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)  # waits for those that work, e.g. until nothing is written


def _map_beside(pool: ProcessPoolExecutor, work: Callable[[Task], Any], tasks: Sequence[Task]) -> list[Any]:
    """The work on each task: the pool begins with the first, this process with the last, until they meet."""
    begun = [pool.submit(work, task) for task in tasks]
    here = {index: work(tasks[index]) for index in reversed(range(len(tasks))) if begun[index].cancel()}
    return [here[index] if index in here else future.result() for index, future in enumerate(begun)]


def _share(done: Any) -> None:
    global _done
    _done = done
