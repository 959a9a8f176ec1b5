"""Whon Kubeflow's driver gives a task, for each kind of artifact and parameter; what its launcher brings."""

import os
import shutil
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from slipway.components import s3_and_azure_store
from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.container.kubeflow_input import PLACE_VARIABLE, STORE_VARIABLE
from slipway.pipeline.cloud.rehearsal.kubeflow import BUCKET, Kubeflow, ObjectStore, RemoteStore

EXAMPLES = {"instanceSchema": "title: tfx.Examples\ntype: object\n"}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv(PLACE_VARIABLE, "")
    monkeypatch.setenv(STORE_VARIABLE, "")
    return tmp_path / "container"


class Elsewhere:
    """Files at gs://, which are in a folder."""

    def __init__(self, folder):
        self.folder = folder

    def at(self, address):
        return self.folder / address.removeprefix("gs://")

    def exists(self, address):
        return self.at(address).exists()

    def take(self, address):
        text = self.at(address).read_text()
        self.at(address).unlink()
        return text

    def fetch(self, address, folder):
        shutil.copytree(self.at(address), folder)


@pytest.fixture
def store(tmp_path):
    return ObjectStore(tmp_path / "store", others=Elsewhere(tmp_path / "gs"))


@pytest.fixture(params=[True, False], ids=["mlmd", "without-mlmd"])
def with_mlmd(request):
    return request.param


@pytest.fixture
def kubeflow(store, place):
    return lambda with_mlmd=True: Kubeflow(store, with_mlmd=with_mlmd, place=str(place))


def spec_of(parameters=None, *, values=None, examples=EXAMPLES):
    """Ingest makes examples; Trainer takes them and parameters, and makes a model and a number."""
    values = {key: {"runtimeValue": {"constant": value}} for key, value in (values or {}).items()}
    output = {"producerTask": "Ingest", "outputArtifactKey": "examples"}
    return {
        "components": {
            "Ingest": {"outputDefinitions": {"artifacts": {"examples": {"artifactType": examples}}}},
            "Trainer": {
                "inputDefinitions": {
                    "artifacts": {"examples": {"artifactType": examples}},
                    "parameters": parameters or {},
                },
                "outputDefinitions": {
                    "artifacts": {
                        "model": {"artifactType": {"schemaTitle": "tfx.Model"}, "metadata": {"a": 1}}
                    },
                    "parameters": {"loss": {"parameterType": "NUMBER_DOUBLE"}},
                },
            },
        },
        "root": {
            "dag": {
                "tasks": {
                    "Ingest": {"componentRef": {"name": "Ingest"}},
                    "Trainer": {
                        "componentRef": {"name": "Trainer"},
                        "inputs": {
                            "artifacts": {"examples": {"taskOutputArtifact": output}},
                            "parameters": values,
                        },
                    },
                }
            }
        },
    }


def trainer(service, spec, *, root=BUCKET, **artifact):
    recorded = {
        "name": "examples",
        "artifactId": "41",
        "uri": f"{root}/p/1/Ingest/e",
        "type": EXAMPLES,
        "metadata": {"span": 3.0, "splits": ["train"], "ok": True, "more": {"a": 1.0}},
        **artifact,
    }
    done = {"Ingest": {"artifacts": {"examples": [recorded]}, "parameters": {}}}
    return service.inputs(spec, "Trainer", done=done, parameters={}, folder=f"{root}/p/1/Trainer_1")


