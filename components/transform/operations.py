"""TFT's analyzers without Beam: the operations of TFT's analysis graph, over lists instead of PCollections.

The combiners, and so their results, are TFT's own. TFT registers a Beam transform for each operation
(`tensorflow_transform.beam.analyzer_impls`), which a function or an accumulator replaces here.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
from tensorflow_transform import analyzer_nodes, analyzers, tf_utils
from tensorflow_transform.beam import analyzer_impls, beam_nodes
from tensorflow_transform.beam import impl as beam_impl

from slipway.components.errors import ComponentError

_Ordering = analyzers._VocabOrderingType
Values = list[Any]


class UnknownOperationError(Exception):
    """An operation is not implemented here, such as a user's Beam transform."""


class Accumulator(Protocol):
    """The state accumulated over the batches of a pass."""

    def add(self, batch: Any) -> None:
        """Add an analyzer's arrays for one batch: a tuple, or a mapping by name for packed analyzers."""

    def result(self) -> Values:
        """Return the state of the accumulator, as a list of values."""


class _Combined:
    """Runs one of TFT's combiners over all batches."""

    def __init__(self, combiner: Any) -> None:
        self._combiner = combiner
        self._state = combiner.create_accumulator()

    def add(self, batch: Any) -> None:
        self._state = self._combiner.add_input(self._state, batch)

    def result(self) -> Values:
        return [self._combiner.compact(self._state)]


class _Packed:
    """Runs several of TFT's combiners, each over some of the tensors."""

    def __init__(self, parts: Sequence[tuple[str, Sequence[Any], Any]]) -> None:
        self._each = [(label, keys, _Combined(combiner)) for label, keys, combiner in parts]

    def add(self, batch: Any) -> None:
        for _, keys, combined in self._each:
            combined.add(tuple(batch[key] for key in keys))

    def result(self) -> Values:
        return [{label: combined.result()[0] for label, _, combined in self._each}]


class _CombinedPerKey:
    """Runs one of TFT's combiners for each key."""

    def __init__(self, combiner: Any) -> None:
        self._combiner = combiner
        self._states: dict[Any, Any] = {}

    def add(self, batch: Any) -> None:
        for key, row in analyzer_impls._split_inputs_by_key(batch):
            if key not in self._states:
                self._states[key] = self._combiner.create_accumulator()
            self._states[key] = self._combiner.add_input(self._states[key], row)

    def result(self) -> Values:
        return [(key, self._combiner.compact(state)) for key, state in self._states.items()]


class _Counted:
    """Counts each token."""

    def __init__(self) -> None:
        self._counts: Counter[Any] = Counter()

    def add(self, batch: Any) -> None:
        (tokens,) = batch
        self._counts.update(tokens.tolist())

    def result(self) -> Values:
        return list(self._counts.items())


class _Weighed:
    """Sums each token's weights."""

    def __init__(self) -> None:
        self._sums: dict[Any, float] = {}

    def add(self, batch: Any) -> None:
        tokens, weights = batch
        for token, weight in zip(tokens.tolist(), weights.tolist(), strict=True):
            self._sums[token] = self._sums.get(token, 0) + weight

    def result(self) -> Values:
        return list(self._sums.items())


def accumulator(operation: Any) -> Callable[[], Accumulator]:
    """Return a factory of accumulators for an operation; Beam's pickler can pickle it.

    Raises:
        UnknownOperationError: the operation is not implemented here.
    """
    if isinstance(operation, analyzer_nodes.CacheableCombineAccumulate):
        return partial(_Combined, operation.combiner)
    if isinstance(operation, analyzer_nodes.PackedCombineAccumulate):
        return partial(_Packed, [(one.label, one.keys, one.combiner) for one in operation.combiners])
    if isinstance(operation, analyzer_nodes.CacheableCombinePerKeyAccumulate):
        return partial(_CombinedPerKey, operation.combiner)
    if isinstance(operation, analyzer_nodes.VocabularyAccumulate):
        if operation.vocab_ordering_type == _Ordering.FREQUENCY:
            return _Counted
        if operation.vocab_ordering_type == _Ordering.WEIGHTED_FREQUENCY:
            return _Weighed
    raise UnknownOperationError(f"{type(operation).__name__} of {operation.label}")


