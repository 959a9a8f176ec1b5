"""Checks that labels suit the losses that a model is compiled with, where Keras would train on nonsense.

Losses such as the mean squared error broadcast: with three outputs and one label, each output is compared
with the same label. On JAX and on GPUs, the cross-entropy of a class that the model lacks is a number, too.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.trainer.labels import Label, columns_of, is_multi_label

_BROADCASTING = {
    "cosine_similarity", "hinge", "huber", "kl_divergence", "log_cosh", "mean_absolute_error",
    "mean_absolute_percentage_error", "mean_squared_error", "mean_squared_logarithmic_error", "poisson",
    "squared_hinge",
}  # fmt: skip
"""Keras' losses that compare number by number, and do not check that there are equally many."""
_OF_A_YES = {"binary_crossentropy", "binary_focal_crossentropy"}
_PROBABILITIES = {"sigmoid", "softmax"}
_OF_CODES = "sparse_categorical_crossentropy"
_OF_PROBABILITIES = {*_OF_A_YES, _OF_CODES, "categorical_crossentropy", "categorical_focal_crossentropy"}
_HINGES = {"hinge", "squared_hinge"}
"""Losses that take 0 for -1 in a batch in which every label is 0 or 1."""
_CHOSEN_BY_THE_DATA = {"crossentropy", "ce"}
"""Names for which Keras chooses one of three losses when it sees the first batch."""
_OVERRIDABLE = ("train_step", "compute_loss", "_compute_loss")


@dataclass(frozen=True)
class LabelRange:
    """What the label of a split holds.

    Attributes:
        least, greatest: of all numbers; NaN if one of them is.
        is_whole: whether all are whole numbers.
    """

    least: float = math.inf
    greatest: float = -math.inf
    is_whole: bool = True

    def with_values(self, values: npt.NDArray[Any], weights: npt.NDArray[Any] | None = None) -> "LabelRange":
        """Return the range with more values in it.

        Args:
            values: [rows, ...], at least one.
            weights: [rows, 1]; a row of weight 0 may have any label, so it is passed over. None: none is.
        """
        if weights is not None:
            values = values[weights.reshape(-1) != 0]
            if not values.size:
                return self
        is_whole = values.dtype.kind in "iu" or bool((values == np.floor(values)).all())
        return LabelRange(
            float(np.minimum(self.least, values.min())),
            float(np.maximum(self.greatest, values.max())),
            self.is_whole and is_whole,
        )


class HasLabels(Protocol):
    """The examples of a split."""

    def label_range(self, column: str) -> LabelRange:
        """Return what a label's column holds in the rows whose weight is not 0."""


@dataclass(frozen=True)
class _Compared:
    """An output and what its loss compares it with.

    Attributes:
        output: its name; "" for the only one.
        column: of the label.
        loss: the name of Keras' function; "" for another.
        shape: of the output; None if unknown.
        settings: of the loss.
        is_masked: whether the loss leaves some of the labels out, such as the padding of a sequence.
        activation: the name of Keras' function that the last layer ends in; "" if unknown.
    """

    output: str
    column: str
    loss: str
    shape: tuple[int | None, ...] | None
    settings: Mapping[str, object]
    is_masked: bool
    activation: str


def require_equal_shapes(
    model: Any, label: Label, shapes: Mapping[str, tuple[int, ...]], dotted_path: str
) -> None:
    """Reject a model with a loss that would broadcast its output against the label, or the other way round.

    The outputs of a subclassed model are unknown until it is called, so they are not checked.

    Args:
        model: compiled and built, with the outputs that `user_model.require_outputs` requires.
        label: see `labels`; of several columns side by side, `require_outputs` checks the shape.
        shapes: of one row, by column.
        dotted_path: of the user's function, for messages.

    Raises:
        ComponentError: the shapes differ.
    """
    for each in _compared(model, label):
        if each.loss not in _BROADCASTING or each.shape is None or is_multi_label(label):
            continue
        if not _are_alike(shapes[each.column], each.shape[1:]):
            raise ComponentError(
                f"the label {each.column} is {_rows(shapes[each.column])}, and the output of {dotted_path} "
                f"is {_rows(each.shape[1:])}: {each.loss} would compare each number of the one with each of "
                "the other",
                hint="let the last layer have as many units as the label has numbers per row, or compile "
                "with a loss for these shapes",
            )


