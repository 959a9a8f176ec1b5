"""The SavedModel: the user's transform and the trained model together, with three signatures.

    serving_default     examples: serialized tf.Examples, string [rows]  ->  outputs: float32 [rows, ...], or
                                                                             several outputs, each by its name
    serve_raw           one tensor for each raw column                   ->  the same
    transform_features  examples, including the label's columns          ->  the transformed columns, for TFMA

The first two take the columns of the schema's SERVING environment. In `serve_raw`, a column has the shape
[rows, 1]; [rows, *shape] if the schema gives it a shape; or [rows, any] if a row holds a list of any length.
NaN, "" or `EMPTY_INTEGER` marks an empty cell of an optional column, and pads, at their ends, lists that are
shorter than the longest. Each tensor has the name of its column, whatever characters the name contains.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_transform.saved.saved_transform_io_v2 import SavedModelLoader

from slipway.components.errors import ComponentError
from slipway.components.saved_model.input_names import rename_inputs, traced_names
from slipway.components.saved_model.signatures import SERVE_RAW
from slipway.components.trainer.features import Feature
from slipway.components.trainer.labels import Label, columns_of, is_multi_label
from slipway.components.trainer.lists import until_last
from slipway.components.trainer.pixels import model_input
from slipway.components.trainer.same_answers import ROWS, sample_answers

EMPTY_INTEGER = -(2**63)
"""Marks an empty cell in an integer column of `serve_raw`: the lowest int64."""
# TensorFlow's error about a variable that it does not reach from the model; it numbers the names.
_UNTRACKED = re.compile(r"'untracked' resource.*?name=\"(?P<name>.+?)(/\d+)?\"", re.DOTALL)


class ServedModel(tf.Module):  # type: ignore[misc]
    """The trained model with its transform in front, and the signatures to serve it.

    Args:
        model: the trained `keras.Model`, on the TensorFlow backend.
        transform: `tft.TFTransformOutput` of the Transform node.
        features: the model's inputs, by name.
        serving_columns: the names of the raw columns that a request carries.
        list_columns: the names of those that hold any number of values per row.
        label: see `labels`; "": a model with several outputs names them itself.

    Raises:
        ComponentError: the model draws random numbers while it answers, or a feature is made of a column
            that no request carries.
    """

    def __init__(
        self,
        *,
        model: Any,
        label: Label = "",
        transform: Any,
        features: Mapping[str, Feature],
        serving_columns: Collection[str],
        list_columns: Collection[str] = (),
    ) -> None:
        super().__init__()
        self.model = model
        self._label = label
        # TFT's Keras layer does the same, but would be traced again and again when it is saved.
        loader = SavedModelLoader(transform.transform_savedmodel_dir)
        self._apply_transform = loader.apply_transform_model
        self._transform_graph = loader._imported  # so that its vocabularies are saved
        self._features = dict(features)
        self._training_spec = transform.raw_feature_spec()
        self._serving_spec = {name: self._training_spec[name] for name in sorted(serving_columns)}
        self._lists = frozenset(list_columns)
        self._traced = traced_names(self._serving_spec)
        self._signatures = self._trace()
        used = _identities(self._signatures[SERVE_RAW].variables)
        # TensorFlow saves the state of a generator only if it is an attribute.
        self._random_states = [each for each in _states(model) if id(each) in used]
        _require_same_answers(model, self._random_states, features)

    def save(self, folder: str) -> None:
        """Write the SavedModel into `folder`, with the current weights of `model`.

        Raises:
            ComponentError: the model computes with a variable that belongs to none of its layers.
        """
        if _keeps_constants(self.model):
            self._signatures = self._trace()
        try:
            self._write(folder)
        except AssertionError as error:
            if not (lost := _UNTRACKED.search(str(error))):
                raise
            raise ComponentError(
                f"the model computes with {lost['name']}, which belongs to none of its layers: Keras neither "
                "trains nor saves it",
                hint="keep each layer as an attribute of the model or of a layer, or in a list or dict that "
                "is one; make weights with add_weight",
            ) from error
        names = {traced: column for column, traced in self._traced.items() if traced != column}
        rename_inputs(folder, SERVE_RAW, names)

    def _write(self, folder: str) -> None:
        try:
            tf.saved_model.save(self, folder, signatures=self._signatures)
        except KeyError:
            # Keras adds a signature of its own, in which a layer that was called with training=True draws
            # random numbers.
            self._random_states = _states(self.model)
            if not self._random_states:
                raise
            tf.saved_model.save(self, folder, signatures=self._signatures)

    def _trace(self) -> dict[str, tf.types.experimental.ConcreteFunction]:
        """Return the three signatures as graphs. Weights are variables, so they may still change.

        Only what the user's model may hold has branches to convert: AutoGraph would take most of the time.
        """
        examples = tf.TensorSpec([None], tf.string, name="examples")
        raw = {
            traced: tf.TensorSpec([None, *self._shape(column)], self._serving_spec[column].dtype, name=traced)
            for column, traced in self._traced.items()
        }
        of_each = {
            "serving_default": (self._serve_examples, examples),
            SERVE_RAW: (self._serve_raw, raw),
            "transform_features": (self._transform_examples, examples),
        }
        return {
            name: tf.function(function, autograph=False).get_concrete_function(specs)
            for name, (function, specs) in of_each.items()
        }

    def _serve_examples(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return self._predict(tf.io.parse_example(examples, self._serving_spec))

    def _serve_raw(self, columns: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return self._predict(
            {
                name: self._as_parsed(columns[self._traced[name]], name, spec)
                for name, spec in self._serving_spec.items()
            }
        )

    def _as_parsed(self, column: tf.Tensor, name: str, spec: Any) -> Any:
        """Return the cells in the form that the parser of tf.Examples returns."""
        if isinstance(spec, tf.io.FixedLenFeature):
            return tf.reshape(column, [-1, *spec.shape])
        present = _present(column)
        if isinstance(spec, tf.io.RaggedFeature):
            return tf.ragged.boolean_mask(column, until_last(present))
        if name in self._lists:
            return tf.ragged.boolean_mask(column, until_last(present)).to_sparse()
        indices = tf.where(present)
        return tf.SparseTensor(indices, tf.gather_nd(column, indices), tf.shape(column, tf.int64))

    def _shape(self, name: str) -> tuple[int | None, ...]:
        """Return the shape of a cell in `serve_raw`: the schema's, or one value if the schema gives none."""
        if name in self._lists:
            return (None,)
        return tuple(getattr(self._serving_spec[name], "shape", ())) or (1,)

    def _transform_examples(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return self._transform(tf.io.parse_example(examples, self._training_spec))

    def _predict(self, raw: dict[str, tf.Tensor | tf.SparseTensor]) -> dict[str, tf.Tensor]:
        transformed = self._transform(raw)
        if missing := [name for name in self._features if name not in transformed]:
            apart = ", ".join(sorted(self._training_spec.keys() - self._serving_spec.keys()))
            raise ComponentError(
                f"a request cannot give the model {', '.join(missing)}: preprocessing_fn makes it of a "
                f"column that no request carries, one of {apart}",
                hint="make the feature of other columns, or name it, too, in transform.pass_through, which "
                "takes it out of the model; no request carries the label, the columns named there, and those "
                "that are not_in_environment SERVING in the schema",
            )
        inputs = {name: model_input(transformed[name], feature) for name, feature in self._features.items()}
        answers = named_answers(tf.autograph.to_graph(_asked)(self.model, inputs), self._label)
        return {name: _readable(each) for name, each in answers.items()}

    def _transform(self, raw: dict[str, tf.Tensor | tf.SparseTensor]) -> dict[str, tf.Tensor]:
        """Return the transformed columns, at least [rows, 1]: tf.Transform may return scalars as [rows]."""
        return {
            name: column[:, tf.newaxis] if column.shape.rank == 1 else column
            for name, column in self._apply_transform(raw).items()
        }


def _require_same_answers(model: Any, states: Sequence[Any], features: Mapping[str, Feature]) -> None:
    """Reject a model with random answers, which no check of what is served could compare with others.

    Args:
        states: of generators that are asked for numbers while it answers.
    """
    drawn = _identities(states)
    if not drawn:
        return
    # Keras' recurrent layers draw the masks of their dropout in each call, and use them in training alone.
    # Weights of 0, as a last layer may begin with, would hide what is drawn.
    weights, random = model.get_weights(), np.random.default_rng(1)
    model.set_weights(
        [each if each.any() else random.uniform(0, 0.2, each.shape).astype(each.dtype) for each in weights]
    )
    answers = sample_answers(model, features, batch_size=ROWS)
    model.set_weights(weights)
    if answers:
        return
    layers = [each for each in model.layers if drawn & _identities(v.value for v in each.variables)]
    names = ", ".join(each.name for each in layers or [model])
    raise ComponentError(
        f"the model draws random numbers while it answers ({names}), so no two answers to a row would be the "
        "same",
        hint="let a layer of your own draw only if the argument training of its call is true",
    )


def _keeps_constants(model: Any) -> bool:
    """Return True if a layer computes with constants that it makes of its weights when these are loaded.

    A graph that was traced before holds the earlier ones. Keras' Normalization is such a layer.
    """
    layers = model._flatten_layers(include_self=False)
    return any(hasattr(each, "finalize_state") and each.weights for each in layers)


def _states(model: Any) -> list[Any]:
    """Return TensorFlow's variables of a model that are no weights: states of generators, and metrics."""
    weights = _identities(getattr(model, "weights", ()))
    return [each.value for each in getattr(model, "variables", ()) if id(each) not in weights]


def _identities(variables: Iterable[Any]) -> set[int]:
    return {id(each) for each in variables}


def _readable(answer: tf.Tensor) -> tf.Tensor:
    """Return an answer in a type that all readers know: a model's own policy may make it one of 16 bits."""
    return tf.cast(answer, tf.float32) if answer.dtype in (tf.bfloat16, tf.float16) else answer


def _asked(model: Any, inputs: Mapping[str, tf.Tensor]) -> Any:
    """Return a model's predictions; AutoGraph is on, as in training, for layers that branch in a map."""
    return model(inputs, training=False)


def named_answers(answers: Any, label: Label) -> dict[str, tf.Tensor]:
    """Name a model's predictions as the outputs of a signature. A single output is always called "outputs".

    Args:
        answers: for one batch; [rows, labels] for several labels side by side.

    Raises:
        TypeError: there are several answers without names, or not one for each of several labels.
    """
    if is_multi_label(label):
        return _of_each_label(tf.nest.flatten(answers), columns_of(label))
    found = list(answers.values()) if isinstance(answers, Mapping) else answers
    if isinstance(found, list | tuple) and len(found) == 1:
        return {"outputs": found[0]}
    if isinstance(found, list | tuple) and not isinstance(answers, Mapping):
        raise TypeError(
            f"the model returns {len(found)} tensors without names: return one, or a dict with the names "
            "in transform.label"
        )
    return dict(answers) if isinstance(answers, Mapping) else {"outputs": answers}


def _of_each_label(tensors: Sequence[Any], labels: Sequence[str]) -> dict[str, tf.Tensor]:
    shapes = [list(each.shape) for each in tensors]
    if len(shapes) != 1 or len(shapes[0]) != 2 or shapes[0][1] not in (None, len(labels)):
        raise TypeError(
            f"the model returns {', '.join(map(str, shapes))}, but transform.label names {len(labels)} "
            f"columns as one label: return one tensor [rows, {len(labels)}]"
        )
    [together] = tensors
    return {name: together[:, place : place + 1] for place, name in enumerate(labels)}


def require_tensorflow_backend() -> None:
    """Reject Keras backends other than TensorFlow, the only one that writes SavedModels.

    Raises:
        ComponentError: KERAS_BACKEND or the Keras configuration file names another backend.
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        raise ComponentError(
            f"the pipeline's Keras runs on {keras.backend.backend()!r}, but SavedModels come from tensorflow",
            hint="unset KERAS_BACKEND for the pipeline",
        )


def _present(column: tf.Tensor) -> tf.Tensor:
    """Return a mask of the cells that are not empty."""
    if column.dtype == tf.string:
        return column != ""
    return ~tf.math.is_nan(column) if column.dtype.is_floating else column != EMPTY_INTEGER
