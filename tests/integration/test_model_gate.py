"""The ModelGate on what the Evaluator's library really writes."""

import functools
import json
import re
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
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
    """Writes an evaluation of the `good` and `poor` predictions, each once; returns its folder."""
    import pandas as pd
    import tensorflow_model_analysis as tfma
    from tensorflow_model_analysis.proto import config_pb2

    from slipway.components.model_gate.eval_config import eval_config

    @functools.cache
    def call(**models):
        folder = tmp_path_factory.mktemp("evaluation")
        config = eval_config(label="label", metrics=["auc"], slices=[["payment_type"]])
        del config.model_specs[:]
        config.model_specs.extend(
            config_pb2.ModelSpec(
                name=name, prediction_key=column, label_key="label", is_baseline=name == "baseline"
            )
            for name, column in models.items()
        )
        tfma.analyze_raw_data(pd.DataFrame(ROWS), config, output_path=str(folder))
        return folder

    return call


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Runs the component's function on an evaluation; returns the blessing."""
    from tfx.types.standard_artifacts import Model, ModelBlessing, ModelEvaluation

    from slipway.components.model_gate.component import ModelGate

    def call(
        folder,
        *,
        beat_trivial="none",
        metrics=("auc", "binary_accuracy"),
        model_uri="models/7",
        data=None,
        named=None,
        **thresholds,
    ):
        model, evaluation, blessing = Model(), ModelEvaluation(), ModelBlessing()
        model.uri, model.id, evaluation.uri = model_uri, 7, str(folder)
        blessing.uri = str(tmp_path_factory.mktemp("blessing"))
        function = ModelGate.EXECUTOR_SPEC.executor_class._FUNCTION
        function(
            model=model,
            evaluation=evaluation,
            blessing=blessing,
            metrics=list(metrics),
            thresholds={"overall": thresholds},
            beat_trivial=beat_trivial,
            min_slice_rows=100,
            sample_rows=50_000,
            **(data or {}),
            **(named or {}),
        )
        return blessing

    return call


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Examples, their statistics and Ingest's quarantine, whose digest stands for the data."""
    from tensorflow_metadata.proto.v0 import statistics_pb2
    from tfx.types.standard_artifacts import ExampleStatistics

    from slipway.pipeline.testing import tiny_examples
    from slipway.schemas.artifacts import Quarantine

    folder = tmp_path_factory.mktemp("data")
    examples = tiny_examples([{"label": [row % 2], "size": [row]} for row in range(20)], into=folder)
    statistics, quarantine = ExampleStatistics(), Quarantine()
    statistics.uri, quarantine.uri = str(folder / "statistics"), str(folder / "quarantine")
    statistics.split_names = examples.split_names
    for split in ("train", "eval"):
        path = folder / "statistics" / f"Split-{split}" / "FeatureStats.pb"
        path.parent.mkdir(parents=True)
        counted = statistics_pb2.DatasetFeatureStatisticsList()
        counted.datasets.add(num_examples=20)
        path.write_bytes(counted.SerializeToString())
    (folder / "quarantine").mkdir()
    (folder / "quarantine" / "summary.json").write_text('{"digest": "of the data"}')
    return {"examples": examples, "statistics": statistics, "quarantine": quarantine, "raw_label": "label"}


def test_metrics_are_read_for_each_model_and_slice(evaluated):
    from slipway.components.model_gate.evaluation import read_evaluation

    found = read_evaluation(str(evaluated(candidate="good", baseline="poor")))
    # What else is there are our own statistics, of which `slices` makes what they are for: see below.
    overall = {name: found.candidate["overall"][name] for name in ("auc", "example_count")}
    assert overall == {"auc": pytest.approx(1.0), "example_count": 6.0}
    assert found.baseline["overall"]["auc"] < 0.7
    assert found.candidate["payment_type=Cash"]["example_count"] == 3.0


def test_columns_of_a_slice_are_read_apart_from_its_value(tmp_path):
    from slipway.components.evaluator.metric_files import write_evaluation
    from slipway.components.evaluator.request import ModelRequest, Request
    from slipway.components.model_gate.evaluation import read_evaluation

    request = Request((ModelRequest("", "label", is_baseline=False),), ((),), {"auc": "AUC"})
    keys = [(), (("pay", "Cash, tip=0"),), (("pay", "Cash"), ("tip", "0")), (("hour", 3), ("pay", "Cash"))]
    write_evaluation(str(tmp_path), None, request, {key: {("", "auc"): 0.5} for key in keys}, {}, {})
    found = read_evaluation(str(tmp_path)).slices()
    assert {name: at.columns for name, at in found.items()} == {
        "overall": "",
        'pay="Cash, tip=0"': "pay",
        "pay=Cash, tip=0": "pay, tip",
        "hour=3, pay=Cash": "hour, pay",
    }


