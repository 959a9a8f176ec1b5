"""Spreads against what statistics says of them, and what does not depend on how rows were dealt out."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import recall_score, roc_auc_score

from slipway.components.evaluator import tally as tallies
from slipway.components.evaluator.bootstrap import REPLICATES, row_number
from slipway.components.evaluator.judged import Judged
from slipway.components.evaluator.metric_values import results
from slipway.components.evaluator.request import ModelRequest, Request
from slipway.components.evaluator.slices import column_of
from slipway.components.evaluator.spreads import spreads
from slipway.components.evaluator.tally import Tally
from slipway.components.metrics.definitions import METRICS
from slipway.components.model_gate.interval_formulas import auc_bounds
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.threshold_rules import Threshold, threshold_checks
from slipway.components.model_gate.trivial_scores import LabelStatistics

MANY = 4000
DRAW = np.random.default_rng(5)
LABELS = (DRAW.random(MANY) < 0.3).astype(float)
# The second model is the first with a little noise.
FIRST = np.clip(0.35 * LABELS + 0.65 * DRAW.random(MANY), 0, 1)
SECOND = np.clip(FIRST + 0.1 * (DRAW.random(MANY) - 0.5), 0, 1)
GROUPS = DRAW.integers(0, 3, MANY)


def request(*names, models=2):
    both = tuple(ModelRequest(name, "label", is_baseline=name == "base") for name in ("candidate", "base"))
    return Request(
        models=both[:models],
        slices=((), ("group",)),
        metrics={name: METRICS[name].class_name for name in names},
    )


def add(tally, asked, part, *, labels=LABELS, answers=(FIRST, SECOND), groups=GROUPS):
    rows = len(labels[part])
    judged = [
        Judged(labels[part].reshape(rows, -1), each[part].reshape(rows, -1))
        for each in answers[: len(asked.models)]
    ]
    column = column_of("group", np.arange(rows), groups[part], list(range(int(groups.max()) + 1)))
    tally.add({"group": column}, judged, first=row_number(0, part.start))


def tallied(asked, *, rows=MANY, at_once=1000, **data):
    tally = Tally(asked)
    for first in range(0, rows, at_once):
        add(tally, asked, slice(first, min(first + at_once, rows)), **data)
    return tally


def of_all_rows(*names, difference=False, **data):
    asked = request(*names)
    found = spreads(asked, tallied(asked, **data))[()]
    return [found["candidate", name, difference].error for name in names]


def error_of_mean(values):
    return values.std(ddof=1) / math.sqrt(values.size)


# With 64 replicates, a standard error from them is off by 9 %, and 30 % is three times that.
ABOUT = 0.3


def test_errors_of_means_are_the_textbook_s():
    apart, squares = np.abs(LABELS - FIRST), (LABELS - FIRST) ** 2
    names = "mean_absolute_error", "mean_squared_error", "root_mean_squared_error", "binary_accuracy"
    is_right = ((FIRST > 0.5) == LABELS).astype(float)
    expected = [error_of_mean(apart), error_of_mean(squares)]
    expected += [error_of_mean(squares) / (2 * math.sqrt(squares.mean())), error_of_mean(is_right)]
    assert of_all_rows(*names) == pytest.approx(expected, rel=ABOUT)


def test_errors_of_shares_with_chance_below_the_line_are_the_textbook_s():
    above = FIRST > 0.5
    precision, recall = LABELS[above].mean(), above[LABELS == 1].mean()
    expected = [
        math.sqrt(precision * (1 - precision) / above.sum()),
        math.sqrt(recall * (1 - recall) / LABELS.sum()),
        math.sqrt(MANY * (is_hit := (above * LABELS).mean()) * (1 - is_hit)),
    ]
    assert of_all_rows("precision", "recall", "true_positives") == pytest.approx(expected, rel=ABOUT)


def error_of_area(first, second=None):
    """DeLong's, E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson, Biometrics 44 (1988)."""

    def placements(answers):
        positives, negatives = answers[LABELS == 1], answers[LABELS == 0]
        wins = (positives[:, None] > negatives).astype(float) + 0.5 * (positives[:, None] == negatives)
        return wins.mean(1), wins.mean(0)

    each = placements(first)
    if second is not None:
        each = tuple(mine - theirs for mine, theirs in zip(each, placements(second), strict=True))
    return math.hypot(*map(error_of_mean, each))


