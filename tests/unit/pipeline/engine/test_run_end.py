"""The end of a run: its state and exit code; after an error, the command that goes on."""

import errno
import os
import shutil
import signal
from unittest import mock

import pytest

from slipway.pipeline.engine import run_end
from slipway.pipeline.engine.journal import Journal
from slipway.pipeline.engine.launcher import LauncherLostError
from slipway.pipeline.engine.processes.client import RefusedError
from slipway.pipeline.engine.run_end import Ending, LateInterrupt, close, closed_at_end, give_up
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.runs.history import History
from slipway.pipeline.screen.display import RunDisplay


@pytest.fixture
def history(tmp_path):
    return History(tmp_path)


@pytest.fixture
def record(history):
    run = history.new_run("taxi")
    history.save(run)
    return run


def given_up(history, record, error):
    give_up(Journal(record, history, 0.0), error)
    return error


@pytest.mark.parametrize("kind", [LauncherLostError, RefusedError])
def test_run_that_lost_its_server_or_failed_to_build_names_resume_and_beside_it_the_log(
    history, record, kind
):
    error = given_up(history, record, kind("It was ended by SIGKILL.", hint="see /x/engine.log"))
    resume = f"python local_runner.py resume {record.run_id} --output {history.output}"
    assert error.hint == f"{resume}   # see /x/engine.log"
    kept = history.find(None)
    assert (kept.state, kept.exit_code) == ("failed", error.exit_code)
    assert kept.error == {"message": "It was ended by SIGKILL.", "hint": "see /x/engine.log"}


def test_error_without_a_hint_gets_the_command_alone_and_one_that_names_it_stays(history, record):
    assert given_up(history, record, PipelineError("no")).hint.endswith(f"--output {history.output}")
    full = f"make room, then python local_runner.py resume {record.run_id} --output {history.output}"
    assert given_up(history, record, PipelineError("no", hint=full)).hint == full


def test_run_that_was_refused_is_forgotten_and_its_hint_stays(history, record):
    assert given_up(history, record, UsageError("no such node", hint="nodes: A")).hint == "nodes: A"
    assert list(history.runs()) == []


def test_step_of_another_program_is_reported_no_command_of_ours(history, record):
    record.in_steps = True
    assert given_up(history, record, PipelineError("no", hint="see x")).hint == "see x"


def test_fault_of_ours_is_kept_for_show_too(history, record):
    with (
        pytest.raises(KeyError, match="no_such"),
        closed_at_end(Journal(record, history, 0.0), RunDisplay()),
    ):
        raise KeyError("no_such")
    assert history.find(None).error == {"message": "KeyError: 'no_such'"}


class Shown(RunDisplay):
    """Notes the state in which a run is shown as over."""

    def __init__(self):
        self.states = []

    def ends(self, record):
        self.states.append((record.state, record.exit_code))


@pytest.mark.parametrize(
    ("error", "shown"),
    [(None, [("complete", 0)]), (KeyboardInterrupt(), [("interrupted", 130)]), (PipelineError("no"), [])],
)
def test_the_outcome_is_shown_once_it_is_recorded_and_an_error_is_left_to_the_caller(
    history, record, error, shown
):
    def closed(display):
        with closed_at_end(Journal(record, history, 0.0), display):
            if error is not None:
                raise error

    display = Shown()
    if isinstance(error, PipelineError):
        with pytest.raises(PipelineError):
            closed(display)
    else:
        closed(display)
    assert display.states == shown
    assert history.find(None).exit_code == record.exit_code


class Pressed(Shown):
    """Ctrl-C is pressed once more while it shows the outcome."""

    def ends(self, record):
        signal.raise_signal(signal.SIGINT)
        super().ends(record)


def test_outcome_is_shown_although_ctrl_c_is_pressed_again_and_again(history, record):
    def press(_record):
        raise KeyboardInterrupt

    display = Pressed()
    with pytest.raises(LateInterrupt):
        close(Journal(record, history, 0.0), Ending(interrupted=True), display, [press])
    assert display.states == [("interrupted", 130)]
    assert history.find(None).state == "interrupted"


def pressed(*_):
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("when", ["in the block", "in the record", "in a listener"])
def test_a_signal_after_the_last_node_takes_nothing_back(history, record, monkeypatch, when):
    told, save, conclude = [], history.save, run_end.conclude
    if when == "in the record":
        monkeypatch.setattr(history, "save", lambda record: (pressed(), save(record)))
        monkeypatch.setattr(run_end, "conclude", lambda *a, **k: (pressed(), conclude(*a, **k)))
    listeners = [pressed if when == "in a listener" else (lambda _: None), lambda run: told.append(run.state)]
    display = Shown()

    def run():
        with closed_at_end(Journal(record, history, 0.0), display, listeners) as end:
            end.nodes_are_over()
            if when == "in the block":
                pressed()

    with pytest.raises(LateInterrupt) as late:
        run()

    assert late.value.exit_code == 0
    assert told == ["complete"]
    assert display.states == [("complete", 0)]
    assert (history.find(None).state, history.find(None).exit_code) == ("complete", 0)


def test_a_signal_before_the_nodes_are_over_interrupts_the_run(history, record):
    with closed_at_end(Journal(record, history, 0.0), Shown()):
        pressed()
    assert history.find(None).state == "interrupted"


def test_folder_that_vanished_is_named_with_the_command_that_goes_on(history, record):
    shutil.rmtree(record.folder)
    with pytest.raises(PipelineError) as error:
        close(Journal(record, history, 0.0), Ending(), Shown())
    assert error.value.hint.startswith(
        "put that folder back, which was moved or removed meanwhile, then python"
    )


@pytest.mark.parametrize(
    "end",
    [
        lambda journal, told: close(journal, Ending(), Shown(), [told]),
        lambda journal, told: give_up(journal, PipelineError("no"), [told]),
    ],
    ids=["after its nodes", "by an error"],
)
def test_who_waits_for_the_end_is_told_of_a_failure_although_the_record_cannot_be_written(
    history, record, monkeypatch, end
):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(history, "save", mock.Mock(side_effect=full))
    told = []
    with pytest.raises(PipelineError, match="cannot be written: No space left on device") as error:
        end(Journal(record, history, 0.0), told.append)
    assert [(each.state, each.exit_code) for each in told] == [("failed", error.value.exit_code)]
