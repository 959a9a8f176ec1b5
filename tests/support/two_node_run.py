"""A run of two nodes, as it stands on record."""

from pathlib import Path
from typing import Any

from slipway.pipeline.runs.record import NodeRecord, RunRecord


def record(state: str = "complete", **values: Any) -> RunRecord:
    """The record of a run that took Ingest from a run before and has trained.

    Args:
        state: the run's.
        values: what else the record says.
    """
    nodes = [
        NodeRecord("Ingest", state="cached", why="cached from run-0"),
        NodeRecord("Trainer", state="complete", wall_s=8.04, why="first run"),
    ]
    values = {"output": Path("/data/output"), **values}
    return RunRecord("run-1", "taxi", state=state, wall_s=36.4, nodes=nodes, **values)