def test_error_of_an_area_is_delong_s_and_of_a_difference_that_on_the_same_rows():
    [alone], [difference] = of_all_rows("auc"), of_all_rows("auc", difference=True)
    assert alone == pytest.approx(error_of_area(FIRST), rel=ABOUT)
    assert difference == pytest.approx(error_of_area(FIRST, SECOND), rel=ABOUT)
    assert difference < alone / 2, "two models that say nearly the same differ less by chance than either"


def test_difference_of_means_is_that_on_the_same_rows():
    [found] = of_all_rows("mean_absolute_error", difference=True)
    assert found == pytest.approx(error_of_mean(np.abs(LABELS - FIRST) - np.abs(LABELS - SECOND)), rel=ABOUT)


def test_intervals_hold_the_truth_as_often_as_they_say():
    asked = request("mean_absolute_error", models=1)
    labels, groups = np.zeros(12_000), np.arange(12_000) // 40
    answers = np.random.default_rng(11).exponential(size=12_000)
    tally = tallied(asked, rows=12_000, at_once=4000, labels=labels, answers=(answers,), groups=groups)
    found = spreads(asked, tally)
    means = {key: answers[groups == key[0][1]].mean() for key in tally.keys if key}
    held = [
        abs(mean - 1) <= found[key]["candidate", "mean_absolute_error", False].half(0.975)
        for key, mean in means.items()
    ]
    assert len(held) == 300
    assert 0.90 <= np.mean(held) <= 0.98


OF_CLASSES = tuple(np.eye(3)[GROUPS] * 0.5 + np.outer(each, [0.2, 0.1, 0.2]) for each in (FIRST, SECOND))


def test_every_metric_has_a_spread_in_every_slice_for_each_model_and_their_difference():
    of_vectors = ("categorical", "top", "cosine", "kl")
    for outputs, labels, answers in (
        ("one", LABELS, (FIRST, SECOND)),
        ("classes", np.floor(3 * FIRST), OF_CLASSES),
        ("classes", np.eye(3)[GROUPS], OF_CLASSES),
    ):
        names = [name for name, metric in METRICS.items() if metric.outputs in (outputs, None)]
        if outputs == "classes":
            is_class = labels.ndim == 1
            names = [name for name in names if not name.startswith(of_vectors if is_class else "sparse")]
        asked = request(*names)
        found = spreads(asked, tallied(asked, rows=1200, labels=labels, answers=answers))
        wanted = {(model, name, False) for model in ("candidate", "base") for name in names}
        wanted |= {("candidate", name, True) for name in names}
        for key in ((), (("group", 0),), (("group", 2),)):
            assert found[key].keys() == wanted
            assert all(0 <= spread.error < math.inf for spread in found[key].values())
            assert {spread.degrees_of_freedom for spread in found[key].values()} == {REPLICATES - 1}


def test_sharding_and_batches_change_nothing():
    asked = request("auc", "precision", "mean_absolute_error")
    whole = spreads(asked, tallied(asked))
    parts = [Tally(asked) for _ in range(3)]
    for place, first in enumerate(range(0, MANY, 400)):
        add(parts[place % 3], asked, slice(first, first + 400))
    merged = Tally(asked)
    for part in reversed(parts):
        merged.merge(pickle.loads(pickle.dumps(part)))  # noqa: S301
    found = spreads(asked, merged)
    assert found.keys() == whole.keys()
    for key, each in whole.items():
        assert found[key].keys() == each.keys()
        for name, spread in each.items():
            assert found[key][name].error == pytest.approx(spread.error, rel=1e-5)