@pytest.mark.parametrize("order", [("new", "live"), ("live", "new"), ("baseline", "candidate")])
def test_models_may_have_names_of_their_own(tmp_path, order):
    """The last two are named the wrong way round."""
    import tensorflow_model_analysis as tfma

    from slipway.components.evaluator.executor import _overall_metrics
    from slipway.components.evaluator.metric_files import write_evaluation
    from slipway.components.evaluator.request import ModelRequest, Request
    from slipway.components.model_gate.evaluation import read_evaluation

    before = {"live", "candidate"}
    specs = [tfma.ModelSpec(name=name, label_key="y", is_baseline=name in before) for name in order]
    models = tuple(ModelRequest(name, "y", is_baseline=name in before) for name in order)
    values = {(name, "auc"): 0.8 if name in before else 0.9 for name in order}
    values |= {(order[0], "label_mean"): 0.25}
    request = Request(models, ((),), {"auc": "AUC"})
    write_evaluation(str(tmp_path), tfma.EvalConfig(model_specs=specs), request, {(): values}, {}, {})
    assert _overall_metrics(str(tmp_path)) == {"auc": 0.9}
    found = read_evaluation(str(tmp_path))
    assert found.candidate["overall"] == {"auc": 0.9, "label_mean": 0.25}
    assert found.baseline["overall"] == {"auc": 0.8}


def test_model_without_a_baseline_is_the_candidate(evaluated):
    from slipway.components.model_gate.evaluation import read_evaluation

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
    assert verdict["min_slice_rows"] == 100


def test_model_that_changed_since_its_export_is_not_judged(evaluated, judged, tmp_path):
    from slipway.components.errors import ComponentError
    from slipway.components.saved_model.digest_files import keep_digest, model_digest

    saved_model = tmp_path / "model/Format-Serving/saved_model.pb"
    saved_model.parent.mkdir(parents=True)
    saved_model.write_bytes(b"graph")
    keep_digest(str(saved_model.parent))
    evaluation = evaluated(candidate="good", baseline="poor")
    blessing = judged(evaluation, model_uri=str(tmp_path / "model"), auc={"min": 0.9})
    assert blessing.get_string_custom_property("model_digest") == model_digest(str(saved_model.parent))
    saved_model.write_bytes(b"Graph")
    with pytest.raises(ComponentError, match="model changed after it was exported"):
        judged(evaluation, model_uri=str(tmp_path / "model"), auc={"min": 0.9})


def test_digests_of_the_model_and_of_its_data_are_kept_apart(evaluated, judged, data, tmp_path):
    from slipway.components.data_profile.profile import read_profile
    from slipway.components.saved_model.digest_files import model_digest

    saved_model = tmp_path / "model/Format-Serving/saved_model.pb"
    saved_model.parent.mkdir(parents=True)
    saved_model.write_bytes(b"graph")
    blessing = judged(
        evaluated(candidate="good", baseline="poor"),
        model_uri=str(tmp_path / "model"),
        data=data,
        auc={"min": 0.9},
    )
    assert blessing.get_string_custom_property("model_digest") == model_digest(str(saved_model.parent))
    assert read_profile(f"{blessing.uri}/data").digest == "of the data"
    kept = {path.relative_to(f"{blessing.uri}/data").as_posix() for path in Path(blessing.uri).rglob("*.pb")}
    assert kept == {"Split-train/FeatureStats.pb", "Split-eval/FeatureStats.pb"}


def test_data_behind_a_refused_model_are_not_kept(evaluated, judged, data):
    blessing = judged(evaluated(candidate="poor", baseline="good"), data=data, auc={"min": 0.9})
    assert blessing.get_int_custom_property("blessed") == 0
    assert not Path(blessing.uri, "data").exists()


