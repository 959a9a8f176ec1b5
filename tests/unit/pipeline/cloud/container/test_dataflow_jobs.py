"""A job on Dataflow ends with its task, however that ends, and no other signal handler is left behind."""

import os
import signal
from types import SimpleNamespace

import pytest

from slipway.pipeline.cloud.container.dataflow_jobs import ended_with_the_task

pytestmark = [
    pytest.mark.slow,
    # Beam's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

ON_DATAFLOW = ["--runner=DataflowRunner", "--region=europe-west4"]


class Client:
    """The service's states of jobs by id, and what was cancelled."""

    def __init__(self):
        self.states, self.cancelled, self.broken = {}, [], False

    def get_job(self, job_id):
        return SimpleNamespace(id=job_id, current_state=self.states[job_id])

    def modify_job_state(self, job_id, state):
        if self.broken:
            raise ConnectionError("no network")
        assert state == "JOB_STATE_CANCELLED"
        self.cancelled.append(job_id)
        return True


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def submit(client):
    """Submits a job in some state, as Beam's runner does."""
    from apache_beam.runners.dataflow.dataflow_runner import DataflowPipelineResult
    from google.cloud import dataflow

    def call(job_id, state="RUNNING"):
        client.states[job_id] = dataflow.JobState[f"JOB_STATE_{state}"]
        return DataflowPipelineResult(client.get_job(job_id), SimpleNamespace(dataflow_client=client))

    return call


@pytest.fixture(autouse=True)
def as_before():
    before = signal.getsignal(signal.SIGTERM)
    yield
    assert signal.getsignal(signal.SIGTERM) is before


def test_job_that_runs_is_cancelled_when_the_task_is_told_to_end(client, submit, capsys):
    def is_told_to_end():
        submit("done", "DONE")
        submit("running")
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()

    with pytest.raises(SystemExit) as end, ended_with_the_task(ON_DATAFLOW):
        is_told_to_end()
    assert end.value.code == 143
    assert client.cancelled == ["running"]
    assert "Cancels the Dataflow job running." in capsys.readouterr().err


def fail_after(submit):
    submit("running")
    raise ValueError("lost")


def test_job_that_runs_is_cancelled_when_the_task_fails(client, submit):
    with pytest.raises(ValueError, match="lost"), ended_with_the_task(ON_DATAFLOW):
        fail_after(submit)
    assert client.cancelled == ["running"]


def test_job_that_cannot_be_cancelled_is_named_and_the_task_ends_as_it_would(client, submit, capsys):
    client.broken = True
    with pytest.raises(ValueError, match="lost"), ended_with_the_task(ON_DATAFLOW):
        fail_after(submit)
    said = capsys.readouterr().err
    assert "error: the Dataflow job running may still run: ConnectionError: no network" in said
    assert "hint: cancel it on Dataflow's page" in said


def test_task_that_succeeds_cancels_nothing_and_later_jobs_are_not_noted(client, submit):
    with ended_with_the_task(ON_DATAFLOW):
        submit("running")
    submit("later")
    assert client.cancelled == []


def test_other_runners_are_left_alone():
    before = signal.getsignal(signal.SIGTERM)
    with ended_with_the_task(["--runner=DirectRunner"]):
        assert signal.getsignal(signal.SIGTERM) is before
    with ended_with_the_task([]):
        assert signal.getsignal(signal.SIGTERM) is before