def test_perfect_model_is_not_perfectly_sure():
    names = "auc", "precision", "recall", "f1_score", "accuracy", "false_negatives"
    found = dict(zip(names, of_all_rows(*names, answers=(LABELS, LABELS)), strict=True))
    positives = LABELS.sum()
    assert found == {
        "auc": pytest.approx(2 / positives),
        "precision": pytest.approx(2 / positives),
        "recall": pytest.approx(2 / positives),
        "f1_score": pytest.approx(1 / positives),
        "accuracy": pytest.approx(2 / MANY),
        "false_negatives": 2.0,
    }
    assert of_all_rows("auc", "precision", difference=True, answers=(LABELS, LABELS)) == [0, 0], (
        "no row tells one from the other"
    )


@pytest.mark.parametrize(
    ("name", "labels", "candidate", "error", "freedom"),
    [
        # One positive, which only the baseline finds; as often as it is drawn the recall is 1 lower.
        ("recall", [1] + [0] * 199, [0.1] + [0.2] * 199, 2, 1),
        ("true_positives", [1] + [0] * 199, [0.1] + [0.2] * 199, 2, 1),
        ("auc", [1, 1] + [0] * 198, [0.1, 0.1] + [0.2] * 198, 1, 1),
        ("binary_accuracy", [1, 0, 1], [0.1, 0.9, 0.2], 2 / 3, 2),
        ("sparse_categorical_accuracy", [1, 0, 1], None, 2 / 3, 2),
    ],
)
def test_few_rows_that_all_speak_for_the_baseline_do_not_make_it_sure(
    name, labels, candidate, error, freedom
):
    labels = np.array(labels, float)
    pair = (labels, np.array(candidate)) if candidate else (np.eye(2)[labels.astype(int)],) * 2
    answers = (pair[1] if candidate else 1 - pair[1], pair[0])
    asked = request(name)
    groups = np.zeros(len(labels), int)
    found = spreads(asked, tallied(asked, rows=len(labels), labels=labels, answers=answers, groups=groups))
    spread = found[()]["candidate", name, True]
    assert spread.error >= error * 0.99
    assert spread.degrees_of_freedom == freedom


@pytest.mark.parametrize("heavy", [0, 1])
def test_bounds_of_an_area_by_formula_are_as_wide_as_those_of_the_replicates_where_a_class_is_heavy(heavy):
    weights = np.where(heavy == LABELS, 100.0, 1.0) * np.random.default_rng(6).choice([1.0, 4.0], MANY)
    asked = replace(request("auc", models=1), label_statistics=True)
    asked = replace(asked, models=(replace(asked.models[0], weight="w"),))
    tally = Tally(asked)
    column = column_of("group", np.arange(MANY), GROUPS, [0, 1, 2])
    tally.add({"group": column}, [Judged(LABELS[:, None], FIRST[:, None], weights)], first=row_number(0, 0))
    values = {name: value for (_, name), value in results(asked, tally)[()].items()}
    labels = LabelStatistics.from_metrics(values)
    low, high = auc_bounds(values["auc"], *labels.rows_by_class, confidence=0.975)
    error = spreads(asked, tally)[()]["candidate", "auc", False].error
    of_formula = (high - low) / 2 / 1.96
    assert of_formula == pytest.approx(error, rel=ABOUT)


@pytest.mark.parametrize("heavy", [0, 1])
def test_what_one_class_weighs_says_nothing_about_how_sure_the_other_is(heavy):
    """Ten positives, all of which a model finds, among a thousand negatives; one class weighs much more."""
    labels = np.repeat([1.0, 0.0], [10, 1000])
    weights = np.where(labels == heavy, 100.0, 1.0)
    names = "recall", "precision", "auc", "true_negatives", "binary_accuracy"
    found = []
    for weigh in (None, weights):
        asked = request(*names, models=1)
        asked = replace(asked, models=(replace(asked.models[0], weight="w" if weigh is not None else ""),))
        tally = Tally(asked)
        column = column_of("group", np.arange(1010), np.zeros(1010, int), [0])
        judged = Judged(labels[:, None], labels[:, None], weigh)
        tally.add({"group": column}, [judged], first=row_number(0, 0))
        found.append(spreads(asked, tally)[()])
    alike, unlike = ([each["candidate", name, False] for name in names] for each in found)
    for name, mine, theirs in zip(names[:3], alike, unlike, strict=False):
        assert (mine.error, mine.degrees_of_freedom) == (
            pytest.approx(theirs.error),
            theirs.degrees_of_freedom,
        ), name
    assert [spread.degrees_of_freedom for spread in unlike[:3]] == [9, 9, 9]
    assert unlike[0].error == pytest.approx(2 / 10)
    # Of a count two rows of the class that it is counted over, as heavy as they are.
    assert unlike[3].error >= 2 * (1.0 if heavy else 100.0)


