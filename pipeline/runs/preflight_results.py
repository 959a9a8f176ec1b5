"""Stores the results of preflights, and finds them.

The command keeps its latest result for a workload in `OUTPUT/preflight/WORKLOAD.json`. The Preflight node
writes `preflight.json` into its artifact; if it stopped the run, its outputs are removed and the document
is part of the verdict that the run keeps. All three are the JSON of `preflight --json`.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from slipway.pipeline.runs.outcome import read_stops
from slipway.pipeline.runs.preflight_document import PreflightResult
from slipway.pipeline.runs.record import RunRecord, Verdict, write_json

NODE = "Preflight"
ARTIFACT = "schemas.PreflightReport"
FILE = "preflight.json"


def keep(output: Path, document: Mapping[str, object]) -> Path:
    """Store a result as the latest of its workload; return its file."""
    path = _last_path(output, str(document["workload"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, document)
    return path


def last(output: Path, workload: str) -> PreflightResult:
    """Return the command's latest result for a workload; empty if there is none, or the file is not JSON."""
    return _read(_last_path(output, workload))


def of_run(record: RunRecord) -> PreflightResult:
    """Return the result of the run's Preflight node, even if it stopped the run; empty without one."""
    for _, artifact in record.outputs_of(ARTIFACT):
        return _read(Path(artifact["uri"], FILE))
    return read_stops(record).get(NODE, Verdict()).get("preflight", {})


def _last_path(output: Path, workload: str) -> Path:
    return output / "preflight" / f"{workload}.json"


def _read(path: Path) -> PreflightResult:
    try:
        document: PreflightResult = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
