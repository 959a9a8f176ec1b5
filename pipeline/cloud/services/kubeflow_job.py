"""Adapts a compiled job to what Kubeflow Pipelines can run. Pure.

Its backend rejects resolvers ("resolver not implemented yet", backend/src/v2/compiler/argocompiler/argo.go
in kubeflow/pipelines) and runs no component drivers, with which TFX finds spans. Its launcher gives
containers inputs in another form than TFX expects: see `slipway.pipeline.cloud.container.kubeflow_input`.
"""

import copy
import json
import re
from collections.abc import Collection, Mapping
from datetime import datetime

import yaml

from slipway.components.ingest.spans import PLACEHOLDER, at_span, span_number
from slipway.pipeline.cloud.complete_job import (
    FIND,
    TASK,
    component_of,
    container_tasks,
    executor_of,
    hand_parameters_down,
    limit,
    node_of,
    tasks_of,
    title_of,
)
from slipway.pipeline.cloud.container.scheduled_input import INPUT_CONFIG, LAG_DAYS, SCHEDULED_AT
from slipway.pipeline.cloud.image_contents import IMAGE_PACKAGES, IMAGE_ROOT
from slipway.pipeline.cloud.pipeline_job import (
    EnvVar,
    PipelineContainerSpec,
    PipelineJob,
    PipelineSpec,
    PlatformSpec,
)
from slipway.pipeline.cloud.scheduled_span import scheduled_kind
from slipway.pipeline.cloud.services.vertex_request import checked_parameters
from slipway.pipeline.cloud.task_resources import resources_of
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.config.cloud_services import ScheduleConfig
from slipway.pipeline.config.cron import DAYS
from slipway.pipeline.errors import ConfigError

_TASK_HERE = "slipway.pipeline.cloud.container.kubeflow_task"
_INPUT_BASE = "input_base"
# Argo fills it in. Only a recurring run's workflow has this label: backend/src/common/util/consts.go.
_WHEN = "{{workflow.labels.scheduledworkflows.kubeflow.org/workflowEpoch}}"
# What Argo 4.0.5 fills in or refuses in a task's parameters; it leaves other words in double braces alone.
_FILLED_IN = re.compile(r"\{\{\s*(=|(workflow|inputs|tasks|steps|item|pod)\.).*?\}\}", re.DOTALL)
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]*")
_MOST_AT_ONCE = 10


def kubeflow_job(
    job: PipelineJob,
    config: WorkloadConfig,
    *,
    when: ScheduleConfig | None = None,
    records: str | None = None,
) -> PipelineJob:
    """Return a compiled job without drivers and resolvers.

    Tasks of ours replace the resolvers, the span is written into the file patterns, and the tasks get the
    variables and secrets of `cloud.kubeflow`.

    Args:
        job: as `slipway.pipeline.cloud.compile` returns it; it is not changed.
        when: the schedule of the job; None for a single run.
        records: the folder, here or on gs://, with the records of earlier runs' artifacts; None means a
            folder below the job's artifact root.

    Returns:
        `pipelineSpec`, `runtimeConfig` with `gcsOutputDirectory` and `parameterValues`, and if there are
        secrets, `platformSpec`.

    Raises:
        ConfigError: the span is not known beforehand, a parameter is wrong, or machines other than the
            task's own would read its artifacts.
    """
    check_machines(config)
    spec = copy.deepcopy(job["pipelineSpec"])
    root = job["runtimeConfig"]["gcsOutputDirectory"]
    kept: list[str] = []
    if config.cloud.kubeflow.without_baseline:
        _remove_resolvers(spec)
    else:
        kept = _look_up(spec, config, records or f"{root}/records/{config.name}")
    for name, container in container_tasks(spec):
        if TASK in container["command"]:
            container["command"] = [_TASK_HERE if word == TASK else word for word in container["command"]]
            container["args"] = [*container["args"], _producers(spec, name), *kept]
    values = checked_parameters(spec, config.cloud.parameters)
    own = frozenset(spec["root"].get("inputDefinitions", {}).get("parameters", {}))
    for name, container in container_tasks(spec):
        if container.pop("lifecycle", None) is not None:
            # The driver also tells the service which files there are, so that it finds them changed.
            if not _is_data_in_image(spec, name):
                tasks_of(spec)[name]["cachingOptions"] = {"enableCache": False}
            filled = _fill_spans(spec, name, config, when)
            if filled and SCHEDULED_AT in own:
                raise ConfigError(
                    f"the pipeline has a runtime parameter {SCHEDULED_AT} of its own, as which the runs of a "
                    "schedule on Kubeflow Pipelines get the time that they are scheduled for",
                    hint="rename the parameter",
                )
            values |= filled
    _check_texts(spec)
    hand_parameters_down(spec)
    made: PipelineJob = {
        "pipelineSpec": spec,
        "runtimeConfig": {"gcsOutputDirectory": root, "parameterValues": values},
    }
    variables: list[EnvVar] = [
        {"name": name, "value": value} for name, value in config.cloud.kubeflow.variables.items()
    ]
    for _, container in container_tasks(spec):
        if variables:
            container["env"] = [*container.get("env", ()), *copy.deepcopy(variables)]
    if config.cloud.kubeflow.secrets:
        made["platformSpec"] = _with_secrets(spec, config)
    return made


