"""RunRecord and write_json: a record survives JSON; a file is the old one or the new one, never between."""

import io
import json
import os
from pathlib import Path

import pytest

from slipway.pipeline.runs.record import NodeRecord, RunRecord, artifacts_in, write_json


def test_a_record_is_the_same_after_json():
    node = NodeRecord(
        "A", state="failed", error={"message": "m", "hint": "", "where": "f.py:1"}, outputs={"k": []}
    )
    record = RunRecord("20260101-000000-aaaa", "toy", nodes=[node], metrics={"auc": 0.9})
    assert RunRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_keys_of_a_later_version_are_left_out():
    document = RunRecord("r", "toy", nodes=[NodeRecord("A")]).to_json()
    document["later"] = 1
    document["nodes"][0]["later"] = 1
    assert RunRecord.from_json(document).node("A").id == "A"


def test_a_node_that_is_not_there_is_a_key_error():
    with pytest.raises(KeyError, match="B"):
        RunRecord("r", "toy", nodes=[NodeRecord("A")]).node("B")


def test_outputs_of_a_run_are_those_of_its_nodes_that_are_done_and_of_no_resolver():
    model, other = ({"uri": name, "type": name, "properties": {}} for name in ("Model", "Other"))
    outputs = {"models": [model, model], "other": [other]}
    nodes = [NodeRecord(state, state=state, outputs=outputs) for state in ("complete", "cached", "failed")]
    nodes.append(NodeRecord("found", type="Resolver", state="complete", outputs=outputs))
    found = list(RunRecord("r", "toy", nodes=nodes).outputs_of("Model"))
    assert [(node.id, artifact) for node, artifact in found] == [
        ("complete", model), ("complete", model), ("cached", model), ("cached", model),
    ]  # fmt: skip
    assert [node.makes("Model") for node in nodes] == [True, True, True, False]
    assert not nodes[0].makes("Examples")
    assert list(artifacts_in(outputs)) == [model, model, other]


class _FullDisk(io.StringIO):
    def write(self, text):
        raise OSError(28, "No space left on device")

    def fileno(self):
        return 0


def _fail(*_args, **_kwargs):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", ["open", "write", "fsync", "replace"])
def test_a_full_disk_at_any_step_leaves_the_old_file_and_no_other(step, tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    write_json(path, {"old": True})
    with monkeypatch.context() as patch:
        if step == "open":
            patch.setattr(Path, "open", _fail)
        elif step == "write":
            patch.setattr(Path, "open", lambda *_args, **_kwargs: _FullDisk())
        elif step == "fsync":
            patch.setattr(os, "fsync", _fail)
        else:
            patch.setattr(Path, "replace", _fail)
        with pytest.raises(OSError, match="No space left") as caught:
            write_json(path, {"new": True})
    assert caught.value.filename == str(path), "which disk is full, of all that a machine has"
    assert json.loads(path.read_text()) == {"old": True}
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_an_interrupt_while_writing_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    write_json(path, {"old": True})

    def interrupt(_descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_json(path, {"new": True})
    assert json.loads(path.read_text()) == {"old": True}
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_a_process_with_the_same_id_as_in_another_container_may_write_at_the_same_time(tmp_path, monkeypatch):
    path, fsync = tmp_path / "run.json", os.fsync

    def beside(descriptor):
        fsync(descriptor)
        monkeypatch.setattr(os, "fsync", fsync)
        write_json(path, {"by": "the other"})

    monkeypatch.setattr(os, "fsync", beside)
    write_json(path, {"by": "this one"})
    assert json.loads(path.read_text()) == {"by": "this one"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_a_document_that_is_no_json_leaves_the_old_file(tmp_path):
    path = tmp_path / "run.json"
    write_json(path, {"old": True})
    with pytest.raises(TypeError):
        write_json(path, {"new": object()})
    assert json.loads(path.read_text()) == {"old": True}
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]
