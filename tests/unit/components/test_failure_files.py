"""Files that a failed node leaves for people, with and without an engine."""

from slipway.components.failure_files import LEFT_VARIABLE, left_folder


def test_folder_is_the_one_that_the_engine_names(monkeypatch, tmp_path):
    monkeypatch.setenv(LEFT_VARIABLE, str(tmp_path / "left"))
    assert left_folder() == tmp_path / "left"


def test_without_an_engine_there_is_none(monkeypatch):
    monkeypatch.delenv(LEFT_VARIABLE, raising=False)
    assert left_folder() is None
