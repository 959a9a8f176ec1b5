"""Where a workload's versions are, and what their papers say of it."""

from collections.abc import Mapping
from pathlib import Path

from pipeline.config import WorkloadConfig


def serving_base(config: WorkloadConfig, output: Path) -> str:
    """The directory or gs:// address that receives the workload's versions.

    Args:
        config: the workload, its paths absolute.
        output: the folder for everything that runs write.
    """
    return config.push.destination or str(output / "serving" / config.name)


def about_model(config: WorkloadConfig, overrides: Mapping[str, str]) -> dict[str, str]:
    """What the manifest and the model card of a version say of the workload that made it.

    Args:
        config: the workload.
        overrides: see `pipeline.dag.build_pipeline`; the model's own stands in its blessing.
    """
    accepted = {name: reason for name, reason in overrides.items() if name == "accept_data"}
    return {
        "workload": config.name,
        "description": config.description,
        "source": config.data.source or config.data.query or "",
        "label": config.data.label,
        "model": config.train.model,
        "preprocessing_fn": config.transform.preprocessing_fn,
        # Only where it is: a model that was pushed without it is not pushed again for it.
        **accepted,
    }
