"""The data section of a run's report page: features by split, the data gate's findings, rejected rows.

Parses the statistics with `tensorflow_metadata` directly, because TensorFlow Data Validation takes seconds to
import.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tensorflow_metadata.proto.v0 import statistics_pb2

from slipway.components.data_gate.protos import split_statistics
from slipway.components.data_gate.rules.distances import jensen_shannon, l_infinity
from slipway.components.data_gate.statistics import FeatureStatistics
from slipway.pipeline.report.artifacts import first_json, folders, read_bytes, read_json
from slipway.pipeline.report.feature_histograms import Feature, InSplit, features
from slipway.pipeline.runs.outcome import read_stops, read_verdicts
from slipway.pipeline.runs.record import Finding, RunRecord, Verdict

# The module reads data files, so it is slow to import.
if TYPE_CHECKING:
    from slipway.components.ingest.quarantine import PlainTally

REFERENCE = "reference"
"""The name, among those of the splits, of the data that the training data is compared with."""

_TRAIN = "train"
_STATISTICS = "FeatureStats.pb"
_PROFILE = "profile.json"
_SHOWN_FEATURES = 150
_SHOWN_FINDINGS = 100
_SHOWN_REJECTED = 10


@dataclass(frozen=True)
class Gate:
    """The verdict of a data gate.

    Attributes:
        findings: the findings in its verdict, at most 100.
        left_out: the number of findings that are not in `findings`.
    """

    passed: bool
    message: str
    findings: tuple[Finding, ...]
    left_out: int


@dataclass(frozen=True)
class Quarantine:
    """The rejected rows.

    Attributes:
        rows_out: split -> rows that were accepted.
        unlabelled: the number of rows that were left out because they have no label.
        reasons: reason -> number of rejected rows.
        samples: the first rejected rows, as text.
    """

    rows_in: int
    rows_out: Mapping[str, int]
    unlabelled: int
    reasons: Mapping[str, int]
    samples: tuple[str, ...]


@dataclass(frozen=True)
class Drift:
    """The distance between a column's distributions in two sets of rows.

    Attributes:
        value: 0 (the same distribution) to 1.
    """

    measure: str
    value: float


@dataclass(frozen=True)
class Data:
    """The content of the data section.

    Attributes:
        rows: split -> number of rows.
        sampled: split -> number of the rows that its statistics are about, if these are a sample.
        reference: the number of rows of the reference data; None if the data was not compared.
        features: at most 150, features with findings first.
        drifts: feature -> distance of its training values from the reference.
        left_out: the number of features that are not in `features`.
        quarantine: the rejected rows; None if the data was not read by Slipway's own Ingest.
    """

    rows: Mapping[str, int]
    sampled: Mapping[str, int]
    reference: int | None
    features: tuple[Feature, ...]
    drifts: Mapping[str, Drift]
    left_out: int
    gates: tuple[Gate, ...]
    quarantine: Quarantine | None


def shown_splits(splits: Sequence[InSplit]) -> tuple[InSplit, ...]:
    """Return the splits that fit in a chart: the first two, and the reference if there is one."""
    own = [found for found in splits if found.split != REFERENCE]
    return (*own[:2], *(found for found in splits if found.split == REFERENCE))


def data(record: RunRecord) -> Data | None:
    """Return the data section of a run, or None if the run has no records of its data.

    Raises:
        OSError, ValueError, DecodeError: a file cannot be read.
    """
    verdicts = [*read_verdicts(record), *read_stops(record).values()]
    gates = tuple(_gate(verdict) for verdict in verdicts if "findings" in verdict)
    statistics = folders(record, "ExampleStatistics")
    own = _read_statistics(statistics[0]) if statistics else {}
    then, then_rows = _read_reference(record)
    quarantine = _quarantine(first_json(record, "schemas.Quarantine", "summary.json"))
    if not (gates or own or quarantine):
        return None
    behind = quarantine.rows_out if quarantine else {}
    splits = {split: split_statistics(content, rows=behind.get(split)) for split, content in own.items()}
    earlier = {REFERENCE: split_statistics(then, rows=then_rows)} if then and own else {}
    found = [finding.get("feature", "") for verdict in verdicts for finding in verdict.get("findings", ())]
    made = features({**splits, **earlier}, findings=found)
    return Data(
        rows={split: statistics.rows for split, statistics in splits.items()},
        sampled={
            split: found.sampled
            for split, found in splits.items()
            if found.sampled is not None and found.sampled < found.rows
        },
        reference=earlier[REFERENCE].rows if earlier else None,
        features=tuple(made[:_SHOWN_FEATURES]),
        drifts=_drifts(own[_TRAIN], then) if then and _TRAIN in own else {},
        left_out=max(len(made) - _SHOWN_FEATURES, 0),
        gates=gates,
        quarantine=quarantine,
    )


def _gate(verdict: Verdict) -> Gate:
    findings = tuple(_complete(finding) for finding in verdict["findings"])
    shown = findings[:_SHOWN_FINDINGS]
    return Gate(
        bool(verdict.get("passed")), str(verdict.get("message", "")), shown, len(findings) - len(shown)
    )


def _complete(finding: Finding) -> Finding:
    """Return a finding with all that the page asks for: a gate of one's own may tell less."""
    nothing = {
        "feature": "",
        "what": "",
        "splits": (),
        "limit": None,
        "rows": (),
        "remedy": "",
        "stops": True,
    }
    return cast(Finding, {**nothing, **finding})