def kubeflow_package(job: PipelineJob) -> str:
    """Return the YAML that Kubeflow Pipelines accepts as a pipeline, in its UI or through its own client.

    A second document of it names the secrets, if there are any.

    Args:
        job: as `kubeflow_job` returns it. Its artifact root and parameter values become the pipeline's
            defaults.
    """
    spec = copy.deepcopy(job["pipelineSpec"])
    spec["defaultPipelineRoot"] = job["runtimeConfig"]["gcsOutputDirectory"]
    for name, value in job["runtimeConfig"]["parameterValues"].items():
        spec["root"]["inputDefinitions"]["parameters"][name]["defaultValue"] = value
    documents = [spec, job["platformSpec"]] if "platformSpec" in job else [spec]
    return yaml.dump_all(documents, Dumper=_Dumper, width=10_000)


class _Dumper(yaml.SafeDumper):
    """Quotes strings that other YAML parsers might not read as strings, such as 1e5."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if _WORD.fullmatch(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def check_machines(config: WorkloadConfig) -> None:
    """Reject settings by which other machines would read artifacts, which are only on the task's own.

    Raises:
        ConfigError: `beam.runner` or `train.device` names machines other than the task's own.
    """
    if config.beam.runner != "direct":
        raise ConfigError(
            f"beam.runner: on Kubeflow Pipelines {config.beam.runner} would not find a task's artifacts, "
            "which are in its container",
            hint="--set beam.runner=direct",
        )
    if config.train.device == "tpu":
        raise ConfigError(
            "train.device: on Kubeflow Pipelines machines with TPUs would not find a task's artifacts, which "
            "are in its container",
            hint="cloud.service: vertex",
        )


def fill_scheduled_time(values: Mapping[str, object], moment: datetime) -> dict[str, object]:
    """Return the parameters of a recurring run, for a run that starts now as if scheduled for a moment."""
    return {name: str(int(moment.timestamp())) if value == _WHEN else value for name, value in values.items()}


def kubeflow_cron(when: ScheduleConfig) -> str:
    """Return the cron expression for Kubeflow Pipelines: seconds first, Sunday is 0, UTC.

    Source: kfp.Client.create_recurring_run, and github.com/robfig/cron 1.2.0, with which the backend parses
    it.

    Raises:
        ConfigError: the schedule has another time zone, for which that parser has no `TZ=`.
    """
    _check_zone(when)
    *fields, days = when.cron.split()
    return " ".join(["0", *fields, ",".join(_without_7(part) for part in days.split(","))])


def kubeflow_concurrency(when: ScheduleConfig) -> str:
    """Return how many runs of a schedule may run at once, from 1 to 10, as the API takes it.

    Source: backend/src/crd/controller/scheduledworkflow/util/scheduled_workflow.go in kubeflow/pipelines,
    which takes more for 10 and says nothing.

    Raises:
        ConfigError: more are asked for.
    """
    if when.max_concurrent_runs > _MOST_AT_ONCE:
        raise ConfigError(
            f"cloud.schedule.max_concurrent_runs: {when.max_concurrent_runs} runs of a schedule cannot run "
            f"at once on Kubeflow Pipelines, which starts at most {_MOST_AT_ONCE}",
            hint=f"--set cloud.schedule.max_concurrent_runs={_MOST_AT_ONCE}",
        )
    return str(when.max_concurrent_runs)


def _check_zone(when: ScheduleConfig) -> None:
    if when.time_zone != "UTC":
        raise ConfigError(
            f"cloud.schedule.time_zone: {when.time_zone} cannot be that of a schedule on Kubeflow Pipelines: "
            "its cron is in UTC, or in the zone that the installation sets for all (CRON_SCHEDULE_TIMEZONE)",
            hint="set time_zone: UTC, and write the hours of cloud.schedule.cron in UTC (or in that zone)",
        )


def _without_7(days: str) -> str:
    """Return the days of a part of cron's last field, without a 7 for Sunday, e.g. `5,6,0` for `5-7`."""
    ends, _, step = days.partition("/")
    first, _, last = ends.partition("-")
    if "7" not in (first.lstrip("0"), last.lstrip("0")):
        return days
    least = DAYS.index(first.lower()) if first.lower() in DAYS else int(first)
    return ",".join(str(day % 7) for day in range(least, 8, int(step or 1)))


