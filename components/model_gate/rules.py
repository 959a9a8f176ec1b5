"""What decides whether a model is good enough to be pushed. Pure: numbers in, a verdict in words out."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Limits:
    """What one metric must reach.

    Attributes:
        min: the least value allowed, in the metric's own unit; None for no bound.
        max: the largest value allowed; None for no bound.
        max_drop: how far the value may lie below the baseline model's, in the metric's own unit, >= 0;
            None for no comparison. For a metric where less is better use `max` instead.
    """

    min: float | None = None
    max: float | None = None
    max_drop: float | None = None


@dataclass(frozen=True)
class Check:
    """One comparison that the gate made.

    Attributes:
        metric: its name, as the workload gives it, e.g. `auc`.
        slice: the slice of the data, `overall` or e.g. `payment_type=Cash`.
        required: the rule in words, e.g. `at least 0.94`.
        got: the candidate's value; None where the evaluation holds none.
        baseline: the value of the latest blessed model; None where there is none.
        passed: whether the rule holds.
    """

    metric: str
    slice: str
    required: str
    got: float | None
    baseline: float | None
    passed: bool

    @property
    def reason(self) -> str:
        """The check as one clause, e.g. `auc 0.71, needs at least 0.94`."""
        where = "" if self.slice == "overall" else f" on {self.slice}"
        if self.got is None:
            return f"{self.metric}{where} was not computed, needs {self.required}"
        verb = "meets" if self.passed else "needs"
        return f"{self.metric} {self.got:.4g}{where}, {verb} {self.required}"


@dataclass(frozen=True)
class Verdict:
    """The gate's answer.

    Attributes:
        blessed: True when every check passed.
        reasons: the failed checks in words when not blessed, else what held.
        checks: every comparison made, in the order of the workload's thresholds.
        metrics: the candidate's overall metrics.
        baseline_metrics: those of the latest blessed model; empty on a first run.
    """

    blessed: bool
    reasons: tuple[str, ...]
    checks: tuple[Check, ...]
    metrics: Mapping[str, float]
    baseline_metrics: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """Plain data for `verdict.json`; keys are the attributes' names."""
        return asdict(self)


def judge(
    *,
    thresholds: Mapping[str, Limits],
    metrics: Mapping[str, float],
    baseline_metrics: Mapping[str, float],
) -> Verdict:
    """Holds the candidate's overall metrics against the limits and the latest blessed model.

    A metric that has a limit but no value, or a value that is not a number, fails: the gate never passes
    what it could not see. Without any baseline `max_drop` cannot be checked and does not fail; with a
    baseline that lacks the metric it does.

    Args:
        thresholds: limits by metric name.
        metrics: the candidate's overall value of each metric.
        baseline_metrics: the same of the latest blessed model; empty when there is none.
    """
    checks = tuple(
        check
        for name, limits in thresholds.items()
        for check in _checks(
            name, limits, metrics.get(name), baseline_metrics.get(name), has_baseline=bool(baseline_metrics)
        )
    )
    failed = tuple(check.reason for check in checks if not check.passed)
    held = tuple(check.reason for check in checks if check.passed)
    if not baseline_metrics:
        held += ("no earlier blessed model to compare with",)
    return Verdict(
        blessed=not failed,
        reasons=failed or held,
        checks=checks,
        metrics=dict(metrics),
        baseline_metrics=dict(baseline_metrics),
    )


def _checks(
    name: str, limits: Limits, got: float | None, baseline: float | None, *, has_baseline: bool
) -> list[Check]:
    rules: list[tuple[str, bool]] = []
    # A NaN compares false with everything, so each rule is written to pass only on a true comparison.
    if limits.min is not None:
        rules.append((f"at least {limits.min:g}", got is not None and got >= limits.min))
    if limits.max is not None:
        rules.append((f"at most {limits.max:g}", got is not None and got <= limits.max))
    if limits.max_drop is not None and baseline is not None:
        floor = baseline - limits.max_drop
        required = f"at least {floor:.4g} (baseline {baseline:.4g} less {limits.max_drop:g})"
        rules.append((required, got is not None and got >= floor))
    elif limits.max_drop is not None and (got is None or has_baseline):
        rules.append((f"at most {limits.max_drop:g} below the baseline, whose value is unknown", False))
    return [
        Check(metric=name, slice="overall", required=required, got=got, baseline=baseline, passed=passed)
        for required, passed in rules
    ]