@pytest.mark.parametrize("output", ["", "cost"])
def test_model_that_answers_nan_to_a_row_is_refused_though_its_metrics_leave_that_row_out(
    tmp_path, judged, output
):
    from slipway.components.evaluator.bootstrap import row_number
    from slipway.components.evaluator.judged import Judged
    from slipway.components.evaluator.metric_files import write_evaluation
    from slipway.components.evaluator.metric_values import results
    from slipway.components.evaluator.request import ModelRequest, Request
    from slipway.components.evaluator.tally import Tally
    from slipway.components.metrics.definitions import of_output

    labels = np.arange(200.0)[:, None]
    answers = np.where(labels == 7, np.nan, labels)
    name = of_output(output, "mean_absolute_error")
    model = ModelRequest("", "label", is_baseline=False, output=output)
    request = Request(
        (model,),
        ((),),
        {name: "MeanAbsoluteError"},
        example_count="example_count",
        label_statistics=True,
        answers=True,
    )
    tally = Tally(request)
    tally.add({}, [Judged(labels, answers)], first=row_number(0, 0))
    write_evaluation(str(tmp_path), None, request, results(request, tally), {}, {})
    blessing = judged(tmp_path, metrics=[name], beat_trivial="one", **{name: {"max": 1.0}})
    verdict = json.loads(Path(blessing.uri, "verdict.json").read_text(encoding="utf-8"))
    assert verdict["metrics"][name] == 0.0
    assert not verdict["blessed"]
    [reason] = verdict["reasons"]
    of = f"output {output}" if output else "model"
    assert reason.startswith(f"{of} answers NaN or infinity to 1 of 200 rows")


def test_labels_are_counted_for_each_slice_beside_the_metrics(evaluated):
    from slipway.components.model_gate.evaluation import read_evaluation

    evaluation = read_evaluation(str(evaluated(candidate="good", baseline="poor")))
    slices = evaluation.slices()
    cash, overall = slices["payment_type=Cash"], slices["overall"]
    assert (cash.labels.rows, cash.labels.rows_by_class, cash.labels.majority) == (3.0, (1, 2), 0.0)
    assert (overall.labels.majority_share, overall.labels.classes) == (0.5, 2.0)
    assert set(overall.metrics) == set(overall.baseline) == {"auc", "example_count"}
    answers = evaluation.answers
    assert {name: (told["kind"], told["rows"]) for name, told in answers.items()} == {
        "candidate": ("binary", 6),
        "baseline": ("binary", 6),
    }
    assert [group[:3] for group in answers["candidate"]["groups"]] == [
        [good, 1, label] for good, label in sorted(zip(ROWS["good"], ROWS["label"], strict=True))
    ]


