"""Which span a scheduled run takes."""

import json
from datetime import UTC, datetime

import pytest
from taxi_workload import taxi_workload

from slipway.pipeline.cloud.airflow.dag_file import Place, dag_text
from slipway.pipeline.cloud.complete_job import executor_of
from slipway.pipeline.cloud.scheduled_span import fix_time, follow_schedule, scheduled_kind, span_of
from slipway.pipeline.config.cloud_services import ScheduleConfig
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.runs.graph import Graph


@pytest.fixture
def job(project):
    return json.loads((project / "tests/data/cloud/taxi.json").read_text())


def command(job):
    return executor_of(job["pipelineSpec"], "Ingest")["container"]["lifecycle"]["preCacheCheck"]["command"]


def test_driver_of_ingest_is_told_for_when_the_run_is_scheduled(job):
    followed = follow_schedule(job, ScheduleConfig(lag_days=1, time_zone="Europe/Berlin"))
    assert command(followed) == [
        "python", "-m", "slipway.pipeline.cloud.container.span_driver",
        "--scheduled_at={{$.pipeline_job_schedule_time_utc}}", "--lag_days=1", "--time_zone=Europe/Berlin",
    ]  # fmt: skip
    assert command(job) == ["python", "-m", "slipway.pipeline.cloud.container.span_driver"]
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


def config(*sets):
    return taxi_workload("cloud.schedule.lag_days=0", *sets)


@pytest.mark.parametrize(
    ("sets", "kind"),
    [
        (["data.source=gs://b/{YYYY}-{MM}-{DD}.csv"], "date"),
        (["data.source=gs://b/{SPAN}.csv"], "number"),
        (["data.source=gs://b/{SPAN}.csv", "cloud.schedule.lag_days=null"], None),
        (["cloud.schedule.lag_days=null"], None),
    ],
)
def test_span_of_a_schedule_is_named_as_the_source_names_it(sets, kind):
    assert scheduled_kind(config(*sets)) == kind


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ([], "data.source names no day that a run could take"),
        (["data.source=gs://b/{SPAN}.csv", "data.span=7"], "data.span is 7, and .* one that advances"),
    ],
)
def test_span_that_cannot_advance_is_refused_alike_whoever_keeps_the_schedule(sets, words):
    wrong = config(*sets)
    with pytest.raises(ConfigError, match=words):
        scheduled_kind(wrong)  # what `schedule create` asks first, on Vertex AI and Kubeflow
    with pytest.raises(ConfigError, match=words):
        dag_text(Graph("taxi", ()), wrong, name="taxi", workload=(), place=Place("", "", ""))
