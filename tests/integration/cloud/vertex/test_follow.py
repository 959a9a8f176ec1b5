"""A run on Vertex AI, followed to its end."""

import io
import os
import re
import shlex
import signal
from pathlib import Path

import pytest
from installed import needed

from slipway.pipeline.cloud import submit
from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.submit import cancel_run, follow, follow_run, run_named, submit_workload
from slipway.pipeline.config import read_assignments
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.screen.run_display import LineDisplay, TableDisplay

needed("kfp", reason="TFX brings kfp to Python 3.11 only")

RUNNING = {"state": "PIPELINE_STATE_RUNNING"}
DONE = {"state": "PIPELINE_STATE_SUCCEEDED"}
CHOSEN = CloudChoice(Path("taxi"), read_assignments(("cloud.labels={team: rides}",)), "prod")
WORDS = ["taxi", "--profile", "prod", "--set", "cloud.labels={team: rides}"]


@pytest.fixture
def followed(google, vertex, job, monkeypatch):
    """Follows a run through the given states, as the service tells them; gives the exit code and lines."""
    monkeypatch.setattr("slipway.pipeline.cloud.submit._FIRST_LOOK_S", 0.01)
    monkeypatch.setattr("slipway.pipeline.cloud.submit._TICK_S", 0.01)

    def run(*lives):
        google.lives = list(lives)
        lines = io.StringIO()
        submitted = vertex.submit(job, run_id="taxi-20270101-020304-ab12")
        code = follow(vertex, job, submitted, chosen=CHOSEN, display=LineDisplay(lines))
        return code, lines.getvalue()

    return run


def failed(name, message):
    task = {"taskName": name, "state": "FAILED", "error": {"code": 3, "message": message}}
    return {
        "state": "PIPELINE_STATE_FAILED",
        "jobDetail": {"taskDetails": [task]},
        "error": {"message": "failed"},
    }


def test_run_ends_with_3_where_a_gate_stopped_it(followed, capsys):
    running = {
        "state": "PIPELINE_STATE_RUNNING",
        "jobDetail": {"taskDetails": [{"taskName": "Ingest", "state": 2}]},
    }
    said = "exited with a non-zero status of 3. Termination reason: Error. error: fare is wrong\nhint: look"
    code, lines = followed(running, failed("DataGate", said))
    assert code == 3
    assert "▸ Ingest" in lines
    assert "✗ DataGate" in lines
    assert "Stopped: DataGate" in capsys.readouterr().err


def test_run_ends_with_1_where_a_task_failed(followed, capsys):
    code, _ = followed(
        failed("Trainer", "exited with a non-zero status of 137. Termination reason: OOMKilled.")
    )
    assert code == 1
    assert (
        "Trainer: exited with a non-zero status of 137. Termination reason: OOMKilled."
        in capsys.readouterr().err
    )


def test_run_ends_with_3_where_the_model_is_not_blessed(followed, capsys):
    artifact = {"schemaTitle": "tfx.ModelBlessing", "uri": "gs://b/x", "metadata": {"blessed": 0}}
    gate = {"taskName": "ModelGate", "state": "SUCCEEDED", "outputs": {"blessing": {"artifacts": [artifact]}}}
    code, _ = followed({"state": "PIPELINE_STATE_SUCCEEDED", "jobDetail": {"taskDetails": [gate]}})
    assert code == 3
    assert "Stopped: the model is not blessed" in capsys.readouterr().err


def made(task, key, kind, uri, **metadata):
    artifact = {"schemaTitle": kind, "uri": uri, "metadata": metadata}
    return {"taskName": task, "state": "SUCCEEDED", "outputs": {key: {"artifacts": [artifact]}}}


VERDICT = {
    "reasons": ["auc 0.9477, meets at least 0.94"],
    "metrics": {"auc": 0.9477},
    "checks": [],
    "warnings": ["auc is near its bound"],
}


def test_end_is_reported_as_after_a_local_run(google, followed, capsys):
    google.objects = {
        "gs://b/gate/verdict.json": VERDICT,
        "gs://b/data/verdict.json": {"findings": [{"feature": "fare", "what": "3 rows below 0"}]},
        "gs://b/run/result.json": {"verdict": "compute-bound: 1% of the time waiting for input"},
    }
    pushed = {"pushed": 1, "pushed_destination": "gs://b/serving/taxi/7"}
    tasks = [
        made("DataGate", "verdict", "schemas.DataVerdict", "gs://b/data"),
        made("Trainer", "model_run", "tfx.ModelRun", "gs://b/run"),
        made("ModelGate", "blessing", "tfx.ModelBlessing", "gs://b/gate", blessed=1),
        made("Pusher", "pushed_model", "tfx.PushedModel", "gs://b/p", **pushed),
    ]
    code, _ = followed({**DONE, "jobDetail": {"taskDetails": tasks}})
    assert code == 0
    told = capsys.readouterr().err
    for line in (
        "Pushed: version 7 -> gs://b/serving/taxi/7",
        "Blessed: auc 0.9477, meets at least 0.94.",
        "Warning: auc is near its bound.",
        "Data: fare: 3 rows below 0",
        "Metrics on the eval split: auc 0.9477",
        "Training: compute-bound: 1% of the time waiting for input",
    ):
        assert line in told
    assert " s: 4 ran, 11 skipped" in told


