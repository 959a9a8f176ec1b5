"""Numbers that may be none, such as codes that begin with a zero."""

import pytest

from slipway.components.ingest.column_notes import TO_ZERO
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.suspect_numbers import Form

ALL = {"split": {"all": 1}}


@pytest.mark.parametrize(
    ("cells", "form", "count"),
    [
        (["+4915112345678", "+1", "5"], Form.PLUS, 2),
        (["+4915.5", "-1", "5"], Form.PLUS, 1),
        (["1_000", "2"], Form.UNDERSCORE, 1),
        ([" 5", "6\t", "7"], Form.SPACES, 2),
        (["12E4", "3e5", "1.5e3", "1e-05", "1e+16"], Form.EXPONENT, 2),
        (["00.5", "01.02", "-02.5", "0.5", "0"], Form.ZEROS, 3),
        (["1.10", "1.2", "1.20", "2"], Form.TRAILING, 2),
    ],
)
def test_numbers_that_may_be_none_are_read_as_numbers_and_counted(ingest, write, cells, form, count):
    found = ingest(write("a,c\n" + "".join(f"1,{cell}\n" for cell in cells)), **ALL)
    assert [row["c"] for row in found.rows] == [pytest.approx([float(cell)]) for cell in cells]
    assert found.notes == {"c": {form: count}}


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "-2", "0"],
        ["1.5", "2.25", "0.0", "10", "1e-05", "1.5E10", "1e+16", "nan", "-inf", ""],
        ["12.50", "3.00", "0.10", "12"],  # all of two digits
        ["5.0", "12.45", "0.5"],  # as Python writes them
        ["007", "8"],  # text anyway
        ["+5", "x"],
    ],
)
def test_of_plain_numbers_and_of_text_nothing_is_said(ingest, write, cells):
    found = ingest(write("a,c\n" + "".join(f"1,{cell}\n" for cell in cells)), **ALL)
    assert found.notes == {}


def test_of_a_column_that_the_schema_types_only_what_is_lost_is_said(ingest, write):
    known = {"c": ColumnType.FLOAT}
    found = ingest(write("a,c\n1,+5\n1,1e-46\n"), known=known, **ALL)
    assert found.notes == {"c": {TO_ZERO: 1}}
