"""Which span a scheduled run takes: that of the day for which it is scheduled. Pure.

The service writes that day into the command of Ingest's driver, which resolves spans before Ingest runs.
"""

import copy
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from components.ingest.spans import span_kind, span_number
from pipeline.cloud.job import Job, container_tasks
from pipeline.cloud.target import Target
from pipeline.config.cloud_services import ScheduleConfig
from pipeline.errors import ConfigError

# kfp.dsl.PIPELINE_JOB_SCHEDULE_TIME_UTC_PLACEHOLDER
_SCHEDULED_AT = "{{$.pipeline_job_schedule_time_utc}}"
_DRIVER = ["python", "-m", "pipeline.cloud.span_driver"]


def follow_schedule(job: Job, when: ScheduleConfig) -> Job:
    """A compiled job whose runs take the span of the day for which they are scheduled.

    Args:
        job: it stays as it is.
        when: with `lag_days`; without, the job is returned unchanged.
    """
    if when.lag_days is None:
        return job
    job = copy.deepcopy(job)
    for driver in _drivers(job):
        own = [
            f"--scheduled_at={_SCHEDULED_AT}",
            f"--lag_days={when.lag_days}",
            f"--time_zone={when.time_zone}",
        ]
        driver["command"] = [*_DRIVER, *own]
    return job


def fix_time(job: Job, moment: datetime) -> Job:
    """A job of `follow_schedule` that runs now, for a given moment.

    Args:
        job: it stays as it is.
        moment: for which it is taken to be scheduled.
    """
    job = copy.deepcopy(job)
    for driver in _drivers(job):
        driver["command"] = [word.replace(_SCHEDULED_AT, moment.isoformat()) for word in driver["command"]]
    return job


def span_of(scheduled_at: str, *, lag_days: int, time_zone: str) -> int:
    """The span of a scheduled run, as TFX counts it.

    Args:
        scheduled_at: the moment for which the run is scheduled, ISO 8601; without an offset in UTC.
        lag_days: how many days before it the span lies.
        time_zone: in which the day is that of the schedule.

    Raises:
        ValueError: that is no moment, as where the service did not fill it in.
    """
    moment = datetime.fromisoformat(scheduled_at)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo("UTC"))
    day = moment.astimezone(ZoneInfo(time_zone)).date() - timedelta(days=lag_days)
    return span_number(day.isoformat())


def check_spans(target: Target) -> None:
    """Refuses `cloud.schedule.lag_days` where the source does not grow by days.

    Raises:
        ConfigError: the source names no day, or `data.span` fixes one.
    """
    if target.config.cloud.schedule.lag_days is None:
        return
    directory, patterns = target.source
    if span_kind([directory, *patterns.values()]) != "date":
        raise ConfigError(
            "cloud.schedule.lag_days: data.source names no day that a run could take",
            hint="write {YYYY}, {MM} and {DD} into data.source; without lag_days the latest span is taken",
        )
    if target.config.data.span is not None:
        raise ConfigError(
            f"data.span is {target.config.data.span}, and cloud.schedule.lag_days asks for one that advances",
            hint="leave one of the two out",
        )


def _drivers(job: Job) -> list[dict[str, Any]]:
    containers = (container for _, container in container_tasks(job["pipelineSpec"]))
    return [each["lifecycle"]["preCacheCheck"] for each in containers if "lifecycle" in each]
