"""What the user's Python objects keep from trace to trace; traces themselves are tested with JAX."""

import random
import sys
import unittest.mock

import keras
import numpy as np
import pytest

from slipway.components.preflight.python_state import (
    fixed_seeds,
    kept_values,
    leaked_tracers,
    side_effects,
)

PATH = "state_workload.build_model"


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


def test_value_that_a_call_changes_is_named_with_its_layer(layer, model):
    before = kept_values(model, PATH)
    assert list(side_effects(before, model, PATH)) == [], "not even what does not equal itself"
    layer.calls += 1
    layer.seen["array"][1] = 3
    found = list(side_effects(before, model, PATH))
    assert [(each.kind, each.where) for each in found] == [
        ("side_effect", "the layer 'counting' (Counting)")
    ] * 2
    assert {each.detail for each in found} == {"calls", "seen"}


def test_tensor_of_a_trace_is_found_wherever_an_attribute_keeps_it(layer, model):
    assert list(leaked_tracers(model, PATH)) == []
    layer.kept = {"deep": [1, (Tracer(),)]}
    [found] = leaked_tracers(model, PATH)
    assert (found.kind, found.where, found.detail) == (
        "leaked_tracer",
        "the layer 'counting' (Counting)",
        "kept",
    )


class Weighing(keras.losses.Loss):
    """A user's loss with a counter of its own."""

    def __init__(self):
        super().__init__(name="weighing")
        self._calls = 0

    def call(self, label, answer):
        self._calls += 1
        return keras.ops.mean(label - answer)


class Watching(keras.metrics.Mean):
    """A user's metric that keeps what it sees."""

    def update_state(self, label, answer, sample_weight=None):
        self._seen = answer


def test_losses_and_metrics_are_looked_at_too(model):
    loss, metric = Weighing(), Watching(name="watching")
    model.compile("adam", loss, metrics=[metric])
    model.train_on_batch(np.zeros((2, 4)), np.zeros((2, 1)))
    before = kept_values(model, PATH)
    loss._calls += 1
    metric._seen = Tracer()
    assert [(each.where, each.detail) for each in side_effects(before, model, PATH)] == [
        ("the loss 'weighing' (Weighing)", "_calls")
    ]
    assert [(each.where, each.detail) for each in leaked_tracers(model, PATH)] == [
        ("the metric 'watching' (Watching)", "_seen")
    ]


def test_variables_around_a_loss_function(model):
    times = [0]

    def loss(label, answer):
        times[0] += 1
        return keras.ops.mean(label - answer)

    model.compile("adam", loss)
    before = kept_values(model, PATH)
    times[0] += 1
    assert [(each.where, each.detail) for each in side_effects(before, model, PATH)] == [
        ("the function 'loss'", "times")
    ]


def test_what_keras_keeps_under_its_own_names_is_not_the_users(layer, model):
    before = kept_values(model, PATH)
    kept = {name for owner, name in before if "counting" in owner}
    assert kept >= {"calls", "missing", "seen"}
    assert not [name for name in kept if name.startswith("_")]
    layer._called = "otherwise"
    layer._losses.append(Tracer())
    assert list(side_effects(before, model, PATH)) == []
    assert list(leaked_tracers(model, PATH)) == []


