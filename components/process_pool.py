"""Works on several tasks in parallel, in this process and in worker processes that it starts.

Each worker runs `pool_worker.py`. It has its own connection to this process, gets a new task when it is
free, and ends when the connection does. The processes share no locks, so a worker that is killed blocks no
other.
"""

import logging
import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pickle import UnpicklingError
from threading import Lock
from typing import Any, Protocol, Self

from slipway.components import python_process
from slipway.components.counted_words import counted
from slipway.components.import_path import import_path
from slipway.components.project import PROJECT_ROOT
from slipway.components.python_process import ForkedProcess

WORKER = "slipway.components.pool_worker"

# TFX's logger, which writes to a node's log from level INFO on.
_log = logging.getLogger("absl")

Task = Any
# Called with the number of rows of a task that are done, and of bytes of its files.
TaskProgress = Callable[[int, int], None]
Work = Callable[[Task, TaskProgress], Any]
Progress = Callable[[Task, int, int], None]


@dataclass(frozen=True, slots=True)
class ProgressMessage:
    """A worker's message about its progress on a task."""

    rows: int
    done_bytes: int


@dataclass(frozen=True, slots=True)
class ResultMessage:
    """A worker's message at the end of a task: the result, or the exception and its traceback.

    Attributes:
        is_redone: whether the worker did the task again itself, see `Workers.redone`.
    """

    result: Any = None
    error: Exception | None = None
    trace: str = ""
    is_redone: bool = False


class WorkerDiedError(Exception):
    """A worker process ended in the middle of a task."""


class WorkersTraceError(Exception):
    """The traceback of an error in a worker process, which the traceback in this process does not show."""


class Workers(Protocol):
    """The interface of what works on tasks: processes on this machine, or an external Beam runner.

    Attributes:
        others: the least number of processes that work besides this one; 0: none.
        redone: the number of tasks that were done again.
    """

    others: int
    redone: int

    def __enter__(self) -> Self:
        """Start the workers."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop the workers."""

    def reachable(self, folder: str) -> str:
        """Return a folder with the content of a local folder that all workers can read."""

    def map(
        self, work: Work, tasks: Sequence[Task], *, progress: Progress, again: Work | None = None
    ) -> Iterator[Any]:
        """Yield the result of the work on each task, in the order of the tasks."""


