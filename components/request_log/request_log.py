"""Logs a sample of the rows that a model has answered, without delaying an answer."""

import itertools
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from slipway.components.request_log.logged_values import (
    answers_of,
    holds_infinity,
    rows_of,
    rows_of_examples,
)
from slipway.components.request_log.reserved_columns import AT, ID, PREDICTION, VERSION
from slipway.components.request_log.rotating_files import RotatingFiles

Array = npt.NDArray[Any]

MOST_LINE_BYTES = 2**20
"""A row with a longer line is left out."""
TOO_LONG = "rows that are too long"
INFINITE = "rows with an infinite number, which JSON has not"
"""Why rows are left out."""
MOST_WAITING_BYTES = 64 * 2**20
"""The most bytes of answered requests that wait for being written; further requests are left out."""
_WRITE_BYTES = 2**16


@dataclass(frozen=True)
class LogSettings:
    """The settings of a request log.

    Attributes:
        columns: the columns to log; no other column is logged.
        ids: whether to log the name that a client gives a request.
        share: share of the rows to log, drawn at random: above 0, to 1.
        most_bytes: limit for the files in the folder; the oldest are removed.
    """

    folder: str
    columns: tuple[str, ...]
    share: float = 1.0
    most_bytes: int = 2**30
    ids: bool = False


class RequestLog:
    """Samples rows and writes them, in the calling thread.

    Args:
        clock: seconds since 1970.
        seed: of the sampling; None: a new one each time.

    Attributes:
        left_out_counts: the number of rows that were left out, by reason.
    """

    def __init__(
        self, settings: LogSettings, *, clock: Callable[[], float] = time.time, seed: int | None = None
    ) -> None:
        self._settings, self._clock = settings, clock
        self._draw = np.random.default_rng(seed)
        self._files = RotatingFiles(Path(settings.folder), most_bytes=settings.most_bytes, clock=clock)
        self.left_out_counts: Counter[str] = Counter()

    def drawn(self, rows: int) -> npt.NDArray[np.intp]:
        """Return the indices of a request's rows to log."""
        if self._settings.share >= 1:
            return np.arange(rows)
        return np.flatnonzero(self._draw.random(rows) < self._settings.share)

    def write_examples(self, version: int, records: Sequence[bytes], answers: Sequence[object]) -> None:
        """Sample answered rows and write them.

        Args:
            records: serialized tf.Examples.
            answers: plain values, one for each.

        Raises:
            OSError: the rows cannot be written.
        """
        drawn = self.drawn(len(records)).tolist()
        rows = rows_of_examples([records[row] for row in drawn], self._settings.columns)
        self._write(version, self._clock(), rows, (answers[row] for row in drawn))

    def write_arrays(
        self,
        version: int,
        at_s: float,
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array],
        ids: Sequence[str] | None = None,
        needed: Collection[str] = (),
    ) -> None:
        """Write all rows of a request.

        Args:
            at_s: time of the answer, in seconds since 1970.
            inputs, outputs: arrays by name.
            ids: the rows' names, logged if the settings enable them; None: they have none.
            needed: the columns that have a value in every row: an empty text there is one.

        Raises:
            OSError: the rows cannot be written.
        """
        rows = rows_of(inputs, self._settings.columns, needed)
        if self._settings.ids:
            names = ids if ids is not None else itertools.repeat(None)
            rows = ({ID: name, **row} for name, row in zip(names, rows, strict=False))
        self._write(version, at_s, rows, answers_of(outputs))

    def close(self) -> None:
        """Close the file."""
        self._files.close()

    def _write(
        self, version: int, at_s: float, rows: Iterable[Mapping[str, object]], answers: Iterable[object]
    ) -> None:
        at = logged_time(at_s)
        lines = bytearray()
        for row, answer in zip(rows, answers, strict=True):
            if holds_infinity(row):
                self.left_out_counts[INFINITE] += 1
                continue
            line = logged_line(at, version, row, answer)
            if len(line) > MOST_LINE_BYTES:
                self.left_out_counts[TOO_LONG] += 1
                continue
            lines += line
            if len(lines) > _WRITE_BYTES:
                self._files.write(bytes(lines))
                lines.clear()
        if lines:
            self._files.write(bytes(lines))


