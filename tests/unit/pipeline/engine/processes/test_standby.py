"""A warm process for the command line is found by runs that are like it, and reached by its owner alone."""

import os
import resource
import socket
import subprocess
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

    def listen(ending: str = standby.WAITS) -> Path:
        folder.mkdir(mode=0o700, exist_ok=True)
        address = folder / (standby._name() + ending)
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
    assert standby.waiting() == [os.getpid()]


def test_looking_for_one_leaves_nothing_behind(folder):
    assert (found(), standby.waiting(), standby.end()) == (None, [], ([], []))
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


@pytest.mark.parametrize("limits", ["RLIMIT_CPU", "RLIMIT_STACK"])
def test_run_with_other_limits_does_not_find_it(listening, monkeypatch, limits):
    listening()
    kind = getattr(resource, limits)
    usual = resource.getrlimit
    monkeypatch.setattr(resource, "getrlimit", lambda each: (77, 77) if each == kind else usual(each))
    assert found() is None


@pytest.mark.parametrize("what", ["the network", "a right", "as it is"])
def test_run_in_a_sandbox_does_not_find_the_process_outside(listening, monkeypatch, tmp_path, what):
    listening()
    process = tmp_path / "self"
    (process / "ns").mkdir(parents=True)
    for name in ("cgroup", "status"):
        text = Path("/proc/self", name).read_text(encoding="utf-8")
        unlike = text.replace("NoNewPrivs:\t0", "NoNewPrivs:\t2").replace("NoNewPrivs:\t1", "NoNewPrivs:\t2")
        (process / name).write_text(unlike if what == "a right" else text, encoding="utf-8")
    for each in Path("/proc/self/ns").iterdir():
        is_other = what == "the network" and each.name == "net"
        (process / "ns" / each.name).symlink_to("net:[7]" if is_other else each.readlink())
    monkeypatch.setattr(standby, "_PROCESS", process)
    assert found() == (os.getpid() if what == "as it is" else None)


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
        standby.waiting()


def test_process_that_still_imports_is_not_forked_from_but_can_be_ended(listening):
    listening(standby.IMPORTS)
    assert found() is None
    assert standby.waiting() == [os.getpid()]
    assert standby.begin(60) == os.getpid(), "one is enough"


def test_process_that_a_run_uses_is_left_alone(listening, monkeypatch):
    killed = []
    monkeypatch.setattr(standby.os, "kill", lambda pid, signum: killed.append(pid))
    listening()
    monkeypatch.setattr(standby, "children", lambda pid: iter([4711]))
    assert standby.end() == ([], [os.getpid()])
    assert killed == []
    monkeypatch.setattr(standby, "children", lambda pid: iter([]))
    assert standby.end() == ([os.getpid()], [])
    assert killed == [os.getpid()]


def test_process_of_another_user_is_not_trusted(listening, monkeypatch):
    listening()
    monkeypatch.setattr(standby, "_peer", lambda line: (4711, os.getuid() + 1))
    assert found() is None
    assert standby.waiting() == []


def test_another_users_connection_is_closed_unheard(listening, monkeypatch):
    monkeypatch.setattr(standby, "_peer", lambda line: (4711, os.getuid() + 1))
    ours, theirs = socket.socketpair()

    class Listener:
        def fileno(self):
            return 3

        def accept(self):
            return theirs, ""

    class WarmServer:
        is_used = False
        times = iter([[3], []])

        def serve(self, *others, timeout_s):
            return next(self.times)

        def add(self, line):
            raise AssertionError("it must not be served")

    clock = iter([0.0, 0.0, 0.5, 2.0])
    monkeypatch.setattr(standby, "WarmServer", WarmServer)
    monkeypatch.setattr(standby.time, "monotonic", lambda: next(clock))
    standby._serve(Listener(), 1.0)
    with ours:
        assert ours.recv(1) == b"", "it was closed"


def test_what_cannot_be_looked_at_is_no_reason_to_fail(listening, monkeypatch, tmp_path):
    for part in ("components", "pipeline", "schemas", "slipway"):
        (tmp_path / "own" / part).mkdir(parents=True)
    (tmp_path / "own" / "pipeline" / ".#dag.py").symlink_to("nowhere")
    monkeypatch.setattr(standby, "OWN_FOLDER", tmp_path / "own")
    monkeypatch.setattr(standby.site, "getsitepackages", lambda: [str(tmp_path / "missing")])
    listening()
    assert found() == os.getpid()


def test_folder_that_cannot_be_made_is_reported_with_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "gone"))
    assert (found(), standby.waiting()) == (None, [])
    with pytest.raises(UsageError) as told:
        standby.begin(1)
    assert told.value.message == (
        f"{tmp_path}/gone/slipway-{os.getuid()}, for the warm process's socket, cannot be made: "
        f"No such file or directory; XDG_RUNTIME_DIR names {tmp_path}/gone."
    )
    assert told.value.hint.startswith("unset XDG_RUNTIME_DIR")


def test_folder_that_cannot_be_looked_at_is_reported_with_a_remedy(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "file"))
    assert found() is None
    for ask in (lambda: standby.begin(1), standby.waiting, standby.end):
        with pytest.raises(UsageError) as told:
            ask()
        assert told.value.message == (
            f"{tmp_path}/file/slipway-{os.getuid()}, for the warm process's socket, cannot be looked at: "
            f"Not a directory; XDG_RUNTIME_DIR names {tmp_path}/file."
        )
        assert told.value.hint.startswith("unset XDG_RUNTIME_DIR")


def test_process_that_cannot_be_started_is_reported(monkeypatch):
    def refuse(*_args, **_options):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(UsageError, match="cannot be started: Resource temporarily unavailable"):
        standby.begin(1)
