"""Metrics of groups against scikit-learn's, and by hand; how rows were dealt out does not matter."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from slipway.components.errors import ComponentError
from slipway.components.evaluator import ranking
from slipway.components.evaluator.bootstrap import row_number
from slipway.components.evaluator.judged import Judged
from slipway.components.evaluator.metric_values import results
from slipway.components.evaluator.ranking import group_numbers
from slipway.components.evaluator.request import ModelRequest, Request
from slipway.components.evaluator.slices import column_of
from slipway.components.evaluator.spreads import spreads
from slipway.components.evaluator.tally import Tally
from slipway.components.metrics.definitions import METRICS
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.metric_bounds import bounds

NAMES = ("ndcg", "ndcg_5", "ndcg_10", "mean_reciprocal_rank")
ROWS, GROUPS = 3000, 200
DRAW = np.random.default_rng(3)
GROUP = DRAW.integers(0, GROUPS, ROWS)
LABELS = DRAW.integers(0, 4, ROWS).astype(float) * (DRAW.random(ROWS) < 0.4)
LABELS[GROUP < 3] = 0.0
SCORES = np.round(LABELS + 2 * DRAW.normal(size=ROWS), 1)  # with ties
SECOND = np.round(LABELS + 4 * DRAW.normal(size=ROWS), 1)
WEIGHTS = 1.0 + (GROUP % 3)
ASKED = Request(
    models=tuple(ModelRequest(name, "label", is_baseline=name == "base") for name in ("candidate", "base")),
    slices=((), ("side",)),
    metrics={name: METRICS[name].class_name for name in NAMES},
    group="query",
)


def column(values):
    different, codes = np.unique(values, return_inverse=True)
    return column_of("query", np.arange(len(values)), codes, different.tolist())


def add(tally, part, *, weights=None, scores=(SCORES, SECOND)):
    judged = [
        Judged(LABELS[part, None], each[part, None], None if weights is None else weights[part])
        for each in scores
    ]
    columns = {"query": column(GROUP[part]), "side": column(GROUP[part] % 2)}
    tally.add(columns, judged, first=row_number(0, part.start))


def tallied(at_once=ROWS, **data):
    tally = Tally(ASKED)
    for first in range(0, ROWS, at_once):
        add(tally, slice(first, first + at_once), **data)
    return tally


def ndcg(group, k):
    of_it = group == GROUP
    return ndcg_score([LABELS[of_it]], [SCORES[of_it]], k=k) if LABELS[of_it].any() else math.nan


@pytest.mark.parametrize(("name", "k"), [("ndcg", None), ("ndcg_5", 5), ("ndcg_10", 10)])
def test_gain_is_that_of_scikit_learn_in_every_slice_and_by_weight(name, k):
    each = np.array([ndcg(group, k) for group in range(GROUPS)])
    found = results(ASKED, tallied())
    assert found[()]["candidate", name] == pytest.approx(np.nanmean(each))
    assert found[("side", 1),]["candidate", name] == pytest.approx(np.nanmean(each[1::2]))
    known = ~np.isnan(each)
    weighed = results(ASKED, tallied(weights=WEIGHTS))[()]["candidate", name]
    weights = 1.0 + (np.arange(GROUPS) % 3)
    assert weighed == pytest.approx(np.average(each[known], weights=weights[known]))


def test_rank_of_the_first_that_is_relevant_is_the_mean_one_among_equals():
    def of(labels, scores):
        tally = Tally(ASKED)
        labels, scores = np.array(labels, float)[:, None], np.array(scores, float)[:, None]
        columns = {"query": column(np.zeros(len(labels))), "side": column(np.zeros(len(labels)))}
        tally.add(columns, [Judged(labels, scores)] * 2, first=0)
        return results(ASKED, tally)[()]["candidate", "mean_reciprocal_rank"]

    assert of([0, 1, 2], [3, 2, 1]) == pytest.approx(1 / 2)
    assert of([0, 1, 1], [1, 1, 0]) == pytest.approx(1 / 1.5)
    assert of([1, 1, 0], [1, 1, 1]) == pytest.approx(1 / (4 / 3))
    assert math.isnan(of([0, 0], [2, 1]))


def test_rows_of_a_group_may_lie_anywhere():
    whole = tallied()
    parts = [Tally(ASKED) for _ in range(3)]
    for number, first in enumerate(range(0, ROWS, 500)):
        add(parts[number % 3], slice(first, first + 500))
    merged = Tally(ASKED)
    for part in reversed(parts):
        merged.merge(pickle.loads(pickle.dumps(part)))  # noqa: S301
    for mine, theirs in ((results(ASKED, each), spreads(ASKED, each)) for each in (whole, merged)):
        assert mine.keys() == theirs.keys()
    one, other = results(ASKED, whole), results(ASKED, merged)
    for key, values in one.items():
        for name in NAMES:
            assert other[key]["candidate", name] == pytest.approx(values["candidate", name])
    errors = [spreads(ASKED, each)[()]["candidate", "ndcg", False].error for each in (whole, merged)]
    assert errors[0] == pytest.approx(errors[1])


def test_bounds_are_those_of_groups_and_differences_are_on_the_same():
    found = spreads(ASKED, tallied())[()]
    each = np.array([ndcg(group, None) for group in range(GROUPS)])
    expected = np.nanstd(each, ddof=1) / math.sqrt((~np.isnan(each)).sum())
    assert found["candidate", "ndcg", False].error == pytest.approx(expected, rel=0.3)
    assert found["candidate", "ndcg", False].degrees_of_freedom == 63
    same = spreads(ASKED, tallied(scores=(SCORES, SCORES)))[()]
    assert same["candidate", "ndcg", True].error == 0.0


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_few_groups_that_are_all_ranked_well_prove_little(groups):
    labels = np.tile([1.0, 0.0, 0.0], groups)[:, None]
    of = column(np.repeat(np.arange(groups), 3))
    tally = Tally(ASKED)
    tally.add({"query": of, "side": of}, [Judged(labels, labels)] * 2, first=0)
    spread = spreads(ASKED, tally)[()]["candidate", "ndcg", False]
    assert spread.error >= 2 / groups, "three of so many groups may be ranked badly all the same"
    at = Measured({"ndcg": 1.0}, {}, None, spreads={"ndcg": spread})
    assert bounds("ndcg", 1.0, at, 0.95, spread)[0] < 0.5


def test_only_group_of_a_slice_has_bounds_whatever_its_name():
    """Some names are drawn in fewer than half of the replicates: 239 in 31 of 64."""
    labels = np.array([[1.0], [0.0], [0.0]])
    for name in (*range(10), 239):
        of = column(np.full(3, name))
        tally = Tally(ASKED)
        tally.add({"query": of, "side": of}, [Judged(labels, labels)] * 2, first=0)
        assert spreads(ASKED, tally)[()]["candidate", "ndcg", False].error == 2.0


def test_what_cannot_be_ranked_is_reported(monkeypatch):
    some = np.where(GROUP == 7, np.nan, SCORES)
    lost = (
        f"the base model answers NaN for {(GROUP == 7).sum()} of 3,000 rows of the eval split, so ndcg cannot"
    )
    with pytest.raises(ComponentError, match=lost) as told:
        results(ASKED, tallied(scores=(SCORES, some)))
    assert told.value.hint == "", "the engine's own, which clears the baseline, has its place"
    with pytest.raises(ComponentError, match="the candidate model answers NaN"):
        results(ASKED, tallied(scores=(some, SCORES)))
    with pytest.raises(ComponentError, match="has no query, which names its group"):
        group_numbers(None, 3, "query")
    several = column_of("query", np.array([0, 0, 1]), np.array([0, 1, 1]), ["a", "b"])
    with pytest.raises(ComponentError, match="has several values of query"):
        group_numbers(several, 2, "query")
    monkeypatch.setattr(ranking, "MOST_ROWS", 5000)
    with pytest.raises(ComponentError, match="limited to 5,000 rows of the eval split"):
        tallied()


def test_row_that_weighs_nothing_may_have_any_label():
    spoiled = np.where(WEIGHTS == 1, -1.0, LABELS)
    weights = np.where(WEIGHTS == 1, 0.0, WEIGHTS)

    def of(labels):
        tally = Tally(ASKED)
        judged = [Judged(labels[:, None], each[:, None], weights) for each in (SCORES, SECOND)]
        columns = {"query": column(GROUP), "side": column(GROUP % 2)}
        tally.add(columns, judged, first=0)
        return str(results(ASKED, tally))

    assert of(spoiled) == of(np.where(WEIGHTS == 1, 0.0, LABELS)) == of(LABELS)
    weights = None
    with pytest.raises(ComponentError, match="a label of the eval split is -1, but ranking needs"):
        of(spoiled)


def test_row_that_weighs_nothing_takes_no_place_in_its_group():
    """Nothing is known of its relevance: a model that puts it first ranks the others no worse."""
    asked = replace(ASKED, label_statistics=True)

    def of(rows):
        labels, scores, weights = np.array(rows).T
        tally = Tally(asked)
        columns = {"query": column(np.zeros(len(rows), int)), "side": column(np.zeros(len(rows), int))}
        tally.add(columns, [Judged(labels[:, None], scores[:, None], weights)] * 2, first=0)
        return {name: value for name, value in results(asked, tally)[()].items() if name[1] != "label_count"}

    known = [(1.0, 0.8, 2.0), (0.0, 0.5, 3.0)]
    found = of([(1.0, 0.9, 0.0), *known, (0.0, 0.1, 0.0)])
    assert found == of(known)
    assert (found["candidate", "ndcg"], found["candidate", "mean_reciprocal_rank"]) == (1.0, 1.0)
    assert found["candidate", "label_random_mean_reciprocal_rank"] == 0.75


def test_output_without_a_label_to_rank_in_a_slice_is_not_in_the_mean_there():
    asked = replace(
        ASKED,
        models=tuple(ModelRequest("", name, is_baseline=False, output=name) for name in "ab"),
        metrics={f"{name}/ndcg": "GroupNDCG" for name in "ab"},
        averages={"ndcg": "GroupNDCG"},
    )
    of = column(np.array([0, 0, 1, 1]))
    scores = np.array([[0.1], [0.3], [0.4], [0.2]])
    tally = Tally(asked)
    labels = (np.array([[1.0], [0.0], [1.0], [0.0]]), np.array([[1.0], [0.0], [0.0], [0.0]]))
    tally.add({"query": of, "side": of}, [Judged(each, scores) for each in labels], first=0)
    found = {key: each["", "ndcg"] for key, each in results(asked, tally).items()}
    second = 1 / math.log2(3)
    assert found == {
        (): pytest.approx(((1 + second) / 2 + second) / 2),
        (("side", 0),): pytest.approx(second),
        (("side", 1),): 1.0,
    }


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_what_a_random_order_has_is_reported_beside_the_labels(weights):
    asked = replace(ASKED, label_statistics=True)
    chance = np.random.default_rng(5)

    def measured(scores):
        tally = Tally(asked)
        add(tally, slice(0, ROWS), weights=weights, scores=(scores, scores))
        return results(asked, tally)

    found = measured(SCORES)
    drawn = [measured(chance.random(ROWS)) for _ in range(60)]
    for key in ((), (("side", 1),)):
        for name in NAMES:
            of_chance = [each[key]["candidate", name] for each in drawn]
            told = found[key]["candidate", f"label_random_{name}"]
            error = np.std(of_chance) / len(of_chance) ** 0.5
            assert abs(told - np.mean(of_chance)) < 4 * error, name
            assert found[key]["candidate", name] > told
            assert drawn[0][key]["candidate", f"label_random_{name}"] == pytest.approx(told)


def test_reciprocal_rank_of_a_random_order_by_hand():
    """Two rows of which one is relevant: (1 + 1/2) / 2; three with two: 2/3 + 1/3 * 1/2."""
    rows = ranking._Sorted(
        group=np.array([0, 0, 1, 1, 1, 2]),
        place=np.array([0, 1, 0, 1, 2, 0]),
        tie=np.array([0, 0, 1, 1, 1, 2]),
        labels=np.array([0.0, 1.0, 2.0, 0.0, 1.0, 0.0]),
        weights=np.ones(6),
        slices=np.zeros(3, np.int64),
        numbers=np.arange(3, dtype=np.uint64),
    )
    found = ranking._reciprocal_rank_by_chance(rows)
    assert found[:2] == pytest.approx([0.75, 2 / 3 + 1 / 6])
    assert math.isnan(found[2])