def logged_time(at_s: float) -> str:
    """Return the logged form of a time in seconds since 1970."""
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")


def logged_line(at: str, version: int, row: Mapping[str, object], answer: object) -> bytes:
    """Return the line of a row that a version answered at a time."""
    return orjson.dumps({AT: at, VERSION: version, **row, PREDICTION: answer}) + b"\n"


class BackgroundLog:
    """Logs a server's answers in a background thread; requests that it cannot keep up with are left out.

    Args:
        tell: receives a line when something is left out, once for each cause.
    """

    def __init__(self, log: RequestLog, *, tell: Callable[[str], None]) -> None:
        self._log, self._tell = log, tell
        self._waiting: queue.SimpleQueue[tuple[Any, ...] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting_bytes = 0
        self._told: set[str] = set()
        self._has_ended = False
        self.left_out = 0
        self._writer = threading.Thread(target=self._run, name="request log", daemon=True)
        self._writer.start()

    def add(
        self,
        version: int,
        inputs: Mapping[str, Array],
        outputs: Mapping[str, Array],
        *,
        name: str = "",
        needed: Collection[str] = (),
    ) -> None:
        """Record a request that was answered; return at once, without raising errors of the disk.

        Args:
            inputs, outputs: arrays by name.
            name: the request's; with several rows, a row is called NAME/ROW, from 0. Empty: it has none.
            needed: the columns that have a value in every row of the version.
        """
        rows = max((len(array) for array in inputs.values() if array.ndim), default=0)
        if any(array.ndim == 0 or len(array) != rows for array in (*inputs.values(), *outputs.values())):
            return  # not one answer per row
        with self._lock:
            drawn = self._log.drawn(rows)
        if not len(drawn):
            return
        if len(drawn) < rows:
            inputs = {name: array[drawn] for name, array in inputs.items()}
            outputs = {name: array[drawn] for name, array in outputs.items()}
        size = sum(map(_size_bytes, (*inputs.values(), *outputs.values())))
        ids = None
        if name:
            ids = [name] if rows == 1 else [f"{name}/{row}" for row in drawn.tolist()]
        with self._lock:
            why = "requests come faster than the disk can write them"
            is_room = self._waiting_bytes + size <= MOST_WAITING_BYTES
            if self._has_ended:
                why, is_room = "they were answered while the server was ending", False
            if is_room:
                self._waiting_bytes += size
                self._waiting.put((size, version, time.time(), inputs, outputs, ids, needed))
        if not is_room:
            self._leave_out(len(drawn), why)

    def close(self) -> None:
        """Write the waiting requests, and end; those that open connections still add are told."""
        with self._lock:  # nothing comes after the end, which nobody would write
            self._has_ended = True
            self._waiting.put(None)
        self._writer.join()
        self._log.close()
        if left_out := self.left_out + self._log.left_out_counts.total():
            self._tell(f"The log of requests lacks {left_out:,} rows.")

    def _run(self) -> None:
        while (entry := self._waiting.get()) is not None:
            size, *request = entry
            try:
                self._log.write_arrays(*request)
            except OSError as error:
                self._leave_out(len(next(iter(request[2].values()))), error.strerror or str(error))
            except Exception as error:  # a value that JSON cannot hold: the log and the answers go on
                self._leave_out(len(next(iter(request[2].values()))), f"{type(error).__name__}: {error}")
            for why in tuple(self._log.left_out_counts):  # counted there
                self._leave_out(0, why)
            with self._lock:
                self._waiting_bytes -= size

    def _leave_out(self, rows: int, why: str) -> None:
        with self._lock:
            self.left_out += rows
            is_new = why not in self._told
            self._told.add(why)
        if is_new:
            self._tell(f"Requests are left out of the log: {why}.")


def _size_bytes(array: Array) -> int:
    """Return the approximate memory of an array, including its text."""
    return array.nbytes + (sum(map(sys.getsizeof, array.ravel())) if array.dtype == object else 0)