def test_precision_of_few_answers_above_the_line_is_as_unsure_as_they_are_few():
    labels = np.array([1, 1, 1, 1, 0, 0] * 30, float)
    answers = np.where(np.arange(180) == 4, 0.9, 0.1), labels
    asked = request("precision")
    found = spreads(
        asked, tallied(asked, rows=180, labels=labels, answers=answers, groups=np.zeros(180, int))
    )
    spread = found[()]["candidate", "precision", True]
    assert (spread.error, spread.degrees_of_freedom) == (2, 1)


def shares_told_worse(positives, *, by, slices=300, rows=200):
    """In which share of slices of so many rows a model is told worse that is, by so much less signal."""
    draw = np.random.default_rng(3)
    labels = np.tile(np.arange(rows) < positives, slices).astype(float)
    signal = 1.5 * labels - 0.75 + draw.normal(size=labels.size) * 0.7
    logits = [signal - less * labels + 0.7 * draw.normal(size=labels.size) for less in (by, 0)]
    answers = tuple(1 / (1 + np.exp(-logit)) for logit in logits)
    names = "recall", "auc"
    asked = request(*names)
    groups = np.arange(labels.size) // rows
    tally = tallied(asked, rows=labels.size, at_once=10_000, labels=labels, answers=answers, groups=groups)
    values, found = results(asked, tally), spreads(asked, tally)
    measured = {
        repr(key): Measured(
            {"example_count": rows, **{name: values[key]["candidate", name] for name in names}},
            {name: values[key]["base", name] for name in names},
            LabelStatistics.of_counts({0: rows - positives, 1: positives}),
            *(
                {
                    name: found[key]["candidate", name, kind]
                    for name in names
                    if ("candidate", name, kind) in found[key]
                }
                for kind in (False, True)
            ),
        )
        for key in tally.keys
        if key
    }
    limits = dict.fromkeys(names, Threshold(max_drop=0, confidence=0.95))
    checks, _ = threshold_checks({"all": limits}, measured, min_slice_rows=1)
    assert len(checks) == len(names) * slices
    return [np.mean([not check.passed for check in checks if check.metric == name]) for name in names]


@pytest.mark.parametrize("positives", [1, 2, 3, 10, 40])
def test_models_that_are_equally_good_are_seldom_distinguished(positives):
    # 5 % is asked for; three times what chance makes of it in 300 slices is 4 % more.
    assert max(shares_told_worse(positives, by=0)) <= 0.09


def test_model_that_is_worse_is_reported_where_there_are_rows_enough():
    assert min(shares_told_worse(40, by=1)) >= 0.9


def test_what_is_no_number_and_a_single_row_have_no_spread():
    asked = request("precision", "mean_absolute_error", "poisson")
    labels, nothing = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.1, 0.2, 0.3, -0.4])
    tally = tallied(asked, rows=4, labels=labels, answers=(nothing, nothing), groups=np.array([0, 0, 0, 1]))
    found = spreads(asked, tally)
    # Nothing is above one half, and -0.4 has no logarithm.
    assert {name for _, name, _ in found[()]} == {"mean_absolute_error"}
    assert found[("group", 0),]["candidate", "poisson", False].degrees_of_freedom == 2
    assert found[("group", 1),] == {}
    assert spreads(asked, Tally(asked)) == {}


