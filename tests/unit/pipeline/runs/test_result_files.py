"""What has become of a result since its node left it."""

import os
from pathlib import Path

import pytest

from slipway.pipeline.runs import result_files as module
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.runs.result_files import file_sizes, kept_files, moved_from, no_longer_kept

NOW_S = 1_800_000_000.0


def artifact(type_name, uri="nowhere", **properties):
    return {"uri": str(uri), "type": type_name, "properties": properties}


def said(outputs, *, files=None, is_doubted=False, output=Path("/nowhere")):
    entry = {"node": "Trainer", "outputs": outputs, "files": files or {}, "made_s": NOW_S}
    return no_longer_kept(entry, output=output, now_s=NOW_S, is_doubted=is_doubted)


@pytest.fixture
def model(tmp_path):
    """A model of one file, that file, and what was kept of it."""
    path = tmp_path / "saved_model.pb"
    path.write_bytes(b"12345")
    outputs = {"model": [artifact("Model", tmp_path)]}
    return outputs, path, kept_files(outputs)


@pytest.fixture
def read(monkeypatch):
    """The files that are read."""
    paths = []
    digests = module.data_digests

    def counting(files, **options):
        files = list(files)
        paths.extend(files)
        return digests(files, **options)

    monkeypatch.setattr(module, "data_digests", counting)
    return paths


def turn_a_byte(path, *, keep_time=False):
    """Damages a file whose size stays."""
    before = path.stat()
    path.write_bytes(b"1X345")
    # Another time than that of the first writing, on whatever clock the file system has.
    later_ns = before.st_mtime_ns + (0 if keep_time else 5_000_000_000)
    os.utime(path, ns=(later_ns, later_ns))


def test_lost_artifact_or_pushed_version_is_named(tmp_path):
    assert said({"model": [artifact("Model", tmp_path)]}) == ""
    assert said({"model": [artifact("Model", tmp_path / "7")]}) == "7 of Model is gone"
    unpushed = artifact("PushedModel", tmp_path, pushed_destination=str(tmp_path / "17"))
    assert said({"m": [unpushed]}) == "17 of PushedModel is gone"


def test_place_that_cannot_be_looked_at_is_as_good_as_gone():
    """A share that is gone gives errors of its own; so does a name that is too long."""
    path = f"/{'too_long' * 99}/17"
    pushed = {"m": [artifact("PushedModel", "/", pushed_destination=path)]}
    assert said(pushed) == "17 of PushedModel is gone"
    assert said({}, files={path: (5, 0, "digest")}) == f"{path} was changed or removed"
    nodes = [NodeRecord("Pusher", outputs=pushed)]
    assert moved_from(RunRecord("run-1", "taxi", nodes=nodes), Path("/nowhere")) is None


def test_moved_output_folder_is_reported_with_where_it_was(tmp_path):
    new, place = tmp_path / "new", "artifacts/taxi/Trainer/model/7"
    model = {"model": [artifact("Model", tmp_path / "old" / place)]}
    assert said(model, output=new) == "7 of Model is gone"
    (new / place).mkdir(parents=True)
    record = RunRecord("1", "taxi", nodes=[NodeRecord("Trainer", "Trainer", outputs=model)])
    assert said(model, output=new) == "its result was moved"
    assert moved_from(record, new) == tmp_path / "old"
    assert moved_from(record, tmp_path / "other") is None
    (tmp_path / "old").symlink_to(new)
    assert said(model, output=new) == "", "a link where it was keeps all results"
    assert moved_from(record, new) is None


def test_artifact_in_a_bucket_is_not_looked_for():
    outputs = {"model": [artifact("Model", "gs://bucket/model")]}
    assert (said(outputs), kept_files(outputs)) == ("", {})


def test_file_that_is_cut_or_gone_is_noticed(model):
    outputs, path, files = model
    assert said(outputs, files=files) == ""
    path.write_bytes(b"123")
    assert said(outputs, files=files) == f"{path} was changed or removed"
    path.unlink()
    assert said(outputs, files=files) == f"{path} was changed or removed"


def test_damage_that_keeps_the_size_is_noticed_and_its_maker_named(model):
    outputs, path, files = model
    turn_a_byte(path)
    assert said(outputs, files=files) == f"{path} is damaged: it is not what Trainer wrote"


def test_damage_that_keeps_size_and_time_is_noticed_where_a_node_failed_at_it(model):
    outputs, path, files = model
    turn_a_byte(path, keep_time=True)
    assert said(outputs, files=files) == ""
    assert said(outputs, files=files, is_doubted=True) == f"{path} is damaged: it is not what Trainer wrote"


def test_unchanged_result_is_known_without_reading_it(model, read):
    outputs, path, files = model
    assert said(outputs, files=files) == ""
    assert read == []
    os.utime(path, (1, 1))  # as a copy has it: looked into, and well
    assert said(outputs, files=files) == ""
    assert read == [path]


def test_version_that_was_pushed_and_a_value_are_looked_at_too(tmp_path):
    for name in ("version", "artifact"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").write_bytes(b"12345")
    pushed = artifact("PushedModel", tmp_path / "artifact", pushed_destination=str(tmp_path / "version"))
    outputs = {"pushed": [pushed], "number": [artifact("Integer", tmp_path / "artifact" / "data")]}
    files = kept_files(outputs)
    assert file_sizes(outputs) == {str(tmp_path / name / "data"): 5 for name in ("version", "artifact")}
    turn_a_byte(tmp_path / "version" / "data")
    assert said(outputs, files=files).startswith(f"{tmp_path}/version/data is damaged")


def test_result_of_a_time_that_is_yet_to_come_is_not_taken():
    entry = {"outputs": {}, "made_s": NOW_S + 3600}
    assert no_longer_kept(entry, output=Path(), now_s=NOW_S) == (
        "it was made at 2027-01-15 09:00:00 UTC, which is in the future by this machine's clock"
    )
    assert no_longer_kept({"outputs": {}, "made_s": NOW_S}, output=Path(), now_s=NOW_S) == ""