def test_driver_knows_no_type_where_ml_metadata_keeps_the_artifacts(kubeflow):
    [examples] = trainer(kubeflow(), spec_of())["inputs"]["artifacts"]["examples"]["artifacts"]
    assert examples == {
        "name": "41",
        "uri": f"{BUCKET}/p/1/Ingest/e",
        "type": {"instanceSchema": ""},
        "metadata": {
            "display_name": "examples",
            "store_session_info": "{}",
            "span": 3.0,
            "splits": {"list": ["train"]},
            "ok": 1.0,
            "more": {"struct": {"a": 1.0}},
        },
    }


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        (EXAMPLES, EXAMPLES["instanceSchema"]),
        ({"schemaTitle": "tfx.Model"}, "tfx.Model"),
        ({"schemaTitle": "system.Dataset"}, "Dataset"),
    ],
)
def test_without_ml_metadata_the_title_is_the_schema_or_a_name_of_kubeflows_own(kubeflow, kind, title):
    [examples] = trainer(kubeflow(with_mlmd=False), spec_of(), type=kind)["inputs"]["artifacts"]["examples"][
        "artifacts"
    ]
    assert examples["type"] == {"schemaTitle": title}
    assert (examples["name"], examples["artifactId"]) == ("examples", "41")
    assert examples["metadata"] == {"span": 3.0, "splits": ["train"], "ok": True, "more": {"a": 1.0}}


def test_outputs_are_named_by_their_keys_below_a_folder_that_is_new_each_time(kubeflow, place, with_mlmd):
    one, other = (trainer(kubeflow(with_mlmd), spec_of())["outputs"] for _ in range(2))
    [model] = one["artifacts"]["model"]["artifacts"]
    assert (model["name"], model["metadata"]) == ("model", {"a": 1})
    folder, _, key = model["uri"].rpartition("/")
    assert key == "model"
    assert folder.startswith(f"{BUCKET}/p/1/Trainer_1/")
    assert other["artifacts"]["model"]["artifacts"][0]["uri"] != model["uri"]
    assert one["outputFile"] == folder.replace("minio://", f"{place}/minio/") + "/output_metadata.json"
    [logs] = one["artifacts"]["executor-logs"]["artifacts"]
    assert (logs["type"], logs["uri"]) == ({"schemaTitle": "system.Artifact"}, f"{folder}/executor-logs")
    assert one["parameters"]["loss"]["outputFile"].startswith(f"{place}/")


@pytest.mark.parametrize(
    ("kind", "value", "given"),
    [
        ("STRING", "a", "a"),
        ("STRING", 6.0, "6"),
        ("STRING", 0.5, "0.5"),
        ("STRING", True, "true"),
        ("STRING", ["a"], '["a"]'),
        ("STRING", {"a": 1}, '{"a": 1}'),
        ("STRING", None, ""),
        ("NUMBER_INTEGER", 6.0, 6.0),
        ("NUMBER_DOUBLE", 0.5, 0.5),
        ("BOOLEAN", True, True),
        ("LIST", [1.0], [1.0]),
        ("STRUCT", {"a": 1.0}, {"a": 1.0}),
    ],
)
def test_parameter_is_handed_over_and_any_becomes_text_where_text_is_declared(kubeflow, kind, value, given):
    made = trainer(kubeflow(), spec_of({"p": {"parameterType": kind}}, values={"p": value}))
    assert made["inputs"]["parameterValues"] == {"p": given}


@pytest.mark.parametrize(
    ("kind", "value"),
    [("NUMBER_INTEGER", "6"), ("NUMBER_DOUBLE", True), ("BOOLEAN", 1.0), ("LIST", "[]"), ("STRUCT", [])],
)
def test_parameter_of_another_type_is_refused(kubeflow, kind, value):
    with pytest.raises(ComponentError, match=rf"Trainer\.p is a {kind}, and its value .* is not"):
        trainer(kubeflow(), spec_of({"p": {"parameterType": kind}}, values={"p": value}))


def test_parameter_without_a_value_needs_a_default_or_to_be_optional(kubeflow):
    for declared in ({"isOptional": True}, {"defaultValue": 1}):
        assert trainer(kubeflow(), spec_of({"p": declared}))["inputs"]["parameterValues"] == {}
    with pytest.raises(ComponentError, match="Trainer gets no value for its parameter 'p'"):
        trainer(kubeflow(), spec_of({"p": {}}))


