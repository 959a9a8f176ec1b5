"""The error that a task's container leaves for a rehearsal comes back whole."""

import json

import pytest

from slipway.components.errors import ComponentError, GateStopError
from slipway.pipeline.cloud.container.failure import FAILURE_VARIABLE, read_failure_file, write_failure_file


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv(FAILURE_VARIABLE, str(tmp_path / "failure.json"))
    return tmp_path / "failure.json"


def test_a_gate_s_verdict_and_a_component_s_remedy_come_back_whole(file):
    write_failure_file(
        GateStopError("worse", hint="bless it", verdict={"lines": ["auc"] * 99, "override": "bless"})
    )
    found = read_failure_file(file)
    assert isinstance(found, GateStopError)
    assert (found.message, found.hint) == ("worse", "bless it")
    assert found.verdict == {"message": "worse", "lines": ["auc"] * 99, "override": "bless"}
    write_failure_file(ComponentError("no column", hint="name one", start="Ingest"))
    found = read_failure_file(file)
    assert isinstance(found, ComponentError)
    assert (found.message, found.hint, found.start) == ("no column", "name one", "Ingest")


def test_where_no_rehearsal_asks_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.delenv(FAILURE_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    write_failure_file(ComponentError("no column"))
    assert list(tmp_path.iterdir()) == []
    assert read_failure_file(tmp_path / "failure.json") is None


@pytest.mark.parametrize("content", ["", "{", "[]", json.dumps({"message": "x"})])
def test_a_torn_file_is_reported_as_one(file, content):
    file.write_text(content)
    assert "left an error that cannot be read" in read_failure_file(file).message