def require_labels(
    model: Any, label: Label, splits: Mapping[str, HasLabels | None], dotted_path: str
) -> None:
    """Reject labels that the model's loss does not know.

    Args:
        model: compiled and built.
        label: see `labels`.
        splits: the examples by the name of their split.
        dotted_path: of the user's function, for messages.

    Raises:
        ComponentError: a label is not one of the classes 0, 1, 2, ... that the model returns; or, for a yes
            or no of the train split, not between 0 and 1; or, for a number, not finite.
    """
    for each in _compared(model, label):
        for split, examples in splits.items():
            if examples is None or each.is_masked:
                continue
            if each.loss in _BROADCASTING:
                _require_numbers(each, split, examples.label_range(each.column))
            elif each.loss in _OF_A_YES and split == "train":
                _require_share(each, split, examples.label_range(each.column))
            elif each.loss == _OF_CODES and each.shape and _is_plain(each.settings):
                _require_codes(each, split, examples.label_range(each.column), dotted_path)


def classes_of_codes(model: Any, label: Label) -> dict[str, int]:
    """Return how many classes each output has whose loss takes every label for the code of a class.

    A yes or no counts as two classes: Keras' area and recall would take a label of -1 for a yes.

    Args:
        model: compiled and built.
        label: see `labels`.

    Returns:
        By the name of the output; "" for the only one.
    """
    found: dict[str, int] = {}
    for each in _compared(model, label):
        if each.loss in _OF_A_YES:
            found[each.output] = 2
        elif (
            each.loss == _OF_CODES and each.shape and each.shape[-1] is not None and _is_plain(each.settings)
        ):
            found[each.output] = each.shape[-1]
    return found


def hinged_outputs(model: Any, label: Label) -> frozenset[str]:
    """Return the outputs of which one label changes what the loss makes of the others of its batch.

    Args:
        model: compiled and built.
        label: see `labels`.

    Returns:
        Their names; "" for the only one.
    """
    return frozenset(each.output for each in _compared(model, label) if each.loss in _HINGES)


def words_of_logits(model: Any, label: Label) -> Iterator[str]:
    """Yield what to tell of outputs whose loss takes logits, or takes probabilities and gets logits.

    Only for Keras' own layers with an activation is it known what the last layer makes of its input.

    Args:
        model: compiled and built.
        label: see `labels`.
    """
    compared = list(_compared(model, label))
    of_logits = [each for each in compared if each.settings.get("from_logits")]
    ended = [each for each in of_logits if each.activation in _PROBABILITIES]
    if found := [each for each in of_logits if each not in ended]:
        yield (
            f"the loss takes logits{_named(found)}: the gate refuses a model that answers them where a "
            "metric takes probabilities; a last layer with a sigmoid or a softmax, and a loss without "
            "from_logits=True, train the same"
        )
    if ended:
        yield (
            f"the loss takes logits (from_logits=True){_named(ended)}, and the last layer ends in a "
            f"{ended[0].activation}: on JAX and torch, Keras takes it once more. Leave out from_logits=True"
        )
    others = [each for each in compared if each.loss in _OF_PROBABILITIES and each not in of_logits]
    if found := [each for each in others if each.activation == "linear"]:
        yield (
            f"{found[0].loss} takes probabilities{_named(found)}, and the last layer has no activation: what "
            "it answers below 0 or above 1 is clipped, and nothing is learned of it. Let the layer end in a "
            f"{'sigmoid' if found[0].loss in _OF_A_YES else 'softmax'}"
        )


