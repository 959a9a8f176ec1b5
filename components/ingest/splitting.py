"""Assigns rows to splits: by a hash (of the record, a key or the place), by time, or by the file's parts."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.errors import ComponentError
from slipway.components.ingest.column_types import Columns, ColumnType, Mask
from slipway.components.ingest.example_encoding import empty_feature, key_feature
from slipway.components.ingest.options import Options

Splits = npt.NDArray[np.int64]

NO_SPLIT = -1
NO_VALUE = "no value to split by"
# Digits behind a sign, such as those of a day. A fraction of a second may have fewer, and so may 20240120.
_GROUP_OR_SIGN = re.compile(r"(?<=[^0-9.])[0-9]+|.", re.DOTALL)
_ENDS_WITH_ONE_DIGIT = re.compile(r"[-/][0-9]$")
_YEAR_LAST = re.compile(r"[0-9]{1,2}([./-])[0-9]{1,2}\1[0-9]{4}(?![0-9])")


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Rows to assign to splits.

    Attributes:
        content: the serialised Examples.
        values: the typed value of the rule's column for each row; None if there is no such column.
        file: the name of the rows' file, without its folder.
        numbers: the number of each row in the file, from 0; rows that cannot be read count, too.
        part: the file's own name for the set the rows belong to; empty for most formats.
    """

    content: Sequence[bytes]
    values: pa.Array | None
    file: str
    numbers: npt.NDArray[np.int64]
    part: str = ""


class SplitRule(ABC):
    """Assigns rows to splits.

    Attributes:
        column: the column that decides the split, if one does.
    """

    column: str | None

    def unfit(self, values: pa.Array) -> Mapping[str, Mask]:  # noqa: ARG002
        """Return masks of the rows whose value in the column decides nothing, by the reason; maybe none."""
        return {}

    @abstractmethod
    def assign(self, rows: SplitRows) -> Splits:
        """Return the index of each row's split; NO_SPLIT for a row without one."""


def split_rule(options: Options, columns: Columns) -> SplitRule:
    """Return the rule that the options name.

    Raises:
        ComponentError: the column is missing, or of a type that cannot decide the split.
    """
    by, names = options.split_by, list(options.split)
    if "parts" in by:
        return _Parts({part: names.index(split) for split, part in by["parts"].items()})
    if "time" in by:
        kind = _kind(by["time"], columns, "time")
        starts = [(names.index(split), start) for split, start in by["starts"].items()]
        return _Time(by["time"], _by_time(by["time"], kind, starts))
    bounds = np.cumsum(list(options.split.values()))
    if "row" in by:
        return _PlaceHash(bounds)
    if "key" not in by:
        return _RecordHash(bounds)
    kind = _kind(by["key"], columns, "key")
    return _KeyHash(by["key"], bounds, empty_feature(kind))


def buckets(digests: Sequence[bytes], total: int) -> Splits:
    """Return sha256 digests, taken as numbers, modulo `total`."""
    words = np.frombuffer(b"".join(digests), dtype=">u4").reshape(-1, 8).astype(np.uint64)
    rest = np.zeros(len(words), dtype=np.uint64)
    for word in words.T:
        rest = ((rest << np.uint64(32)) | word) % np.uint64(total)
    return rest.astype(np.int64)


@dataclass(frozen=True)
class _RecordHash(SplitRule):
    """Splits by a hash of the record, as TFX does by default."""

    bounds: Splits
    column: str | None = None

    def assign(self, rows: SplitRows) -> Splits:
        return _by_digest([sha256(record).digest() for record in rows.content], self.bounds)


@dataclass(frozen=True)
class _PlaceHash(SplitRule):
    """Splits by a hash of the file's name and the row's number, so that equal rows can get different splits.

    Neither the order in which files are read nor their folder matters, and rows that are appended to a file
    do not change the splits of earlier ones.
    """

    bounds: Splits
    column: str | None = None

    def assign(self, rows: SplitRows) -> Splits:
        before = sha256(f"{rows.file}:".encode())
        digests = []
        for number in rows.numbers.tolist():
            place = before.copy()
            place.update(b"%d" % number)
            digests.append(place.digest())
        return _by_digest(digests, self.bounds)


@dataclass(frozen=True)
class _KeyHash(SplitRule):
    """Splits by a hash of a column's value, as TFX does with `partition_feature_name`."""

    column: str
    bounds: Splits
    missing: bytes

    def assign(self, rows: SplitRows) -> Splits:
        encoded = self._keys(firsts(rows.values), rows).dictionary_encode()
        keys = encoded.dictionary.to_pylist()
        # Rows without a key all get the same split, as in TFX: their Feature is an empty list.
        digests = [sha256(key_feature(key)).digest() for key in keys] + [sha256(self.missing).digest()]
        found = _by_digest(digests, self.bounds)
        indices = encoded.indices.fill_null(len(keys)).to_numpy(zero_copy_only=False)
        assigned: Splits = found[indices]
        return assigned

    def _keys(self, values: pa.Array, rows: SplitRows) -> pa.Array:
        """Return the values; numbers such as 12.0, as some programs write IDs, as whole numbers.

        NaN is no value.
        """
        if pa.types.is_null(values.type):  # Arrow counts a missing value of no type as a key
            return values.cast(pa.int64())
        if not pa.types.is_floating(values.type):
            return values
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)  # no value, as elsewhere
        try:
            return values.cast(pa.int64())
        except pa.ArrowInvalid:
            numbered = zip(rows.numbers.tolist(), values.to_pylist(), strict=True)
            row, wrong = next(each for each in numbered if each[1] is not None and not _is_key(each[1]))
            raise ComponentError(
                f"data.split_by.key: row {row + 1:,} of {rows.file} has {wrong} in column {self.column!r}, "
                f"{_no_key(wrong)}",
                hint="use a column of whole numbers or text; rows with no value at all are all in one split",
            ) from None


