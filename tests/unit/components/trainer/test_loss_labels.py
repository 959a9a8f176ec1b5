"""Labels that a loss would take for something else are refused, once, in words."""

import contextlib
from dataclasses import dataclass

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.loss_labels import (
    LabelRange,
    classes_of_codes,
    hinged_outputs,
    require_equal_shapes,
    require_labels,
    words_of_flat_answers,
    words_of_logits,
    words_of_masks,
)

pytestmark = [
    pytest.mark.slow,  # Keras starts
    pytest.mark.filterwarnings("default"),  # of TensorFlow's own imports
]


@dataclass
class Held:
    """A split with these labels."""

    values: list

    def label_range(self, column):
        assert column in ("y", "z")
        return LabelRange().with_values(np.array(self.values))


def compiled(loss, *, units=3, kind=None):
    import keras

    given = keras.Input((1,), name="x")
    model = (kind or keras.Model)(given, keras.layers.Dense(units, activation="softmax")(given))
    model.compile(loss=loss)
    return model


def losses():
    import keras

    return [
        "mse",
        "mean_absolute_error",
        keras.losses.Huber(),
        keras.losses.mean_squared_error,
        ["mse"],
    ]


@pytest.mark.parametrize("number", range(5))
def test_a_loss_that_would_broadcast_needs_equal_shapes(number):
    loss = losses()[number]
    require_equal_shapes(compiled(loss, units=1), "y", {"y": (1,)}, "my.build_model")
    require_equal_shapes(compiled(loss), "y", {"y": (3,)}, "my.build_model")
    for units, shape, label, output in ((3, (1,), 1, 3), (1, (3,), 3, 1), (3, (2,), 2, 3)):
        with pytest.raises(
            ComponentError,
            match=rf"label y is \[rows, {label}\], and the output of .* is \[rows, {output}\]: \w+ would",
        ):
            require_equal_shapes(compiled(loss, units=units), "y", {"y": shape}, "my.build_model")


def test_a_loss_of_the_user_s_own_may_compare_what_it_wants():
    import keras

    class Own(keras.Model):
        def compute_loss(self, **_):
            return 0.0

    for model in (compiled(lambda wanted, given: given - wanted), compiled("mse", kind=Own), compiled(None)):
        require_equal_shapes(model, "y", {"y": (1,)}, "my.build_model")
        require_labels(model, "y", {"train": Held([-3, 9.5])}, "my.build_model")


def test_several_outputs_are_compared_with_their_own_labels():
    import keras

    given = keras.Input((1,), name="x")
    dense = keras.layers.Dense
    model = keras.Model(given, {"a": dense(1, name="a")(given), "b": dense(4, name="b")(given)})
    model.compile(loss={"a": "mse", "b": "sparse_categorical_crossentropy"})
    label, shapes = {"a": "y", "b": "z"}, {"y": (1,), "z": (1,)}
    require_equal_shapes(model, label, shapes, "my.build_model")
    require_labels(model, label, {"train": Held([0, 3])}, "my.build_model")
    with pytest.raises(ComponentError, match="the label z is 4 in a row of the train split"):
        require_labels(model, label, {"train": Held([0, 4])}, "my.build_model")
    model.compile(loss={"a": "mse", "b": "mse"})
    with pytest.raises(ComponentError, match=r"the label z is \[rows, 1\]"):
        require_equal_shapes(model, label, shapes, "my.build_model")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0, 2.0, 1], ""),
        ([0, 3], "is 3 in a row of the eval split, but the model of my.build_model returns 3 classes, with"),
        ([-1, 2], "is -1 in a row of the eval split"),
        ([0.5, 1], "is not a whole number in every row of the eval split"),
        ([np.nan, 1], "is not a whole number in every row of the eval split"),
    ],
)
def test_codes_must_be_those_of_the_classes(values, words):
    model = compiled("sparse_categorical_crossentropy")
    splits = {"train": Held([0, 1, 2]), "eval": Held(values)}
    if not words:
        require_labels(model, "y", {**splits, "none": None}, "my.build_model")
        return
    with pytest.raises(ComponentError, match=f"the label y {words}"):
        require_labels(model, "y", splits, "my.build_model")


def test_a_code_that_the_loss_ignores_is_not_refused():
    import keras

    loss = keras.losses.SparseCategoricalCrossentropy(ignore_class=-1)
    require_labels(compiled(loss), "y", {"train": Held([-1, 2])}, "my.build_model")


@pytest.mark.parametrize("label", ["y", ["y", "z"]])
def test_a_yes_or_no_is_a_share(label):
    model = compiled("binary_crossentropy", units=2)
    require_labels(model, label, {"train": Held([0, 0.5, 1])}, "my.build_model")
    for values in ([0, 2], [-1, 1], [np.nan]):
        with pytest.raises(ComponentError, match="takes 0 and 1, or a probability"):
            require_labels(model, label, {"train": Held(values)}, "my.build_model")


