"""A warm process for the command line is found by runs that are like it, and reached by its owner alone."""

import os
import socket
from pathlib import Path

import pytest

from slipway.pipeline.engine.processes import standby
from slipway.pipeline.errors import UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where the sockets are; not made yet."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / f"slipway-{os.getuid()}"


@pytest.fixture
def listening(folder):
    """Makes a socket that somebody listens on, under a process's name; the process is this one."""
    opened = []

    def listen() -> Path:
        folder.mkdir(mode=0o700, exist_ok=True)
        address = folder / standby._name()
        listener = socket.socket(socket.AF_UNIX)
        with standby._short(address) as path:
            listener.bind(path)
        listener.listen()
        opened.append(listener)
        return address

    yield listen
    for listener in opened:
        listener.close()


def found() -> int | None:
    if (there := standby.find()) is None:
        return None
    with there:
        return there.pid


def test_run_finds_the_process_that_waits(listening):
    assert found() is None
    listening()
    assert found() == os.getpid()
    assert list(standby.waiting()) == [os.getpid()]


def test_looking_for_one_leaves_nothing_behind(folder):
    assert (found(), list(standby.waiting()), standby.end()) == (None, [], 0)
    assert not folder.exists()


@pytest.mark.parametrize(("name", "value"), [("TF_ENABLE_ONEDNN_OPTS", "0"), ("PYTHONPATH", "mine")])
def test_run_of_another_environment_does_not_find_it(listening, monkeypatch, name, value):
    listening()
    monkeypatch.setenv(name, value)
    assert found() is None


def test_run_from_another_folder_or_with_another_mask_does_not_find_it(listening, monkeypatch, tmp_path):
    listening()
    mask = os.umask(0o007)
    try:
        assert found() is None
    finally:
        os.umask(mask)
    monkeypatch.chdir(tmp_path)
    assert found() is None


def test_run_after_an_edit_of_our_code_does_not_find_it(listening, monkeypatch, tmp_path):
    for part in ("components", "pipeline", "schemas", "slipway"):
        (tmp_path / "project" / part).mkdir(parents=True)
    file = tmp_path / "project" / "pipeline" / "dag.py"
    file.write_text("before = 1\n")
    monkeypatch.setattr(standby, "OWN_FOLDER", tmp_path / "project")
    listening()
    assert found() == os.getpid()
    file.write_text("after = 12\n")
    assert found() is None


def test_name_that_nobody_listens_on_any_more_is_none(listening):
    address = listening()
    address.rename(address.with_name("other.socket"))
    listening().unlink()
    address.touch()
    assert found() is None


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_folder_that_others_can_enter_is_refused(folder, mode):
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(UsageError, match="must be a folder that only you can enter"):
        standby.begin(60)
    assert standby.find() is None


def test_link_in_the_place_of_the_folder_is_refused(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="must be a folder"):
        list(standby.waiting())
