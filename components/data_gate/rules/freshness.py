"""Checks a time column: its newest value is neither too old nor in the future, and it has not shifted."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from slipway.components.data_gate.finding import Finding, RowQuery, limit_words, share
from slipway.components.data_gate.rule_limits import SECTION, Freshness
from slipway.components.data_gate.rules.risen_values import numbers_moved
from slipway.components.data_gate.statistics import FeatureStatistics, Statistics

_DAY_S = 86_400.0
# Clocks differ, and a date without a zone may be ahead of UTC by 14 hours.
_AHEAD_S = _DAY_S
_NAMED_ZONE = re.compile(r" ?(?:UTC|GMT|Z)$")
# The years 1 to 9999, which a date can have.
_OLDEST_S, _NEWEST_S = -62_135_596_800.0, 253_402_300_799.0


def find_staleness(
    statistics: Statistics,
    reference: Statistics,
    wanted: Freshness | None,
    *,
    now_s: float,
    elapsed_s: float | None = None,
) -> Iterator[Finding]:
    """Find faults of the time column.

    Args:
        reference: the statistics to compare with; empty if there are none.
        wanted: the column and its limits; None to check nothing.
        now_s: the current time, in seconds since 1970.
        elapsed_s: seconds since the reference was judged; None if unknown: skips `max_ahead_days`.
    """
    if wanted is None:
        return
    newest_s = newest(statistics, wanted.column)
    if newest_s is None:
        yield _finding(
            wanted.column,
            "holds no time: it must hold seconds since 1970 or ISO 8601 dates",
            remedy=f"correct {SECTION}.freshness.column",
        )
        return
    latest = _later_than(statistics, wanted.column, newest_s - _DAY_S)
    if newest_s > now_s + _AHEAD_S:
        yield _finding(
            wanted.column,
            f"the newest value, {_date(newest_s)}, is in the future"
            f"{_counted_after(statistics, wanted.column, now_s + _AHEAD_S)}",
            query=_later_than(statistics, wanted.column, now_s + _AHEAD_S),
            remedy="check that it is in seconds since 1970, and the clock that wrote it",
        )
        return
    age_days = max(now_s - newest_s, 0.0) / _DAY_S
    if wanted.max_age_days is not None and age_days > wanted.max_age_days:
        yield _finding(
            wanted.column,
            f"the newest value, {_date(newest_s)}, is {_days(age_days)} old",
            measured=age_days,
            limit=wanted.max_age_days,
            key=f"{SECTION}.freshness.max_age_days",
            remedy=f"provide newer data, or raise {SECTION}.freshness.max_age_days",
            query=latest,
        )
    before_s = newest(reference, wanted.column)
    if before_s is not None:
        yield from (
            replace(finding, query=latest) for finding in _moved(newest_s, before_s, wanted, elapsed_s)
        )
        if before_s - newest_s <= wanted.max_behind_days * _DAY_S:
            yield from _median_fell(statistics, reference, wanted)


def _moved(newest_s: float, before_s: float, wanted: Freshness, elapsed_s: float | None) -> Iterator[Finding]:
    behind_days = (before_s - newest_s) / _DAY_S
    if behind_days > wanted.max_behind_days:
        yield _finding(
            wanted.column,
            f"the newest value, {_date(newest_s)}, is {_days(behind_days)} older than the reference's, "
            f"{_date(before_s)}",
            measured=behind_days,
            limit=wanted.max_behind_days,
            key=f"{SECTION}.freshness.max_behind_days",
            remedy=f"check that this is the right file; otherwise raise {SECTION}.freshness.max_behind_days",
        )
    if elapsed_s is None:
        return
    # New data is later by the time that has passed, unless the source had fallen behind.
    ahead_days = (newest_s - before_s - max(elapsed_s, 0.0)) / _DAY_S
    if ahead_days > wanted.max_ahead_days:
        yield _finding(
            wanted.column,
            f"the newest value went from {_date(before_s)} in the reference to {_date(newest_s)}, "
            f"{_days(ahead_days)} more than have passed since it was judged",
            measured=ahead_days,
            limit=wanted.max_ahead_days,
            key=f"{SECTION}.freshness.max_ahead_days",
            remedy="check whether the times were shifted; if you work through a history faster than it "
            f"was recorded, raise {SECTION}.freshness.max_ahead_days above "
            f"{limit_words(ahead_days, decimals=0)}",
        )


def _median_fell(statistics: Statistics, reference: Statistics, wanted: Freshness) -> Iterator[Finding]:
    """Find a median time significantly older than the reference's; the newest value is not older."""
    fullest = [_fullest(each, wanted.column) for each in (statistics, reference)]
    if fullest[0] is None or fullest[1] is None:
        return
    now, then = _median(fullest[0]), _median(fullest[1])
    behind_days = (then[0] - now[1]) / _DAY_S
    if behind_days > wanted.max_behind_days:
        _, query = numbers_moved(fullest[0], fullest[1], there="")
        yield _finding(
            wanted.column,
            f"half of the values are older than {_date(now[1])}, in the reference older "
            f"than {_date(then[0])}: {_days(behind_days)} earlier",
            measured=behind_days,
            limit=wanted.max_behind_days,
            key=f"{SECTION}.freshness.max_behind_days",
            remedy="check whether times were shifted, or old rows came in again; otherwise raise "
            f"{SECTION}.freshness.max_behind_days above {limit_words(behind_days, decimals=0)}",
            query=query,
        )


