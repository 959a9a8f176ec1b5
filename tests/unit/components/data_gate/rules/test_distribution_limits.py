"""Values that are distributed otherwise than in the reference, in another split, or when serving."""

import numpy as np
import pytest

from slipway.components.data_gate.finding import Finding, RowQuery
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.distribution_limits import find_drift, find_serving_skew, find_skew
from slipway.components.data_gate.statistics import FeatureStatistics

NORMAL = np.random.default_rng(0).normal(30, 5, 10_000)


def drift(split, now, then, limits=None, skip=()):
    return list(find_drift({"train": split(x=now)}, {"train": split(x=then)}, limits or Limits(), skip=skip))


@pytest.mark.parametrize(
    ("cash", "is_found"), [(500, False), (550, False), (590, False), (700, True), (1000, True), (0, True)]
)
def test_share_of_a_text_is_held_against_the_reference(split, cash, is_found):
    then = {"Cash": 5000, "Card": 5000}
    findings = drift(split, {"Cash": cash * 10, "Card": 10_000 - cash * 10}, then)
    assert bool(findings) == is_found
    if is_found:
        assert findings[0].key == "data_gate.max_drift_l_infinity"
        assert findings[0].measured == pytest.approx(abs(cash / 1000 - 0.5))


@pytest.mark.parametrize(
    ("shift", "is_found"), [(0.0, False), (0.3, False), (1.0, True), (3.0, True), (-1.0, True)]
)
def test_numbers_that_moved_are_found_by_jensen_shannon(split, shift, is_found):
    findings = drift(split, NORMAL + shift * 5, NORMAL[:5000])
    assert bool(findings) == is_found
    if is_found:
        assert (findings[0].rule, findings[0].key) == ("drift", "data_gate.max_drift_jensen_shannon")


def test_rows_of_what_moved_can_be_asked_for(split):
    [finding] = drift(split, {"Cash": 9000, "Card": 1000}, {"Cash": 5000, "Card": 5000})
    assert finding.query == RowQuery("x", values=("Cash",))
    assert finding.what.startswith('"Cash" is 9,000 of 10,000 values (90%), 50% in the reference: L-inf')
    [gone] = drift(split, {"Card": 1000, "Other": 9}, {"Cash": 9000, "Card": 1000})
    assert gone.query == RowQuery("x", values=("Card",)), "of a value that is gone there are no rows"
    [moved] = drift(split, NORMAL + 15, NORMAL)
    low, high = moved.query.within
    assert NORMAL.mean() < low < high
    [scaled] = drift(split, NORMAL * 2, NORMAL)
    assert scaled.query == RowQuery("x"), "all rows show it"


@pytest.mark.parametrize("factor", [1.609, 0.01, 100.0, 60.0])
def test_change_of_units_is_reported_as_such(split, factor):
    [finding] = drift(split, NORMAL * factor, NORMAL)
    assert finding.rule == "scale"
    assert finding.measured == pytest.approx(factor, rel=0.02)
    assert "change of units" in finding.what
    assert finding.key == "data_gate.max_scale"


@pytest.mark.parametrize(
    ("name", "now", "then", "passes", "stops"),
    [
        ("max_drift_l_infinity", {"a": 700, "b": 300}, {"a": 500, "b": 500}, 0.3, 0.05),
        ("max_drift_jensen_shannon", NORMAL + 5, NORMAL, 0.9, 0.01),
        ("max_scale", NORMAL * 2, NORMAL, 2.5, 1.5),
    ],
)
def test_limit_of_a_feature_takes_the_place_of_the_general_one(split, name, now, then, passes, stops):
    key = f"data_gate.features.x.{name}"
    passing = drift(split, now, then, Limits(features={"x": {name: passes}}))
    assert not [finding for finding in passing if finding.key == key or name != "max_scale"]
    [finding] = drift(split, now, then, Limits(features={"x": {name: stops}}))
    assert (finding.key, finding.limit) == (key, stops)


@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_change_of_units_as_large_as_allowed_is_none(split, factor):
    even = np.linspace(0, 10, 10_001)
    assert [f.rule for f in drift(split, even * factor, even, Limits(max_scale=2.0))] == ["drift"]
    assert [f.rule for f in drift(split, even * factor, even, Limits(max_scale=1.99))] == ["scale"]


