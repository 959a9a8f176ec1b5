"""Finds values outside their domain: texts that the schema does not list, numbers beyond its range."""

import math
from collections.abc import Collection, Sequence

import numpy as np

from slipway.components.data_gate.finding import Edit, Finding, RowQuery, plain, quoted, share
from slipway.components.data_gate.rules.anomaly_group import AnomalyGroup
from slipway.components.data_gate.schema import FeatureSchema
from slipway.components.data_gate.statistics import FeatureStatistics, total_rows
from slipway.components.data_profile.columns import Column

# With more new values than this, the remedy is to relax the domain, not to list them.
_MOST_VALUES = 20


def outside_domain(group: AnomalyGroup) -> Finding | None:
    """Return a finding about texts that the schema does not list; None if their share is within the limit.

    Args:
        group: anomalies about texts outside their domain.
    """
    name, allowed, found, context = group.feature, group.allowed, group.statistics, group.context
    if allowed is None or allowed.domain is None or not found:
        return group.tfdv_finding()
    outside: dict[str, float] = {}
    for feature in found:
        for value, count in feature.counts.items():
            if value not in allowed.domain:
                outside[value] = outside.get(value, 0.0) + count
    values = sorted(outside, key=lambda value: -outside[value])
    own = context.limits.of(name, "max_out_of_domain_share")
    part, whole = sum(outside.values()), sum(feature.values for feature in found)
    unlisted, is_exact = _unlisted_outside(found, allowed.domain)
    measured = (part + unlisted) / max(whole, 1)
    limit = 1 - allowed.min_domain_mass + own
    if own and measured <= limit:
        return None
    if not values:
        # The statistics list only the most frequent texts; only TFDV has seen these rarer ones.
        return group.tfdv_finding()
    edit = Edit("add_values", name, values=tuple(sorted(values)))
    words = f"add {quoted(values)} to the domain of {name}"
    if allowed.domain_name and allowed.domain_name != name:
        words += f' ("{allowed.domain_name}")'
    if len(values) > _MOST_VALUES or unlisted:
        # TFDV judges each split by itself.
        worst = max(_share_outside(feature, allowed.domain) for feature in found)
        mass = math.floor((1 - worst) * 100) / 100
        edit = Edit("set_mass", name, number=mass)
        words = f"let {name} hold other values: distribution_constraints {{ min_domain_mass: {mass:g} }}"
    return Finding(
        rule="domain",
        feature=name,
        splits=group.splits,
        what=f"{'' if is_exact else 'at least '}{share(part + unlisted, whole)} hold {quoted(values)}, "
        "not in its domain",
        measured=measured,
        limit=limit,
        key=context.limits.key(name, "max_out_of_domain_share"),
        remedy=group.remedy(f"correct {'it' if len(values) == 1 else 'them'}", words),
        edits=(edit,) if context.schema_file else (),
        query=RowQuery(name, values=tuple(values)),
        stops=group.stops,
    )


def _share_outside(feature: FeatureStatistics, domain: Collection[str]) -> float:
    """Return the share of the values of a split that are outside the domain for certain."""
    listed = sum(count for value, count in feature.counts.items() if value not in domain)
    unlisted, _ = _unlisted_outside([feature], domain)
    return (listed + unlisted) / max(feature.values, 1)


def _unlisted_outside(found: Sequence[FeatureStatistics], domain: Collection[str]) -> tuple[float, bool]:
    """Return how many values outside the domain the statistics do not list, and whether that is exact.

    None of them is more frequent than the rarest text that is listed. So as many may be inside as the
    domain's texts that are not listed can have; the others are outside for certain.
    """
    unlisted, is_exact = 0.0, True
    for feature in found:
        rest = feature.counted - sum(feature.counts.values())
        if rest <= 0:
            continue
        inside = len([text for text in domain if text not in feature.counts])
        unlisted += max(rest - inside * min(feature.counts.values(), default=0.0), 0.0)
        is_exact = is_exact and not inside
    return unlisted, is_exact


