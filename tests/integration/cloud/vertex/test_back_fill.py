"""`cloud_runner.py schedule back-fill` with Vertex AI on loopback."""

import json
import os
import signal
import time

import pytest
from installed import needed

from slipway.pipeline.cloud import back_fill as module
from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.config import read_assignments
from slipway.pipeline.errors import PipelineError, UsageError

needed("kfp", reason="TFX brings kfp to Python 3.11 only")

SOURCE = "data.source=gs://my-bucket/trips/{YYYY}-{MM}-{DD}/*.csv"
DONE, FAILED = {"state": "PIPELINE_STATE_SUCCEEDED"}, {"state": "PIPELINE_STATE_FAILED"}
RUNNING = {"state": "PIPELINE_STATE_RUNNING"}


@pytest.mark.slow
def test_each_day_of_the_range_is_run_with_its_own_span(google, workload, cloud_here):
    google.lives = [DONE]
    words = ("--profile", "prod", "--set", SOURCE, "--set", "cloud.schedule.max_concurrent_runs=2",
             "--bless", "checked by hand")  # fmt: skip
    finished = cloud_here(
        "schedule", "back-fill", str(workload), *words, "--from", "2027-02-27", "--to", "2027-03-01"
    )
    assert finished.returncode == 0, finished.stderr
    spans = []
    for name, job in google.jobs.items():
        tasks = json.loads(type(job).to_json(job))["pipelineSpec"]["root"]["dag"]["tasks"]
        given = tasks["Ingest"]["inputs"]["parameters"]["range_config"]["runtimeValue"]["constant"]
        only = json.loads(given)["static_range"]
        assert only["start_span_number"] == only["end_span_number"]
        assert "checked by hand" in str(tasks["ModelGate"]["inputs"]["parameters"]["bless"])
        spans.append((name.rpartition("-")[2], only["start_span_number"]))
    assert spans == [("20270227", 20876), ("20270228", 20877), ("20270301", 20878)]
    assert finished.stderr.count("Done: taxi") == 3


@pytest.fixture
def back_fill(google, workload, project, monkeypatch):
    golden = json.loads((project / "tests/data/cloud/taxi.json").read_text())
    monkeypatch.setattr(module, "compiled_job", lambda target: golden)
    monkeypatch.setattr(module, "_LOOK_S", 0.01)

    def run(first, last, *sets, called=None):
        return module.back_fill(
            CloudChoice(workload, read_assignments(sets), "prod", called), first=first, last=last
        )

    return run


def test_nothing_more_is_started_after_a_failure(google, back_fill, capsys):
    google.lives = [DONE, RUNNING, FAILED]
    assert back_fill("2027-01-01", "2027-01-05", SOURCE) == 1
    assert len(google.jobs) == 2
    told = capsys.readouterr().err
    assert "not started: 2027-01-03 to 2027-01-05" in told
    assert " --from 2027-01-02 --to 2027-01-05   # continues" in told


def test_who_stops_it_is_told_which_runs_go_on_and_where_to_go_on(google, back_fill, capsys):
    google.lives = [DONE, RUNNING]

    def on_request(request):
        if request.startswith("GET") and request.endswith("20270102") and len(google.jobs) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    google.on_request = on_request
    assert back_fill("2027-01-01", "2027-01-05", SOURCE) == 130
    told = capsys.readouterr().err
    assert "2027-01-02: stopped following; the run continues: https://console" in told
    assert " --from 2027-01-02 --to 2027-01-05   # continues" in told
    assert not any("cancel" in request for request in google.requests)


def started(google):
    """How often a run was asked for."""
    return sum(request.startswith("POST") and "pipelineJobs" in request for request in google.requests)


