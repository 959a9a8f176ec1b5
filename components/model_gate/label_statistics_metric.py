"""A metric for TFX's own Evaluator that uses only the labels: the scores of constant answers derive from it.

Our own Evaluator counts the same in `components/evaluator/tally.py`.

TFX's Evaluator computes this metric with the others, so it has the same slices and the same scale.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.metrics.metric_types import StandardMetricInputsPreprocessor

from slipway.components.model_gate.prediction_counts_metric import of_output
from slipway.components.model_gate.trivial_scores import (
    ALWAYS,
    DISTINCT_LABELS,
    LABEL_PREFIX,
    NO_CLASS,
    LabelStatistics,
    labels_of_vectors,
    rounded_label,
)


class LabelStatisticsMetric(tfma.metrics.Metric):
    """The fields of `LabelStatistics`, each as a metric `label_<field>`.

    Args:
        name: required by TensorFlow Model Analysis; the names of the results do not depend on it.
    """

    def __init__(self, name: str = "label_statistics") -> None:
        super().__init__(_computations, name=name)


def _computations(
    name: str = "",  # noqa: ARG001 (TensorFlow Model Analysis passes it)
    model_names: Iterable[str] | None = None,
    output_names: Iterable[str] | None = None,
    example_weighted: bool = False,
    **_: Any,
) -> list[Any]:
    # All models have the same labels.
    model_name = next(iter(model_names or ()), "")
    output_name = next(iter(output_names or ()), "")
    keys = [
        tfma.metrics.MetricKey(
            name=LABEL_PREFIX + statistic,
            model_name=model_name,
            output_name=output_name,
            example_weighted=example_weighted,
        )
        for statistic in ALWAYS
    ]
    return [
        tfma.metrics.MetricComputation(
            keys=keys,
            preprocessors=[
                StandardMetricInputsPreprocessor(
                    include_filter={"labels": {}, "example_weights": {}}
                    if example_weighted
                    else {"labels": {}},
                    include_default_inputs=False,
                )
            ],
            combiner=_LabelCounts(model_name, output_name, keys, is_weighted=example_weighted),
        )
    ]


@dataclasses.dataclass
class _Counts:
    """By label, the sums of its rows' weights and squared weights; exact while there are few labels."""

    by_label: Counter[float] = dataclasses.field(default_factory=Counter)
    squares: Counter[float] = dataclasses.field(default_factory=Counter)
    counts: Counter[float] = dataclasses.field(default_factory=Counter)
    is_rounded: bool = False

    def add(self, labels: Iterable[float], weight: float) -> None:
        for label in labels:
            label = rounded_label(label) if self.is_rounded else label
            # A Counter's values may be of any type.
            self.by_label[label] += weight  # type: ignore[assignment]
            self.squares[label] += weight * weight  # type: ignore[assignment]
            self.counts[label] += 1
        self._bound()

    def merge(self, other: "_Counts") -> None:
        if self.is_rounded or other.is_rounded:
            self._round()
            other._round()
        self.by_label.update(other.by_label)
        self.squares.update(other.squares)
        self.counts.update(other.counts)
        self._bound()

    def _bound(self) -> None:
        if len(self.by_label) > DISTINCT_LABELS:
            self._round()

    def _round(self) -> None:
        if self.is_rounded:
            return
        self.is_rounded = True
        self.by_label, self.squares, self.counts = map(_rounded, self.parts)

    @property
    def parts(self) -> tuple[Counter[float], Counter[float], Counter[float]]:
        return self.by_label, self.squares, self.counts


@dataclasses.dataclass
class _Labels:
    """Counts of labels that are a number or a class, and of other vectors; see `labels_of_vectors`."""

    classes: _Counts = dataclasses.field(default_factory=_Counts)
    numbers: _Counts = dataclasses.field(default_factory=_Counts)
    width: int = 1

    def add(self, labels: np.ndarray, weight: float) -> None:
        values = labels.astype(np.float64).ravel()
        self.width = max(self.width, values.size)
        ones = np.flatnonzero(values == 1)
        if values.size > 1 and np.count_nonzero(values) == ones.size <= 1:
            self.classes.add([float(ones[0]) if ones.size else NO_CLASS], weight)
            return
        known = values[~np.isnan(values)].tolist()
        (self.numbers if values.size > 1 else self.classes).add(known, weight)

    def merge(self, other: "_Labels") -> None:
        self.classes.merge(other.classes)
        self.numbers.merge(other.numbers)
        self.width = max(self.width, other.width)

    def parts(self) -> Iterator[dict[float, float]]:
        """Yield three dicts by label: weights, squared weights, and number of rows."""
        are_classes = not self.numbers.counts
        for classes, numbers in zip(self.classes.parts, self.numbers.parts, strict=True):
            if self.width == 1:
                yield dict(classes)
            else:
                yield labels_of_vectors(classes, numbers, width=self.width, are_classes=are_classes)


def _rounded(exact: Counter[float]) -> Counter[float]:
    found: Counter[float] = Counter()
    for label, count in exact.items():
        found[rounded_label(label)] += count
    return found


class _LabelCounts(beam.CombineFn):
    """Counts the labels of a slice and computes their statistics."""

    def __init__(self, model_name: str, output_name: str, keys: list[Any], *, is_weighted: bool) -> None:
        self._is_weighted = is_weighted
        self._model_name = model_name
        self._output_name = output_name
        self._keys = keys

    def create_accumulator(self) -> _Labels:
        return _Labels()

    def add_input(self, counts: _Labels, element: Any) -> _Labels:
        weight = 1.0
        if self._is_weighted:
            weight = float(np.asarray(self._own(element.example_weights)).ravel()[0])
        counts.add(np.asarray(self._own(element.labels)), weight)
        return counts

    def _own(self, values: Any) -> Any:
        return of_output(values, self._model_name, self._output_name)

    def merge_accumulators(self, accumulators: Iterable[_Labels]) -> _Labels:
        merged = _Labels()
        for counts in accumulators:
            merged.merge(counts)
        return merged

    def extract_output(self, counts: _Labels) -> dict[Any, float]:
        weights, squares, rows = counts.parts()
        if not any(weights.values()):
            return {}
        found = LabelStatistics.of_counts(weights, squares=squares, count=sum(rows.values()))
        return {key: getattr(found, name) for key, name in zip(self._keys, ALWAYS, strict=True)}