class ProcessPool:
    """A pool of processes that includes this one; the worker processes live as long as the context.

    Args:
        processes: the number of processes including this one, >= 1.
        worker: the module that the workers run; None: `WORKER`, forked by the engine if there is one.

    Attributes:
        others: the number of workers; 0 once this process works alone, see `map`.
        redone: the number of tasks that were done again, see `map`.
    """

    def __init__(self, processes: int, *, worker: str | None = None) -> None:
        self.others = processes - 1
        self._module = worker
        self._stack = ExitStack()
        self._threads: ThreadPoolExecutor | None = None
        self._started: dict[_Worker, Future[None]] = {}
        self._workers: Sequence[_Worker] = ()
        self.redone = 0

    def __enter__(self) -> Self:
        if self.others:
            with ExitStack() as stack:
                workers = [stack.enter_context(_Worker(self._module)) for _ in range(self.others)]
                self._threads = stack.enter_context(ThreadPoolExecutor(self.others))
                for worker in workers:
                    self._started[worker] = self._threads.submit(worker.start)
                    stack.callback(worker.hang_up)
                self._stack = stack.pop_all()
                self._workers = workers
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, Exception):
            # Ctrl-C, for example: do not wait for the workers' current tasks, which may take an hour.
            for worker in self._workers:
                worker.kill()
        self._stack.close()
        for pid, done in ((worker.pid, worker.done) for worker in self._workers):
            _log.info("process %s did %s", pid, counted(done, "part"))

    def reachable(self, folder: str) -> str:
        """Return the folder itself, since the workers are on this machine."""
        return folder

    def map(
        self, work: Work, tasks: Sequence[Task], *, progress: Progress, again: Work | None = None
    ) -> Iterator[Any]:
        """Yield the result of the work on each task, in the order of the tasks.

        Tasks are started in that order, each by the next free process; after a failure no more are started.

        Args:
            work: must be picklable. Each process gets it once, so it may cache what later tasks need as well.
            tasks: the arguments of `work`.
            progress: called with the progress of each task, from several threads.
            again: replaces `work` for a task whose process died, ran out of memory, or could not load what it
                needs. From then on, and in later calls too, this process works alone and with `again`, since
                the remaining tasks have no more memory.

        Raises:
            WorkerDiedError: a worker died, and there is no `again`.
            Exception: the error that a task raised; of several, that of the first task.
        """
        if self.redone and again is not None:
            work = again
        turns = _Turns(work, tasks, progress, again)
        for worker, started in self._started.items():
            assert self._threads is not None  # noqa: S101  (for the type checker: there are no workers without)
            started.add_done_callback(partial(turns.give_next_task, self._threads, worker))
        try:
            for task, by, future in turns.ended():
                error = future.exception()
                if again is not None and by is not again and _may_be_done_again(error):
                    self._stop_workers(turns, error)
                    yield again(task, partial(progress, task))
                else:
                    yield future.result()
        finally:
            turns.stop()

    def _stop_workers(self, turns: "_Turns", error: BaseException | None) -> None:
        """End the workers, whose memory may be needed, once they have finished their current tasks."""
        turns.drain_workers()
        self.others = 0
        self._started = {}
        self._stack.close()
        self.redone += 1
        why = "a process died" if isinstance(error, WorkerDiedError) else f"{type(error).__name__}: {error}"
        logging.warning("%s; its rows are redone in one process, in smaller batches", why, exc_info=error)


class _Turns:
    """Hands out the tasks of one `map` and collects their results."""

    def __init__(self, work: Work, tasks: Sequence[Task], progress: Progress, again: Work | None) -> None:
        self._work = work
        self._progress = progress
        self._again = again
        self._is_alone = False
        self._tasks = len(tasks)
        self._left = deque(tasks)
        self._begun: deque[tuple[Task, Work, Future[Any]]] = deque()
        self._lock = Lock()

    def ended(self) -> Iterator[tuple[Task, Work, Future[Any]]]:
        """Work on tasks until none is left; yield each in order once done, with its work and its future."""
        given = 0
        while (begun := self._begin(lambda _: Future())) is not None:
            task, work, future = begun
            try:
                future.set_result(work(task, partial(self._progress, task)))
            except Exception as error:
                if not self._may_go_on(error):
                    self.stop()
                future.set_exception(error)
            while self._begun and self._begun[0][2].done():
                given += 1
                yield self._begun.popleft()
        while self._begun:
            wait([self._begun[0][2]])
            given += 1
            yield self._begun.popleft()
        if given < self._tasks:  # stopped by a worker that did not even start
            raise WorkerDiedError

    def give_next_task(self, threads: ThreadPoolExecutor, worker: "_Worker", before: Future[None]) -> None:
        """Give a worker its next task; called when its previous one is done."""
        error = before.exception()
        if error is not None:
            if not self._may_go_on(error):
                self.stop()
            return
        begun = self._begin(
            lambda task: threads.submit(worker.do, self._work, task, self._progress), by_worker=True
        )
        if begun is not None:
            begun[2].add_done_callback(partial(self.give_next_task, threads, worker))

    def drain_workers(self) -> None:
        """Give no more tasks to workers and wait until they are idle; the rest is done by `again`."""
        with self._lock:
            # `give_next_task` may still be called after this, since callbacks run after their future is done.
            self._is_alone = True
            self._work = self._again or self._work
        wait([future for _, _, future in self._begun])

    def stop(self) -> None:
        """Start no more tasks."""
        with self._lock:
            self._left.clear()

    def _may_go_on(self, error: BaseException) -> bool:
        return self._again is not None and _may_be_done_again(error)

    def _begin(
        self, start: Callable[[Task], Future[Any]], *, by_worker: bool = False
    ) -> tuple[Task, Work, Future[Any]] | None:
        with self._lock:
            if not self._left or (by_worker and self._is_alone):
                return None
            begun = (self._left[0], self._work, start(self._left[0]))
            self._left.popleft()  # only after the start: a task that could not be started must not get lost
            self._begun.append(begun)
            return begun


