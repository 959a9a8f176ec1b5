"""The facts of a built model that the rules about padding and types read."""

import keras

from slipway.components.preflight.shapes import layers_of


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


def test_layer_that_is_called_twice_counts_once():
    first, second = (keras.Input((5, 4), name=name) for name in ("first", "second"))
    shared = keras.layers.Dense(3, name="shared")
    outputs = keras.layers.Add()([shared(first), shared(second)])
    found = [layer for layer in layers_of(keras.Model([first, second], outputs)) if layer.name == "shared"]
    assert [(each.positions, each.is_output) for each in found] == [(5, False)]
