"""Separates the label and the rows' weights from a batch."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import tensorflow as tf

from slipway.components.trainer.input.parsing import Columns, as_written
from slipway.components.trainer.job import BALANCED, TrainingJob
from slipway.components.trainer.labels import Label, columns_of

_MOST_SQUARED = 1e18
"""A number whose square, and the sum of many, float32 holds."""


@dataclass(frozen=True)
class Targets:
    """The columns of a batch that are not features.

    Attributes:
        label: the name of the label's column, or several, see `labels`.
        weight: the name of the column with each row's weight; None: equal weights.
        class_weights: by class of the label, a factor of the row's weight; 1 for classes that are not named.
    """

    label: Label
    weight: str | None = None
    class_weights: Mapping[int, float] | None = None

    @classmethod
    def for_training(cls, job: TrainingJob) -> Self:
        """Return the targets to train a model on; balanced weights must be counted, see `weights.weighed`."""
        weights: Any = job.class_weights or {}
        if weights == BALANCED:
            raise ValueError("balanced class weights have not been counted")
        by_class = {int(code): weight for code, weight in weights.items()}
        return cls(job.label, job.weight, by_class or None)

    @classmethod
    def for_evaluation(cls, job: TrainingJob) -> Self:
        """Return the targets to evaluate a model with: without class weights, as in Keras' own `fit`."""
        return cls(job.label, job.weight)

    def split(self, columns: Columns) -> tuple[Any, ...]:
        """Split a batch into the tuple that `keras.Model.fit` takes.

        Args:
            columns: [..., *shape] each, with any number of dimensions in front of a row's shape.

        Returns:
            Features by name; the label as float32 [..., *shape], or a mapping of labels by output name, or
            several columns side by side, [..., labels]; and, if rows have weights, these, float32 [...].
        """
        names = columns_of(self.label)
        labels = {name: tf.cast(columns[name], tf.float32) for name in names}
        features = {name: column for name, column in columns.items() if name not in names}
        label: Any
        if isinstance(self.label, str):
            label = labels[self.label]
        elif isinstance(self.label, Mapping):
            label = {output: labels[name] for output, name in self.label.items()}
        else:
            label = tf.concat([labels[name] for name in names], -1)
        weight = None
        if self.weight is not None:
            weight = tf.cast(tf.squeeze(features.pop(self.weight), -1), tf.float32)
        if self.class_weights:
            factors = self._factors(label)
            weight = factors if weight is None else weight * factors
        return (features, label) if weight is None else (features, label, weight)

    def _factors(self, label: tf.Tensor) -> tf.Tensor:
        """Return the factor of each row's class; a one-hot label is decoded to its class."""
        weights = self.class_weights or {}
        table = np.ones(max(weights) + 2, np.float32)  # the last entry stands for all classes beyond
        table[list(weights)] = list(weights.values())
        one_hot = label.shape[-1] > 1
        codes = tf.argmax(label, -1) if one_hot else tf.cast(tf.squeeze(label, -1), tf.int64)
        is_known = (codes >= 0) & (codes < len(table))
        return tf.gather(tf.constant(table), tf.where(is_known, codes, len(table) - 1))


def with_known_labels(
    batches: tf.data.Dataset, classes: Mapping[str, int], hinged: Collection[str] = ()
) -> tf.data.Dataset:
    """Return batches in which a row of weight 0, which may have any label, has one that every loss knows.

    The loss of NaN, of infinity or of a code that no class has is not a number, or an error: it weighs
    nothing, and yet spoils the sum. So does a number whose square float32 does not hold.

    Args:
        batches: of what `Targets.split` returns, with weights.
        classes: the number of classes of each output whose labels are codes, by its name; "" for the only
            one.
        hinged: the outputs with a loss for which labels are 0 and 1, or -1 and 1, by what a whole batch has:
            0 and 1 do not change that.
    """

    def known(label: tf.Tensor, weight: tf.Tensor, output: str) -> tf.Tensor:
        ones = [1] * (label.shape.rank - weight.shape.rank)
        weight = tf.reshape(weight, tf.concat([tf.shape(weight), tf.constant(ones, tf.int32)], 0))
        if output in hinged:
            return tf.where((weight == 0) & (label != 0), tf.ones_like(label), label)
        # Not `~(... <= ...)`, of which TensorFlow makes `>`, as if there were no NaN.
        is_wrong = tf.math.is_nan(label) | (tf.abs(label) > _MOST_SQUARED)
        if (count := classes.get(output)) is not None:
            is_wrong |= (label < 0) | (label >= count)
        return tf.where((weight == 0) & is_wrong, tf.zeros_like(label), label)

    @as_written
    def in_batch(features: Columns, label: Any, weight: tf.Tensor) -> tuple[Any, ...]:
        if isinstance(label, Mapping):
            changed = {name: known(each, weight, name) for name, each in label.items()}
            return features, changed, weight
        return features, known(label, weight, ""), weight

    return batches.map(in_batch, tf.data.AUTOTUNE, deterministic=True).prefetch(2)
