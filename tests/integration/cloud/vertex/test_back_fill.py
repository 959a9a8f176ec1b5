"""`cloud_runner.py schedule back-fill` with Vertex AI on loopback."""

import json
import os
import signal

import pytest

from pipeline.cloud import schedule
from pipeline.cloud.chosen import Chosen
from pipeline.errors import UsageError

pytest.importorskip("kfp", reason="TFX brings kfp to Python 3.11 only")

SOURCE = "data.source=gs://my-bucket/trips/{YYYY}-{MM}-{DD}/*.csv"
DONE, FAILED = {"state": "PIPELINE_STATE_SUCCEEDED"}, {"state": "PIPELINE_STATE_FAILED"}


@pytest.mark.slow
def test_each_day_of_the_range_is_run_with_its_own_span(google, workload, cloud_runner):
    google.lives = [DONE]
    words = ("--profile", "prod", "--set", SOURCE, "--set", "cloud.schedule.max_concurrent_runs=2")
    finished = cloud_runner(
        "schedule", "back-fill", str(workload), *words, "--from", "2027-02-27", "--to", "2027-03-01"
    )
    assert finished.returncode == 0, finished.stderr
    spans = []
    for name, job in google.jobs.items():
        tasks = json.loads(type(job).to_json(job))["pipelineSpec"]["root"]["dag"]["tasks"]
        given = tasks["Ingest"]["inputs"]["parameters"]["range_config"]["runtimeValue"]["constant"]
        only = json.loads(given)["static_range"]
        assert only["start_span_number"] == only["end_span_number"]
        spans.append((name.rpartition("-")[2], only["start_span_number"]))
    assert spans == [("20270227", 20876), ("20270228", 20877), ("20270301", 20878)]
    assert finished.stderr.count("Done: taxi") == 3


@pytest.fixture
def back_fill(google, workload, project, monkeypatch):
    golden = json.loads((project / "tests/data/cloud/taxi.json").read_text())
    monkeypatch.setattr(schedule, "compiled_job", lambda target: golden)
    monkeypatch.setattr(schedule, "_LOOK_S", 0.01)

    def run(first, last, *sets):
        return schedule.back_fill(Chosen(workload, sets, "prod"), first=first, last=last)

    return run


def test_nothing_more_is_started_after_a_failure(google, back_fill, capsys):
    google.lives = [DONE, {"state": "PIPELINE_STATE_RUNNING"}, FAILED]
    assert back_fill("2027-01-01", "2027-01-05", SOURCE) == 1
    assert len(google.jobs) == 2
    assert " --from 2027-01-03 --to 2027-01-05   # goes on" in capsys.readouterr().err


def test_who_stops_it_is_told_which_runs_go_on_and_where_to_go_on(google, back_fill, capsys):
    google.lives = [DONE, {"state": "PIPELINE_STATE_RUNNING"}]
    seen = []

    def on_request(request):
        seen.append(request)
        if sum("GET" in each and "pipelineJobs" in each for each in seen) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    google.on_request = on_request
    assert back_fill("2027-01-01", "2027-01-05", SOURCE) == 130
    told = capsys.readouterr().err
    assert "2027-01-02: no longer followed; the run goes on: https://console" in told
    assert " --from 2027-01-03 --to 2027-01-05   # goes on" in told
    assert not any("cancel" in request for request in google.requests)


def test_no_more_run_at_once_than_the_schedule_may(google, back_fill):
    google.lives = [{"state": "PIPELINE_STATE_RUNNING"}] * 4 + [DONE]
    assert back_fill("7", "9", "data.source=gs://my-bucket/{SPAN}/*.csv") == 0
    looks = [request.split()[0] for request in google.requests if "pipelineJobs" in request]
    assert looks == ["POST", "GET", "GET", "GET", "GET", "GET", "POST", "GET", "POST", "GET"]


@pytest.mark.parametrize(
    ("first", "last", "source", "words"),
    [
        ("2027-01-01", "2027-01-02", "gs://b/d/*.csv", "data.source has no spans"),
        ("2027-01-01", "2027-01-02", "gs://b/{SPAN}/*.csv", "data.source wants numbers"),
        ("1", "2", "gs://b/{YYYY}{MM}{DD}/*.csv", "data.source wants days as 2027-01-31"),
        ("2027-01-02", "2027-01-01", "gs://b/{YYYY}{MM}{DD}/*.csv", "must be 1 to 1000 spans, not 0"),
        ("1", "1001", "gs://b/{SPAN}/*.csv", "must be 1 to 1000 spans, not 1001"),
    ],
)
def test_range_that_the_source_has_not_is_refused(google, back_fill, first, last, source, words):
    with pytest.raises(UsageError, match=words):
        back_fill(first, last, f"data.source={source}")
    assert google.requests == []
