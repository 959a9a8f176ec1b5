import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.evaluator.judged import Judged
from slipway.components.evaluator.metric_values import results
from slipway.components.evaluator.request import ANSWERS_NAME, ModelRequest, Request
from slipway.components.evaluator.slices import column_of
from slipway.components.evaluator.spreads import spreads
from slipway.components.evaluator.tally import Tally
from slipway.components.metrics.definitions import METRICS
from slipway.components.model_gate.prediction_counts import PredictionCounts

LABELS = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
ANSWERS = np.array([0.2, 0.9, 0.6, 0.7, 0.1])
TEXTS = ["a", "b", "a", "b", "c"]


def request(*metrics, **more):
    names = metrics or ("auc", "precision", "root_mean_squared_error")
    return Request(
        models=(ModelRequest("", "label", is_baseline=False),),
        slices=((), ("text",)),
        metrics={name: METRICS[name].class_name for name in names},
        example_count="example_count",
        **more,
    )


def columns(texts):
    values = sorted(set(texts))
    codes = np.array([values.index(text) for text in texts])
    return {"text": column_of("text", np.arange(len(texts)), codes, values)}


def tallied(asked, *parts, labels=LABELS, answers=ANSWERS, texts=TEXTS, weights=None):
    tally = Tally(asked)
    for part in parts or (slice(None),):
        judged = Judged(
            labels[part].reshape(len(labels[part]), -1),
            answers[part].reshape(len(labels[part]), -1),
            None if weights is None else weights[part],
        )
        tally.add(columns(texts[part]), [judged], first=(part.start or 0))
    return tally


def values(asked, tally):
    return {
        key: {name: value for (_, name), value in each.items()} for key, each in results(asked, tally).items()
    }


ALL = {"label_statistics": True, "answers": True}


def test_batches_and_parts_that_were_counted_elsewhere_add_up_to_the_same():
    others = {name for name, each in METRICS.items() if each.outputs in ("classes", "quantiles", "ranks")}
    asked = request(*METRICS.keys() - others, **ALL)
    expected = values(asked, tallied(asked))
    batches = tallied(asked, slice(3, 5), slice(0, 3))
    merged = tallied(asked, slice(4, 5))
    merged.merge(pickle.loads(pickle.dumps(tallied(asked, slice(0, 2)))))  # noqa: S301
    merged.merge(Tally(asked))
    merged.merge(tallied(asked, slice(2, 4)))
    nothing = Tally(asked)
    nothing.merge(merged)
    for tally in (batches, merged, nothing):
        found = values(asked, tally)
        assert found.keys() == expected.keys()
        for key, each in expected.items():
            assert found[key] == pytest.approx(each, nan_ok=True)


def test_smallest_batch_of_all_parts_is_known():
    parts = [Tally(request("auc")) for _ in range(4)]
    for part, rows in zip(parts, (None, 512, 64, None), strict=True):
        part.cut_to = rows
        parts[0].merge(part)
    assert parts[0].cut_to == 64
    assert Tally(request("auc")).cut_to is None


def test_values_that_are_no_number_are_one_slice_however_many_batches_they_stand_in():
    asked = request("precision")

    def counted():
        tally = Tally(asked)
        for _ in range(2):
            fractions = [float("nan"), -0.0, 0.0]
            column = column_of("text", np.arange(5), np.array([0, 0, 0, 1, 2]), fractions)
            tally.add({"text": column}, [Judged(LABELS[:, None], ANSWERS[:, None])], first=0)
        return tally

    tally = counted()
    tally.merge(pickle.loads(pickle.dumps(counted())))  # noqa: S301
    rows = {str(key): each["example_count"] for key, each in values(asked, tally).items()}
    assert rows == {"()": 20, "(('text', nan),)": 12, "(('text', 0.0),)": 8}