def _may_be_done_again(error: BaseException | None) -> bool:
    """Return True if the process is to blame: it died, ran out of memory, or could not load what it needs."""
    if isinstance(error, (ImportError, UnpicklingError)):
        return isinstance(error.__cause__, WorkersTraceError)
    return isinstance(error, WorkerDiedError) or lacks_memory(error)


def lacks_memory(error: BaseException | None) -> bool:
    """Return True if the error means that there was not enough memory."""
    # TensorFlow's error is checked by name: not every caller has imported TensorFlow.
    return isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError"


class _Worker:
    """A worker process; it ends with the context.

    Args:
        module: as the `worker` of `ProcessPool`.
    """

    def __init__(self, module: str | None) -> None:
        self.done = 0
        self._module = module
        self._socket, self._theirs = socket.socketpair()
        self._line = Connection(os.dup(self._socket.fileno()))
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self._has: Work | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._theirs.close()
        self._line.close()
        self._socket.close()
        if self._process:
            self._process.wait()

    def start(self) -> None:
        """Start the process and wait until it can take a task.

        Raises:
            WorkerDiedError: the process ended first, or the machine has no room for another process.
        """
        try:
            with self._theirs:
                self._process = _started(self._module, self._theirs.fileno())
        except OSError as error:
            raise WorkerDiedError from error
        self._receive()

    def do(self, work: Work, task: Task, progress: Progress) -> Any:
        """Have the process work on a task; return the result of the work, or raise its error."""
        is_known = work is self._has
        self._send((None if is_known else work, task))
        self._has = work
        while isinstance(message := self._receive(), ProgressMessage):
            progress(task, message.rows, message.done_bytes)
        if message.error is not None:
            raise message.error from WorkersTraceError(message.trace)
        self.done += 1
        return message.result

    @property
    def pid(self) -> int | None:
        """The process id; None before the start."""
        return self._process.pid if self._process else None

    def kill(self) -> None:
        """Kill the process, even in the middle of a task."""
        if self._process:
            self._process.kill()

    def hang_up(self) -> None:
        """Shut the connection down: the process ends, and threads that wait for its messages are released."""
        self._socket.shutdown(socket.SHUT_RDWR)

    def _send(self, message: object) -> None:
        try:
            self._line.send(message)
        except (BrokenPipeError, ConnectionError) as error:
            raise WorkerDiedError from error

    def _receive(self) -> Any:
        try:
            return self._line.recv()
        except (EOFError, OSError) as error:  # OSError: for example, it died in the middle of a message
            raise WorkerDiedError from error


def _started(module: str | None, line: int) -> subprocess.Popen[bytes] | ForkedProcess:
    """Start a worker, forked from the engine's warm process if there is one, else afresh.

    A worker is not forked from this process: TFX has started gRPC threads in a node's process, whose locks a
    fork may hold forever, and TensorFlow has its own threads. The engine's warm process has none. Nor is it
    started with `multiprocessing`, which would import this process's main module again.
    """
    path = import_path(PROJECT_ROOT, inherited=os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": path}
    channel = python_process.fork_channel
    if module is None and channel is not None:
        return ForkedProcess(channel, WORKER, [], environment, descriptors=[1, 2, line])
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module or WORKER, str(line)], pass_fds=[line], env=environment
    )
