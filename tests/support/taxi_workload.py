"""The settings of the taxi workload, of which a test changes what it is about."""

from pathlib import Path

from slipway.pipeline.config import WorkloadConfig, load_workload, read_assignments

_PROJECT = Path(__file__).resolve().parents[2]


def taxi_workload(*sets: str) -> WorkloadConfig:
    """Return the settings with some changed, as `--set` changes them.

    Args:
        sets: e.g. "train.epochs=2".
    """
    return load_workload(
        _PROJECT / "workloads/taxi/workload.yaml", sets=read_assignments(sets), root=_PROJECT
    )
