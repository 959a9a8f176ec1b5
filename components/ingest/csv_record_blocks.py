"""Splits a CSV file into blocks of whole records, even if their content is malformed.

A newline ends a record unless it is inside quotes. If quotes occur only around whole fields, counting them a
block at a time decides this; otherwise records are scanned one by one, and a quote opens a quoted section
only at the start of a field.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]

_NEWLINE, _RETURN = 10, 13
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NONE: Positions = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Records:
    """Consecutive records.

    Attributes:
        data: the records' bytes; ends with a newline except at the end of the file.
        starts: the start of each record in `data`; empty lines are not records.
        ends: the position after the last byte of each record, without its line ending.
        offset: the position of `data` in the file, in bytes.
        line: the number of the first line of `data`, from 1.
        kept_bytes: 0, or the bytes in `data` of a single record that is too long, whose rest was skipped.
        is_regular: whether quotes occur only around whole fields.
        newlines: the positions of newlines in `data`.
    """

    data: bytes
    starts: Positions
    ends: Positions
    offset: int
    line: int
    kept_bytes: int = 0
    is_regular: bool = True
    newlines: Positions = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.starts)

    def line_of(self, start: int) -> int:
        """Return the number of the line that a position in `data` is in."""
        return self.line + int(np.searchsorted(self.newlines, start))

    def without_first(self) -> "Records":
        """Return all records but the first."""
        return replace(self, starts=self.starts[1:], ends=self.ends[1:])

    def equal_to(self, line: bytes) -> list[int]:
        """Return the indices of the records that equal a line, with or without a byte order mark."""
        # Nearly always there is none, and this is the fastest way to find out.
        if not len(self) or self.data.find(line, self.starts[0], self.ends[-1]) < 0:
            return []
        sizes = self.ends - self.starts
        alike = np.flatnonzero((sizes == len(line)) | (sizes == len(line) + len(BYTE_ORDER_MARK)))
        return [
            number
            for number in alike.tolist()
            if self.data[self.starts[number] : self.ends[number]].removeprefix(BYTE_ORDER_MARK) == line
        ]

    def without(self, numbers: Collection[int]) -> "Records":
        """Return all records but those with these indices."""
        if not numbers:
            return self
        return replace(
            self, starts=np.delete(self.starts, list(numbers)), ends=np.delete(self.ends, list(numbers))
        )

    def parts(self, rows: int) -> Iterator["Records"]:
        """Yield the records in parts of at most `rows` records."""
        for first in range(0, len(self), rows):
            part = slice(first, first + rows)
            yield replace(self, starts=self.starts[part], ends=self.ends[part])


def scan_records(
    read: Callable[[int], bytes],
    *,
    delimiter: str,
    quote: str | None,
    max_record_bytes: int,
    block_bytes: int,
    offset: int = 0,
    line: int = 1,
) -> Iterator[Records]:
    """Split a stream into blocks of whole records.

    A quote that is not closed within `max_record_bytes`, by the end of the file or before another field's
    opening quote is taken to end with its line, and reading starts anew after that line. Of a line longer
    than `max_record_bytes`, only the head is kept.

    Args:
        read: returns at most the given number of bytes; none at the end.
        delimiter: one ASCII character.
        quote: one ASCII character; None if quotes have no meaning.
        block_bytes: number of bytes to read at a time.
        offset: where in the file the stream begins; between two records.
        line: the number of the line there.
    """
    marks = _Marks(delimiter, quote)
    pending = b""
    at_end = False
    while not at_end:
        chunk = read(block_bytes)
        at_end = not chunk
        pending += chunk
        while pending:
            records = marks.records(pending, offset, line, at_end=at_end)
            if not len(records.data) and (at_end or len(pending) > max_record_bytes):
                # The quote is never closed, so it ends with its line.
                records = _first_line(pending, offset, line, at_end=at_end)
            if not len(records.data):
                break
            yield records
            pending = pending[len(records.data) :]
            offset, line = offset + len(records.data), line + len(records.newlines)
        if len(pending) > max_record_bytes:
            skipped = _skip_line(read, len(pending), block_bytes)
            yield Records(
                pending, np.array([0]), np.array([len(pending)]), offset, line, kept_bytes=len(pending)
            )
            offset, line, pending = offset + skipped.size - len(skipped.rest), line + 1, skipped.rest


def _first_line(data: bytes, offset: int, line: int, *, at_end: bool) -> Records:
    """Return the first line as a record; no records if the line is not complete."""
    end = data.find(b"\n") + 1 or (len(data) if at_end else 0)
    ends = [end - 1] if data[:end].endswith(b"\n") else [end]
    return _records(data[:end], np.array(ends), offset, line, is_regular=False)


def _records(data: bytes, ends: Positions, offset: int, line: int, *, is_regular: bool) -> Records:
    """Return the records that end at these newlines; the last one may end with the data."""
    if not data:
        return Records(b"", _NONE, _NONE, offset, line)
    array = np.frombuffer(data, dtype=np.uint8)
    if not len(ends) or ends[-1] < len(data) - 1:
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1] + 1])
    # A "\r" before the newline belongs to the line ending.
    has_return = (ends > starts) & (array[np.maximum(ends, 1) - 1] == _RETURN)
    ends = ends - has_return
    full = ends > starts
    newlines = np.flatnonzero(array == _NEWLINE)
    return Records(data, starts[full], ends[full], offset, line, 0, is_regular, newlines)


@dataclass(frozen=True, slots=True)
class _Skipped:
    size: int  # bytes from the start of the record to the end of what was read
    rest: bytes  # what was read after the record's line


def _skip_line(read: Callable[[int], bytes], size: int, block_bytes: int) -> _Skipped:
    while chunk := read(block_bytes):
        size += len(chunk)
        if (newline := chunk.find(b"\n")) >= 0:
            return _Skipped(size, chunk[newline + 1 :])
    return _Skipped(size, b"")


class _Marks:
    """Finds the ends of records by delimiter and quote."""

    def __init__(self, delimiter: str, quote: str | None) -> None:
        self._quote = (quote or "").encode()
        self._delimiter = delimiter.encode()
        self._around = np.zeros(256, dtype=np.bool_)
        self._around[[ord(delimiter), _NEWLINE, _RETURN, ord(quote or delimiter)]] = True

    def records(self, data: bytes, offset: int, line: int, *, at_end: bool) -> Records:
        """Return the complete records in the data read so far; none if even the first is incomplete."""
        array = np.frombuffer(data, dtype=np.uint8)
        begin = len(BYTE_ORDER_MARK) if not offset and data.startswith(BYTE_ORDER_MARK) else 0
        ends = np.flatnonzero(array == _NEWLINE)
        is_regular, is_open = True, False
        if self._quote and self._quote in data:
            quotes = np.flatnonzero(array == self._quote[0])
            is_open = len(quotes) % 2 == 1
            is_regular = self._is_regular(array, quotes, begin)
            ends = (
                ends[np.searchsorted(quotes, ends) % 2 == 0]
                if is_regular
                else self._ends_one_by_one(data, begin, at_end=at_end)
            )
        whole = (
            len(data) if at_end and not (is_regular and is_open) else int(ends[-1]) + 1 if len(ends) else 0
        )
        return _records(data[:whole], ends, offset, line, is_regular=is_regular)

    def _is_regular(self, array: npt.NDArray[np.uint8], quotes: Positions, begin: int) -> bool:
        """Return True if a delimiter or line ending precedes each opening and follows each closing quote."""
        openers, closers = quotes[0::2], quotes[1::2]
        before = openers[openers > begin] - 1
        after = closers[closers < len(array) - 1] + 1
        return bool(self._around[array[before]].all() and self._around[array[after]].all())

    def _ends_one_by_one(self, data: bytes, begin: int, *, at_end: bool) -> Positions:
        """Return the newlines that end records, up to the first incomplete record."""
        ends: list[int] = []
        start = begin
        while start < len(data) and (end := self._end(data, start, at_end=at_end)) is not None:
            ends.append(end)
            start = end + 1
        return np.array(ends, dtype=np.int64)

    def _end(self, data: bytes, start: int, *, at_end: bool) -> int | None:
        """Return the newline that ends the record, or the end of the data; None if more data is needed."""
        field = start
        while True:
            if not data.startswith(self._quote, field):
                end = _line_end(data, field, at_end=True)
                opening = data.find(self._delimiter + self._quote, field, end)
                if opening < 0:
                    return _line_end(data, field, at_end=at_end)
                field = opening + 1
                continue
            behind = self._behind_closing(data, field + 1)
            if behind is None or behind == len(data):
                if not at_end:
                    return None
                return len(data) if behind else _line_end(data, start, at_end=True)
            if data[behind : behind + 1] in (b"\n", b"\r"):
                return _line_end(data, behind, at_end=at_end)
            if not data.startswith(self._delimiter, behind):
                # This quote is where a field could begin, so it opens one, and the first was never closed.
                is_opening = data[behind - 2 : behind - 1] in (self._delimiter, b"\n")
                return _line_end(data, start if is_opening else behind, at_end=at_end)
            field = behind + 1

    def _behind_closing(self, data: bytes, inside: int) -> int | None:
        """Return the position after a field's closing quote, or None; a doubled quote is an escaped one."""
        while (found := data.find(self._quote, inside)) >= 0:
            if not data.startswith(self._quote, found + 1):
                return found + 1
            inside = found + 2
        return None


def _line_end(data: bytes, start: int, *, at_end: bool) -> int | None:
    """Return the next newline, or the end of the data if no more data follows, else None."""
    newline = data.find(b"\n", start)
    return newline if newline >= 0 else len(data) if at_end else None
