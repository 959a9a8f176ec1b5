"""Computes metrics of logged answers from late labels, and compares them with those at the push. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slipway.components.counted_words import counted
from slipway.components.data_profile.columns import Floats
from slipway.components.errors import ComponentError
from slipway.components.evaluator.bootstrap import row_number
from slipway.components.evaluator.judged import Judged
from slipway.components.evaluator.metric_values import results
from slipway.components.evaluator.request import ModelRequest, Request
from slipway.components.evaluator.spreads import spreads
from slipway.components.evaluator.tally import Tally
from slipway.components.metrics.definitions import metric_of
from slipway.components.metrics.row_values import one_hot
from slipway.components.model_gate.interval_formulas import least_difference
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.metric_bounds import bounds
from slipway.pipeline.runs.comparison import COUNT, number
from slipway.pipeline.watch.late_labels import Labelled

CONFIDENCE = 0.95
"""The confidence of each bound by itself."""

_COUNTS = ("true_positives", "true_negatives", "false_positives", "false_negatives")
"""Metrics that grow with the number of rows, so that their values at the push are not comparable."""

_ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class LiveMetric:
    """One metric of the rows that have a label.

    Attributes:
        bounds: one-sided, each with 95% confidence; both equal the value if chance was not measured.
        at_push: the value in the version's evaluation; None if it has none, and for counts.
        spread_at_push: how many times as far chance moved that value, which was measured on other rows, as it
            moves this one; 0 if the number of those rows is not known.
        undefined: why these rows say nothing about it, in words; the value is NaN then. Empty: they do.
    """

    name: str
    value: float
    bounds: tuple[float, float]
    at_push: float | None
    spread_at_push: float = 0.0
    undefined: str = ""

    @property
    def is_worse(self) -> bool:
        """Whether it is worse than at the push by more than chance explains, or has become NaN."""
        metric = metric_of(self.name)
        low, high = self.bounds
        if self.at_push is None or metric.better is None or self.undefined:
            return False
        if math.isnan(self.value):
            return not math.isnan(self.at_push)
        before = (
            self.at_push,
            self.at_push - (self.value - low) * self.spread_at_push,
            self.at_push + (high - self.value) * self.spread_at_push,
        )
        now = (self.value, low, high)
        fallen = (before, now) if metric.better == "higher" else (now, before)
        return low != high and least_difference(*fallen) > 0

    @property
    def text(self) -> str:
        """The metric on one line."""
        if self.undefined:
            return f"{self.name} has no value, since {self.undefined}"
        low, high = self.bounds
        before = "" if self.at_push is None else f", {number(self.at_push)} at its push"
        worse = ": worse" if self.is_worse else ""
        return f"{self.name} {number(self.value)} ({number(low)} to {number(high)}){before}{worse}"

    def to_json(self) -> dict[str, object]:
        """Return plain data, with null for values that are not finite, which JSON cannot hold."""
        return {
            "name": self.name,
            "value": finite(self.value),
            "bounds": [finite(bound) for bound in self.bounds],
            "at_push": None if self.at_push is None else finite(self.at_push),
            "worse": self.is_worse,
        }


def finite(value: float) -> float | None:
    """Return the value if it is finite, otherwise None."""
    return value if math.isfinite(value) else None


def live_metrics(
    rows: Labelled, names: Sequence[str], at_push: Mapping[str, float]
) -> tuple[LiveMetric, ...]:
    """Return the metrics of labelled rows, computed like the Evaluator's, with bounds.

    If an answer is NaN or infinite, every metric is NaN: a mean error would leave its row out, an accuracy
    would take it for a no, and an area cannot be computed.

    Args:
        names: the names of metrics, for one output.
        at_push: the metrics in the version's evaluation, and its number of rows.

    Raises:
        ComponentError: a metric is not defined for these labels and predictions.
    """
    rows_at_push = at_push.get(COUNT, 0.0)
    at_push = {name: value for name, value in at_push.items() if name not in _COUNTS}
    if rows.not_finite:
        unknown = (math.nan, math.nan)
        return tuple(LiveMetric(name, math.nan, unknown, at_push.get(name)) for name in names)
    request = Request(
        models=(ModelRequest("", "label", is_baseline=False),),
        slices=((),),
        metrics={name: metric_of(name).class_name for name in names},
    )
    tally = tallied(request, rows.labels, [rows.answers])
    values = {name: value for (_, name), value in results(request, tally)[()].items()}
    lacking = dict.fromkeys(undefined(names, rows.labels), "all labels are equal")
    found = {name: math.nan if name in lacking else float(values[name]) for name in names}
    measured = Measured(metrics={**found, "example_count": float(tally.total)}, baseline={}, labels=None)
    uncounted = (
        name for name, value in found.items() if math.isnan(value) and metric_of(name).is_of_some_rows
    )
    lacking = dict.fromkeys(uncounted, "no row counts for it") | lacking
    spread = spreads(request, tally).get((), {})
    return tuple(
        LiveMetric(
            name=name,
            value=value,
            bounds=bounds(name, value, measured, CONFIDENCE, spread.get(("", name, False))),
            at_push=at_push.get(name),
            spread_at_push=math.sqrt(tally.total / rows_at_push) if rows_at_push > 0 else 0.0,
            undefined=lacking.get(name, ""),
        )
        for name, value in found.items()
    )


def undefined(names: Iterable[str], labels: Floats) -> frozenset[str]:
    """Return the metrics that say nothing about these labels: an area or a recall, if all are of one class.

    Late labels may at first all be of the frequent one.
    """
    is_one = len(np.unique(labels)) == 1
    return frozenset(name for name in names if is_one and metric_of(name).needs_both_classes)


def tallied(request: Request, labels: Floats, answers: Sequence[Floats]) -> Tally:
    """Return the Evaluator's tally of rows.

    Args:
        labels: the labels, [rows, 1]; of classes their codes.
        answers: the predictions of each of the request's models, [rows, outputs].

    Raises:
        ComponentError: a metric is not defined for these labels and predictions.
    """
    for each in answers:
        _check_width(each, request.metrics)
        _check_codes(labels, each, request.metrics)
    if answers[0].shape[1] > 1 and not any(metric_of(name).labels == "one" for name in request.metrics):
        # The model learns one number for each class; its metrics take the class of the largest for the label.
        labels = one_hot(labels, answers[0])
    tally = Tally(request)
    for start in range(0, len(labels), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        judged = [Judged(labels[part], each[part]) for each in answers]
        tally.add({}, judged, first=row_number(0, start))
    return tally


def _check_width(answers: Floats, names: Iterable[str]) -> None:
    """Reject metrics that silently compute nonsense of so many numbers a row, as of another version's."""
    width = answers.shape[1]
    for name in names:
        if not metric_of(name).fits(width):
            needed = "a number for each class" if metric_of(name).outputs == "classes" else "one number"
            raise ComponentError(
                f"{name} needs {needed} a row, and the version answers {counted(width, 'number')}.",
                hint="name metrics in evaluate.metrics that suit the version",
            )


def _check_codes(labels: Floats, answers: Floats, names: Iterable[str]) -> None:
    """Reject labels that the model does not know; each would count as an error of the model."""
    outputs = answers.shape[1]
    if outputs > 1:
        wrong = labels[(labels != np.floor(labels)) | (labels < 0) | (labels >= outputs)]
        known = f"the model has the classes 0 to {outputs - 1}"
    else:
        known_metrics = ((name, metric_of(name)) for name in names)
        counting = next((name for name, each in known_metrics if each.is_curve or each.confusion), None)
        wrong = labels[(labels < 0) | (labels > 1)] if counting else labels[:0]
        known = f"{counting} needs labels from 0 to 1"
    if len(wrong):
        raise ComponentError(
            f"A late label is {wrong.flat[0]:g}, but {known}.",
            hint="give the label as the model sees it, after preprocessing",
        )
