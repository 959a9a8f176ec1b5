"""Traits found in a model's objects, before and between traces; the part of JAX is tested with JAX."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from slipway.components.preflight import model_traits
from slipway.components.preflight.model_traits import kept_values, leaked_tracers, side_effects, traits_of


class Counting(keras.layers.Layer):
    """A user's layer that keeps what a call leaves in it."""

    def __init__(self):
        super().__init__(name="counting")
        self.calls = 0
        self.missing = float("nan")
        self.seen = {"names": ["a"], "array": np.zeros(2)}

    def call(self, inputs):
        return inputs


class Tracer:
    """Named as JAX's."""


@pytest.fixture
def layer():
    return Counting()


@pytest.fixture
def model(layer):
    inputs = keras.Input((4,), name="x")
    made = keras.Model(inputs, keras.layers.Dense(1)(layer(inputs)))
    made.compile("adam", "mse")
    return made


def kinds(model, *, batch_size=8, replicas=1):
    question = SimpleNamespace(batch_size=batch_size, replicas=replicas)
    return [trait.kind for trait in traits_of(model, question)]


def test_value_that_a_call_changes_is_named_with_its_layer(layer, model):
    before = kept_values(model)
    assert list(side_effects(before, model)) == [], "not even what does not equal itself"
    layer.calls += 1
    layer.seen["array"][1] = 3
    found = list(side_effects(before, model))
    assert [(each.kind, each.where) for each in found] == [
        ("side_effect", "the layer 'counting' (Counting)")
    ] * 2
    assert {each.detail for each in found} == {"calls", "seen"}


def test_tensor_of_a_trace_is_found_wherever_an_attribute_keeps_it(layer, model):
    assert list(leaked_tracers(model)) == []
    layer.kept = {"deep": [1, (Tracer(),)]}
    [found] = leaked_tracers(model)
    assert (found.kind, found.where, found.detail) == (
        "leaked_tracer",
        "the layer 'counting' (Counting)",
        "kept",
    )


def test_model_that_trains_as_it_should_shows_nothing(model):
    assert kinds(model) == []


def test_model_that_is_compiled_to_run_eagerly(model):
    model.compile("adam", "mse", run_eagerly=True)
    assert kinds(model) == ["run_eagerly"]


def test_model_without_a_weight_to_train(model):
    model.trainable = False
    assert kinds(model) == ["frozen"]


def test_layers_that_normalise_each_replica_by_itself_are_named_up_to_three():
    inputs = keras.Input((4,), name="x")
    outputs = inputs
    for number in range(5):
        outputs = keras.layers.BatchNormalization(name=f"norm{number}")(outputs)
    made = keras.Model(inputs, keras.layers.Dense(1)(outputs))
    made.compile("adam", "mse")
    assert kinds(made) == []
    [found] = traits_of(made, SimpleNamespace(batch_size=8, replicas=2))
    assert found.kind == "batch_norm"
    assert found.where.endswith(" and 2 more")


@pytest.mark.parametrize(
    ("optimizer", "batch_size", "told"), [("adam", 8, 2), ("adam", 500, 0), ("sgd", 8, 0)]
)
def test_table_of_which_a_step_looks_up_little(monkeypatch, optimizer, batch_size, told):
    monkeypatch.setattr(model_traits, "LARGE_TABLE_BYTES", 1000 * 8 * 4)
    left, right = (keras.Input((1,), dtype="int32", name=name) for name in ("left", "right"))
    # Two towers of the same shape: what the optimizer keeps for one is not the other's.
    towers = [keras.layers.Embedding(1000, 8, name=f"{tower.name}_table")(tower) for tower in (left, right)]
    made = keras.Model([left, right], keras.layers.Dense(1)(keras.layers.Concatenate()(towers)))
    made.compile(optimizer, "mse")
    made.optimizer.build(made.trainable_variables)
    found = list(traits_of(made, SimpleNamespace(batch_size=batch_size, replicas=1)))
    assert [each.kind for each in found] == ["whole_table"] * told
    if told:
        assert found[0].where == "the layer 'left_table'"
        assert found[0].detail == (
            "1,000 rows and the optimizer's 2 numbers for each of their values, 0.0 GiB, for at most 8 rows"
        )


@contextmanager
def at_most_more(size_bytes: int) -> Iterator[None]:
    """Refuse this process more memory than it has and so much."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_table_that_this_machine_cannot_hold_has_a_shape_and_no_array():
    keras.layers.Dense(1).build((None, 1))  # what Keras needs once is there before the limit
    with at_most_more(2**30), model_traits.only_shapes_of_large_weights():
        codes = keras.Input((1,), dtype="int32", name="codes")
        hidden = keras.layers.Flatten()(keras.layers.Embedding(50_000_000, 128)(codes))
        made = keras.Model({"codes": codes}, keras.layers.Dense(1)(hidden))
    assert made.count_params() == 50_000_000 * 128 + 129
    assert made.weights[0]._value is None
