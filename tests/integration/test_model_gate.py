"""The ModelGate on what the Evaluator's library really writes."""

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROWS = {
    "label": [0, 0, 1, 1, 0, 1],
    "good": [0.1, 0.2, 0.8, 0.9, 0.3, 0.7],
    "poor": [0.9, 0.2, 0.1, 0.9, 0.6, 0.7],
    "payment_type": ["Cash", "Cash", "Cash", "Card", "Card", "Card"],
}


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Writes an evaluation of the `good` and `poor` predictions; returns its folder."""
    import pandas as pd
    import tensorflow_model_analysis as tfma
    from tensorflow_model_analysis.proto import config_pb2

    def call(**models):
        folder = tmp_path_factory.mktemp("evaluation")
        config = config_pb2.EvalConfig(
            model_specs=[
                config_pb2.ModelSpec(
                    name=name, prediction_key=column, label_key="label", is_baseline=name == "baseline"
                )
                for name, column in models.items()
            ],
            slicing_specs=[config_pb2.SlicingSpec(), config_pb2.SlicingSpec(feature_keys=["payment_type"])],
            metrics_specs=[
                config_pb2.MetricsSpec(
                    metrics=[
                        config_pb2.MetricConfig(class_name="AUC", config='{"name": "auc"}'),
                        config_pb2.MetricConfig(class_name="ExampleCount"),
                    ]
                )
            ],
        )
        tfma.analyze_raw_data(pd.DataFrame(ROWS), config, output_path=str(folder))
        return folder

    return call


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Runs the component's function on an evaluation; returns the blessing."""
    from tfx.types.standard_artifacts import Model, ModelBlessing, ModelEvaluation

    from components.model_gate.component import ModelGate

    def call(folder, **thresholds):
        model, evaluation, blessing = Model(), ModelEvaluation(), ModelBlessing()
        model.uri, model.id, evaluation.uri = "models/7", 7, str(folder)
        blessing.uri = str(tmp_path_factory.mktemp("blessing"))
        function = ModelGate.EXECUTOR_SPEC.executor_class._FUNCTION
        function(
            model=model,
            evaluation=evaluation,
            blessing=blessing,
            metrics=["auc"],
            thresholds={"overall": thresholds},
            beat_trivial="none",
        )
        return blessing

    return call


def test_metrics_are_read_for_each_model_and_slice(evaluated):
    from components.model_gate.evaluation import read_evaluation

    found = read_evaluation(str(evaluated(candidate="good", baseline="poor")))
    assert found.candidate["overall"] == {"auc": pytest.approx(1.0), "example_count": 6.0}
    assert found.baseline["overall"]["auc"] < 0.7
    assert found.candidate["payment_type=Cash"]["example_count"] == 3.0


def test_model_without_a_baseline_is_the_candidate(evaluated):
    from components.model_gate.evaluation import read_evaluation

    found = read_evaluation(str(evaluated(candidate="good")))
    assert found.candidate["overall"]["auc"] == pytest.approx(1.0)
    assert found.baseline == {}


def test_good_model_is_blessed_for_stock_components_and_the_resolver(evaluated, judged):
    blessing = judged(evaluated(candidate="good", baseline="poor"), auc={"min": 0.9, "max_drop": 0.0})
    assert blessing.get_int_custom_property("blessed") == 1
    assert blessing.get_int_custom_property("current_model_id") == 7
    assert [file.name for file in Path(blessing.uri).glob("*BLESSED")] == ["BLESSED"]


def test_model_that_lost_against_the_baseline_is_refused_with_both_numbers(evaluated, judged):
    blessing = judged(evaluated(candidate="poor", baseline="good"), auc={"max_drop": 0.01})
    verdict = json.loads(Path(blessing.uri, "verdict.json").read_text(encoding="utf-8"))
    assert blessing.get_int_custom_property("blessed") == 0
    assert [file.name for file in Path(blessing.uri).glob("*BLESSED")] == ["NOT_BLESSED"]
    assert "(baseline 1 less 0.01)" in verdict["reasons"][0]
    assert set(verdict["slices"]) == {"overall", "payment_type=Cash", "payment_type=Card"}