def outside_range(group: AnomalyGroup) -> Finding | None:
    """Return a finding about numbers outside the schema's range; None if their share is within the limit.

    Args:
        group: anomalies about numbers outside their range.
    """
    name, allowed, context = group.feature, group.allowed, group.context
    # If all cells are empty, TFDV reports 0 as the least and the largest value.
    found = [feature for feature in group.statistics if feature.present]
    if allowed is None or not found:
        return None if allowed is not None else group.tfdv_finding()
    low, high = min(feature.min for feature in found), max(feature.max for feature in found)
    too_low = allowed.min is not None and low < allowed.min
    too_high = allowed.max is not None and high > allowed.max
    if not (too_low or too_high):
        return None
    whole = total_rows(context.statistics)
    part, about = _rows_outside(context.sample.get(name), allowed, whole, _least_rows(group, allowed))
    own = context.limits.of(name, "max_out_of_domain_share")
    if own and part / whole <= own:
        return None
    edits = [Edit("set_range", name, number=low, text="min")] if too_low else []
    edits += [Edit("set_range", name, number=high, text="max")] if too_high else []
    words = " and ".join(f"set the {edit.text} of {name} to {plain(edit.number or 0)}" for edit in edits)
    seen = " to ".join(filter(None, [plain(low) if too_low else "", plain(high) if too_high else ""]))
    return Finding(
        rule="domain",
        feature=name,
        splits=group.splits,
        what=f"{about}{share(part, whole)} lie {_where(allowed, too_low, too_high)}, as far as {seen}",
        measured=part / whole,
        limit=own,
        key=context.limits.key(name, "max_out_of_domain_share"),
        remedy=group.remedy("correct them", words),
        edits=tuple(edits) if context.schema_file else (),
        query=RowQuery(name, below=allowed.min if too_low else None, above=allowed.max if too_high else None),
        stops=group.stops,
    )


def _rows_outside(
    column: Column | None, allowed: FeatureSchema, rows: int, least: float
) -> tuple[float, str]:
    """Return the number of rows outside, >= 1, and `about ` or `at least ` if it is not an exact count."""
    if column is None or column.dtype == object or not len(column):
        return max(round(least), 1), "at least "
    low = -np.inf if allowed.min is None else allowed.min
    high = np.inf if allowed.max is None else allowed.max
    counted = int(((column < low) | (column > high)).sum())
    if len(column) >= rows:
        return max(counted, 1), ""
    # If there is much data, the sample holds the first rows of each file, which may all be inside.
    return max(round(counted * rows / len(column)), round(least), 1), "about "


def _least_rows(group: AnomalyGroup, allowed: FeatureSchema) -> float:
    """Return the number of rows outside for certain, in the splits of the group; no value is not outside."""
    return sum(
        _least_share(feature, allowed) * feature.present * group.context.statistics[split].rows / feature.rows
        for split in group.splits
        if split in group.context.statistics
        and (feature := group.context.statistics[split].features.get(group.feature))
        and feature.present
    )


def _least_share(feature: FeatureStatistics, allowed: FeatureSchema) -> float:
    """Return the share of values outside for certain; what lies between two points may be inside."""
    if feature.distribution is None:
        return 0.0
    points, below = feature.distribution.points, feature.distribution.below
    low = below[points < allowed.min][-1:].sum() if allowed.min is not None else 0.0
    high = (1 - below[points > allowed.max][:1]).sum() if allowed.max is not None else 0.0
    return float(low + high)


def _where(allowed: FeatureSchema, too_low: bool, too_high: bool) -> str:
    if too_low and too_high:
        return f"outside {plain(allowed.min or 0)} to {plain(allowed.max or 0)}"
    return f"below {plain(allowed.min or 0)}" if too_low else f"above {plain(allowed.max or 0)}"
