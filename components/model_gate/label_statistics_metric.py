"""A metric for TFX's own Evaluator that uses only the labels: the scores of constant answers derive from it.

Our own Evaluator counts the same in `components/evaluator/tally.py`.

TFX's Evaluator computes this metric with the others, so it has the same slices and the same scale.
"""

import dataclasses
import math
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
    constant_area,
    constant_precision,
    digits_of_labels,
    labels_of_vectors,
    rounded_label,
)

# Not those of each entry of a vector, which would take a counter for each: its errors are compared with none.
_STATISTICS = (*ALWAYS, "constant_auc", "constant_precision", "entries")


class LabelStatisticsMetric(tfma.metrics.Metric):
    """The fields of `LabelStatistics`, each as a metric `label_<field>`; of the optional ones the constants'.

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
        for statistic in _STATISTICS
    ]
    return [
        tfma.metrics.MetricComputation(
            keys=keys,
            preprocessors=[
                StandardMetricInputsPreprocessor(
                    include_filter={"labels": {}, "predictions": {}}
                    | ({"example_weights": {}} if example_weighted else {}),
                    include_default_inputs=False,
                )
            ],
            combiner=_LabelCounts(model_name, output_name, keys, is_weighted=example_weighted),
        )
    ]


@dataclasses.dataclass
class _Counts:
    """By label, the sums of its rows' weights and squared weights; exact while there are few labels.

    Attributes:
        digits: the number of digits that labels are rounded to; None: they are exact.
        most: number of labels above which it is looked whether fewer digits are enough.
    """

    by_label: Counter[float] = dataclasses.field(default_factory=Counter)
    squares: Counter[float] = dataclasses.field(default_factory=Counter)
    counts: Counter[float] = dataclasses.field(default_factory=Counter)
    digits: int | None = None
    most: int = DISTINCT_LABELS

    def add(self, labels: Iterable[float], weight: float) -> None:
        for label in labels:
            label = label if self.digits is None else rounded_label(label, self.digits)
            # A Counter's values may be of any type.
            self.by_label[label] += weight  # type: ignore[assignment]
            self.squares[label] += weight * weight  # type: ignore[assignment]
            self.counts[label] += 1
        if len(self.by_label) > self.most:
            self.compact()

    def merge(self, other: "_Counts") -> None:
        known = [each.digits for each in (self, other) if each.digits is not None]
        if known:
            self._round(min(known))
            other._round(min(known))
        self.by_label.update(other.by_label)
        self.squares.update(other.squares)
        self.counts.update(other.counts)
        self.compact()

    def compact(self) -> None:
        """Round a continuum to as few digits as its labels need."""
        if self.digits is not None or len(self.by_label) > DISTINCT_LABELS:
            self._round(digits_of_labels(self.by_label))
        self.most = max(DISTINCT_LABELS, 2 * len(self.by_label))

    def _round(self, digits: int) -> None:
        if self.digits is not None and self.digits <= digits:
            return
        self.digits = digits
        self.by_label, self.squares, self.counts = (_rounded(each, digits) for each in self.parts)

    @property
    def parts(self) -> tuple[Counter[float], Counter[float], Counter[float]]:
        return self.by_label, self.squares, self.counts


@dataclasses.dataclass
class _Labels:
    """Counts of labels that are a number or a class, and of other vectors; see `labels_of_vectors`.

    Attributes:
        width: how many numbers a label has.
        outputs: how many answers a row has.
        of_classes: by class, the weight of the rows that have it.
        weight: of all rows.
    """

    classes: _Counts = dataclasses.field(default_factory=_Counts)
    numbers: _Counts = dataclasses.field(default_factory=_Counts)
    width: int = 1
    outputs: int = 1
    of_classes: Counter[int] = dataclasses.field(default_factory=Counter)
    weight: float = 0.0

    def add(self, labels: np.ndarray, weight: float, *, outputs: int = 1) -> None:
        values = labels.astype(np.float64).ravel()
        self.outputs = max(self.outputs, outputs)
        self.weight += weight
        if outputs > 1:
            self._add_classes(values, weight, outputs)
        self.width = max(self.width, values.size)
        ones = np.flatnonzero(values == 1)
        if values.size > 1 and np.count_nonzero(values) == ones.size <= 1:
            self.classes.add([float(ones[0]) if ones.size else NO_CLASS], weight)
            return
        known = values[~np.isnan(values)].tolist()
        (self.numbers if values.size > 1 else self.classes).add(known, weight)

    def _add_classes(self, values: np.ndarray, weight: float, outputs: int) -> None:
        of_each = [(values.item(), 1.0)] if values.size == 1 else enumerate(values.tolist())
        for place, share in of_each:
            if 0 <= place < outputs and share > 0:
                self.of_classes[int(place)] += weight * share  # type: ignore[assignment]

    @property
    def of_constants(self) -> dict[str, float]:
        """`constant_auc` and `constant_precision` of `LabelStatistics`, without those that do not exist."""
        if self.outputs == 1:
            return {}
        positives = [self.of_classes[place] for place in range(self.outputs)]
        found = {
            "constant_auc": constant_area(positives, self.weight),
            "constant_precision": constant_precision(positives, self.weight),
        }
        return {name: value for name, value in found.items() if not math.isnan(value)}

    def merge(self, other: "_Labels") -> None:
        self.outputs = max(self.outputs, other.outputs)
        self.of_classes.update(other.of_classes)
        self.weight += other.weight
        self.classes.merge(other.classes)
        self.numbers.merge(other.numbers)
        self.width = max(self.width, other.width)

    def parts(self) -> Iterator[dict[float, float]]:
        """Yield three dicts by label: weights, squared weights, and number of rows."""
        self.classes.compact()
        self.numbers.compact()
        are_classes = not self.numbers.counts
        for classes, numbers in zip(self.classes.parts, self.numbers.parts, strict=True):
            if self.width == 1:
                yield dict(classes)
            else:
                yield labels_of_vectors(classes, numbers, width=self.width, are_classes=are_classes)


def _rounded(exact: Counter[float], digits: int) -> Counter[float]:
    found: Counter[float] = Counter()
    for label, count in exact.items():
        found[rounded_label(label, digits)] += count
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
        labels = np.asarray(self._own(element.labels))
        # The label of a row that weighs nothing may stand for none, and must not decide what the others are.
        answers = np.size(self._own(element.predictions))
        counts.add(labels if weight else np.zeros_like(labels), weight, outputs=answers)
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
        found = LabelStatistics.of_counts(
            weights, squares=squares, count=sum(rows.values()), has_answer_for_each=counts.outputs > 1
        )
        entries = {"entries": float(counts.width)} if counts.width > 1 else {}
        known = {**found.known(), **counts.of_constants, **entries}
        return {key: known[name] for key, name in zip(self._keys, _STATISTICS, strict=True) if name in known}
