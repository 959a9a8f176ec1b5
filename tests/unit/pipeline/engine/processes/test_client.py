"""How the processes of a run end."""

import subprocess

import pytest

from slipway.components.beam_args import JOBS_VARIABLE
from slipway.pipeline.engine.launcher import LauncherLostError, Start
from slipway.pipeline.engine.processes import client as servers
from slipway.pipeline.engine.processes.client import ForkServerClient
from slipway.pipeline.errors import PipelineError

START = Start("A", 1, log="", progress="", left="", state="")


class Told:
    """A process that keeps what it is told."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *given, **_: self.calls.append((name, *given))


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda server: server.signal("A", 15), [("kill",), ("wait", servers._END_LIMIT_S)]),
        (
            lambda server: server.start(START),
            [("terminate",), ("wait", servers._END_LIMIT_S), ("kill",), ("wait", servers._END_LIMIT_S)],
        ),
    ],
)
def test_server_without_a_node_is_killed_at_once_and_another_may_end_in_order(
    tmp_path, monkeypatch, ask, told
):
    # In the middle of an import it would neither look at its line nor handle a signal.
    process = Told()
    monkeypatch.setattr(servers, "_start", lambda *_, **__: process)
    (tmp_path / "logs").mkdir()
    with ForkServerClient(tmp_path, temporary=tmp_path) as server:
        server._channel.close()
        server._channel = Told()
        ask(server)
    assert process.calls == told


class Lost:
    """A process whose warm process is gone: nobody can tell what became of it."""

    def __getattr__(self, name):
        def ask(*_):
            raise ConnectionError("the fork server is gone")

        return ask


def test_server_whose_warm_process_is_gone_counts_as_gone_and_what_it_left_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "_start", lambda *_, **__: Lost())
    monkeypatch.setattr(servers, "is_stopped", lambda _pid: False)
    ended = []
    monkeypatch.setattr(servers, "end_leftovers", ended.append)
    (tmp_path / "logs").mkdir()
    with ForkServerClient(tmp_path, temporary=tmp_path) as server:
        server._has_nodes = True
        with pytest.raises(LauncherLostError, match="gone, and so is the warm process") as lost:
            server.receive(1)
    assert "engine.log" in lost.value.hint
    assert ended == [tmp_path]


class Untold(Told):
    """A process whose warm process is stopped: nobody tells that it has ended."""

    def wait(self, timeout=None):
        assert timeout is not None, "waits for ever"
        raise subprocess.TimeoutExpired("forked process", timeout)


def test_server_whose_warm_process_is_stopped_is_killed_and_not_waited_for(tmp_path, monkeypatch):
    process, ended = Untold(), []
    monkeypatch.setattr(servers, "_start", lambda *_, **__: process)
    monkeypatch.setattr(servers, "end_leftovers", ended.append)
    (tmp_path / "logs").mkdir()
    with ForkServerClient(tmp_path, temporary=tmp_path) as server:
        server._has_nodes = True
    assert process.calls == [("terminate",), ("kill",)]
    assert ended == [tmp_path]


class Gone:
    """A warm process that has ended since it was found."""

    def start(self, module, **_):
        raise PipelineError("The warm process is gone.")


@pytest.mark.parametrize("is_spare", [True, False])
def test_run_does_without_a_spare_process_that_is_gone(tmp_path, monkeypatch, is_spare):
    started = []
    monkeypatch.setattr(servers, "_start", lambda *_, **__: started.append(1) or Told())
    (tmp_path / "logs").mkdir()
    warm = Gone()
    warm.is_spare = is_spare
    if is_spare:
        ForkServerClient(tmp_path, temporary=tmp_path, warm=warm).close()
    else:
        with pytest.raises(PipelineError, match="is gone"):
            ForkServerClient(tmp_path, temporary=tmp_path, warm=warm)
    assert started == [1] * is_spare


@pytest.mark.parametrize(("jobs", "told"), [(None, "0"), (3, "3")])
def test_nodes_are_told_how_many_of_them_the_user_lets_run(tmp_path, monkeypatch, jobs, told):
    given = []
    monkeypatch.setattr(servers, "_start", lambda *given_, **_: given.append(given_[2]) or Told())
    monkeypatch.setenv(JOBS_VARIABLE, "of an outer run")
    (tmp_path / "logs").mkdir()
    ForkServerClient(tmp_path, temporary=tmp_path, jobs=jobs).close()
    assert [variables[JOBS_VARIABLE] for variables in given] == [told]
