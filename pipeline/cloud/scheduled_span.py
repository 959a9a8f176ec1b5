"""Determines the span of a scheduled run from the day that the run is scheduled for. Pure.

The service writes that day into the command of Ingest's driver, which resolves spans before Ingest runs.
"""

import copy
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from slipway.components.ingest.spans import Kind, span_kind, span_number
from slipway.pipeline.cloud.complete_job import DRIVER, drivers
from slipway.pipeline.cloud.pipeline_job import PipelineJob
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.config.cloud_services import ScheduleConfig
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.wiring.ingest_options import source_patterns

# The value of kfp.dsl.PIPELINE_JOB_SCHEDULE_TIME_UTC_PLACEHOLDER.
_SCHEDULED_AT = "{{$.pipeline_job_schedule_time_utc}}"


def follow_schedule(job: PipelineJob, when: ScheduleConfig) -> PipelineJob:
    """Return a compiled job whose runs take the span of their scheduled day.

    Args:
        job: it is not changed.
        when: the schedule; without `lag_days`, the job itself is returned.
    """
    if when.lag_days is None:
        return job
    job = copy.deepcopy(job)
    for driver in drivers(job["pipelineSpec"]):
        own = [
            f"--scheduled_at={_SCHEDULED_AT}",
            f"--lag_days={when.lag_days}",
            f"--time_zone={when.time_zone}",
        ]
        driver["command"] = [*DRIVER, *own]
    return job


def fix_time(job: PipelineJob, moment: datetime) -> PipelineJob:
    """Return a copy of a job of `follow_schedule` that runs now as if it were scheduled for `moment`.

    Args:
        job: it is not changed.
        moment: the scheduled time to assume.
    """
    job = copy.deepcopy(job)
    for driver in drivers(job["pipelineSpec"]):
        driver["command"] = [word.replace(_SCHEDULED_AT, moment.isoformat()) for word in driver["command"]]
    return job


def span_of(scheduled_at: str, *, lag_days: int, time_zone: str) -> int:
    """Return the span of a scheduled run, as TFX counts it.

    Args:
        scheduled_at: the time that the run is scheduled for, ISO 8601; without an offset, UTC.
        lag_days: how many days before the scheduled day the span lies.
        time_zone: the schedule's time zone, in which the day is taken.

    Raises:
        ValueError: `scheduled_at` is not a time, e.g. because the service did not fill it in.
    """
    moment = datetime.fromisoformat(scheduled_at)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo("UTC"))
    day = moment.astimezone(ZoneInfo(time_zone)).date() - timedelta(days=lag_days)
    return span_number(day.isoformat())


def scheduled_kind(config: WorkloadConfig) -> Kind | None:
    """Return how the source names the span of a scheduled run; None if a run takes the latest span.

    The rule is the same for every service that can follow a schedule. With `cloud.schedule.lag_days`, a run
    takes the span of the day that it is scheduled for, minus those days. In a source with {SPAN}, that is
    the number of the day, counted from 1970-01-01 as TFX counts days.

    Raises:
        ConfigError: the source has no spans, or `data.span` fixes one.
    """
    if config.cloud.schedule.lag_days is None:
        return None
    kind = span_kind(source_patterns(config.data).values())
    if kind is None:
        raise ConfigError(
            "cloud.schedule.lag_days: data.source names no day that a run could take",
            hint="write {YYYY}, {MM} and {DD}, or {SPAN}, into data.source; or leave lag_days out",
        )
    if config.data.span is not None:
        raise ConfigError(
            f"data.span is {config.data.span}, and cloud.schedule.lag_days asks for one that advances",
            hint="leave one of the two out",
        )
    return kind
