"""A compiled job as Kubeflow Pipelines can carry it out. Pure.

Its backend refuses resolvers ("resolver not implemented yet", backend/src/v2/compiler/argocompiler/argo.go in
kubeflow/pipelines) and runs no drivers of components, by which TFX finds spans.
"""

import copy
import json
import re
from collections.abc import Mapping
from datetime import date, datetime

from slipway.pipeline.cloud.complete_job import component_of, container_tasks, executor_of, tasks_of
from slipway.pipeline.cloud.pipeline_job import PipelineJob, PipelineSpec
from slipway.pipeline.cloud.scheduled_span import scheduled_kind
from slipway.pipeline.cloud.vertex_request import checked_parameters
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.config.cloud_services import ScheduleConfig
from slipway.pipeline.errors import ConfigError

_INPUT_CONFIG = "input_config"
# Macros of recurring runs, filled in when a run starts, in UTC; the format is that of Go's package time.
_MACROS = {"YYYY": "[[ScheduledTime.2006]]", "MM": "[[ScheduledTime.01]]", "DD": "[[ScheduledTime.02]]"}
_LEFT = re.compile(r"\{(?:SPAN|VERSION|YYYY|MM|DD)(?::\d+)?\}")
_WIDTH = re.compile(r"\{SPAN(?::(\d+))?\}")


def kubeflow_job(
    job: PipelineJob, config: WorkloadConfig, *, when: ScheduleConfig | None = None
) -> PipelineJob:
    """A compiled job without resolvers and drivers; the patterns of files hold the span itself.

    Args:
        job: as `slipway.pipeline.cloud.compile` makes it; it stays as it is.
        when: the schedule that it is for; None: a run of its own.

    Returns:
        `pipelineSpec`, and `runtimeConfig` with `gcsOutputDirectory` and `parameterValues`.

    Raises:
        ConfigError: it has resolvers and `cloud.kubeflow.without_baseline` is not set, the span cannot be
            told beforehand, or a parameter is wrong.
    """
    spec = copy.deepcopy(job["pipelineSpec"])
    _remove_resolvers(spec, allowed=config.cloud.kubeflow.without_baseline)
    values = checked_parameters(spec, config.cloud.parameters)
    for name, container in container_tasks(spec):
        if container.pop("lifecycle", None) is not None:
            values |= _fill_spans(spec, name, config, when)
    root = job["runtimeConfig"]["gcsOutputDirectory"]
    return {"pipelineSpec": spec, "runtimeConfig": {"gcsOutputDirectory": root, "parameterValues": values}}


def fill_macros(values: Mapping[str, object], moment: datetime) -> dict[str, object]:
    """The parameters of a recurring run for a run that starts now.

    Args:
        values: by name.
        moment: in UTC.
    """
    formats = {"YYYY": "%Y", "MM": "%m", "DD": "%d"}
    filled = {}
    for name, value in values.items():
        for part, macro in _MACROS.items():
            value = value.replace(macro, moment.strftime(formats[part])) if isinstance(value, str) else value
        filled[name] = value
    return filled


def kubeflow_cron(when: ScheduleConfig) -> str:
    """The cron expression as Kubeflow Pipelines reads it: seconds first, Sunday is 0, UTC by default.

    Source: kfp.Client.create_recurring_run, and github.com/robfig/cron v1, which the backend parses it with.
    """
    *fields, day = when.cron.split()
    cron = " ".join(["0", *fields, "0" if day == "7" else day])
    return cron if when.time_zone == "UTC" else f"TZ={when.time_zone} {cron}"


