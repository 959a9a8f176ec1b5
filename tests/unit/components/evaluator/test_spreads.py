"""Spreads against what statistics says of them, and what does not depend on how rows were dealt out."""

import math
import pickle

import numpy as np
import pytest

from slipway.components.evaluator import tally as tallies
from slipway.components.evaluator.bootstrap import REPLICATES, row_number
from slipway.components.evaluator.request import ModelRequest, Request
from slipway.components.evaluator.slices import column_of
from slipway.components.evaluator.spreads import spreads
from slipway.components.evaluator.tally import Judged, Tally
from slipway.components.model_gate.metrics import METRICS

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
        found = spreads(asked, tallied(asked, rows=400, labels=labels, answers=answers))
        wanted = {(model, name, False) for model in ("candidate", "base") for name in names}
        wanted |= {("candidate", name, True) for name in names}
        for key in ((), (("group", 0),), (("group", 2),)):
            assert found[key].keys() == wanted
            assert all(0 <= spread.error < math.inf for spread in found[key].values())
            assert {spread.freedom for spread in found[key].values()} == {REPLICATES - 1}


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
    assert of_all_rows("auc", "precision", difference=True, answers=(LABELS, LABELS)) == [0, 0]


def test_what_is_no_number_and_a_single_row_have_no_spread():
    asked = request("precision", "mean_absolute_error", "poisson")
    labels, nothing = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.1, 0.2, 0.3, -0.4])
    tally = tallied(asked, rows=4, labels=labels, answers=(nothing, nothing), groups=np.array([0, 0, 0, 1]))
    found = spreads(asked, tally)
    # Nothing is above one half, and -0.4 has no logarithm.
    assert {name for _, name, _ in found[()]} == {"mean_absolute_error"}
    assert found[("group", 0),]["candidate", "poisson", False].freedom == 2
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
