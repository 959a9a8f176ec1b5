"""The facts of a built model that the rules about padding and types read."""

import keras
import numpy as np
import pytest

from slipway.components.preflight.shapes import Calls, layers_of


def test_matrices_positions_and_outputs_of_the_layers_that_compute():
    words = keras.Input((6,), dtype="int32", name="words")
    hidden = keras.layers.Embedding(50, 16, name="table")(words)
    hidden = keras.layers.Conv1D(8, 3, name="conv")(hidden)
    inner_input = keras.Input((4, 8))
    inner = keras.Model(inner_input, keras.layers.Dense(3, name="inside")(inner_input), name="inner")
    outputs = keras.layers.Dense(2, name="answer")(keras.layers.Flatten()(inner(hidden)))
    found = {layer.name: layer for layer in layers_of(keras.Model(words, outputs))}
    assert "inner" not in found, "a model is its layers"
    assert (found["table"].matrices, found["table"].positions) == (((50, 16),), 1)
    assert (found["conv"].matrices, found["conv"].positions) == (((3, 16, 8),), 4)
    assert found["inside"].matrices == ((8, 3),)
    assert [name for name, layer in found.items() if layer.is_output] == ["answer"]
    assert found["answer"].dtype == "float32"


def test_frozen_matrices_compute_as_well_and_lora_s_are_not_the_layer_s_own():
    given = keras.Input((128,))
    frozen = keras.layers.Dense(100, name="frozen", trainable=False)
    adapted = keras.layers.Dense(256, name="adapted")
    model = keras.Model(given, keras.layers.Dense(2, name="answer")(adapted(frozen(given))))
    adapted.enable_lora(4)
    found = {each.name: each for each in layers_of(model)}
    assert (found["frozen"].matrices, found["frozen"].is_frozen) == (((128, 100),), True)
    assert sorted(found["adapted"].matrices) == [(4, 256), (100, 4), (100, 256)]
    assert [each.is_frozen for each in (found["adapted"], found["answer"])] == [True, False]


@pytest.mark.parametrize(
    "end", [keras.layers.Activation("softmax"), keras.ops.softmax, keras.layers.Flatten()]
)
def test_layer_before_an_activation_is_the_output(end):
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(100, name="hidden")(inputs)
    model = keras.Model(inputs, end(keras.layers.Dense(10, name="answer")(hidden)))
    found = [each.name for each in layers_of(model) if each.is_output and each.matrices]
    assert found == ["answer"]


class Own(keras.Model):
    """Of a class of its own: Keras has no graph of its layers."""

    def __init__(self, end):
        super().__init__()
        self.wide = keras.layers.Conv1D(100, 3, name="wide")
        self.answer = keras.layers.Dense(1, name="answer")
        self.end = end

    def call(self, inputs):
        return self.end(self.answer(keras.ops.max(self.wide(inputs["x"]), axis=1)))


@pytest.mark.parametrize("end", [lambda x: x, keras.ops.sigmoid, lambda x: x[:, 0], lambda x: {"y": x}])
def test_output_of_a_model_of_the_users_own_class_is_found_by_calling_it(end):
    model = Own(end)
    given = {"x": keras.KerasTensor((None, 8, 4))}
    model(given)
    call = model.call
    with Calls.recorded(model) as calls:
        model(given)
    found = layers_of(model, calls)
    assert {each.name: (each.positions, each.is_output) for each in found} == {
        "wide": (6, False),
        "answer": (1, True),
    }
    assert model.call == call, "as it was"
    assert not any(each.is_output for each in layers_of(model))


def test_layer_that_is_called_twice_counts_once():
    first, second = (keras.Input((5, 4), name=name) for name in ("first", "second"))
    shared = keras.layers.Dense(3, name="shared")
    outputs = keras.layers.Add()([shared(first), shared(second)])
    found = [layer for layer in layers_of(keras.Model([first, second], outputs)) if layer.name == "shared"]
    assert [(each.positions, each.is_output) for each in found] == [(5, False)]


def test_positions_of_images_whose_features_come_first():
    images = keras.Input((3, 8, 6))
    deep = keras.layers.Conv2D(96, 3, data_format="channels_first", name="conv")
    found = {layer.name: layer for layer in layers_of(keras.Model(images, deep(images)))}
    assert found["conv"].positions == 6 * 4


class Block(keras.layers.Layer):
    """A layer of layers, of which no graph knows."""

    def __init__(self, **options):
        super().__init__(**options)
        self.inside = keras.layers.Dense(6, name="inside")

    def call(self, values):
        return self.inside(values)


def test_layers_within_layers_have_the_positions_of_their_calls_a_path_and_their_own_weights():
    inputs = keras.Input((5, 4))
    outputs = keras.layers.Dense(2)(Block(name="second")(Block(name="first")(inputs)))
    model = keras.Model(inputs, outputs)

    with Calls.recorded(model) as calls:
        model(np.zeros((3, 5, 4)))

    found = {layer.name: layer for layer in layers_of(model, calls)}
    assert [(name, found[name].positions) for name in ("first/inside", "second/inside")] == [
        ("first/inside", 5),
        ("second/inside", 5),
    ]
    assert (found["second"].matrices, found["second/inside"].matrices) == ((), ((6, 6),))
    assert [each.kind for each in found.values() if each.is_output] == ["Dense"]


@pytest.mark.parametrize(
    ("equation", "output", "positions"),
    [("abc,cde->abde", (7, 2, 3), 7), ("abc,cd->abd", (7, 6), 7), ("abc,bcd->ad", (6,), 1)],
)
def test_heads_of_a_layer_are_features_and_no_positions(equation, output, positions):
    inputs = keras.Input((7, 4))
    model = keras.Model(inputs, keras.layers.EinsumDense(equation, output, name="heads")(inputs))
    assert {each.name: each.positions for each in layers_of(model)}["heads"] == positions
