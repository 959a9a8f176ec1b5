"""The metrics of two versions on the same labelled rows, and what of their difference is not chance. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from slipway.components.data_profile.columns import Floats
from slipway.components.evaluator.request import ModelRequest, Request
from slipway.components.evaluator.results import results
from slipway.components.evaluator.spreads import spreads
from slipway.components.model_gate.metrics import metric_of
from slipway.components.model_gate.rules import Measured, difference_bounds
from slipway.pipeline.watch.live_metrics import finite, tallied

CONFIDENCE = 0.95
"""Of all intervals of a comparison together (C. E. Bonferroni, Teoria statistica delle classi, 1936)."""

Verdict = Literal["better", "worse", "no difference shown"]
_CHAMPION = "champion"


@dataclass(frozen=True)
class PairedMetric:
    """One metric of both versions on the same rows.

    Attributes:
        bounds: of the challenger's value less the champion's.
    """

    name: str
    champion: float
    challenger: float
    bounds: tuple[float, float]

    @property
    def verdict(self) -> Verdict:
        """What the challenger is, where chance does not explain the difference.

        A value that is no number is worse than any.
        """
        better = metric_of(self.name).better
        if better is None or math.isnan(self.champion):
            return "no difference shown"
        if math.isnan(self.challenger):
            return "worse"
        low, high = self.bounds if better == "higher" else (-self.bounds[1], -self.bounds[0])
        return "better" if low > 0 else "worse" if high < 0 else "no difference shown"

    @property
    def text(self) -> str:
        """In one line."""
        low, high = self.bounds
        return (
            f"{self.name} {self.challenger:.4f} instead of {self.champion:.4f} "
            f"(difference {low:+.4f} to {high:+.4f})"
        )

    def to_json(self) -> dict[str, object]:
        """Plain data; null for what is no finite number, which JSON cannot hold."""
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
    """The metrics of two versions, with the bounds of their differences by the Evaluator's paired bootstrap.

    Args:
        labels: [rows, 1].
        champion: its answers, [rows, outputs].
        challenger: the same of the other.
        names: of metrics of one output.

    Raises:
        ComponentError: a metric is not defined for these labels and answers.
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
    """Those of the difference; without end where chance was not measured, which shows nothing then."""
    if name not in measured.difference_spreads:
        return -math.inf, math.inf
    return difference_bounds(name, measured, confidence)
