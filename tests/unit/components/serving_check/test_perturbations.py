"""The strange requests."""

import pytest

from slipway.components.serving_check.perturbations import (
    EXTREMES,
    LONG_LIST,
    UNSEEN,
    Column,
    marks_empty,
    perturbations,
)

COLUMNS = [
    Column("fare", "number"),
    Column("company", "text"),
    Column("hour", "integer", required=True),
    Column("image", "integer", size=4, required=True),
]


def test_every_column_goes_missing_and_only_a_required_one_may_be_refused():
    found = perturbations(COLUMNS)
    missing = {p.words: p.may_refuse for p in found if [*p.columns.values()] == [None]}
    assert missing == {
        "fare missing": False,
        "company missing": False,
        "hour missing": True,
        "image missing": True,
    }


def test_optional_columns_go_missing_together_where_there_are_several():
    found = list(perturbations([Column("a", "text"), Column("b", "number")]))
    assert found[-1].columns == {"a": None, "b": None}
    assert not found[-1].may_refuse


def test_text_is_emptied_and_unseen_and_numbers_are_extreme():
    by_words = {p.words: p.columns for p in perturbations(COLUMNS)}
    assert by_words['company = ""'] == {"company": (b"",)}
    assert "company never seen before" in by_words
    assert {f"fare = {value:g}" for value in EXTREMES} <= by_words.keys()
    assert by_words["image = -1"] == {"image": (-1, -1, -1, -1)}
    assert isinstance(by_words["fare = 1e+09"]["fare"][0], float)
    assert isinstance(by_words["hour = 1e+09"]["hour"][0], int)


def test_list_is_empty_and_longer_than_any():
    by_words = {p.words: p for p in perturbations([Column("tags", "text", is_list=True), *COLUMNS])}
    assert by_words["tags = []"].columns == {"tags": ()}
    assert by_words["tags with 1,000 values"].columns == {"tags": (UNSEEN,) * LONG_LIST}
    assert not by_words["tags = []"].may_refuse
    assert not by_words.keys() & {"fare = []", "company with 1,000 values"}


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ([b""], True),
        ([float("nan")], True),
        ([-(2**63)], True),
        ([b"a"], False),
        ([0], False),
        ([0.0], False),
        ([], False),
        ([b"", b"a"], False),
        ([b"a", b""], True),
    ],
)
def test_values_that_serve_raw_takes_for_empty_cells(values, marks):
    assert marks_empty(Column("a", "text", is_list=len(values) > 1), values) == marks
    assert not marks_empty(Column("a", "text", required=True), values)
