"""Decides whether the data passes: applies every rule and gives one answer. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

import numpy as np

from slipway.components.counted_words import counted
from slipway.components.data_gate.finding import Finding, Rule
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.anomaly_group import Context
from slipway.components.data_gate.rules.changed_columns import find_changed_columns
from slipway.components.data_gate.rules.distribution_limits import find_drift, find_serving_skew, find_skew
from slipway.components.data_gate.rules.freshness import find_staleness
from slipway.components.data_gate.rules.label import find_label_faults
from slipway.components.data_gate.rules.label_noise import find_label_noise
from slipway.components.data_gate.rules.leak import find_leaks
from slipway.components.data_gate.rules.missing import find_missing
from slipway.components.data_gate.rules.rows import (
    QuarantineSummary,
    find_bad_rows,
    find_conversion_notes,
    find_duplicates,
    find_row_counts,
)
from slipway.components.data_gate.rules.schema_violations import find_anomalies
from slipway.components.data_gate.schema import Anomaly, FeatureSchema
from slipway.components.data_gate.statistics import SplitStatistics, Statistics, total_rows
from slipway.components.data_profile.columns import Column
from slipway.components.data_profile.label_score import LabelScore, label_score
from slipway.components.data_profile.rows import row_at
from slipway.components.data_profile.single_scores import single_scores

# The name of the last blessed model's data; the next model is compared with that model.
BLESSED = "the data of the last blessed model"

_ORDER = get_args(Rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All evidence about the data that the rules judge.

    Attributes:
        label: the raw column that the label comes from.
        now_s: the current time, in seconds since 1970.
        schema_file: the user's name for the schema file; empty if the schema is inferred from the data.
        anomalies: the anomalies that ExampleValidator found, of all splits.
        reference: the statistics of data that passed before; empty if there is none.
        reference_name: a description of that data.
        reference_label_score: how well its columns explained its label; None if unknown.
        reference_at_s: when it was judged, in seconds since 1970; None if unknown.
        serving: the statistics of serving requests; None if unknown.
        sample: some rows of the data, by column.
        transformed_label: its name, and its values for the rows of the sample; None if unknown.
        repeated: the number of rows of the sample that repeat an earlier one.
        first_repeated: the first few of them, as row numbers in the sample.
    """

    statistics: Statistics
    label: str
    limits: Limits
    now_s: float
    schema: Mapping[str, FeatureSchema] = field(default_factory=dict)
    schema_file: str = ""
    anomalies: Sequence[Anomaly] = ()
    reference: Statistics = field(default_factory=dict)
    reference_name: str = ""
    reference_label_score: LabelScore | None = None
    reference_at_s: float | None = None
    serving: SplitStatistics | None = None
    quarantine: QuarantineSummary = field(default_factory=QuarantineSummary)
    sample: Mapping[str, Column] = field(default_factory=dict)
    transformed_label: tuple[str, Column] | None = None
    repeated: int = 0
    first_repeated: Sequence[int] = ()
    sampled: int = 0


@dataclass(frozen=True, slots=True)
class DataGateVerdict:
    """The gate's answer.

    Attributes:
        findings: all findings; those that stop the run come first.
        reference_name: a description of the data compared with; empty if there was none.
        label_score: how well the columns explain the label; None if that cannot be computed.
        accepted: the user's reason for passing the data despite findings; empty if there is no override.
        dates: the columns of which all texts are ISO dates, in each split.
    """

    findings: tuple[Finding, ...]
    rows: int
    features: int
    reference_name: str = ""
    label_score: LabelScore | None = None
    accepted: str = ""
    dates: tuple[str, ...] = ()

    @property
    def stopping(self) -> tuple[Finding, ...]:
        """The findings that stop the run, or would stop it without the override."""
        return tuple(finding for finding in self.findings if finding.stops)

    @property
    def passed(self) -> bool:
        """Whether the pipeline continues."""
        return not self.stopping or (bool(self.accepted) and not self.is_final)

    @property
    def is_final(self) -> bool:
        """Whether not even the override lets the data pass: a later node could not read it."""
        return any(finding.is_final for finding in self.stopping)

    @property
    def message(self) -> str:
        """The verdict in one line."""
        count = len(self.stopping)
        found = counted(count, "finding") if count else "nothing found"
        data = f"{counted(self.rows, 'row')}, {counted(self.features, 'column')}"
        against = (
            f", against {self.reference_name}" if self.reference_name else ", no earlier data to compare with"
        )
        accepted = f"; accepted: {self.accepted}" if self.accepted and count and not self.is_final else ""
        return f"{found} in {data}{against}{accepted}"

    def lines(self) -> list[str]:
        """Return all findings as shown on the screen."""
        return [line for finding in self.findings for line in finding.lines()]

    def to_json(self) -> dict[str, object]:
        """Return plain data for `verdict.json`."""
        return {
            "passed": self.passed,
            "message": self.message,
            "accepted": self.accepted,
            "override": "" if self.is_final else "accept_data",
            "reference": self.reference_name,
            "rows": self.rows,
            "features": self.features,
            "dates": list(self.dates),
            "findings": [finding.to_json() for finding in self.findings],
            "lines": self.lines(),
        }


