"""Requests that store a workload's versions as versions of one model in Vertex AI's Model Registry. Pure.

The registry numbers the versions of a model itself: 1, 2, ... Our versions are found by an alias,
`v1795229254`.
"""

import math
import re
from collections.abc import Mapping

from slipway.components.pusher.manifest_contents import Provenance
from slipway.components.pusher.versions import Published

WORKLOAD_LABEL = "slipway-workload"
"""The label that distinguishes our models from others with the same id."""

_ID_LETTERS = 63  # limit for a model's id and a label's value
_METRICS_TOLD = 20  # limit for a description, which people read
_SCHEMAS = "gs://google-cloud-aiplatform/schema/modelevaluation"
# The metrics in the registry's own schemas, by their Keras names. Other metrics appear only as text.
_CLASSIFICATION = {"auc": "auRoc", "auc_precision_recall": "auPrc", "binary_crossentropy": "logLoss"}
_REGRESSION = {
    "mean_absolute_error": "meanAbsoluteError",
    "mean_absolute_percentage_error": "meanAbsolutePercentageError",
    "root_mean_squared_error": "rootMeanSquaredError",
    "r2_score": "rSquared",
}


def model_id(workload: str) -> str:
    """Return the id of a workload's model: up to 63 letters, digits, '_' and '-', a letter first."""
    name = re.sub(r"[^a-z0-9_-]", "-", workload.lower())
    return (name if name[:1].isalpha() else f"m{name}")[:_ID_LETTERS]


def alias(version: int) -> str:
    """Return the alias of a version in the registry; an alias may not be a number."""
    return f"v{version}"


def is_ours(model: str, workload: str) -> bool:
    """Return True if a model, by its resource name, holds versions that the workload pushed.

    In the past each version was a model of its own, `taxi-v1795229254`: such models count, too; but not those
    of the workload `taxi-v2`, as numbers of versions are seconds since 1970.
    """
    name = _id(model)
    found = re.fullmatch(r"(.+)-v(\d{10,19})", name)
    return name == model_id(workload) or bool(found and earlier_id(workload, int(found[2])) == name)


def earlier_id(workload: str, version: int) -> str:
    """Return the id of a version that is a model of its own, as was done in the past."""
    ending = f"-v{version}"
    return model_id(workload)[: _ID_LETTERS - len(ending)] + ending


def is_version(model: str, number: str, *, of: str) -> bool:
    """Return True if a deployed model is a given version of a given model.

    Args:
        model: the resource name of the deployed model, in which the service identifies the project by its
            number, and may append the version.
        number: the version of the deployed model, by the registry's count; empty: it is in `model`, or it is
            1.
        of: the resource name of the version, with `@` and its number.
    """
    return _id(model) == _id(of) and (number or model.partition("@")[2] or "1") == of.partition("@")[2]


def upload_request(
    published: Published,
    provenance: Provenance,
    *,
    parent: str,
    container: str,
    workload: str,
    is_first: bool,
    encryption_key: str = "",
) -> dict[str, object]:
    """Build the request that adds a version to the registry and makes it the model's default.

    Args:
        provenance: of the version; missing entries are left out.
        parent: projects/PROJECT/locations/REGION.
        is_first: True: the model does not exist yet, and gets its id with this version.
        encryption_key: the Cloud KMS key of the model; empty: Google's keys.
    """
    name = model_id(workload)
    place = {"model_id": name} if is_first else {"parent_model": f"{parent}/models/{name}"}
    model: dict[str, object] = {
        "display_name": workload,
        "version_aliases": [alias(published.version), "default"],
        "version_description": describe(provenance),
        "artifact_uri": published.address,
        "container_spec": {"image_uri": container},
        "labels": labels(published.version, provenance, workload=workload),
    }
    if description := provenance.get("description"):
        model["description"] = description
    if encryption_key:
        model["encryption_spec"] = {"kms_key_name": encryption_key}
    return {"parent": parent, **place, "model": model}


def labels(version: int, provenance: Provenance, *, workload: str) -> dict[str, str]:
    """Return the labels of a version, by which the registry can filter: workload, version, run, span."""
    told = {
        WORKLOAD_LABEL: model_id(workload),
        "slipway-version": str(version),
        "slipway-run": provenance.get("run", ""),
        "slipway-span": provenance.get("data", {}).get("span", ""),
    }
    return {key: _label(value) for key, value in told.items() if value}


def describe(provenance: Provenance) -> str:
    """Describe a version's metrics and origin in one line; empty if nothing is known."""
    metrics = provenance.get("metrics", {})
    told = [f"{name} {value:.4g}" for name, value in list(metrics.items())[:_METRICS_TOLD]]
    parts = [", ".join(told), f"run {run}" if (run := provenance.get("run")) else ""]
    if again := provenance.get("republished"):
        parts.append(f"version {again['version']} again, instead of {again['instead_of']}")
    return "; ".join(filter(None, parts))


def evaluation(version: int, provenance: Provenance) -> dict[str, object] | None:
    """Return the metrics as an evaluation of the model; None if the registry knows none of their names.

    Metrics that are not finite, e.g. for a class without rows, are left out, because JSON cannot represent
    them.
    """
    metrics = {name: value for name, value in provenance.get("metrics", {}).items() if math.isfinite(value)}
    for schema, names in (("classification", _CLASSIFICATION), ("regression", _REGRESSION)):
        if known := {names[name]: value for name, value in metrics.items() if name in names}:
            return {
                "display_name": f"slipway {version}",
                "metrics_schema_uri": f"{_SCHEMAS}/{schema}_metrics_1.0.0.yaml",
                "metrics": known,
                "metadata": {"metrics": metrics, "run": provenance.get("run", "")},
            }
    return None


def is_foreign(found_labels: Mapping[str, str], workload: str) -> bool:
    """Return True if a model, by the labels of its default version, was created by something else."""
    return found_labels.get(WORKLOAD_LABEL) != model_id(workload)


def other_workload(found_labels: Mapping[str, str], workload: str) -> str:
    """Return the workload that pushed a model, by its labels, if it is another one; else empty."""
    pushed_by = found_labels.get(WORKLOAD_LABEL, "")
    return "" if pushed_by == model_id(workload) else pushed_by


def _id(model: str) -> str:
    return model.rpartition("/")[2].partition("@")[0]


def _label(value: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "-", value.lower())[:_ID_LETTERS]
