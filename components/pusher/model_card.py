"""A version's `MODEL_CARD.md`: its provenance in readable form. All text in it is escaped."""

import html
import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from slipway.components.pusher.hub_metadata import front_matter
from slipway.components.pusher.slice_chart import numbers, plain, slice_chart
from slipway.components.saved_model.digest import PICTURE

_EXAMPLE_CELLS = 16
_SHOWN_FINDINGS = 20
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()!|~]|^[#+-])")
_EXAMPLES: Mapping[str, object] = {"string": "", "bool": False, "float": 0.0, "double": 0.0, "half": 0.0}


def model_card(provenance: Mapping[str, object]) -> str:
    """Return the card as Markdown: purpose, data, metrics by slice, limits, how to call the model.

    The card begins with the YAML block that the Hugging Face Hub reads.

    Args:
        provenance: as returned by `collect_provenance`; sections without content are left out.
    """
    sections = (
        _purpose(provenance),
        _data(provenance),
        _metrics(provenance),
        _exports(provenance),
        _limits(provenance),
        _call(provenance),
        _made(provenance),
    )
    text = "\n".join(["\n".join(lines) + "\n" for lines in map(list, sections) if lines])
    return "\n".join([*front_matter(provenance), text])


def _purpose(provenance: Mapping[str, object]) -> Iterator[str]:
    yield f"# {_text(provenance.get('workload') or 'A model')}"
    yield ""
    yield _text(provenance.get("description") or "The workload does not say what the model is for.")
    if label := provenance.get("label"):
        yield f"It predicts the column {_text(label)}."


def _data(provenance: Mapping[str, object]) -> Iterator[str]:
    data = _mapping(provenance.get("data"))
    if not data:
        return
    yield "## Data"
    yield ""
    rows_out = _mapping(data.get("rows_out"))
    rejected = sum(n for n in _mapping(data.get("rejected")).values() if isinstance(n, int))
    facts = {
        "source": data.get("source"),
        "span": data.get("span"),
        "rows read": data.get("rows_in"),
        "rows by split": ", ".join(f"{name} {rows}" for name, rows in rows_out.items()),
        "rows left out for lack of a label": data.get("unlabelled") or None,
        "rows rejected": rejected if data.get("rows_in") else None,
        "digest": data.get("digest"),
        "schema's digest": _mapping(provenance.get("schema")).get("digest"),
        "the data gate": _mapping(provenance.get("data_gate")).get("message"),
    }
    yield from _table(facts)
    found = _list(_mapping(provenance.get("data_gate")).get("findings"))
    if found:
        yield ""
        yield "The data gate found:"
        yield ""
        yield from (f"- {_text(each)}" for each in found[:_SHOWN_FINDINGS])
    if len(found) > _SHOWN_FINDINGS:
        yield f"- and {len(found) - _SHOWN_FINDINGS} more; manifest.json has them all."


def _metrics(provenance: Mapping[str, object]) -> Iterator[str]:
    metrics, before = numbers(provenance.get("metrics")), numbers(provenance.get("baseline_metrics"))
    if not metrics:
        return
    yield "## Metrics"
    yield ""
    yield "| metric | this model | the previous one |"
    yield "| --- | --- | --- |"
    for name, value in metrics.items():
        yield f"| {_text(name)} | {value:.4g} | {f'{before[name]:.4g}' if name in before else ''} |"
    yield from _chart(provenance)


def _chart(provenance: Mapping[str, object]) -> Iterator[str]:
    """Yield the picture, and the same as plain text, which every Markdown viewer shows."""
    chart = slice_chart(provenance)
    if chart is None:
        return
    yield ""
    yield f"{_text(chart.metric)} by slice, {chart.order}:"
    yield ""
    yield f"![the same as a picture]({PICTURE})"
    yield ""
    yield "~~~~text"
    yield from chart.lines()
    yield "~~~~"
    if chart.left_out:
        yield f"and {chart.left_out} more slices; manifest.json has them all."


def _exports(provenance: Mapping[str, object]) -> Iterator[str]:
    """Yield the smaller forms, which are stored beside the trained model, with their sizes and metrics."""
    report = _mapping(provenance.get("exports"))
    forms = [_mapping(form) for form in _list(report.get("exports"))]
    if not forms:
        return
    metrics = numbers(report.get("metrics"))
    yield "## Smaller forms"
    yield ""
    rows = _text(report.get("rows", "?"))
    yield f"The part after the transform, measured on {rows} rows; in brackets the difference from the model:"
    yield ""
    yield f"| form | kB | {' | '.join(map(_text, metrics))} |"
    yield f"| --- | --- |{' --- |' * len(metrics)}"
    for form in forms:
        size = numbers(form).get("size_bytes", 0) / 1000
        own, change = numbers(form.get("metrics")), numbers(form.get("change"))
        lost = dict.fromkeys(map(_text, _list(form.get("no_number"))), "no number")
        cells = [
            f"{own[name]:.4g} ({change.get(name, 0.0):+.2g})" if name in own else lost.get(_text(name), "")
            for name in metrics
        ]
        yield f"| {_text(form.get('kind', ''))} | {size:,.0f} | {' | '.join(cells)} |"


def _limits(provenance: Mapping[str, object]) -> Iterator[str]:
    yield "## Limits"
    yield ""
    yield "- Valid only for data like the above; the metrics say nothing about other sources or times."
    gate = _mapping(provenance.get("gate"))
    for reason in _list(gate.get("reasons")):
        yield f"- The gate said: {_text(reason)}."
    for override in _list(gate.get("overrides")):
        yield f"- **Passed despite the gate**: {_text(_worded(override))}"
    for override in _list(_mapping(provenance.get("data_gate")).get("overrides")):
        yield f"- **The data passed despite its gate**: {_text(_worded(override))}"
    if not _mapping(provenance.get("slices")).keys() - {"overall"}:
        yield "- Not evaluated by slice: it may be worse for some groups than overall."


def _call(provenance: Mapping[str, object]) -> Iterator[str]:
    signatures = _mapping(_mapping(provenance.get("model")).get("signatures"))
    inputs = _mapping(_mapping(signatures.get("serve_raw")).get("inputs"))
    if not inputs:
        return
    yield "## How to call it"
    yield ""
    yield "| input | type | shape of a row |"
    yield "| --- | --- | --- |"
    for name, tensor in inputs.items():
        shape = ", ".join("any" if size is None else str(size) for size in _shape(_mapping(tensor)))
        yield f"| {_text(name)} | {_text(_mapping(tensor).get('dtype', ''))} | [{_text(shape)}] |"
    yield ""
    yield "In a column that may be empty, an empty cell is NaN, an empty text or the lowest int64."
    if any(None in _shape(_mapping(tensor)) for tensor in inputs.values()):
        yield "Of the shape [any], a row has a list: as long as the longest, with empty cells at its end."
    example = {name: _example(_mapping(tensor)) for name, tensor in inputs.items()}
    if None in example.values():
        return
    body = json.dumps({"signature_name": "serve_raw", "instances": [example]})
    path = f"http://127.0.0.1:8501/v1/models/{plain(provenance.get('workload') or 'NAME')}:predict"
    command = f"curl -d {shlex.quote(body)} {shlex.quote(path)}"
    yield "With a server of TF Serving's REST API on this machine (replace the values with your own):"
    yield ""
    yield "~~~~sh"
    yield command.replace("~~~~", "")
    yield "~~~~"


def _made(provenance: Mapping[str, object]) -> Iterator[str]:
    yield "## How it was made"
    yield ""
    weights = _mapping(provenance.get("pretrained"))
    facts = {
        "run": provenance.get("run"),
        "pushed": provenance.get("pushed_at"),
        "published again": _worded(provenance["republished"]) if provenance.get("republished") else None,
        "model's digest": _mapping(provenance.get("model")).get("digest"),
        "began with the weights": weights.get("path"),
        "their SHA-256": weights.get("sha256"),
        "packages of the training": _mapping(provenance.get("sbom")).get("file"),
        **{f"code of {name}": digest for name, digest in _mapping(provenance.get("code")).items()},
        **_mapping(provenance.get("stack")),
    }
    yield from _table(facts)


def _table(facts: Mapping[str, object]) -> Iterator[str]:
    yield "| | |"
    yield "| --- | --- |"
    for name, value in facts.items():
        if value not in (None, ""):
            yield f"| {_text(name)} | {_text(value)} |"


def _example(tensor: Mapping[str, object]) -> Any:
    """Return a value of the tensor's type and of a row's shape; None if it is too large to show."""
    shape = [1 if size is None else size for size in _shape(tensor)]
    if not all(isinstance(size, int) for size in shape) or math.prod(shape) > _EXAMPLE_CELLS:
        return None
    value = _EXAMPLES.get(str(tensor.get("dtype")), 0)
    for size in reversed(shape):
        value = [value] * size
    return value


def _shape(tensor: Mapping[str, object]) -> list[Any]:
    """Return the shape of a row's cell, in which None stands for any number of values."""
    return _list(tensor.get("shape"))[1:]


def _text(value: Any) -> str:
    """Return untrusted text as Markdown that only shows it."""
    return _MARKDOWN.sub(r"\\\1", html.escape(plain(value), quote=False))


def _worded(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value)


def _mapping(value: Any) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
