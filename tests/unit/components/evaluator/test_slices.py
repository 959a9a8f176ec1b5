import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.evaluator import slices
from slipway.components.evaluator.slices import check_number, column_of, members


def column(name, *rows):
    """A column of rows, each a list of values."""
    values = sorted({value for row in rows for value in row})
    pairs = [(place, values.index(value)) for place, row in enumerate(rows) for value in row]
    places, codes = np.array(pairs, np.int64).reshape(-1, 2).T
    return column_of(name, places, codes, values)


def sliced(spec, rows, **columns):
    found = members(spec, columns, rows)
    return {key: found.rows[found.slices == place].tolist() for place, key in enumerate(found.keys)}


def test_all_rows_are_one_slice():
    assert sliced((), 3) == {(): [0, 1, 2]}


def test_row_without_a_value_is_in_no_slice_and_one_with_several_in_each():
    tags = column("tags", [b"x"], [], [b"x", b"y"], [b"y", b"y"])
    assert sliced(("tags",), 4, tags=tags) == {(("tags", "x"),): [0, 2], (("tags", "y"),): [2, 3]}


def test_cross_is_of_each_value_of_one_column_with_each_of_the_other():
    hour, tags = column("hour", [7], [7], [9], []), column("tags", [b"x", b"y"], [], [b"y"], [b"x"])
    assert sliced(("hour", "tags"), 4, hour=hour, tags=tags) == {
        (("hour", 7), ("tags", "x")): [0],
        (("hour", 7), ("tags", "y")): [0],
        (("hour", 9), ("tags", "y")): [2],
    }


def test_column_that_does_not_exist_makes_no_slice():
    assert sliced(("gone",), 2) == {}
    assert sliced(("gone", "hour"), 2, hour=column("hour", [7], [7])) == {}


def test_text_that_is_not_utf_8_is_reported():
    with pytest.raises(ComponentError, match=r"evaluate.slices: company holds b'\\xff', which is not UTF-8"):
        column("company", [b"\xff"])


def test_too_many_slices_are_refused_with_the_columns_that_make_them(monkeypatch):
    monkeypatch.setattr(slices, "MOST_SLICES", 3)
    check_number([(), (("hour", 1),), (("hour", 2),)])
    with pytest.raises(ComponentError) as told:
        check_number([(), (("hour", 1),), (("company", "a"), ("trip", 1)), (("company", "a"), ("trip", 2))])
    assert told.value.message == (
        "evaluate.slices: the values of company with trip make more than 3 slices (2 so far), "
        "the most an evaluation may have"
    )