def test_a_loss_that_only_derives_from_keras_may_compare_what_it_wants():
    import functools

    import keras

    class Masked(keras.losses.BinaryCrossentropy):
        def call(self, y_true, y_pred):
            return super().call(keras.ops.maximum(y_true, 0), y_pred)

    @functools.wraps(keras.losses.mean_squared_error)
    def wrapped(y_true, y_pred):
        return keras.losses.mean_squared_error(y_true, y_pred[:, :1])

    for loss in (Masked(), wrapped, "crossentropy", "CE"):
        require_equal_shapes(compiled(loss), "y", {"y": (1,)}, "my.build_model")
        require_labels(compiled(loss), "y", {"train": Held([-1, 2])}, "my.build_model")


def test_a_model_with_a_train_step_of_its_own_may_change_the_labels_first():
    import keras

    class Own(keras.Model):
        def train_step(self, data):
            return super().train_step(data)

    require_equal_shapes(compiled("mse", kind=Own), "y", {"y": (1,)}, "my.build_model")


def test_padding_of_a_masked_sequence_is_no_class():
    import keras

    given = keras.Input((5,))
    embedded = keras.layers.Embedding(10, 4, mask_zero=True)(given)
    model = keras.Model(given, keras.layers.Dense(3)(embedded))
    model.compile(loss="sparse_categorical_crossentropy")
    require_labels(model, "y", {"train": Held([-1, 2])}, "my.build_model")


def test_one_dimension_of_one_is_dropped_and_no_more():
    import keras

    given = keras.Input((8, 8, 1))
    model = keras.Model(given, keras.layers.GlobalAveragePooling2D(keepdims=True)(given))
    model.compile(loss="mse")
    with pytest.raises(ComponentError, match=r"is \[rows, 1, 1, 1\]: mean_squared_error would compare"):
        require_equal_shapes(model, "y", {"y": (1,)}, "my.build_model")
    require_equal_shapes(compiled("mse", units=1), "y", {"y": ()}, "my.build_model")


def test_a_share_of_the_eval_split_may_lie_beyond_those_that_were_scaled():
    model = compiled("binary_crossentropy", units=1)
    require_labels(model, "y", {"train": Held([0, 1]), "eval": Held([1.003])}, "my.build_model")


def test_the_code_of_what_a_vocabulary_lacks_is_explained():
    with pytest.raises(ComponentError) as refused:
        require_labels(
            compiled("sparse_categorical_crossentropy"), "y", {"eval": Held([-1])}, "my.build_model"
        )
    assert "num_oov_buckets=1" in refused.value.hint


def test_labels_of_rows_of_weight_0_are_not_looked_at():
    found = LabelRange().with_values(np.array([[1], [2], [-1]]), np.array([[0.5], [1.0], [0.0]]))
    assert found == LabelRange(1, 2)
    assert found.with_values(np.array([[7.5]]), np.zeros((1, 1))) == found


def test_outputs_whose_labels_are_codes_are_known_with_their_classes():
    import keras

    given = keras.Input((1,), name="x")
    model = keras.Model(given, {name: keras.layers.Dense(4, name=name)(given) for name in ("a", "b")})
    model.compile(loss={"a": "mse", "b": "sparse_categorical_crossentropy"})
    assert classes_of_codes(model, {"a": "y", "b": "z"}) == {"b": 4}
    assert classes_of_codes(compiled("sparse_categorical_crossentropy"), "y") == {"": 3}
    assert classes_of_codes(compiled("binary_crossentropy", units=1), "y") == {"": 2}
    ignored = keras.losses.SparseCategoricalCrossentropy(ignore_class=-1)
    assert classes_of_codes(compiled(ignored), "y") == classes_of_codes(compiled("mse"), "y") == {}


def test_outputs_with_a_hinge_are_known():
    import keras

    given = keras.Input((1,), name="x")
    model = keras.Model(given, {name: keras.layers.Dense(1, name=name)(given) for name in ("a", "b")})
    model.compile(loss={"a": "mse", "b": keras.losses.SquaredHinge()})
    assert hinged_outputs(model, {"a": "y", "b": "z"}) == {"b"}
    assert hinged_outputs(compiled("hinge"), "y") == {""}
    assert hinged_outputs(compiled("categorical_hinge"), "y") == hinged_outputs(compiled("mse"), "y") == set()


@pytest.mark.parametrize(
    ("values", "told"),
    [([1, np.nan], "nan"), ([1, np.inf], "inf"), ([-np.inf, 2], "-inf"), ([-5, 1e30], None)],
)
def test_a_number_must_be_finite_in_every_split(values, told):
    for split in ("train", "eval"):
        splits = {"train": Held([0, 1]), split: Held(values)}
        with (
            pytest.raises(ComponentError, match=f"the label y is {told} in a row of the {split} split")
            if told
            else contextlib.nullcontext()
        ):
            require_labels(compiled("mse", units=1), "y", splits, "my.build_model")


