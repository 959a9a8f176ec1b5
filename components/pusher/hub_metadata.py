"""The block of YAML at the top of a model card, as the Hugging Face Hub reads it; others show or skip it.

What is not known is left out: nobody asks a workload for a license, so the card names none.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from slipway.components.pusher.slice_chart import numbers, plain

_TAGS = ("tensorflow", "saved-model", "tfx", "slipway")
# The Hub's own names of metrics; the others keep theirs.
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
# Text in it is shown as Markdown by those who do not know such blocks: only letters that do nothing there.
_STRANGE = re.compile(r"[^\w ./,:@+=-]")


def front_matter(papers: Mapping[str, object]) -> Iterator[str]:
    """The lines of the block, between two of `---`.

    Args:
        papers: as `slipway.components.pusher.provenance` gives them. Without a `task` there is no index of
            results, which the Hub takes only with one.
    """
    task = _word(papers.get("task") or "")
    metrics = {
        name: value
        for name, value in numbers(papers.get("metrics")).items()
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
        yield from _index(papers, task, metrics)
    yield "---"
    yield ""


def _index(papers: Mapping[str, object], task: str, metrics: Mapping[str, float]) -> Iterator[str]:
    found = papers.get("data")
    data: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    yield "model-index:"
    yield f"- name: {_quoted(papers.get('workload') or 'model')}"
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
        yield f"      value: {value!r}"


def _hub_name(metric: str) -> str:
    return _HUB_NAMES.get(metric, metric)


def _word(value: object) -> str:
    return _STRANGE.sub("_", plain(value))


def _quoted(value: object) -> str:
    """Text as YAML reads it: in double quotes, as JSON writes it."""
    return json.dumps(_word(value), ensure_ascii=False)