def _with_secrets(spec: PipelineSpec, config: WorkloadConfig) -> PlatformSpec:
    """Return what gives each container the secrets; the settings for Kubernetes stand beside the pipeline."""
    secrets = [
        {
            "secretName": secret,
            "keyToEnv": [{"secretKey": key, "envVar": name} for name, key in variables.items()],
        }
        for secret, variables in config.cloud.kubeflow.secrets.items()
    ]
    labels = [component_of(spec, name)["executorLabel"] for name, _ in container_tasks(spec)]
    executors: dict[str, dict[str, object]] = {
        label: {"secretAsEnv": copy.deepcopy(secrets)}
        for label in labels  # shared ones become YAML's aliases
    }
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}


def _producers(spec: PipelineSpec, name: str) -> str:
    """Return the argument that names the producer of each input, for the error if an input is gone."""
    inputs = tasks_of(spec)[name].get("inputs", {}).get("artifacts", {})
    makers = {
        key: source["taskOutputArtifact"]["producerTask"]
        for key, source in sorted(inputs.items())
        if "taskOutputArtifact" in source  # other inputs, such as the pipeline's own, have no producer
    }
    return f"--producers={','.join(f'{key}={maker}' for key, maker in makers.items())}"


def _look_up(spec: PipelineSpec, config: WorkloadConfig, records: str) -> list[str]:
    """Replace each resolver with a task of ours.

    Returns:
        The arguments with which the other tasks keep records of what these tasks look for; none if there
        are no resolvers.
    """
    tasks = tasks_of(spec)
    found = {
        name: executor["resolver"] for name in tasks if "resolver" in (executor := executor_of(spec, name))
    }
    if not found:
        return []
    # The image of our own tasks has what the look-up imports; another component's image may not.
    ours = (each["image"] for _, each in container_tasks(spec) if TASK in each["command"])
    image = next(ours, str(config.cloud.image))
    titles = set()
    for name, resolver in found.items():
        queries = {key: query["filter"] for key, query in resolver["outputArtifactQueries"].items()}
        made = component_of(spec, name)["outputDefinitions"]["artifacts"]
        titles |= {title_of(made[key]["artifactType"]) for key in queries}
        # The placeholders in a filter are escaped, so that neither the driver, the launcher nor Argo fills
        # them in.
        text = json.dumps(queries, sort_keys=True).replace("{{$", "\\u007b\\u007b\\u0024")
        # The settings of the resolver itself, or of the node that it belongs to.
        named = next((key for key in (name, node_of(name)) if key in config.cloud.tasks), name)
        container: PipelineContainerSpec = {
            "image": image,
            "command": ["python", "-m", FIND],
            "args": [
                "--given={{$}}",
                f"--queries={text}",
                f"--records={records}",
                f"--fetch={','.join(sorted(_read_of(spec, name, but=found)))}",
            ],
            "resources": resources_of(named, config.cloud),
        }
        container["resources"].pop("accelerator", None)  # a look-up needs none
        executors = spec["deploymentSpec"]["executors"]
        executors[component_of(spec, name)["executorLabel"]] = {"container": container}
        tasks[name]["cachingOptions"] = {"enableCache": False}  # another run may find something else
        if limits := config.nodes.get(name) or config.nodes.get(node_of(name)):
            limit(tasks[name], container, limits)
    return [f"--records={records}", f"--keep={','.join(sorted(titles))}"]


