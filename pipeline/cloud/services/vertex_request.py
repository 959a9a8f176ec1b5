"""Builds requests to Vertex AI Pipelines: a compiled job with account, encryption key and policy. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime

from slipway.components.nearest import nearest
from slipway.pipeline.cloud.pipeline_job import PipelineJob, PipelineSpec
from slipway.pipeline.cloud.required_settings import needed_by_vertex, require
from slipway.pipeline.config import CloudConfig, WorkloadConfig
from slipway.pipeline.config.cloud_services import ScheduleConfig
from slipway.pipeline.errors import ConfigError

_POLICIES = {"slow": "PIPELINE_FAILURE_POLICY_FAIL_SLOW", "fast": "PIPELINE_FAILURE_POLICY_FAIL_FAST"}
_CONSOLE = "https://console.cloud.google.com/vertex-ai/locations"


def vertex_request(job: PipelineJob, cloud: CloudConfig) -> PipelineJob:
    """Return a compiled job with the settings that only Vertex AI needs, as the JSON of a PipelineJob.

    Args:
        job: as `slipway.pipeline.cloud.compile` returns it; it is not changed.

    Raises:
        ConfigError: see `checked_parameters`.
    """
    vertex = cloud.vertex
    asked: PipelineJob = {
        **job,
        "runtimeConfig": {
            **job["runtimeConfig"],
            "failurePolicy": _POLICIES[cloud.failure_policy],
            "parameterValues": checked_parameters(job["pipelineSpec"], cloud.parameters),
        },
    }
    if vertex.service_account:
        asked["serviceAccount"] = vertex.service_account
    if vertex.network:
        asked["network"] = vertex.network
    if vertex.encryption_key:
        asked["encryptionSpec"] = {"kmsKeyName": vertex.encryption_key}
    return asked


def checked_parameters(spec: PipelineSpec, values: Mapping[str, object]) -> dict[str, object]:
    """Check and return the values of a pipeline's runtime parameters.

    Args:
        values: the values by name, as the workload sets them.

    Raises:
        ConfigError: the pipeline has no such parameter, or one of its parameters has no value.
    """
    declared = spec["root"].get("inputDefinitions", {}).get("parameters", {})
    for name in values:
        if name not in declared:
            near = nearest(name, declared, similarity=0)
            there = f"nearest: {near}" if near else "it has none"
            raise ConfigError(
                f"cloud.parameters.{name}: the pipeline has no such runtime parameter; {there}",
                hint="set the workload's own keys with --set KEY=VALUE, or in a profile",
            )
    for name, declaration in declared.items():
        has_default = "defaultValue" in declaration or declaration.get("isOptional")
        if name not in values and not has_default:
            raise ConfigError(
                f"the pipeline's runtime parameter {name} has no value",
                hint=f"--set cloud.parameters.{name}=..., or in a profile",
            )
    return dict(values)


def vertex_place(config: WorkloadConfig) -> tuple[str, str]:
    """Return the project and the region of the runs.

    Raises:
        ConfigError: one of them is not set.
    """
    vertex = config.cloud.vertex
    require(needed_by_vertex(vertex), who="Vertex AI", profiles=config.profiles)
    return str(vertex.project), str(vertex.region)


def job_id(run_id: str) -> str:
    """Return the id of a run on Vertex AI: at most 128 lower-case letters, digits and '-', a letter first.

    Args:
        run_id: the workload's name, a time and a random part.

    Source: the pattern of `PipelineJob` ids, google.cloud.aiplatform.constants.pipeline.
    """
    return run_id.lower().replace("_", "-").replace(".", "-")[:128].strip("-")


def run_link(region: str, project: str, name: str) -> str:
    """Return the address of a run's page in the console."""
    return f"{_CONSOLE}/{region}/pipelines/runs/{name}?project={project}"


def schedule_link(region: str, project: str, name: str) -> str:
    """Return the address of a schedule's page in the console."""
    return f"{_CONSOLE}/{region}/pipelines/schedules/{name}?project={project}"


def schedule_request(
    asked: PipelineJob, name: str, when: ScheduleConfig, *, parent: str
) -> dict[str, object]:
    """Return a schedule of Vertex AI, as the JSON of a Schedule.

    Args:
        asked: the job, as `vertex_request` returns it.
        parent: projects/PROJECT/locations/REGION.
    """
    schedule: dict[str, object] = {
        "displayName": name,
        "cron": f"TZ={when.time_zone} {when.cron}",
        # The first limits the runs that start, the second those that have not ended.
        "maxConcurrentRunCount": when.max_concurrent_runs,
        "maxConcurrentActiveRunCount": when.max_concurrent_runs,
        "allowQueueing": when.catch_up,
        "createPipelineJobRequest": {"parent": parent, "pipelineJob": asked},
    }
    if when.starts_at:
        schedule["startTime"] = _stamp(when.starts_at)
    if when.ends_at:
        schedule["endTime"] = _stamp(when.ends_at)
    return schedule


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