def words_of_masks(model: Any, label: Label) -> Iterator[str]:
    """Yield what to tell of outputs of which a mask, as of padding, hides a part from the loss.

    Args:
        model: compiled and built.
        label: see `labels`.
    """
    if found := [each for each in _compared(model, label) if each.is_masked]:
        yield (
            f"the loss and the epochs' metrics leave out what a mask hides of a row{_named(found)}, such as "
            "padding; the gate's metrics do not know the mask, and count it: in evaluate.own_metrics, name "
            "one that passes over it, by the label"
        )


def words_of_flat_answers(
    model: Any, label: Label, shapes: Mapping[str, tuple[int, ...]], *, is_custom_loop: bool
) -> str:
    """Return what to tell of an output [rows] whose label [rows, 1] the user's own code compares with it.

    Keras' losses, and functions given as a loss, get both with the same number of dimensions. A loss class,
    a `train_step` or a loop of the user's own that subtracts them gets [rows, rows].

    Args:
        model, label, shapes: as for `require_equal_shapes`.
        is_custom_loop: whether a function of the user takes the steps.

    Returns:
        "" if there is no such output.
    """
    import keras

    wrapped = getattr(model, "_functional", None) or model
    is_own_step = is_custom_loop or _is_overridden(model)
    for output, column in label.items() if isinstance(label, Mapping) else (("", columns_of(label)[0]),):
        tensor = _one_of(getattr(wrapped, "_outputs_struct", None), output)
        loss = _one_of(model.loss, output)
        is_own = isinstance(loss, keras.losses.Loss) and not hasattr(loss, "fn")
        if (is_own or is_own_step) and len(getattr(tensor, "shape", ())) == 1 and shapes[column] == (1,):
            return (
                f"the model answers [rows], and its label {column} is [rows, 1]: code of your own that "
                "subtracts or compares them gets [rows, rows], each row with every other. Let the model "
                "answer [rows, 1]"
            )
    return ""


def _named(compared: Sequence["_Compared"]) -> str:
    """Return the names of outputs in parentheses; "" for the only one."""
    return f" ({', '.join(each.output for each in compared)})" if compared[0].output else ""


def _require_numbers(compared: _Compared, split: str, found: LabelRange) -> None:
    if math.isfinite(found.least) and math.isfinite(found.greatest):
        return
    wrong = found.greatest if math.isfinite(found.least) else found.least
    raise ComponentError(
        f"the label {compared.column} is {wrong:g} in a row of the {split} split, and so would be "
        f"{compared.loss}",
        hint="leave out rows without a label, or look at what preprocessing_fn computes it from (a logarithm "
        "or a division)",
    )


def _require_share(compared: _Compared, split: str, found: LabelRange) -> None:
    if found.least >= 0 and found.greatest <= 1:
        return
    wrong = found.least if found.least < 0 else found.greatest
    raise ComponentError(
        f"the label {compared.column} is {wrong:g} in a row of the {split} split, but {compared.loss} takes "
        "0 and 1, or a probability",
        hint=f"for more classes end in a softmax, with the loss {_OF_CODES}; for numbers use the loss "
        "mean_squared_error",
    )


def _require_codes(compared: _Compared, split: str, found: LabelRange, dotted_path: str) -> None:
    classes = (compared.shape or ())[-1]
    if not found.is_whole:
        raise ComponentError(
            f"the label {compared.column} is not a whole number in every row of the {split} split, but "
            f"{compared.loss} takes the codes of classes: 0, 1, 2, ...",
            hint="let preprocessing_fn return codes; for numbers use the loss mean_squared_error",
        )
    if classes is None or (found.least >= 0 and found.greatest < classes):
        return
    wrong = found.least if found.least < 0 else found.greatest
    raise ComponentError(
        f"the label {compared.column} is {wrong:.0f} in a row of the {split} split, but the model of "
        f"{dotted_path} returns {classes} classes, with the codes 0 to {classes - 1}",
        hint="-1 is the code of a value that is not in a vocabulary, which has those of the train split, or "
        "not in CLASSES of a preprocessing.py that `new` wrote: give the vocabulary num_oov_buckets=1, add "
        "the class there and in workload.yaml, or leave such rows out"
        if wrong == -1
        else "let its last layer have a unit for each class, or check the codes that preprocessing_fn gives "
        "the classes",
    )


