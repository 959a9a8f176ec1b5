"""Which span a scheduled run takes."""

import json
from datetime import UTC, datetime

import pytest

from pipeline.cloud.job import executor_of
from pipeline.cloud.scheduled_span import fix_time, follow_schedule, span_of
from pipeline.config.cloud_services import ScheduleConfig


@pytest.fixture
def job(project):
    return json.loads((project / "tests/data/cloud/taxi.json").read_text())


def command(job):
    return executor_of(job["pipelineSpec"], "Ingest")["container"]["lifecycle"]["preCacheCheck"]["command"]


def test_driver_of_ingest_is_told_for_when_the_run_is_scheduled(job):
    followed = follow_schedule(job, ScheduleConfig(lag_days=1, time_zone="Europe/Berlin"))
    assert command(followed) == [
        "python", "-m", "pipeline.cloud.span_driver", "--scheduled_at={{$.pipeline_job_schedule_time_utc}}",
        "--lag_days=1", "--time_zone=Europe/Berlin",
    ]  # fmt: skip
    assert command(job)[-1] == "tfx.orchestration.kubeflow.v2.file_based_example_gen.driver"
    now = fix_time(followed, datetime(2027, 1, 31, 3, tzinfo=UTC))
    assert command(now)[3] == "--scheduled_at=2027-01-31T03:00:00+00:00"


def test_job_stays_as_it_is_where_the_latest_span_is_wanted(job):
    assert follow_schedule(job, ScheduleConfig()) == job


@pytest.mark.parametrize(
    ("scheduled_at", "lag_days", "time_zone", "day"),
    [
        ("2027-01-31T02:00:00Z", 0, "UTC", "2027-01-31"),
        ("2027-01-31T02:00:00.123456Z", 1, "UTC", "2027-01-30"),
        ("2027-01-30T23:30:00Z", 0, "Europe/Berlin", "2027-01-31"),
        ("2027-03-01T04:00:00Z", 1, "America/New_York", "2027-02-27"),
        ("2027-01-31T02:00:00", 0, "UTC", "2027-01-31"),
    ],
)
def test_span_is_the_day_of_the_schedule_in_its_time_zone_less_the_lag(
    scheduled_at, lag_days, time_zone, day
):
    epoch = datetime(1970, 1, 1)
    span = span_of(scheduled_at, lag_days=lag_days, time_zone=time_zone)
    assert span == (datetime.fromisoformat(day) - epoch).days


def test_moment_that_the_service_did_not_fill_in_is_no_moment():
    with pytest.raises(ValueError, match="Invalid isoformat"):
        span_of("{{$.pipeline_job_schedule_time_utc}}", lag_days=0, time_zone="UTC")
