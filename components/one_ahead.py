"""Computes the next of several items while the previous one is used."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def one_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items in order; the next one is computed in a thread while the caller works on this one.

    It gains where both sides leave Python's lock for a while: to decompress, parse, compute or write.

    Raises:
        Exception: what the items raise, once those before have been yielded.
    """
    end = object()
    coming = iter(items)
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(next, coming, end)
        while (item := following.result()) is not end:
            following = thread.submit(next, coming, end)
            yield item  # type: ignore[misc]  # no longer the end
