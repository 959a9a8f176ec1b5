"""Rows of a sample: as many as there is room for."""

from itertools import repeat

from slipway.components.data_profile.rows import within


def test_records_are_taken_until_they_fill_the_room():
    assert len(list(within(repeat(bytes(1000)), 10_000))) == 10
    assert len(list(within(repeat(bytes(1000)), 10_001))) == 11


def test_one_record_is_taken_however_large():
    assert list(within([b"large", b"other"], 1)) == [b"large"]
    assert list(within([], 1)) == []