def test_numbers_that_a_model_answers_reach_the_page_of_the_run(tmp_path, judged):
    import pandas as pd
    import tensorflow_model_analysis as tfma
    from tensorflow_model_analysis.proto import config_pb2

    from slipway.components.model_gate.eval_config import eval_config
    from slipway.pipeline.report.page import write_page
    from slipway.pipeline.runs.record import NodeRecord, RunRecord

    # Ten answers, each of ten rows, and each too low by 1234.
    answered = [-5000.0 + 1000 * (row // 10) for row in range(100)]
    rows = {"label": [answer + 1234 for answer in answered], "answer": answered}
    metrics = ["root_mean_squared_error", "mean_absolute_error"]
    config = eval_config(label="label", metrics=metrics, slices=[])
    del config.model_specs[:]
    config.model_specs.append(config_pb2.ModelSpec(prediction_key="answer", label_key="label"))
    tfma.analyze_raw_data(pd.DataFrame(rows), config, output_path=str(tmp_path / "evaluation"))
    blessing = judged(tmp_path / "evaluation", metrics=metrics, mean_absolute_error={"max": 2000.0})
    made = {"uri": blessing.uri, "type": "ModelBlessing", "properties": {"blessed": 1}}
    gate = NodeRecord("ModelGate", type="ModelGate", state="complete", outputs={"blessing": [made]})
    record = RunRecord("run-1", "numbers", state="complete", nodes=[gate], output=tmp_path)

    text = write_page(record, tmp_path, tmp_path / "page.html").read_text(encoding="utf-8")

    assert "100 rows of the eval split." in text
    table = text[text.index("<caption>Predictions and labels in 10 groups") :]
    found = re.findall(r"<tr><th[^>]*>(.*?)</th>" + r"<td[^>]*>(.*?)</td>" * 4 + "</tr>", table)[:10]
    assert found == [
        (f"{answer:.4g}", f"{answer + 1234:.4g}", "1234", "0", "10") for answer in sorted(set(answered))
    ]
    # Numbers beside the axis have room in the picture.
    [left] = re.findall(r'viewBox="-(\d+) -10 [^>]*><title>Mean label', text)
    assert int(left) >= 7 * len("-5e+03") + 22


def test_model_that_has_not_learned_is_refused_though_it_meets_its_threshold(tmp_path, judged):
    import pandas as pd
    import tensorflow_model_analysis as tfma
    from tensorflow_model_analysis.proto import config_pb2

    from slipway.components.model_gate.eval_config import eval_config

    # Always "no", on labels of which 77 in 100 are no: TFX's template passes it with its threshold of 0.6.
    rows = {"label": [0] * 77 + [1] * 23, "no": [0.1] * 100}
    config = eval_config(label="label", metrics=["auc", "binary_accuracy"], slices=[])
    del config.model_specs[:]
    config.model_specs.append(config_pb2.ModelSpec(prediction_key="no", label_key="label"))
    tfma.analyze_raw_data(pd.DataFrame(rows), config, output_path=str(tmp_path))
    blessing = judged(tmp_path, beat_trivial="one", binary_accuracy={"min": 0.6})
    verdict = json.loads(Path(blessing.uri, "verdict.json").read_text(encoding="utf-8"))
    assert blessing.get_int_custom_property("blessed") == 0
    said = "; ".join(verdict["reasons"])
    assert "auc 0.5, needs above 0.6" in said
    assert "binary_accuracy 0.77, needs above 0.77 (always answering 0)" in said
    assert "threshold binary_accuracy.min 0.6, needs above 0.77" in verdict["warnings"][0]


def test_each_of_several_outputs_has_classes_of_its_own_names(monkeypatch, tmp_path, judged):
    from slipway.components.model_gate.evaluation import Evaluation
    from slipway.components.model_gate.trivial_scores import LabelStatistics

    found = {"example_count": 100.0}
    for output, counts in {"tip": {0: 77, 1: 23}, "paid": {0: 40, 1: 60}, "day": {0: 70, 1: 30}}.items():
        labels = asdict(LabelStatistics.of_counts(counts))
        found |= {f"{output}/label_{key}": value for key, value in labels.items() if value is not None}
        found[f"{output}/binary_accuracy"] = 0.99
    module = "slipway.components.model_gate.component"
    monkeypatch.setattr(f"{module}.read_evaluation", lambda _uri: Evaluation({"overall": found}, {}))
    named = {"output_classes": {"paid": ["cash", "card"], "tip": ["small", "big"]}}
    metrics = [name for name in found if name.endswith("/binary_accuracy")]
    blessing = judged(tmp_path, metrics=metrics, named=named)
    verdict = json.loads(Path(blessing.uri, "verdict.json").read_text(encoding="utf-8"))
    required = {check["metric"]: check["required"] for check in verdict["checks"]}
    assert required == {
        "tip/binary_accuracy": "above 0.77 (always answering small)",
        "paid/binary_accuracy": "above 0.6 (always answering card)",
        "day/binary_accuracy": "above 0.7 (always answering 0)",
    }
    assert verdict["trivial"]["overall"]["paid/binary_accuracy"] == {"always answering card": 0.6}


def test_every_metric_of_the_table_is_known_to_keras_and_to_the_evaluator():
    import inspect

    import keras
    import tensorflow_model_analysis as tfma
    from tensorflow_model_analysis.utils.keras_lib import tf_keras

    from slipway.components.metrics.definitions import METRICS

    def computed(module):
        return {name for name, each in vars(module).items() if inspect.isclass(each) and name[0].isupper()}

    named = {metric.class_name for metric in METRICS.values() if metric.outputs not in ("quantiles", "ranks")}
    assert named <= computed(keras.metrics)
    assert named <= computed(tf_keras.metrics) | set(tfma.metrics.metric_types.registered_metrics())
    # What Keras has beside: those that need arguments, take no prediction, or fail in the Evaluator.
    assert {name for name in computed(keras.metrics) if not name.startswith("_")} - named == {
        "BinaryIoU", "CategoricalCrossentropy", "ConcordanceCorrelation", "FBetaScore", "IoU", "Mean",
        "MeanIoU", "MeanMetricWrapper", "Metric", "OneHotIoU", "OneHotMeanIoU", "PearsonCorrelation",
        "PrecisionAtRecall", "R2Score", "RecallAtPrecision", "SensitivityAtSpecificity",
        "SpecificityAtSensitivity", "Sum",
    }  # fmt: skip


@pytest.mark.parametrize(
    "vectors",
    [
        [[1, 1], [0, 1], [0, 0], [1, 0]],
        [[0, 1], [0, 0], [1, 0], [0, 1]],
        [[0.5, 2], [0, 1], [0, 0]],
        [[float("nan"), 0], [0, 1]],
        [[1, 0], [0, 1], [0, 1], [-1, 7]],
        [[1, 0], [0, 1], [0, 1], [float("nan"), 7]],
    ],
)
@pytest.mark.parametrize("last", [None, 0.0, 3.0])
def test_labels_of_vectors_are_counted_as_our_evaluator_counts_them(vectors, last):
    """With the weight of the last row, if rows have weights; the others weigh 1."""
    from slipway.components.evaluator.judged import Judged
    from slipway.components.evaluator.metric_values import results
    from slipway.components.evaluator.request import ModelRequest, Request
    from slipway.components.evaluator.tally import Tally
    from slipway.components.model_gate.label_statistics_metric import LabelStatisticsMetric

    weights = None if last is None else np.array([1.0] * (len(vectors) - 1) + [last])
    [computation] = LabelStatisticsMetric().computations(example_weighted=weights is not None)
    counted = [computation.combiner.create_accumulator() for _ in range(2)]
    for place, vector in enumerate(vectors):
        weight = np.ones(1) if weights is None else weights[[place]]
        row = SimpleNamespace(labels=np.array(vector, float), example_weights=weight, predictions=np.ones(2))
        computation.combiner.add_input(counted[place % 2], row)
    theirs = computation.combiner.extract_output(computation.combiner.merge_accumulators(counted))
    asked = Request(
        models=(ModelRequest("", "label", is_baseline=False, weight="" if weights is None else "w"),),
        slices=((),),
        metrics={"cosine_similarity": "CosineSimilarity"},
        label_statistics=True,
    )
    tally = Tally(asked)
    tally.add({}, [Judged(np.array(vectors, float), np.ones((len(vectors), 2)), weights)], first=0)
    ours = {
        name: value for (_, name), value in results(asked, tally)[()].items() if name != "cosine_similarity"
    }
    told = {key.name: value for key, value in theirs.items()}
    assert {
        name: value for name, value in told.items() if not name.startswith("label_constant_")
    } == pytest.approx(ours)


@pytest.mark.parametrize("several", ["classes", "vectors", "one"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_scores_of_the_best_constants_are_those_that_our_evaluator_knows(several, is_weighted):
    from slipway.components.evaluator.judged import Judged
    from slipway.components.evaluator.metric_values import results
    from slipway.components.evaluator.request import ModelRequest, Request
    from slipway.components.evaluator.tally import Tally
    from slipway.components.model_gate.label_statistics_metric import LabelStatisticsMetric

    draw = np.random.default_rng(5)
    labels = {
        "classes": draw.choice([-1.0, 0.0, 1.0, 3.0], (40, 1)),
        "vectors": draw.choice([0.0, 1.0], (40, 5)) * [1, 1, 0.5, 0, 1],
        "one": draw.choice([0.0, 1.0], (40, 1)),
    }[several]
    weights = draw.choice([0.0, 1.0, 5.0], 40) if is_weighted else None
    outputs = 1 if several == "one" else 5
    [computation] = LabelStatisticsMetric().computations(example_weighted=is_weighted)
    counted = [computation.combiner.create_accumulator() for _ in range(2)]
    for place, label in enumerate(labels):
        weight = np.ones(1) if weights is None else weights[[place]]
        row = SimpleNamespace(labels=label, example_weights=weight, predictions=np.ones(outputs))
        computation.combiner.add_input(counted[place % 2], row)
    theirs = computation.combiner.extract_output(computation.combiner.merge_accumulators(counted))
    told = {key.name: value for key, value in theirs.items()}
    asked = Request(
        models=(ModelRequest("", "label", is_baseline=False, weight="w" if is_weighted else ""),),
        slices=((),),
        metrics={"precision": "Precision"},
        label_statistics=True,
    )
    tally = Tally(asked)
    tally.add({}, [Judged(labels, np.ones((40, outputs)), weights)], first=0)
    ours = {name: value for (_, name), value in results(asked, tally)[()].items()}
    for name in ("label_constant_auc", "label_constant_precision"):
        assert (name in ours) is (several != "one")
        assert told.get(name) == pytest.approx(ours.get(name))
    if several != "one":
        assert ours["label_constant_auc"] > 0.5