@pytest.mark.parametrize(
    ("factor", "words"), [(1.609, "1.61 times"), (0.03125, "1/32 of"), (0.3007, "1/3.33 of")]
)
def test_factor_is_reported_with_two_decimals(split, factor, words):
    even = np.linspace(0, 10, 10_001)
    [finding] = drift(split, even * factor, even)
    assert finding.what.startswith(f"all 10,001 values are {words} what they are")


@pytest.mark.parametrize(("rows", "let_pass"), [(10_000, 3249), (1000, 360)])
def test_share_of_a_text_may_move_by_its_limit_and_what_chance_reaches(split, rows, let_pass):
    then = {"b": 8000, "a": 2000}
    assert not drift(split, {"a": let_pass, "b": rows - let_pass}, then)
    assert drift(split, {"a": let_pass + 1, "b": rows - let_pass - 1}, then)


def test_many_rare_texts_take_their_share_from_the_frequent_ones(split):
    """Of 9,000 rare texts, the statistics list 998: with these alone, "a" had 45% instead of 32%."""
    rare = {f"new{n}": 1 for n in range(998)}
    now = FeatureStatistics(
        "x", "text", 25_000, 25_000, 25_000, unique=9_002, counts={"a": 8_000, "b": 8_000, **rare}
    )
    [finding] = drift(split, now, {"a": 5_000, "b": 5_000})
    assert finding.measured == pytest.approx(0.18)
    assert finding.what.startswith('"a" is 8,000 of 25,000 values (32%), 50% in the reference, "new0" rose')


def test_text_that_is_new_is_found(split):
    [finding] = drift(split, {"a": 500, "c": 500}, {"a": 1000})
    words = '"a" is 500 of 1,000 values (50%), 100% in the reference, "c" rose from 0.00% to 50%'
    assert finding.what == f"{words}: L-infinity 0.500"


def test_limit_of_one_switches_drift_off(split):
    off = Limits(max_drift_l_infinity=1.0, max_drift_jensen_shannon=1.0)
    assert not drift(split, {"a": 1000}, {"b": 1000}, off)
    assert not drift(split, NORMAL + 100, NORMAL, off)


def test_skipped_features_new_ones_and_other_types_are_not_compared(split):
    assert not drift(split, NORMAL + 100, NORMAL, skip={"x"})
    assert not list(find_drift({"train": split(y=NORMAL)}, {"train": split(x=NORMAL)}, Limits(), skip=()))
    assert not drift(split, {"a": 1000}, NORMAL)


def test_without_a_reference_nothing_drifts(split):
    assert not list(find_drift({"train": split(x=NORMAL)}, {}, Limits(), skip=()))


def test_without_a_train_split_nothing_is_skewed(split):
    assert not list(find_skew({"eval": split(x=NORMAL), "test": split(x=NORMAL + 20)}, Limits(), skip=()))


def test_each_split_is_compared_with_train(split):
    statistics = {"train": split(x=NORMAL), "eval": split(x=NORMAL + 20), "test": split(x=NORMAL[:3000])}
    [finding] = find_skew(statistics, Limits(), skip=())
    assert (finding.rule, finding.splits) == ("skew", ("eval",))
    assert finding.key == "data_gate.max_skew_jensen_shannon"
    assert "in train" in finding.what


def test_train_is_compared_with_what_the_model_is_asked(split):
    statistics = {"train": split(x=NORMAL, label=NORMAL)}
    [finding] = find_serving_skew(statistics, split(x=NORMAL + 20), Limits(), skip=())
    assert (finding.rule, finding.feature) == ("serving", "x")
    assert not list(find_serving_skew(statistics, None, Limits(), skip=()))


def test_empty_texts_are_no_value_where_requests_are_compared(split):
    """Files of JSON Lines and Parquet hold them, and of some logs of requests no value is known."""
    statistics = {"train": split(x={"a": 4000, "b": 2000, "": 4000})}
    assert not list(find_serving_skew(statistics, split(x={"a": 400, "b": 200}), Limits(), skip=()))
    [finding] = find_serving_skew(statistics, split(x={"a": 200, "b": 400, "": 900}), Limits(), skip=())
    assert finding.measured == pytest.approx(1 / 3)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("rows", [60, 300, 3000])