def _compared(model: Any, label: Label) -> Iterator[_Compared]:
    import keras

    if _is_overridden(model):
        return  # it need not use the loss, or not with these labels
    wrapped = getattr(model, "_functional", None) or model  # a Sequential wraps a functional model
    columns = label.items() if isinstance(label, Mapping) else (("", each) for each in columns_of(label))
    for output, column in columns:
        loss = _one_of(model.loss, output)
        if isinstance(loss, str):
            loss = None if loss.lower() in _CHOSEN_BY_THE_DATA else keras.losses.get(loss)
        function = getattr(loss, "fn", loss)
        is_of_keras = _is_of_keras(function) and (function is loss or _is_of_keras(type(loss)))
        tensor = _one_of(getattr(wrapped, "_outputs_struct", None), output)
        yield _Compared(
            output,
            column,
            str(getattr(function, "__name__", "")) if is_of_keras else "",
            None if tensor is None else tuple(tensor.shape),
            getattr(loss, "_fn_kwargs", {}),
            getattr(tensor, "_keras_mask", None) is not None,
            _activation(tensor),
        )


def _is_overridden(model: Any) -> bool:
    """Return True if the model's class takes its steps or computes its loss by itself."""
    import keras

    return any(
        getattr(type(model), each, None) is not getattr(keras.Model, each, None) for each in _OVERRIDABLE
    )


def _activation(output: Any) -> str:
    return _ending(getattr(getattr(output, "_keras_history", None), "operation", None))


def _ending(layer: Any) -> str:
    """Return the name of the function that a layer of Keras' ends in; "" if unknown."""
    import keras

    if isinstance(layer, keras.layers.Softmax):
        return "softmax"
    # Only these return what their activation does. One that is linear says nothing of what is before it.
    if type(layer) not in (keras.layers.Dense, keras.layers.EinsumDense, keras.layers.Activation):
        return ""
    if isinstance(layer.activation, keras.layers.Layer):  # as of Dense(1, activation=LeakyReLU())
        return _ending(layer.activation)
    is_of_keras = _is_of_keras(layer.activation)
    name = str(getattr(layer.activation, "__name__", "")) if is_of_keras else ""
    return "" if name == "linear" and isinstance(layer, keras.layers.Activation) else name


def _is_of_keras(function: Any) -> bool:
    # Not a function that only looks like Keras', by functools.wraps.
    is_its_own = not hasattr(function, "__wrapped__")
    return is_its_own and str(getattr(function, "__module__", "")).startswith("keras.")


def _one_of(values: Any, output: str) -> Any:
    """Return what belongs to an output, or to the only one; None if there is no such thing."""
    if isinstance(values, Mapping) and output:
        return values.get(output)
    several = list(values.values()) if isinstance(values, Mapping) else values
    if isinstance(several, list | tuple):
        return several[0] if len(several) == 1 else None
    return several


def _is_plain(settings: Mapping[str, object]) -> bool:
    """Return True if every code counts as a class, and the classes are the last dimension."""
    return settings.get("ignore_class") is None and settings.get("axis", -1) == -1


def _are_alike(label: tuple[int, ...], output: tuple[int | None, ...]) -> bool:
    """Return True if Keras compares a row's label with its output number by number.

    If one has a dimension more, of 1 and at the end, Keras drops it first.
    """
    if len(output) == len(label) + 1 and output[-1] == 1:
        output = output[:-1]
    elif len(label) == len(output) + 1 and label[-1] == 1:
        label = label[:-1]
    return len(label) == len(output) and all(
        given in (None, wanted) for wanted, given in zip(label, output, strict=True)
    )


def _rows(shape: tuple[int | None, ...]) -> str:
    return f"[{', '.join(['rows', *map(str, shape)])}]"
