"""The limits that the rules hold their numbers against. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self

# Where the user finds them in the workload file.
SECTION = "data_gate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """What the values of a time column must be.

    Attributes:
        column: holds seconds since 1970, or ISO 8601 dates.
        max_age_days: how old the newest may be; None: any age.
        max_behind_days: how much older than the reference's newest it may be, and the median than its median.
        max_ahead_days: how much further than the clock it may have moved on since the reference was judged.
    """

    column: str
    max_age_days: float | None = None
    max_behind_days: float = 1.0
    max_ahead_days: float = 31.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Every limit, with the default that the workload file documents; shares and distances are 0 to 1.

    Attributes:
        anomalies: the least severity of a schema anomaly that stops.
        max_missing_share: rows without a value, of all.
        max_missing_rise: how much larger that share may be than the reference's.
        max_out_of_domain_share: values outside their domain or range, beyond what the schema lets pass.
        max_drift_l_infinity: between the shares of texts now and in the reference.
        max_drift_jensen_shannon: between the distributions of numbers now and in the reference.
        max_scale: factor by which all numbers of a feature may have been multiplied, > 1.
        max_skew_l_infinity: as for drift, between the splits.
        max_skew_jensen_shannon: as for drift, between the splits.
        min_rows: of all splits.
        max_row_change: more or fewer rows than the reference, as a share of its.
        max_duplicate_share: rows that repeat an earlier one.
        max_label_missing_share: rows without a label.
        max_label_shift: between the label now and in the reference, and between the splits.
        max_label_score: how well one feature alone may predict the label.
        max_label_score_drop: how much less of the label all other columns together may explain than in the
            reference, as a share of what they explain there.
        max_bad_share: rows in quarantine, of all.
        freshness: None: no column is looked at.
        features: limits of single features, by name and by the limit's name.
    """

    anomalies: Literal["error", "warning", "none"] = "error"
    max_missing_share: float = 1.0
    max_missing_rise: float = 0.05
    max_out_of_domain_share: float = 0.0
    max_drift_l_infinity: float = 0.1
    max_drift_jensen_shannon: float = 0.05
    max_scale: float = 1.25
    max_skew_l_infinity: float = 0.1
    max_skew_jensen_shannon: float = 0.05
    min_rows: int = 20
    max_row_change: float = 0.5
    max_duplicate_share: float = 0.1
    max_label_missing_share: float = 0.0
    max_label_shift: float = 0.05
    max_label_score: float = 0.98
    max_label_score_drop: float = 0.1
    max_bad_share: float = 0.001
    freshness: Freshness | None = None
    features: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def of(self, feature: str, name: str) -> float:
        """A limit for one feature."""
        own = self.features.get(feature, {})
        return float(own[name] if name in own else getattr(self, name))

    def key(self, feature: str, name: str) -> str:
        """The workload's key that holds that limit."""
        return f"{SECTION}.features.{feature}.{name}" if name in self.features.get(feature, {}) else key(name)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads the limits from JSON; keys that are no limit, e.g. of the gate itself, are left out."""
        data: dict[str, Any] = json.loads(text)
        known = {each.name for each in fields(cls)}
        chosen = {name: value for name, value in data.items() if name in known}
        if chosen.get("freshness"):
            chosen["freshness"] = Freshness(**chosen["freshness"])
        return cls(**chosen)


def key(name: str) -> str:
    """The workload's key of a limit."""
    return f"{SECTION}.{name}"
