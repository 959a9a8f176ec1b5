"""Traits that follow from a model's settings and layers; the part of JAX is tested with JAX."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import keras
import pytest

from slipway.components.preflight import model_traits
from slipway.components.preflight.definitions import Definitions
from slipway.components.preflight.model_traits import traits_of


@pytest.fixture
def model():
    inputs = keras.Input((4,), name="x")
    made = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    made.compile("adam", "mse")
    return made


def kinds(model, *, batch_size=8, replicas=1):
    question = SimpleNamespace(batch_size=batch_size, replicas=replicas)
    return [trait.kind for trait in traits_of(model, question, Definitions())]


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
    [found] = traits_of(made, SimpleNamespace(batch_size=8, replicas=2), Definitions())
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
    found = list(traits_of(made, SimpleNamespace(batch_size=batch_size, replicas=1), Definitions()))
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
