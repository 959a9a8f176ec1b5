"""Items that are computed in a thread, one ahead."""

import threading
from contextlib import closing

import pytest

from slipway.components.read_ahead import read_ahead


def test_items_come_in_order_and_the_thread_ends():
    before = threading.active_count()
    assert list(read_ahead(iter(range(1, 100)))) == list(range(1, 100))
    assert threading.active_count() == before


def test_one_item_is_computed_while_the_caller_works():
    begun = [threading.Event() for _ in range(3)]

    def items():
        for each in begun:
            each.set()
            yield each

    with closing(read_ahead(items())) as ahead:
        next(ahead)
        assert begun[1].wait(60), "the second begins although nobody has asked for it"
        assert not begun[2].is_set(), "but the third not yet"


def test_an_error_comes_after_the_items_before_it():
    def items():
        yield 1
        yield 2
        raise ValueError("the third is damaged")

    ahead = read_ahead(items())
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(ValueError, match="the third is damaged"):
        next(ahead)


def test_who_stops_early_closes_the_iterator():
    closed = threading.Event()

    def items():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    before = threading.active_count()
    with closing(read_ahead(items())) as ahead:
        assert next(ahead) == 1
    assert closed.is_set()
    assert threading.active_count() == before
