"""Columns that went, or hold another kind of value than those that a model was trained on."""

import pytest

from slipway.components.data_gate.finding import Finding, RowQuery
from slipway.components.data_gate.rules.changed_columns import find_changed_columns

NUMBERS, WHOLE, TEXT = [1.5, 2.5], [1.0, 2.0], {"a": 2}


def changed(split, now, before, *, is_blessed=True, skip=()):
    statistics, reference = ({"train": split(2, **each)} for each in (now, before))
    return list(find_changed_columns(statistics, reference, skip=skip, is_blessed=is_blessed))


@pytest.mark.parametrize("is_blessed", [True, False])
def test_column_that_the_reference_had_is_missed(split, is_blessed):
    [finding] = changed(split, {"fare": NUMBERS}, {"fare": NUMBERS, "miles": WHOLE}, is_blessed=is_blessed)
    assert (finding.rule, finding.feature) == ("columns", "miles")
    assert ("baseline --clear" in finding.remedy) == is_blessed
    assert not changed(split, {"fare": NUMBERS}, {"fare": NUMBERS, "miles": WHOLE}, skip={"miles"})


@pytest.mark.parametrize(
    ("now", "before", "words"),
    [
        (NUMBERS, WHOLE, "it holds numbers, in the reference whole numbers"),
        (TEXT, WHOLE, "it holds text, in the reference whole numbers"),
        (WHOLE, TEXT, "it holds whole numbers, in the reference text"),
    ],
)
def test_values_that_the_blessed_model_cannot_read_are_reported_with_how_to_retire_it(
    split, now, before, words
):
    [finding] = changed(split, {"x": now}, {"x": before})
    assert finding.what == words
    assert "baseline --clear" in finding.remedy
    assert not changed(split, {"x": now}, {"x": before}, is_blessed=False)


def test_column_without_any_value_is_of_no_other_kind(split):
    assert not changed(split, {"x": [], "y": WHOLE}, {"x": TEXT, "y": WHOLE})


def test_columns_after_one_that_is_reported_elsewhere_are_looked_at(split):
    [finding] = changed(split, {"fare": NUMBERS}, {"pay": TEXT, "miles": WHOLE}, skip={"pay"})
    assert finding.feature == "miles"


def test_first_split_with_a_value_says_what_a_column_holds(split):
    reference = {"train": split(2, x=TEXT)}
    late = {"train": split(2, x=[]), "eval": split(2, x=WHOLE)}
    [finding] = find_changed_columns(late, reference, skip=(), is_blessed=True)
    assert finding.what == "it holds whole numbers, in the reference text"
    mixed = {"train": split(2, x=TEXT), "eval": split(2, x=WHOLE)}
    assert not list(find_changed_columns(mixed, reference, skip=(), is_blessed=True))


def test_new_column_and_equal_ones_are_let_pass(split):
    assert not changed(split, {"fare": NUMBERS, "more": TEXT}, {"fare": NUMBERS})


def test_changed_columns_are_reported_whole(split):
    assert changed(split, {"fare": NUMBERS}, {"fare": NUMBERS, "miles": WHOLE}) == [
        Finding(
            "columns",
            "miles",
            ("train",),
            "the reference has this column, the data does not",
            remedy=(
                "put the column back; features made from it cannot be computed without it; if this is "
                "intended, retire the last blessed model as the baseline (`baseline --clear`): it cannot be "
                "evaluated on such rows"
            ),
        )
    ]
    assert changed(split, {"fare": NUMBERS}, {"fare": NUMBERS, "miles": WHOLE}, is_blessed=False) == [
        Finding(
            "columns",
            "miles",
            ("train",),
            "the reference has this column, the data does not",
            remedy="put the column back; features made from it cannot be computed without it",
        )
    ]
    assert changed(split, {"x": NUMBERS}, {"x": WHOLE}) == [
        Finding(
            "columns",
            "x",
            ("train",),
            "it holds numbers, in the reference whole numbers",
            remedy=(
                "restore the old type, or declare the new one in the schema; if this is intended, "
                "retire the last blessed model as the baseline (`baseline --clear`): it cannot be evaluated "
                "on such rows"
            ),
            query=RowQuery("x"),
        )
    ]