def _fullest(statistics: Statistics, column: str) -> FeatureStatistics | None:
    """Return the column's statistics in the split with most of its times; None if it holds no numbers."""
    features = (split.features.get(column) for split in statistics.values())
    found = [feature for feature in features if feature is not None and feature.distribution is not None]
    return max(found, key=lambda feature: feature.present, default=None)


def _median(feature: FeatureStatistics) -> tuple[float, float]:
    """Return confidence bounds of the median time: the quantiles four standard errors around one half."""
    if feature.distribution is None:
        raise ValueError(f"{feature.name} holds no numbers")
    margin = 2 / math.sqrt(feature.present)
    low, high = feature.distribution.quantiles(np.array([0.5 - margin, 0.5 + margin]))
    return float(low), float(high)


def _later_than(statistics: Statistics, column: str, time_s: float) -> RowQuery:
    """Return a query for the rows with a time after `time_s`."""
    features = [split.features[column] for split in statistics.values() if column in split.features]
    texts = {
        text
        for feature in features
        for text in feature.counts
        if (time := _parse(text)) is not None and time > time_s
    }
    return RowQuery(column, values=tuple(sorted(texts))) if texts else RowQuery(column, above=time_s)


def _counted_after(statistics: Statistics, column: str, time_s: float) -> str:
    """Return words for how many rows have a later time; empty if the times are texts."""
    features = [split.features[column] for split in statistics.values() if column in split.features]
    at = np.array([time_s])
    found = [
        (each.present * (1 - float(each.distribution.at_most(at)[0])), each.present)
        for each in features
        if each.distribution is not None
    ]
    late, whole = sum(part for part, _ in found), sum(each for _, each in found)
    if not late:
        return ""
    # Between two quantiles the number is an estimate.
    about = "" if late == whole else "about "
    return f", as {about}{share(max(round(late), 1), whole)} do"


def newest(statistics: Statistics, column: str) -> float | None:
    """Return the newest value of a time column in seconds since 1970; None if there is none.

    For a column of texts it is the newest of the texts in the statistics, the 1,000 most frequent ones.
    """
    features = (split.features.get(column) for split in statistics.values())
    times = [
        time for feature in features if feature is not None and (time := _newest_of(feature)) is not None
    ]
    return max(times, default=None)


def _newest_of(feature: FeatureStatistics) -> float | None:
    if feature.is_number:
        return feature.max
    return max((time for text in feature.counts if (time := _parse(text)) is not None), default=None)


def _parse(text: str) -> float | None:
    try:
        # BigQuery writes 2024-03-01 10:20:30 UTC.
        moment = datetime.fromisoformat(_NAMED_ZONE.sub("Z", text.strip()))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _finding(
    column: str,
    what: str,
    *,
    remedy: str,
    measured: float | None = None,
    limit: float | None = None,
    key: str = "",
    query: RowQuery | None = None,
) -> Finding:
    return Finding("freshness", column, (), what, measured, limit, key, remedy, query=query)


def _date(time_s: float) -> str:
    if not _OLDEST_S <= time_s <= _NEWEST_S:  # true for NaN, too
        return f"{time_s:.4g}"
    return datetime.fromtimestamp(time_s, UTC).date().isoformat()


def _days(days: float) -> str:
    return f"{days:,.0f} days" if days >= 2 else f"{days * 24:,.0f} hours"