def test_launcher_brings_inputs_and_uploads_files_that_the_task_leaves(kubeflow, place, store, with_mlmd):
    there = place.parent / "store" / "p/1/Ingest/e"
    there.mkdir(parents=True)
    (there / "rows").write_text("1")
    service = kubeflow(with_mlmd)
    given = trainer(service, spec_of())
    service.prepare_task(given)
    assert os.environ[PLACE_VARIABLE] == str(place)
    assert os.environ[STORE_VARIABLE] == str(place.parent / "store")
    assert place.stat().st_mode & 0o777 == 0o700
    assert (place / "minio/rehearsal/p/1/Ingest/e/rows").read_text() == "1"
    assert Path(given["outputs"]["parameters"]["loss"]["outputFile"]).parent.is_dir()
    uri = given["outputs"]["artifacts"]["model"]["artifacts"][0]["uri"]
    here = place / uri.replace("minio://", "minio/")
    assert here.parent.is_dir()
    (here / "deep").mkdir(parents=True)
    (here / "deep" / "weights").write_text("2")
    (here / "empty").mkdir()
    output = {"artifacts": {"model": {"artifacts": [{"metadata": {"b": 2.0}}]}}}
    made = service.collect_outputs(given, output)
    assert set(made) == {"model"}, "and no log"
    [model] = made["model"]
    assert (model["uri"], model["metadata"]) == (uri, {"a": 1, "b": 2.0})
    assert model["artifactId"].isdigit()
    assert store.take(f"{uri}/deep/weights") == "2"
    assert not (place.parent / "store" / uri.removeprefix(f"{BUCKET}/") / "empty").exists()
    service.clean_up()
    assert not place.exists(), "the container is gone"


def test_launcher_brings_and_uploads_by_a_real_store_in_the_folders_of_its_scheme(
    place, tmp_path, monkeypatch
):
    memory = MemoryStore()
    monkeypatch.setattr(s3_and_azure_store, "open_store", lambda address: memory)
    memory.put("p/1/Ingest/e/rows", b"1")
    store = RemoteStore(others=Elsewhere(tmp_path / "gs"))
    service = Kubeflow(store, with_mlmd=True, place=str(place))
    given = trainer(service, spec_of(), root="s3://bucket")
    service.prepare_task(given)
    assert os.environ[STORE_VARIABLE] == "", "the look-up opens the store itself"
    assert (place / "s3/bucket/p/1/Ingest/e/rows").read_text() == "1"
    uri = given["outputs"]["artifacts"]["model"]["artifacts"][0]["uri"]
    here = place / uri.replace("s3://", "s3/")
    here.mkdir()
    (here / "weights").write_text("2")
    service.collect_outputs(given, {"artifacts": {}})
    assert store.exists(uri)
    store.fetch(uri, tmp_path / "copy")
    assert (tmp_path / "copy/weights").read_text() == "2"
    assert (store.take(f"{uri}/weights"), store.take(f"{uri}/weights")) == ("2", None)
    (tmp_path / "gs/b").mkdir(parents=True)
    (tmp_path / "gs/b/x").write_text("3")
    assert (store.exists("gs://b"), store.take("gs://b/x")) == (True, "3")


def test_output_that_is_not_in_its_folder_is_an_error_only_without_ml_metadata(kubeflow):
    service = kubeflow()
    assert service.collect_outputs(trainer(service, spec_of()), {})["model"]
    service = kubeflow(with_mlmd=False)
    with pytest.raises(ComponentError, match="launcher misses the output model"):
        service.collect_outputs(trainer(service, spec_of()), {})


def test_output_at_an_address_of_another_run_is_refused_where_ml_metadata_knows_the_run(kubeflow, place):
    for uri in (f"{BUCKET}/p/0/Trainer_1/a/model", f"{BUCKET}/p/10/model"):
        output = {"artifacts": {"model": {"artifacts": [{"uri": uri, "metadata": {}}]}}}
        service = kubeflow()
        with pytest.raises(ComponentError, match=f"refuses the output model: {uri} is not below .*p/1"):
            service.collect_outputs(trainer(service, spec_of()), output)
        service = kubeflow(with_mlmd=False)
        (place / uri.replace("minio://", "minio/")).mkdir(parents=True)
        [model] = service.collect_outputs(trainer(service, spec_of()), output)["model"]
        assert model["uri"] == uri


