"""Reads the Evaluator's output into plain numbers."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import metrics_for_slice_pb2
from tfx.dsl.io import fileio

from slipway.components.metrics.definitions import of_output, output_of, plain_name
from slipway.components.model_gate.eval_config import BASELINE, CANDIDATE
from slipway.components.model_gate.interval_formulas import Spread
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.prediction_counts import PlainCounts
from slipway.components.model_gate.prediction_counts_metric import PREDICTION_COUNTS
from slipway.components.model_gate.slice_names import columns_name, slice_name
from slipway.components.model_gate.trivial_scores import LABEL_PREFIX, LabelStatistics
from slipway.components.model_gate.verdict import OVERALL


@dataclass(frozen=True)
class Evaluation:
    """The metrics of one evaluation.

    Attributes:
        candidate: slice name (`overall`, `payment_type=Cash`) -> metric name -> value.
        baseline: the same for the latest blessed model; empty if there is none.
        answers: the answers over all rows, of the `candidate` and, if there is one, the `baseline`; empty if
            the evaluation holds none.
        not_finite: by output, the number of rows to which the candidate answers NaN or infinity; the only
            output has the name "".
        outside: the same, the number of rows with an answer that is no probability, though a metric takes
            some.
        kinds: the same, the `kind` of the candidate's answers, see `PlainCounts`; an output whose answers fit
            no form is not there.
        spreads: slice name -> metric -> how far chance moves the candidate's value.
        difference_spreads: the same for candidate minus baseline on the same rows.
        columns: slice name -> the columns that define it, as `a, b`.
    """

    candidate: dict[str, dict[str, float]]
    baseline: dict[str, dict[str, float]]
    answers: dict[str, PlainCounts] = field(default_factory=dict)
    not_finite: dict[str, int] = field(default_factory=dict)
    outside: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    spreads: dict[str, dict[str, Spread]] = field(default_factory=dict)
    difference_spreads: dict[str, dict[str, Spread]] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)

    def slices(self) -> dict[str, Measured]:
        """Return the evaluation of each slice, with the label statistics separated from the metrics."""
        return {
            name: Measured(
                metrics={
                    key: value for key, value in found.items() if not plain_name(key).startswith(LABEL_PREFIX)
                },
                baseline=self.baseline.get(name, {}),
                labels=LabelStatistics.from_metrics(found),
                labels_of_outputs=_labels_of_outputs(found),
                spreads=self.spreads.get(name, {}),
                difference_spreads=self.difference_spreads.get(name, {}),
                columns=self.columns.get(name, ""),
            )
            for name, found in self.candidate.items()
        }


def _labels_of_outputs(found: Mapping[str, float]) -> dict[str, LabelStatistics]:
    """Return the label statistics of each output, for a model with several outputs."""
    by_output: dict[str, dict[str, float]] = {}
    for key, value in found.items():
        if output := output_of(key):
            by_output.setdefault(output, {})[plain_name(key)] = value
    read = {output: LabelStatistics.from_metrics(metrics) for output, metrics in by_output.items()}
    return {output: labels for output, labels in read.items() if labels is not None}


def kinds_of_models(uri: str) -> dict[str, str]:
    """Return `CANDIDATE` or `BASELINE` for each model's name in the Evaluator's output in `uri`.

    A pipeline of one's own may name its models otherwise. With a single model, TFMA leaves its name empty.
    """
    with fileio.open(f"{uri}/eval_config.json") as file:
        config = json.loads(file.read()).get("evalConfig", {})
    named = {
        spec.get("name", ""): BASELINE if spec.get("isBaseline") else CANDIDATE
        for spec in config.get("modelSpecs", ())
    }
    return {CANDIDATE: CANDIDATE, BASELINE: BASELINE, **named, "": CANDIDATE}


def read_evaluation(uri: str) -> Evaluation:
    """Read the Evaluator's output in `uri`; metrics that are not a number (plots, matrices) are left out."""
    models = kinds_of_models(uri)
    by_model: dict[str, dict[str, dict[str, float]]] = {CANDIDATE: {}, BASELINE: {}}
    answers: dict[str, PlainCounts] = {}
    not_finite: dict[str, int] = {}
    outside: dict[str, int] = {}
    kinds: dict[str, str] = {}
    spreads: dict[bool, dict[str, dict[str, Spread]]] = {True: {}, False: {}}
    columns: dict[str, str] = {}
    for record in tfma.load_metrics(uri):
        name_of_slice = _slice_name(record.slice_key)
        columns[name_of_slice] = columns_name(each.column for each in record.slice_key.single_slice_keys)
        for entry in record.metric_keys_and_values:
            name = models[entry.key.model_name]
            metric = of_output(entry.key.output_name, entry.key.name)
            if plain_name(metric) == PREDICTION_COUNTS and name_of_slice == OVERALL:
                counts: PlainCounts = json.loads(entry.value.bytes_value)
                if name == CANDIDATE:
                    not_finite[output_of(metric)] = counts["not_finite"]
                    outside[output_of(metric)] = counts.get("outside", 0)
                    if "kind" in counts:
                        kinds[output_of(metric)] = counts["kind"]
                if metric == PREDICTION_COUNTS:
                    answers[name] = counts
            if name == CANDIDATE and (spread := _spread(entry.confidence_interval)):
                spreads[entry.key.is_diff].setdefault(name_of_slice, {})[metric] = spread
            if entry.key.is_diff or not entry.value.HasField("double_value"):
                continue
            # All models have the same labels; they stand with the first one.
            model = by_model[CANDIDATE if plain_name(metric).startswith(LABEL_PREFIX) else name]
            value = entry.value.double_value.value
            if not math.isnan(value):
                model.setdefault(name_of_slice, {})[metric] = value
    return Evaluation(
        by_model[CANDIDATE],
        by_model[BASELINE],
        answers,
        not_finite,
        outside,
        kinds,
        spreads=spreads[False],
        difference_spreads=spreads[True],
        columns=columns,
    )


def _spread(interval: metrics_for_slice_pb2.ConfidenceInterval) -> Spread | None:
    if not interval.HasField("standard_error"):
        return None
    return Spread(interval.standard_error.double_value.value, interval.degrees_of_freedom.value)


def _slice_name(key: metrics_for_slice_pb2.SliceKey) -> str:
    parts = []
    for single in key.single_slice_keys:
        value = getattr(single, single.WhichOneof("kind"))
        text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
        parts.append((single.column, text))
    return slice_name(parts)
