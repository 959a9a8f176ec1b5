"""Reads examples in large batches, with each model's predictions ("answers") and the columns to slice by."""

import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.components.errors import ComponentError
from slipway.components.evaluator.bootstrap import row_number
from slipway.components.evaluator.judged import Judged, check_shapes
from slipway.components.evaluator.request import ModelRequest, NotOursError, Request
from slipway.components.evaluator.slices import Column, column_of
from slipway.components.evaluator.tally import Tally
from slipway.components.example_batches import ExampleDecoder
from slipway.components.example_records import first_records, in_pieces, records
from slipway.components.framework_errors import sentence
from slipway.components.saved_model.refused_examples import in_words
from slipway.components.saved_model.signatures import SERVING_DEFAULT, TRANSFORM_FEATURES

BATCH_ROWS = 4096
"""Rows per batch, whose answers are held in memory at once; more than a few thousand bring no speedup."""

BATCH_BYTES = 4 << 20
"""Bytes of stored examples per batch: what a model computes from large rows, such as images, is many times as
large."""

_READ_BYTES = 8 << 20
_FIRST_ROWS = 32


class LoadedModels:
    """The models of a request, loaded in this process.

    Args:
        models: folders of the SavedModels, by model name.
        schema: serialized schema of the raw examples, whose columns can be sliced by. None: every column can.

    Attributes:
        most_rows: most rows of a batch; lowered when memory runs out.
        ran_out: whether memory has run out over a batch.

    Raises:
        ComponentError: a model cannot be loaded.
        NotOursError: the signatures of a model do not take serialized examples and give one number tensor for
            each label; or there is no schema, and a column to slice by has the name of a transformed one.
    """

    def __init__(self, request: Request, models: Mapping[str, str], schema: bytes | None) -> None:
        self._request = request
        by_name = itertools.groupby(request.models, lambda each: each.name)
        described = _columns_of(schema)
        # A raw column comes before a transformed one of its name, which holds codes or scaled numbers.
        others = [name for name in request.columns if name not in described]
        self._models = [_Model(list(heads), models[name], others) for name, heads in by_name]
        self._weigher = next(place for place, each in enumerate(request.models) if not each.is_baseline)
        transformed = {name for model in self._models for name in model.columns}
        if schema is None and transformed:
            names = ", ".join(sorted(transformed))
            raise NotOursError(f"without a schema, {names} may be raw columns or only the model's")
        raw = [name for name in request.columns if name not in transformed]
        if request.group and request.group not in raw:
            raw.append(request.group)  # never the transformed column: a vocabulary may merge groups
        self._transformed = sorted(transformed)
        self._decoder = _decoder(raw, schema)
        self._raw = raw
        self.most_rows = BATCH_ROWS
        self.ran_out = False

    def tally(self, file: str, place: int, tally: Tally) -> Iterator[int]:
        """Count the rows of a file; yield the number of rows after each batch.

        Args:
            place: its index among all files, which the weights of its rows depend on.
            tally: receives the counts.

        Raises:
            ComponentError: the file is damaged, a model refuses rows, or its results cannot be measured.
            NotOursError: answers or labels have a form that is not supported here.
        """
        rows = 0
        for batch, judged in itertools.chain.from_iterable(map(self._judged, _batches(file))):
            for asked, (labels_and_answers, _) in zip(self._request.models, judged, strict=True):
                check_shapes(self._request, labels_and_answers, asked)
            columns = self._columns(batch, [found for _, found in judged])
            tally.add(columns, [each for each, _ in judged], first=row_number(place, rows))
            if self.ran_out:
                tally.cut_to = self.most_rows
            rows += len(batch)
            yield len(batch)

    def _judged(
        self, batch: list[bytes]
    ) -> Iterator[tuple[list[bytes], list[tuple[Judged, dict[str, np.ndarray]]]]]:
        """Yield a batch with the predictions of each model; in parts if memory runs out over the whole."""
        rows = len(batch)
        if rows <= self.most_rows:
            try:
                examples = tf.constant(batch, tf.string)
                judged = [head for model in self._models for head in model.judge(examples)]
                if self._request.weight:
                    weights = judged[self._weigher][0].weights
                    judged = [(replace(each, weights=weights), columns) for each, columns in judged]
            except (MemoryError, tf.errors.ResourceExhaustedError) as error:
                if rows == 1:
                    raise ComponentError(
                        "this machine ran out of memory while a model answered one row of the eval split",
                        hint="free memory, run fewer nodes at once (--jobs 1), or make the model smaller",
                    ) from error
                self.most_rows, self.ran_out = rows // 2, True
                logging.warning("memory ran out over %d rows; from here at most %d", rows, self.most_rows)
            else:
                yield batch, judged
                return
        # A copy: a part that is still too large lowers `most_rows` again, for the batches after this one.
        step = self.most_rows
        for first in range(0, rows, step):
            yield from self._judged(batch[first : first + step])

    def _columns(
        self, batch: list[bytes], transformed: Sequence[Mapping[str, np.ndarray]]
    ) -> dict[str, Column]:
        columns = {
            name: _of_tensors(name, [found[name] for found in transformed if name in found])
            for name in self._transformed
        }
        if self._decoder is not None:
            decoded = self._decoder.decode(batch)
            for name in self._raw:
                place = decoded.schema.get_field_index(name)
                if place >= 0 and not pa.types.is_null(decoded.column(place).type):
                    columns[name] = _of_arrow(name, decoded.column(place))
        return columns


