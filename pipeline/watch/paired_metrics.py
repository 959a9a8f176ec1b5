"""Metrics of two versions on the same labelled rows, with confidence bounds of their difference. Pure."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from slipway.components.data_profile.columns import Floats
from slipway.components.evaluator.metric_values import results
from slipway.components.evaluator.request import ModelRequest, Request
from slipway.components.evaluator.spreads import spreads
from slipway.components.metrics.definitions import metric_of
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.metric_bounds import difference_bounds
from slipway.pipeline.runs.comparison import number
from slipway.pipeline.watch.live_metrics import finite, tallied, undefined

CONFIDENCE = 0.95
"""Joint confidence of all intervals (C. E. Bonferroni, Teoria statistica delle classi, 1936)."""

Verdict = Literal["better", "worse", "no difference shown"]
_CHAMPION = "champion"


@dataclass(frozen=True)
class PairedMetric:
    """One metric of both versions on the same rows.

    Attributes:
        bounds: the confidence bounds of the challenger's value minus the champion's.
    """

    name: str
    champion: float
    challenger: float
    bounds: tuple[float, float]

    @property
    def verdict(self) -> Verdict:
        """Whether the challenger is better or worse, if chance does not explain the difference.

        NaN is worse than any number, unless no row counts for the metric.
        """
        metric = metric_of(self.name)
        if metric.better is None or math.isnan(self.champion) or self._is_uncounted:
            return "no difference shown"
        if math.isnan(self.challenger):
            return "worse"
        if all(metric.is_better(bound, than=0) for bound in self.bounds):
            return "better"
        is_worse = all(metric.is_better(0, than=bound) for bound in self.bounds)
        return "worse" if is_worse else "no difference shown"

    @property
    def text(self) -> str:
        """The metric on one line."""
        if math.isnan(self.champion) and math.isnan(self.challenger):
            return f"{self.name} has no value for either"
        if self._is_uncounted:
            return f"{self.name} has no value for one of them, since no row counts for it"
        low, high = (f"{'' if bound < 0 else '+'}{number(bound)}" for bound in self.bounds)
        return (
            f"{self.name} {number(self.challenger)} instead of {number(self.champion)} "
            f"(difference {low} to {high})"
        )

    @property
    def _is_uncounted(self) -> bool:
        """Whether no row counts for it: a precision of a model that never says yes, whatever the recall."""
        is_nan = math.isnan(self.champion) or math.isnan(self.challenger)
        return is_nan and metric_of(self.name).is_of_some_rows

    def to_json(self) -> dict[str, object]:
        """Return plain data, with null for values that are not finite, which JSON cannot hold."""
        return {
            "name": self.name,
            "champion": finite(self.champion),
            "challenger": finite(self.challenger),
            "difference": finite(self.challenger - self.champion),
            "bounds": [finite(bound) for bound in self.bounds],
            "verdict": self.verdict,
        }


def paired_metrics(
    labels: Floats, champion: Floats, challenger: Floats, names: Sequence[str]
) -> tuple[PairedMetric, ...]:
    """Return the metrics of two versions, and bounds of the differences by the Evaluator's paired bootstrap.

    Args:
        labels: the labels, [rows, 1].
        champion: the champion's predictions, [rows, outputs].
        challenger: the challenger's predictions, of the same shape.
        names: the names of metrics, for one output.

    Raises:
        ComponentError: a metric is not defined for these labels and predictions.
    """
    request = Request(
        models=(
            ModelRequest("", "label", is_baseline=False),
            ModelRequest(_CHAMPION, "label", is_baseline=True),
        ),
        slices=((),),
        metrics={name: metric_of(name).class_name for name in names},
    )
    tally = tallied(request, labels, [challenger, champion])
    values = results(request, tally)[()]
    found = spreads(request, tally).get((), {})
    # An area of labels of one class is 0 otherwise, of both.
    values |= dict.fromkeys(itertools.product(("", _CHAMPION), undefined(names, labels)), math.nan)
    rows = {"example_count": float(tally.total)}
    measured = Measured(
        metrics=rows | {name: float(values["", name]) for name in names},
        baseline={name: float(values[_CHAMPION, name]) for name in names},
        labels=None,
        spreads={name: spread for (model, name, apart), spread in found.items() if not (model or apart)},
        difference_spreads={name: spread for (_, name, apart), spread in found.items() if apart},
    )
    each = 1 - (1 - CONFIDENCE) / 2 / len(names)
    return tuple(
        PairedMetric(
            name=name,
            champion=measured.baseline[name],
            challenger=measured.metrics[name],
            bounds=_bounds(name, measured, each),
        )
        for name in names
    )


def _bounds(name: str, measured: Measured, confidence: float) -> tuple[float, float]:
    """Return the bounds of the difference; infinite, to show nothing, if chance was not measured."""
    if name not in measured.difference_spreads:
        return -math.inf, math.inf
    return difference_bounds(name, measured, confidence)