def _quarantine(summary: "PlainTally") -> Quarantine | None:
    if not summary:
        return None
    samples = tuple(each[:300] for each in summary.get("first_rejected", ())[:_SHOWN_REJECTED])
    return Quarantine(
        summary["rows_in"], summary["rows_out"], summary.get("unlabelled", 0), summary["rejected"], samples
    )


def _read_statistics(folder: Path) -> dict[str, bytes]:
    """Read the statistics of each split, the train split first."""
    found = {}
    for split in sorted(folder.glob("Split-*"), key=lambda f: (f.name != f"Split-{_TRAIN}", f.name)):
        path = split / _STATISTICS
        if path.is_file() and (content := read_bytes(path)) and _datasets(content):
            found[split.name.removeprefix("Split-")] = content
    return found


def _read_reference(record: RunRecord) -> tuple[bytes, int | None]:
    """Read the statistics of the gate's reference data; empty if there are none on this machine.

    Returns:
        The statistics, and the number of rows that they are a sample of; None if they are about all rows.
    """
    kept = [folder / REFERENCE for folder in folders(record, "schemas.DataVerdict")]
    # A gate that stopped the run has no outputs, but its verdict names the folder of the reference.
    named = [verdict.get("reference_folder", "") for verdict in read_stops(record).values()]
    for folder in (*kept, *(Path(name) for name in named if name and "://" not in name)):
        if content := _read_statistics(folder).get(_TRAIN):
            return content, read_json(folder / _PROFILE).get("rows", {}).get(_TRAIN)
    return b"", None


def _datasets(content: bytes) -> Any:
    return statistics_pb2.DatasetFeatureStatisticsList.FromString(content).datasets


def _drifts(now: bytes, then: bytes) -> dict[str, Drift]:
    """Return the distance of each column that has values in both sets.

    Args:
        now: the statistics of one split: the content of `FeatureStats.pb`.
        then: the statistics of the reference, likewise.
    """
    before = split_statistics(then).features
    found = {
        name: _drift(feature, before[name])
        for name, feature in split_statistics(now).features.items()
        if name in before
    }
    return {name: drift for name, drift in found.items() if drift is not None}


def _drift(now: FeatureStatistics, then: FeatureStatistics) -> Drift | None:
    if now.is_number and then.is_number and now.distribution and then.distribution:
        return Drift("Jensen-Shannon", jensen_shannon(now.distribution, then.distribution)[0])
    if now.counts and then.counts:
        sums = now.counted, then.counted
        return Drift("L-infinity", l_infinity(now.counts, then.counts, sums)[0])
    return None
