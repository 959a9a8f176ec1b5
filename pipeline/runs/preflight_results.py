"""Where the results of preflights lie, and how they are found again.

The command keeps its last one of a workload in `OUTPUT/preflight/WORKLOAD.json`. The node before the Trainer
writes `preflight.json` into its artifact; where it stopped the run, its outputs are removed and the document
is part of the verdict that the run keeps. All three are the JSON of `preflight --json`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slipway.pipeline.runs.outcome import read_stops
from slipway.pipeline.runs.record import RunRecord, write_json

NODE = "Preflight"
ARTIFACT = "schemas.PreflightReport"
FILE = "preflight.json"


def keep(output: Path, document: Mapping[str, Any]) -> Path:
    """Keeps a result as the last one of its workload; returns its file."""
    path = _last_path(output, document["workload"])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, document)
    return path


def last(output: Path, workload: str) -> dict[str, Any]:
    """What the command found last of a workload; empty where it was never asked, or the file is no JSON."""
    return _read(_last_path(output, workload))


def of_run(record: RunRecord) -> dict[str, Any]:
    """What the run's own node found, also where it stopped the run; empty where the run has no such node."""
    for _, artifact in record.outputs_of(ARTIFACT):
        return _read(Path(artifact["uri"], FILE))
    found: dict[str, Any] = read_stops(record).get(NODE, {}).get("preflight", {})
    return found


def _last_path(output: Path, workload: str) -> Path:
    return output / "preflight" / f"{workload}.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
