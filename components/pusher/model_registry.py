"""The versions of a workload as versions of one model in Vertex AI's Model Registry. Pure.

A model has versions, which the registry numbers itself: 1, 2, ... Ours are found by an alias, `v1795229254`.
"""

import math
import re
from collections.abc import Mapping

from slipway.components.pusher.manifest_contents import Papers
from slipway.components.pusher.versions import Published

WORKLOAD_LABEL = "slipway-workload"
"""The label by which a model of ours is told from one of somebody else's with the same id."""

_ID_LETTERS = 63  # of a model's id, and of a label's value
_METRICS_TOLD = 20  # in a description, which people read
_SCHEMAS = "gs://google-cloud-aiplatform/schema/modelevaluation"
# The names that the registry's own schemas give to metrics, by Keras's. Others are told in words only.
_CLASSIFICATION = {"auc": "auRoc", "auc_precision_recall": "auPrc", "binary_crossentropy": "logLoss"}
_REGRESSION = {
    "mean_absolute_error": "meanAbsoluteError",
    "mean_absolute_percentage_error": "meanAbsolutePercentageError",
    "root_mean_squared_error": "rootMeanSquaredError",
    "r2_score": "rSquared",
}


def model_id(workload: str) -> str:
    """The id of a workload's model: letters, digits, '_' and '-', at most 63, a letter first."""
    name = re.sub(r"[^a-z0-9_-]", "-", workload.lower())
    return (name if name[:1].isalpha() else f"m{name}")[:_ID_LETTERS]


def alias(version: int) -> str:
    """How the registry calls a version beside its own number: an alias may not be a number."""
    return f"v{version}"


def is_ours(model: str, workload: str) -> bool:
    """Whether a model, by its resource name, holds versions that were pushed by the workload.

    Each version was a model of its own once, `taxi-v1795229254`: those count as well.
    """
    name = _id(model)
    found = re.fullmatch(r"(.+)-v(\d{1,19})", name)
    return name == model_id(workload) or bool(found and earlier_id(workload, int(found[2])) == name)


def earlier_id(workload: str, version: int) -> str:
    """The id of a version where it is a model of its own, as it was once."""
    ending = f"-v{version}"
    return model_id(workload)[: _ID_LETTERS - len(ending)] + ending


def is_version(model: str, number: str, *, of: str) -> bool:
    """Whether what is deployed is a certain version of a certain model.

    Args:
        model: the resource name of what is deployed: the service names the project by its number, and may add
            the version.
        number: the version of what is deployed, as the registry counts; empty: the name has it, or it is 1.
        of: the resource name of the version, with `@` and its number.
    """
    return _id(model) == _id(of) and (number or model.partition("@")[2] or "1") == of.partition("@")[2]


def upload_request(
    published: Published,
    papers: Papers,
    *,
    parent: str,
    container: str,
    workload: str,
    is_first: bool,
) -> dict[str, object]:
    """Puts a version into the registry, as the one that the model's name means from now on.

    Args:
        papers: of the version; what they lack is left out.
        parent: projects/PROJECT/locations/REGION.
        container: the image that serves it.
        is_first: True: the model is not there yet, and gets its id with this version.
    """
    name = model_id(workload)
    place = {"model_id": name} if is_first else {"parent_model": f"{parent}/models/{name}"}
    model: dict[str, object] = {
        "display_name": workload,
        "version_aliases": [alias(published.version), "default"],
        "version_description": describe(papers),
        "artifact_uri": published.address,
        "container_spec": {"image_uri": container},
        "labels": labels(published.version, papers, workload=workload),
    }
    if description := papers.get("description"):
        model["description"] = description
    return {"parent": parent, **place, "model": model}


def labels(version: int, papers: Papers, *, workload: str) -> dict[str, str]:
    """The labels of a version, by which the registry filters: workload, version, run, span."""
    told = {
        WORKLOAD_LABEL: model_id(workload),
        "slipway-version": str(version),
        "slipway-run": papers.get("run", ""),
        "slipway-span": papers.get("data", {}).get("span", ""),
    }
    return {key: _label(value) for key, value in told.items() if value}


def describe(papers: Papers) -> str:
    """How good a version is and where it comes from, in one line; empty where nothing is known."""
    metrics = papers.get("metrics", {})
    told = [f"{name} {value:.4g}" for name, value in list(metrics.items())[:_METRICS_TOLD]]
    parts = [", ".join(told), f"run {run}" if (run := papers.get("run")) else ""]
    if again := papers.get("republished"):
        parts.append(f"version {again['version']} again, instead of {again['instead_of']}")
    return "; ".join(filter(None, parts))


def evaluation(version: int, papers: Papers) -> dict[str, object] | None:
    """The metrics as an evaluation of the model; None where the registry knows none of their names.

    One that is no number, as of a class that no row has, cannot be told: JSON has none of the kind.
    """
    metrics = {name: value for name, value in papers.get("metrics", {}).items() if math.isfinite(value)}
    for schema, names in (("classification", _CLASSIFICATION), ("regression", _REGRESSION)):
        if known := {names[name]: value for name, value in metrics.items() if name in names}:
            return {
                "display_name": f"slipway {version}",
                "metrics_schema_uri": f"{_SCHEMAS}/{schema}_metrics_1.0.0.yaml",
                "metrics": known,
                "metadata": {"metrics": metrics, "run": papers.get("run", "")},
            }
    return None


def is_foreign(found_labels: Mapping[str, str], workload: str) -> bool:
    """Whether a model, by the labels of its default version, was put there by something else."""
    return found_labels.get(WORKLOAD_LABEL) != model_id(workload)


def _id(model: str) -> str:
    return model.rpartition("/")[2].partition("@")[0]


def _label(value: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "-", value.lower())[:_ID_LETTERS]