def test_run_whose_start_was_interrupted_is_not_started_again(google, back_fill, capsys):
    def on_request(request):
        if request.startswith("POST") and "pipelineJobs" in request:
            os.kill(os.getpid(), signal.SIGTERM)

    google.on_request = on_request
    assert back_fill("2027-01-01", "2027-01-02", SOURCE) == 130
    assert " --from 2027-01-01 --to 2027-01-02   # continues" in capsys.readouterr().err
    _wait_for(lambda: google.jobs)  # the service takes the run whose answer nobody reads
    google.on_request = lambda request: None
    google.lives = [RUNNING, RUNNING, DONE]
    assert back_fill("2027-01-01", "2027-01-02", SOURCE) == 0
    assert "2027-01-01: is already running, https://console" in capsys.readouterr().err
    assert (list(google.jobs), started(google)) == (
        ["taxi-prod-back-fill-20270101", "taxi-prod-back-fill-20270102"], 2,
    )  # fmt: skip


def test_same_command_goes_on_without_what_is_done_and_tries_anew_what_failed(google, back_fill, capsys):
    google.lives = [DONE, FAILED]
    assert back_fill("2027-01-01", "2027-01-03", SOURCE) == 1
    google.lives = [DONE, FAILED, DONE]
    assert back_fill("2027-01-01", "2027-01-03", SOURCE) == 0
    assert "2027-01-01: has already run, https://console" in capsys.readouterr().err
    days = [name.removeprefix("taxi-prod-back-fill-") for name in google.jobs]
    assert days == ["20270101", "20270102", "20270102-try-2", "20270103"]


def started_by(google, vertex, schedule, name, span, state):
    """A run that a schedule has started itself, and whose Ingest has read a span."""
    from google.cloud.aiplatform_v1.types import PipelineJob

    examples = {"schemaTitle": "tfx.Examples", "uri": "gs://b/e", "metadata": {"span": span}}
    task = {"taskName": "Ingest", "state": "SUCCEEDED", "outputs": {"examples": {"artifacts": [examples]}}}
    kept = google.schedules[schedule.id]
    job = PipelineJob.from_json(json.dumps({"state": state, "jobDetail": {"taskDetails": [task]}}))
    asked = kept.create_pipeline_job_request.pipeline_job
    job.name, job.schedule_name = f"projects/1/locations/r/pipelineJobs/{name}", kept.name
    job.labels, job.pipeline_spec = dict(asked.labels), asked.pipeline_spec
    google.jobs[name] = job


def test_span_that_the_schedule_has_run_itself_is_not_run_again(google, vertex, job, back_fill, capsys):
    from slipway.pipeline.config.cloud_services import ScheduleConfig

    schedules = [
        vertex.create_schedule(job, name=name, when=ScheduleConfig(cron="0 3 * * *"))
        for name in ("taxi", "other")
    ]
    for n, (schedule, span, state) in enumerate(
        [
            (schedules[0], 20819, "PIPELINE_STATE_SUCCEEDED"),
            (schedules[0], "20820", "PIPELINE_STATE_FAILED"),
            (schedules[1], 20821, "PIPELINE_STATE_SUCCEEDED"),
        ]
    ):
        started_by(google, vertex, schedule, f"taxi-2027010{n}", span, state)
    started_by(google, vertex, schedules[0], "taxi-dev", 20821, "PIPELINE_STATE_SUCCEEDED")
    google.jobs["taxi-dev"].labels["slipway_profile"] = "dev"  # made with another profile
    google.lives = [DONE]
    assert back_fill("2027-01-01", "2027-01-03", SOURCE) == 0
    assert "2027-01-01: has already run, https://console" in capsys.readouterr().err
    days = [name for name in google.jobs if "back-fill" in name]
    assert days == ["taxi-prod-back-fill-20270102", "taxi-prod-back-fill-20270103"]
    assert back_fill("2027-01-01", "2027-01-01", SOURCE, called="mended") == 0
    assert "mended-prod-back-fill-20270101" in google.jobs
    assert "the schedule has already run" not in capsys.readouterr().err
    assert back_fill("2026-12-30", "2026-12-31", SOURCE) == 0
    note = "note: the schedule has already run 2027-01-01: a model that is blessed here is published over"
    assert capsys.readouterr().err.count(note) == 1


def test_another_name_runs_the_spans_again(google, back_fill):
    google.lives = [DONE]
    assert back_fill("7", "7", "data.source=gs://my-bucket/{SPAN}/*.csv") == 0
    assert back_fill("7", "7", "data.source=gs://my-bucket/{SPAN}/*.csv", called="mended") == 0
    assert list(google.jobs) == ["taxi-prod-back-fill-7", "mended-prod-back-fill-7"]