class _Model:
    """One SavedModel; it computes predictions and labels in one call, so that rows are parsed once."""

    def __init__(self, heads: Sequence[ModelRequest], folder: str, columns: Sequence[str]) -> None:
        request = heads[0]
        labels = {head.output: head.label for head in heads}
        if tf.io.gfile.exists(f"{folder}/keras_metadata.pb"):
            raise NotOursError("a model is one of Keras, which has metrics of its own")
        self._name = request.name or "candidate"
        # The engine adds a hint to errors about a baseline: the command that clears it.
        self._is_baseline = request.is_baseline
        try:
            self._model = tf.saved_model.load(folder)  # keeps its functions alive
        except Exception as error:  # TensorFlow lets any exception of its parts through
            raise ComponentError(
                f"the {self._name} model, {folder}, cannot be loaded: "
                f"{type(error).__name__}: {sentence(str(error))}",
                hint="" if self._is_baseline else "run the training again",
            ) from error
        serve, answers = _signature(self._model, SERVING_DEFAULT)
        transform, transformed = _signature(self._model, TRANSFORM_FEATURES)
        if "" in labels and len(answers) == 1:
            labels = {next(iter(answers)): request.label}
        if set(labels) != set(answers):
            if self._is_baseline and max(len(labels), len(answers)) > 1:
                asked = ", ".join(filter(None, labels)) or "one"
                raise ComponentError(
                    f"the last blessed model gives the outputs {', '.join(sorted(answers))}, and "
                    f"transform.label names {asked}: the two cannot be compared"
                )
            raise NotOursError(f"the model gives {len(answers)} outputs")
        for label in labels.values():
            if label in transformed:
                continue
            if self._is_baseline:
                raise ComponentError(
                    f"the last blessed model has no label {label}: the two cannot be compared"
                )
            raise NotOursError(f"{TRANSFORM_FEATURES} returns no {label}")
        self._labels = labels
        # Both models are measured with the candidate's weights: the baseline may have none.
        self._weight = "" if request.is_baseline else request.weight
        if self._weight and self._weight not in transformed:
            raise NotOursError(f"{TRANSFORM_FEATURES} gives no {self._weight}")
        self.columns = [name for name in columns if name in transformed]
        for name, spec in (*transformed.items(), *answers.items()):
            if name in {*labels, *labels.values(), *self.columns} and not isinstance(spec, tf.TensorSpec):
                raise NotOursError(f"{name} is not a dense tensor")
        for output, label in labels.items():
            if not _is_number(answers[output].dtype):
                raise NotOursError(f"the model answers {answers[output].dtype.name}")
            if not _is_number(transformed[label].dtype):
                raise NotOursError(f"{label} is {transformed[label].dtype.name}")
        wanted = {*labels.values(), *self.columns} | ({self._weight} if self._weight else set())

        # There are no branches to convert, and AutoGraph would take half of the loading time.
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def judge(examples: Any) -> Any:
            found = transform(examples)
            answered = serve(examples)
            return {name: answered[name] for name in labels}, {name: found[name] for name in sorted(wanted)}

        self._judge = judge.get_concrete_function()

    def judge(self, batch: Any) -> list[tuple[Judged, dict[str, np.ndarray]]]:
        """Return the labels and predictions of a batch for each output, with the columns to slice by."""
        try:
            answers, found = self._judge(batch)
        except tf.errors.ResourceExhaustedError:
            raise  # not an error of the rows
        except (tf.errors.OpError, ValueError, TypeError) as error:
            raise ComponentError(
                f"the {self._name} model refuses rows of the eval split: {in_words(sentence(str(error)))}",
                hint=""
                if self._is_baseline
                else "check transform.preprocessing_fn, which reads these columns",
            ) from error
        rows = int(batch.shape[0])
        arrays = {name: tensor.numpy() for name, tensor in found.items()}
        weights = self._weights(arrays[self._weight], rows) if self._weight else None
        return [
            (Judged(_flat(arrays[label], rows), _flat(answers[output].numpy(), rows), weights), arrays)
            for output, label in self._labels.items()
        ]

    def _weights(self, values: Any, rows: int) -> Any:
        """Return the weight of each row, float64 [rows]."""
        flat = _flat(values, rows)
        if flat.shape[1] != 1 or not _is_number(tf.as_dtype(flat.dtype)):
            raise NotOursError(f"{self._weight} is not one number per row")
        weights = flat[:, 0].astype(np.float64)
        is_wrong = ~(np.isfinite(weights) & (weights >= 0))
        if is_wrong.any():
            raise ComponentError(
                f"the weight {self._weight} of a row of the eval split is {weights[is_wrong][0]:g}; weights "
                "must be finite and >= 0",
                hint="check transform.weight, and what preprocessing_fn returns for it",
            )
        return weights