def _is_key(number: float) -> bool:
    return number.is_integer() and -(2.0**63) <= number < 2.0**63


def _no_key(number: float) -> str:
    if math.isinf(number):
        return "which is no number that rows can share"
    return "a number beyond 64 bits" if number.is_integer() else "a fraction"


@dataclass(frozen=True)
class _Time(SplitRule):
    """Splits by time: each split begins at a moment and ends where the next one begins."""

    column: str
    starts: tuple[tuple[int, Any], ...]  # (index of the split, its first moment), the earliest first

    def unfit(self, values: pa.Array) -> Mapping[str, Mask]:
        moments = firsts(values)
        missing = is_missing(moments)
        found = {NO_VALUE: missing}
        for example, form in self._forms.items():
            # A text of another form sorts before or after a start whatever its time: 3/4/2021, 2024-1-5.
            fits = pc.match_substring_regex(moments, form).fill_null(True)
            found[f"not a time like {example}"] = ~np.asarray(fits, dtype=np.bool_)
        return found

    @cached_property
    def _forms(self) -> Mapping[str, str]:
        """The patterns of the texts that can be compared with each start, by the start."""
        return {
            start.decode(): _form_of(start.decode()) for _, start in self.starts if isinstance(start, bytes)
        }

    def assign(self, rows: SplitRows) -> Splits:
        moments = firsts(rows.values)
        (first, _), *later = self.starts
        splits = np.full(len(moments), first, dtype=np.int64)
        for index, start in later:
            # `start` is not cast to the column's type: 1.5 would become 1 for a column of whole numbers.
            reached = pc.greater_equal(moments, start).fill_null(False)
            splits[reached.to_numpy(zero_copy_only=False)] = index
        splits[is_missing(moments)] = NO_SPLIT
        return splits


@dataclass(frozen=True)
class _Parts(SplitRule):
    """Splits by the parts that a file itself names."""

    parts: Mapping[str, int]  # the index of the split, by the name of the part
    column: str | None = None

    def assign(self, rows: SplitRows) -> Splits:
        return np.full(len(rows.content), self.parts.get(rows.part, NO_SPLIT), dtype=np.int64)


def _by_digest(digests: Sequence[bytes], bounds: Splits) -> Splits:
    """Return the split of each digest; `bounds` are the cumulative sums of the splits' hash buckets."""
    return np.searchsorted(bounds, buckets(digests, int(bounds[-1])), side="right")


def firsts(values: pa.Array | None) -> pa.Array:
    """Return one value for each row; of a list, the first.

    Raises:
        ComponentError: there is no column of values.
    """
    if values is None:
        raise ComponentError(
            "data.split_by needs a column, and these files have none", hint="remove data.split_by"
        )
    if not pa.types.is_large_list(values.type):
        return values
    counts = pc.list_value_length(values).fill_null(0).to_numpy()
    begins = np.cumsum(counts) - counts
    return values.flatten().take(pa.array(begins, mask=counts == 0))


def is_missing(values: pa.Array) -> Mask:
    """Return a mask of the rows without a value; NaN is none."""
    return np.asarray(values.is_null(nan_is_null=True), dtype=np.bool_)


def _form_of(start: str) -> str:
    """Return a pattern of the texts that have digits, letters and signs where `start` has them.

    A text may be shorter (2024-01 for 2024-01-20), and may go on in any way. It may not end within a group of
    digits: 2024-10-5 would stand behind 2024-10-20. Nor may one go on within the last group of a start that
    has one digit there: 2024-1-20 would stand before 2024-1-5.
    """
    form = "(?:$|[^0-9])" if _ENDS_WITH_ONE_DIGIT.search(start) else ""
    for part in reversed(_GROUP_OR_SIGN.findall(start)):
        form = f"{_pattern_of(part)}(?:$|{form})" if form else _pattern_of(part)
    return f"^{form}"


def _pattern_of(part: str) -> str:
    if part.isdecimal():
        return f"[0-9]{{{len(part)}}}"
    return "[A-Za-z]" if part.isalpha() else re.escape(part)


def _kind(column: str, columns: Columns, key: str) -> ColumnType:
    if column not in columns:
        raise ComponentError(
            f"data.split_by.{key} names the column {column!r}, which is not there",
            hint=f"there are {', '.join(list(columns)[:20])}",
        )
    return columns[column]


def _by_time(column: str, kind: ColumnType, numbered: list[tuple[int, Any]]) -> tuple[tuple[int, Any], ...]:
    """Return the splits' indices and first moments by time; text is compared as text, as ISO dates allow."""
    for _, start in numbered:
        if start is not None and isinstance(start, str) != (kind == ColumnType.TEXT):
            holds = "text" if kind == ColumnType.TEXT else "numbers"
            raise ComponentError(
                f"data.split_by.starts: {start!r} cannot be compared with {column!r}, which holds {holds}"
            )
        if isinstance(start, str) and _YEAR_LAST.match(start):
            raise ComponentError(
                f"data.split_by.starts: {start} ends with the year, and texts are compared from their first "
                "letter: 21.01.2020 would come after 20.12.2024",
                hint=f"name the format of {column!r} in data.dates, which makes ISO dates of it, and write "
                "the start as one, such as 2024-01-20",
            )
    moments = [(i, start.encode() if isinstance(start, str) else start) for i, start in numbered]
    earliest = [pair for pair in moments if pair[1] is None]
    return (*earliest, *sorted((pair for pair in moments if pair[1] is not None), key=lambda pair: pair[1]))
