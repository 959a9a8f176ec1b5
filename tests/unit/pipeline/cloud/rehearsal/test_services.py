"""Vertex AI's way with a task: artifacts stay where they are."""

from slipway.pipeline.cloud.rehearsal.services import Service


def test_folder_of_the_output_file_is_made_and_metadata_added(tmp_path):
    artifact = {"name": "n", "uri": "/x", "type": {"schemaTitle": "tfx.Model"}, "metadata": {"a": 1}}
    given = {
        "inputs": {"artifacts": {}, "parameterValues": {}},
        "outputs": {
            "artifacts": {"model": {"artifacts": [artifact]}},
            "parameters": {},
            "outputFile": f"{tmp_path}/task/output.json",
        },
    }
    Service().prepare_task(given)
    assert (tmp_path / "task").is_dir()
    output = {"artifacts": {"model": {"artifacts": [{"metadata": {"b": 2}}]}}}
    [model] = Service().collect_outputs(given, output)["model"]
    assert (model["uri"], model["metadata"]) == ("/x", {"a": 1, "b": 2})


def test_file_on_gs_needs_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Service().prepare_task({"outputs": {"outputFile": "gs://bucket/task/output.json"}})
    assert list(tmp_path.iterdir()) == []
