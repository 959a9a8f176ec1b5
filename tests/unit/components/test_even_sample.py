"""Samples of records are spread over all of them, however many there are."""

import pytest

from slipway.components.even_sample import even_sample


def records(many):
    return (str(number).encode() for number in range(many))


@pytest.mark.parametrize("many", [0, 1, 9, 10])
def test_few_records_are_all_taken(many):
    assert even_sample(records(many), most=10) == list(records(many))


@pytest.mark.parametrize("many", [11, 19, 20, 21, 39, 40, 41, 79, 1000, 1023])
def test_sample_is_spread_over_all_records_in_their_order(many):
    found = [int(record) for record in even_sample(records(many), most=10)]
    assert len(found) == 10
    assert found[0] == 0
    gaps = [after - before for before, after in zip(found, [*found[1:], many], strict=True)]
    assert all(0 < gap <= 2.1 * many / 10 for gap in gaps), "and the last one is near the end"


def test_rows_in_the_order_of_their_classes_are_sampled_from_each_class():
    ordered = [b"0"] * 700 + [b"1"] * 300
    assert even_sample(ordered, most=100).count(b"1") == pytest.approx(30, abs=8)
