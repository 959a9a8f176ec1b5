"""Counts the rows and bytes that leave each node, so that the graph shows lost rows and large artifacts."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipway.pipeline.report.artifacts import read_json
from slipway.pipeline.report.page_head import COUNT
from slipway.pipeline.runs.record import Artifact, NodeRecord, RunRecord, artifacts_in
from slipway.pipeline.runs.result_files import file_sizes


@dataclass(frozen=True)
class Flow:
    """The output of a node.

    Attributes:
        rows: the rows that it produced or, for a node that produces none, consumed; None if unknown.
        size_bytes: the size of its output files; None if they were deleted, or are not on this machine.
    """

    rows: int | None
    size_bytes: int | None

    @property
    def words(self) -> str:
        """Rows and bytes as text, as far as they are known; empty if neither is."""
        rows = "" if self.rows is None else f"{self.rows:,} rows"
        size = "" if self.size_bytes is None else size_words(self.size_bytes)
        return ", ".join(filter(None, (rows, size)))


def flows(record: RunRecord, splits: Mapping[str, int]) -> dict[str, Flow]:
    """Return the output of each finished node by its ID.

    Args:
        splits: rows of each split, as counted by StatisticsGen.
    """
    done = [node for node in record.nodes if node.is_done and not node.is_resolver]
    return {node.id: Flow(_rows(node, record, splits), _size_bytes(node)) for node in done}


def _rows(node: NodeRecord, record: RunRecord, splits: Mapping[str, int]) -> int | None:
    counted = (_rows_of(artifact, record, splits) for artifact in artifacts_in(node.outputs))
    return next((rows for rows in counted if rows is not None), None)


def _rows_of(artifact: Artifact, record: RunRecord, splits: Mapping[str, int]) -> int | None:
    match artifact["type"]:
        case "schemas.Quarantine":
            rows = artifact["properties"].get("rows_out")
        case "ExampleStatistics":
            rows = sum(splits.values()) or None
        case "ModelRun":
            result = read_json(Path(artifact["uri"], "result.json")) if "://" not in artifact["uri"] else {}
            counted: list[Any] = [result.get("train_rows"), result.get("eval_rows")]
            rows = None if None in counted else sum(counted)
        case "ModelEvaluation":
            rows = record.metrics.get(COUNT)
        case _:
            rows = None
    return None if rows is None else int(rows)


def _size_bytes(node: NodeRecord) -> int | None:
    # A pushed version is a copy for the server, not an output for other nodes.
    own = [Artifact(uri=each["uri"], type=each["type"], properties={}) for each in artifacts_in(node.outputs)]
    sizes = file_sizes({"": own})
    return sum(sizes.values()) if sizes else None


def size_words(size_bytes: int) -> str:
    """Format a size with its unit, in powers of 1,000: `512 B`, `3.4 kB`, `120 MB`."""
    value, unit = float(size_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 999.5:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit == "B" or value >= 99.5 else f"{value:.2g} {unit}"
