"""Values that became more frequent, and the rows that hold them."""

import re

import numpy as np
import pytest

from slipway.components.data_gate.finding import RowQuery
from slipway.components.data_gate.raw_rows import matches
from slipway.components.data_gate.rules.risen_values import grown_text, numbers_moved, texts_moved


def test_text_that_grew_is_reported_with_its_counts():
    words, value = texts_moved(
        {"Cash": 80, "Card": 20}, {"Cash": 20, "Card": 30}, "Cash", there="in train", of="values"
    )
    assert words == '"Cash" is 80 of 100 values (80%), 40% in train'
    assert value == "Cash"


def test_of_a_text_that_is_gone_the_one_that_took_its_place_has_the_rows():
    words, value = texts_moved({"Card": 100}, {"Cash": 60, "Card": 40}, "Cash", there="in train", of="values")
    assert words == '"Cash" is 0 of 100 values (0.00%), 60% in train, "Card" rose from 40% to 100%'
    assert value == "Card"


def test_text_that_was_not_there_before_rose_from_nothing():
    words, value = texts_moved({"a": 10, "new": 10}, {"a": 2}, "new", there="in train", of="values")
    assert (words, value) == ('"new" is 10 of 20 values (50%), 0.00% in train', "new")
    assert grown_text({"a": 10, "new": 10}, {"a": 2}) == ("new", 0.5, 0.0)
    # Beside one that was there, and grew less.
    assert grown_text({"a": 15, "new": 5}, {"a": 1, "b": 1}) == ("a", 0.75, 0.5)
    assert grown_text({"a": 11, "new": 9}, {"a": 1, "b": 1}) == ("new", 0.45, 0.0)


def test_bounds_of_whole_numbers_are_whole_and_of_others_just_above_float32(feature):
    then, now = np.arange(0.0, 101.0), np.append(np.arange(0.0, 101.0), np.full(400, 50.0))
    _, query = numbers_moved(feature("x", now), feature("x", then), there="")
    assert all(bound == round(bound, 6) for bound in query.within)
    _, query = numbers_moved(feature("x", now + 0.5), feature("x", then + 0.5), there="")
    assert all(bound == float(np.float32(bound)) for bound in query.within)
    _, high = query.within
    assert float(np.nextafter(np.float32(high), np.float32(0))) < high
    assert high > 50.5


def test_hostile_text_is_written_out():
    words, _ = texts_moved({"\x1b[31m": 1}, {"a": 1}, "\x1b[31m", there="in train", of="values")
    assert words.startswith('"\\x1b[31m" is')


@pytest.mark.parametrize("kind", ["whole", "float32"])
def test_rows_of_the_numbers_that_grew_are_those_that_were_added(feature, kind):
    then = np.random.default_rng(0).integers(0, 100, 5000).astype(float)
    now = np.append(then, np.full(2000, 42.0))
    if kind == "float32":
        then, now = (np.float32(each / 10 + 0.03).astype(float) for each in (then, now))
    words, query = numbers_moved(feature("x", now), feature("x", then), there="in the reference")
    # A cell of the divergence holds some neighbours, too.
    assert re.match(r"about 2,[0-4]\d\d of 7,000 values \(\d+(\.\d+)?%\) lie from ", words), words
    assert words.endswith("in the reference")
    assert matches("42" if kind == "whole" else "4.23", query)
    assert [
        cell for cell in ("0", "20", "43", "99", "0.03", "2.03", "4.33", "9.93") if matches(cell, query)
    ] == []


def test_column_that_became_one_number_is_reported_as_such(feature):
    words, query = numbers_moved(
        feature("x", np.zeros(500)), feature("x", np.random.default_rng(0).normal(size=500)), there="in train"
    )
    assert "500 of 500 values (100%) lie at 0" in words
    assert matches("0", query)


def test_numbers_beyond_all_earlier_ones_are_found(feature):
    then = np.random.default_rng(0).normal(10, 1, 3000)
    words, query = numbers_moved(feature("x", then + 20), feature("x", then), there="in train")
    assert words.endswith("0.00% in train")
    assert not matches("12", query)
    assert isinstance(query, RowQuery)