def test_every_output_is_counted_as_a_model_of_its_own_is():
    heads = tuple(ModelRequest("", name, is_baseline=False, output=name) for name in ("a", "b"))
    metrics = {"a/precision": "Precision", "b/root_mean_squared_error": "RootMeanSquaredError"}
    asked = replace(request(**ALL), models=heads, metrics=metrics)
    judged = [Judged(labels.reshape(-1, 1), ANSWERS.reshape(-1, 1)) for labels in (LABELS, 2 * LABELS + 1)]
    both, other = Tally(asked), Tally(asked)
    both.add(columns(TEXTS), judged, first=0)
    other.add(columns(TEXTS), judged, first=5)
    found, bounds = values(asked, both), spreads(asked, both)
    alone = {"a": request("precision", **ALL), "b": request("root_mean_squared_error", **ALL)}
    for (output, single), each in zip(alone.items(), judged, strict=True):
        tally = Tally(single)
        tally.add(columns(TEXTS), [each], first=0)
        for key, wanted in values(single, tally).items():
            counts = {"example_count": wanted.pop("example_count")}
            got = {name: value for name, value in found[key].items() if name.startswith(output)}
            assert str(got) == str({f"{output}/{name}": value for name, value in wanted.items()})
            assert counts.items() <= found[key].items()
        for key, of_it in spreads(single, tally).items():
            for (model, name, is_difference), spread in of_it.items():
                assert str(bounds[key][model, f"{output}/{name}", is_difference]) == str(spread)
    both.merge(other)
    assert both.labels["b"].of_slice(0)[1][:, 0].tolist() == [4.0, 6.0]


PLAIN = ModelRequest("", "label", is_baseline=False)
WEIGHTED = (ModelRequest("", "label", is_baseline=False, weight="w"),)


def test_a_row_of_weight_two_counts_as_two_rows_and_one_of_weight_zero_as_none():
    weights, twice = np.array([2.0, 1.0, 0.0, 1.0, 2.0]), [0, 0, 1, 3, 4, 4]
    asked = request("auc", "precision", "root_mean_squared_error", "hinge", "log_cosh_error", **ALL)
    asked = replace(asked, models=WEIGHTED)
    answers = np.array([0.9, 0.2, np.inf, 0.4, 0.7])
    found = values(asked, tallied(asked, weights=weights, answers=answers))
    plain = tallied(
        request(*asked.metrics, **ALL), labels=LABELS[twice], answers=answers[twice], texts=["a"] * 6
    )
    wanted = values(request(*asked.metrics, **ALL), plain)
    for name in (*asked.metrics, "label_mean", "label_majority_share", "label_entropy"):
        assert found[()][name] == pytest.approx(wanted[()][name]), name
    assert found[()]["example_count"] == 5.0
    assert found[()]["label_rows"] == pytest.approx(6**2 / 10), "so many rows of one weight tell as much"
    assert found[()]["label_weight"] == 6
    # Positives weigh 1, 0 and 2, negatives 2 and 1: of each class by itself.
    assert found[()]["label_positives"] == found[()]["label_negatives"] == pytest.approx(3**2 / 5)


def test_parts_with_weights_add_up_to_the_whole():
    weights = np.array([2.0, 1.0, 0.5, 1.0, 2.0])
    asked = replace(request(**ALL), models=WEIGHTED)
    whole, part, rest = (
        tallied(asked, each, weights=weights) for each in (slice(None), slice(0, 2), slice(2, None))
    )
    part.merge(rest)
    assert part.weights.tolist() == whole.weights.tolist()
    assert str(values(asked, part)) == str(values(asked, whole)), "as text, for NaN is not equal to itself"
    assert str(spreads(asked, part)) == str(spreads(asked, whole))


def test_one_weight_for_all_rows_changes_neither_values_nor_bounds():
    asked = replace(request(**ALL), models=WEIGHTED)
    weighed, plain = tallied(asked, weights=np.full(5, 4.0)), tallied(request(**ALL))
    found, expected = values(asked, weighed), values(request(**ALL), plain)
    for key, each in found.items():
        assert each.pop("label_weight") == 4 * expected[key].pop("label_weight")
    assert str(found) == str(expected)
    assert str(spreads(asked, weighed)) == str(spreads(request(**ALL), plain))


def test_labels_and_answers_are_told_of_beside_the_metrics():
    found = values(request(**ALL), tallied(request(**ALL)))
    assert found[()]["label_rows"] == 5.0
    assert found[()]["label_majority_share"] == 0.6
    assert found[("text", "a"),][ANSWERS_NAME] == (
        b'{"kind":"binary","groups":[[0.2,1,0.0,0.0,0.2],[0.6,1,1.0,1.0,0.6]],"rows":2,"not_finite":0}'
    )


