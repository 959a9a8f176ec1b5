import numpy as np
import pytest

from slipway.pipeline.start.copies import copies_of

ROWS = 24
NOISE = np.random.default_rng(1).normal(size=ROWS)
YES = np.array(["no", "yes"] * (ROWS // 2), dtype=object)
AMOUNT = np.arange(ROWS) ** 2.0


def _texts(*values):
    return np.array(values, dtype=object)


@pytest.mark.parametrize(
    ("values", "is_one"),
    [
        (np.arange(ROWS) % 2.0, True),
        (_texts(*[None, "2024-01-31"] * (ROWS // 2)), True),
        (np.where(np.arange(ROWS) % 2, np.nan, 7.0), True),
        (np.array([0.0, 1.0] * 11 + [1.0, 1.0]), False),
        (np.arange(ROWS) * 1.0, False),
        (np.zeros(ROWS), False),
    ],
)
def test_a_column_is_the_label_if_each_value_goes_with_one_class(values, is_one):
    assert copies_of("y", {"x": values, "y": YES, "noise": NOISE}) == (["x"] if is_one else [])
    assert copies_of("y", {"x": values, "y": (YES == "yes") * 1.0}) == (["x"] if is_one else [])


@pytest.mark.parametrize(
    ("values", "is_one"),
    [
        (np.round(AMOUNT * 1.0837, 2), True),
        (32 - AMOUNT, True),
        (np.arange(ROWS) * 1.0, False),
        (AMOUNT + NOISE, False),
        (np.where(NOISE > 1, np.nan, AMOUNT), False),
        (np.where(NOISE > 1, np.inf, AMOUNT), False),
        (np.zeros(ROWS), False),
        (AMOUNT.astype(str).astype(object), False),
    ],
)
def test_a_column_is_a_label_of_numbers_if_all_are_on_a_line(values, is_one):
    values = np.concatenate([values, [values[0]]])  # of a row without a label
    label = np.concatenate([AMOUNT + 0.5, [np.nan]])
    assert copies_of("y", {"x": values, "y": label}) == (["x"] if is_one else [])


def test_few_rows_and_few_of_the_rarer_class_may_agree_by_chance():
    rare = np.array([1.0] * 4 + [0.0] * 20)
    assert copies_of("y", {"x": rare, "y": rare}) == []
    ids = np.arange(20) * 1.0
    assert copies_of("y", {"x": ids[::-1], "y": ids}) == []
    assert copies_of("y", {"x": YES[:19], "y": YES[:19]}) == []
