"""Runs tasks on an external Beam runner instead of in processes on this machine.

Each task is an element of a Beam pipeline. Its result is a file in a folder that the runner and the caller
share, since a runner returns no elements to the process that started it.
"""

import hashlib
import hmac
import pickle
import secrets
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Self

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from tfx.dsl.io import fileio
from tfx.utils import io_utils

from slipway.components.counted_words import counted
from slipway.components.errors import ComponentError
from slipway.components.in_process_runner import IN_PROCESS
from slipway.components.process_pool import (
    ProcessPool,
    Progress,
    ResultMessage,
    Task,
    Work,
    Workers,
    WorkersTraceError,
    lacks_memory,
)
from slipway.components.progress import report as tell
from slipway.components.shards import MOST_SHARDS, MOST_SHARDS_ELSEWHERE, Shard, process_count


def runs_elsewhere(beam_args: Sequence[str] | None) -> bool:
    """Return True if Beam's options name a runner other than the in-process runner."""
    options = PipelineOptions(beam_args).view_as(StandardOptions)
    return bool((options.runner or StandardOptions.DEFAULT_RUNNER) != IN_PROCESS)


def most_shards(beam_args: Sequence[str] | None) -> int:
    """Return the approximate number of shards per split for the runner that Beam's options name."""
    return MOST_SHARDS_ELSEWHERE if runs_elsewhere(beam_args) else MOST_SHARDS


def make_workers(executor: Any, *readings: Sequence[Shard], folder: str, bytes_per_process: int) -> Workers:
    """Return what works on an executor's shards: processes on this machine, or the runner its options name.

    Args:
        executor: a TFX executor with Beam's options.
        readings: the shards of each pass over the data; the one that pays for the most processes decides.
        folder: see `BeamEngineWorkers`.
        bytes_per_process: see `process_count`.

    Raises:
        ComponentError: see `process_count`.
    """
    beam_args = executor._beam_pipeline_args or ()
    if runs_elsewhere(beam_args):
        return BeamEngineWorkers(executor._make_beam_pipeline, folder)
    return ProcessPool(
        max(process_count(shards, beam_args, bytes_per_process=bytes_per_process) for shards in readings)
    )


class BeamEngineWorkers:
    """A Beam runner that works on tasks, with the interface of `process_pool.ProcessPool`.

    Args:
        make_pipeline: returns a new pipeline on that runner.
        folder: holds results, and files that the runner reads, until the context ends. The runner's workers
            must be able to read and write there.

    Attributes:
        others: the least number of worker processes besides this one, which does no work itself.
        redone: the number of tasks whose result was read and that were done again for lack of memory. A
            runner does not report the tasks that it gave to another worker because one died.
    """

    others = 1

    def __init__(self, make_pipeline: Callable[[], Any], folder: str) -> None:
        self._make_pipeline = make_pipeline
        self._folder = folder
        # Results are pickles, which can run code when loaded: only those signed with this key are loaded.
        self._key = secrets.token_bytes(32)
        self._rounds = 0
        self.redone = 0

    def __enter__(self) -> Self:
        fileio.makedirs(self._folder)
        return self

    def __exit__(self, *_: object) -> None:
        if fileio.exists(self._folder):  # a bucket may have no object for a folder
            fileio.rmtree(self._folder)

    def reachable(self, folder: str) -> str:
        """Return a folder of the same content that the runner can read: a copy if results go to a bucket."""
        if "://" in folder or "://" not in self._folder:
            return folder
        there = f"{self._folder}/{PurePosixPath(folder).name}"
        io_utils.copy_dir(folder, there)
        return there

    def map(
        self,
        work: Work,
        tasks: Sequence[Task],
        *,
        progress: Progress,  # noqa: ARG002  (as the other Workers have it)
        again: Work | None = None,
    ) -> Iterator[Any]:
        """Yield the result of the work on each task, in the order of the tasks.

        Args:
            work: must be picklable; may cache what its later tasks need as well.
            tasks: the arguments of `work`.
            progress: never called: the work runs elsewhere.
            again: replaces `work` for a task that ran out of memory.

        Raises:
            ComponentError: a result is missing from the folder: the runner's workers see a different one.
            Exception: an error of Slipway's own that a task raised; of several, that of the first task. Any
                other error fails the task on the runner, which retries it and in the end fails the pipeline.
        """
        self._rounds += 1
        folder = f"{self._folder}/results-{self._rounds}"
        fileio.makedirs(folder)
        with self._make_pipeline() as pipeline:
            runner = type(pipeline.runner).__name__
            tell(f"{counted(len(tasks), 'part')} on {runner}")
            _ = (
                pipeline
                | "Tasks" >> beam.Create(list(enumerate(tasks)))
                | "Deal" >> beam.Reshuffle()
                | "Work" >> beam.ParDo(_Do(work, again, folder, self._key))
            )
        return map(partial(self._result, folder), range(len(tasks)))

    def _result(self, folder: str, place: int) -> Any:
        path = _path(folder, place)
        if not fileio.exists(path):
            raise no_result(folder)
        with fileio.open(path, "rb") as file:
            content: bytes = file.read()
        fileio.remove(path)
        signature, pickled = content[: hashlib.sha256().digest_size], content[hashlib.sha256().digest_size :]
        if not hmac.compare_digest(signature, _signature(self._key, path, pickled)):
            raise RuntimeError(f"{path} was not written by this run's own workers")
        message: ResultMessage = pickle.loads(pickled)  # noqa: S301  (signed with a key only the workers have)
        if message.error is not None:
            raise message.error from WorkersTraceError(message.trace)
        self.redone += message.is_redone
        return message.result


class _Do(beam.DoFn):
    """Runs a task and writes its result to the shared folder."""

    def __init__(self, work: Work, again: Work | None, folder: str, key: bytes) -> None:
        self._work = work
        self._again = again
        self._folder = folder
        self._key = key

    def process(self, numbered: tuple[int, Task]) -> None:
        place, task = numbered
        pickled = pickle.dumps(self._result_of(task))
        path = _path(self._folder, place)
        own = f"{path}-{secrets.token_hex(8)}"  # a runner may run a task twice, even at the same time
        with fileio.open(own, "wb") as file:
            file.write(_signature(self._key, path, pickled) + pickled)
        fileio.rename(own, path, overwrite=True)

    def _result_of(self, task: Task) -> ResultMessage:
        try:
            return self._done(task)
        except Exception as error:
            if not type(error).__module__.startswith("slipway."):
                raise
            return ResultMessage(error=error, trace=traceback.format_exc())

    def _done(self, task: Task) -> ResultMessage:
        try:
            return ResultMessage(self._work(task, _ignore_progress))
        except Exception as error:
            if self._again is None or not lacks_memory(error):
                raise
            return ResultMessage(self._again(task, _ignore_progress), is_redone=True)


def no_result(folder: str) -> ComponentError:
    """Return the error for a runner whose workers have left nothing in a folder."""
    return ComponentError(
        f"the Beam runner has finished, but left no result in {folder}",
        hint="its workers must see that folder: keep artifacts where all can write (a bucket, "
        "a shared disk), or work on this machine: --set beam.runner=direct",
    )


def _ignore_progress(rows: int, done_bytes: int) -> None:
    """Ignore progress, which a runner's worker cannot report to the caller."""


def _path(folder: str, place: int) -> str:
    return f"{folder}/{place}"


def _signature(key: bytes, path: str, pickled: bytes) -> bytes:
    """Sign a result together with its path, so that another task's or round's result cannot replace it."""
    return hmac.digest(key, path.encode() + b"\0" + pickled, "sha256")