def test_cells_of_classes_are_told_of_whether_labels_are_classes_or_vectors():
    asked = request("categorical_accuracy", **ALL)
    answers = np.eye(3)[[0, 2, 1, 1, 1]]
    wanted = b'"cells":[[1,1,2],[0,0,1],[0,1,1],[1,2,1]]'
    for labels in (LABELS, np.eye(3)[LABELS.astype(int)]):
        found = values(asked, tallied(asked, labels=labels, answers=answers))[()]
        assert wanted in found[ANSWERS_NAME]
        assert found["label_classes"] == 2.0


def test_label_that_is_no_class_is_counted_beside_the_cells():
    asked = request("auc", **ALL)
    answers = np.stack([1 - ANSWERS, ANSWERS], axis=1)
    labels = np.array([-1.0, *LABELS[1:]])
    found = values(asked, tallied(asked, labels=labels, answers=answers))[()][ANSWERS_NAME]
    assert found == (
        b'{"kind":"classes","cells":[[1,1,2],[0,1,1],[1,0,1]],"left_out":0,"no_class":1,"rows":4,"not_finite":0}'
    )
    counted = PredictionCounts()
    for label, answer in zip(labels.tolist(), answers.tolist(), strict=True):
        counted.add([label], answer)
    assert counted.to_json() == json.loads(found)


def test_several_labels_of_a_row_are_each_counted():
    labels = np.array([[1.0, 1.0], [0.0, 1.0], [np.nan, 0.0], [0.0, 0.0], [1.0, 0.0]])
    asked = request("cosine_similarity", **ALL)
    found = values(asked, tallied(asked, labels=labels, answers=np.ones((5, 2))))[()]
    assert found["label_rows"] == 9.0, "with one row of two labels, those of one are no classes either"
    assert (found["label_count"], found["label_classes"]) == (9.0, 2.0)
    assert found["label_mean"] == pytest.approx(4 / 9)
    parts = tallied(asked, slice(0, 1), slice(1, 5), labels=labels, answers=np.ones((5, 2)))
    merged = Tally(asked)
    for part in (slice(3, 5), slice(0, 3)):
        merged.merge(tallied(asked, part, labels=labels, answers=np.ones((5, 2))))
    for each in (parts, merged):
        same = {name: value for name, value in values(asked, each)[()].items() if name.startswith("label_")}
        assert same.items() <= found.items()
    asked = replace(asked, models=WEIGHTED)
    found = values(asked, tallied(asked, labels=labels, answers=np.ones((5, 2)), weights=np.full(5, 3.0)))[()]
    assert (found["label_count"], found["label_rows"], found["label_weight"]) == (9.0, pytest.approx(9), 27.0)
    assert ANSWERS_NAME not in found, "rows with several classes are not told of"


def test_numbers_of_a_vector_are_counted_one_by_one_in_whatever_parts_they_come():
    labels = np.array([[1.0, 100.0], [3.0, 100.0], [np.nan, 104.0], [2.0, 100.0], [2.0, 96.0]])
    asked = request("mean_absolute_error", **ALL)
    expected = {"entries": 2.0, "entry_variance": (2 + 32) / 9, "entry_deviation": (2 + 8) / 9}
    whole = tallied(asked, labels=labels, answers=np.ones((5, 2)))
    merged = Tally(asked)
    for part in (slice(3, 5), slice(0, 3)):
        merged.merge(tallied(asked, part, labels=labels, answers=np.ones((5, 2))))
    empty = Tally(asked)
    empty.merge(merged)
    for each in (whole, merged, empty):
        found = values(asked, each)
        told = {name: found[()].get(f"label_{name}") for name in expected}
        assert told == pytest.approx(expected)
        assert "label_entry_variance" not in found[("text", "a"),], "a slice is compared with no constant"
    other = request("cosine_similarity", **ALL)
    found = values(other, tallied(other, labels=labels, answers=np.ones((5, 2))))[()]
    assert found["label_entries"] == 2
    assert "label_entry_variance" not in found


