"""The required settings of a cloud run; all missing ones are reported at once. Pure."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.config.cloud_services import VertexConfig
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.terminal.invocation import image_command


@dataclass(frozen=True)
class RequiredSetting:
    """A key that must be set.

    Attributes:
        key: its dotted path in the workload file.
        value: its current value; None if it is missing.
        example: an example value; the user replaces the parts in capitals.
    """

    key: str
    value: object
    what: str
    example: str


def needed_to_run(config: WorkloadConfig) -> list[RequiredSetting]:
    """Return the settings that a job needs on any service."""
    cloud = config.cloud
    is_kubeflow = cloud.service == "kubeflow"
    root = "gs://, s3:// or minio://BUCKET/PATH" if is_kubeflow else "gs://BUCKET/PATH"
    destination = "gs://, s3:// or az://BUCKET/PATH" if is_kubeflow else "gs://BUCKET/PATH"
    return [
        RequiredSetting(
            "cloud.image",
            cloud.image,
            f"the name under which you pushed what `{image_command()}` built",
            "REGION-docker.pkg.dev/PROJECT/slipway/slipway:1.0",
        ),
        RequiredSetting("cloud.root", cloud.root, f"{root} for the artifacts", "gs://BUCKET/pipelines"),
        RequiredSetting(
            "push.destination",
            config.push.destination,
            f"{destination} for the served models",
            f"gs://BUCKET/serving/{config.name}",
        ),
    ]


def needed_by_vertex(vertex: VertexConfig) -> list[RequiredSetting]:
    """Return the settings that Vertex AI needs for a pipeline or a training job."""
    return [
        RequiredSetting(
            "cloud.vertex.project", vertex.project, "the id of your Google Cloud project", "PROJECT"
        ),
        RequiredSetting(
            "cloud.vertex.region",
            vertex.region,
            "where the pipeline runs, such as europe-west4",
            "europe-west4",
        ),
    ]


def needed_by_service(config: WorkloadConfig) -> list[RequiredSetting]:
    """Return the further settings that the service named by `cloud.service` needs."""
    if config.cloud.service == "vertex":
        return needed_by_vertex(config.cloud.vertex)
    what = (
        "the address of its API; http://localhost:8080 behind "
        "`kubectl port-forward -n kubeflow svc/ml-pipeline-ui 8080:80`"
    )
    return [RequiredSetting("cloud.kubeflow.host", config.cloud.kubeflow.host, what, "http://localhost:8080")]


def require(
    needed: Iterable[RequiredSetting],
    *,
    who: str,
    profiles: Mapping[str, Mapping[str, Any]],
    wrong: Sequence[ConfigError] = (),
) -> None:
    """Raise one error for all settings that are missing or wrong.

    Args:
        who: the thing that needs the settings, in words.
        profiles: the workload's, one of which may set what is missing.
        wrong: errors that other checks found.

    Raises:
        ConfigError: names each key, and shows a piece of a workload file that sets the missing ones.
    """
    missing = [each for each in needed if each.value is None]
    lines = [f"{each.key} is not set, and {who} needs it: {each.what}" for each in missing]
    if not missing and len(wrong) == 1:
        raise wrong[0]
    lines += [f"{error.message}; {error.hint}" if error.hint else error.message for error in wrong]
    if lines:
        message = lines[0] if len(lines) == 1 else "\n".join([f"{len(lines)} problems", *lines])
        raise ConfigError(message, hint=_remedy(missing, profiles) if missing else "")


def _remedy(missing: Sequence[RequiredSetting], profiles: Mapping[str, Mapping[str, Any]]) -> str:
    for name, keys in profiles.items():
        if all(_sets(keys, each.key) for each in missing):
            return f"name --profile {name}: that profile of the workload file sets what is missing"
    return _as_profile(missing)


def _sets(keys: Any, path: str) -> bool:
    for part in path.split("."):
        keys = keys.get(part) if isinstance(keys, Mapping) else None
    return keys is not None


def _as_profile(missing: Sequence[RequiredSetting]) -> str:
    profile: dict[str, Any] = {}
    for each in missing:
        *sections, key = each.key.split(".")
        place = profile
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = each.example
    text = textwrap.indent(yaml.safe_dump({"prod": profile}, sort_keys=False, width=1000), "  ")
    where = (
        "put below profiles: in the workload file (in place of a `prod: {}` there, its keys into any other "
        "prod:), with your own values, and run with --profile prod"
    )
    return f"{where}:\n{text.rstrip()}"
