"""Work on several tasks side by side: in this process, and in others that it starts for that.

A process of the others is `worker.py`. It has a line to this one, gets its next task on it when it is free,
and ends with it. Nothing is locked between them: one that is killed leaves no other waiting.
"""

import logging
import os
import signal
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

WORKER = "slipway.components.worker"

# TFX's, which a node's log has from the level of information on.
_log = logging.getLogger("absl")

Task = Any
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


class WorkersTraceError(Exception):
    """The traceback of an error in another process; this one's would not show it."""


class Workers(Protocol):
    """Whoever works on tasks: processes on this machine, or another engine of Beam.

    Attributes:
        others: how many processes beside this one work, at least; 0: none.
        redone: how many tasks were done again.
    """

    others: int
    redone: int

    def __enter__(self) -> Self:
        """Makes them ready."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Lets them go."""

    def reachable(self, folder: str) -> str:
        """Returns a folder with the content of one of this process, that all who work can read."""

    def map(
        self, work: Work, tasks: Sequence[Task], *, progress: Progress, again: Work | None = None
    ) -> Iterator[Any]:
        """Yields the result of the work on each task, in the order of the tasks."""


class SideBySide:
    """A number of processes, this one among them; the others live as long as the context.

    Args:
        processes: >= 1.
        worker: the module of the others; None: `WORKER`, forked by the engine where there is one.

    Attributes:
        others: how many there are beside this one; none once it works alone, see `map`.
        redone: how many tasks were done again, see `map`.
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
            # Ctrl-C, say: nobody waits for what the others work on, which may take an hour.
            for worker in self._workers:
                worker.kill()
        self._stack.close()
        for pid, done in ((worker.pid, worker.done) for worker in self._workers):
            _log.info("process %s did %s", pid, counted(done, "part"))

    def reachable(self, folder: str) -> str:
        """Returns the folder: the others are on this machine."""
        return folder

    def map(
        self, work: Work, tasks: Sequence[Task], *, progress: Progress, again: Work | None = None
    ) -> Iterator[Any]:
        """Yield the result of the work on each task, in the order of the tasks.

        They are begun in that order, each by whichever process is free; after one that fails no other is.

        Args:
            work: can be pickled. A process gets it once, so it may keep what its next tasks need as well.
            tasks: what is to be done.
            progress: told how far each task is, by several threads.
            again: takes the place of `work` for a task whose process has died, had no memory for it, or could
                not load what it needs. From then on this process works alone, and by `again`, in the maps
                that follow, too: the memory is no larger for what is left.

        Raises:
            WorkerDiedError: a process is gone, and there is no `again`.
            Exception: what the work on a task raised; of several the first by the tasks' order.
        """
        if self.redone and again is not None:
            work = again
        turns = _Turns(work, tasks, progress, again)
        for worker, started in self._started.items():
            assert self._threads is not None  # noqa: S101  (for the type checker: there are no workers without)
            started.add_done_callback(partial(turns.go_on_beside, self._threads, worker))
        try:
            for task, by, future in turns.ended():
                error = future.exception()
                if again is not None and by is not again and _may_be_done_again(error):
                    self._be_alone(turns, error)
                    yield again(task, partial(progress, task))
                else:
                    yield future.result()
        finally:
            turns.stop()

    def _be_alone(self, turns: "_Turns", error: BaseException | None) -> None:
        """Ends the other processes, whose memory may be needed, when they are done with what they work on."""
        turns.be_alone()
        self.others = 0
        self._started = {}
        self._stack.close()
        self.redone += 1
        why = "a process died" if isinstance(error, WorkerDiedError) else f"{type(error).__name__}: {error}"
        logging.warning("%s; its rows are redone in one process, in smaller batches", why, exc_info=error)


class _Turns:
    """Hands out the tasks and collects their results."""

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
        """Works on tasks until none is left; yields each, and by which work, in order when it has ended."""
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
        if given < self._tasks:  # stopped by one that did not even start
            raise WorkerDiedError

    def go_on_beside(self, threads: ThreadPoolExecutor, worker: "_Worker", before: Future[None]) -> None:
        """Gives a worker its next task, when it is done with the one before."""
        error = before.exception()
        if error is not None:
            if not self._may_go_on(error):
                self.stop()
            return
        begun = self._begin(
            lambda task: threads.submit(worker.do, self._work, task, self._progress), is_beside=True
        )
        if begun is not None:
            begun[2].add_done_callback(partial(self.go_on_beside, threads, worker))

    def be_alone(self) -> None:
        """Gives no more tasks to workers; returns when none works. What is left is done by `again`."""
        with self._lock:
            # A worker's turn may come later than this: it is called after its future is done.
            self._is_alone = True
            self._work = self._again or self._work
        wait([future for _, _, future in self._begun])

    def stop(self) -> None:
        """Begins no more tasks."""
        with self._lock:
            self._left.clear()

    def _may_go_on(self, error: BaseException) -> bool:
        return self._again is not None and _may_be_done_again(error)

    def _begin(
        self, start: Callable[[Task], Future[Any]], *, is_beside: bool = False
    ) -> tuple[Task, Work, Future[Any]] | None:
        with self._lock:
            if not self._left or (is_beside and self._is_alone):
                return None
            begun = (self._left[0], self._work, start(self._left[0]))
            self._left.popleft()  # only now: nobody else would do one that could not be started
            self._begun.append(begun)
            return begun


def _may_be_done_again(error: BaseException | None) -> bool:
    """Whether it lay with the process: it died, had no memory, or could not load what it needs."""
    if isinstance(error, (ImportError, UnpicklingError)):
        return isinstance(error.__cause__, WorkersTraceError)
    return isinstance(error, WorkerDiedError) or lacks_memory(error)


def lacks_memory(error: BaseException | None) -> bool:
    """Whether it says that there was not enough memory."""
    # TensorFlow's goes by its name: not every user of this has imported TensorFlow.
    return isinstance(error, MemoryError) or type(error).__name__ == "ResourceExhaustedError"


class _Worker:
    """A process beside this one; it ends with the context.

    Args:
        module: as of `SideBySide`.

    Attributes:
        done: how many tasks it has done.
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
        """Starts it, and returns when it can take a task.

        Raises:
            WorkerDiedError: it ended before, or there is no room for another process.
        """
        try:
            with self._theirs:
                self._process = _started(self._module, self._theirs.fileno())
        except OSError as error:
            raise WorkerDiedError from error
        self._receive()

    def do(self, work: Work, task: Task, progress: Progress) -> Any:
        """Has it work on a task; returns, or raises, what the work gives."""
        is_known = work is self._has
        self._send((None if is_known else work, task))
        self._has = work
        while isinstance(told := self._receive(), Told):
            progress(task, told.rows, told.done_bytes)
        if told.error is not None:
            raise told.error from WorkersTraceError(told.trace)
        self.done += 1
        return told.result

    @property
    def pid(self) -> int | None:
        """None before it is started."""
        return self._process.pid if self._process else None

    def kill(self) -> None:
        """Ends it in the middle of its work."""
        if self._process and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)

    def hang_up(self) -> None:
        """Let it end, and release whoever waits for its messages."""
        self._socket.shutdown(socket.SHUT_RDWR)

    def _send(self, message: object) -> None:
        try:
            self._line.send(message)
        except (BrokenPipeError, ConnectionError) as error:
            raise WorkerDiedError from error

    def _receive(self) -> Any:
        try:
            return self._line.recv()
        except (EOFError, OSError) as error:  # of OSError also its end in the middle of a message
            raise WorkerDiedError from error


def _started(module: str | None, line: int) -> subprocess.Popen[bytes] | ForkedProcess:
    """Starts a worker, forked from the engine's warm process or afresh.

    It is no fork of this process: TFX has started threads of gRPC in a node's process, whose locks a fork may
    hold for ever, and TensorFlow has threads of its own. The engine's warm process has none. Nor is it one of
    `multiprocessing`, which would import once more what this process was started with.
    """
    path = import_path(PROJECT_ROOT, inherited=os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": path}
    channel = python_process.fork_channel
    if module is None and channel is not None:
        return ForkedProcess(channel, WORKER, [], environment, descriptors=[1, 2, line])
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module or WORKER, str(line)], pass_fds=[line], env=environment
    )