def test_vectors_with_one_at_most_are_classes_and_those_of_zeros_the_first_as_an_accuracy_takes_them():
    labels = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    asked = request("cosine_similarity", **ALL)
    found = values(asked, tallied(asked, labels=labels, answers=np.ones((5, 2))))[()]
    assert (found["label_rows"], found["label_majority"]) == (5.0, 0.0)
    assert found["label_majority_share"] == pytest.approx(3 / 5)


@pytest.mark.parametrize("garbage", [-1.0, 0.5, np.nan])
def test_row_that_weighs_nothing_does_not_make_numbers_of_classes(garbage):
    """As numbers, the elements of one-hot vectors are mostly 0: that were the majority to beat."""
    weights = np.array([1.0, 1.0, 2.0, 1.0, 0.0])
    one_hot = np.eye(3)[[0, 1, 1, 2, 0]]
    spoiled = np.where(weights[:, None] == 0, garbage, one_hot)
    asked = replace(request("categorical_accuracy", label_statistics=True), models=WEIGHTED)
    found, expected = (
        values(asked, tallied(asked, labels=each, answers=np.ones((5, 3)), weights=weights))[()]
        for each in (spoiled, np.where(weights[:, None] == 0, 0, one_hot))
    )
    assert str(found) == str(expected)
    assert (found["label_majority"], found["label_majority_share"]) == (1.0, 3 / 5)


def test_answers_that_are_no_number_are_counted_and_left_out():
    asked = request("binary_accuracy", **ALL)
    answers = np.where(LABELS == 0, np.nan, ANSWERS)
    found = values(asked, tallied(asked, answers=answers))[()]
    assert b'"rows":3,"not_finite":2' in found[ANSWERS_NAME]
    assert found["binary_accuracy"] == pytest.approx(4 / 5), "what is not above one half is below"


@pytest.mark.parametrize("garbage", [-1.0, 7.0, np.nan])
def test_row_that_weighs_nothing_may_have_any_label(garbage):
    names = ("auc", "precision", "binary_crossentropy", "mean_squared_error", "hinge")
    asked = replace(request(*names), models=WEIGHTED)
    weights = np.array([0.0, 1.0, 2.0, 1.0, 3.0])
    spoiled = np.where(weights == 0, garbage, LABELS)
    found = values(asked, tallied(asked, labels=spoiled, weights=weights))
    assert str(found) == str(
        values(asked, tallied(asked, labels=np.where(weights == 0, 0, LABELS), weights=weights))
    )
    with pytest.raises(ComponentError, match="a label of the eval split is"):
        tallied(asked, labels=spoiled, weights=np.ones(5))


def test_vector_of_a_row_that_weighs_nothing_does_not_make_numbers_of_classes():
    asked = replace(request("categorical_accuracy", **ALL), models=WEIGHTED)
    labels, weights = np.eye(2)[[0, 1, 1, 0, 1]], np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    told = [
        values(asked, tallied(asked, labels=each, answers=np.ones((5, 2)), weights=weights))[()]
        for each in (labels, np.where(weights[:, None] == 0, [[0.3, 0.7]], labels))
    ]
    assert told[0]["label_majority"] == 1.0
    for name in ("label_rows", "label_classes", "label_majority_share", "label_majority"):
        assert told[0][name] == told[1][name]


@pytest.mark.parametrize("garbage", [-1.0, np.nan])
def test_row_that_weighs_nothing_is_in_no_curve_and_no_matrix(garbage):
    def told(labels, answers, weights):
        asked = replace(request("root_mean_squared_error", **ALL), models=WEIGHTED)
        return values(asked, tallied(asked, labels=labels, answers=answers, weights=weights))[()][
            ANSWERS_NAME
        ]

    weights = np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    spoiled = np.where(weights == 0, garbage, LABELS)
    assert told(spoiled, ANSWERS, weights) == told(LABELS, ANSWERS, weights)
    assert b'"kind":"binary"' in told(spoiled, ANSWERS, weights)
    several = np.stack([1 - ANSWERS, ANSWERS], axis=1)
    assert told(spoiled, several, weights) == told(LABELS, several, weights)
    assert b'"kind":"classes","cells":[[1,1,2],[0,1,1],[1,0,1]]' in told(spoiled, several, weights)
    lost = told(spoiled, np.where(weights == 0, np.nan, ANSWERS), weights)
    assert b'"rows":4,"not_finite":1' in lost, "the model has to answer it nevertheless"


