"""Takes an even sample of rows whose number is not known before. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

Record = TypeVar("Record")


def even_sample(records: Iterable[Record], *, most: int) -> list[Record]:
    """Return `most` records spread evenly over all of them, in their order; all if there are no more.

    The first ones alone would be of one day, or of one class, where rows are in order.

    Args:
        most: >= 1. Fewer than twice as many are held at a time.
    """
    kept: list[Record] = []
    step = 1
    for place, record in enumerate(records):
        if place % step == 0:
            kept.append(record)
            if len(kept) == 2 * most:
                kept, step = kept[::2], 2 * step
    many = min(len(kept), most)
    return [kept[place * len(kept) // many] for place in range(many)]


def even_sample_of_files(
    files: Sequence[str], read: Callable[[str], Iterable[bytes]], *, most: int, most_bytes: int
) -> list[bytes]:
    """Return `most` records spread evenly over all files, in their order; all if there are no more.

    Args:
        read: yields the records of a file.
        most: >= 1, also of the files, which are then spread evenly, too.
        most_bytes: of records that are read; of a split with more, each file only has its share read.
    """
    if not files:
        return []
    many = min(len(files), most)
    chosen = [files[place * len(files) // many] for place in range(many)]
    parts = (within(read(file), most_bytes // many) for file in chosen)
    return even_sample((record for part in parts for record in part), most=most)


def within(records: Iterable[bytes], most_bytes: int) -> Iterator[bytes]:
    """Yield records up to the one with which their total size reaches `most_bytes`."""
    size_bytes = 0
    for record in records:
        yield record
        size_bytes += len(record)
        if size_bytes >= most_bytes:
            return