def test_null_in_metadata_is_refused_by_ml_metadata(kubeflow):
    service = kubeflow()
    output = {"artifacts": {"model": {"artifacts": [{"metadata": {"why": None}}]}}}
    with pytest.raises(ComponentError, match=r"refuses nulls in metadata: model\.why"):
        service.collect_outputs(trainer(service, spec_of()), output)


def test_equal_tasks_are_reported_by_what_they_take_and_not_by_where_they_write(kubeflow, with_mlmd):
    service, spec = kubeflow(with_mlmd), spec_of()
    component, container = spec["components"]["Trainer"], {"image": "i:1", "args": ["{{$}}"]}
    key = service.cache_key(component, container, trainer(service, spec))
    assert service.cache_key(component, container, trainer(service, spec)) == key
    others = [
        service.cache_key(component, {**container, "image": "i:2"}, trainer(service, spec)),
        service.cache_key(component, {**container, "args": []}, trainer(service, spec)),
        service.cache_key(component, container, trainer(service, spec, artifactId="42")),
        service.cache_key(component, container, trainer(service, spec_of(values={"p": 1}))),
    ]
    assert len({key, *others}) == 5


def test_what_is_not_in_the_store_is_nothing(store, tmp_path):
    assert store.take(f"{BUCKET}/x") is None
    assert not store.exists(f"{BUCKET}/x")
    store.fetch(f"{BUCKET}/x", tmp_path / "here")
    assert not (tmp_path / "here").exists()
    (tmp_path / "store").mkdir()
    (tmp_path / "store/x").write_text("once")
    assert (store.take(f"{BUCKET}/x"), store.take(f"{BUCKET}/x")) == ("once", None)


def test_other_stores_are_read_where_they_are(store, tmp_path):
    there = tmp_path / "gs/bucket/schema"
    there.mkdir(parents=True)
    (there / "schema.pbtxt").write_text("feature {}")
    assert store.exists("gs://bucket/schema")
    store.fetch("gs://bucket/schema", tmp_path / "here")
    assert (tmp_path / "here/schema.pbtxt").is_file()
    assert store.take("gs://bucket/schema/schema.pbtxt") == "feature {}"
    assert not (there / "schema.pbtxt").exists()


def importing(service, uri, **importer):
    spec = spec_of()
    given = service.inputs(spec, "Ingest", done={}, parameters={}, folder=f"{BUCKET}/p/1/Ingest_1")
    return service.imported(given, uri, {"artifactUri": {"constant": uri}, **importer})


def test_importer_makes_one_artifact_and_no_log_the_same_each_time(kubeflow, tmp_path, with_mlmd):
    (tmp_path / "gs/bucket/e").mkdir(parents=True)
    service = kubeflow(with_mlmd)
    made = importing(service, "gs://bucket/e", metadata={"span": 3.0})
    assert made.keys() == {"examples"}
    [examples] = made["examples"]
    assert (examples["uri"], examples["metadata"]) == ("gs://bucket/e", {"span": 3.0})
    again, anew = (importing(service, "gs://bucket/e", reimport=flag) for flag in (False, True))
    assert again["examples"][0]["artifactId"] == examples["artifactId"] != anew["examples"][0]["artifactId"]
    [taken] = trainer(service, spec_of(), **examples)["inputs"]["artifacts"]["examples"]["artifacts"]
    assert taken["uri"] == "gs://bucket/e"


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("/here/e", "object store, and a rehearsal reaches gs:// only"),
        ("gs://bucket/e", "is nothing"),
    ],
)
def test_importer_of_what_the_launcher_would_not_bring_is_refused(kubeflow, uri, words):
    with pytest.raises(ComponentError, match=words):
        importing(kubeflow(), uri)
