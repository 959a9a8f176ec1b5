"""Values and columns that are not there."""

from collections import Counter
from dataclasses import replace

import pytest

from slipway.components.data_gate.finding import Edit, Finding, RowQuery
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.missing import find_missing
from slipway.components.data_gate.schema import FeatureSchema

ROWS = 1000


def found(split, present, *, before=None, limits=None, min_fraction=None, rows=ROWS):
    statistics = {"train": split(rows, fare=[1.0] * present)}
    reference = {"train": split(ROWS, fare=[1.0] * before)} if before is not None else {}
    schema = {"fare": FeatureSchema("fare", min_fraction=min_fraction)} if min_fraction is not None else {}
    return list(find_missing(statistics, reference, schema, limits or Limits(), schema_file="s/t.pbtxt"))


@pytest.mark.parametrize(
    ("limit", "present", "is_found"),
    [(1.0, 0, False), (0.5, 500, False), (0.5, 499, True), (0.0, 1000, False), (0.0, 999, True)],
)
def test_share_of_missing_values_is_held_against_the_limit(split, limit, present, is_found):
    findings = found(split, present, limits=Limits(max_missing_share=limit))
    assert bool(findings) == is_found
    if is_found:
        assert findings[0].key == "data_gate.max_missing_share"
        assert findings[0].measured == pytest.approx(1 - present / ROWS)


def test_limit_of_one_feature_is_named_by_its_own_key(split):
    limits = Limits(features={"fare": {"max_missing_share": 0.1}})
    [finding] = found(split, 800, limits=limits)
    assert finding.key == "data_gate.features.fare.max_missing_share"
    assert (finding.limit, finding.measured) == (0.1, pytest.approx(0.2))


@pytest.mark.parametrize(("present", "is_found"), [(990, False), (989, True), (0, True)])
def test_schema_s_min_fraction_holds_also_where_the_column_is_there_and_empty(split, present, is_found):
    findings = found(split, present, min_fraction=0.99)
    assert bool(findings) == is_found
    if is_found:
        [edit] = findings[0].edits
        assert edit.kind == "set_presence"
        assert edit.number == int(present / ROWS * 100) / 100
        assert findings[0].query.is_missing
        assert (
            f"in s/t.pbtxt: set the presence of fare to min_fraction: {edit.number:g}" in findings[0].remedy
        )


@pytest.mark.parametrize(("present", "is_found"), [(100, False), (99, True)])
def test_share_that_is_just_the_schema_s_min_fraction_passes(split, present, is_found):
    """1 - 0.9 is less than 0.1 in floating point."""
    assert bool(found(split, present, min_fraction=0.1)) == is_found


@pytest.mark.parametrize(
    ("before", "present", "is_found"),
    [
        (1000, 1000, False),
        (1000, 950, False),
        (1000, 850, True),
        (500, 480, False),
        (500, 300, True),
        (0, 0, False),
    ],
)
def test_rise_against_the_reference_is_held_against_limit_and_chance(split, before, present, is_found):
    assert bool(found(split, present, before=before)) == is_found


@pytest.mark.parametrize(("rows", "before", "allowed"), [(1000, 900, 216), (200, 900, 51), (1000, 1000, 87)])
def test_rise_is_let_pass_up_to_its_limit_and_what_chance_reaches(split, rows, before, allowed):
    assert not found(split, rows - allowed, before=before, rows=rows)
    assert found(split, rows - allowed - 1, before=before, rows=rows)


def test_rise_of_one_feature_has_a_limit_of_its_own(split):
    limits = Limits(features={"fare": {"max_missing_rise": 0.3}})
    assert not found(split, 750, before=1000, limits=limits)
    [finding] = found(split, 500, before=1000, limits=limits)
    assert (finding.limit, finding.key) == (0.3, "data_gate.features.fare.max_missing_rise")


def test_inferred_schema_is_no_file_to_edit(split):
    schema = {"fare": FeatureSchema("fare", min_fraction=1.0)}
    assert list(find_missing({"train": split(100, fare=[1.0] * 99)}, {}, schema, Limits())) == [
        Finding(
            "missing",
            "fare",
            ("train",),
            "1 of 100 rows (1.00%) has no value",
            measured=0.01,
            limit=0.0,
            remedy="fill them: the schema requires 100%",
            query=RowQuery("fare", is_missing=True),
        )
    ]


def test_few_rows_may_differ_from_the_reference_by_chance(split):
    assert not found(split, 9, before=1000, rows=10)
    assert found(split, 5, before=1000, rows=10)
    assert found(split, 800, before=1000, rows=1000)


def test_feature_is_reported_once_by_its_worst_split(split):
    statistics = {"train": split(100, fare=[1.0] * 90), "eval": split(100, fare=[1.0] * 50)}
    [finding] = find_missing(statistics, {}, {}, Limits(max_missing_share=0.05))
    assert finding.splits == ("eval",)
    assert finding.headline == "fare (eval): 50 of 100 rows (50%) have no value; limit 0.05"


