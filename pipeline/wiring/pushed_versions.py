"""Settings for a workload's pushed versions: location, endpoint, signing keys, and manifest entries."""

from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.components.metrics.definitions import is_of_groups
from slipway.components.pusher.endpoint import EndpointSettings
from slipway.components.pusher.signature import Trust
from slipway.components.pusher.signing_keys import (
    SigningKey,
    SigningSettings,
    read_signing_key,
    read_verify_key,
)
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.errors import UsageError, raised_as
from slipway.pipeline.wiring.gate_settings import class_names, tasks
from slipway.pipeline.wiring.trainer_settings import pretrained_weights


def serving_base(config: WorkloadConfig, output: Path) -> str:
    """Return the directory or address of the workload's versions.

    Args:
        config: the workload, with absolute paths.
        output: the folder for everything that runs write.
    """
    return config.push.destination or str(output / "serving" / config.name)


def endpoint_settings(config: WorkloadConfig) -> EndpointSettings | None:
    """Return the endpoint that versions are deployed to, with its `cloud.vertex`; None if there is none."""
    wanted, vertex = config.push.endpoint, config.cloud.vertex
    if wanted is None:
        return None
    return EndpointSettings(
        project=vertex.project or "",
        region=vertex.region or "",
        address=vertex.endpoint or "",
        service_account=wanted.service_account or "",
        encryption_key=vertex.encryption_key or "",
        **wanted.model_dump(exclude={"service_account"}),
    )


def signing_settings(config: WorkloadConfig) -> SigningSettings | None:
    """Return the location of the signing key; None if versions are not signed."""
    sign = config.push.sign
    return SigningSettings(**sign.model_dump(exclude_none=True)) if sign else None


def signing_key(config: WorkloadConfig) -> SigningKey | None:
    """Return the key that versions are signed with; None if they are not signed.

    Raises:
        UsageError: the key cannot be read, or is not a key.
    """
    settings = signing_settings(config)
    with raised_as(UsageError, ComponentError):
        return read_signing_key(settings) if settings else None


def trusted_versions(config: WorkloadConfig, key_file: Path | None = None) -> Trust | None:
    """Return which of the workload's versions may be used; None means all that match their manifests.

    Args:
        key_file: the public key, which overrides the workload's `push.verify_key`; None uses that key.

    Raises:
        UsageError: the key cannot be read, or is not a key.
    """
    path = str(key_file) if key_file else config.push.verify_key
    return trust_in(path, config.name) if path else None


def trust_in(path: str, workload: str = "") -> Trust:
    """Return a `Trust` in the versions signed with the private key that belongs to this public key.

    Raises:
        UsageError: the file cannot be read, or is not a key.
    """
    with raised_as(UsageError, ComponentError):
        return Trust(read_verify_key(path), workload)


def about_model(config: WorkloadConfig) -> dict[str, object]:
    """Return the workload's entries in the manifest and the model card of its versions."""
    return {
        "workload": config.name,
        "description": config.description,
        "source": config.data.source or config.data.query or ", ".join(config.data.tables),
        "label": config.data.label,
        "model": config.train.model,
        "preprocessing_fn": config.transform.preprocessing_fn,
        **{key: names for key, names in class_names(config).items() if names},
        **({"task": task} if (task := _hub_task(config)) else {}),
        **({"pretrained": dict(pretrained)} if (pretrained := pretrained_weights(config)) else {}),
    }


def _hub_task(config: WorkloadConfig) -> str:
    """Return the Hugging Face Hub's name of the model's task; empty if there is none, or several."""
    found = tasks(config)
    if len(found) != 1 or any(is_of_groups(name) for name in config.evaluate.metrics):
        return ""
    is_classes = "classes" in found.values()
    if config.train.images or config.data.format in ("images", "npz"):
        return "image-classification" if is_classes else ""
    return "tabular-classification" if is_classes else "tabular-regression"
