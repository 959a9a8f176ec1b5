"""What a task is given, and its command."""

import json

import pytest

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.complete_job import title_of
from slipway.pipeline.cloud.executor_input import (
    apply_executor_output,
    check_wiring,
    command_of,
    executor_input,
    filled,
)

EXAMPLES = {"instanceSchema": "title: tfx.Examples\ntype: object\n"}
MODEL = {"schemaTitle": "tfx.Model"}


@pytest.fixture
def spec():
    """Ingest puts out examples and a number of rows; Trainer takes both, and a runtime parameter."""
    return {
        "components": {
            "Ingest": {
                "outputDefinitions": {
                    "artifacts": {"examples": {"artifactType": EXAMPLES, "metadata": {"span": 3.0}}},
                    "parameters": {"rows": {}},
                }
            },
            "Trainer": {
                "inputDefinitions": {
                    "artifacts": {"examples": {"artifactType": EXAMPLES}},
                    "parameters": {"epochs": {"parameterType": "NUMBER_INTEGER"}},
                }
            },
        },
        "root": {
            "dag": {
                "tasks": {
                    "Ingest": {"componentRef": {"name": "Ingest"}},
                    "Trainer": {
                        "componentRef": {"name": "Trainer"},
                        "inputs": {
                            "artifacts": {
                                "examples": {
                                    "taskOutputArtifact": {
                                        "producerTask": "Ingest",
                                        "outputArtifactKey": "examples",
                                    }
                                }
                            },
                            "parameters": {
                                "epochs": {"runtimeValue": {"constant": 6.0}},
                                "rows": {
                                    "taskOutputParameter": {
                                        "producerTask": "Ingest",
                                        "outputParameterKey": "rows",
                                    }
                                },
                                "rate": {"componentInputParameter": "learning_rate"},
                            },
                        },
                    },
                }
            }
        },
    }


@pytest.fixture
def trainer(spec):
    """What Trainer is given."""
    artifact = {"name": "a/1", "uri": "/x", "type": EXAMPLES, "metadata": {"span": 3.0}}
    done = {"Ingest": {"artifacts": {"examples": [artifact]}, "parameters": {"rows": 15.0}}}
    return executor_input(spec, "Trainer", done=done, parameters={"learning_rate": 0.1}, folder="/run/T_1")


def task(spec, name):
    return spec["root"]["dag"]["tasks"][name]


def test_task_gets_artifacts_and_parameters_from_everywhere(trainer):
    assert trainer["inputs"]["parameterValues"] == {"epochs": 6.0, "rows": 15.0, "rate": 0.1}
    assert trainer["inputs"]["artifacts"]["examples"]["artifacts"][0]["name"] == "a/1"
    assert trainer["outputs"]["outputFile"] == "/run/T_1/executor_output.json"


def test_outputs_have_places_names_types_and_the_metadata_that_the_job_says(spec):
    given = executor_input(spec, "Ingest", done={}, parameters={}, folder="/run/I_1")
    [made] = given["outputs"]["artifacts"]["examples"]["artifacts"]
    assert (made["uri"], made["type"], made["metadata"]) == ("/run/I_1/examples", EXAMPLES, {"span": 3.0})
    other = executor_input(spec, "Ingest", done={}, parameters={}, folder="/run/I_2")
    assert other["outputs"]["artifacts"]["examples"]["artifacts"][0]["name"] != made["name"]
    assert given["outputs"]["parameters"] == {"rows": {"outputFile": "/run/I_1/parameters/rows"}}


def test_runtime_parameter_without_a_value_is_refused(spec):
    done = {"Ingest": {"artifacts": {}, "parameters": {"rows": 1.0}}}
    with pytest.raises(ComponentError, match=r"runtime parameter .* has no value \(Trainer.rate"):
        executor_input(spec, "Trainer", done=done, parameters={}, folder="/t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("{{$.inputs.parameters['epochs']}}", "6.0"),
        ("a={{$.inputs.artifacts['examples'].uri}}/b", "a=/x/b"),
        ("{{$.inputs.artifacts['examples'].metadata['span']}}", "3.0"),
        ("{{$.inputs.artifacts['examples'].name}}", "a/1"),
    ],
)
def test_placeholders_are_filled_in(trainer, text, expected):
    assert filled(text, trainer) == expected


def test_whole_input_is_json(trainer):
    assert json.loads(filled("{{$}}", trainer)) == trainer
    assert command_of({"command": ["python"], "args": ["{{$}}"]}, trainer)[0] == "python"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{$.inputs.parameters['epoch']}}", "names a value that the task does not get"),
        ("{{$.inputs.artifacts['model'].uri}}", "names a value that the task does not get"),
        ("{{$.inputs.artifacts['examples'].metadata['x']}}", "names a value that the task does not get"),
        ("{{$.pipeline_job_name}}", "cannot be filled in here"),
    ],
)
def test_placeholder_that_does_not_resolve_is_refused(trainer, text, words):
    with pytest.raises(ComponentError, match=words):
        filled(text, trainer)


def test_driver_s_output_reaches_the_executor(trainer):
    trainer["outputs"]["artifacts"] = {"m": {"artifacts": [{"uri": "/old", "metadata": {"a": 1}}]}}
    output = {
        "artifacts": {"m": {"artifacts": [{"uri": "/new", "metadata": {"b": 2}}]}},
        "parameterValues": {"epochs": 7},
    }
    apply_executor_output(trainer, output)
    assert trainer["outputs"]["artifacts"]["m"]["artifacts"] == [
        {"uri": "/new", "metadata": {"a": 1, "b": 2}}
    ]
    assert trainer["inputs"]["parameterValues"]["epochs"] == 7


def test_well_wired_job_has_nothing_to_tell(spec):
    assert list(check_wiring(spec)) == []


def test_wrong_types_and_names_are_reported_before_anything_runs(spec):
    inputs = task(spec, "Trainer")["inputs"]
    inputs["parameters"]["epochs"]["runtimeValue"]["constant"] = "six"
    inputs["parameters"]["rows"]["taskOutputParameter"]["producerTask"] = "Ingest_task"
    spec["components"]["Ingest"]["outputDefinitions"]["artifacts"]["examples"]["artifactType"] = MODEL
    assert list(check_wiring(spec)) == [
        "Trainer.examples is a tfx.Examples, and Ingest.examples a tfx.Model",
        "Trainer.epochs is a NUMBER_INTEGER, and its value 'six' is not",
        "Trainer.rows comes from Ingest_task, which is not a task",
    ]
    inputs["artifacts"]["examples"]["taskOutputArtifact"]["outputArtifactKey"] = "rows"
    assert (
        next(check_wiring(spec)) == "Trainer.examples comes from Ingest.rows, which Ingest does not produce"
    )


def test_titles_of_both_forms_of_a_type():
    assert (title_of(EXAMPLES), title_of(MODEL), title_of({})) == (
        "tfx.Examples",
        "tfx.Model",
        "tfx.Artifact",
    )
