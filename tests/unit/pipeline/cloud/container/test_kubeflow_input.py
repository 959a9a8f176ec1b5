"""Whon Kubeflow's launcher gives a task, as TFX reads it; and back."""

import pytest

from slipway.pipeline.cloud.container.kubeflow_input import ABSENT, for_launcher, for_tfx, local_path

EXAMPLES = {"instanceSchema": "title: tfx.Examples\ntype: object\n"}
MODEL = {"instanceSchema": "title: tfx.Model\ntype: object\n"}
DECLARED = {"artifacts": {"examples": {"artifactType": EXAMPLES}, "baseline": {"artifactType": MODEL}}}
PLACE = "/container"


def given(**examples):
    """A task that takes examples and makes a model."""
    artifact = {"name": "7", "uri": "gs://b/r/examples", "type": {"instanceSchema": ""}, **examples}
    made = {"name": "model", "uri": "gs://b/r/model", "type": MODEL, "metadata": {}}
    return {
        "inputs": {"artifacts": {"examples": {"artifacts": [artifact]}}},
        "outputs": {
            "artifacts": {"model": {"artifacts": [made]}},
            "outputFile": "/container/gcs/b/r/output_metadata.json",
        },
    }


def taken(given):
    [artifact] = for_tfx(given, DECLARED, place=PLACE)["inputs"]["artifacts"]["examples"]["artifacts"]
    return artifact


@pytest.mark.parametrize(
    "sent",
    [
        {"instanceSchema": ""},
        {"schemaTitle": EXAMPLES["instanceSchema"]},
        {},
        {"schemaTitle": "system.Dataset"},
    ],
)
def test_type_is_the_one_that_the_component_declares(sent):
    assert taken(given(type=sent))["type"] == EXAMPLES


def test_type_may_be_missing():
    sent = given()
    del sent["inputs"]["artifacts"]["examples"]["artifacts"][0]["type"]
    assert taken(sent)["type"] == EXAMPLES


def test_artifacts_are_in_the_launcher_s_folders_and_named_by_their_address():
    made = for_tfx(given(), DECLARED, place=PLACE)
    [examples] = made["inputs"]["artifacts"]["examples"]["artifacts"]
    [model] = made["outputs"]["artifacts"]["model"]["artifacts"]
    assert (examples["name"], examples["uri"]) == ("gs://b/r/examples", "/container/gcs/b/r/examples")
    assert (model["name"], model["uri"]) == ("gs://b/r/model", "/container/gcs/b/r/model")
    assert model["type"] == MODEL


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("gs://b/x", "/gcs/b/x"),
        ("s3://b/x", "/s3/b/x"),
        ("minio://b/x", "/minio/b/x"),
        ("/here/x", "/here/x"),
        ("far://b/x", "far://b/x"),
    ],
)
def test_launcher_has_a_folder_for_each_kind_of_store(uri, path):
    assert local_path(uri) == path


def test_metadata_is_what_a_component_gave_and_places_are_in_the_folders():
    sent = {
        "display_name": "examples",
        "store_session_info": "{}",
        "slipway_files": 3.0,
        "slipway_record": "gs://b/records/r.json",
        "splits": {"list": ["train", "eval"]},
        "shape": {"struct": {"a": 1.0}},
        "plain": {"list": [1.0], "more": 2.0},
        "span": 3.0,
        "made_of": "gs://b/r/examples/Split-train",
        "served": "gs://b/r/examples_of_others",
    }
    assert taken(given(metadata=sent))["metadata"] == {
        "splits": ["train", "eval"],
        "shape": {"a": 1.0},
        "plain": {"list": [1.0], "more": 2.0},
        "span": 3.0,
        "made_of": "/container/gcs/b/r/examples/Split-train",
        "served": "gs://b/r/examples_of_others",
    }


def test_input_that_was_not_found_is_left_out():
    sent = given()
    nothing = {"name": "8", "uri": "gs://b/r/nothing", "type": {}, "metadata": {ABSENT: 1.0}}
    sent["inputs"]["artifacts"]["baseline"] = {"artifacts": [nothing]}
    assert set(for_tfx(sent, DECLARED)["inputs"]["artifacts"]) == {"examples"}


def test_log_is_the_launcher_s_own_output():
    sent = given()
    logs = {
        "name": "executor-logs",
        "uri": "gs://b/r/executor-logs",
        "type": {"schemaTitle": "system.Artifact"},
    }
    sent["outputs"]["artifacts"]["executor-logs"] = {"artifacts": [logs]}
    assert set(for_tfx(sent, DECLARED)["outputs"]["artifacts"]) == {"model"}


def test_what_the_launcher_gave_stays_as_it_was_and_may_be_without_inputs():
    sent = given()
    for_tfx(sent, DECLARED, place=PLACE)
    assert sent == given()
    del sent["inputs"]
    assert for_tfx(sent, DECLARED)["inputs"]["artifacts"] == {}


def test_launcher_gets_addresses_and_neither_names_nor_nulls():
    metadata = {"blessed": 1.0, "nothing": None, "model": "/container/gcs/b/r/examples/x", "text": "a"}
    artifact = {"name": "n", "uri": "/container/gcs/b/r/model", "metadata": metadata}
    output = {"artifacts": {"model": {"artifacts": [artifact]}}, "parameterValues": {"rows": 3.0}}
    assert for_launcher(output, given(), place=PLACE) == {
        "artifacts": {
            "model": {
                "artifacts": [
                    {
                        "uri": "gs://b/r/model",
                        "metadata": {"blessed": 1.0, "model": "gs://b/r/examples/x", "text": "a"},
                    }
                ]
            }
        },
        "parameterValues": {"rows": 3.0},
    }
