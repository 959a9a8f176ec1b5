"""DataGate: the one component that decides whether the data goes on."""

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types.artifact_utils import decode_split_names
from tfx.types.standard_artifacts import ExampleAnomalies, Examples, ExampleStatistics, Schema

from components.data_gate.limits import Limits
from components.data_gate.protos import anomalies as read_anomalies
from components.data_gate.protos import schema_features, split_statistics
from components.data_gate.raw_rows import with_rows
from components.data_gate.read_sample import read_sample
from components.data_gate.rules.rows import BadRows
from components.data_gate.statistics import Statistics
from components.data_gate.verdict import Evidence, Verdict, judge
from components.errors import ComponentError, GateStopError
from schemas.artifacts import DataVerdict, Quarantine

_STATISTICS = "FeatureStats.pb"
_ANOMALIES = "SchemaDiff.pb"


@component
def DataGate(  # noqa: N802 (component constructors are nouns)
    examples: InputArtifact[Examples],
    statistics: InputArtifact[ExampleStatistics],
    schema: InputArtifact[Schema],
    anomalies: InputArtifact[ExampleAnomalies],
    verdict: OutputArtifact[DataVerdict],
    label: Parameter[str],
    limits: Parameter[str],
    options: Parameter[str],
    quarantine: InputArtifact[Quarantine] = None,
    reference: InputArtifact[DataVerdict] = None,
    use_reference: Parameter[int] = 1,
    reference_folder: Parameter[str] = "",
    serving_folder: Parameter[str] = "",
    schema_file: Parameter[str] = "",
    sample_rows: Parameter[int] = 50_000,
    accept_data: Parameter[str] = "",
    day: Parameter[str] = "",
) -> None:
    """Judges the data, and stops the pipeline where it does not pass.

    Args:
        examples: Ingest's; a sample of them is read.
        statistics: StatisticsGen's, of the raw examples.
        schema: what they must keep to.
        anomalies: ExampleValidator's.
        verdict: gets the answer, and copies of the statistics for the next data to be compared with.
        label: the raw column that the label comes from.
        limits: JSON of `limits.Limits`.
        options: JSON of Ingest's `Options`, to find rows in the raw files again.
        quarantine: Ingest's; None where another component makes the examples.
        reference: the verdict that let data pass last; None where there is none.
        use_reference: 0 where the data is compared with nothing, else 1.
        reference_folder: statistics to compare with instead; empty: those of `reference`.
        serving_folder: statistics of what the model is asked; empty: unknown.
        schema_file: the schema as the user knows it; empty where it is inferred from the data.
        sample_rows: how many examples are read at most.
        accept_data: the reason why the data passes whatever is found; empty: it has to pass by itself.
        day: not read; a result is not taken for one of another day where freshness counts.

    Raises:
        GateStopError: the data does not pass; carries the verdict.
    """
    del day
    splits = decode_split_names(statistics.split_names)
    summary = json.loads(_text(f"{quarantine.uri}/summary.json")) if quarantine else {}
    digest = summary.get("digest") or _digest(statistics.uri, splits)
    then, then_uri = _reference(reference if use_reference else None, reference_folder, digest)
    sample = read_sample(examples.uri, splits, rows=sample_rows)
    [schema_name] = fileio.listdir(schema.uri)
    evidence = Evidence(
        statistics=_statistics(statistics.uri),
        label=label,
        limits=Limits.from_json(limits),
        now_s=time.time(),
        schema=schema_features(_text(f"{schema.uri}/{schema_name}")),
        schema_file=schema_file,
        anomalies=[
            anomaly
            for split in splits
            for anomaly in read_anomalies(_bytes(f"{anomalies.uri}/Split-{split}/{_ANOMALIES}"), split=split)
        ],
        reference=_statistics(then_uri) if then_uri else {},
        reference_name=then,
        serving=_serving(serving_folder),
        bad=_bad_rows(summary),
        sample=sample.columns,
        repeated=sample.repeated,
        sampled=sample.rows,
    )
    answer = judge(evidence, accepted=accept_data)
    found = with_rows(
        answer.findings,
        files=[file["name"] for file in summary.get("files", ())],
        features=next(iter(evidence.statistics.values())).features,
        options=options,
    )
    answer = replace(answer, findings=found)
    _write(answer, verdict.uri)
    if not answer.passed:
        raise GateStopError(answer.message, verdict=answer.to_json())
    _copy(statistics.uri, f"{verdict.uri}/statistics")
    if then_uri:
        _copy(then_uri, f"{verdict.uri}/reference")
    verdict.set_int_custom_property("passed", 1)
    verdict.set_int_custom_property("findings", len(answer.findings))
    verdict.set_string_custom_property("data", digest)
    if answer.accepted and answer.stopping:
        verdict.set_string_custom_property("accepted", answer.accepted)


def _digest(uri: str, splits: Sequence[str]) -> str:
    """Stands for the data where nothing else does: the SHA-256 of its statistics."""
    found = hashlib.sha256()
    for split in splits:
        found.update(_bytes(f"{uri}/Split-{split}/{_STATISTICS}"))
    return found.hexdigest()


def _bad_rows(summary: Mapping[str, Any]) -> BadRows:
    if not summary:
        return BadRows()
    return BadRows(summary["rows_in"], summary["rejected"], tuple(summary["first_rejected"]))


def _reference(reference: Any, folder: str, digest: str) -> tuple[str, str]:
    """What the data is compared with, in words, and the folder of its statistics; both may be empty."""
    if folder:
        return folder, folder
    if reference is None:
        return "", ""
    if reference.get_string_custom_property("data") != digest:
        last = f"{reference.uri}/statistics"
        return ("the data that passed last", last) if fileio.exists(last) else ("", "")
    # The same data again: it is compared with what it was compared with then, not with itself.
    before = f"{reference.uri}/reference"
    return ("the data that passed before it", before) if fileio.exists(before) else ("", "")


def _statistics(uri: str) -> Statistics:
    found = (name.strip("/") for name in fileio.listdir(uri) if name.startswith("Split-"))
    folders = sorted(found, key=lambda name: (name != "Split-train", name))
    if not folders:
        raise ComponentError(
            f"{uri} holds no statistics: there is no Split-*/{_STATISTICS} in it",
            hint="name the folder of an artifact of StatisticsGen",
        )
    return {
        name.removeprefix("Split-"): split_statistics(_bytes(f"{uri}/{name}/{_STATISTICS}"))
        for name in folders
    }


def _serving(folder: str) -> Any:
    if not folder:
        return None
    found = _statistics(folder)
    return next(iter(found.values()))


def _write(answer: Verdict, uri: str) -> None:
    document: Mapping[str, Any] = answer.to_json()
    with fileio.open(f"{uri}/verdict.json", "w") as file:
        file.write(json.dumps(document, indent=2, ensure_ascii=False))
    with fileio.open(f"{uri}/verdict.txt", "w") as file:
        file.write("\n".join([answer.message, *answer.lines()]) + "\n")


def _copy(source: str, target: str) -> None:
    for name in fileio.listdir(source):
        if name.startswith("Split-"):
            fileio.makedirs(f"{target}/{name.strip('/')}")
            path = f"{name.strip('/')}/{_STATISTICS}"
            fileio.copy(f"{source}/{path}", f"{target}/{path}", overwrite=True)


def _text(path: str) -> str:
    with fileio.open(path, "r") as file:
        return str(file.read())


def _bytes(path: str) -> bytes:
    with fileio.open(path, "rb") as file:
        return bytes(file.read())
