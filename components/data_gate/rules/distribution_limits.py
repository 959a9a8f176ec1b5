"""Finds features whose distribution differs from the reference, or between splits or serving."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from slipway.components.data_gate.finding import Finding, RowQuery, Rule, advice_to_raise, plain
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.distances import (
    jensen_shannon,
    jensen_shannon_by_chance,
    l_infinity,
    l_infinity_by_chance,
    scale,
)
from slipway.components.data_gate.rules.risen_values import numbers_moved, texts_moved
from slipway.components.data_gate.statistics import (
    FeatureStatistics,
    SplitStatistics,
    Statistics,
    without_empty_texts,
)

TRAIN = "train"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two sets of rows, with the words that describe it.

    Attributes:
        rule: the rule that a difference violates.
        there: what they are compared with, e.g. `in the reference`.
        prefix: the prefix of the limits' names: `max_drift` or `max_skew`.
    """

    rule: Rule
    splits: tuple[str, ...]
    there: str
    prefix: str


def find_drift(
    statistics: Statistics, reference: Statistics, limits: Limits, *, skip: Collection[str]
) -> Iterator[Finding]:
    """Find features of the train split whose distribution differs from the reference's.

    Args:
        reference: the statistics to compare with; empty if there are none.
        limits: uses `max_drift_*` and `max_scale`.
        skip: features that another rule checks, e.g. the label and the time.
    """
    if TRAIN in statistics and TRAIN in reference:
        how = Comparison("drift", (TRAIN,), "in the reference", "max_drift")
        yield from _compare(statistics[TRAIN], reference[TRAIN], limits, how, skip)


def find_skew(statistics: Statistics, limits: Limits, *, skip: Collection[str]) -> Iterator[Finding]:
    """Find features whose distribution differs between the train split and another split."""
    for split in statistics:
        if split != TRAIN and TRAIN in statistics:
            how = Comparison("skew", (split,), f"in {TRAIN}", "max_skew")
            yield from _compare(statistics[split], statistics[TRAIN], limits, how, skip)


def find_serving_skew(
    statistics: Statistics, serving: SplitStatistics | None, limits: Limits, *, skip: Collection[str]
) -> Iterator[Finding]:
    """Find features whose distribution differs between the train split and serving requests."""
    if serving is not None and TRAIN in statistics:
        how = Comparison("serving", (TRAIN,), "when serving", "max_skew")
        train, serving = map(without_empty_texts, (statistics[TRAIN], serving))
        yield from _compare(train, serving, limits, how, skip)


def _compare(
    now: SplitStatistics, then: SplitStatistics, limits: Limits, how: Comparison, skip: Collection[str]
) -> Iterator[Finding]:
    for name, feature in now.features.items():
        other = then.features.get(name)
        if other is None or name in skip:
            continue
        finding = None
        if feature.is_number and other.is_number:
            finding = _numbers_differ(feature, other, limits, how)
        elif feature.counts and other.counts:
            finding = _texts_differ(feature, other, limits, how)
        if finding is not None:
            yield finding


def _texts_differ(
    now: FeatureStatistics, then: FeatureStatistics, limits: Limits, how: Comparison
) -> Finding | None:
    sums = now.counted, then.counted
    distance, value = l_infinity(now.counts, then.counts, sums)
    shares = [each.counts.get(value, 0.0) / each.counted for each in (now, then)]
    limit = limits.of(now.name, f"{how.prefix}_l_infinity")
    if distance <= limit + l_infinity_by_chance(sum(shares) / 2, (now.present, then.present)):
        return None
    key = limits.key(now.name, f"{how.prefix}_l_infinity")
    words, risen = texts_moved(now.counts, then.counts, value, sums=sums, there=how.there, of="values")
    return Finding(
        rule=how.rule,
        feature=now.name,
        splits=how.splits,
        what=f"{words}: L-infinity {distance:.3f}",
        measured=distance,
        limit=limit,
        key=key,
        remedy=f"find out why; if it is right, {advice_to_raise(key, distance)}",
        query=RowQuery(now.name, values=(risen,)),
    )


def _numbers_differ(
    now: FeatureStatistics, then: FeatureStatistics, limits: Limits, how: Comparison
) -> Finding | None:
    if now.distribution is None or then.distribution is None:
        return None
    distance, cells = jensen_shannon(now.distribution, then.distribution)
    chance = jensen_shannon_by_chance(cells, (now.present, then.present))
    if distance <= chance:
        return None
    limit = limits.of(now.name, f"{how.prefix}_jensen_shannon")
    # A factor says more than a distance, and is visible before the distance is large.
    if (scaled := _scaled(now, then, limits, how)) or distance <= limit + chance:
        return scaled
    key = limits.key(now.name, f"{how.prefix}_jensen_shannon")
    words, query = numbers_moved(now, then, there=how.there)
    return Finding(
        rule=how.rule,
        feature=now.name,
        splits=how.splits,
        what=f"the mean is {now.mean:.4g}, {then.mean:.4g} {how.there}; {words}: "
        f"Jensen-Shannon {distance:.3f}",
        measured=distance,
        limit=limit,
        key=key,
        remedy=f"find out why; if it is right, {advice_to_raise(key, distance)}",
        query=query,
    )


def _scaled(
    now: FeatureStatistics, then: FeatureStatistics, limits: Limits, how: Comparison
) -> Finding | None:
    if now.distribution is None or then.distribution is None:
        return None
    factor = scale(then.distribution, now.distribution)
    limit = limits.of(now.name, "max_scale")
    if 1 / limit <= factor <= limit:
        return None
    key, needed = limits.key(now.name, "max_scale"), max(factor, 1 / factor)
    return Finding(
        rule="scale",
        feature=now.name,
        splits=how.splits,
        what=f"all {now.values:,} values are {_times(factor)} what they are {how.there}, "
        "as after a change of units",
        measured=factor,
        limit=limit,
        key=key,
        remedy=f"convert them back to the old unit; if it is right, raise {key} above {needed:.3g}",
        query=RowQuery(now.name),
    )


def _times(factor: float) -> str:
    return f"{plain(round(factor, 2))} times" if factor >= 1 else f"1/{plain(round(1 / factor, 2))} of"
