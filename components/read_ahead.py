"""Computes the next item of an iterator in a thread while the caller is busy with the last one."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def read_ahead(items: Iterator[Item]) -> Generator[Item, None, None]:
    """Yield the same items in the same order.

    It gains time where the work on either side releases Python's lock, as that of Arrow, NumPy and
    compression does. When this generator has ended or was closed, so have the thread and the iterator.

    Args:
        items: runs in the thread, one item ahead; none of them may be None.

    Raises:
        Exception: what `items` raises, after the items before it.
    """
    try:
        with ThreadPoolExecutor(1, "read_ahead") as thread:
            coming = thread.submit(next, items, None)
            while (item := coming.result()) is not None:
                coming = thread.submit(next, items, None)
                yield item
    finally:
        if close := getattr(items, "close", None):
            close()
