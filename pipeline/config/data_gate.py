"""The workload file's `data_gate`: the rules for the data to train on."""

import re
from pathlib import Path
from typing import Any

from pydantic import Field

from slipway.components.data_gate.rule_limits import Freshness, Limits, Severity
from slipway.components.home_folder import at_home
from slipway.pipeline.config.section import Column, PathText, Section, SettingsOf, setting_of

LAST_BLESSED, LAST_PASSED, NO_REFERENCE = "last_blessed", "last_passed", "none"
_SPAN = re.compile(r"span (\d+)")


def _of_one_feature(limit: str) -> Any:
    return setting_of(Limits, limit, default=None, description=f"As data_gate.{limit}.")


class FeatureLimitsConfig(Section):
    """Limits for one feature; a limit that is not given is as for all features."""

    max_missing_share: float | None = _of_one_feature("max_missing_share")
    max_missing_rise: float | None = _of_one_feature("max_missing_rise")
    max_out_of_domain_share: float | None = _of_one_feature("max_out_of_domain_share")
    max_drift_l_infinity: float | None = _of_one_feature("max_drift_l_infinity")
    max_drift_jensen_shannon: float | None = _of_one_feature("max_drift_jensen_shannon")
    max_skew_l_infinity: float | None = _of_one_feature("max_skew_l_infinity")
    max_skew_jensen_shannon: float | None = _of_one_feature("max_skew_jensen_shannon")
    max_scale: float | None = _of_one_feature("max_scale")
    max_label_score: float | None = _of_one_feature("max_label_score")


class DataGateConfig(Section):
    """Rules for the data to train on. Shares and distances go from 0 to 1; 1 switches such a limit off."""

    anomalies: Severity = setting_of(Limits, "anomalies")
    max_missing_share: float = setting_of(Limits, "max_missing_share")
    max_missing_rise: float = setting_of(Limits, "max_missing_rise")
    max_out_of_domain_share: float = setting_of(Limits, "max_out_of_domain_share")
    max_drift_l_infinity: float = setting_of(Limits, "max_drift_l_infinity")
    max_drift_jensen_shannon: float = setting_of(Limits, "max_drift_jensen_shannon")
    max_scale: float = setting_of(Limits, "max_scale")
    max_skew_l_infinity: float = setting_of(Limits, "max_skew_l_infinity")
    max_skew_jensen_shannon: float = setting_of(Limits, "max_skew_jensen_shannon")
    min_rows: int = setting_of(Limits, "min_rows")
    max_row_change: float = setting_of(Limits, "max_row_change")
    max_duplicate_share: float = setting_of(Limits, "max_duplicate_share")
    max_label_missing_share: float = setting_of(Limits, "max_label_missing_share")
    max_label_shift: float = setting_of(Limits, "max_label_shift")
    max_label_score: float = setting_of(Limits, "max_label_score")
    max_label_score_drop: float = setting_of(Limits, "max_label_score_drop")
    max_bad_share: float | None = setting_of(
        Limits,
        "max_bad_share",
        default=None,
        description="Share of the rows that may be in quarantine; null: data.max_bad_share, at which Ingest "
        "stops as well.",
    )
    freshness: SettingsOf[Freshness] | None = setting_of(Limits, "freshness")
    features: dict[Column, FeatureLimitsConfig] = setting_of(Limits, "features")
    reference: PathText = Field(
        default=LAST_BLESSED,
        description="The data to compare with: last_blessed, the data of the last blessed model; "
        "last_passed, the data that passed this gate last; span N, the data of that span that passed last; "
        "none; or a folder of statistics (Split-*/FeatureStats.pb), relative to the project's root.",
        examples=["last_blessed", "span 12"],
    )
    serving_statistics: PathText | None = Field(
        default=None,
        description="Folder of statistics (Split-*/FeatureStats.pb) of serving requests, to compare train "
        "with; null: unknown.",
    )
    sample_rows: int = Field(
        default=50_000,
        ge=1_000,
        description="Maximum number of examples read to find repeated rows and leaks.",
    )


def span_of(reference: str) -> int | None:
    """Return the span that `data_gate.reference` names; None if it names something else."""
    found = _SPAN.fullmatch(reference)
    return int(found[1]) if found else None


def reference_folder(reference: str) -> str:
    """Return the folder that `data_gate.reference` names; empty if it names something else."""
    named = reference in (LAST_BLESSED, LAST_PASSED, NO_REFERENCE) or span_of(reference) is not None
    return "" if named else reference


def find_reference_problem(value: str, *, root: Path) -> str:
    """Return the error in `data_gate.reference`, in words; empty if there is none.

    A mistyped keyword is taken for a folder.
    """
    folder = reference_folder(value)
    if folder and (problem := find_folder_problem(folder, root=root)):
        return f"must be {LAST_BLESSED}, {LAST_PASSED}, {NO_REFERENCE}, span N or a folder, and {problem}"
    return ""


def find_folder_problem(value: str, *, root: Path) -> str:
    """Return the error in a folder of statistics, in words; empty if there is none or it is remote."""
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
