"""The end of a run that an error ended: closed, and told with the command that goes on."""

import pytest

from slipway.pipeline.engine.launcher import LauncherLostError
from slipway.pipeline.engine.processes.client import RefusedError
from slipway.pipeline.engine.run_end import give_up
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.runs.history import History


@pytest.fixture
def history(tmp_path):
    return History(tmp_path)


@pytest.fixture
def record(history):
    run = history.new_run("taxi")
    history.save(run)
    return run


def given_up(history, record, error):
    give_up(history, record, error, began=0.0)
    return error


@pytest.mark.parametrize("kind", [LauncherLostError, RefusedError])
def test_run_that_lost_its_server_or_failed_to_build_names_resume_and_beside_it_the_log(
    history, record, kind
):
    error = given_up(history, record, kind("It was ended by SIGKILL.", hint="see /x/engine.log"))
    resume = f"python local_runner.py resume {record.run_id} --output {history.output}"
    assert error.hint == f"{resume}   # see /x/engine.log"
    assert (history.find(None).state, history.find(None).exit_code) == ("failed", error.exit_code)


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
