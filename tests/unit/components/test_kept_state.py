"""The folder in which a node keeps what it can go on with."""

from slipway.components.kept_state import STATE_VARIABLE, state_folder


def test_without_an_engine_nothing_is_kept(monkeypatch):
    monkeypatch.delenv(STATE_VARIABLE, raising=False)
    assert state_folder() is None


def test_folder_is_made_when_it_is_asked_for_and_what_is_in_it_stays(monkeypatch, tmp_path):
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state" / "key"))
    assert not (tmp_path / "state").exists()
    (state_folder() / "kept").touch()
    assert [file.name for file in state_folder().iterdir()] == ["kept"]
