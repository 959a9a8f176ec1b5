"""The taxi workload by TFX's own executors, which `beam.stock_nodes` names, beside ours.

Seen only here, and of images and of two outputs in test_digits.py and test_fares.py: that a real workload's
rows, schema and exported models, in a run, mean the same to both. In tests/integration/ the executors are
called with made rows, made models and single functions.
"""

import pytest
from same_evaluation import assert_same, content

from slipway.components.model_gate.evaluation import read_evaluation

pytestmark = [
    pytest.mark.slow,
    pytest.mark.external,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

IN_DATA = ("statistics", "transform_graph", "transformed_examples")


def test_tfx_s_statistics_and_transformed_examples_are_ours(differences_in_data, output):
    assert differences_in_data("taxi", output) == dict.fromkeys(IN_DATA, ())


def test_tfx_s_metrics_of_every_slice_model_and_difference_are_ours(evaluations, output):
    ours, theirs = evaluations("taxi", output)
    assert_same(content(ours), content(theirs))
    found = read_evaluation(theirs)
    assert {"overall", "payment_type=Cash", "trip_start_hour=18"} <= found.candidate.keys()
    assert found.baseline.keys() == found.candidate.keys()
    assert found.baseline["overall"]["auc"] != found.candidate["overall"]["auc"], "two models"
