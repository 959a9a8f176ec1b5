"""`cloud_runner.py schedule` with Vertex AI on loopback."""

import json
from datetime import UTC, datetime

import pytest
from installed import needed

from slipway.pipeline.cloud import schedule_commands as schedule
from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.complete_job import executor_of
from slipway.pipeline.config import read_assignments
from slipway.pipeline.errors import ConfigError, PipelineError, UsageError

needed("kfp", reason="TFX brings kfp to Python 3.11 only")

BY_DAY = ("data.source=gs://my-bucket/trips/{YYYY}-{MM}-{DD}/*.csv",)


@pytest.fixture
def chosen(google, workload, project, name, monkeypatch):
    """A workload's schedule; what it starts is the golden job, so that TFX is not imported for each test."""
    golden = json.loads((project / f"tests/data/cloud/{name}.json").read_text())
    monkeypatch.setattr(schedule, "compiled_job", lambda target: golden)

    def choose(*sets, called=None):
        return CloudChoice(workload, read_assignments(sets), "prod", called)

    return choose


@pytest.mark.parametrize("name", ["taxi", "digits"])
def test_schedule_is_made_as_the_profile_says(google, chosen, name):
    sets = (
        "cloud.schedule={cron: 30 2 * * *, time_zone: Europe/Berlin, start: '2027-01-01', end: '2027-12-31'}",
        "cloud.schedule.max_concurrent_runs=2",
    )
    made = schedule.create(chosen(*sets))
    (kept,) = google.schedules.values()
    assert (made.name, made.state, made.cron) == (name, "active", "TZ=Europe/Berlin 30 2 * * *")
    assert made.next_run == datetime(2027, 1, 1, 2, tzinfo=UTC)
    assert made.link == (
        "https://console.cloud.google.com/vertex-ai/locations/europe-west4/pipelines/schedules/1000"
        "?project=my-project"
    )
    assert kept.start_time.isoformat() == "2026-12-31T23:00:00+00:00"
    assert kept.end_time.isoformat() == "2027-12-30T23:00:00+00:00"
    assert (kept.max_concurrent_run_count, kept.max_concurrent_active_run_count) == (2, 2)
    assert not kept.allow_queueing
    job = kept.create_pipeline_job_request.pipeline_job
    assert job.display_name == name
    assert (job.labels["slipway_workload"], job.labels["slipway_profile"]) == (name, "prod")
    assert job.service_account == "pipelines@my-project.iam.gserviceaccount.com"
    assert job.runtime_config.failure_policy.name == "PIPELINE_FAILURE_POLICY_FAIL_FAST"


def test_second_schedule_of_the_same_name_is_refused(google, chosen):
    schedule.create(chosen())
    with pytest.raises(UsageError, match="there is a schedule 'taxi' already: active"):
        schedule.create(chosen())
    assert schedule.create(chosen(called="taxi-noon")).name == "taxi-noon"
    assert len(google.schedules) == 2


def test_schedules_are_listed_over_all_pages_latest_first(google, chosen):
    assert list(schedule.listed(chosen())) == ["no schedules on Vertex AI Pipelines"]
    for name in ("a", "b", "c"):
        schedule.create(chosen(called=name))
    schedule.pause(chosen(called="b"))
    lines = list(schedule.listed(chosen()))
    assert [line.split()[:2] for line in lines] == [["c", "active"], ["b", "paused"], ["a", "active"]]
    assert "next 2027-01-01 02:00 UTC" in lines[0]
    assert "next" not in lines[1]


@pytest.mark.parametrize(
    ("asked", "setting", "expected"), [(None, False, False), (None, True, True), (False, True, False)]
)
def test_paused_schedule_is_resumed_with_or_without_what_it_missed(google, chosen, asked, setting, expected):
    sets = (f"cloud.schedule.catch_up={str(setting).lower()}",)
    schedule.create(chosen(*sets))
    schedule.pause(chosen(*sets))
    (kept,) = google.schedules.values()
    assert kept.state.name == "PAUSED"
    schedule.resume(chosen(*sets), catch_up=asked)
    assert (kept.state.name, kept.catch_up) == ("ACTIVE", expected)


def test_deleted_schedule_is_gone(google, chosen):
    schedule.create(chosen())
    schedule.delete(chosen())
    assert google.schedules == {}
    with pytest.raises(
        UsageError, match="there is no schedule 'taxi' on Vertex AI Pipelines; there are: none"
    ):
        schedule.pause(chosen())


def test_run_now_starts_what_the_schedule_starts_not_what_the_file_says_by_now(google, chosen):
    schedule.create(chosen(*BY_DAY, "cloud.schedule.lag_days=1"))
    before = datetime.now(UTC).replace(microsecond=0)  # the job may be given whole seconds
    link = schedule.run_now(chosen("cloud.failure_policy=slow", "cloud.vertex.service_account=other@p"))
    ((name, job),) = google.jobs.items()
    assert link.endswith(f"/pipelines/runs/{name}?project=my-project")
    assert job.service_account == "pipelines@my-project.iam.gserviceaccount.com"
    assert job.runtime_config.failure_policy.name == "PIPELINE_FAILURE_POLICY_FAIL_FAST"
    spec = json.loads(type(job).to_json(job))["pipelineSpec"]
    driver = executor_of(spec, "Ingest")["container"]["lifecycle"]["preCacheCheck"]["command"]
    at = datetime.fromisoformat(driver[3].removeprefix("--scheduled_at="))
    assert before <= at <= datetime.now(UTC)


def test_spans_that_cannot_advance_are_refused(google, chosen):
    with pytest.raises(ConfigError, match=r"data\.source names no day"):
        schedule.create(chosen("cloud.schedule.lag_days=1"))
    with pytest.raises(ConfigError, match=r"data\.span is 2027-01-01, and cloud\.schedule\.lag_days"):
        schedule.create(chosen(*BY_DAY, "cloud.schedule.lag_days=1", "data.span=2027-01-01"))
    assert google.requests == []


def test_schedule_that_the_service_refuses_is_reported_and_asked_for_once(google, chosen):
    google.fails("POST .*/schedules$", 503, "try later", times=9)
    with pytest.raises(PipelineError, match="making the schedule failed: the service has an internal error"):
        schedule.create(chosen())
    assert sum(request.startswith("POST") and "schedules" in request for request in google.requests) == 1


@pytest.mark.parametrize("command", ["pause", "delete", "run_now"])
def test_fault_that_passes_is_outlived(google, chosen, monkeypatch, command):
    monkeypatch.setattr("slipway.components.google_retries.FIRST_WAIT_S", 0.01)
    schedule.create(chosen())
    google.fails("GET .*/schedules", 503)
    getattr(schedule, command)(chosen())
