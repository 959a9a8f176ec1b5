"""The limits that the rules compare their numbers with. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, Literal, Self

from slipway.components.errors import ComponentError
from slipway.components.escaped_text import escaped
from slipway.components.nearest import nearest
from slipway.components.setting_fields import setting

Severity = Literal["error", "warning", "none"]
# The section of the workload file that holds the limits.
SECTION = "data_gate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Limits for a time column, whose newest value may never lie in the future."""

    column: str = setting(
        MISSING,
        "A column of seconds since 1970 or of ISO 8601 dates; it is not compared for drift.",
        min_length=1,
        examples=["trip_start_timestamp"],
    )
    max_age_days: float | None = setting(
        None, "How many days old the newest value may be; null: any age.", gt=0
    )
    max_behind_days: float = setting(
        1.0, "How many days older than in the reference the newest value may be, and the median.", ge=0
    )
    max_ahead_days: float = setting(
        31.0,
        "How many days more than the time since the reference was judged it may have advanced.",
        ge=0,
    )


def _share(default: float, description: str) -> Any:
    return setting(default, description, ge=0, le=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of all rules. Shares and distances go from 0 to 1; 1 switches such a limit off."""

    anomalies: Severity = setting("error", "Severity from which an anomaly of the schema stops the run.")
    max_missing_share: float = _share(
        1.0, "Share of the rows that may lack a feature; the schema's min_fraction holds in any case."
    )
    max_missing_rise: float = _share(0.05, "By how much that share may exceed the reference's.")
    max_out_of_domain_share: float = _share(
        0.0,
        "Share of the values that may lie outside the schema's domain or range, beyond what the schema "
        "itself lets pass.",
    )
    max_drift_l_infinity: float = _share(
        0.1, "By how much the share of any text may differ from the reference."
    )
    max_drift_jensen_shannon: float = _share(
        0.05, "Jensen-Shannon divergence (base 2) of numbers from the reference."
    )
    max_scale: float = setting(
        1.25,
        "Factor by which all numbers of a feature may have grown or shrunk together, as after a change of "
        "units.",
        gt=1,
    )
    max_skew_l_infinity: float = _share(
        0.1, "By how much the share of any text may differ between train and other splits or serving."
    )
    max_skew_jensen_shannon: float = _share(
        0.05, "Jensen-Shannon divergence (base 2) between train and other splits or serving."
    )
    min_rows: int = setting(20, "Minimum number of rows in all splits together.", ge=0)
    max_row_change: float = setting(
        0.5, "How far the number of rows may differ from the reference's, as a share of it.", ge=0
    )
    max_duplicate_share: float = _share(0.1, "Share of the rows that may repeat an earlier row.")
    max_label_missing_share: float = _share(0.0, "Share of the rows that may lack the label.")
    max_label_shift: float = _share(
        0.05,
        "How far the label may have moved from the reference or between splits: the share of any class, or "
        "the Jensen-Shannon divergence of numbers.",
    )
    max_label_score: float = _share(0.98, "How well one feature alone may predict the label; 1 is perfect.")
    max_label_score_drop: float = _share(
        0.1,
        "How much less of the label the other columns together may explain than in the reference, as a share "
        "of that; wrong labels break the connection.",
    )
    max_bad_share: float = _share(0.001, "Share of the rows that may be in quarantine.")
    freshness: Freshness | None = setting(None, "The time column whose newest value is checked; null: none.")
    features: Mapping[str, Mapping[str, float]] = setting(
        {}, "Limits for single features by name, for example {company: {max_drift_l_infinity: 0.3}}."
    )

    def of(self, feature: str, name: str) -> float:
        """Return the limit `name` for one feature: the feature's own if it has one, else the general one."""
        own = self.features.get(feature, {})
        return float(own[name] if name in own else getattr(self, name))

    def key(self, feature: str, name: str) -> str:
        """Return the key of the workload file that sets the limit `name` for one feature."""
        return f"{SECTION}.features.{feature}.{name}" if name in self.features.get(feature, {}) else key(name)

    def check_features(self, columns: Collection[str]) -> None:
        """Check that every feature with limits of its own exists: a mistyped name would limit nothing.

        Args:
            columns: those of the data and of the schema.

        Raises:
            ComponentError: a feature is none of them.
        """
        for name in self.features:
            if name not in columns:
                raise ComponentError(
                    f"{SECTION}.features: {name!r} is not a column of the data; "
                    f"nearest: {escaped(nearest(name, columns, similarity=0))}",
                    hint=f"columns that are read: {', '.join(map(escaped, columns))}",
                )

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Read the limits from plain values; missing limits have their defaults."""
        freshness = values.get("freshness")
        return cls(**{**values, "freshness": Freshness(**freshness) if freshness else None})


def key(name: str) -> str:
    """Return the key of the workload file that sets a limit for all features."""
    return f"{SECTION}.{name}"
