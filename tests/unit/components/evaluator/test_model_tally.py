import math
import pickle

import numpy as np
import pytest

from slipway.components.evaluator.bootstrap import Memberships, Samples, row_weights
from slipway.components.evaluator.judged import Judged
from slipway.components.evaluator.model_tally import ModelTally, grown, least_of, squares_of
from slipway.components.evaluator.request import ModelRequest, Request
from slipway.components.metrics.definitions import METRICS
from slipway.components.model_gate.prediction_counts import least

LABELS = np.array([0.0, 1.0, 1.0, 0.0])
ANSWERS = np.array([0.2, 0.9, 0.3, 1.0])


def request(*names, answers=False, quantiles=()):
    return Request(
        models=(ModelRequest("", "label", is_baseline=False),),
        slices=((),),
        metrics={name: METRICS[name].class_name for name in names},
        answers=answers,
        quantiles=quantiles,
    )


def counted(asked, judged, *, slices=None, first=0):
    """Count a batch, each of whose rows is in one slice; all are in the first unless `slices` says so."""
    rows = len(judged.labels)
    places = np.zeros(rows, np.int64) if slices is None else np.array(slices)
    at = Memberships(np.arange(rows), places, int(places.max()) + 1)
    model = ModelTally()
    model.add(asked, judged, at, Samples.of(at, row_weights(first, rows)))
    return model


def of_rows(part=slice(None), *, labels=LABELS, answers=ANSWERS, weights=None):
    return Judged(labels[part, None], answers[part, None], None if weights is None else weights[part])


def test_only_what_the_metrics_need_is_counted():
    model = counted(request("root_mean_squared_error"), of_rows())
    assert model.sums.keys() == model.replicates.sums.keys() == {"RootMeanSquaredError"}
    model.curve.compact()
    assert model.curve.values.size == 0
    assert counted(request("precision", "recall"), of_rows()).sums.keys() == {"confusion"}


def test_weights_and_their_squares_are_summed_by_cell_and_by_class():
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    model = counted(request("auc", "precision"), of_rows(weights=weights))
    assert model.sums["confusion"].tolist() == [[2, 1, 4, 3]]
    assert model.sums[squares_of("confusion")].tolist() == [[4, 1, 16, 9]]
    assert model.sums[squares_of("curve")].tolist() == [[13, 17]]
    assert squares_of("confusion") not in counted(request("auc", "precision"), of_rows()).sums


def test_curve_has_a_bucket_below_zero_one_from_one_on_and_ten_thousand_between():
    answers = np.array([-0.5, 0.0, 0.99999, 1.5])
    model = counted(request("auc"), of_rows(answers=answers))
    model.curve.compact()
    buckets, counts = model.curve.of_slice(0)
    assert buckets.tolist() == [0, 1, 10_000, 10_001]
    assert counts.tolist() == [[0, 1], [1, 0], [1, 0], [0, 1]]


@pytest.mark.parametrize(("labels", "both"), [([0, 1], True), ([1, 1], False), ([0, 0], False)])
def test_slice_has_both_classes_or_not(labels, both):
    model = counted(request("auc"), of_rows(slice(2), labels=np.array(labels, float)))
    model.curve.compact()
    assert model.has_both(0) is both


def test_row_that_weighs_nothing_adds_nothing_though_its_error_is_infinite():
    judged = of_rows(answers=np.array([np.inf, 1.0, 1.0, 0.0]), weights=np.array([0.0, 1.0, 1.0, 2.0]))
    model = counted(request("mean_squared_error", "hinge"), judged)
    assert model.sums["MeanSquaredError"].tolist() == [[0, 4]]
    assert np.isfinite(model.sums["Hinge"]).all()


def test_rows_answered_by_nan_are_counted_if_a_metric_has_no_place_for_them():
    judged = of_rows(answers=np.array([np.nan, 0.5, math.nan, 0.1]))
    assert counted(request("auc"), judged).lost == 2
    assert counted(request("binary_accuracy"), judged).lost == 0


