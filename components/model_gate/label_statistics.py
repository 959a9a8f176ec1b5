"""A metric for TFX's own Evaluator that looks at the labels alone: what a constant answer would score.

Ours counts the same in `components/evaluator/tally.py`.

It is computed where the other metrics are, so it has their slices and scales as they do.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.metrics.metric_types import StandardMetricInputsPreprocessor

from slipway.components.model_gate.trivial import (
    DISTINCT_LABELS,
    LABEL_PREFIX,
    LabelStatistics,
    rounded_label,
)


class LabelStatisticsMetric(tfma.metrics.Metric):
    """The fields of `LabelStatistics`, each as a metric `label_<field>`.

    Args:
        name: TensorFlow Model Analysis gives each metric one; the names of the results do not depend on it.
    """

    def __init__(self, name: str = "label_statistics") -> None:
        super().__init__(_computations, name=name)


def _computations(
    name: str = "",  # noqa: ARG001 (TensorFlow Model Analysis passes it)
    model_names: Iterable[str] | None = None,
    output_names: Iterable[str] | None = None,
    **_: Any,
) -> list[Any]:
    # The labels are the same for every model.
    model_name = next(iter(model_names or ()), "")
    output_name = next(iter(output_names or ()), "")
    keys = [
        tfma.metrics.MetricKey(name=LABEL_PREFIX + field.name, model_name=model_name, output_name=output_name)
        for field in dataclasses.fields(LabelStatistics)
    ]
    return [
        tfma.metrics.MetricComputation(
            keys=keys,
            preprocessors=[
                StandardMetricInputsPreprocessor(include_filter={"labels": {}}, include_default_inputs=False)
            ],
            combiner=_LabelCounts(model_name, output_name, keys),
        )
    ]


@dataclasses.dataclass
class _Counts:
    """How often each label was seen, exactly while there are few."""

    by_label: Counter[float] = dataclasses.field(default_factory=Counter)
    is_rounded: bool = False

    def add(self, labels: Iterable[float]) -> None:
        self.by_label.update(map(rounded_label, labels) if self.is_rounded else labels)
        self._bound()

    def merge(self, other: "_Counts") -> None:
        if self.is_rounded or other.is_rounded:
            self._round()
            other._round()
        self.by_label.update(other.by_label)
        self._bound()

    def _bound(self) -> None:
        if len(self.by_label) > DISTINCT_LABELS:
            self._round()

    def _round(self) -> None:
        if self.is_rounded:
            return
        exact, self.by_label, self.is_rounded = self.by_label, Counter(), True
        for label, count in exact.items():
            self.by_label[rounded_label(label)] += count


class _LabelCounts(beam.CombineFn):
    """Counts the labels of a slice and makes its statistics of them."""

    def __init__(self, model_name: str, output_name: str, keys: list[Any]) -> None:
        self._model_name = model_name
        self._output_name = output_name
        self._keys = keys

    def create_accumulator(self) -> _Counts:
        return _Counts()

    def add_input(self, counts: _Counts, element: Any) -> _Counts:
        labels = element.labels
        for name in (self._model_name, self._output_name):
            if isinstance(labels, dict):
                labels = labels.get(name, labels)
        counts.add(_classes_or_numbers(np.asarray(labels)))
        return counts

    def merge_accumulators(self, accumulators: Iterable[_Counts]) -> _Counts:
        merged = _Counts()
        for counts in accumulators:
            merged.merge(counts)
        return merged

    def extract_output(self, counts: _Counts) -> dict[Any, float]:
        if not counts.by_label:
            return {}
        values = dataclasses.astuple(LabelStatistics.of_counts(counts.by_label))
        return dict(zip(self._keys, values, strict=True))


def _classes_or_numbers(labels: np.ndarray) -> list[float]:
    """The labels of one example: a one-hot vector counts as its class."""
    values = labels.astype(np.float64).ravel()
    if values.size > 1 and np.count_nonzero(values) == 1 and values.max() == 1:
        return [float(values.argmax())]
    found: list[float] = values[~np.isnan(values)].tolist()
    return found
