"""Which lines of the user's code made the layers of a model, and compiled it."""

import keras
import pytest

from slipway.components.preflight.definitions import definitions

MODEL = """
import keras

class Pair(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = keras.layers.Dense(4)

    def call(self, values):
        return self.inner(values)

class Plain(keras.layers.Layer):
    def call(self, values):
        return values

def build_model(features, hyperparameters):
    inputs = keras.Input((4,), name="x")
    pair = Pair()
    plain = Plain(name="plain")
    model = keras.Model(inputs, plain(pair(inputs)))
    model.compile("adam", "mse")
    return model
"""


@pytest.fixture
def build_model(tmp_path, monkeypatch):
    (tmp_path / "defined_workload.py").write_text(MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    import defined_workload

    return defined_workload.build_model


def test_each_layer_has_the_innermost_line_that_made_it_and_the_model_that_of_its_compilation(build_model):
    before = keras.layers.Layer.__new__, keras.Model.compile
    with definitions("defined_workload.build_model") as lines:
        model = build_model({}, {})
        foreign = keras.layers.Dense(1)
    told = {type(each).__name__: lines.of(each) for each in model._flatten_layers(include_self=False)}

    assert told == {
        "InputLayer": "defined_workload.py, line 17",
        "Pair": "defined_workload.py, line 18",
        "Plain": "defined_workload.py, line 19",
        "Dense": "defined_workload.py, line 7",
    }
    assert lines.by_name(model)["plain"] == "defined_workload.py, line 19"
    assert lines.of_compile(model) == "defined_workload.py, line 21"
    assert lines.of(foreign) == ""
    assert (keras.layers.Layer.__new__, keras.Model.compile) == before