def test_verdict_that_cannot_be_read_is_reported_with_the_cause_and_the_code_stays(google, followed, capsys):
    google.fails("GET /download", 403, "no storage.objects.get")
    task = made("ModelGate", "blessing", "tfx.ModelBlessing", "gs://b/gate", blessed=1)
    code, _ = followed({**DONE, "jobDetail": {"taskDetails": [task]}})
    assert code == 0
    told = capsys.readouterr().err
    assert "not shown: the gates' reasons and the metrics" in told
    assert "no storage.objects.get" in told


def test_table_of_a_run_stays_on_the_screen(google, vertex, job, monkeypatch):
    monkeypatch.setattr("slipway.pipeline.cloud.submit._FIRST_LOOK_S", 0.01)
    google.lives = [DONE]
    screen = io.StringIO()
    submitted = vertex.submit(job, run_id="taxi-20270101-020304-ab12")
    follow(vertex, job, submitted, chosen=CHOSEN, display=TableDisplay(screen))
    assert re.search(r"^-  ModelGate +skipped", screen.getvalue(), re.MULTILINE)


def test_times_and_cached_tasks_are_reported(followed):
    took = {"startTime": "2027-01-01T00:00:00Z", "endTime": "2027-01-01T00:01:05Z"}
    tasks = [
        {"taskName": "Ingest", "state": "SKIPPED"},
        {"taskName": "Trainer", "state": "SUCCEEDED", **took},
    ]
    code, lines = followed({"state": "PIPELINE_STATE_SUCCEEDED", "jobDetail": {"taskDetails": tasks}})
    assert code == 0
    assert "an equal task ran before" in lines
    assert "65 s" in lines


@pytest.mark.usefixtures("given_up")
def test_service_that_no_longer_answers_is_reported_with_the_link(google, followed, capsys):
    google.fails("GET .*/pipelineJobs/", 503, times=99)
    with pytest.raises(PipelineError, match=r"looking at the run taxi-\S+ failed"):
        followed({"state": "PIPELINE_STATE_RUNNING"})
    assert "the run continues: https://console.cloud.google.com/" in capsys.readouterr().err


def told_to_end(google, pattern, signum):
    """Has this process told to end, once, when a request that matches arrives at the service."""

    def on_request(request):
        if re.search(pattern, request):
            google.on_request = lambda request: None
            os.kill(os.getpid(), signum)

    google.on_request = on_request


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_who_stops_looking_is_told_that_the_run_goes_on_and_how_to_go_on_or_end_it(
    google, followed, capsys, signum
):
    told_to_end(google, "GET .*/pipelineJobs/", signum)
    code, _ = followed(RUNNING)
    assert code == 130
    told = capsys.readouterr().err.splitlines()
    name = "taxi-20270101-020304-ab12"
    assert told[0].startswith("Stopped following; the run continues: https://console.cloud.google.com/")
    commands = [shlex.split(line.removeprefix("hint: "), comments=True) for line in told[1:]]
    assert commands == [["python", "cloud_runner.py", verb, name, *WORDS] for verb in ("follow", "cancel")]
    assert list(google.jobs) == [name]
    assert not any("cancel" in request or "DELETE" in request for request in google.requests)


@pytest.mark.parametrize(
    "text",
    ["taxi-1", "https://x.example/runs/taxi-1?project=p", "http://localhost:8080/#/runs/details/taxi-1\n"],
)
def test_run_is_named_by_its_name_or_by_its_link(text):
    assert run_named(text) == "taxi-1"


@pytest.mark.parametrize("text", ["", "taxi 1", "../..", "https://x.example/runs/?project=p*"])
def test_what_cannot_be_the_name_of_a_run_is_refused(text):
    with pytest.raises(UsageError, match="cannot be the name of a run"):
        run_named(text)


def test_run_that_is_no_longer_followed_is_followed_again_and_cancelled(google, workload, followed, capsys):
    google.loses_answer("cancel")
    chosen = CloudChoice(workload, (), "prod")
    followed(DONE)
    name = "taxi-20270101-020304-ab12"
    assert follow_run(f"https://console.example/pipelines/runs/{name}?project=my-project", chosen) == 0
    assert "Done: taxi" in capsys.readouterr().err
    google.lives = [RUNNING]
    assert cancel_run(name, chosen).endswith(f"/pipelines/runs/{name}?project=my-project")
    assert follow_run(name, chosen) == 1
    assert "Cancelled: " in capsys.readouterr().err
    with pytest.raises(PipelineError, match="looking for the run other failed: not found"):
        follow_run("other", chosen)
    with pytest.raises(PipelineError, match="cancelling the run other failed: not found"):
        cancel_run("other", chosen)


@pytest.mark.parametrize(
    ("at", "words", "jobs"),
    [
        ("GET /storage", "Interrupted; no run was started.", 0),
        ("POST .*/pipelineJobs$", "was being started: Vertex AI Pipelines may have begun it", 1),
    ],
)
def test_who_ends_it_before_that_is_told_whether_a_run_was_started(
    google, workload, job, monkeypatch, capsys, at, words, jobs
):
    monkeypatch.setattr(submit, "compiled_job", lambda target: job)
    told_to_end(google, at, signal.SIGINT)
    google.hangs(at, 0.2)
    assert submit_workload(CloudChoice(workload, (), "prod"), wait=True) == 130
    assert words in capsys.readouterr().err
    assert sum("POST" in r and r.endswith("/pipelineJobs") for r in google.requests) == jobs
