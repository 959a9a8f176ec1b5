"""A single comparison of the gate, and the verdict from all of them. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypedDict

from slipway.components.finite_json import finite_numbers

OVERALL = "overall"


@dataclass(frozen=True)
class Check:
    """One comparison.

    Attributes:
        metric: what was compared, e.g. `auc`, or `serving p99 at batch 1`.
        slice: the slice of the data, `overall` or e.g. `payment_type=Cash`; empty if the check is not about
            data.
        required: the rule in words, e.g. `at least 0.94`.
        got: the candidate's value; None if there is none.
        baseline: the value of the latest blessed model; None if there is none.
        stops: whether a failure refuses the model; otherwise it is a warning.
        unit: of `got`, e.g. `ms`; empty for metrics.
        found: the finding, if it is not a number.
        note: additional information, e.g. what would help; one clause.
    """

    metric: str
    slice: str
    required: str
    got: float | None = None
    baseline: float | None = None
    passed: bool = False
    stops: bool = True
    unit: str = ""
    found: str = ""
    note: str = ""

    @property
    def reason(self) -> str:
        """The check as one clause, e.g. `auc 0.71, needs at least 0.94`."""
        where = "" if self.slice in ("", OVERALL) else f" on {self.slice}"
        note = f" ({self.note})" if self.note and not self.passed else ""
        verb = "meets" if self.passed else "needs"
        value = self.found or "was not computed"
        if self.got is not None:
            value = " ".join(filter(None, (self._number(self.got), self.unit)))
        return f"{self.metric} {value}{where}, {verb} {self.required}{note}"

    def _number(self, got: float) -> str:
        """Return a number with four digits, or with as many as tell it from the limit that it fails."""
        limits = set() if self.passed else set(self.required.split())
        numbers = (f"{got:.{digits}g}" for digits in (4, 6, 9, 15))
        return next((number for number in numbers if number not in limits), f"{got:.4g}")

    @property
    def is_warning(self) -> bool:
        """Whether the check failed without refusing the model."""
        return not self.passed and not self.stops


class Override(TypedDict):
    """The user's reason for blessing a model that the gate would have refused, and the gate's reasons."""

    reason: str
    overridden: list[str]


@dataclass(frozen=True)
class ModelVerdict:
    """The gate's verdict.

    Attributes:
        blessed: True if every check that stops has passed, or the user overrode the failed ones.
        reasons: the failed checks in words if not blessed, else the passed ones; an override comes first.
        warnings: failed checks that do not stop the model.
        checks: every comparison made, those of the workload's thresholds first.
        metrics: overall values of the candidate.
        baseline_metrics: overall values of the latest blessed model; empty on a first run.
        notes: what could not be judged, and why.
        overrides: at most one.
    """

    blessed: bool
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    checks: tuple[Check, ...]
    metrics: Mapping[str, float]
    baseline_metrics: Mapping[str, float]
    notes: tuple[str, ...] = ()
    overrides: tuple[Override, ...] = field(default=())

    def to_json(self) -> dict[str, object]:
        """Return plain data for `verdict.json`; keys are the attributes' names."""
        return asdict(self)


def conclude(
    checks: Sequence[Check],
    *,
    metrics: Mapping[str, float],
    baseline_metrics: Mapping[str, float],
    notes: Sequence[str] = (),
    bless: str = "",
) -> ModelVerdict:
    """Combine all checks into one verdict.

    A number that is not finite, for which JSON has none, is told in words, and is no metric of the verdict.

    Args:
        metrics, baseline_metrics: overall values by name.
        bless: the user's reason for blessing the model despite the checks; empty: none.
    """
    checks = [_in_words(check) for check in checks]
    failed = tuple(check.reason for check in checks if not check.passed and check.stops)
    warnings = tuple(check.reason for check in checks if check.is_warning)
    # The screen needs one line per metric, not the 30 checks that passed.
    first = {check.metric: check.reason for check in reversed(checks) if check.passed and _is_overall(check)}
    held = [first[metric] for metric in dict.fromkeys(check.metric for check in checks) if metric in first]
    others = sum(check.passed for check in checks) - len(held)
    if others:
        held.append(f"{others} more {'check holds' if others == 1 else 'checks hold'}")
    if not baseline_metrics:
        held.append("no earlier blessed model to compare with")
    if bless and not failed:
        notes = (*notes, "--bless was not needed: nothing would have refused the model")
    overridden = bool(failed and bless)
    reasons = failed or tuple(held)
    if overridden:
        reasons = (f'by hand, "{bless}", despite: {"; ".join(failed)}',)
    return ModelVerdict(
        blessed=not failed or overridden,
        reasons=reasons,
        warnings=warnings,
        checks=tuple(checks),
        metrics=finite_numbers(metrics),
        baseline_metrics=finite_numbers(baseline_metrics),
        notes=tuple(notes),
        overrides=({"reason": bless, "overridden": list(failed)},) if overridden else (),
    )


def _in_words(check: Check) -> Check:
    is_told = check.got is None or math.isfinite(check.got)
    is_known = check.baseline is None or math.isfinite(check.baseline)
    return replace(
        check,
        got=check.got if is_told else None,
        found=check.found if is_told else f"{check.got:g}",
        baseline=check.baseline if is_known else None,
    )


def _is_overall(check: Check) -> bool:
    return check.slice == OVERALL and check.got is not None
