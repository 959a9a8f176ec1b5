"""Where the records of a CSV file begin and end: blocks of whole records, whatever is wrong inside them.

A newline ends a record unless an odd number of quotes precedes it, which is the rule of TFX's CsvExampleGen.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.int64]

_NEWLINE, _RETURN = 10, 13


@dataclass(frozen=True, slots=True)
class Records:
    """Consecutive records.

    Attributes:
        data: their bytes; ends with a newline, but at the end of the file.
        starts: where each begins in `data`; empty lines are no records.
        ends: behind the last byte of each, its line end not included.
        offset: where `data` begins in the file, in bytes.
        line: the number of the line that it begins with, from 1.
        kept_bytes: 0, or how much of a single too long record is in `data`; the rest was skipped.
        is_regular: whether quotes stand only around whole fields.
        newlines: where they are in `data`.
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
        """The number of the line that a position in `data` lies in."""
        return self.line + int(np.searchsorted(self.newlines, start))

    def without_first(self) -> "Records":
        """All but the first record."""
        return replace(self, starts=self.starts[1:], ends=self.ends[1:])

    def parts(self, rows: int) -> Iterator["Records"]:
        """The records, at most so many at a time."""
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
) -> Iterator[Records]:
    """Cuts a stream into blocks of whole records.

    A quote that is not closed within `max_record_bytes` or by the end of the file ends with its line; each
    line behind it, up to there, is then a record of its own. Of a longer line only the head is kept.

    Args:
        read: gives at most so many bytes, none at the end.
        delimiter: one ASCII character.
        quote: one ASCII character; None where quotes have no meaning.
        max_record_bytes: length of the longest record.
        block_bytes: how much is read at a time.
    """
    marks = _Marks(delimiter, quote)
    pending, offset, line = b"", 0, 1
    at_end = False
    while not at_end:
        chunk = read(block_bytes)
        at_end = not chunk
        pending += chunk
        cut, is_open = marks.last_end(pending)
        if at_end and not is_open:
            cut = len(pending)
        whole, rest = pending[:cut], pending[cut:]
        opened = lines = b""
        if at_end or len(rest) > max_record_bytes:
            # Nothing closes the quote: it ends with its line, and no newline behind that is inside of quotes.
            keep = len(rest) if at_end else rest.rfind(b"\n") + 1
            first = rest.find(b"\n", 0, keep) + 1 or keep
            opened, lines, rest = rest[:first], rest[first:keep], rest[keep:]
        for piece, quotes_count in ((whole, True), (opened, False), (lines, True)):
            if piece:
                records = marks.records(piece, offset, line, quotes_count=quotes_count)
                yield records
                offset += len(piece)
                line += len(records.newlines)
        if len(rest) > max_record_bytes:
            skipped = _skip_line(read, len(rest), block_bytes)
            yield Records(rest, np.array([0]), np.array([len(rest)]), offset, line, kept_bytes=len(rest))
            offset, line, rest = offset + skipped.size, line + 1, skipped.rest
            offset -= len(rest)
        pending = rest


@dataclass(frozen=True, slots=True)
class _Skipped:
    size: int  # from the record's begin to the end of what was read
    rest: bytes  # what was read behind its line


def _skip_line(read: Callable[[int], bytes], size: int, block_bytes: int) -> _Skipped:
    while chunk := read(block_bytes):
        size += len(chunk)
        if (newline := chunk.find(b"\n")) >= 0:
            return _Skipped(size, chunk[newline + 1 :])
    return _Skipped(size, b"")


class _Marks:
    """Finds the ends of records by delimiter and quote."""

    def __init__(self, delimiter: str, quote: str | None) -> None:
        self._quote = quote.encode() if quote is not None else None
        self._around = np.zeros(256, dtype=np.bool_)
        self._around[[ord(delimiter), _NEWLINE, _RETURN, ord(quote or delimiter)]] = True

    def last_end(self, data: bytes) -> tuple[int, bool]:
        """Behind the last newline that ends a record, and whether `data` ends inside quotes."""
        if self._quote is None:
            return data.rfind(b"\n") + 1, False
        odd = data.count(self._quote) % 2 == 1
        end = len(data)
        inside = odd
        while (newline := data.rfind(b"\n", 0, end)) >= 0:
            inside ^= data.count(self._quote, newline, end) % 2 == 1
            if not inside:
                return newline + 1, odd
            end = newline
        return 0, odd

    def records(self, data: bytes, offset: int, line: int, *, quotes_count: bool) -> Records:
        array = np.frombuffer(data, dtype=np.uint8)
        newlines = ends = np.flatnonzero(array == _NEWLINE)
        is_regular = quotes_count
        if self._quote is not None and quotes_count and self._quote in data:
            quotes = np.flatnonzero(array == self._quote[0])
            ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
            is_regular = self._is_regular(array, quotes)
        if not len(ends) or ends[-1] != len(data) - 1:
            ends = np.append(ends, len(data))
        starts = np.concatenate([[0], ends[:-1] + 1])
        # An "\r" before the newline belongs to the line end.
        has_return = (ends > starts) & (array[np.maximum(ends, 1) - 1] == _RETURN)
        ends = ends - has_return
        full = ends > starts
        return Records(data, starts[full], ends[full], offset, line, 0, is_regular, newlines)

    def _is_regular(self, array: npt.NDArray[np.uint8], quotes: Positions) -> bool:
        """Whether each opening quote follows a delimiter or line end, and each closing one precedes such."""
        if len(quotes) % 2:
            return False
        openers, closers = quotes[0::2], quotes[1::2]
        before = openers[openers > 0] - 1
        after = closers[closers < len(array) - 1] + 1
        return bool(self._around[array[before]].all() and self._around[array[after]].all())
