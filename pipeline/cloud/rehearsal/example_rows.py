"""Reads the examples of TFRecord files as rows that can be compared, without TensorFlow."""

import gzip
import math
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

from slipway.components.ingest.example_message import parse_example
from slipway.components.ingest.tfrecord import BrokenRecord, read_records

FLOAT_TOLERANCE = 1e-5
"""Relative and absolute tolerance of a float in an example, which depends on Beam's order of addition."""

_MOST_BYTES = 2**31 - 1  # the largest message of Protocol Buffers


def records_of(file: Path) -> Iterator[bytes]:
    """Yield the records of a TFRecord file, gzip-compressed or not.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file has another format, or is damaged.
    """
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            yield from map(_whole, read_records(stream, max_bytes=_MOST_BYTES))
    except (zlib.error, EOFError) as error:
        raise ValueError(f"{file.name} is not a TFRecord file") from error


def _whole(item: tuple[int, bytes] | BrokenRecord) -> bytes:
    match item:
        case (_, record):
            return record
    raise EOFError(item.reason)


@dataclass(frozen=True)
class Row:
    """An example: the part that must agree exactly, and the floats, which need not."""

    exact: bytes
    floats: tuple[float, ...]

    def is_near(self, other: "Row") -> bool:
        """Return True if it is the same example, apart from rounding."""
        return (
            self.exact == other.exact
            and len(self.floats) == len(other.floats)
            and all(map(_is_near, self.floats, other.floats))
        )


def row_of(record: bytes) -> Row:
    """Parse a serialized tf.train.Example, whose features protobuf stores in any order.

    A record that is not such a message must agree exactly.
    """
    example = parse_example(record)
    if example is None:
        return Row(record, ())
    exact: list[object] = []
    floats: list[float] = []
    for name, feature in sorted(example.features.feature.items()):
        kind = feature.WhichOneof("kind")
        values = getattr(feature, kind).value if kind else ()
        if kind == "float_list":
            floats += values
        exact += [name, kind, len(values) if kind == "float_list" else list(values)]
    return Row(repr(exact).encode(), tuple(floats))


def count_different(ours: Iterable[Row], theirs: Iterable[Row]) -> int:
    """Return how many of our rows have no row of theirs that is near, each of which is the partner of one.

    Args:
        ours, theirs: as many rows, in any order.
    """
    # Sorted, most partners are at the same place in both lists.
    pairs = zip(sorted(ours, key=_order), sorted(theirs, key=_order), strict=True)
    left = [pair for pair in pairs if not pair[0].is_near(pair[1])]
    # Not those that a rounded number comes before: where 0.69 is 0.6900001 in one list, it sorts after rows
    # whose other numbers are larger.
    mine, others = ([pair[side] for pair in left] for side in (0, 1))
    places = _places([*mine, *others])
    by_place: dict[tuple[object, ...], tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for number, row in enumerate([*mine, *others]):
        by_place[places[number]][number >= len(mine)].append(row)
    return len(mine) - sum(_count_partners(*each) for each in by_place.values())


def _is_near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=FLOAT_TOLERANCE, abs_tol=FLOAT_TOLERANCE) or (
        math.isnan(one) and math.isnan(other)
    )


def _order(row: Row) -> tuple[object, ...]:
    return row.exact, tuple(map(_number_order, row.floats))


def _number_order(number: float) -> tuple[bool, float]:
    """Return a key to sort by, in which NaN, which no number is below or above, comes last."""
    return (True, 0.0) if math.isnan(number) else (False, number)


def _places(rows: Sequence[Row]) -> list[tuple[object, ...]]:
    """Return a key for each row that is the same for all rows that are near.

    It holds what must agree exactly and, for each float, the number of gaps below it that are wider than the
    tolerance, among the values that stand at its place in all rows.
    """
    values: dict[int, set[float]] = defaultdict(set)
    for row in rows:
        for place, number in enumerate(row.floats):
            if not math.isnan(number):
                values[place].add(number)
    gaps: dict[int, dict[float, int]] = {}
    for place, different in values.items():
        ascending = sorted(different)
        is_gap = [0, *(not _is_near(low, high) for low, high in pairwise(ascending))]
        gaps[place] = dict(zip(ascending, accumulate(is_gap), strict=True))
    return [
        (row.exact, *(gaps[place].get(number) for place, number in enumerate(row.floats) if place in gaps))
        for row in rows
    ]


def _count_partners(ours: Sequence[Row], theirs: Sequence[Row]) -> int:
    """Return how many of our rows have a partner, for rows with the same key of `_places`."""
    if not ours or not theirs or not theirs[0].floats:
        return min(len(ours), len(theirs))
    # The place with the most values leaves the fewest rows to look at.
    width = range(len(theirs[0].floats))
    place = max(width, key=lambda each: len({_number_order(row.floats[each]) for row in theirs}))
    left = sorted(theirs, key=lambda row: _number_order(row.floats[place]))
    found = 0
    for row in sorted(ours, key=lambda row: _number_order(row.floats[place])):
        number = row.floats[place]
        # Twice the tolerance, which is relative to the larger of two numbers.
        around = 0.0 if math.isinf(number) else 2 * FLOAT_TOLERANCE * max(1.0, abs(number))
        first = bisect_left(
            left, _number_order(number - around), key=lambda row: _number_order(row.floats[place])
        )
        for at in range(first, len(left)):
            if row.is_near(left[at]):
                del left[at]
                found += 1
                break
            if left[at].floats[place] > number + around:
                break
    return found
