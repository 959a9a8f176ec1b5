"""Collects a model's provenance when it is pushed: its origin and quality.

Missing facts are left out: the gate, data or schema of other pipelines may hold less than ours.
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import Any, cast

from slipway.components.code_digests import CODE, code_digests
from slipway.components.finite_json import finite, parsed
from slipway.components.pusher.manifest_contents import (
    About,
    DataGateProvenance,
    Provenance,
    SchemaProvenance,
)
from slipway.components.saved_model.digest import SBOM
from slipway.components.saved_model.signatures import PlainSignature

# The engine sets this variable for each node's process.
RUN_VARIABLE = "SLIPWAY_RUN"

_STACK = ("tfx", "tensorflow", "tensorflow-transform", "keras", "numpy")


def collect_provenance(
    *,
    about: About,
    verdict: Mapping[str, object],
    data_verdict: Mapping[str, object],
    data: Mapping[str, object],
    schema: SchemaProvenance,
    signatures: Mapping[str, PlainSignature],
    exports: Mapping[str, object] | None = None,
    code: Mapping[str, str] | None = None,
) -> Provenance:
    """Return the provenance of a version, for its manifest and its card.

    Args:
        verdict: the model gate's `verdict.json`.
        data: as returned by `read_data`; `schema`: as returned by `read_schema`.
        exports: the `exports.json` of the model's smaller forms; None: there are none.
        code: as returned by `read_code`: it may have been edited since. What it lacks is taken now.
    """
    found = {
        "workload": about.get("workload", ""),
        "description": about.get("description", ""),
        "label": about.get("label", ""),
        "classes": list(about.get("classes", ())),
        "output_classes": dict(about.get("output_classes", {})),
        "task": about.get("task", ""),
        "run": os.environ.get(RUN_VARIABLE, ""),
        "pushed_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": {"signatures": dict(signatures)},
        "code": {
            **code_digests([about.get("model", ""), about.get("preprocessing_fn", "")]),
            **(code or {}),
        },
        "pretrained": dict(about.get("pretrained", {})),
        "data": {
            **({"source": about["source"]} if about.get("source") else {}),
            **data,
        },
        "data_gate": _data_gate(data_verdict),
        "schema": {**schema, **({"dates": dates} if (dates := _list(data_verdict.get("dates"))) else {})},
        "metrics": _numbers(verdict.get("metrics")),
        "baseline_metrics": _numbers(verdict.get("baseline_metrics")),
        "slices": _numbers_of_slices(verdict.get("slices")),
        "gate": {key: _list(verdict.get(key)) for key in ("reasons", "checks", "overrides")},
        "exports": dict(exports or {}),
        "stack": stack_versions(),
    }
    told = {key: value for key, value in found.items() if value not in ("", {}, [], None)}
    return cast(Provenance, finite(told))


def _numbers(found: object) -> dict[str, float]:
    """Return the finite numbers of a mapping: a gate of one's own may write others, no manifest has them."""
    values = found.items() if isinstance(found, dict) else ()
    return {
        name: value
        for name, value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def _numbers_of_slices(found: object) -> dict[str, dict[str, float]]:
    values = found.items() if isinstance(found, dict) else ()
    return {name: numbers for name, value in values if (numbers := _numbers(value))}


def _list(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _data_gate(verdict: Mapping[str, object]) -> DataGateProvenance:
    """Return the data gate's findings and the reason of an override; empty if no gate judged the data."""
    findings = [each for each in _list(verdict.get("findings")) if isinstance(each, dict)]
    let_pass = verdict.get("accepted") and any(each.get("stops") for each in findings)
    known: DataGateProvenance = {
        "message": str(verdict.get("message") or ""),
        "findings": [str(each.get("text", "")) for each in findings],
        "overrides": [{"reason": str(verdict["accepted"])}] if let_pass else [],
    }
    return known if any(known.values()) else {}


def read_verdict(folder: Path) -> dict[str, object]:
    """Return the `verdict.json` of a blessing; empty if there is none that can be read."""
    return _read_mapping(folder / "verdict.json")


def read_sbom(folder: Path) -> bytes | None:
    """Return the list of the training's software in this folder; None if there is none that can be read."""
    try:
        content = (folder / SBOM).read_bytes()
        found = json.loads(content)
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(found, dict) and found.get("bomFormat") == "CycloneDX" else None


def read_exports(folder: Path) -> dict[str, object]:
    """Return the Trainer's report on smaller forms of the model in this folder; empty if there are none."""
    return _read_mapping(folder / "exports.json")


def read_data(quarantine: Path | None, *, span: Any) -> dict[str, object]:
    """Describe the data, from Ingest's summary and the span of its examples."""
    summary = _read_mapping(quarantine / "summary.json") if quarantine else {}
    known: dict[str, object] = {
        key: summary[key]
        for key in ("digest", "rows_in", "rows_out", "rejected", "unlabelled", "units")
        if key in summary
    }
    return known if span in (None, "") else {**known, "span": str(span)}


def read_schema(path: Path) -> SchemaProvenance:
    """Describe a schema, from its file (.pbtxt); empty if there is none."""
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    try:
        content = path.read_bytes()
        schema = text_format.Parse(content, schema_pb2.Schema())
    except (OSError, text_format.ParseError):
        return {}
    columns = {feature.name: schema_pb2.FeatureType.Name(feature.type) for feature in schema.feature}
    # A column with a shape has a value in each row, or the row is refused.
    needed = [
        feature.name
        for feature in schema.feature
        if feature.HasField("shape") and "SERVING" not in feature.not_in_environment
    ]
    return {"digest": hashlib.sha256(content).hexdigest(), "columns": columns, "needed": needed}


def read_code(folder: Path) -> dict[str, str]:
    """Return the digests of the code that trained the model, from this folder; empty if there are none."""
    found = _read_mapping(folder / CODE)
    return {name: digest for name, digest in found.items() if isinstance(digest, str)}


def stack_versions() -> dict[str, str]:
    """Return the versions of Python and of the main packages, by package."""
    found = {"python": python_version()}
    for package in _STACK:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue  # a deployment may lack one
    return found


def _read_mapping(path: Path) -> dict[str, object]:
    try:
        found = parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