def test_random_splits_of_one_data_set_give_no_false_alarm(split, seed, rows):
    rng = np.random.default_rng(seed)
    values = {f"x{i}": rng.lognormal(0, i / 5, rows) for i in range(10)}
    values |= {f"t{i}": rng.integers(0, 2 + i, rows) for i in range(5)}
    cut = rows * 2 // 3
    statistics = {
        name: split(**{key: each[part] for key, each in values.items()})
        for name, part in (("train", slice(cut)), ("eval", slice(cut, None)))
    }
    assert not list(find_skew(statistics, Limits(), skip=()))


def test_text_that_drifted_is_reported_whole(split):
    assert drift(split, {"Cash": 9000, "Card": 1000}, {"Cash": 5000, "Card": 5000}) == [
        Finding(
            "drift",
            "x",
            ("train",),
            '"Cash" is 9,000 of 10,000 values (90%), 50% in the reference: L-infinity 0.400',
            measured=0.4,
            limit=0.1,
            key="data_gate.max_drift_l_infinity",
            remedy="find out why; if it is right, raise data_gate.max_drift_l_infinity above 0.400",
            query=RowQuery("x", values=("Cash",)),
        )
    ]


def test_numbers_that_drifted_are_reported_whole(split):
    even = np.linspace(0, 10, 10_001)
    assert drift(split, even + 3, even) == [
        Finding(
            "drift",
            "x",
            ("train",),
            (
                "the mean is 8, 5 in the reference; about 1,100 of 10,001 values (11%) lie from 11 "
                "to 12.1, 0.00% in the reference: Jensen-Shannon 0.285"
            ),
            measured=pytest.approx(0.285170989),
            limit=0.05,
            key="data_gate.max_drift_jensen_shannon",
            remedy="find out why; if it is right, raise data_gate.max_drift_jensen_shannon above 0.285",
            query=RowQuery("x", within=(pytest.approx(11.000001), pytest.approx(12.1000013))),
        )
    ]
    assert drift(split, even * 2, even) == [
        Finding(
            "scale",
            "x",
            ("train",),
            "all 10,001 values are 2 times what they are in the reference, as after a change of units",
            measured=2.0,
            limit=1.25,
            key="data_gate.max_scale",
            remedy="convert them back to the old unit; if it is right, raise data_gate.max_scale above 2",
            query=RowQuery("x"),
        )
    ]
    assert drift(split, even / 100, even) == [
        Finding(
            "scale",
            "x",
            ("train",),
            ("all 10,001 values are 1/100 of what they are in the reference, as after a change of units"),
            measured=0.01,
            limit=1.25,
            key="data_gate.max_scale",
            remedy="convert them back to the old unit; if it is right, raise data_gate.max_scale above 100",
            query=RowQuery("x"),
        )
    ]
    assert list(find_skew({"train": split(x=even), "eval": split(x=even + 3)}, Limits(), skip=())) == [
        Finding(
            "skew",
            "x",
            ("eval",),
            (
                "the mean is 8, 5 in train; about 1,100 of 10,001 values (11%) lie from 11 to 12.1, "
                "0.00% in train: Jensen-Shannon 0.285"
            ),
            measured=pytest.approx(0.285170989),
            limit=0.05,
            key="data_gate.max_skew_jensen_shannon",
            remedy="find out why; if it is right, raise data_gate.max_skew_jensen_shannon above 0.285",
            query=RowQuery("x", within=(pytest.approx(11.000001), pytest.approx(12.1000013))),
        )
    ]


def test_serving_skew_is_reported_whole(split):
    served = split(x={"a": 1000, "b": 9000})
    assert list(find_serving_skew({"train": split(x={"a": 9000, "b": 1000})}, served, Limits(), skip=())) == [
        Finding(
            "serving",
            "x",
            ("train",),
            '"a" is 9,000 of 10,000 values (90%), 10% when serving: L-infinity 0.800',
            measured=0.8,
            limit=0.1,
            key="data_gate.max_skew_l_infinity",
            remedy="find out why; if it is right, raise data_gate.max_skew_l_infinity above 0.800",
            query=RowQuery("x", values=("a",)),
        )
    ]
