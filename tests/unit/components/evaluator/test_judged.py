import math
from dataclasses import replace

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.evaluator.judged import Judged, check_shapes, with_labels_that_count
from slipway.components.evaluator.request import ModelRequest, NotOursError, Request
from slipway.components.metrics.definitions import METRICS

PLAIN = ModelRequest("", "label", is_baseline=False)


def request(metric):
    return Request(models=(PLAIN,), slices=((),), metrics={metric: METRICS[metric].class_name})


def test_label_of_a_row_that_weighs_nothing_becomes_zero():
    labels = np.array([[7.0, np.inf], [np.nan, 1.0], [2.0, 3.0]])
    judged = Judged(labels, np.zeros((3, 2)), np.array([0.0, 0.5, 1.0]))
    assert str(with_labels_that_count(judged).labels.tolist()) == "[[0.0, 0.0], [nan, 1.0], [2.0, 3.0]]"
    assert judged.labels is labels, "the batch is left as it is"
    assert with_labels_that_count(replace(judged, weights=None)).labels is labels


@pytest.mark.parametrize(
    ("metric", "labels", "outputs", "reason"),
    [
        ("auc", 2, 3, "a row has 2 labels and 3 answers"),
        ("accuracy", 1, 3, "a row has 1 label and 3 answers, which accuracy may not accept"),
        (
            "sparse_categorical_accuracy",
            3,
            3,
            "a row has 3 labels and 3 answers, which sparse_categorical_accuracy may not accept",
        ),
        ("auc", 1, 0, "a row has 1 label and 0 answers"),
    ],
)
def test_labels_that_do_not_go_with_the_answers_are_left_to_tfx(metric, labels, outputs, reason):
    with pytest.raises(NotOursError, match=f"^{reason}$"):
        check_shapes(request(metric), Judged(np.zeros((1, labels)), np.zeros((1, outputs))), PLAIN)
    check_shapes(request("auc"), Judged(np.zeros((1, 1)), np.zeros((1, 3))), PLAIN)


@pytest.mark.parametrize("labels", [[1.0, -math.inf], [-math.inf, math.inf]])
def test_infinite_label_is_named(labels):
    """Its errors are infinite, whatever a model answers, and the labels have no variance to compare with."""
    judged = Judged(np.array(labels)[:, None], np.zeros((2, 1)))
    with pytest.raises(ComponentError) as ours:
        check_shapes(request("mean_absolute_error"), judged, PLAIN)
    assert ours.value.message == "a label must be a finite number, and one of the eval split is -inf"
    assert "transform.label" in ours.value.hint
    with pytest.raises(ComponentError, match="a label of the last blessed model is -inf in the eval split"):
        check_shapes(request("mean_absolute_error"), judged, replace(PLAIN, is_baseline=True))
    of_no_weight = replace(judged, weights=np.array([1.0, 0.0]) if labels[0] == 1 else np.zeros(2))
    check_shapes(request("mean_absolute_error"), of_no_weight, PLAIN)


@pytest.mark.parametrize(("metric", "answers"), [("pinball_loss", 2), ("ndcg", 3)])
def test_model_of_another_shape_than_quantiles_and_ranks_ask_is_named(metric, answers):
    asked = replace(request(metric), quantiles=(0.1, 0.5, 0.9))
    judged = Judged(np.zeros((1, 1)), np.zeros((1, answers)))
    with pytest.raises(ComponentError, match=f"a row has 1 label and {answers} answers") as ours:
        check_shapes(asked, judged, PLAIN)
    assert "let the model answer" in ours.value.hint
    with pytest.raises(ComponentError, match="of the last blessed model a row has 1 label") as theirs:
        check_shapes(asked, judged, replace(PLAIN, is_baseline=True))
    assert theirs.value.hint == "", (
        "where there is none, the screen names the command that clears the baseline"
    )
