"""Buckets of rows by the length of their lists: a short row is not computed at the longest one's length.

Transform pads each list to the same length. With `train.input.bucket_by_length`, the rows of a batch are of
similar length, and the batch is cut to the shortest of a few lengths that holds them all. Each length is a
shape of its own, for which XLA compiles the step once. This is what `tf.data`'s `bucket_by_sequence_length`
does to a stream; rows that are at hand need no buffer, and their batches all have the same size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from slipway.components.counted_words import counted
from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature

KEY = "train.input.bucket_by_length"
ONE_SHAPE_ON_TPU = f"{KEY}: TensorFlow's step on a TPU takes batches of one shape"
"""Why buckets are refused there, in a training and before it."""
MASK = (
    "leave padding out: mask_zero=True in Embedding before a recurrent layer, or multiply by codes > 0 "
    "before a sum or a mean, as workloads/reviews/model.py does"
)
"""The remedy for a model whose answers depend on the padding."""


@dataclass(frozen=True)
class Buckets:
    """The lengths to which the batches of a training are cut.

    Attributes:
        lengths: by column, its length in each bucket, ascending; the last is the length that Transform pads
            to. All columns have equally many.
    """

    lengths: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, wanted: Mapping[str, Sequence[int]], inputs: Mapping[str, Feature]) -> Self:
        """Return the buckets of `train.input.bucket_by_length`.

        Args:
            wanted: by column, the lengths of all buckets but the last.
            inputs: the features by name, without label and weight.

        Raises:
            ComponentError: a column is no feature of the model, or is not longer than its lengths.
        """
        for name, lengths in wanted.items():
            if name not in inputs:
                raise ComponentError(
                    f"{KEY} names {name}, which is not a feature; there are: {', '.join(sorted(inputs))}",
                    hint="name columns as preprocessing_fn returns them",
                )
            if (longest := inputs[name].shape[0]) <= lengths[-1]:
                raise ComponentError(
                    f"{KEY}: {name} has {longest} values a row, so a bucket of {lengths[-1]} saves nothing",
                    hint=f"name lengths below {longest}; longer rows are in the last bucket, of {longest}",
                )
        return cls({name: (*lengths, inputs[name].shape[0]) for name, lengths in wanted.items()})

    @property
    def count(self) -> int:
        """The number of buckets, and of programs that XLA compiles for the training step."""
        return len(next(iter(self.lengths.values()))) if self.lengths else 1

    @property
    def longest(self) -> int:
        """The greatest length of any column; 1 without buckets."""
        return max((lengths[-1] for lengths in self.lengths.values()), default=1)

    def any_length(self, inputs: Mapping[str, Feature]) -> dict[str, Feature]:
        """Return the features as the model that is trained gets them: with None as a bucketed length."""
        unknown: Any = None
        return {
            name: replace(each, shape=(unknown, *each.shape[1:])) if name in self.lengths else each
            for name, each in inputs.items()
        }

    def features(self, inputs: Mapping[str, Feature], bucket: int) -> dict[str, Feature]:
        """Return the features with the shapes of one bucket."""
        return {
            name: replace(each, shape=(self.lengths[name][bucket], *each.shape[1:]))
            if name in self.lengths
            else each
            for name, each in inputs.items()
        }

    def named(self, bucket: int) -> str:
        """Return the lengths of one bucket as text, such as "words of 16"."""
        return ", ".join(f"{name} of {lengths[bucket]}" for name, lengths in self.lengths.items())

    def words(self, rows: Sequence[int]) -> str:
        """Return how many rows each bucket has, as text."""
        return "; ".join(
            f"{name} of "
            + ", ".join(f"{length}: {counted(rows[at], 'row')}" for at, length in enumerate(lengths))
            for name, lengths in self.lengths.items()
        )
