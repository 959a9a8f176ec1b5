"""Retiring and setting a baseline, in a real metadata store and for TFX's own resolver."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from slipway.pipeline.config import load_workload
from slipway.pipeline.errors import UsageError
from slipway.pipeline.plan.baseline_changes import (
    clear_baseline,
    retired_blessings,
    set_baseline,
    show_baseline,
)
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord


@pytest.fixture(scope="module")
def config(project):
    return load_workload(project / "workloads/taxi/workload.yaml", root=project)


@pytest.fixture
def output(tmp_path):
    """An output folder with three runs of taxi and one of digits, each of which blessed a model."""
    import ml_metadata as mlmd
    from ml_metadata.proto import metadata_store_pb2 as types

    connection = types.ConnectionConfig()
    connection.sqlite.filename_uri = str(tmp_path / "metadata.db")
    connection.sqlite.connection_mode = 3  # READWRITE_OPENCREATE
    store = mlmd.MetadataStore(connection)
    kinds = {n: store.put_artifact_type(types.ArtifactType(name=n)) for n in ("Model", "ModelBlessing")}
    pipeline = store.put_context_type(types.ContextType(name="pipeline"))
    history = History(tmp_path)
    contexts = {}
    for number, workload in enumerate(["taxi", "taxi", "digits", "taxi"], start=1):
        if workload not in contexts:
            context = types.Context(type_id=pipeline, name=workload)
            [contexts[workload]] = store.put_contexts([context])
        folder = tmp_path / f"model-{number}"
        folder.mkdir()
        [model] = store.put_artifacts([types.Artifact(type_id=kinds["Model"], uri=str(folder))])
        blessing = types.Artifact(type_id=kinds["ModelBlessing"], uri=f"blessing-{number}")
        blessing.custom_properties["blessed"].int_value = 1
        blessing.custom_properties["current_model_id"].int_value = model
        blessing.custom_properties["current_model"].string_value = str(folder)
        [judged] = store.put_artifacts([blessing])
        links = [types.Attribution(context_id=contexts[workload], artifact_id=a) for a in (model, judged)]
        store.put_attributions_and_associations(links, [])
        run = history.new_run(workload, run_id=f"run-{number}")
        made = {"uri": f"blessing-{number}", "type": "ModelBlessing", "properties": {"blessed": 1}}
        run.nodes = [NodeRecord("ModelGate", type="ModelGate", outputs={"blessing": [made]})]
        run.blessed, run.state = True, "complete"
        history.save(run)
    return tmp_path


def resolved(output):
    """What TFX's strategy finds for taxi: it compares `current_model_id` with the models' ids."""
    import ml_metadata as mlmd
    from ml_metadata.proto import metadata_store_pb2 as types

    connection = types.ConnectionConfig()
    connection.sqlite.filename_uri = str(output / "metadata.db")
    store = mlmd.MetadataStore(connection)
    context = store.get_context_by_type_and_name("pipeline", "taxi")
    artifacts = store.get_artifacts_by_context(context.id)
    blessed = {
        a.custom_properties["current_model_id"].int_value
        for a in artifacts
        if a.type == "ModelBlessing" and a.custom_properties["blessed"].int_value == 1
    }
    models = sorted((a for a in artifacts if a.type == "Model"), key=lambda a: -a.id)
    return next((Path(model.uri).name for model in models if model.id in blessed), None)


def run_of(output, name):
    return History(output).find(name)


def test_latest_blessed_model_is_the_baseline(output):
    found = show_baseline("taxi", output)
    assert found.run.run_id == "run-4"
    assert resolved(output) == "model-4"
    assert found.text().startswith("taxi: the model of run run-4")


def test_all_blessings_are_retired_in_one_transaction(output, config, monkeypatch):
    """Killed between two of them, neither the old nor the new baseline would be found."""
    import ml_metadata as mlmd

    written, put = [], mlmd.MetadataStore.put_artifacts

    def counted(store, artifacts):
        written.append(len(artifacts))
        return put(store, artifacts)

    monkeypatch.setattr(mlmd.MetadataStore, "put_artifacts", counted)
    set_baseline(config, output, run_of(output, "run-1"), reason="")
    assert written == [3]
    assert resolved(output) == "model-1"


def test_cleared_baseline_leaves_none_and_tells_when_and_why(output, config):
    found = clear_baseline(config, output, reason="the columns changed")
    assert found.run is None
    assert resolved(output) is None
    assert show_baseline("digits", output).run.run_id == "run-3", "other workloads keep theirs"
    lines = found.text().splitlines()
    assert lines[0] == "taxi: no baseline. The next blessed model will be it."
    assert lines[1].endswith("cleared: the columns changed")


@pytest.mark.parametrize("cleared", [False, True])
def test_model_of_an_earlier_run_becomes_the_baseline(output, config, cleared):
    if cleared:
        clear_baseline(config, output, reason="")
    found = set_baseline(config, output, run_of(output, "run-2"), reason="the last sound one")
    assert found.run.run_id == "run-2"
    assert resolved(output) == "model-2"
    assert found.to_json()["changes"][-1]["run_id"] == "run-2"
    back = set_baseline(config, output, run_of(output, "run-4"), reason="")
    assert back.run.run_id == "run-4"
    assert resolved(output) == "model-4"


def test_run_that_cannot_be_the_baseline_is_refused_and_nothing_changes(output, config):
    with pytest.raises(UsageError, match="is a run of digits"):
        set_baseline(config, output, run_of(output, "run-3"), reason="")
    (output / "model-1").rmdir()
    with pytest.raises(UsageError, match=r"The model of run run-1 is gone: .*model-1 was removed"):
        set_baseline(config, output, run_of(output, "run-1"), reason="")
    assert resolved(output) == "model-4"
    assert retired_blessings(output, "taxi") == frozenset()


def test_folder_without_runs_has_no_baseline_to_clear(tmp_path, config):
    assert show_baseline("taxi", tmp_path).run is None
    with pytest.raises(UsageError, match="holds no metadata store"):
        clear_baseline(config, tmp_path, reason="")


def test_store_of_another_version_of_ml_metadata_is_refused_and_nothing_is_recorded(config, output):
    with closing(sqlite3.connect(output / "metadata.db")) as database, database:
        database.execute("UPDATE MLMDEnv SET schema_version = 99")
    with pytest.raises(UsageError, match=r"store cannot be used: .* version 99 is greater") as told:
        clear_baseline(config, output, reason="why")
    assert told.value.hint.startswith("use the version of ML Metadata that wrote it")
    assert not (output / "baselines").exists()
