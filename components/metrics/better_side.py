"""Which side of a metric is better: the one rule of sweeps, comparisons, orders and model cards. Pure."""

from collections.abc import Collection, Iterable, Mapping

from slipway.components.metrics.definitions import METRICS, plain_name

BOUNDS = ("max_rise", "max", "max_drop", "min")
"""The bounds of a threshold (`evaluate.thresholds`) that say which side of a metric is better."""

_OF_FALLING, _OF_RISING = frozenset(BOUNDS[:2]), frozenset(BOUNDS[2:])


def is_lower_better(metric: str, bounds: Collection[str] = ()) -> bool:
    """Return True if a lower value of the metric is better.

    Args:
        metric: its name, of one output (`sold/auc`) too.
        bounds: those of `BOUNDS` that the metric's thresholds set. They decide for a metric of one's own, if
            all of them are of one side; else its name decides, where "higher" is the default.
    """
    if known := METRICS.get(plain_name(metric)):
        return known.better == "lower"
    falls, rises = not _OF_FALLING.isdisjoint(bounds), not _OF_RISING.isdisjoint(bounds)
    if falls != rises:
        return falls
    # Metrics of one's own are named as in Keras, where a loss or an error should be small.
    return metric.endswith(("loss", "error", "crossentropy"))


def bounds_of_checks(checks: Iterable[Mapping[str, object]], metric: str) -> set[str]:
    """Return on which sides of a metric the model gate's checks set limits, of `BOUNDS`.

    Args:
        checks: as in the gate's verdict; `required` is the rule in words.
    """
    rules = (str(each.get("required", "")) for each in checks if each.get("metric") == metric)
    return {side for rule in rules if (side := _side(rule))}


def _side(rule: str) -> str:
    if rule.startswith("at least"):
        return "min"
    if not rule.startswith("at most"):
        return ""
    # If the baseline has no value, the rule names the allowed drop: at most 0.1 below the baseline.
    return "max_drop" if " below " in rule else "max"
