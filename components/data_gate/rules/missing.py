"""Finds columns with more missing values than the workload, the schema or the reference allows."""

from collections.abc import Iterator, Mapping

from slipway.components.counted_words import agreeing
from slipway.components.data_gate.finding import Edit, Finding, RowQuery, limit_words, percent, share
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.distances import l_infinity_by_chance
from slipway.components.data_gate.schema import FeatureSchema
from slipway.components.data_gate.statistics import FeatureStatistics, Statistics


def find_missing(
    statistics: Statistics,
    reference: Statistics,
    schema: Mapping[str, FeatureSchema],
    limits: Limits,
    *,
    schema_file: str = "",
) -> Iterator[Finding]:
    """Find features with too many missing values; report each feature once, for its worst split.

    That is the split with most of them, or if these are allowed there, the next one in which they are not.

    Args:
        reference: the statistics to compare with; empty if there are none.
        schema: the features that the schema describes, by name; its limit is `min_fraction`.
        limits: uses `max_missing_share` and `max_missing_rise`.
        schema_file: the user's name for the schema file; empty if the schema is inferred from the data.
    """
    for name, by_split in _by_feature(statistics).items():
        worst_first = sorted(by_split, key=lambda split: -by_split[split].missing_share)
        worst = worst_first[0]
        feature = by_split[worst]
        risen = (_above_reference(by_split[split], split, reference, limits) for split in worst_first)
        with_texts = worst_first if feature.kind == "text" else ()
        lost_dates = (_lost_dates(by_split[split], split, reference, limits) for split in with_texts)
        finding = (
            _above_limit(feature, worst, limits)
            or _below_schema(feature, worst, schema.get(name), schema_file)
            or next(filter(None, risen), None)
            or max(filter(None, lost_dates), key=lambda each: (each.stops, each.measured), default=None)
        )
        if finding is not None:
            yield finding


def _by_feature(statistics: Statistics) -> dict[str, dict[str, FeatureStatistics]]:
    found: dict[str, dict[str, FeatureStatistics]] = {}
    for split, of_split in statistics.items():
        for name, feature in of_split.features.items():
            found.setdefault(name, {})[split] = feature
    return found


def _above_limit(feature: FeatureStatistics, split: str, limits: Limits) -> Finding | None:
    limit = limits.of(feature.name, "max_missing_share")
    if feature.missing_share <= limit:
        return None
    key = limits.key(feature.name, "max_missing_share")
    needed = limit_words(feature.missing_share, decimals=4)
    return _finding(feature, split, limit, key, f"fill these rows, or raise {key} above {needed}")


def _below_schema(
    feature: FeatureStatistics, split: str, allowed: FeatureSchema | None, schema_file: str
) -> Finding | None:
    there = feature.present / feature.rows if feature.rows else 1.0  # 1 - 0.9 would be less than 0.1
    if allowed is None or there >= allowed.min_fraction:
        return None
    # Two decimals, rounded down, since the share will vary in the next data.
    edit = Edit("set_presence", feature.name, number=int(there * 100) / 100)
    words = f"fill them: the schema requires {percent(allowed.min_fraction)}"
    if not schema_file:
        return _finding(feature, split, 1 - allowed.min_fraction, "", words)
    words += f"; or in {schema_file}: set the presence of {feature.name} to min_fraction: {edit.number:g}"
    return _finding(feature, split, 1 - allowed.min_fraction, "", words, edit)


def _above_reference(
    feature: FeatureStatistics, split: str, reference: Statistics, limits: Limits
) -> Finding | None:
    before = reference[split].features.get(feature.name) if split in reference else None
    if before is None:
        return None
    limit = limits.of(feature.name, "max_missing_rise")
    rise = feature.missing_share - before.missing_share
    middle = (feature.missing + before.missing) / max(feature.rows + before.rows, 1)
    if rise <= limit + l_infinity_by_chance(middle, (feature.rows, before.rows)):
        return None
    key = limits.key(feature.name, "max_missing_rise")
    return Finding(
        rule="missing",
        feature=feature.name,
        splits=(split,),
        what=f"{_without_value(feature)}, {percent(before.missing_share)} in the reference",
        measured=rise,
        limit=limit,
        key=key,
        remedy=f"fill these rows, or raise {key}",
        query=RowQuery(feature.name, is_missing=True),
    )


def _lost_dates(
    feature: FeatureStatistics, split: str, reference: Statistics, limits: Limits
) -> Finding | None:
    """Report texts among dates: `preprocessing_fn` of `new` takes them for missing values."""
    before = reference[split].features.get(feature.name) if split in reference else None
    if before is None or not before.holds_dates or not (texts := feature.undated):
        return None
    limit, key = limits.of(feature.name, "max_missing_rise"), limits.key(feature.name, "max_missing_rise")
    first, lost, empty = next(iter(texts)), int(sum(texts.values())), int(feature.counts.get("", 0))
    what = f"{share(lost, feature.rows, feature.rows_in_words)} {agreeing(lost, 'have')} no date"
    if lost + empty == sum(feature.counts.values()):  # nor, then, are the rarer texts, which have no counts
        what, lost = "the most frequent texts are no dates", feature.present - empty
    return Finding(
        rule="missing",
        feature=feature.name,
        splits=(split,),
        what=f"{what} YYYY-MM-DD, but texts such as {first!r}; in the reference all are dates",
        measured=lost / feature.rows,
        limit=limit,
        key=key,
        remedy=f"write them as before, or raise {key}; data.dates names one other format for all",
        query=RowQuery(feature.name, values=tuple(texts)),
        stops=lost / feature.rows > limit,
    )


def _finding(
    feature: FeatureStatistics, split: str, limit: float, key: str, remedy: str, *edits: Edit
) -> Finding:
    return Finding(
        rule="missing",
        feature=feature.name,
        splits=(split,),
        what=_without_value(feature),
        measured=feature.missing_share,
        limit=limit,
        key=key,
        remedy=remedy,
        edits=edits,
        query=RowQuery(feature.name, is_missing=True),
    )


def missing_rows(feature: FeatureStatistics) -> str:
    """Return words for how many rows lack a value, with the verb: `21 of 15,002 rows (0.14%) have`."""
    told = share(feature.missing, feature.rows, feature.rows_in_words)
    return f"{told} {agreeing(feature.missing, 'have')}"


def _without_value(feature: FeatureStatistics) -> str:
    return f"{missing_rows(feature)} no value"
