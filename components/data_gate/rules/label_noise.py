"""Finds labels that lost their connection with the other columns: flipped, shuffled or shifted by a row."""

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from slipway.components.data_gate.finding import Finding, RowQuery, advice_to_raise, percent
from slipway.components.data_gate.rule_limits import Limits, key
from slipway.components.data_profile.columns import Column
from slipway.components.data_profile.label_score import LabelScore, least_explained
from slipway.components.data_profile.rows import row_at

# The same allowance for chance as in the other comparisons; it is exceeded once in 30,000 times.
_STANDARD_ERRORS = 4.0


def find_label_noise(
    now: LabelScore | None,
    then: LabelScore | None,
    label: str,
    limits: Limits,
    *,
    sample: Mapping[str, Column] = MappingProxyType({}),
    single: Mapping[str, float] = MappingProxyType({}),
) -> Iterator[Finding]:
    """Find a label that the other columns explain significantly less than in the reference.

    Args:
        now: the score of the data.
        then: the score of the reference; if either is None, nothing is compared.
        limits: uses `max_label_score_drop`.
        single: how well each column alone predicts the label, from `single_scores`.
    """
    if now is None or then is None or then.score <= 0:
        return
    score = max(now.score, 0.0)  # worse than the mean explains no less than nothing
    limit, drop = limits.max_label_score_drop, then.score - score
    chance = _STANDARD_ERRORS * math.hypot(now.error, then.error)
    if drop <= limit * then.score + chance:
        return
    name, measured = key("max_label_score_drop"), drop / then.score
    rows = least_explained(sample, label, single)
    query = None
    if rows:
        like = tuple(row_at(sample, row) for row in rows)
        query = RowQuery(label, like=like, beside=max(single, key=lambda column: single[column]))
    yield Finding(
        rule="label",
        feature=label,
        splits=(),
        what=f"the other columns explain {percent(score)} of it, {percent(then.score)} in the "
        f"reference, {percent(measured)} less: labels are wrong, or mixed up",
        measured=measured,
        limit=limit,
        key=name,
        remedy=f"check where these labels come from; if they are right, {advice_to_raise(name, measured)}",
        query=query,
    )
