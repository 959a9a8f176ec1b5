"""Which of the artifacts of earlier runs a later one finds."""

import json
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from slipway.components import s3_and_azure_store
from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.artifact_query import ArtifactQuery
from slipway.pipeline.cloud.container.artifact_records import ArtifactRecords
from slipway.pipeline.cloud.container.kubeflow_input import RECORD

ANY_MODEL = ArtifactQuery('schema_title="tfx.Model" AND state=LIVE')


@pytest.fixture
def records(tmp_path):
    return ArtifactRecords(str(tmp_path / "records"))


@pytest.fixture
def made(records, tmp_path):
    """Makes an artifact in a folder of its own, and keeps its record; returns its folder."""

    def make(name, title="tfx.Model"):
        folder = tmp_path / name
        folder.mkdir()
        uri = str(folder)
        records.keep({"name": uri, "uri": uri, "type": {"schemaTitle": title}, "metadata": {}})
        return folder

    return make


def test_the_latest_that_fits_is_found(records, made):
    assert records.find(ANY_MODEL) is None
    made("first")
    latest = made("second")
    made("third", "tfx.Examples")
    found = records.find(ANY_MODEL)
    assert found["uri"] == str(latest)
    assert json.loads(Path(found["metadata"][RECORD]).read_text())["uri"] == str(latest)


def test_without_a_type_all_are_looked_through(records, made):
    made("first")
    latest = made("second", "tfx.Examples")
    assert records.find(ArtifactQuery("state=LIVE"))["uri"] == str(latest)


def test_an_artifact_that_was_removed_is_not_found(records, made, capsys):
    """Such as by a rule of the bucket that removes what is old."""
    earlier, latest = made("first"), made("second")
    latest.rmdir()
    assert records.find(ANY_MODEL)["uri"] == str(earlier)
    assert f"its artifact {latest} is gone" in capsys.readouterr().err
    earlier.rmdir()
    assert records.find(ANY_MODEL) is None


def test_a_folder_may_replace_the_bucket_of_the_artifacts(tmp_path):
    """In a rehearsal, whose artifacts are at an address that leads nowhere."""
    records = ArtifactRecords(str(tmp_path / "records"), store=str(tmp_path / "store"))
    uri = "minio://bucket/taxi/1/model"
    records.keep({"name": uri, "uri": uri, "type": {"schemaTitle": "tfx.Model"}, "metadata": {}})
    assert records.find(ANY_MODEL) is None
    (tmp_path / "store/taxi/1/model/deep").mkdir(parents=True)
    (tmp_path / "store/taxi/1/model/deep/weights").write_text("2")
    found = records.find(ANY_MODEL)
    assert found["uri"] == uri
    records.fetch(found, tmp_path / "copy")
    assert (tmp_path / "copy/deep/weights").read_text() == "2"


def test_an_artifact_removed_while_it_is_fetched_is_told_in_words(records, made, tmp_path):
    folder = made("first")
    found = records.find(ANY_MODEL)
    folder.rmdir()
    with pytest.raises(ComponentError, match=f"{folder} cannot be copied to "):
        records.fetch(found, tmp_path / "copy")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"uri": "half',
        b"[]",
        b"{}",
        b'{"name": "n", "uri": "/tmp", "type": "tfx.Model", "metadata": {}}',
        b'{"name": "n", "uri": 7, "type": {"schemaTitle": "tfx.Model"}, "metadata": {}}',
        b'{"name": "n", "uri": "/tmp", "type": {"schemaTitle": "tfx.Model"}, "metadata": []}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
    ids=["empty", "half", "list", "no keys", "type", "address", "metadata", "no text", "depth"],
)
def test_a_damaged_record_is_passed_over(records, made, tmp_path, capsys, content):
    kept = made("first")
    damaged = tmp_path / "records/tfx.Model/99999999999999999999-0.json"
    damaged.write_bytes(content)
    assert records.find(ANY_MODEL)["uri"] == str(kept)
    assert f"{damaged} is damaged" in capsys.readouterr().err


def test_a_record_is_whole(records, made, tmp_path):
    made("first")
    (record,) = (tmp_path / "records/tfx.Model").iterdir()
    assert json.loads(record.read_text())["uri"] == str(tmp_path / "first")


@pytest.mark.parametrize("root", ["s3://bucket/root", "minio://bucket/root"])
def test_records_and_their_artifacts_may_be_where_tfx_has_no_file_system(root, tmp_path, monkeypatch, capsys):
    store = MemoryStore()
    monkeypatch.setattr(s3_and_azure_store, "open_store", lambda address: store)
    records = ArtifactRecords(f"{root}/records/taxi")
    assert records.find(ANY_MODEL) is None
    for name, title in (("first", "tfx.Model"), ("second", "tfx.Model"), ("third", "tfx.Examples")):
        uri = f"{root}/{name}"
        store.put(f"root/{name}/file", b"content")
        records.keep({"name": uri, "uri": uri, "type": {"schemaTitle": title}, "metadata": {}})
    found = records.find(ANY_MODEL)
    assert found["uri"] == f"{root}/second"
    records.fetch(found, tmp_path / "copy")
    assert (tmp_path / "copy/file").read_bytes() == b"content"
    assert found["metadata"][RECORD].startswith(f"{root}/records/taxi/tfx.Model/")
    assert records.find(ArtifactQuery("state=LIVE"))["uri"] == f"{root}/third"
    store.delete("root/second/file")
    store.put("root/records/taxi/tfx.Model/99999999999999999999-0.json", b"[]")
    assert records.find(ANY_MODEL)["uri"] == f"{root}/first"
    told = capsys.readouterr().err
    assert f"its artifact {root}/second is gone" in told
    assert f"{root}/records/taxi/tfx.Model/99999999999999999999-0.json is damaged" in told


def test_a_store_that_refuses_is_told_in_words(tmp_path, monkeypatch):
    from tensorflow import errors

    def refuse(*_):
        raise errors.PermissionDeniedError(None, None, "HTTP response code 403")

    records = ArtifactRecords("gs://bucket/records/taxi")
    artifact = {"name": "m", "uri": "gs://b/m", "type": {"schemaTitle": "tfx.Model"}, "metadata": {}}
    module = "slipway.pipeline.cloud.container.artifact_records"
    monkeypatch.setattr(f"{module}.fileio.exists", refuse)
    monkeypatch.setattr(f"{module}.fileio.makedirs", refuse)
    monkeypatch.setattr(f"{module}.io_utils.copy_dir", refuse)
    with pytest.raises(ComponentError, match=r"looked for in gs://bucket/records/taxi: HTTP .* 403"):
        records.find(ANY_MODEL)
    with pytest.raises(ComponentError, match=r"no record of gs://b/m can be kept in gs://bucket/re.* 403"):
        records.keep(artifact)
    with pytest.raises(ComponentError, match=r"gs://b/m cannot be copied to .* 403") as refused:
        records.fetch(artifact, tmp_path)
    assert "the task's account" in refused.value.hint
