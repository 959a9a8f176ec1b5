"""The YAML block at the top of a model card, as the Hugging Face Hub reads it; other viewers show or skip it.

Unknown fields are left out: workloads have no setting for a license, so the card names none.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping

from slipway.components.pusher.slice_chart import numbers, plain

_TAGS = ("tensorflow", "saved-model", "tfx", "slipway")
# The Hub's names of metrics; other metrics keep their names.
_HUB_NAMES = {
    "auc": "roc_auc",
    "binary_accuracy": "accuracy",
    "sparse_categorical_accuracy": "accuracy",
    "categorical_accuracy": "accuracy",
    "mean_squared_error": "mse",
    "mean_absolute_error": "mae",
    "root_mean_squared_error": "rmse",
}
_COUNTS = ("example_count", "weighted_example_count")
# Viewers that do not know such blocks show the text as Markdown: these characters have no effect there.
_STRANGE = re.compile(r"[^\w ./,:@+=-]")


def front_matter(provenance: Mapping[str, object]) -> Iterator[str]:
    """Yield the lines of the block, between two lines of `---`.

    Args:
        provenance: as returned by `collect_provenance`. Without a `task` there is no index of results,
            because the Hub requires the task in it.
    """
    task = _word(provenance.get("task") or "")
    metrics = {
        name: value
        for name, value in numbers(provenance.get("metrics")).items()
        if name not in _COUNTS and math.isfinite(value)
    }
    yield "---"
    yield "library_name: tensorflow"
    if task:
        yield f"pipeline_tag: {_quoted(task)}"
    yield "tags:"
    yield from (f"- {tag}" for tag in _TAGS)
    if metrics:
        yield "metrics:"
        yield from (f"- {_quoted(name)}" for name in dict.fromkeys(map(_hub_name, metrics)))
    if metrics and task:
        yield from _index(provenance, task, metrics)
    yield "---"
    yield ""


def _index(provenance: Mapping[str, object], task: str, metrics: Mapping[str, float]) -> Iterator[str]:
    found = provenance.get("data")
    data: Mapping[str, object] = found if isinstance(found, Mapping) else {}
    yield "model-index:"
    yield f"- name: {_quoted(provenance.get('workload') or 'model')}"
    yield "  results:"
    yield "  - task:"
    yield f"      type: {_quoted(task)}"
    yield "    dataset:"
    yield f"      name: {_quoted(data.get('source') or 'not named')}"
    yield "      type: custom"
    yield "      split: eval"
    if digest := data.get("digest"):
        yield f"      revision: {_quoted(digest)}"
    yield "    metrics:"
    for name, value in metrics.items():
        yield f"    - type: {_quoted(_hub_name(name))}"
        yield f"      name: {_quoted(name)}"
        yield f"      value: {_number(value)}"


def _hub_name(metric: str) -> str:
    return _HUB_NAMES.get(metric, metric)


def _number(value: float) -> str:
    """Return a number as YAML reads it: 1e-05 would be a text there."""
    text = repr(value)
    return text if "." in text or "e" not in text else text.replace("e", ".0e")


def _word(value: object) -> str:
    return _STRANGE.sub("_", plain(value))


def _quoted(value: object) -> str:
    """Return text as a double-quoted YAML string, in JSON syntax."""
    return json.dumps(_word(value), ensure_ascii=False)
