"""Runs on Vertex AI on loopback are handed to trackers when they were followed to their end."""

import dataclasses
import json

import pytest
from installed import needed
from tracker_double import MlflowDouble, served

from slipway.pipeline.cloud import back_fill, submit
from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.submit import follow_run, submit_workload
from slipway.pipeline.config import read_assignments
from slipway.pipeline.tracking import enqueue
from slipway.pipeline.tracking.sender import send_all

needed("kfp", reason="TFX brings kfp to Python 3.11 only")

TIMES = {"startTime": "2027-01-01T02:03:10.250Z", "endTime": "2027-01-01T02:13:10.250Z"}


def made(task, key, kind, uri, **metadata):
    artifact = {"schemaTitle": kind, "uri": uri, "metadata": metadata}
    return {"taskName": task, "state": "SUCCEEDED", "outputs": {key: {"artifacts": [artifact]}}, **TIMES}


ENDED = {
    "state": "PIPELINE_STATE_SUCCEEDED",
    **TIMES,
    "jobDetail": {
        "taskDetails": [
            made("Trainer", "model_run", "tfx.ModelRun", "gs://b/run"),
            made("ModelGate", "blessing", "tfx.ModelBlessing", "gs://b/gate", blessed=1),
        ]
    },
}


@pytest.fixture
def tracker(monkeypatch, google):
    """An MLflow on loopback, to which runs are sent within this process."""
    monkeypatch.setattr(enqueue, "start", send_all)
    monkeypatch.setattr(submit, "_FIRST_LOOK_S", 0.01)
    monkeypatch.setattr(submit, "_TICK_S", 0.01)
    google.objects = {
        "gs://b/gate/verdict.json": {"metrics": {"auc": 0.9477}},
        "gs://b/run/history.json": {"epochs": [{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.25}]},
    }
    with served(MlflowDouble()) as double:
        yield double


@pytest.fixture
def chosen(workload, tracker, tmp_path):
    def call(*sets):
        assignments = read_assignments((f"track.mlflow={tracker.address}", *sets))
        return CloudChoice(workload, assignments, "prod", output=tmp_path / "output")

    return call


@pytest.fixture
def submitted(google, vertex, job, monkeypatch):
    """Submits a workload; gives its exit code and the name of its run."""
    monkeypatch.setattr(submit, "compiled_job", lambda target: job)

    def call(chosen, *, wait):
        code = submit_workload(chosen, wait=wait)
        return code, next(iter(google.jobs))

    return call


def metrics_of(tracker):
    [run] = tracker.runs.values()
    return {(name, value, step) for name, value, _, step in run["metrics"]}


def test_submitted_run_that_is_waited_for_is_sent_at_its_end(google, tracker, chosen, submitted, capsys):
    google.lives = [{"state": "PIPELINE_STATE_RUNNING"}, ENDED]

    code, name = submitted(chosen(), wait=True)

    assert code == 0
    told = capsys.readouterr().err
    assert "Handed to track.mlflow." in told
    assert "note: track.mlflow" not in told
    [run] = tracker.runs.values()
    assert (run["tags"]["slipway.run"], run["info"]["status"]) == (name, "FINISHED")
    assert {("auc", 0.9477, 0), ("wall_s", 600.0, 0), ("training/loss", 0.25, 2)} <= metrics_of(tracker)


def test_run_is_sent_when_it_is_followed_with_its_settings_and_not_again(
    google, tracker, chosen, submitted, capsys
):
    google.lives = [ENDED]
    _, name = submitted(chosen("train.batch_size=64"), wait=False)
    note = "note: track.mlflow: a cloud run is sent once `follow` has seen its end"
    assert note in capsys.readouterr().err
    assert tracker.got == []

    assert follow_run(name, chosen("train.batch_size=32")) == 0
    sent = len(tracker.got)
    assert follow_run(name, chosen()) == 0

    assert len(tracker.got) == sent
    assert "Handed to track.mlflow before; nothing is sent twice." in capsys.readouterr().err
    [run] = tracker.runs.values()
    assert run["params"]["train.batch_size"] == "64"


def test_each_run_of_a_back_fill_is_sent_at_its_end_with_its_span(
    google, tracker, chosen, vertex, job, monkeypatch, capsys
):
    monkeypatch.setattr(back_fill, "compiled_job", lambda target: job)
    monkeypatch.setattr(back_fill, "_LOOK_S", 0.01)
    google.lives = [ENDED]
    source = "data.source=gs://my-bucket/trips/{YYYY}-{MM}-{DD}/*.csv"

    assert back_fill.back_fill(chosen(source), first="2027-01-01", last="2027-01-02") == 0

    told = capsys.readouterr().err
    assert "2027-01-02: Handed to track.mlflow." in told
    assert "once `follow`" not in told
    spans = {run["params"]["data.span"] for run in tracker.runs.values()}
    assert spans == {"2027-01-01", "2027-01-02"}


def test_tracker_that_is_down_changes_no_exit_code_and_is_reported_later(google, tracker, chosen, submitted):
    google.lives = [ENDED]
    tracker.refuses["/experiments/"] = (503, {})

    code, name = submitted(chosen(), wait=True)

    assert code == 0
    assert [each.run_id for each in send_all(chosen().output)] == [name]
    tracker.refuses.clear()
    assert send_all(chosen().output) == []
    assert ("auc", 0.9477, 0) in metrics_of(tracker)


def test_verdict_that_cannot_be_read_comes_with_the_next_follow(google, tracker, chosen, submitted, capsys):
    google.lives = [ENDED]
    google.fails("GET /download", 403, "no storage.objects.get")
    _, name = submitted(chosen(), wait=True)
    assert ("wall_s", 600.0, 0) in metrics_of(tracker)
    assert "auc" not in {metric for metric, *_ in metrics_of(tracker)}

    assert follow_run(name, chosen()) == 0

    assert ("auc", 0.9477, 0) in metrics_of(tracker)


def test_output_folder_is_in_the_commands_that_are_shown(chosen):
    output = f" --output {chosen().output}"
    assert chosen().command("follow r").endswith(output)
    assert chosen().command("submit").endswith(output)
    assert output not in chosen().command("cancel r")
    assert "--output" not in dataclasses.replace(chosen(), output=CloudChoice("taxi").output).command(
        "submit"
    )


def test_requests_of_the_run_hold_no_credential_of_the_tracker(
    google, tracker, chosen, submitted, monkeypatch, capsys
):
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "hunter2")
    google.lives = [ENDED]

    _, name = submitted(chosen(), wait=True)

    assert {headers["Authorization"] for _, _, headers, _ in tracker.got} == {"Bearer hunter2"}
    job = type(google.jobs[name]).to_json(google.jobs[name])
    assert "hunter2" not in json.dumps([job, capsys.readouterr(), google.requests])
