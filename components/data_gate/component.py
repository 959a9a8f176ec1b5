"""DataGate: the component that decides whether the pipeline continues with this data."""

import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types.artifact_utils import decode_split_names
from tfx.types.standard_artifacts import ExampleAnomalies, Examples, ExampleStatistics, ModelBlessing, Schema

from slipway.components.accelerators import keep_to_cpu
from slipway.components.data_gate.protos import anomalies as read_anomalies
from slipway.components.data_gate.protos import schema_features
from slipway.components.data_gate.raw_rows import with_rows
from slipway.components.data_gate.reference import find_reference, read_bytes, read_statistics
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.rows import QuarantineSummary
from slipway.components.data_gate.span_strategy import SPAN
from slipway.components.data_gate.statistics import total_rows
from slipway.components.data_gate.transformed_label import compute_transformed_label
from slipway.components.data_gate.verdict import BLESSED, DataGateVerdict, Evidence, judge
from slipway.components.data_profile.profile import (
    BLESSED_DATA,
    Profile,
    data_digest,
    keep_profile,
    rows_behind,
)
from slipway.components.data_profile.sample import read_sample
from slipway.components.errors import ComponentError, GateStopError
from slipway.components.finite_json import finite
from slipway.components.parameters import from_parameter
from slipway.components.typed_json import typed
from slipway.schemas.artifacts import DataVerdict, Quarantine

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
    sample_rows: Parameter[int],
    quarantine: InputArtifact[Quarantine] = None,
    reference: InputArtifact[DataVerdict] = None,
    blessing: InputArtifact[ModelBlessing] = None,
    reference_folder: Parameter[str] = "",
    reference_span: Parameter[int] = -1,
    serving_folder: Parameter[str] = "",
    preprocessing_fn: Parameter[str] = "",
    label_feature: Parameter[str] = "",
    schema_file: Parameter[str] = "",
    accept_data: Parameter[str] = "",
    day: Parameter[str] = "",
    pass_through: Parameter[list[str]] = None,
) -> None:
    """Judge the data, and stop the pipeline if it does not pass.

    Args:
        examples: the examples from Ingest; only a sample of them is read.
        schema: the schema that the examples must conform to.
        verdict: receives the verdict, and copies of the statistics with which later data is compared.
        label: the raw column that the label comes from.
        limits: the fields of `limits.Limits`, encoded by `as_parameter`.
        options: Ingest's `Options`, encoded by `as_parameter`, to locate rows in the raw files.
        quarantine: Ingest's quarantine; None if another component produces the examples.
        reference: the verdict on earlier data to compare with; None if there is none.
        blessing: the ModelGate's blessing of the model with whose data to compare; None if there is none.
        reference_folder: statistics to compare with instead of those of `reference` or `blessing`; or empty.
        reference_span: the span that `reference` must be about; -1 if `reference` may be missing.
        serving_folder: statistics of serving requests; empty if unknown.
        preprocessing_fn: dotted path of the user's preprocessing_fn; empty: only the raw label is checked.
        label_feature: the name of the label among the outputs of preprocessing_fn.
        schema_file: the user's name for the schema file; empty if the schema is inferred from the data.
        sample_rows: the maximum number of examples to read.
        pass_through: columns that are not inputs of the model and so cannot leak the label; None for none.
        accept_data: the reason for passing the data despite its findings; empty if it must pass by itself.
        day: not read; causes a cache miss on another day if freshness is checked.

    Raises:
        ComponentError: no data of the span `reference_span` has passed the gate yet, or a feature with limits
            of its own is no column.
        GateStopError: the data does not pass; carries the verdict.
    """
    del day
    if reference_span >= 0 and reference is None:
        raise ComponentError(
            f"data_gate.reference names span {reference_span}, "
            "but no data of that span has passed this gate yet",
            hint="run that span first, with data_gate.reference=none",
        )
    keep_to_cpu()
    splits = decode_split_names(statistics.split_names)
    summary = json.loads(_text(f"{quarantine.uri}/summary.json")) if quarantine else {}
    quarantine_folder = quarantine.uri if quarantine else ""
    digest = data_digest(statistics.uri, quarantine_folder)
    rows = rows_behind(statistics, quarantine_folder)
    then = find_reference(
        [
            (reference_folder, reference_folder),
            (BLESSED, f"{blessing.uri}/{BLESSED_DATA}" if blessing else ""),
            ("the data that passed last", f"{reference.uri}/statistics" if reference else ""),
            ("the data that passed before it", f"{reference.uri}/reference" if reference else ""),
        ],
        digest=digest,
    )
    now_s = time.time()
    sample = read_sample(examples.uri, splits, rows=sample_rows)
    [schema_name] = fileio.listdir(schema.uri)
    schema_text = _text(f"{schema.uri}/{schema_name}")
    values = None
    if preprocessing_fn:
        values = compute_transformed_label(
            sample.records, preprocessing_fn=preprocessing_fn, label=label_feature, schema=schema_text
        )
    evidence = Evidence(
        statistics=read_statistics(statistics.uri, rows),
        label=label,
        limits=Limits.from_json(from_parameter(limits)),
        now_s=now_s,
        schema=schema_features(schema_text),
        schema_file=schema_file,
        anomalies=[
            anomaly
            for split in splits
            for anomaly in read_anomalies(
                read_bytes(f"{anomalies.uri}/Split-{split}/{_ANOMALIES}"), split=split
            )
        ],
        reference=then.statistics,
        reference_name=then.name,
        reference_label_score=then.profile.label_score_of(
            total_rows(then.statistics), sample_rows=sample_rows
        ),
        reference_at_s=then.profile.at_s,
        serving=_serving(serving_folder),
        quarantine=_quarantine_summary(summary),
        transformed_label=None if values is None else (label_feature, values),
        sample={name: column for name, column in sample.columns.items() if name not in (pass_through or ())},
        repeated=sample.repeated,
        first_repeated=sample.first_repeated,
        sampled=sample.rows,
    )
    read = (each.features for each in evidence.statistics.values())
    evidence.limits.check_features(dict.fromkeys([*itertools.chain(*read), *evidence.schema]))
    answer = judge(evidence, accepted=accept_data)
    found = with_rows(
        answer.findings,
        files=[file["name"] for file in summary.get("files", ())],
        features=next(iter(evidence.statistics.values())).features,
        options=from_parameter(options),
        splits=splits,
    )
    answer = replace(answer, findings=found)
    _write(answer, verdict.uri)
    if not answer.passed:
        told = finite({**answer.to_json(), "reference_folder": then.folder})
        raise GateStopError(answer.message, verdict=told)
    keep_profile(
        statistics.uri, f"{verdict.uri}/statistics", Profile(digest, now_s, answer.label_score, rows)
    )
    if then.folder:
        keep_profile(then.folder, f"{verdict.uri}/reference", then.profile)
    verdict.set_int_custom_property("passed", 1)
    verdict.set_int_custom_property("findings", len(answer.findings))
    verdict.set_string_custom_property("data", digest)
    verdict.set_int_custom_property(SPAN, examples.get_int_custom_property(SPAN))
    if answer.accepted and answer.stopping:
        verdict.set_string_custom_property("accepted", answer.accepted)


def _quarantine_summary(summary: Mapping[str, object]) -> QuarantineSummary:
    return typed(QuarantineSummary, {**summary, "first": summary.get("first_rejected", [])})


def _serving(folder: str) -> Any:
    if not folder:
        return None
    found = read_statistics(folder)
    return next(iter(found.values()))


def _write(answer: DataGateVerdict, uri: str) -> None:
    document = answer.to_json()
    with fileio.open(f"{uri}/verdict.json", "w") as file:
        file.write(json.dumps(finite(document), indent=2, ensure_ascii=False))
    with fileio.open(f"{uri}/verdict.txt", "w") as file:
        file.write("\n".join([answer.message, *answer.lines()]) + "\n")


def _text(path: str) -> str:
    with fileio.open(path, "r") as file:
        return str(file.read())
