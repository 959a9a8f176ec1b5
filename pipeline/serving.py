"""Where a workload's versions are."""

from pathlib import Path

from pipeline.config import WorkloadConfig


def serving_base(config: WorkloadConfig, output: Path) -> str:
    """The directory or gs:// address that receives the workload's versions.

    Args:
        config: the workload, its paths absolute.
        output: the folder for everything that runs write.
    """
    return config.push.destination or str(output / "serving" / config.name)
