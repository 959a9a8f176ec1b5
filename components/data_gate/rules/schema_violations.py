"""Finds what the schema refuses, with numbers and with the edit that would accept it."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from slipway.components.data_gate.finding import Edit, Finding, RowQuery, plain, quoted, share
from slipway.components.data_gate.limits import Limits
from slipway.components.data_gate.schema import Anomaly, FeatureSchema
from slipway.components.data_gate.statistics import FeatureStatistics, Statistics, total_rows
from slipway.components.data_profile.columns import Column

_TEXTS = "ENUM_TYPE_UNEXPECTED_STRING_VALUES"
_RANGES = ("INT_TYPE_SMALL_INT", "INT_TYPE_BIG_INT", "FLOAT_TYPE_SMALL_FLOAT", "FLOAT_TYPE_BIG_FLOAT")
_LOST = "SCHEMA_MISSING_COLUMN"
_NEW = "SCHEMA_NEW_COLUMN"
# The rule about missing values reports these, with numbers.
_ABOUT_PRESENCE = (
    "FEATURE_TYPE_LOW_FRACTION_PRESENT", "FEATURE_TYPE_LOW_NUMBER_PRESENT", "FEATURE_TYPE_LOW_NUMBER_VALUES",
    "FEATURE_TYPE_NOT_PRESENT", "FEATURE_TYPE_NO_VALUES", "INVALID_FEATURE_SHAPE",
)  # fmt: skip
_RANK = {"warning": 1, "error": 2}
# With more new values than this, the domain itself is too narrow.
_MOST_VALUES = 20


@dataclass(frozen=True, slots=True)
class Context:
    """The inputs that all findings about one data set share.

    Attributes:
        statistics: of the data.
        schema: what the schema says about each feature.
        limits: `anomalies` and `max_out_of_domain_share`.
        schema_file: as the user knows it; empty where the schema is inferred from the data.
        sample: columns of some rows by name.
        told: features whose missing values have been reported.
    """

    statistics: Statistics
    schema: Mapping[str, FeatureSchema]
    limits: Limits
    schema_file: str
    sample: Mapping[str, Column] = field(default_factory=dict)
    told: Collection[str] = ()


def find_anomalies(anomalies: Sequence[Anomaly], context: Context) -> Iterator[Finding]:
    """Return one finding per feature and kind of anomaly, over all splits.

    Args:
        anomalies: ExampleValidator's, of all splits.
        context: what they are measured with.
    """
    groups: dict[tuple[str, str], list[Anomaly]] = {}
    for anomaly in anomalies:
        kind = "range" if anomaly.type in _RANGES else anomaly.type
        groups.setdefault((anomaly.feature, kind), []).append(anomaly)
    for (feature, kind), group in groups.items():
        if kind in _ABOUT_PRESENCE and feature in context.told:
            continue
        if kind == _TEXTS:
            finding = _outside_domain(group, context)
        elif kind == "range":
            finding = _outside_range(group, context)
        else:
            finding = _other(group, context)
        if finding is not None:
            yield finding


def _stops(group: Sequence[Anomaly], limits: Limits) -> bool:
    worst = max(_RANK[anomaly.severity] for anomaly in group)
    return limits.anomalies != "none" and worst >= _RANK[limits.anomalies]


def _splits(group: Sequence[Anomaly]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(anomaly.split for anomaly in group))


def _of_splits(group: Sequence[Anomaly], context: Context) -> list[FeatureStatistics]:
    name = group[0].feature
    splits = (context.statistics.get(split) for split in _splits(group))
    return [split.features[name] for split in splits if split is not None and name in split.features]


def _outside_domain(group: Sequence[Anomaly], context: Context) -> Finding | None:
    name = group[0].feature
    allowed, found = context.schema.get(name), _of_splits(group, context)
    if allowed is None or allowed.domain is None or not found:
        return _other(group, context)
    outside: dict[str, float] = {}
    for feature in found:
        for value, count in feature.counts.items():
            if value not in allowed.domain:
                outside[value] = outside.get(value, 0.0) + count
    values = sorted(outside, key=lambda value: -outside[value])
    own = context.limits.of(name, "max_out_of_domain_share")
    if not values:
        # Rarer than the texts in the statistics, so only TFDV knows them.
        return None if own else _other(group, context)
    part, whole = sum(outside.values()), sum(feature.values for feature in found)
    measured = part / whole
    limit = 1 - allowed.min_domain_mass + own
    if own and measured <= limit:
        return None
    edit = Edit("add_values", name, values=tuple(sorted(values)))
    words = f"add {quoted(values)} to the domain of {name}"
    if allowed.domain_name and allowed.domain_name != name:
        words += f' ("{allowed.domain_name}")'
    if len(values) > _MOST_VALUES:
        mass = math.floor((1 - measured) * 100) / 100
        edit = Edit("set_mass", name, number=mass)
        words = f"let {name} hold other values: distribution_constraints {{ min_domain_mass: {mass:g} }}"
    return Finding(
        rule="domain",
        feature=name,
        splits=_splits(group),
        what=f"{share(part, whole)} hold {quoted(values)}, not in its domain",
        measured=measured,
        limit=limit,
        key=context.limits.key(name, "max_out_of_domain_share"),
        remedy=_accept(words, context, f"correct {'it' if len(values) == 1 else 'them'}"),
        edits=(edit,) if context.schema_file else (),
        query=RowQuery(name, values=tuple(values)),
        stops=_stops(group, context.limits),
    )


def _outside_range(group: Sequence[Anomaly], context: Context) -> Finding | None:
    name = group[0].feature
    allowed = context.schema.get(name)
    # If all cells are empty, TFDV reports 0 as the least and the largest value.
    found = [feature for feature in _of_splits(group, context) if feature.present]
    if allowed is None or not found:
        return None if allowed is not None else _other(group, context)
    low, high = min(feature.min for feature in found), max(feature.max for feature in found)
    too_low = allowed.min is not None and low < allowed.min
    too_high = allowed.max is not None and high > allowed.max
    if not (too_low or too_high):
        return None
    whole = total_rows(context.statistics)
    part, about = _rows_outside(context.sample.get(name), allowed, whole)
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
        splits=_splits(group),
        what=f"{about}{share(part, whole)} lie {_where(allowed, too_low, too_high)}, as far as {seen}",
        measured=part / whole,
        limit=own,
        key=context.limits.key(name, "max_out_of_domain_share"),
        remedy=_accept(words, context, "correct them"),
        edits=tuple(edits) if context.schema_file else (),
        query=RowQuery(name, below=allowed.min if too_low else None, above=allowed.max if too_high else None),
        stops=_stops(group, context.limits),
    )


def _rows_outside(column: Column | None, allowed: FeatureSchema, rows: int) -> tuple[float, str]:
    """Return how many rows, and `about ` if not all were counted; then at least one is known to exist."""
    if column is None or column.dtype == object or not len(column):
        return 1, "at least "
    low = -np.inf if allowed.min is None else allowed.min
    high = np.inf if allowed.max is None else allowed.max
    counted = int(((column < low) | (column > high)).sum())
    if len(column) >= rows:
        return max(counted, 1), ""
    return max(round(counted * rows / len(column)), 1), "about "


def _where(allowed: FeatureSchema, too_low: bool, too_high: bool) -> str:
    if too_low and too_high:
        return f"outside {plain(allowed.min or 0)} to {plain(allowed.max or 0)}"
    return f"below {plain(allowed.min or 0)}" if too_low else f"above {plain(allowed.max or 0)}"


def _other(group: Sequence[Anomaly], context: Context) -> Finding:
    anomaly = group[0]
    kind, name = anomaly.type, anomaly.feature
    what = f"{anomaly.short[:1].lower()}{anomaly.short[1:]}: {anomaly.description.strip()}"
    remedy = "correct the data, or the schema"
    edits: tuple[Edit, ...] = ()
    # A lost column has no rows to show, and a fault of the whole data set has no column.
    query = RowQuery(name) if name and kind != _LOST else None
    if kind == _LOST:
        what = "the schema has this column, the data does not"
        edits = (Edit("deprecate", name),)
        remedy = _accept(f"mark {name} as DEPRECATED", context, "put the column back")
    elif kind == _NEW:
        what = "the data has this column, the schema does not"
        found = _of_splits(group, context)
        edits = (Edit("add_feature", name, text=_type(found)),)
        remedy = _accept(
            f"add the feature {name} ({_type(found)})", context, "leave it out with data.columns"
        )
    return Finding(
        rule="schema",
        feature=name,
        splits=_splits(group),
        what=what,
        remedy=remedy,
        edits=edits if context.schema_file else (),
        query=query,
        stops=_stops(group, context.limits),
    )


def _type(found: Sequence[FeatureStatistics]) -> str:
    kinds = {feature.kind for feature in found}
    return "FLOAT" if "float" in kinds else "INT" if kinds == {"int"} else "BYTES"


def _accept(words: str, context: Context, otherwise: str) -> str:
    if not context.schema_file:
        return f"{otherwise}; the schema is inferred from the data itself (schema: null)"
    return f"{otherwise}, or in {context.schema_file}: {words}"