def merge_states(operation: Any, parts: Sequence[Values]) -> Values:
    """Merge the states of one operation's accumulators over different rows."""
    values = [value for part in parts for value in part]
    if not isinstance(operation, analyzer_nodes.VocabularyAccumulate):
        return values
    sums: dict[Any, Any] = {}
    for token, count in values:
        sums[token] = sums[token] + count if token in sums else count
    return list(sums.items())


def evaluator(operation: Any, *, folder: str, graph: Any) -> Callable[[list[Values]], Sequence[Values]]:
    """Return a function that evaluates an operation: from a list of values per input to one per output.

    Args:
        operation: an operation of TFT's analysis graph that does not take batches.
        folder: the folder for files that the operation writes.
        graph: the graph of the traced preprocessing_fn.

    Raises:
        UnknownOperationError: the operation is not implemented here.
    """
    if isinstance(operation, analyzer_nodes.VocabularyOrderAndWrite):
        return lambda inputs: [[_write_vocabulary(operation, inputs, folder)]]
    if isinstance(operation, analyzer_nodes.ExtractVocabularyReservedTokens):
        return lambda _: [[[tf_utils.fetch_vocabulary_reserved_tokens(graph, operation.name)]]]
    is_plain = not getattr(operation, "key_fn", None)
    evaluate = _EVALUATORS.get(type(operation)) if is_plain else None
    if evaluate is None or (
        isinstance(operation, analyzer_nodes.VocabularyMerge)
        and operation.vocab_ordering_type not in (_Ordering.FREQUENCY, _Ordering.WEIGHTED_FREQUENCY)
    ):
        raise UnknownOperationError(f"{type(operation).__name__} of {operation.label}")
    return lambda inputs: evaluate(operation, *inputs)


def _bind(operation: Any, values: Values) -> list[Values]:
    (value,) = values
    return [
        [
            beam_impl._TensorBinding(
                value, operation.tensor_name, operation.dtype_enum, operation.is_asset_filepath
            )
        ]
    ]


def _extract(operation: Any, values: Values) -> list[Values]:
    keys = operation.keys
    if isinstance(keys, tuple):
        return [[tuple(value[key] for key in keys) for value in values]]
    return [[value[keys] for value in values]]


def _merge_packed(operation: Any, values: Values) -> list[Values]:
    by_key: dict[str, Values] = {}
    for key, value in values:
        by_key.setdefault(key, []).append(value)
    return [
        [{each.label: _merged(each.combiner, by_key.get(each.keys[0], [])) for each in operation.combiners}]
    ]


def _merge_per_key(operation: Any, values: Values) -> list[Values]:
    by_key: dict[Any, Values] = {}
    for key, value in values:
        by_key.setdefault(key, []).append(value)
    return [[(key, _merged(operation.combiner, states)) for key, states in by_key.items()]]


def _merged(combiner: Any, states: Values) -> Any:
    return combiner.extract_output(combiner.merge_accumulators([combiner.create_accumulator(), *states]))


def _outputs(operation: Any, values: Values) -> list[Values]:
    (outputs,) = values
    return [[output] for output in _checked(operation, outputs)]


def _checked(operation: Any, outputs: Sequence[Any]) -> Sequence[Any]:
    if len(outputs) != operation.num_outputs:
        raise ValueError(f"{operation.label} has {operation.num_outputs} outputs and gave {len(outputs)}")
    return outputs


def _keys_and_outputs(operation: Any, values: Values) -> list[Values]:
    types = [info.dtype for info in operation.combiner.output_tensor_infos()]
    return [[tagged.value] for tagged in analyzer_impls._merge_outputs_by_key(values, types)]


def _as_lines(_: Any, values: Values) -> list[Values]:
    text = tf.compat.as_str_any
    return [[(text(",".join(map(text, value))), key) for key, value in values]]


def _scaled_boundaries(_: Any, values: Values) -> list[Values]:
    (boundaries,) = values
    return [[result] for result in analyzer_impls._join_boundary_rows(boundaries)]


def _merge_counts(_: Any, values: Values) -> list[Values]:
    # Each token occurs once by now, so nothing is left to merge; Beam's pairs have the count first.
    return [[(count, token) for token, count in values]]


