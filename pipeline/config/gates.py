"""The workload file's `data_gate`: what data may be trained on."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from slipway.components.home import at_home
from slipway.pipeline.config.section import Column, PathText, Section

LAST_BLESSED, LAST_PASSED, NO_REFERENCE = "last_blessed", "last_passed", "none"
_SPAN = re.compile(r"span (\d+)")
Share = Annotated[float, Field(ge=0, le=1)]


class FreshnessConfig(Section):
    """What the values of a time column must be; the newest may never lie in the future."""

    column: Column = Field(
        description="A column of seconds since 1970 or of ISO 8601 dates; it is not compared for drift.",
        examples=["trip_start_timestamp"],
    )
    max_age_days: float | None = Field(
        default=None, gt=0, description="How many days old the newest value may be; null: any age."
    )
    max_behind_days: float = Field(
        default=1.0,
        ge=0,
        description="How many days older than in the reference the newest value may be, and the median.",
    )
    max_ahead_days: float = Field(
        default=31.0,
        ge=0,
        description="How many days further it may have moved on from the reference's than have passed since "
        "that was judged.",
    )


class FeatureLimitsConfig(Section):
    """Limits for one feature; what is not given is as for all."""

    max_missing_share: Share | None = Field(default=None, description="As data_gate.max_missing_share.")
    max_missing_rise: Share | None = Field(default=None, description="As data_gate.max_missing_rise.")
    max_out_of_domain_share: Share | None = Field(
        default=None, description="As data_gate.max_out_of_domain_share."
    )
    max_drift_l_infinity: Share | None = Field(default=None, description="As data_gate.max_drift_l_infinity.")
    max_drift_jensen_shannon: Share | None = Field(
        default=None, description="As data_gate.max_drift_jensen_shannon."
    )
    max_skew_l_infinity: Share | None = Field(default=None, description="As data_gate.max_skew_l_infinity.")
    max_skew_jensen_shannon: Share | None = Field(
        default=None, description="As data_gate.max_skew_jensen_shannon."
    )
    max_scale: float | None = Field(default=None, gt=1, description="As data_gate.max_scale.")
    max_label_score: Share | None = Field(default=None, description="As data_gate.max_label_score.")


class DataGateConfig(Section):
    """What data may be trained on. Shares and distances go from 0 to 1; 1 switches such a limit off."""

    anomalies: Literal["error", "warning", "none"] = Field(
        default="error", description="Severity from which an anomaly of the schema stops the run."
    )
    max_missing_share: Share = Field(
        default=1.0,
        description="Share of the rows that may lack a feature; the schema's min_fraction holds in any case.",
    )
    max_missing_rise: Share = Field(
        default=0.05, description="How much larger that share may be than in the reference."
    )
    max_out_of_domain_share: Share = Field(
        default=0.0,
        description="Share of the values that may lie outside the schema's domain or range, beyond what the "
        "schema itself lets pass.",
    )
    max_drift_l_infinity: Share = Field(
        default=0.1, description="By how much the share of any text may differ from the reference."
    )
    max_drift_jensen_shannon: Share = Field(
        default=0.05, description="Jensen-Shannon divergence (base 2) of numbers from the reference."
    )
    max_scale: float = Field(
        default=1.25,
        gt=1,
        description="Factor by which all numbers of a feature may have grown or shrunk together, as after a "
        "change of units.",
    )
    max_skew_l_infinity: Share = Field(
        default=0.1,
        description="By how much the share of any text may differ between train and other splits or serving.",
    )
    max_skew_jensen_shannon: Share = Field(
        default=0.05,
        description="Jensen-Shannon divergence (base 2) between train and other splits or serving.",
    )
    min_rows: int = Field(default=20, ge=0, description="Rows that all splits hold together, at least.")
    max_row_change: float = Field(
        default=0.5, ge=0, description="More or fewer rows than the reference has, as a share of its rows."
    )
    max_duplicate_share: Share = Field(
        default=0.1, description="Share of the rows that may repeat another one in every column."
    )
    max_label_missing_share: Share = Field(
        default=0.0, description="Share of the rows that may lack the label."
    )
    max_label_shift: Share = Field(
        default=0.05,
        description="How far the label may have moved from the reference or between splits: the share of any "
        "class, or the Jensen-Shannon divergence of numbers.",
    )
    max_label_score: Share = Field(
        default=0.98, description="How well one feature alone may predict the label; 1 is perfect."
    )
    max_label_score_drop: Share = Field(
        default=0.1,
        description="How much less of the label the other columns together may explain than in the "
        "reference, as a share of that: wrong labels break the connection.",
    )
    max_bad_share: Share | None = Field(
        default=None,
        description="Share of the rows that may be in quarantine; null: data.max_bad_share, at which Ingest "
        "stops as well.",
    )
    freshness: FreshnessConfig | None = Field(
        default=None, description="The time column whose newest value is looked at; null: none."
    )
    features: dict[Column, FeatureLimitsConfig] = Field(
        default={},
        description="Limits of single features by name, for example {company: {max_drift_l_infinity: 0.3}}.",
    )
    reference: PathText = Field(
        default=LAST_BLESSED,
        description="What the data is compared with: last_blessed, the data of the last blessed model; "
        "last_passed, the data that passed this gate last; span N, the data of that span that passed last; "
        "none; or a folder of statistics (Split-*/FeatureStats.pb), relative to the project's root.",
        examples=["last_blessed", "span 12"],
    )
    serving_statistics: PathText | None = Field(
        default=None,
        description="Folder of statistics (Split-*/FeatureStats.pb) of what the model is asked, to compare "
        "train with; null: unknown.",
    )
    sample_rows: int = Field(
        default=50_000,
        ge=1_000,
        description="Examples that are read to find repeated rows and leaks, at most.",
    )


def span_of(reference: str) -> int | None:
    """The span that `data_gate.reference` names; None for anything else."""
    found = _SPAN.fullmatch(reference)
    return int(found[1]) if found else None


def reference_folder(reference: str) -> str:
    """The folder that `data_gate.reference` names; empty for anything else."""
    named = reference in (LAST_BLESSED, LAST_PASSED, NO_REFERENCE) or span_of(reference) is not None
    return "" if named else reference


def find_reference_problem(value: str, *, root: Path) -> str:
    """What is wrong with `data_gate.reference`, in words; empty: nothing. A mistyped name is a folder."""
    folder = reference_folder(value)
    if folder and (problem := find_folder_problem(folder, root=root)):
        return f"must be {LAST_BLESSED}, {LAST_PASSED}, {NO_REFERENCE}, span N or a folder, and {problem}"
    return ""


def find_folder_problem(value: str, *, root: Path) -> str:
    """What is wrong with a folder of statistics, in words; empty: nothing that can be told from here."""
    if "://" in value:
        return ""
    try:
        folder = root / at_home(value)
        if not folder.is_dir():
            return "there is no such folder"
        return (
            "" if any(folder.glob("Split-*")) else "that folder holds no statistics (Split-*/FeatureStats.pb)"
        )
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
