"""Smaller forms of a trained model beside the SavedModel: LiteRT and int8, each measured on the eval split.

They contain only the part after the transform, because the graph of a transform does not convert. Their
inputs are the transformed features, by name.
"""

import json
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from slipway.components.errors import ComponentError
from slipway.components.finite_json import finite_numbers
from slipway.components.saved_model.input_names import traced_names
from slipway.components.saved_model.signatures import SERVING_DEFAULT
from slipway.components.trainer.features import Feature
from slipway.components.trainer.loop.callback import numbers_of
from slipway.components.trainer.settings.export import Export, ExportKind, Exports
from slipway.components.trainer.user_model import take_inputs_by_name

REPORT_FILE = "exports.json"
CALIBRATION_ROWS = 500
"""Training examples that calibrate the range of each activation. TensorFlow's guide recommends 100 to 500."""
EVAL_LIMIT_ROWS = 20_000
BATCH_ROWS = 256
# The converter's message about operations that LiteRT lacks.
_LACKING = re.compile(r"(?:TF Select|Custom) ops: (.+)")

Rows = Mapping[str, npt.NDArray[Any]]
Predict = Callable[[Rows], npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Trained:
    """The model to export, and the examples to measure it on.

    Attributes:
        model: compiled and trained, on the TensorFlow backend.
        calibration: training examples, by feature.
        examples: examples of the eval split, by feature; at most `EVAL_LIMIT_ROWS` are used.
        labels: the labels of `examples`, [rows, ...].
        weights: the weights of `examples`, [rows]; a row of weight 0 is not measured on. None: equal weights.
    """

    model: Any
    features: Mapping[str, Feature]
    calibration: Rows
    examples: Rows
    labels: npt.NDArray[Any]
    weights: npt.NDArray[Any] | None = None


MOST_TRIED_WEIGHTS = 5_000_000
"""20 MB. The try takes many times the weights: of 100 MB, 3 GB for `litert` and `keras_int8`."""


def require_convertible(model: Any, features: Mapping[str, Feature], kinds: Sequence[ExportKind]) -> None:
    """Reject a model that does not convert while it is untrained, before hours of training are lost on it.

    Of LiteRT's forms, float32 is tried: what int8 makes of a model depends on its trained weights. A model of
    more than `MOST_TRIED_WEIGHTS` is not tried, since it takes memory that the training may need.

    Args:
        model: compiled and built, with any weights, on the TensorFlow backend.
        features: its inputs, by name.
        kinds: keys of `KINDS`.

    Raises:
        ComponentError: the model cannot be converted.
    """
    if model.count_params() > MOST_TRIED_WEIGHTS:
        return
    none: Any = np.empty(0)
    untrained = Trained(model=model, features=features, calibration={}, examples={}, labels=none)
    forms: dict[ExportKind, None] = {
        "keras_int8" if each == "keras_int8" else "litert": None for each in kinds
    }
    for form in forms:
        KINDS[form](untrained)


def write_exports(trained: Trained, kinds: Sequence[ExportKind], folder: str) -> Exports:
    """Write each kind into the folder, with a report of sizes and metrics in `exports.json`.

    Args:
        kinds: keys of `KINDS`.
        folder: created on demand; may be gs://...

    Returns:
        The content of `exports.json`.

    Raises:
        ComponentError: the model cannot be converted.
    """
    rows = {name: values[:EVAL_LIMIT_ROWS] for name, values in trained.examples.items()}
    labels, weights = trained.labels[:EVAL_LIMIT_ROWS], None
    if trained.weights is not None:
        weights = trained.weights[:EVAL_LIMIT_ROWS]
        counts = weights != 0  # the others may have any label, which a loss may not take
        rows = {name: values[counts] for name, values in rows.items()}
        labels, weights = labels[counts], weights[counts]
    judge = _judge(trained.model, labels, weights)
    own = finite_numbers(judge(_keras_predict(trained.model)(rows)))
    report: Exports = {
        "rows": len(labels),
        "weights_bytes": sum(int(np.prod(w.shape)) * 4 for w in trained.model.weights),
        "metrics": own,
        "exports": [],
    }
    tf.io.gfile.makedirs(folder)
    for kind in kinds:
        name, content, predict = KINDS[kind](trained)
        with tf.io.gfile.GFile(f"{folder}/{name}", "wb") as file:
            file.write(content)
        metrics = finite_numbers(judge(predict(rows)))
        form: Export = {
            "kind": kind,
            "file": name,
            "size_bytes": len(content),
            "metrics": metrics,
            "change": {metric: metrics[metric] - own[metric] for metric in own if metric in metrics},
        }
        if lost := [metric for metric in own if metric not in metrics]:
            form["no_number"] = lost
        report["exports"].append(form)
    with tf.io.gfile.GFile(f"{folder}/{REPORT_FILE}", "w") as file:
        file.write(json.dumps(report, indent=2) + "\n")
    return report


def _judge(
    model: Any, labels: npt.NDArray[Any], weights: npt.NDArray[Any] | None
) -> Callable[[npt.NDArray[Any]], dict[str, float]]:
    """Return a function that computes the model's own loss and metrics from predictions of these rows."""
    [answer] = keras.tree.flatten(model.output)
    given = keras.Input(answer.shape[1:])
    # Named, and in a list or a mapping, as the model's is: a loss and metrics may be given by its name.
    name = next(iter(getattr(model, "output_names", ())), None)
    alike = keras.layers.Identity(dtype="float32", name=name)(given)
    same = keras.Model(given, keras.tree.pack_sequence_as(model.output, [alike]))
    # What it was compiled with, and no copies: Keras copies only what is registered with it.
    compiled = dict(model._compile_config.config)
    has_loss = compiled["loss"] is not None  # else its own train_step computes one
    if not has_loss:
        compiled["loss"] = lambda _, answers: keras.ops.zeros_like(answers[:, :1])
    same.compile(**{key: compiled[key] for key in ("loss", "loss_weights", "metrics", "weighted_metrics")})
    model.reset_metrics()  # of its training, if it was here

    def judge(predictions: npt.NDArray[Any]) -> dict[str, float]:
        found = same.evaluate(
            predictions, labels, sample_weight=weights, batch_size=BATCH_ROWS, verbose=0, return_dict=True
        )
        return {name: value for name, value in numbers_of(found).items() if has_loss or name != "loss"}

    return judge


def _batches(rows: Rows, size: int) -> Iterator[dict[str, npt.NDArray[Any]]]:
    total = len(next(iter(rows.values())))
    for first in range(0, total, size):
        yield {name: values[first : first + size] for name, values in rows.items()}


def _keras_predict(model: Any) -> Predict:
    def predict(rows: Rows) -> npt.NDArray[Any]:
        told = [keras.tree.flatten(model(batch, training=False)) for batch in _batches(rows, BATCH_ROWS)]
        return np.concatenate([keras.ops.convert_to_numpy(answer) for [answer] in told])

    return predict


def _litert(trained: Trained, name: str, *, calibrated: bool, quantized: bool) -> tuple[str, bytes, Predict]:
    if quantized:
        _require_finite(trained.model, name)
    # As in a SavedModel, not every feature's name is valid in Python and in a graph.
    traced = traced_names(list(trained.features))
    specs = {
        traced[key]: tf.TensorSpec([None, *feature.shape], feature.model_dtype, name=traced[key])
        for key, feature in trained.features.items()
    }

    def answer(inputs: Mapping[str, tf.Tensor]) -> Any:
        return trained.model({key: inputs[each] for key, each in traced.items()}, training=False)

    function = tf.function(answer).get_concrete_function(specs)
    # Freeze weights into constants: the calibration of int8 cannot read variables.
    try:
        frozen = convert_variables_to_constants_v2(function)
    except ValueError as error:  # a variable is set, as by a recurrent layer that draws its dropout
        raise _not_converted("it sets a variable while it answers") from error
    names = [tensor.name.partition(":")[0] for tensor in frozen.inputs]

    def serve(**inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"outputs": frozen(*(inputs[name] for name in names))[0]}

    module = tf.Module()
    module.frozen = frozen
    with tempfile.TemporaryDirectory(prefix="litert-") as saved, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about APIs that will move
        signature = tf.function(serve).get_concrete_function(**specs)
        # Gradients, such as swish has of its own, refer to what is frozen.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        tf.saved_model.save(module, saved, signatures={SERVING_DEFAULT: signature}, options=options)
        converter = tf.lite.TFLiteConverter.from_saved_model(saved, signature_keys=[SERVING_DEFAULT])
        if quantized:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if calibrated:
            some = {traced[key]: trained.calibration[key][:CALIBRATION_ROWS] for key in traced}
            converter.representative_dataset = lambda: ((SERVING_DEFAULT, row) for row in _batches(some, 1))
        try:
            content: bytes = converter.convert()
        except Exception as error:  # the converter raises whatever its compiler raises
            raise _not_converted(_why_not(str(error))) from error
    content = _with_names(content, {each: key for key, each in traced.items() if each != key})
    return name, content, _litert_predict(name, content)


def _not_converted(why: str) -> ComponentError:
    return ComponentError(
        f"the model does not convert to LiteRT: {why}",
        hint="leave LiteRT's forms out of train.exports, or replace the layer",
    )


def _with_names(content: bytes, names: Mapping[str, str]) -> bytes:
    """Return a LiteRT model whose signature has other names for its inputs.

    Args:
        names: from each input to its new name; a missing input keeps its name.
    """
    if not names:
        return content
    from tensorflow.lite.tools import flatbuffer_utils

    model = flatbuffer_utils.convert_bytearray_to_object(bytearray(content))
    for signature in model.signatureDefs:
        for each in signature.inputs:
            each.name = names.get(each.name.decode(), each.name.decode()).encode()
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def _require_finite(model: Any, name: str) -> None:
    """Refuse to quantize infinite weights, e.g. thresholds of trees: they crash the process in TensorFlow."""
    for weight in model.weights:
        if not np.isfinite(keras.ops.convert_to_numpy(weight)).all():
            raise ComponentError(
                f"train.exports: {name} cannot be written: {weight.path} holds infinity, and int8 has none",
                hint="litert leaves weights as they are; keras_int8 those of layers that it does not know",
            )


def _why_not(told: str) -> str:
    """Describe the operations that LiteRT lacks, from the converter's error; else return its first line."""
    lacking = dict.fromkeys(_LACKING.findall(told))
    return f"it has no {', '.join(lacking)}" if lacking else told.strip().splitlines()[0]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _litert_predict(name: str, content: bytes) -> Predict:
    def predict(rows: Rows) -> npt.NDArray[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the interpreter, which will move
            run = tf.lite.Interpreter(model_content=content).get_signature_runner(SERVING_DEFAULT)
        try:
            return np.concatenate([run(**batch)["outputs"] for batch in _batches(rows, BATCH_ROWS)])
        except RuntimeError as error:  # as of a division by what int8 takes for 0
            raise ComponentError(
                f"train.exports: {name} is written, and cannot answer: {_first_line(error)}",
                hint="leave its kind out of train.exports, or replace the operation",
            ) from error

    return predict


def _keras_int8(trained: Trained) -> tuple[str, bytes, Predict]:
    try:
        # Without what it was compiled with, of which Keras copies only what is registered with it.
        plain = keras.Model(trained.model.input, trained.model.output)
        model = keras.models.clone_model(plain)
    except Exception as error:  # a class of the user's may fail in any way
        raise ComponentError(
            f"train.exports: keras_int8 cannot be written: the model cannot be copied: {_first_line(error)}",
            hint="leave keras_int8 out of train.exports, or give the model class get_config and from_config",
        ) from error
    take_inputs_by_name(model)
    with tempfile.TemporaryDirectory(prefix="copied-") as folder:
        # Not `set_weights`, after which a Normalization computes with what it was built with.
        plain.save_weights(copied := Path(folder, "copied.weights.h5"))
        model.load_weights(copied)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about layers that are not quantized
        model.quantize("int8")
    name = "keras_int8.weights.h5"
    with tempfile.TemporaryDirectory(prefix="int8-") as folder:
        model.save_weights(Path(folder, name))
        return name, Path(folder, name).read_bytes(), _keras_predict(model)


KINDS: dict[ExportKind, Callable[[Trained], tuple[str, bytes, Predict]]] = {
    "litert": lambda trained: _litert(trained, "model.tflite", calibrated=False, quantized=False),
    "litert_dynamic": lambda trained: _litert(
        trained, "model_dynamic.tflite", calibrated=False, quantized=True
    ),
    "litert_int8": lambda trained: _litert(trained, "model_int8.tflite", calibrated=True, quantized=True),
    "keras_int8": _keras_int8,
}
"""Exporters by kind: LiteRT in float32, with int8 weights, or all in int8; Keras with int8 weights."""
