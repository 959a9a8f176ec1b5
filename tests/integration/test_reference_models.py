"""Reference models of several outputs: each is fitted to its own label, and scored by its own metrics."""

import json
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    # TFX's and TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def test_every_output_has_a_model_of_its_own_and_a_mean_beside_them(tmp_path):
    import tensorflow as tf
    import tensorflow_transform as tft
    from tfx.types.standard_artifacts import TransformGraph

    from slipway.components.reference_models.component import ReferenceModels
    from slipway.pipeline.testing import run_component, tiny_examples

    names = ("x", "sport", "music", "film")
    rows = [
        {"x": [number / 10], "sport": [float(number > 20)], "music": [float(number % 2)], "film": [0.0]}
        for number in range(40)
    ]
    examples = tiny_examples({"train": rows, "eval": rows}, into=tmp_path)
    spec = {name: tf.io.FixedLenFeature([1], tf.float32) for name in names}
    graph = TransformGraph()
    graph.uri = str(tmp_path / "graph")
    schema = tft.DatasetMetadata.from_feature_spec(spec).schema
    folder = Path(graph.uri, tft.TFTransformOutput.TRANSFORMED_METADATA_DIR)
    folder.mkdir(parents=True)
    (folder / "schema.pbtxt").write_text(str(schema), encoding="utf-8")
    labels = {name: name for name in names[1:]}
    made = run_component(
        ReferenceModels,
        into=tmp_path,
        examples=examples,
        transform_graph=graph,
        labels=labels,
        tasks=dict.fromkeys(labels, "classes"),
        metrics={output: {f"{output}/auc": "AUC"} for output in labels},
        means={"auc": [f"{output}/auc" for output in labels]},
        models=["logistic"],
    )
    [found] = json.loads(Path(made["report"].uri, "report.json").read_text(encoding="utf-8")).values()
    assert found["sport/auc"] > 0.99, "the other label is no feature, and does not stand in the way"
    assert found["music/auc"] < 0.7
    assert found["auc"] == pytest.approx((found["sport/auc"] + found["music/auc"]) / 2), (
        "no row has the label film: as in the Evaluator, its area is not in the mean"
    )
