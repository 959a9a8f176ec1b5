"""Features that give the label away, and those that only help."""

import numpy as np
import pytest

from slipway.components.data_gate.finding import Finding, RowQuery
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.leak import find_leaks
from slipway.components.data_profile.single_scores import single_scores

ROWS = 4000


def texts(values):
    return np.array([str(value) for value in values], dtype=object)


def with_gaps(values, rng):
    return np.where(rng.random(len(values)) < 0.1, np.nan, values)


# What is made of the label: a leak, or only a good feature.
NUMBER_LEAKS = {
    "copy": lambda y, rng: y,
    "other unit": lambda y, rng: y * 0.1 + 3,
    "with tax": lambda y, rng: y * 1.19,
    "falling": lambda y, rng: -y,
    "logarithm": lambda y, rng: np.log1p(y),
    "rounded": lambda y, rng: y.round(1),
    "some missing": lambda y, rng: with_gaps(y, rng),
}
NUMBER_HELPS = {
    "noise": lambda y, rng: rng.normal(size=len(y)),
    "half of it": lambda y, rng: y + rng.normal(scale=y.std(), size=len(y)),
    "constant": lambda y, rng: np.ones(len(y)),
    "whether any": lambda y, rng: (y > 1).astype(float),
    "row number": lambda y, rng: np.arange(len(y), dtype=float),
    "all missing": lambda y, rng: np.full(len(y), np.nan),
    "a name for each row": lambda y, rng: texts(range(len(y))),
}
CLASS_LEAKS = {
    "copy": lambda y, rng: y.astype(float),
    "as text": lambda y, rng: texts(y),
    "as score": lambda y, rng: y + rng.uniform(-0.4, 0.4, len(y)),
    "one in many": lambda y, rng: texts(y * 100 + rng.integers(0, 50, len(y))),
}
CLASS_HELPS = {
    "noise": lambda y, rng: rng.normal(size=len(y)),
    "often right": lambda y, rng: np.where(rng.random(len(y)) < 0.9, y, 1 - y).astype(float),
    "a name for each row": lambda y, rng: texts(range(len(y))),
    "row number": lambda y, rng: np.arange(len(y), dtype=float),
    "all missing": lambda y, rng: np.full(len(y), None, dtype=object),
}


def leaks(label, feature, **limits):
    return list(find_leaks(single_scores({"x": feature, "y": label}, "y"), "y", Limits(**limits)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NUMBER_LEAKS)
def test_number_that_is_made_of_a_number_label_is_found(name, seed):
    rng = np.random.default_rng(seed)
    label = np.where(rng.random(ROWS) < 0.6, 0.0, rng.lognormal(1, 0.7, ROWS))  # as tips: most are nothing
    [finding] = leaks(label, NUMBER_LEAKS[name](label, rng))
    assert (finding.rule, finding.feature) == ("leak", "x")
    assert finding.measured > 0.98
    assert finding.query == RowQuery("x", beside="y")
    assert finding.remedy.endswith("set data_gate.features.x.max_label_score to 1"), "for this column alone"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NUMBER_HELPS)
def test_feature_that_only_helps_with_a_number_label_is_let_pass(name, seed):
    rng = np.random.default_rng(seed)
    label = np.where(rng.random(ROWS) < 0.6, 0.0, rng.lognormal(1, 0.7, ROWS))
    assert not leaks(label, NUMBER_HELPS[name](label, rng))


@pytest.mark.parametrize("rare", [0.5, 0.1])
@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("name", CLASS_LEAKS)
def test_feature_that_is_made_of_a_class_is_found(name, as_text, rare):
    rng = np.random.default_rng(0)
    label = (rng.random(ROWS) < rare).astype(int)
    [finding] = leaks(texts(label) if as_text else label.astype(float), CLASS_LEAKS[name](label, rng))
    assert finding.measured > 0.98


@pytest.mark.parametrize("rare", [0.5, 0.1, 0.001])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CLASS_HELPS)
def test_feature_that_only_helps_with_a_class_is_let_pass(name, seed, rare):
    rng = np.random.default_rng(seed)
    label = (rng.random(ROWS) < rare).astype(int)
    assert not leaks(label.astype(float), CLASS_HELPS[name](label, rng))


def test_leak_of_many_classes_is_found():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 10, ROWS)
    assert leaks(label.astype(float), texts(f"class {each}" for each in label))
    assert not leaks(label.astype(float), texts(f"class {each // 2}" for each in label))


def test_feature_that_may_be_known_is_let_pass_by_a_limit_of_its_own():
    label = np.random.default_rng(0).normal(size=ROWS)
    assert not leaks(label, label, features={"x": {"max_label_score": 1.0}})


@pytest.mark.parametrize("rows", [0, 10, 99])
def test_few_rows_prove_nothing(rows):
    label = np.random.default_rng(0).normal(size=rows)
    assert not leaks(label, label)


def test_rows_without_a_label_are_left_out_and_a_missing_label_is_no_fault_here():
    label = np.random.default_rng(0).normal(size=ROWS)
    label[::3] = np.nan
    assert leaks(label, label)
    assert single_scores({"x": label}, "y") == {}


def test_leaks_are_reported_whole():
    assert list(find_leaks({"x": 0.99, "y": 0.98}, "tips", Limits())) == [
        Finding(
            "leak",
            "x",
            (),
            "alone it predicts tips with a score of 0.990 (1 is perfect): it gives the label away",
            measured=0.99,
            limit=0.98,
            key="data_gate.max_label_score",
            remedy=(
                "leave it out of preprocessing_fn and of data.columns; if it is known before the "
                "label, set data_gate.features.x.max_label_score to 1"
            ),
            query=RowQuery("x", beside="tips"),
        )
    ]
    own = Limits(features={"x": {"max_label_score": 0.9}})
    assert list(find_leaks({"x": 0.99, "y": 0.5}, "big", own, beside="tips")) == [
        Finding(
            "leak",
            "x",
            (),
            "alone it predicts big with a score of 0.990 (1 is perfect): it gives the label away",
            measured=0.99,
            limit=0.9,
            key="data_gate.features.x.max_label_score",
            remedy=(
                "leave it out of preprocessing_fn and of data.columns; if it is known before the "
                "label, set data_gate.features.x.max_label_score to 1"
            ),
            query=RowQuery("x", beside="tips"),
        )
    ]
