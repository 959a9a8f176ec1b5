"""Work on several tasks side by side: in this process, and in others that it starts for that.

A process of the others is `worker.py`. It has a line to this one, gets its next task on it when it is free,
and ends with it. Nothing is locked between them: one that is killed leaves no other waiting.
"""

import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any, Self

from slipway.components.import_path import import_path
from slipway.components.ingest.planning import Task
from slipway.components.project import PROJECT_ROOT

WORKER = "slipway.components.ingest.worker"

# Told how many rows of a task are done, and how many bytes of its files.
TaskProgress = Callable[[int, int], None]
Work = Callable[[Task, TaskProgress], Any]
Progress = Callable[[Task, int, int], None]


@dataclass(frozen=True, slots=True)
class Told:
    """A worker's progress on a task."""

    rows: int
    done_bytes: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A worker's message at the end of a task: the result, or the exception and its traceback."""

    result: Any = None
    error: Exception | None = None
    trace: str = ""


class WorkerDiedError(Exception):
    """A process that worked on a task is gone."""


class _WorkersError(Exception):
    """The traceback of an error in another process; this one's would not show it."""


class SideBySide:
    """A number of processes, this one among them; the others live as long as the context.

    Args:
        processes: >= 1.
    """

    def __init__(self, processes: int) -> None:
        self._others = processes - 1
        self._stack = ExitStack()
        self._threads: ThreadPoolExecutor | None = None
        self._started: dict[_Worker, Future[None]] = {}

    def __enter__(self) -> Self:
        if self._others:
            with ExitStack() as stack:
                workers = [stack.enter_context(_Worker()) for _ in range(self._others)]
                self._threads = stack.enter_context(ThreadPoolExecutor(self._others))
                for worker in workers:
                    self._started[worker] = self._threads.submit(worker.wait_until_ready)
                    stack.callback(worker.hang_up)
                self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def map(self, work: Work, tasks: Sequence[Task], *, progress: Progress) -> list[Any]:
        """Return the result of the work on each task, in the order of the tasks.

        They are begun in that order, each by whichever process is free; after one that fails no other is.

        Args:
            work: can be pickled.
            tasks: what is to be done.
            progress: told how far each task is, by several threads.

        Raises:
            WorkerDiedError: a process is gone.
            Exception: what the work on a task raised; of several the first by the tasks' order.
        """
        turns = _Turns(work, tasks, progress)
        for worker, started in self._started.items():
            assert self._threads is not None  # noqa: S101  (for the type checker: there are no workers without)
            started.add_done_callback(partial(turns.go_on_beside, self._threads, worker))
        return turns.results()


class _Turns:
    """Hands out the tasks and collects their results."""

    def __init__(self, work: Work, tasks: Sequence[Task], progress: Progress) -> None:
        self._work = work
        self._progress = progress
        self._tasks = len(tasks)
        self._left = deque(tasks)
        self._begun: list[Future[Any]] = []
        self._lock = Lock()

    def results(self) -> list[Any]:
        """Works on tasks until none is left, and waits for those that others work on."""
        while (begun := self._begin(lambda _: Future())) is not None:
            task, future = begun
            try:
                future.set_result(self._work(task, partial(self._progress, task)))
            except BaseException as error:
                self._stop()
                future.set_exception(error)
        wait(self._begun)
        results = [future.result() for future in self._begun]
        if len(results) < self._tasks:  # stopped by one that did not even start
            raise WorkerDiedError
        return results

    def go_on_beside(self, threads: ThreadPoolExecutor, worker: "_Worker", before: Future[Any]) -> None:
        """Gives a worker its next task, when it is done with the one before."""
        if before.exception() is not None:
            self._stop()
            return
        begun = self._begin(lambda task: threads.submit(worker.do, self._work, task, self._progress))
        if begun is not None:
            begun[1].add_done_callback(partial(self.go_on_beside, threads, worker))

    def _begin(self, start: Callable[[Task], Future[Any]]) -> tuple[Task, Future[Any]] | None:
        with self._lock:
            if not self._left:
                return None
            task = self._left.popleft()
            self._begun.append(start(task))
            return task, self._begun[-1]

    def _stop(self) -> None:
        with self._lock:
            self._left.clear()


class _Worker:
    """A process beside this one; it ends with the context.

    Raises:
        OSError: there is no room for another process.
    """

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = _start(theirs.fileno())
        self._line = Connection(os.dup(self._socket.fileno()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()
        self._socket.close()
        self._process.wait()

    def wait_until_ready(self) -> None:
        """Returns when it can take a task."""
        self._receive()

    def do(self, work: Work, task: Task, progress: Progress) -> Any:
        """Has it work on a task; returns, or raises, what the work gives."""
        self._line.send((work, task))
        while isinstance(told := self._receive(), Told):
            progress(task, told.rows, told.done_bytes)
        if told.error is not None:
            raise told.error from _WorkersError(told.trace)
        return told.result

    def hang_up(self) -> None:
        """Let it end, and release whoever waits for its messages."""
        self._socket.shutdown(socket.SHUT_RDWR)

    def _receive(self) -> Any:
        try:
            return self._line.recv()
        except (EOFError, ConnectionError) as error:
            raise WorkerDiedError from error


def _start(line: int) -> subprocess.Popen[bytes]:
    """Starts a worker afresh, which takes some tenths of a second.

    It is no fork: TFX has started threads of gRPC in a node's process, whose locks a fork may hold for ever.
    Nor is it one of `multiprocessing`, which would import once more what this process was started with.
    """
    path = import_path(PROJECT_ROOT, inherited=os.environ.get("PYTHONPATH", ""))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", WORKER, str(line)],
        pass_fds=[line],
        env={**os.environ, "PYTHONPATH": path},
    )
