"""Tasks as Kubeflow runs them, whose data is in S3 or Azure and whose models are pushed there.

Seen only here: what a compiled pipeline hands these tasks leads to the stores; a rehearsal always
pushes into a folder. The launcher's own store is a folder, as in a rehearsal.
"""

import json
from itertools import islice
from pathlib import Path

import pytest
import yaml
from installed import needed

from slipway.components.pusher.version_store import version_store_at
from slipway.components.s3_and_azure_store import open_store
from slipway.components.saved_model.digest import PROPERTY
from slipway.components.saved_model.digest_files import model_digest
from slipway.pipeline.cloud.complete_job import executor_of
from slipway.pipeline.cloud.container.kubeflow_input import PLACE_VARIABLE
from slipway.pipeline.cloud.executor_input import command_of
from slipway.pipeline.cloud.image_contents import on_this_machine
from slipway.pipeline.cloud.rehearsal.kubeflow import BUCKET, Kubeflow, ObjectStore
from slipway.pipeline.commands.verify import Verified, verify

needed("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = pytest.mark.slow

ROWS = 300


@pytest.fixture
def bucket(object_server):
    return object_server.make_bucket()


@pytest.fixture
def spec(bucket, taxi_csv, cloud_here, project, tmp_path):
    """The taxi workload, compiled for Kubeflow with its data and its models in the bucket."""
    with taxi_csv.open("rb") as data:
        open_store(bucket).put("trips/1.csv", b"".join(islice(data, ROWS + 1)))
    settings = {
        "cloud.image": "registry/slipway:1.0",
        "cloud.root": "minio://mlpipeline/v2/artifacts",
        "cloud.kubeflow.without_baseline": "true",
        "data.source": f"{bucket}/trips/*.csv",
        "push.destination": f"{bucket}/serving/taxi",
    }
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    file = tmp_path / "taxi.yaml"
    finished = cloud_here("compile", "taxi", "--service", "kubeflow", *words, "-o", str(file))
    assert finished.returncode == 0, finished.stderr
    return yaml.safe_load(on_this_machine(file.read_text(), staged=project))


def run(spec, name, done, *, store, place):
    """Run a task's command as the launcher does; `done` gets what the task made."""
    from slipway.pipeline.cloud.container import kubeflow_task

    service = Kubeflow(ObjectStore(store, others=None), with_mlmd=True, place=str(place))
    given = service.inputs(spec, name, done=done, parameters={}, folder=f"{BUCKET}/taxi/{name}")
    service.prepare_task(given)
    words = command_of(executor_of(spec, name)["container"], given)
    kubeflow_task.main(kubeflow_task.parse(words[words.index("-m") + 1 :]))
    output = json.loads(Path(given["outputs"]["outputFile"]).read_text())
    done[name] = {"artifacts": service.collect_outputs(given, output), "parameters": {}}
    service.clean_up()


def made(key, kind, **metadata):
    """What an earlier task made, which the launcher brings from the store's folder of that name."""
    artifact = {"name": key, "artifactId": key, "uri": f"{BUCKET}/taxi/{key}", "metadata": metadata}
    return {"artifacts": {key: [{**artifact, "type": {"schemaTitle": kind}}]}, "parameters": {}}


def test_rows_are_read_from_the_store_and_the_model_is_published_there(spec, bucket, tmp_path, monkeypatch):
    monkeypatch.setenv(PLACE_VARIABLE, "")  # the launcher's, which is set for each task
    store = tmp_path / "store"
    graph = store / "taxi/model/Format-Serving/saved_model.pb"
    graph.parent.mkdir(parents=True)
    graph.write_bytes(b"graph")
    (store / "taxi/blessing").mkdir()
    (store / "taxi/blessing/BLESSED").touch()
    judged = {"current_model": f"{BUCKET}/taxi/model", PROPERTY: model_digest(str(graph.parent))}
    done = {
        "Trainer": made("model", "tfx.Model"),
        "ModelGate": made("blessing", "tfx.ModelBlessing", blessed=1, **judged),
        "SchemaGen": made("schema", "tfx.Schema"),
        "DataGate": made("verdict", "schemas.DataVerdict"),
    }
    for name in ("Ingest", "Pusher"):
        run(spec, name, done, store=store, place=tmp_path / name)

    base = f"{bucket}/serving/taxi"
    [version] = version_store_at(base).numbers()
    [pushed] = done["Pusher"]["artifacts"]["pushed_model"]
    assert pushed["metadata"]["pushed_destination"] == f"{base}/{version}"
    assert list(verify(base)) == [Verified(f"{base}/{version}", "")]
    with version_store_at(base).fetched(version) as folder:
        assert (folder / "saved_model.pb").read_bytes() == b"graph"
    assert version_store_at(base).manifest(version).provenance["data"]["rows_in"] == ROWS