@pytest.mark.parametrize(
    ("metric", "outside"),
    [("auc", 2), ("binary_accuracy", 2), ("kl_divergence", 2), ("mean_squared_error", 0)],
)
def test_answers_that_are_no_probability_are_counted_if_a_metric_takes_some(metric, outside):
    """Such as logits; rounding puts a probability a little above 1."""
    answers = np.array([-0.5, 1.000001, 7.0, 9.0])
    model = counted(request(metric, answers=True), of_rows(answers=answers, weights=np.array([1, 1, 1, 0.0])))
    assert model.sums["answers"][0, 4] == outside


def test_logits_of_classes_are_counted_too():
    asked = request("sparse_categorical_crossentropy", answers=True)
    answers = np.array([[0.1, 0.9], [-2.0, 3.0], [0.5, 0.5], [1.0, 0.0]])
    assert counted(asked, Judged(LABELS[:, None], answers)).sums["answers"][0, 4] == 1
    asked = request("sparse_categorical_accuracy", answers=True)
    assert counted(asked, Judged(LABELS[:, None], answers)).sums["answers"][0, 4] == 0


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_quantile_that_is_not_finite_is_counted_though_plots_use_the_middle_one(lost):
    """With an upper quantile of infinity every label is covered."""
    asked = request("interval_coverage", answers=True, quantiles=(0.1, 0.5, 0.9))
    answers = np.array([[0.1, 0.2, 0.3], [0.1, 0.2, lost], [0.1, 0.2, 0.3], [0.1, lost, 0.3]])
    model = counted(asked, Judged(LABELS[:, None], answers))
    not_finite, *_ = model.sums["answers"][0].tolist()
    assert not_finite == 2
    model.answers.compact()
    values, sums = model.answers.of_slice(0)
    assert (values.tolist(), sums[:, 0].tolist()) == ([0.2], [2])


def test_parts_merged_in_other_orders_of_slices_are_the_whole():
    asked = request("auc", "precision", "mean_absolute_error", answers=True)
    whole = counted(asked, of_rows(), slices=[0, 1, 0, 1])
    merged = ModelTally()
    # In the second part the slices stand the other way round.
    for part, slices, places in ((slice(0, 2), [0, 1], [0, 1]), (slice(2, 4), [1, 0], [1, 0])):
        found = counted(asked, of_rows(part), slices=slices, first=part.start)
        merged.merge(pickle.loads(pickle.dumps(found)), np.array(places), 2, 2)  # noqa: S301
    assert merged.outputs == whole.outputs == 1
    for name, sums in whole.sums.items():
        np.testing.assert_allclose(merged.sums[name], sums, err_msg=name)
    for name, sums in whole.replicates.sums.items():
        np.testing.assert_allclose(merged.replicates.sums[name], sums, err_msg=name)
    for mine, of_it in ((whole.curve, merged.curve), (whole.answers, merged.answers)):
        mine.compact()
        for place in (0, 1):
            assert str(of_it.of_slice(place)) == str(mine.of_slice(place))


def test_slices_with_bounds_are_merged_and_the_others_are_counted_only():
    asked = request("precision")
    model = ModelTally()
    model.merge(counted(asked, of_rows(), slices=[0, 1, 0, 1]), np.array([2, 0]), 3, 1)
    assert model.sums["confusion"].tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 1]]
    assert len(model.replicates.sums["confusion"]) == 1


def test_sums_grow_by_slices_of_zeros():
    assert grown(None, 2, 1).tolist() == [[0], [0]]
    assert grown(np.array([[1.0, 2.0]]), 2, 2).tolist() == [[1, 2], [0, 0]]


def test_least_of_many_is_the_least_of_each():
    answers = np.random.default_rng(2).uniform(-3, 3, 2000) ** 7
    some = [0.0, 0.5, 1.0, 0.9991, -0.25, 1234.5]
    assert least_of(np.array([*some, *answers])).tolist() == [least(answer) for answer in [*some, *answers]]