def _is_number(dtype: Any) -> bool:
    """Return True if TensorFlow Model Analysis computes with this type as we do; half-precision floats it
    rounds at other places."""
    return bool(dtype.is_integer or dtype in (tf.float32, tf.float64))


def _signature(model: Any, name: str) -> tuple[Any, dict[str, tf.TypeSpec]]:
    """Return a signature as a function of examples, and its outputs."""
    if name not in model.signatures:
        raise NotOursError(f"a model has no signature {name}")
    function = model.signatures[name]
    inputs = function.structured_input_signature[1]
    if len(inputs) != 1 or next(iter(inputs.values())).dtype != tf.string:
        raise NotOursError(f"the signature {name} takes no serialized examples")
    [argument] = inputs
    return lambda examples: function(**{argument: examples}), dict(function.structured_outputs)


def _batches(file: str) -> Iterator[list[bytes]]:
    if file.endswith((".gz", ".zst")):
        yield from in_pieces(records(file), _rows_at_once(first_records(file, _FIRST_ROWS)))
        return
    try:
        rows = _rows_at_once(list(tf.data.TFRecordDataset(file).take(_FIRST_ROWS).as_numpy_iterator()))
        for batch in tf.data.TFRecordDataset(file, "", _READ_BYTES).batch(rows).as_numpy_iterator():
            yield batch.tolist()
    except tf.errors.OpError as error:
        raise ComponentError(
            f"{file} cannot be read: {sentence(str(error))}", hint="run Ingest again"
        ) from error


def _rows_at_once(first: Sequence[bytes]) -> int:
    """Return the rows per batch, by the mean size of the first rows: always the same for the same file."""
    sizes = [len(row) for row in first]
    return max(1, min(BATCH_ROWS, BATCH_BYTES * len(sizes) // max(sum(sizes), 1)))


def _columns_of(schema: bytes | None) -> set[str]:
    """Return the names of the raw columns that a schema describes."""
    return set() if schema is None else {each.name for each in schema_pb2.Schema.FromString(schema).feature}


def _decoder(columns: Sequence[str], schema: bytes | None) -> ExampleDecoder | None:
    """Return a decoder for these columns of examples; None if there is nothing to read."""
    if not columns:
        return None
    if schema is None:
        return ExampleDecoder()
    known = schema_pb2.Schema.FromString(schema)
    wanted = schema_pb2.Schema(feature=[each for each in known.feature if each.name in set(columns)])
    return ExampleDecoder(wanted) if wanted.feature else None


def _of_arrow(name: str, column: Any) -> Column:
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    encoded = column.flatten().dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return column_of(name, np.repeat(np.arange(len(lengths)), lengths), codes, encoded.dictionary.to_pylist())


def _of_tensors(name: str, tensors: Sequence[Any]) -> Column:
    """Return a column that one or more models transform: a row has the values from all of them."""
    if len({tensor.dtype for tensor in tensors}) > 1:
        raise NotOursError(f"the models transform {name} to different types")
    values = np.concatenate([_flat(tensor, len(tensor)) for tensor in tensors], axis=1)
    different, codes = np.unique(values, return_inverse=True)
    rows = np.repeat(np.arange(len(values)), values.shape[1])
    return column_of(name, rows, codes.ravel().astype(np.int64), different.tolist())


def _flat(values: Any, rows: int) -> Any:
    """Return the values as [rows, values per row]."""
    if values.ndim > 2 or values.shape[:1] != (rows,):
        raise NotOursError(f"a model gives a tensor of the shape {list(values.shape)} for {rows} rows")
    return values.reshape(rows, -1)
