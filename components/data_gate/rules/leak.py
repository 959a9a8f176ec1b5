"""Finds features that give the label away: alone they predict it almost perfectly on held-out rows."""

from collections.abc import Iterator, Mapping

from slipway.components.data_gate.finding import Finding, RowQuery
from slipway.components.data_gate.rule_limits import SECTION, Limits


def find_leaks(
    scores: Mapping[str, float], label: str, limits: Limits, *, beside: str = ""
) -> Iterator[Finding]:
    """Find features whose score is above `max_label_score`.

    Args:
        scores: how well each feature alone predicts the label.
        label: the user's name for the label.
        limits: uses `max_label_score`.
        beside: the raw column of the label, which is shown beside the feature; empty for `label`.
    """
    for name, measured in scores.items():
        limit = limits.of(name, "max_label_score")
        if measured > limit:
            key = limits.key(name, "max_label_score")
            yield Finding(
                rule="leak",
                feature=name,
                splits=(),
                what=f"alone it predicts {label} with a score of {measured:.3f} (1 is perfect): it gives the "
                "label away",
                measured=measured,
                limit=limit,
                key=key,
                remedy="leave it out of preprocessing_fn and of data.columns; if it is known before the "
                f"label, set {SECTION}.features.{name}.max_label_score to 1",
                query=RowQuery(name, beside=beside or label),
            )