def _read_of(spec: PipelineSpec, name: str, *, but: Collection[str]) -> set[str]:
    """Return the outputs of a task whose files another task reads, which is not among `but`."""
    return {
        source["taskOutputArtifact"]["outputArtifactKey"]
        for reader, task in tasks_of(spec).items()
        if reader not in but
        for source in task.get("inputs", {}).get("artifacts", {}).values()
        if source.get("taskOutputArtifact", {}).get("producerTask") == name
    }


def _check_texts(spec: PipelineSpec) -> None:
    """Reject a task's parameter in which Argo, whose templates hold it, would fill something in.

    Raises:
        ConfigError: one contains e.g. {{workflow.name}} or {{=1+1}}.
    """
    for name, task in tasks_of(spec).items():
        for key, source in task.get("inputs", {}).get("parameters", {}).items():
            value = source.get("runtimeValue", {}).get("constant")
            if isinstance(value, str) and (found := _FILLED_IN.search(value)):
                raise ConfigError(
                    f"{name}.{key} contains {found[0]}, which Argo, the engine of Kubeflow Pipelines, would "
                    "fill in or refuse",
                    hint="write that text of the workload without {{ and }}",
                )


def _remove_resolvers(spec: PipelineSpec) -> None:
    tasks = tasks_of(spec)
    gone = {name for name in tasks if "resolver" in executor_of(spec, name)}
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


def _is_data_in_image(spec: PipelineSpec, name: str) -> bool:
    folder = tasks_of(spec)[name]["inputs"]["parameters"][_INPUT_BASE]["runtimeValue"]["constant"]
    return f"{folder}/".startswith((f"{IMAGE_ROOT}/", f"{IMAGE_PACKAGES}/"))


def _fill_spans(
    spec: PipelineSpec, name: str, config: WorkloadConfig, when: ScheduleConfig | None
) -> dict[str, str]:
    """Write the span into Ingest's file patterns; return the pipeline parameters that these need."""
    given = tasks_of(spec)[name]["inputs"]["parameters"]
    declared = component_of(spec, name)["inputDefinitions"]["parameters"]
    text = given[INPUT_CONFIG]["runtimeValue"]["constant"]
    if not PLACEHOLDER.search(text):
        return {}
    given.pop("range_config", None)
    declared.pop("range_config", None)
    splits = json.loads(text)["splits"]
    span = config.data.span
    # Any day shows whether something else is left to fill in.
    number = 0 if span is None else span_number(span)
    named = [{**each, "pattern": at_span(each["pattern"], number)} for each in splits]
    if any(PLACEHOLDER.search(each["pattern"]) for each in named):
        raise ConfigError("data.source: Kubeflow Pipelines cannot resolve {VERSION}; leave it out")
    if span is not None:
        given[INPUT_CONFIG] = {"runtimeValue": {"constant": json.dumps({"splits": named})}}
        return {}
    lag_days = _lag_days(config, when)
    # Argo fills it in only in parameters of the pipeline; the task writes the span into its patterns.
    given[SCHEDULED_AT] = {"componentInputParameter": SCHEDULED_AT}
    given[LAG_DAYS] = {"runtimeValue": {"constant": lag_days}}
    declared |= {SCHEDULED_AT: {"parameterType": "STRING"}, LAG_DAYS: {"parameterType": "NUMBER_INTEGER"}}
    root = spec["root"].setdefault("inputDefinitions", {}).setdefault("parameters", {})
    root[SCHEDULED_AT] = {"parameterType": "STRING"}
    return {SCHEDULED_AT: _WHEN}


def _lag_days(config: WorkloadConfig, when: ScheduleConfig | None) -> int:
    """Return how many days before the scheduled one a run's span lies.

    Raises:
        ConfigError: no schedule says so, and nothing before Ingest could find the latest span; or the
            schedule is not in UTC.
    """
    if when is None or scheduled_kind(config) is None or when.lag_days is None:
        raise ConfigError(
            "data.source: Kubeflow Pipelines does not find the latest span",
            hint="name one with data.span; the runs of `schedule create` may take that of their day, with "
            "cloud.schedule.lag_days",
        )
    _check_zone(when)
    return when.lag_days
