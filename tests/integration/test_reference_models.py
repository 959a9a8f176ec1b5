"""Reference models of several outputs: each is fitted to its own label, and scored by its own metrics."""

import json
import math
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    # TFX's and TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def test_every_output_has_a_model_of_its_own_and_a_mean_beside_them(tmp_path, monkeypatch):
    import tensorflow as tf
    import tensorflow_transform as tft
    from tfx.types.standard_artifacts import TransformGraph

    from slipway.components.errors import ComponentError
    from slipway.components.reference_models.component import ReferenceModels
    from slipway.pipeline.testing import run_component, tiny_examples

    names = ("x", "sport", "music", "film", "weight")
    rows = [
        {
            "x": [number / 10],
            "sport": [float(number > 20)],
            "music": [number % 2.0],
            "film": [0.0],
            "weight": [2.0],
        }
        for number in range(40)
    ]
    # Rows of weight 0 may have any label, or none.
    none = [
        {"x": [0.1], "sport": [label], "music": [label], "film": [label], "weight": [0.0]}
        for label in (-1.0, 1.0, 7.0, math.nan)
    ]
    examples = tiny_examples({"train": none + rows, "eval": rows + none}, into=tmp_path)
    spec = {name: tf.io.FixedLenFeature([1], tf.float32) for name in names}
    graph = TransformGraph()
    graph.uri = str(tmp_path / "graph")
    schema = tft.DatasetMetadata.from_feature_spec(spec).schema
    folder = Path(graph.uri, tft.TFTransformOutput.TRANSFORMED_METADATA_DIR)
    folder.mkdir(parents=True)
    (folder / "schema.pbtxt").write_text(str(schema), encoding="utf-8")
    labels = {name: name for name in names[1:4]}

    def made(into, examples):
        return run_component(
            ReferenceModels,
            into=into,
            examples=examples,
            transform_graph=graph,
            labels=labels,
            tasks=dict.fromkeys(labels, "classes"),
            metrics={output: {f"{output}/auc": "AUC"} for output in labels},
            means={"auc": [f"{output}/auc" for output in labels]},
            models=["logistic"],
            weight="weight",
        )

    [found] = json.loads(
        Path(made(tmp_path, examples)["report"].uri, "report.json").read_text(encoding="utf-8")
    ).values()
    assert found["rows"] == 40
    assert found["sport/auc"] > 0.99, "the other label is no feature, and does not stand in the way"
    assert found["music/auc"] < 0.7
    assert found["auc"] == pytest.approx((found["sport/auc"] + found["music/auc"]) / 2), (
        "no row has the label film: as in the Evaluator, its area is not in the mean"
    )
    masked = [*rows, {**rows[0], "music": [math.nan]}]
    with pytest.raises(ComponentError, match="the label 'music' is nan in 1 of 41 rows of the split train"):
        made(tmp_path / "masked", tiny_examples({"train": masked, "eval": rows}, into=tmp_path / "masked"))
    empty = tiny_examples({"train": rows, "eval": none}, into=tmp_path / "empty")
    with pytest.raises(ComponentError, match="the split eval has no rows whose weight is above 0"):
        made(tmp_path / "empty", empty)
    monkeypatch.setattr("slipway.components.reference_models.component.MAX_ROWS", 20)
    written = Path(made(tmp_path / "some", examples)["report"].uri, "report.json")
    [few] = json.loads(written.read_text(encoding="utf-8")).values()
    assert few["rows"] == 18, "of 20, two weigh nothing"
    assert few["sport/auc"] > 0.99, "rows in the order of this label are taken from all of them"