def test_a_loss_that_takes_logits_is_told():
    import keras

    of_logits = keras.losses.BinaryCrossentropy(from_logits=True)
    [words] = words_of_logits(ending(keras.layers.Dense(1), of_logits), "y")
    assert words.startswith("the loss takes logits: the gate refuses")
    for loss in (keras.losses.BinaryCrossentropy(), "mse", None):
        assert list(words_of_logits(compiled(loss, units=1), "y")) == []


def test_a_mask_that_the_gate_does_not_know_is_told_where_it_hides_a_part_of_the_answer():
    import keras

    def told(*layers):
        codes = keras.Input((12,), name="x", dtype="int32")
        hidden = keras.layers.Embedding(17, 4, mask_zero=True)(codes)
        for layer in (*layers, keras.layers.Dense(4, activation="softmax")):
            hidden = layer(hidden)
        model = keras.Model(codes, hidden)
        model.compile(loss="sparse_categorical_crossentropy")
        return list(words_of_masks(model, "y"))

    [words] = told(keras.layers.LSTM(4, return_sequences=True))
    assert words.startswith("the loss and the epochs' metrics leave out what a mask hides of a row, such as")
    assert told(keras.layers.LSTM(4)) == told(keras.layers.GlobalAveragePooling1D()) == []


def test_an_answer_without_a_dimension_is_told_where_code_of_the_users_own_compares_it_with_its_label():
    import keras

    class Squared(keras.losses.Loss):
        def call(self, label, answer):
            return keras.ops.square(label - answer)

    class Own(keras.Model):
        def train_step(self, data):
            raise NotImplementedError

    def squared(label, answer):
        return keras.ops.square(label - answer)

    def told(loss, kind=keras.Model, *, is_custom_loop=False, flat=True):
        given = keras.Input((1,), name="x")
        answer = keras.layers.Reshape(() if flat else (1,))(given)
        model = kind(given, answer)
        model.compile(loss=loss)
        words = words_of_flat_answers(model, "y", {"y": (1,)}, is_custom_loop=is_custom_loop)
        return bool(words), model

    rows = np.array([[1.0], [3.0]], np.float32)
    is_told, model = told(Squared())
    assert is_told
    assert model.evaluate(rows, rows, verbose=0) == 2.0, (
        "of answers that are right: each row with every other"
    )
    for loss in (squared, "mse"):
        is_told, model = told(loss)
        assert not is_told
        assert model.evaluate(rows, rows, verbose=0) == 0.0
    assert told("mse", Own)[0]
    assert told("mse", is_custom_loop=True)[0]
    assert not told(Squared(), Own, is_custom_loop=True, flat=False)[0]


def ending(layer, loss):
    import keras

    given = keras.Input((2,), name="x")
    model = keras.Model(given, layer(keras.layers.Dense(3)(given)))
    model.compile(loss=loss)
    return model


def test_an_activation_before_a_loss_that_takes_logits_is_told():
    """On JAX and torch, Keras takes it twice; on TensorFlow it warns."""
    import keras

    of_logits = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    layers = keras.layers
    of_a_layer = layers.Dense(3, activation=layers.Softmax())
    for layer in (layers.Dense(3, "softmax"), layers.Activation("softmax"), layers.Softmax(), of_a_layer):
        [words] = words_of_logits(ending(layer, of_logits), "y")
        assert "ends in a softmax: on JAX and torch, Keras takes it once more" in words


def test_a_loss_of_probabilities_on_a_layer_without_an_activation_is_told():
    import keras

    for units, loss, end in (
        (1, "binary_crossentropy", "sigmoid"),
        (3, "categorical_crossentropy", "softmax"),
    ):
        [words] = words_of_logits(ending(keras.layers.Dense(units), loss), "y")
        assert words.startswith(f"{loss} takes probabilities, and the last layer has no activation")
        assert words.endswith(f"Let the layer end in a {end}")


def test_nothing_is_told_of_a_last_layer_whose_answers_are_not_known():
    import keras

    layers = keras.layers
    sound = [
        layers.Activation("linear", dtype="float32"),  # what is before it may have been a softmax
        layers.Dense(1, activation=lambda x: x * x),
        layers.Dense(1, activation=layers.LeakyReLU()),  # a layer has no __name__
        layers.Reshape((3, 1)),
        layers.Dense(1, "hard_sigmoid"),
    ]
    for layer in sound:
        assert list(words_of_logits(ending(layer, "binary_crossentropy"), "y")) == []
    assert list(words_of_logits(ending(layers.Dense(1), "mse"), "y")) == []


def test_several_outputs_are_told_by_their_names():
    import keras

    given = keras.Input((2,), name="x")
    outputs = {name: keras.layers.Dense(1, name=name)(given) for name in ("y", "z")}
    model = keras.Model(given, outputs)
    model.compile(loss={"y": "binary_crossentropy", "z": "mse"})
    [words] = words_of_logits(model, {"y": "y", "z": "z"})
    assert words.startswith("binary_crossentropy takes probabilities (y), and")
