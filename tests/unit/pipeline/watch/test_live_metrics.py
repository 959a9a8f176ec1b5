import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from slipway.components.errors import ComponentError
from slipway.pipeline.watch.late_labels import Labelled
from slipway.pipeline.watch.live_metrics import live_metrics

DRAW = np.random.default_rng(0)
LABELS = (DRAW.random(3000) < 0.4).astype(float)
ANSWERS = np.clip(0.3 * LABELS + 0.7 * DRAW.random(3000), 0, 1)
ROWS = Labelled(LABELS[:, None], ANSWERS[:, None], 0)


def test_metrics_are_the_evaluator_s_with_its_bounds():
    auc, accuracy = live_metrics(ROWS, ["auc", "binary_accuracy"], {"auc": 0.8})
    assert auc.value == pytest.approx(roc_auc_score(LABELS, ANSWERS), abs=1e-3)
    assert accuracy.value == pytest.approx(((ANSWERS > 0.5) == LABELS).mean())
    for each in (auc, accuracy):
        low, high = each.bounds
        assert 0.005 < each.value - low < 0.03
        assert 0.005 < high - each.value < 0.03
    assert accuracy.at_push is None
    assert not accuracy.is_worse


@pytest.mark.parametrize(
    ("name", "at_push", "is_worse"),
    [
        ("auc", 0.99, True),
        ("auc", 0.5, False),
        ("mean_absolute_error", 0.1, True),
        ("mean_absolute_error", 0.9, False),
    ],
)
def test_worse_is_what_chance_does_not_explain(name, at_push, is_worse):
    [found] = live_metrics(ROWS, [name], {name: at_push})
    assert found.is_worse == is_worse
    assert found.text.endswith("at its push: worse") == is_worse
    assert found.to_json()["worse"] == is_worse


@pytest.mark.parametrize(("name", "apart"), [("auc", 0.03), ("mean_absolute_error", -0.02)])
@pytest.mark.parametrize(("rows_at_push", "is_worse"), [(100_000, True), (3000, True), (60, False)])
def test_value_at_the_push_is_of_a_sample_too(name, apart, rows_at_push, is_worse):
    [now] = live_metrics(ROWS, [name], {})
    [found] = live_metrics(ROWS, [name], {name: now.value + apart, "example_count": rows_at_push})
    assert found.is_worse == is_worse


def test_counts_are_not_held_against_those_of_other_rows():
    [found] = live_metrics(ROWS, ["true_positives"], {"true_positives": 1e9})
    assert (found.at_push, found.is_worse) == (None, False)


def test_value_as_at_the_push_is_not_worse():
    [found] = live_metrics(ROWS, ["auc"], {})
    [again] = live_metrics(ROWS, ["auc"], {"auc": found.value + 0.005})
    assert not again.is_worse


def test_model_that_answers_nan_has_become_worse():
    answers = ROWS.answers.copy()
    answers[0] = np.nan
    [found] = live_metrics(
        Labelled(ROWS.labels, answers, 0), ["binary_crossentropy"], {"binary_crossentropy": 0.3}
    )
    assert found.is_worse
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["value"] is None


def test_metrics_of_two_classes_say_nothing_while_all_labels_are_of_one():
    names = ("auc", "recall", "precision", "binary_accuracy")
    answers = ROWS.answers * 0.4
    found = live_metrics(Labelled(np.zeros((3000, 1)), answers, 0), names, dict.fromkeys(names, 0.9))
    assert [each.text for each in found[:3]] == [
        f"{name} has no value, since all labels are equal" for name in names[:3]
    ]
    assert not any(each.is_worse for each in found)
    assert found[0].to_json()["value"] is None
    assert found[3].value == 1.0


@pytest.mark.parametrize(
    ("name", "at_push"),
    [("mean_absolute_error", 9.0), ("binary_accuracy", 0.0), ("auc", 0.5), ("recall", 0.0)],
)
def test_no_metric_hides_an_answer_that_is_no_number(name, at_push):
    answers = ROWS.answers.copy()
    answers[:1500] = np.nan
    [found] = live_metrics(Labelled(ROWS.labels, answers, 0), [name], {name: at_push})
    assert found.is_worse
    assert found.text == f"{name} nan (nan to nan), {at_push:.4f} at its push: worse"


@pytest.mark.parametrize("name", ["sparse_categorical_accuracy", "auc"])
@pytest.mark.parametrize("label", [3.0, -1.0, 0.5])
def test_label_that_is_no_class_is_refused_and_not_counted_as_an_error(label, name):
    rows = Labelled(np.array([[0.0], [label]]), np.full((2, 3), 1 / 3), 0)
    with pytest.raises(
        ComponentError, match=f"late label is {label:g}, but the model has the classes 0 to 2"
    ):
        live_metrics(rows, [name], {})


def test_small_values_keep_their_digits():
    rows = Labelled(ROWS.labels / 1000, ROWS.answers / 1000, 0)
    [found] = live_metrics(rows, ["mean_squared_error"], {"mean_squared_error": 1e-9})
    assert 1e-7 < found.value < 1e-6
    assert found.text.startswith(f"mean_squared_error {found.value:.2g} ({found.bounds[0]:.2g} to ")
    assert found.text.endswith(", 1e-09 at its push: worse")


def test_metrics_that_compare_with_the_largest_number_get_labels_as_wide_as_the_answers():
    codes = DRAW.integers(0, 3, (300, 1)).astype(float)
    right = np.eye(3)[codes[:, 0].astype(int)]
    names = ("categorical_accuracy", "top_k_categorical_accuracy", "cosine_similarity", "auc")
    found = live_metrics(Labelled(codes, right, 0), names, {"categorical_accuracy": 0.9})
    assert [each.value for each in found] == pytest.approx([1, 1, 1, 1])
    assert not found[0].is_worse
    turned = live_metrics(Labelled((codes + 1) % 3, right, 0), names, {})
    assert [each.value for each in turned[:2]] == [0, 1]


@pytest.mark.parametrize(
    ("name", "width", "words"),
    [
        ("binary_accuracy", 3, "binary_accuracy needs one number a row, and the version answers 3 numbers"),
        ("mean_squared_error", 3, "mean_squared_error needs one number a row"),
        ("sparse_categorical_accuracy", 1, "needs a number for each class a row, and .* answers 1 number"),
    ],
)
def test_metric_that_does_not_fit_the_answers_is_refused(name, width, words):
    rows = Labelled(np.zeros((2, 1)), np.full((2, width), 0.3), 0)
    with pytest.raises(ComponentError, match=words):
        live_metrics(rows, [name], {name: 0.9})


def test_precision_says_nothing_while_no_answer_is_a_yes():
    precision, recall = live_metrics(
        Labelled(ROWS.labels, ROWS.answers * 0.4, 0),
        ["precision", "recall"],
        {"precision": 0.9, "recall": 0.9},
    )
    assert precision.text == "precision has no value, since no row counts for it"
    assert (precision.is_worse, recall.is_worse) == (False, True)
    zeros = Labelled(np.zeros((3000, 1)), ROWS.answers, 0)
    name = "mean_absolute_percentage_error"
    [share] = live_metrics(zeros, [name], {name: 9.0})
    assert (share.text, share.is_worse) == (f"{name} has no value, since no row counts for it", False)


def test_error_of_answers_without_a_logarithm_is_worse():
    answers = ROWS.answers.copy()
    answers[0] = -1
    [found] = live_metrics(Labelled(ROWS.labels, answers, 0), ["poisson"], {"poisson": 0.9})
    assert found.is_worse