@pytest.mark.parametrize("apart", [False, True])
def test_more_slices_than_can_have_bounds_leave_them_to_all_rows(monkeypatch, apart):
    monkeypatch.setattr(tallies, "MOST_SLICES_WITH_BOUNDS", 4)
    asked = request("auc", "false_negatives")
    groups = np.arange(MANY) // 800
    tally = tallied(asked, groups=groups)
    if apart:  # no part has too many, and all together have
        parts = [Tally(asked) for _ in range(2)]
        for part, first in zip(parts, (2000, 0), strict=True):
            add(part, asked, slice(first, first + 2000), groups=groups)
        tally = parts[0]
        tally.merge(parts[1])
    found = spreads(asked, tally)
    assert tally.is_cut
    assert {key for key, each in found.items() if each} == {()}
    monkeypatch.undo()
    whole = spreads(asked, tallied(asked, groups=groups))
    for name, spread in whole[()].items():
        assert found[()][name].error == pytest.approx(spread.error, rel=1e-5)
    assert len(whole) == 6


def test_without_a_slice_of_all_rows_too_many_slices_have_no_bounds(monkeypatch):
    monkeypatch.setattr(tallies, "MOST_SLICES_WITH_BOUNDS", 2)
    asked = Request(
        models=(ModelRequest("", "label", is_baseline=False),), slices=(("group",),), metrics={"auc": "AUC"}
    )
    assert not any(spreads(asked, tallied(asked)).values())


def of_labels(*names, labels, answers):
    """The request and the tally of a candidate and a baseline that answer several labels."""
    outputs = ("sport", "music", "art")[: labels.shape[1]]
    models = [
        ModelRequest(name, output, name == "base", output=output)
        for name in ("candidate", "base")
        for output in outputs
    ]
    asked = Request(
        models=tuple(models),
        slices=((),),
        metrics={f"{output}/{name}": METRICS[name].class_name for output in outputs for name in names},
        averages={name: METRICS[name].class_name for name in names},
    )
    tally = Tally(asked)
    for first in range(0, len(labels), 1000):
        part = slice(first, first + 1000)
        judged = [
            Judged(labels[part, at : at + 1], each[part, at : at + 1])
            for each in answers
            for at in range(labels.shape[1])
        ]
        tally.add({}, judged, first=row_number(0, first))
    return asked, tally


def test_mean_over_labels_is_that_of_scikit_learn_and_its_error_that_of_the_mean():
    labels = np.stack([LABELS, np.roll(LABELS, 7), LABELS], axis=1)
    answers = np.stack([FIRST, np.roll(SECOND, 7), DRAW.random(MANY)], axis=1)
    asked, tally = of_labels("auc", "recall", labels=labels, answers=(answers, answers / 2))
    values, found = results(asked, tally)[()], spreads(asked, tally)[()]
    area, recall = (
        roc_auc_score(labels, answers, average="macro"),
        recall_score(labels, answers > 0.5, average="macro"),
    )
    assert values["candidate", "auc"] == pytest.approx(area, abs=1e-4)
    assert values["candidate", "recall"] == pytest.approx(recall, abs=1e-6)
    # Labels that err apart: their mean by a third of the root of the sum of their squares.
    errors = [found["candidate", f"{name}/recall", False].error for name in ("sport", "music", "art")]
    assert found["candidate", "recall", False].error == pytest.approx(math.hypot(*errors) / 3, rel=0.35)
    assert found["candidate", "auc", True].error < found["candidate", "auc", False].error


def test_label_that_no_row_has_is_not_in_the_mean_of_areas():
    labels = np.stack([LABELS, np.zeros(MANY)], axis=1)
    asked, tally = of_labels("auc", labels=labels, answers=(np.stack([FIRST, FIRST], axis=1),) * 2)
    values, found = results(asked, tally)[()], spreads(asked, tally)[()]
    assert values["candidate", "auc"] == values["candidate", "sport/auc"]
    assert found["candidate", "auc", False] == found["candidate", "sport/auc", False]


def test_label_that_is_answered_with_no_number_leaves_the_mean_without_one():
    answers = np.stack([FIRST, FIRST], axis=1)
    answers[3, 1] = np.nan
    labels = np.stack([LABELS, LABELS], axis=1)
    asked, tally = of_labels("binary_crossentropy", labels=labels, answers=(answers, answers))
    values = results(asked, tally)[()]
    assert not math.isnan(values["candidate", "sport/binary_crossentropy"])
    assert math.isnan(values["candidate", "binary_crossentropy"])
