"""The file of a DAG, which Airflow reads whenever it likes."""

import errno
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from slipway.pipeline.cloud.airflow import command
from slipway.pipeline.errors import UsageError


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes a DAG with a text, and returns its file."""
    for name in ("find_graph", "workload_request"):
        monkeypatch.setattr(command, name, Mock())
    monkeypatch.setattr(command, "dag_id", lambda *_: "taxi")
    monkeypatch.setattr(command, "not_replaced", lambda *_: "")
    chosen = SimpleNamespace(file=Path("/w.yaml"), options=[], profile=None)

    def write(text):
        monkeypatch.setattr(command, "dag_text", lambda *_, **__: text)
        return command.write_dag(chosen, folder=tmp_path / "dags", place=Mock())

    return write


def test_a_dag_is_there_whole_or_not_at_all(written, monkeypatch):
    file = written("old")
    write_text = Path.write_text

    def full(path, text, **options):
        write_text(path, text[:1], **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(UsageError, match=r"taxi\.py cannot be written: No space left"):
        written("new")
    assert file.read_text() == "old"
    monkeypatch.undo()
    assert [each.name for each in file.parent.iterdir()] == ["taxi.py"]


def test_a_dag_that_is_written_anew_stays_as_readable_as_it_was(written):
    file = written("old")
    file.chmod(0o640)
    assert written("new").read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o640