def test_missing_values_are_reported_whole(split):
    assert found(split, 499, limits=Limits(max_missing_share=0.5)) == [
        Finding(
            "missing",
            "fare",
            ("train",),
            "501 of 1,000 rows (50.10%) have no value",
            measured=0.501,
            limit=0.5,
            key="data_gate.max_missing_share",
            remedy="fill these rows, or raise data_gate.max_missing_share above 0.5010",
            query=RowQuery("fare", is_missing=True),
        )
    ]
    assert found(split, 989, min_fraction=0.99) == [
        Finding(
            "missing",
            "fare",
            ("train",),
            "11 of 1,000 rows (1.10%) have no value",
            measured=0.011,
            limit=pytest.approx(0.01),
            remedy=(
                "fill them: the schema requires 99%; or in s/t.pbtxt: set the presence of fare to "
                "min_fraction: 0.98"
            ),
            edits=(Edit("set_presence", "fare", number=0.98),),
            query=RowQuery("fare", is_missing=True),
        )
    ]
    assert found(split, 800, before=1000) == [
        Finding(
            "missing",
            "fare",
            ("train",),
            "200 of 1,000 rows (20%) have no value, 0.00% in the reference",
            measured=0.2,
            limit=0.05,
            key="data_gate.max_missing_rise",
            remedy="fill these rows, or raise data_gate.max_missing_rise",
            query=RowQuery("fare", is_missing=True),
        )
    ]


@pytest.mark.parametrize("risen", ["train", "eval"])
def test_rise_is_found_also_in_a_split_that_has_fewer_missing_values_than_another(split, risen):
    other = "eval" if risen == "train" else "train"
    reference = {risen: split(ROWS, fare=[1.0] * 950), other: split(ROWS, fare=[1.0] * 600)}
    statistics = {**reference, risen: split(ROWS, fare=[1.0] * 650)}
    [finding] = find_missing(statistics, reference, {}, Limits())
    assert (finding.splits, finding.measured) == ((risen,), pytest.approx(0.3))
    assert list(find_missing(reference, reference, {}, Limits())) == []


def test_texts_among_what_were_dates_are_missing_values_to_the_model(split):
    def texts(*days):
        return {"train": split(len(days), day=dict(Counter(days)))}

    dates = texts(*["2024-01-31", "2024-02-01 10:00:00"] * 50, "")
    [finding] = find_missing(texts(*["2024-03-01"] * 90, *["3/2/2024"] * 10), dates, {}, Limits())
    assert finding.what.startswith(
        "10 of 100 rows (10%) have no date YYYY-MM-DD, but texts such as '3/2/2024'"
    )
    assert (finding.stops, finding.key) == (True, "data_gate.max_missing_rise")
    [few] = find_missing(texts(*["2024-03-01"] * 99, "TBD"), dates, {}, Limits())
    assert not few.stops
    assert not list(find_missing(texts(*["2024-03-01"] * 99, ""), dates, {}, Limits()))
    some = texts("2024-01-31", "TBD")
    assert not list(find_missing(texts("TBD", "2024-03-01"), some, {}, Limits()))


def test_texts_of_which_all_that_are_counted_are_no_dates_are_no_dates_either(split, feature):
    """TFDV counts the 1,000 most frequent: a hundredth of 100,000 times of a day."""

    def moments(form):
        few = feature("day", {form.format(minute): 1 for minute in range(10, 60)})
        return {"train": split(day=replace(few, rows=5000, present=5000, values=5000, unique=5000))}

    [finding] = find_missing(moments("1/31/2024 10:{}"), moments("2024-01-31 10:{}"), {}, Limits())
    assert (finding.measured, finding.stops) == (1.0, True)
    assert finding.what.startswith("the most frequent texts are no dates YYYY-MM-DD, but texts such as '1/31")


def test_split_in_which_dates_are_lost_is_told_rather_than_one_with_a_single_other_text(split):
    def texts(**others):
        return {name: split(100, day={"2024-01-31": 100 - n, "TBD": n}) for name, n in others.items()}

    reference = {name: split(100, day={"2024-01-31": 100}) for name in ("train", "eval")}
    [finding] = find_missing(texts(train=1, eval=50), reference, {}, Limits())
    assert (finding.splits, finding.measured, finding.stops) == (("eval",), 0.5, True)


def test_lists_of_dates_may_hold_other_texts(feature, split):
    def lists(**counts):
        return {"train": split(day=replace(feature("day", counts, rows=10), most_values=3))}

    dates = lists(**{"2024-01-31": 30})
    assert not list(find_missing(lists(**{"2024-01-31": 10, "never": 20}), dates, {}, Limits()))