def judge(evidence: Evidence, *, accepted: str = "") -> DataGateVerdict:
    """Check the data against every rule.

    Args:
        accepted: the reason given with `--accept-data`; empty without it.
    """
    scores = single_scores(evidence.sample, evidence.label)
    explained = label_score(evidence.sample, evidence.label, scores)
    found = sorted(
        _find(evidence, scores, explained),
        key=lambda finding: (not finding.stops, _ORDER.index(finding.rule)),
    )
    splits = evidence.statistics.values()
    names = {name for split in splits for name in split.features}
    dates = {name for name in names if all(split.holds_dates(name) for split in splits)}
    return DataGateVerdict(
        findings=tuple(found),
        rows=total_rows(evidence.statistics),
        features=len(names),
        reference_name=evidence.reference_name if evidence.reference else "",
        label_score=explained,
        accepted=accepted,
        dates=tuple(sorted(dates)),
    )


def _find(e: Evidence, scores: Mapping[str, float], explained: LabelScore | None) -> Iterator[Finding]:
    yield from find_bad_rows(e.quarantine, e.limits)
    yield from find_conversion_notes(e.quarantine)
    yield from find_row_counts(e.statistics, e.reference, e.limits)
    repeats = [row_at(e.sample, row) for row in e.first_repeated] if e.sample else []
    yield from find_duplicates(e.repeated, e.sampled, e.limits, examples=repeats)
    is_needed = e.label in e.schema and e.schema[e.label].has_shape
    yield from find_label_faults(e.statistics, e.reference, e.label, e.limits, is_needed=is_needed)
    yield from find_label_noise(
        explained, e.reference_label_score, e.label, e.limits, sample=e.sample, single=scores
    )
    found = find_missing(e.statistics, e.reference, e.schema, e.limits, schema_file=e.schema_file)
    missing = [finding for finding in found if finding.feature != e.label]
    yield from missing
    already_reported = {finding.feature for finding in missing if finding.stops} | {e.label}
    context = Context(e.statistics, e.schema, e.limits, e.schema_file, e.sample, already_reported)
    from_schema = list(find_anomalies(e.anomalies, context))
    yield from from_schema
    there = {name for split in e.statistics.values() for name in split.features}
    # A label that is missing is reported by its own rule, one of another type is not.
    lost = {finding.feature for finding in from_schema} | ({e.label} - there)
    is_blessed = e.reference_name == BLESSED
    changed = find_changed_columns(e.statistics, e.reference, skip=lost, is_blessed=is_blessed)
    yield from changed
    # The label has its own rule, and times always advance, so their distribution never repeats.
    skip = {e.label} | ({e.limits.freshness.column} if e.limits.freshness else set())
    yield from find_drift(e.statistics, e.reference, e.limits, skip=skip)
    yield from find_skew(e.statistics, e.limits, skip=skip)
    yield from find_serving_skew(e.statistics, e.serving, e.limits, skip=skip)
    leaks = list(find_leaks(scores, e.label, e.limits))
    yield from leaks
    yield from _leaks_of_transformed_label(e, already_reported={finding.feature for finding in leaks})
    elapsed_s = None if e.reference_at_s is None else e.now_s - e.reference_at_s
    yield from find_staleness(
        e.statistics, e.reference, e.limits.freshness, now_s=e.now_s, elapsed_s=elapsed_s
    )


def _leaks_of_transformed_label(e: Evidence, *, already_reported: Collection[str]) -> Iterator[Finding]:
    """Find features that leak the transformed label; the raw label itself is not a feature of the model."""
    if e.transformed_label is None or e.label not in e.sample:
        return
    name, column = e.transformed_label
    if np.array_equal(column, e.sample[e.label]):
        return
    features = {key: values for key, values in e.sample.items() if key not in (e.label, name)}
    found = find_leaks(single_scores({**features, name: column}, name), name, e.limits, beside=e.label)
    yield from (finding for finding in found if finding.feature not in already_reported)
