"""The command `warm` says which process it started, and how to end it."""

from types import SimpleNamespace

import pytest

from slipway.pipeline.commands import warm
from slipway.pipeline.engine.processes import standby
from slipway.pipeline.errors import UsageError


def test_process_its_time_and_its_end_are_reported(monkeypatch):
    asked = []
    monkeypatch.setattr(standby, "begin", lambda idle_s: asked.append(idle_s) or 4711)
    told = warm.begin(0.5)
    assert asked == [30]
    assert told.startswith("Process 4711 imports TFX for runs that start in this folder and terminal;")
    assert "none has used it for 0.5 minutes" in told
    assert told.endswith("local_runner.py warm --end")


def test_processes_that_were_ended_and_those_in_use_are_reported(monkeypatch):
    found = iter([([1, 2], []), ([], []), ([1], [4711])])
    monkeypatch.setattr(standby, "end", lambda: next(found))
    assert (warm.end(), warm.end()) == ("Ended: 2", "Ended: none")
    assert warm.end() == "Ended: 1; still used by a run: 4711"


@pytest.mark.parametrize(
    ("variables", "elsewhere", "at_a_terminal"),
    [
        ({}, 0, 5),
        ({"SLIPWAY_WARM_MINUTES": ""}, 0, 5),
        ({"SLIPWAY_WARM_MINUTES": "0"}, 0, 0),
        ({"SLIPWAY_WARM_MINUTES": "0.5"}, 0.5, 0.5),
        ({"SLIPWAY_WARM_MINUTES": " 1440 ", "CI": "false"}, 1440, 1440),
        ({"SLIPWAY_WARM_MINUTES": "15", "CI": "true"}, 0, 0),
        ({"CI": "true"}, 0, 0),
    ],
)
def test_runs_leave_a_process_at_a_terminal_or_if_a_variable_says_so_and_none_in_ci(
    variables, elsewhere, at_a_terminal
):
    assert warm.minutes_left(variables, at_terminal=False) == elsewhere
    assert warm.minutes_left(variables, at_terminal=True) == at_a_terminal


def test_command_leaves_a_process_at_its_end_if_the_minutes_ask_for_it_and_says_so(monkeypatch, capsys):
    left = []
    monkeypatch.setattr(warm, "leave", lambda minutes: left.append(minutes) or "a process waits")
    monkeypatch.delenv("CI", raising=False)
    for written in ("0", "7"):
        monkeypatch.setenv("SLIPWAY_WARM_MINUTES", written)
        at_end = warm.leaving()
        assert left == []
        at_end()
    assert (left, capsys.readouterr().err) == ([7], "a process waits\n")


def test_no_process_is_left_for_a_terminal_that_was_closed_meanwhile(monkeypatch):
    left = []
    monkeypatch.setattr(warm, "leave", left.append)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("SLIPWAY_WARM_MINUTES", raising=False)
    for at_the_end in (False, True):
        is_terminal = iter([True, at_the_end])
        monkeypatch.setattr(warm.sys, "stderr", SimpleNamespace(isatty=lambda found=is_terminal: next(found)))
        warm.leaving()()
    assert left == [warm.MINUTES_AT_A_TERMINAL]


def test_wrong_minutes_are_refused_before_the_command_does_anything(monkeypatch):
    monkeypatch.setenv("SLIPWAY_WARM_MINUTES", "soon")
    with pytest.raises(UsageError, match="SLIPWAY_WARM_MINUTES is 'soon'"):
        warm.leaving()


@pytest.mark.parametrize("written", ["-1", "1441", "nan", "inf", "1e2", "15 minutes"])
def test_wrong_number_of_minutes_is_refused_even_in_ci(written):
    with pytest.raises(UsageError) as told:
        warm.minutes_left({"SLIPWAY_WARM_MINUTES": written, "CI": "true"}, at_terminal=False)
    assert told.value.message == (
        f"SLIPWAY_WARM_MINUTES is {written!r}; it must be a number of minutes from 0 to 1440."
    )
    assert told.value.hint.startswith("export SLIPWAY_WARM_MINUTES=15;")


def test_process_that_was_left_is_reported_once_with_what_ends_it(monkeypatch):
    there = iter([[], [4711]])
    monkeypatch.setattr(standby, "waiting", lambda: next(there))
    monkeypatch.setattr(standby, "begin", lambda idle_s: 4711)
    told = warm.leave(5)
    assert told.startswith("Process 4711 imports TFX for the next runs and ends 5 minutes after the last; ")
    assert told.endswith("local_runner.py warm --end, and SLIPWAY_WARM_MINUTES=0 leaves none")
    assert warm.leave(5) == ""


def test_process_that_cannot_be_left_is_reported_and_no_error(monkeypatch):
    def refuse(_idle_s):
        raise UsageError("No.", hint="say yes")

    asked = []
    monkeypatch.setattr(standby, "waiting", lambda: [4711])
    monkeypatch.setattr(standby, "begin", lambda idle_s: asked.append(idle_s) or 4711)
    assert (warm.leave(15), asked) == ("", [900])
    monkeypatch.setattr(standby, "begin", refuse)
    assert warm.leave(15) == "warning: no warm process is left: No. say yes"


def test_no_error_of_the_system_changes_how_a_complete_run_ends(monkeypatch):
    def refuse(_idle_s):
        raise FileNotFoundError(2, "No such file or directory")  # as of a working folder that was removed

    monkeypatch.setattr(standby, "waiting", list)
    monkeypatch.setattr(standby, "begin", refuse)
    assert warm.leave(15) == "warning: no warm process is left: [Errno 2] No such file or directory"
