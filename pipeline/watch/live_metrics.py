"""The metrics of what was answered, by labels that came later, against those at the push. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slipway.components.data_profile.columns import Floats
from slipway.components.errors import ComponentError
from slipway.components.evaluator.bootstrap import row_number
from slipway.components.evaluator.request import ModelRequest, Request
from slipway.components.evaluator.results import results
from slipway.components.evaluator.spreads import spreads
from slipway.components.evaluator.tally import Judged, Tally
from slipway.components.model_gate.metrics import metric_of
from slipway.components.model_gate.rules import Measured, bounds
from slipway.pipeline.watch.late_labels import Labelled

CONFIDENCE = 0.95
"""Of each bound by itself."""

_COUNTS = ("true_positives", "true_negatives", "false_positives", "false_negatives")
"""Grow with the rows, so those at the push say nothing."""

_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class LiveMetric:
    """One metric of the rows that have a label.

    Attributes:
        bounds: one-sided, each with 95% confidence; the value itself where chance was not measured.
        at_push: what the evaluation of the version said; None where it did not, and of counts.
    """

    name: str
    value: float
    bounds: tuple[float, float]
    at_push: float | None

    @property
    def is_worse(self) -> bool:
        """Whether even its better bound is worse than the value at the push; or it is no number any more."""
        better = metric_of(self.name).better
        low, high = self.bounds
        if self.at_push is None or better is None:
            return False
        if math.isnan(self.value):
            return not math.isnan(self.at_push)
        if low == high:
            return False
        return high < self.at_push if better == "higher" else low > self.at_push

    @property
    def text(self) -> str:
        """In one line."""
        low, high = self.bounds
        before = "" if self.at_push is None else f", {self.at_push:.4f} at its push"
        worse = ": worse" if self.is_worse else ""
        return f"{self.name} {self.value:.4f} ({low:.4f} to {high:.4f}){before}{worse}"

    def to_json(self) -> dict[str, object]:
        """Plain data; null for what is no finite number, which JSON cannot hold."""
        return {
            "name": self.name,
            "value": finite(self.value),
            "bounds": [finite(bound) for bound in self.bounds],
            "at_push": self.at_push,
            "worse": self.is_worse,
        }


def finite(value: float) -> float | None:
    """The value, None for what is no finite number."""
    return value if math.isfinite(value) else None


def live_metrics(
    rows: Labelled, names: Sequence[str], at_push: Mapping[str, float]
) -> tuple[LiveMetric, ...]:
    """The metrics of labelled rows, as the Evaluator counts them, with its bounds.

    Args:
        names: of metrics of one output.
        at_push: those of the version's evaluation.

    Raises:
        ComponentError: a metric is not defined for these labels and answers.
    """
    request = Request(
        models=(ModelRequest("", "label", is_baseline=False),),
        slices=((),),
        metrics={name: metric_of(name).class_name for name in names},
    )
    tally = tallied(request, rows.labels, [rows.answers])
    values = {name: value for (_, name), value in results(request, tally)[()].items()}
    found = {name: float(values[name]) for name in names}
    measured = Measured(metrics={**found, "example_count": float(tally.total)}, baseline={}, labels=None)
    spread = spreads(request, tally).get((), {})
    return tuple(
        LiveMetric(
            name=name,
            value=value,
            bounds=bounds(name, value, measured, CONFIDENCE, spread.get(("", name, False))),
            at_push=None if name in _COUNTS else at_push.get(name),
        )
        for name, value in found.items()
    )


def tallied(request: Request, labels: Floats, answers: Sequence[Floats]) -> Tally:
    """What the Evaluator counts of rows.

    Args:
        labels: [rows, 1].
        answers: of each of the request's models, [rows, outputs].

    Raises:
        ComponentError: a metric is not defined for these labels and answers.
    """
    for each in answers:
        _check_codes(labels, each, request.metrics)
    tally = Tally(request)
    for start in range(0, len(labels), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        judged = [Judged(labels[part], each[part]) for each in answers]
        tally.add({}, judged, first=row_number(0, start))
    return tally


def _check_codes(labels: Floats, answers: Floats, names: Iterable[str]) -> None:
    """Refuses labels that are no codes of the model's classes; each would count as an error of it."""
    outputs = answers.shape[1]
    if not any(metric_of(name).outputs == "classes" for name in names):
        return
    wrong = labels[(labels != np.floor(labels)) | (labels < 0) | (labels >= outputs)]
    if len(wrong):
        raise ComponentError(
            f"A late label is {wrong[0]:g}, but the model has the classes 0 to {outputs - 1}.",
            hint="give the label as the model sees it, after preprocessing",
        )
