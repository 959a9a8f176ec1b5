import json

import pytest

from slipway.pipeline.report.class_names import class_names
from slipway.pipeline.report.page import write_page
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.runs.run_target import NOTHING, RecordedRequest, WorkloadRun

SCHEMA = """feature {{
  name: "{name}" type: INT
  int_domain {{ min: -1 max: {most} is_categorical: {is_categorical} }}
}}"""


def run_of(**config) -> RunRecord:
    target = RecordedRequest(target=WorkloadRun(config=json.dumps(config))) if config else NOTHING
    return RunRecord("run-1", "animals", target=target)


def with_vocabulary(folder, *, vocabulary="kind", name="kind", most=2, is_categorical="true") -> RunRecord:
    """A run whose TransformGraph is as TensorFlow Transform writes it for a vocabulary of three texts."""
    metadata, assets = folder / "transformed_metadata", folder / "transform_fn" / "assets"
    metadata.mkdir(parents=True)
    assets.mkdir(parents=True)
    (metadata / "asset_map").write_text(json.dumps({vocabulary: "vocabulary"}), encoding="utf-8")
    (assets / "vocabulary").write_text("wild cat\nÜ\nape\n", encoding="utf-8")
    schema = SCHEMA.format(name=name, most=most, is_categorical=is_categorical)
    (metadata / "schema.pbtxt").write_text(schema, encoding="utf-8")
    record = run_of(data={"label": "raw kind"}, transform={"label": "kind", "classes": []})
    outputs = {"transform_graph": [{"uri": str(folder), "type": "TransformGraph", "properties": {}}]}
    record.nodes = [NodeRecord("Transform", type="Transform", state="complete", outputs=outputs)]
    return record


def test_the_workload_names_its_classes():
    assert class_names(run_of(transform={"classes": ["stays", "leaves"]})) == ("stays", "leaves")


def test_so_does_the_workload_of_a_rehearsal():
    config = json.dumps({"transform": {"classes": ["stays", "leaves"]}})
    document = {"run_id": "run-1", "workload": "animals", "target": {"config": config, "again": "rehearse"}}
    assert class_names(RunRecord.from_json(document)) == ("stays", "leaves")


@pytest.mark.parametrize("vocabulary", ["kind", "raw kind"])
def test_else_the_vocabulary_of_the_label_does(tmp_path, vocabulary):
    assert class_names(with_vocabulary(tmp_path, vocabulary=vocabulary)) == ("wild cat", "Ü", "ape")


@pytest.mark.parametrize(
    "other",
    [{"vocabulary": "company"}, {"name": "other"}, {"most": 3}, {"is_categorical": "false"}],
    ids=["of another column", "another label", "more codes than texts", "no codes"],
)
def test_a_vocabulary_that_may_not_be_the_labels_names_nothing(tmp_path, other):
    assert class_names(with_vocabulary(tmp_path, **other)) == ()


HEADS = {"label": {"tip": "big_tip", "cost": "cost"}, "classes": {"tip": ["no", "yes"]}}


@pytest.mark.parametrize(
    "record",
    [run_of(), run_of(transform={"label": "kind"}, data={"label": "kind"}), run_of(transform=HEADS)],
    ids=["no workload", "no names", "several outputs, which the page does not draw"],
)
def test_nobody_knows_the_names(record):
    assert class_names(record) == ()


def test_a_damaged_schema_costs_the_names_and_not_the_model(report_run, tmp_path):
    record = report_run()
    record.target = with_vocabulary(tmp_path / "graph").target
    graph = {"uri": str(tmp_path / "graph"), "type": "TransformGraph", "properties": {}}
    record.nodes[0].outputs["transform_graph"] = [graph]
    (tmp_path / "graph" / "transformed_metadata" / "schema.pbtxt").write_text("feature {{", encoding="utf-8")

    text = write_page(record, tmp_path).read_text(encoding="utf-8")

    assert "The names of the classes cannot be shown: ValueError: schema.pbtxt of the TransformGraph" in text
    assert "Model</h2>" in text
