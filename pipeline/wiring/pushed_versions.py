"""The place of a workload's versions, and the workload's entries in their manifests."""

from pathlib import Path

from slipway.components.pusher.endpoint import EndpointSettings
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.wiring.pretrained import pretrained_weights


def serving_base(config: WorkloadConfig, output: Path) -> str:
    """The directory or gs:// address of the workload's versions.

    Args:
        config: the workload, its paths absolute.
        output: the folder for everything that runs write.
    """
    return config.push.destination or str(output / "serving" / config.name)


def endpoint_settings(config: WorkloadConfig) -> EndpointSettings | None:
    """The endpoint that versions are deployed to, with its `cloud.vertex`; None if there is none."""
    wanted, vertex = config.push.endpoint, config.cloud.vertex
    if wanted is None:
        return None
    return EndpointSettings(
        project=vertex.project or "",
        region=vertex.region or "",
        address=vertex.endpoint or "",
        service_account=wanted.service_account or "",
        **wanted.model_dump(exclude={"service_account"}),
    )


def about_model(config: WorkloadConfig) -> dict[str, object]:
    """The workload's entries in the manifest and the model card of its versions."""
    classes = config.transform.classes
    return {
        "workload": config.name,
        "description": config.description,
        "source": config.data.source or config.data.query or ", ".join(config.data.tables),
        "label": config.data.label,
        "model": config.train.model,
        "preprocessing_fn": config.transform.preprocessing_fn,
        **({"classes": list(classes)} if classes else {}),
        **({"pretrained": dict(pretrained)} if (pretrained := pretrained_weights(config)) else {}),
    }