def test_run_of_another_workload_that_has_its_id_is_not_taken_for_the_span_s(google, back_fill, capsys):
    """As of a workload taxi-prod, and the profile prod of taxi."""
    google.lives = [DONE]
    assert back_fill("7", "7", "data.source=gs://my-bucket/{SPAN}/*.csv") == 0
    google.lives = [{**DONE, "labels": {"slipway_workload": "taxi-prod"}}]
    with pytest.raises(UsageError, match="taxi-prod-back-fill-7 is a run of the workload taxi-prod, http"):
        back_fill("7", "7", "data.source=gs://my-bucket/{SPAN}/*.csv")
    assert list(google.jobs) == ["taxi-prod-back-fill-7"]
    google.lives = [DONE]
    assert back_fill("7", "7", "data.source=gs://my-bucket/{SPAN}/*.csv", called="mine") == 0
    assert "mine-prod-back-fill-7" in google.jobs


def test_service_that_no_longer_answers_leaves_the_way_to_go_on(google, back_fill, capsys):
    google.lives = [DONE]
    google.fails("GET .*20270102", 403, "no", times=99)
    with pytest.raises(PipelineError, match="looking for the run taxi-prod-back-fill-20270102"):
        back_fill("2027-01-01", "2027-01-02", SOURCE)
    assert " --from 2027-01-02 --to 2027-01-02   # continues" in capsys.readouterr().err


def test_each_of_two_runs_that_end_together_is_reported_as_it_ended(google, back_fill, capsys):
    google.lives = [FAILED, DONE]
    at_once = "cloud.schedule.max_concurrent_runs=2"
    assert back_fill("7", "8", "data.source=gs://my-bucket/{SPAN}/*.csv", at_once) == 1
    told = capsys.readouterr().err
    assert ("7: Failed" in told, "8: Done" in told) == (True, True)


def test_name_that_is_not_fit_for_an_id_is_refused_before_anything_is_asked(google, back_fill):
    with pytest.raises(UsageError, match="cannot be named 'Every night-prod'") as caught:
        back_fill("7", "8", "data.source=gs://my-bucket/{SPAN}/*.csv", called="Every night")
    assert "--name" in caught.value.hint
    assert google.requests == []


def _wait_for(true):
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_no_more_run_at_once_than_the_schedule_may(google, back_fill):
    google.lives = [RUNNING] * 4 + [DONE]
    assert back_fill("7", "9", "data.source=gs://my-bucket/{SPAN}/*.csv") == 0
    looks = [request.split()[0] for request in google.requests if "pipelineJobs" in request]
    assert looks == ["GET", "POST", *["GET"] * 5, *["GET", "POST", "GET"] * 2]


@pytest.mark.parametrize(
    ("first", "last", "source", "words"),
    [
        ("2027-01-01", "2027-01-02", "gs://b/d/*.csv", "data.source has no spans"),
        ("2027-01-01", "2027-01-02", "gs://b/{SPAN}/*.csv", "data.source wants numbers"),
        ("1", "2", "gs://b/{YYYY}{MM}{DD}/*.csv", "data.source wants days .* as 2027-01-31"),
        (
            "2027-01-02",
            "2027-01-01",
            "gs://b/{YYYY}{MM}{DD}/*.csv",
            "--from 2027-01-02 is after --to 2027-01-01",
        ),
        ("1", "1001", "gs://b/{SPAN}/*.csv", "at most 1000 spans, not 1001"),
        ("1", "9" * 18, "gs://b/{SPAN}/*.csv", "at most 1000 spans, not 999999999999999999"),
        ("-1", "2", "gs://b/{SPAN}/*.csv", "wants numbers from 0 on"),
        ("1969-12-31", "1970-01-01", "gs://b/{YYYY}{MM}{DD}/*.csv", "wants days from 1970-01-01 on"),
    ],
)
def test_range_that_the_source_has_not_is_refused(google, back_fill, first, last, source, words):
    with pytest.raises(UsageError, match=words):
        back_fill(first, last, f"data.source={source}")
    assert google.requests == []
