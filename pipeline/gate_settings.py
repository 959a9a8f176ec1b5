"""From the workload's `data_gate` to what the DataGate is given."""

import json
from pathlib import Path
from typing import Any

from pipeline.config import WorkloadConfig
from pipeline.config.gates import LAST_PASSED, NO_REFERENCE
from pipeline.ingest_options import ingest_options
from pipeline.root import PROJECT_ROOT

_NOT_LIMITS = {"reference", "serving_statistics", "sample_rows"}


def data_gate_settings(config: WorkloadConfig) -> dict[str, Any]:
    """The DataGate's settings, by the names that it has for them."""
    gate = config.data_gate
    limits = gate.model_dump(mode="json", exclude_none=True, exclude=_NOT_LIMITS)
    return {
        "label": config.data.label,
        "limits": json.dumps({"max_bad_share": config.data.max_bad_share, **limits}, sort_keys=True),
        "options": ingest_options(config.data).to_json(),
        "use_reference": int(gate.reference != NO_REFERENCE),
        "reference_folder": "" if gate.reference in (LAST_PASSED, NO_REFERENCE) else gate.reference,
        "serving_folder": gate.serving_statistics or "",
        "schema_file": _shown(config.schema_path),
        "sample_rows": gate.sample_rows,
    }


def judges_age(config: WorkloadConfig) -> bool:
    """Whether what the gate says today need not hold tomorrow."""
    freshness = config.data_gate.freshness
    return freshness is not None and freshness.max_age_days is not None


def _shown(schema: str | None) -> str:
    if schema is None:
        return ""
    path = Path(schema)
    return str(path.relative_to(PROJECT_ROOT)) if path.is_relative_to(PROJECT_ROOT) else schema
