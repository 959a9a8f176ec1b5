"""Traits that follow from a model's settings and layers; the part of JAX is tested with JAX."""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
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


def kinds(model, *, batch_size=8):
    question = SimpleNamespace(batch_size=batch_size)
    return [trait.kind for trait in traits_of(model, question, Definitions())]


def test_model_that_trains_as_it_should_shows_nothing(model):
    assert kinds(model) == []


def test_optimizer_that_accumulates_gradients(model):
    model.compile(keras.optimizers.Adam(gradient_accumulation_steps=3), "mse")
    assert kinds(model) == ["accumulates"]


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
    lines = SimpleNamespace(
        of=lambda layer: f"model.py, line {layer.name[-1]}" if layer.name > "norm1" else ""
    )
    [found] = traits_of(made, SimpleNamespace(batch_size=8), lines)
    assert found.kind == "batch_norm"
    assert found.where == "norm0, norm1, norm2 (model.py, line 2) and 2 more"


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
    found = list(traits_of(made, SimpleNamespace(batch_size=batch_size), Definitions()))
    assert [each.kind for each in found] == ["whole_table"] * told
    if told:
        assert found[0].where == "the layer 'left_table'"
        assert found[0].detail == (
            "1,000 rows and the optimizer's 2 numbers for each of their values, 0.0 GiB, for at most 8 rows"
        )


@pytest.fixture
def jax_dtypes(monkeypatch):
    """A stand-in for the module of JAX through which an operation's arguments go."""
    module = SimpleNamespace(canonicalize_value=lambda value: value)
    monkeypatch.setitem(sys.modules, "jax._src", SimpleNamespace(dtypes=module))
    return module


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.int64(2**31), "2,147,483,648"),
        (np.array([[5], [-(2**40)]]), "-1,099,511,627,776"),
        (np.uint64(2**32), "4,294,967,296"),
        (np.array([2**31 - 1, -(2**31)]), ""),
        (np.uint64(2**32 - 1), ""),
        (np.array([], np.int64), ""),
        (np.array([2.0**40]), ""),
        (7, ""),
    ],
)
def test_integers_of_which_jax_keeps_32_bits_are_told_with_the_line_that_hands_them_over(
    jax_dtypes, tmp_path, monkeypatch, value, told
):
    (tmp_path / "cut_workload.py").write_text(
        "def add(dtypes, value):\n    dtypes.canonicalize_value(value)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import cut_workload

    found = []
    plain = jax_dtypes.canonicalize_value
    with model_traits.cut_integers(found, "cut_workload.build_model"):
        assert jax_dtypes.canonicalize_value(value) is value  # of no line of the user's
        cut_workload.add(jax_dtypes, value)
    del sys.modules["cut_workload"]

    assert [(each.kind, each.where, each.detail) for each in found] == [
        ("wide_integers", "cut_workload.py, line 2", told)
    ] * bool(told)
    assert jax_dtypes.canonicalize_value is plain


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