OWN = """from numpy.random import default_rng
import random
import keras
CALLS = 0
KEPT = []

def drawn(seed):
    return default_rng(seed)

def seeded(seed):
    random.seed(seed)

def counted(values):
    global CALLS
    print(CALLS)
    CALLS += 1
    def kept():
        size = len(KEPT)
        KEPT.append(values)

class Keeping(keras.layers.Layer):
    def __init__(self, **options):
        super().__init__(**options)
        self.last = None
        self.before = [0]
        self.seen = []
        self.unused = 0

    def get_config(self):
        return {"seen": self.seen}

    def call(self, values):
        total = sum(self.before)
        self.before[0] = total
        self.last = values
        return values * len(self.seen)

def around(values):
    def loss(label, answer):
        values["times"] = 1
        return answer
    return loss
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of the user's."""
    (tmp_path / "state_workload.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    import state_workload

    yield state_workload
    del sys.modules["state_workload"]


def test_globals_of_the_users_modules(model, own):
    before = kept_values(model, PATH)
    own.CALLS += 1
    own.KEPT.append(Tracer())
    assert [(each.where, each.detail) for each in side_effects(before, model, PATH)] == [
        ("the module state_workload, state_workload.py, line 16", "CALLS")
    ]
    assert [(each.where, each.detail) for each in leaked_tracers(model, PATH)] == [
        ("the module state_workload, state_workload.py, line 19", "KEPT")
    ]


@pytest.mark.parametrize(
    ("name", "line"),
    [("last", 35), ("before", 34), ("seen", 36), ("unused", 27), ("set_from_elsewhere", None)],
)
def test_the_line_is_one_that_changes_the_value_or_else_uses_it(own, name, line):
    inputs = keras.Input((4,), name="x")
    keeping = own.Keeping(name="keeping")
    made = keras.Model(inputs, keeping(inputs))
    setattr(keeping, name, Tracer())
    [found] = leaked_tracers(made, PATH)
    place = f", state_workload.py, line {line}" if line else ""
    assert found.where == f"the layer 'keeping' (Keeping){place}"


def test_the_line_of_a_variable_around_a_function(model, own):
    values = {"times": 0}
    model.compile("adam", own.around(values))
    before = kept_values(model, PATH)
    values["times"] = 1
    [found] = side_effects(before, model, PATH)
    assert (found.where, found.detail) == ("the function 'loss', state_workload.py, line 40", "values")


class Answering:
    """A table that has a value for every attribute, or an error of its own."""

    def __getattr__(self, name):
        raise KeyError(name)


class Proxy:
    """Of something that is loaded when it is asked, and cannot be."""

    def __getattribute__(self, name):
        raise RuntimeError(f"there is nothing to take {name} of")


class Cellwise(list):
    """A list that compares as NumPy's arrays do, and has no one truth."""

    def __eq__(self, other):
        return np.array([True, False])

    __hash__ = None

    def __len__(self):
        raise TypeError("of no length")

    def __iter__(self):
        raise TypeError("not one by one")

    __bool__ = __repr__ = __len__


class Key:
    """A key of a dictionary, of which nobody knows whether it equals another."""

    def __hash__(self):
        return 0

    def __eq__(self, other):
        raise ValueError("who knows")


def itself():
    rows = [1]
    rows.append(rows)
    return rows


def deep():
    rows = []
    for _ in range(10_000):
        rows = [rows]
    return rows


ODD = [Answering, Proxy, lambda: Cellwise([1, 2]), lambda: {Key(): 1, 2: Cellwise([3])}, itself, deep]
ODD += [lambda: np.ma.masked_array([1, 2], mask=[0, 1]), lambda: np.array([Answering, Key()], object)]
ODD += [unittest.mock.MagicMock, lambda: np.array([(1, Key())], [("a", int), ("b", object)])]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("on", ["own", "layer"])
def test_odd_values_do_not_stop_the_comparison(request, model, own, odd, on):
    own.Keeping.ODD = odd()
    vars(request.getfixturevalue(on))["odd"] = odd()  # a layer of Keras' looks at what is set as usual
    before = kept_values(model, PATH)
    own.CALLS += 1

    assert [each.detail for each in side_effects(before, model, PATH)] == ["CALLS"]
    assert list(leaked_tracers(model, PATH)) == []


def test_what_changes_within_an_odd_value_is_seen_all_the_same(model, own):
    own.ODD, own.LOOP = Cellwise([1, float("nan")]), itself()
    before = kept_values(model, PATH)
    assert list(side_effects(before, model, PATH)) == []
    list.append(own.ODD, 3)
    own.LOOP[1].append(Tracer())
    assert [each.detail for each in side_effects(before, model, PATH)] == ["ODD"]
    assert [each.detail for each in leaked_tracers(model, PATH)] == ["LOOP"]


def test_a_function_around_something_that_is_none(model, own):
    own.counted.__wrapped__ = Proxy()
    before = kept_values(model, PATH)
    own.CALLS += 1
    [found] = side_effects(before, model, PATH)
    assert found.where == "the module state_workload, state_workload.py, line 16"


def test_seeds_of_the_users_code_are_collected_with_their_line(own):
    found = []
    state, functions = random.getstate(), (own.default_rng, random.seed)
    with fixed_seeds(found, PATH):
        assert own.drawn(7).integers(9) == np.random.default_rng(7).integers(9)
        own.drawn(None)
        own.seeded(3)
    random.setstate(state)
    # That line only: this test is no code of the user's.
    assert found == [
        ("state_workload.py, line 8", "((7,), {})"),
        ("state_workload.py, line 11", "((3,), {})"),
    ]
    assert (own.default_rng, random.seed) == functions


@pytest.mark.parametrize(
    "drawn",
    [
        "np.random.RandomState(SEED).normal()",
        "np.random.Generator(np.random.PCG64(SEED)).normal()",
        "np.random.Generator(np.random.Philox(seed=SEED)).normal()",
        "random.Random(SEED).random()",
        "(keras.utils.set_random_seed(SEED), np.random.normal())[1]",
        "Mine(SEED).random()",
    ],
)
def test_all_that_takes_a_seed_is_seen_and_works_as_before(tmp_path, monkeypatch, drawn):
    (tmp_path / "state_workload.py").write_text(
        "import random, keras, numpy as np\nfrom random import Random as Mine\n"
        f"def drawn(SEED):\n    return {drawn}\n"
        "def is_known(value):\n    return isinstance(value, Mine)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "state_workload", raising=False)
    import state_workload

    of_python, of_numpy = random.getstate(), np.random.get_state()
    found = []
    with fixed_seeds(found, PATH):
        within = state_workload.drawn(3)
        assert state_workload.is_known(random.Random(3))  # noqa: S311 (noise)
        assert not state_workload.is_known(3)
    assert within == state_workload.drawn(3)
    random.setstate(of_python)
    np.random.set_state(of_numpy)
    del sys.modules["state_workload"]
    assert {place for place, _ in found} == {"state_workload.py, line 4"}