def test_area_of_answers_that_are_no_number_is_refused_in_words():
    tally = tallied(request("auc"), slice(0, 2), slice(2, 5), answers=np.where(LABELS == 0, np.nan, ANSWERS))
    with pytest.raises(
        ComponentError, match="the candidate model answers NaN for 2 of 5 rows of the eval split"
    ):
        results(request("auc"), tally)


def test_continuum_of_answers_and_labels_is_rounded_as_the_gate_s_own_metrics_do():
    asked = request("mean_absolute_error", **ALL)
    labels = np.random.default_rng(1).uniform(1, 9, 6000)
    found = values(asked, tallied(asked, labels=labels, answers=labels + 1, texts=["a"] * 6000))[()]
    assert found["label_rows"] == 6000.0
    assert found["label_classes"] == len({float(f"{label:.3g}") for label in labels})
    assert b'"kind":"numbers"' in found[ANSWERS_NAME]


@pytest.mark.parametrize("at_once", [6000, 1500, 7])
def test_labels_far_from_zero_keep_the_digits_that_tell_them_apart(at_once):
    """Pressures in Pa: to three digits all of them are 101,000, and always the mean is never wrong."""
    asked = request("root_mean_squared_error", "mean_absolute_error", label_statistics=True)
    labels = np.random.default_rng(1).normal(101_325, 100, 6000)
    parts = [
        tallied(asked, labels=each, answers=each, texts=["a"] * len(each))
        for each in np.split(labels, range(at_once, 6000, at_once))
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole.merge(part)
    found = values(asked, whole)[()]
    assert found["label_mean"] == pytest.approx(labels.mean(), abs=0.1)
    assert math.sqrt(found["label_variance"]) == pytest.approx(labels.std(), rel=0.01)
    apart = np.abs(labels - np.median(labels)).mean()
    assert found["label_absolute_deviation"] == pytest.approx(apart, rel=0.01)
    assert found["label_classes"] < 1000


def test_label_that_only_the_baseline_has_no_class_for_is_told_of_the_baseline():
    """A class was added since: the baseline's own transform makes -1 of its name."""
    models = (replace(PLAIN, name="candidate"), replace(PLAIN, name="baseline", is_baseline=True))
    asked = replace(request("sparse_categorical_crossentropy"), models=models, slices=((),))
    candidate = Judged(np.array([[0.0], [3.0]]), np.full((2, 4), 0.25))
    baseline = Judged(np.array([[0.0], [-1.0]]), np.full((2, 3), 0.33))
    with pytest.raises(ComponentError) as told:
        Tally(asked).add({}, [candidate, baseline], first=0)
    assert told.value.message == (
        "the last blessed model cannot be compared: a label of the eval split is -1, and the model has 3 "
        "classes, 0 to 2"
    )
    assert told.value.hint == "", "the screen names the command that clears the baseline"
    with pytest.raises(ComponentError, match=r"^a label of the eval split is -1") as ours:
        Tally(replace(asked, models=models[::-1])).add({}, [candidate, baseline], first=0)
    assert "check transform.label" in ours.value.hint


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0])])
def test_baseline_of_another_label_is_not_compared(weights):
    models = (replace(PLAIN, name="baseline", is_baseline=True), replace(PLAIN, name="candidate"))
    asked = replace(request("root_mean_squared_error"), models=models, slices=((),))
    dollars = Judged(np.array([[4.2], [9.0]]), np.array([[4.0], [9.5]]), weights)
    cents = Judged(np.array([[420.0], [900.0]]), np.array([[400.0], [950.0]]), weights)
    whole, part = Tally(asked), Tally(asked)
    part.add({}, [cents, dollars], first=0)
    whole.merge(part)
    with pytest.raises(
        ComponentError, match=r"^label of the last blessed model is another label.* it is 900 in"
    ):
        results(asked, whole)
    same = Tally(asked)
    same.add({}, [dollars, dollars], first=0)
    assert results(asked, same)
