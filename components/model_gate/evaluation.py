"""Reads the Evaluator's output back into plain numbers."""

import math
from dataclasses import dataclass

import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import metrics_for_slice_pb2

from components.model_gate.eval_config import BASELINE, CANDIDATE
from components.model_gate.rules import Measured
from components.model_gate.trivial import LABEL_PREFIX, LabelStatistics


@dataclass(frozen=True)
class Evaluation:
    """The metrics of one evaluation.

    Attributes:
        candidate: slice name (`overall`, `payment_type=Cash`) -> metric name -> value.
        baseline: the same for the latest blessed model; empty when there was none.
    """

    candidate: dict[str, dict[str, float]]
    baseline: dict[str, dict[str, float]]

    def slices(self) -> dict[str, Measured]:
        """The evaluation of each slice, the statistics of the labels apart from the metrics."""
        return {
            name: Measured(
                metrics={key: value for key, value in found.items() if not key.startswith(LABEL_PREFIX)},
                baseline=self.baseline.get(name, {}),
                labels=LabelStatistics.from_metrics(found),
            )
            for name, found in self.candidate.items()
        }


def read_evaluation(uri: str) -> Evaluation:
    """Reads what the Evaluator wrote to `uri`; metrics that are no number (plots, matrices) are left out."""
    by_model: dict[str, dict[str, dict[str, float]]] = {CANDIDATE: {}, BASELINE: {}}
    for record in tfma.load_metrics(uri):
        slice_name = _slice_name(record.slice_key)
        for entry in record.metric_keys_and_values:
            if entry.key.is_diff or not entry.value.HasField("double_value"):
                continue
            # With one model TFMA leaves the model's name empty.
            model = by_model[entry.key.model_name or CANDIDATE]
            value = entry.value.double_value.value
            if not math.isnan(value):
                model.setdefault(slice_name, {})[entry.key.name] = value
    return Evaluation(candidate=by_model[CANDIDATE], baseline=by_model[BASELINE])


def _slice_name(key: metrics_for_slice_pb2.SliceKey) -> str:
    parts = []
    for single in key.single_slice_keys:
        value = getattr(single, single.WhichOneof("kind"))
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        parts.append(f"{single.column}={text}")
    return ", ".join(parts) or "overall"