def _remove_resolvers(spec: PipelineSpec, *, allowed: bool) -> None:
    tasks = tasks_of(spec)
    gone = {name for name in tasks if "resolver" in executor_of(spec, name)}
    if gone and not allowed:
        raise ConfigError(
            f"Kubeflow Pipelines cannot look up the last blessed model and the last passed data "
            f"({', '.join(sorted(gone))})",
            hint="--set cloud.kubeflow.without_baseline=true compares with neither: max_drop and drift then "
            "stop nothing",
        )
    for name, task in tasks.items():
        if name not in gone:
            given = task.get("inputs", {}).get("artifacts", {})
            for key in [
                k for k, v in given.items() if v.get("taskOutputArtifact", {}).get("producerTask") in gone
            ]:
                del given[key]
                del component_of(spec, name)["inputDefinitions"]["artifacts"][key]
            if "dependentTasks" in task:
                task["dependentTasks"] = [other for other in task["dependentTasks"] if other not in gone]
    executors = spec["deploymentSpec"]["executors"]
    for name in gone:
        component = spec["components"].pop(tasks.pop(name)["componentRef"]["name"])
        del executors[component["executorLabel"]]


def _fill_spans(
    spec: PipelineSpec, name: str, config: WorkloadConfig, when: ScheduleConfig | None
) -> dict[str, str]:
    """Puts the span into the patterns of Ingest; returns the parameters for it."""
    given = tasks_of(spec)[name]["inputs"]["parameters"]
    text = given[_INPUT_CONFIG]["runtimeValue"]["constant"]
    if not _LEFT.search(text):
        return {}
    given.pop("range_config", None)
    component_of(spec, name)["inputDefinitions"]["parameters"].pop("range_config", None)
    splits = json.loads(text)["splits"]
    span = config.data.span
    if span is not None:
        patterns = [_with_span(each["pattern"], span) for each in splits]
    else:
        _check_macros(config, when)
        patterns = [_replaced(each["pattern"], _MACROS) for each in splits]
    if any(_LEFT.search(pattern) for pattern in patterns):
        raise ConfigError("data.source: Kubeflow Pipelines finds no {VERSION}; leave it out")
    named = [{**each, "pattern": pattern} for each, pattern in zip(splits, patterns, strict=True)]
    filled = json.dumps({"splits": named})
    if span is not None:
        given[_INPUT_CONFIG] = {"runtimeValue": {"constant": filled}}
        return {}
    # Macros are filled in only within parameters of the pipeline.
    given[_INPUT_CONFIG] = {"componentInputParameter": _INPUT_CONFIG}
    root = spec["root"].setdefault("inputDefinitions", {}).setdefault("parameters", {})
    root[_INPUT_CONFIG] = {"parameterType": "STRING"}
    return {_INPUT_CONFIG: filled}


def _with_span(pattern: str, span: int | str) -> str:
    if isinstance(span, int):
        return _WIDTH.sub(lambda match: str(span).zfill(int(match[1] or 0)), pattern)
    day = date.fromisoformat(span)
    parts = {"YYYY": f"{day:%Y}", "MM": f"{day:%m}", "DD": f"{day:%d}"}
    return _replaced(pattern, parts)


def _check_macros(config: WorkloadConfig, when: ScheduleConfig | None) -> None:
    """Rejects what the service's macros cannot fill in: they know a schedule's day in UTC only."""
    kind = scheduled_kind(config) if when is not None else None
    if when is None or kind is None:
        raise ConfigError(
            "data.source: Kubeflow Pipelines does not find the latest span",
            hint="name one with data.span, or the scheduled day's with {YYYY}, {MM}, {DD} and "
            "cloud.schedule.lag_days: 0",
        )
    if kind == "number":
        raise ConfigError(
            "data.source: Kubeflow Pipelines fills in days, and cannot count them for {SPAN}",
            hint="write {YYYY}, {MM} and {DD} into data.source instead of {SPAN}",
        )
    if when.lag_days or when.time_zone != "UTC":
        raise ConfigError(
            "cloud.schedule: at Kubeflow Pipelines a run can take the span of its own day in UTC only",
            hint="lag_days: 0 and time_zone: UTC; run after the day's data is complete",
        )


def _replaced(pattern: str, parts: Mapping[str, str]) -> str:
    for part, value in parts.items():
        pattern = pattern.replace(f"{{{part}}}", value)
    return pattern