def _count(_: Any, values: Values) -> list[Values]:
    # An empty vocabulary is written with one dummy token.
    return [[np.int64(max(len(values), 1))]]


def _prune(operation: Any, values: Values) -> list[Values]:
    for name in ("top_k", "frequency_threshold"):
        limit = getattr(operation, name)
        if limit is not None and limit < 0:
            raise ValueError(f"{name} for VocabularyImpl should be >= 0 or None, got {limit}.")
    if operation.frequency_threshold:
        values = [(count, token) for count, token in values if count >= operation.frequency_threshold]
    if operation.input_dtype != tf.string.name:
        values = [(count, tf.compat.as_bytes(tf.compat.as_str_any(token))) for count, token in values]
    if operation.top_k is not None:
        largest = heapq.nlargest(operation.top_k, values)
        values = analyzer_impls.maybe_add_empty_vocabulary_dummy(largest, operation.input_dtype)
    return [values]


def _write_vocabulary(operation: Any, inputs: Sequence[Values], folder: str) -> Any:
    """Write a vocabulary, one token per line, and return its path as TFT's graph takes it."""
    values, *more = inputs
    reserved = [token for (tokens,) in more for each in tokens for token in each] if more else None
    if operation.input_is_sorted and not more:
        ordered = values
    else:
        kept = [pair for pair in values if pair[1] not in set(reserved)] if reserved else values
        if operation.fingerprint_shuffle:
            ordered = sorted(kept, key=lambda pair: hashlib.sha1(pair[1], usedforsecurity=False).digest())
        else:
            ordered = sorted(kept, reverse=True)
        ordered = [*((-1, token) for token in reserved or ()), *ordered]
        ordered = analyzer_impls.maybe_add_empty_vocabulary_dummy(ordered, operation.input_dtype)
    if operation.store_frequency:
        lines = [analyzer_impls._count_and_token_to_bytes(count, token) for count, token in ordered]
    else:
        lines = [tf.compat.as_bytes(token) for _, token in ordered]
    path = f"{folder}/{operation.vocab_filename}"
    if operation.file_format == "tfrecord_gzip":
        path += ".tfrecord.gz"
    before = _content(path)
    if operation.file_format == "tfrecord_gzip":
        with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type="GZIP")) as writer:
            for line in lines:
                writer.write(line)
    else:
        with tf.io.gfile.GFile(path, "wb") as file:
            file.write(b"".join(line + b"\n" for line in lines))
    # TFX's own executor would use the vocabulary that was written last for both.
    if before not in (None, _content(path)):
        raise ComponentError(
            f"preprocessing_fn names two different vocabularies {operation.vocab_filename}",
            hint="give each its own vocab_filename",
        )
    return np.array(path)


def _content(path: str) -> bytes | None:
    if not tf.io.gfile.exists(path):
        return None
    with tf.io.gfile.GFile(path, "rb") as file:
        content: bytes = file.read()
    return content


_EVALUATORS: Mapping[type, Callable[..., Sequence[Values]]] = {
    beam_nodes.CreateTensorBinding: _bind,
    beam_nodes.ExtractFromDict: _extract,
    beam_nodes.Flatten: lambda _, *inputs: [[value for values in inputs for value in values]],
    analyzer_nodes.AddKey: lambda operation, values: [[(operation.key, value) for value in values]],
    analyzer_nodes.FlattenLists: lambda _, values: [[item for value in values for item in value]],
    analyzer_nodes.CacheableCombineMerge: lambda operation, values: [[_merged(operation.combiner, values)]],
    analyzer_nodes.PackedCombineMerge: _merge_packed,
    analyzer_nodes.CacheableCombinePerKeyMerge: _merge_per_key,
    analyzer_nodes.CacheableCombinePerKeyFormatKeys: _keys_and_outputs,
    analyzer_nodes.CacheableCombinePerKeyFormatLarge: _as_lines,
    analyzer_nodes.ScaleAndFlattenPerKeyBucketBouandaries: _scaled_boundaries,
    analyzer_nodes.ExtractCombineMergeOutputs: _outputs,
    analyzer_nodes.ExtractPackedCombineMergeOutputs: _outputs,
    analyzer_nodes.VocabularyMerge: _merge_counts,
    analyzer_nodes.VocabularyCount: _count,
    analyzer_nodes.VocabularyPrune: _prune,
}
