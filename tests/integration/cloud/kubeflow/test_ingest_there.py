"""Ingest as a container of Kubeflow Pipelines starts it: with no driver before it."""

import json

import pytest

from slipway.pipeline.cloud.complete_job import component_of, executor_of, tasks_of
from slipway.pipeline.cloud.image import on_this_machine

pytest.importorskip("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = pytest.mark.slow


def test_ingest_needs_no_driver(client, golden, project, tmp_path, monkeypatch):
    from slipway.pipeline.cloud.container import task as container

    text = json.dumps(client.request(golden)["pipelineSpec"])
    spec = json.loads(on_this_machine(text, staged=project))
    parameters = tasks_of(spec)["Ingest"]["inputs"]["parameters"]
    declared = component_of(spec, "Ingest")["outputDefinitions"]["artifacts"]
    made = {
        name: {"artifacts": [{"name": name, "uri": str(tmp_path / name), "type": output["artifactType"]}]}
        for name, output in declared.items()
    }
    given = {
        "inputs": {"parameterValues": {k: v["runtimeValue"]["constant"] for k, v in parameters.items()}},
        "outputs": {"artifacts": made, "outputFile": str(tmp_path / "output.json")},
    }
    words = executor_of(spec, "Ingest")["container"]["args"]
    words = [json.dumps(given) if word == "{{$}}" else word for word in words]
    monkeypatch.chdir(project)
    container.main(container.executor._parse_flags(["container", *words]))
    (examples,) = json.loads((tmp_path / "output.json").read_text())["artifacts"]["examples"]["artifacts"]
    assert json.loads(examples["metadata"]["split_names"]) == ["train", "eval"]
    assert list((tmp_path / "examples" / "Split-train").iterdir())
