"""The user's model function is found, and errors in it are told by file and line."""

import importlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature
from slipway.components.trainer.user_model import (
    build_model,
    describe,
    require_outputs,
    source_digest,
    source_root,
    take_inputs_by_name,
    with_line,
)

# What Keras finds odd in the models below is what makes them worth a test.
KERAS_SAYS = (
    "ignore:The structure of `inputs` doesn't match:UserWarning",
    r"ignore:`build\(\)` was called on layer:UserWarning",
    "ignore:Layer 'eager' looks like it has unbuilt state:UserWarning",
)


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """The dotted path of a function that raises in line 2 of a module in a package of its own."""
    package = tmp_path / "broken_workload"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.py").write_text(
        "def build_model(features, hyperparameters):\n    return features['x']\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "broken_workload.model.build_model"
    for name in [name for name in sys.modules if name.startswith("broken_workload")]:
        del sys.modules[name]


def test_source_root_is_the_folder_above_the_top_package(broken, tmp_path):
    assert source_root(broken) == tmp_path
    assert source_root("broken_workload.build_model") == tmp_path


def test_a_model_that_is_refused_is_told_with_the_line_of_its_function(broken):
    importlib.import_module(broken.rpartition(".")[0])
    two = SimpleNamespace(_outputs_struct={"a": 0, "b": 1})
    where = rf"{broken} \(broken_workload/model\.py, line 1\)"
    with pytest.raises(ComponentError, match=rf"^{where} returns a model with 2 outputs, and"):
        require_outputs(two, "y", broken)
    with pytest.raises(ComponentError, match=rf"and the model of {where} has a, b"):
        require_outputs(two, {"a": "y", "c": "z"}, broken)


def test_a_function_that_is_not_the_users_own_or_not_loaded_has_no_line(broken):
    module = importlib.import_module(broken.rpartition(".")[0])
    assert with_line("broken_workload.other.build_model") == "broken_workload.other.build_model"
    module.build_model = SimpleNamespace  # of another package, and a class
    assert with_line(broken) == broken


@pytest.mark.parametrize("path", ["no_such_package.model.build_model", "workloads.taxi.no_such.build_model"])
def test_missing_module_is_named(path):
    with pytest.raises(ComponentError, match=f"there is no module {path.rpartition('.')[0]}"):
        source_root(path)


@pytest.mark.slow  # Keras starts
@pytest.mark.filterwarnings("default", *KERAS_SAYS)  # of TensorFlow's own imports
def test_a_model_that_names_no_shapes_is_built_for_its_features(tmp_path, monkeypatch):
    (tmp_path / "unbuilt_workload.py").write_text(
        "import keras\n"
        "class Own(keras.Model):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.answer = keras.layers.Dense(1)\n"
        "    def call(self, inputs):\n"
        "        return self.answer(inputs['x'])\n"
        "def compiled(model):\n"
        "    model.compile('sgd', 'mse')\n"
        "    return model\n"
        "def own(features, hyperparameters):\n"
        "    return compiled(Own())\n"
        "def sequential(features, hyperparameters):\n"
        "    layers = [keras.layers.Embedding(9, 3), keras.layers.Flatten(), keras.layers.Dense(1)]\n"
        "    return compiled(keras.Sequential(layers))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    x = {"x": Feature(name="x", dtype="float32", shape=(4,))}
    codes = {"codes": Feature(name="codes", dtype="int64", shape=(2,), categories=9)}

    assert build_model("unbuilt_workload.own", x, {}).count_params() == 4 + 1
    read = build_model("unbuilt_workload.sequential", codes, {})
    assert read.count_params() == 9 * 3 + 2 * 3 + 1
    assert [(each.name, each.dtype) for each in read.inputs] == [("codes", "int32")]
    read.fit({"codes": np.zeros((8, 2), "int32")}, np.zeros((8, 1)), verbose=0)
    with pytest.raises(ComponentError, match="takes one feature; there are: x, codes"):
        build_model("unbuilt_workload.sequential", {**x, **codes}, {})


@pytest.mark.slow  # Keras starts
@pytest.mark.filterwarnings("default", *KERAS_SAYS)  # of TensorFlow's own imports
@pytest.mark.parametrize("name", ["functional", "sequential", "eager"])
def test_a_model_with_spare_layers_or_code_that_wants_values_is_built(tmp_path, monkeypatch, name):
    (tmp_path / "built_workload.py").write_text(
        "import keras\n"
        "import numpy as np\n"
        "class Spare(keras.layers.Layer):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.unused = keras.layers.Dense(1)\n"
        "    def call(self, values):\n"
        "        return values * 2\n"
        "class Eager(keras.Model):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.answer = keras.layers.Dense(1)\n"
        "    def call(self, inputs):\n"
        "        return self.answer(inputs['x'] * float(np.mean(inputs['x'].numpy())))\n"
        "def compiled(model, **options):\n"
        "    model.compile('sgd', 'mse', **options)\n"
        "    return model\n"
        "def functional(features, hyperparameters):\n"
        "    x = keras.Input((4,), name='x')\n"
        "    return compiled(keras.Model(x, keras.layers.Dense(1)(Spare()(x))))\n"
        "def sequential(features, hyperparameters):\n"
        "    layers = [keras.Input((4,), name='x'), Spare(), keras.layers.Dense(1)]\n"
        "    return compiled(keras.Sequential(layers))\n"
        "def eager(features, hyperparameters):\n"
        "    return compiled(Eager(), run_eagerly=True)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    # Flattened by name, `a` would come first.
    features = {
        each: Feature(name=each, dtype="float32", shape=(size,)) for each, size in (("a", 3), ("x", 4))
    }

    model = build_model(f"built_workload.{name}", features, {})

    assert model.built
    if name == "eager":  # the others own a layer that they never call
        assert model.count_params() == 4 + 1
    model.fit({"x": np.ones((8, 4))}, np.zeros((8, 1)), verbose=0)


@pytest.mark.slow  # Keras starts
@pytest.mark.filterwarnings("default")  # of TensorFlow's own imports
def test_a_model_that_takes_its_inputs_by_name_already_stays_as_it_is():
    import keras

    inputs = {name: keras.Input((1,), name=name) for name in "zb"}
    model = keras.Model(inputs, inputs["b"] + inputs["z"])

    take_inputs_by_name(model)
    taken = model._standardize_inputs
    take_inputs_by_name(model)

    assert model._standardize_inputs is taken


@pytest.mark.slow  # Keras starts
@pytest.mark.filterwarnings("default")  # of TensorFlow's own imports
def test_a_model_of_some_features_takes_these_by_name_and_only_features(tmp_path, monkeypatch):
    (tmp_path / "some_features.py").write_text(
        "import keras\n"
        "def compiled(model):\n"
        "    model.compile('sgd', 'mse')\n"
        "    return model\n"
        "def some(features, hyperparameters):\n"
        "    inputs = {name: keras.Input((1,), name=name) for name in ('z', 'b')}\n"
        "    return compiled(keras.Model(inputs, 10 * inputs['b'] + inputs['z']))\n"
        "def listed(features, hyperparameters):\n"
        "    z, b = keras.Input((1,), name='z'), keras.Input((1,), name='b')\n"
        "    return compiled(keras.Model([z, b], 10 * b + z))\n"
        "def unknown(features, hyperparameters):\n"
        "    inputs = {name: keras.Input((1,), name=name) for name in ('b', 'y')}\n"
        "    return compiled(keras.Model(inputs, inputs['b'] + inputs['y']))\n"
        "class Functional:\n"
        "    __module__ = 'tf_keras.src.engine.functional'\n"
        "def legacy(features, hyperparameters):\n"
        "    return Functional()\n"
        "def tower(name, other):\n"
        "    inputs = {each: keras.Input((1,), name=each) for each in (name, other)}\n"
        "    return keras.Model(inputs, 10 * inputs[name] + inputs[other])\n"
        "class Towers(keras.Model):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.towers = [tower('z', 'b'), tower('c', 'z')]\n"
        "    def call(self, inputs):\n"
        "        return sum(each(inputs) for each in self.towers)\n"
        "class LateTowers(Towers):\n"
        "    def __init__(self):\n"
        "        keras.Model.__init__(self)\n"
        "    def build(self, shapes):\n"
        "        self.towers = [tower('z', 'b'), tower('c', 'z')]\n"
        "        self.built = True\n"
        "def late_towers(features, hyperparameters):\n"
        "    return compiled(LateTowers())\n"
        "def towers(features, hyperparameters):\n"
        "    return compiled(Towers())\n"
        "def joined(features, hyperparameters):\n"
        "    inputs = {name: keras.Input((1,), name=name) for name in 'abcz'}\n"
        "    return compiled(keras.Model(inputs, tower('z', 'b')(inputs) + tower('c', 'z')(inputs)))\n"
        "def unnamed(features, hyperparameters):\n"
        "    return compiled(keras.Sequential([keras.Input((1,), name='other'), keras.layers.Dense(1)]))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    features = {name: Feature(name=name, dtype="float32") for name in "abcz"}
    rows = {name: np.full((8, 1), value, "float32") for name, value in zip("abcz", (1, 2, 3, 4), strict=True)}

    for name in ("some", "listed"):
        model = build_model(f"some_features.{name}", features, {})
        assert set(model.predict(rows, verbose=0).ravel()) == {24}
        assert model.evaluate(rows, np.full((8, 1), 24), verbose=0) == 0
        assert float(model({"b": rows["b"], "z": rows["z"]})[0, 0]) == 24
    for name in ("towers", "late_towers", "joined"):
        model = build_model(f"some_features.{name}", features, {})
        assert set(model.predict(rows, verbose=0).ravel()) == {42 + 34}
    for name, words in (("unknown", "takes y, which"), ("unnamed", "takes other, which")):
        with pytest.raises(ComponentError, match=f"{words} is not a feature; there are: a, b, c, z"):
            build_model(f"some_features.{name}", features, {})
    with pytest.raises(ComponentError, match=r"a keras\.Model, not tf_keras Functional\nhint: import keras"):
        build_model("some_features.legacy", features, {})


@pytest.mark.slow  # Keras starts
@pytest.mark.filterwarnings("default")  # of TensorFlow's own imports
def test_codes_that_16_bits_do_not_tell_apart_are_refused(tmp_path, monkeypatch):
    import keras

    (tmp_path / "coded_model.py").write_text(
        "import keras\n"
        "def made(inputs, codes):\n"
        "    model = keras.Model(inputs, keras.layers.Flatten()(keras.layers.Embedding(300, 2)(codes)))\n"
        "    model.compile('sgd', 'mse')\n"
        "    return model\n"
        "def rounded(features, hyperparameters):\n"
        "    shop = keras.Input((1,), name='shop')\n"
        "    return made({'shop': shop}, keras.layers.Flatten()(shop))\n"
        "def whole(features, hyperparameters):\n"
        "    shop = keras.Input((1,), name='shop', dtype=features['shop'].model_dtype)\n"
        "    return made({'shop': shop}, keras.layers.Flatten()(shop))\n"
        "def looked_up(features, hyperparameters):\n"
        "    shop = keras.Input((1,), name='shop')\n"
        "    return made([shop], shop)\n"
        "def inner(features, hyperparameters):\n"
        "    shop = keras.Input((1,), name='shop')\n"
        "    layers = [keras.Input((1,)), keras.layers.Embedding(300, 2), keras.layers.Flatten()]\n"
        "    model = keras.Model([shop], keras.Sequential(layers)(shop))\n"
        "    model.compile('sgd', 'mse')\n"
        "    return model\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    shops = {n: {"shop": Feature(name="shop", dtype="int64", categories=n)} for n in (256, 300)}
    build_model("coded_model.rounded", shops[300], {})
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        build_model("coded_model.rounded", shops[256], {})
        for name in ("whole", "looked_up", "inner"):
            model = build_model(f"coded_model.{name}", shops[300], {})
            one, other = model.predict({"shop": np.array([[298], [299]])}, verbose=0)
            assert (one != other).any()
        with pytest.raises(ComponentError, match="takes shop, 300 codes, as float32, which the layer"):
            build_model("coded_model.rounded", shops[300], {})
    finally:
        keras.config.set_dtype_policy("float32")


def test_error_is_reported_by_the_users_file_and_line(broken):
    from broken_workload.model import build_model

    with pytest.raises(KeyError) as caught:
        build_model({}, {})
    assert (
        describe(caught.value, broken)
        == "broken_workload/model.py, line 2: KeyError: features has no 'x'; features has nothing"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("unitz", "takes no 'unitz'; nearest: units"),
        ("zebra", "takes no 'zebra'; there are: units, rate"),
    ],
)
def test_a_hyperparameter_that_the_code_does_not_take_is_reported_with_the_nearest(
    broken, tmp_path, name, words
):
    (tmp_path / "broken_workload" / "model.py").write_text(
        "class Settings:\n    def __init__(self, units=1, rate=0.1): ...\n"
        "def build_model(features, hyperparameters):\n    return Settings(**dict(hyperparameters))\n"
    )
    with pytest.raises(ComponentError) as told:
        build_model(broken, {}, {"rate": 0.2, name: 3})
    assert told.value.message == f"train.hyperparameters: {broken} {words}"


def test_another_wrong_argument_in_the_code_is_no_hyperparameters_fault(broken, tmp_path):
    (tmp_path / "broken_workload" / "model.py").write_text(
        "def build_model(features, hyperparameters):\n    return dict(**hyperparameters).pop(last=1)\n"
    )
    with pytest.raises(TypeError):
        build_model(broken, {}, {"rate": 0.2})


def test_error_outside_the_users_code_is_reported_without_a_place():
    assert describe(ValueError("first\nsecond"), "workloads.taxi.model.build_model") == "ValueError: first"


def test_error_of_a_long_message_is_cut_and_one_without_is_told_by_its_class(broken):
    class BrokenError(Exception):
        def __str__(self):
            raise KeyError

    assert (
        describe(ValueError("x" * 100_000), broken) == f"ValueError: {'x' * 1000}... (the log has the rest)"
    )
    told = "BrokenError: its message cannot be shown: __str__ raised KeyError"
    assert describe(BrokenError(), broken) == told


def test_error_in_code_that_tensorflow_has_rewritten_is_reported_by_its_own_words_and_line(broken, tmp_path):
    file = tmp_path / "broken_workload" / "model.py"
    text = (
        "in user code:\n\n"
        f'    File "{file}", line 9, in train_step  *\n        self.inner(data)\n'
        f'    File "{file}", line 4, in inner  *\n        x, y, w = data\n'
        '    File "keras/layer.py", line 1, in __call__\n        raise\n\n'
        "    ValueError: not enough values to unpack (expected 3, got 2)\n    and more\n"
    )
    told = "broken_workload/model.py, line 4: ValueError: not enough values to unpack (expected 3, got 2)"
    assert describe(RuntimeError(text), broken) == told
    key = text.replace("ValueError: not enough values to unpack (expected 3, got 2)", "KeyError: 'fares'")
    assert describe(KeyError(key), broken) == "broken_workload/model.py, line 4: KeyError: 'fares'"
    no_lines = "in user code:\n\n\n    ValueError: Got a non-Tensor value\n"
    assert describe(ValueError(no_lines), broken) == "ValueError: Got a non-Tensor value"


def test_error_of_a_layer_or_an_operation_is_told_by_its_reason_and_the_users_line(broken, tmp_path):
    layer = "Exception encountered when calling Own.call().\n    \n    \x1b[1mno 3\x1b[0m\n\n    Arguments"
    assert describe(ValueError(layer), broken) == "ValueError: no 3"
    assert describe(ValueError(f"in user code:\n\n\n    TypeError: {layer}"), broken) == "TypeError: no 3"
    file = tmp_path / "broken_workload" / "model.py"
    stack = f'  File "{file}", line 9, in call\n\n'
    graph = f"Graph execution error:\n\n{stack}8 is not in [0, 3)\n [[{{{{node a/b}}}}]]"
    told = "broken_workload/model.py, line 9: RuntimeError: 8 is not in [0, 3) (in a/b)"
    assert describe(RuntimeError(graph), broken) == told


@pytest.mark.slow  # TensorFlow starts
@pytest.mark.filterwarnings("default")  # of TensorFlow's own imports
def test_tensorflow_tells_errors_as_they_are_read(broken, tmp_path, monkeypatch):
    import tensorflow as tf

    (tmp_path / "broken_workload" / "steps.py").write_text("def step(data):\n    x, y = data\n    return x\n")
    from broken_workload.steps import step

    with pytest.raises(ValueError, match="in user code") as caught:
        tf.function(step)((1, 2, 3))
    told = "broken_workload/steps.py, line 2: ValueError: too many values to unpack (expected 2)"
    assert describe(caught.value, broken) == told


@pytest.mark.slow  # Keras starts
@pytest.mark.filterwarnings("default")  # of TensorFlow's own imports
@pytest.mark.parametrize(
    ("outputs", "label", "words"),
    [
        (["a", "b"], "y", "a model with 2 outputs, and transform.label names one"),
        (
            ["a", "b"],
            {"a": "y", "c": "z"},
            "names the outputs a, c, and the model of my.build_model has a, b",
        ),
        (
            [],
            {"a": "y", "c": "z"},
            "names the outputs a, c, and the model of my.build_model has outputs without",
        ),
        (["a", "b"], {"b": "y", "a": "z"}, ""),
        (
            [],
            ["y", "z"],
            r"2 columns as one label, but the model of my.build_model returns \[None, 1\]",
        ),
        (["a", "b"], ["y", "z"], r"returns \[None, 1\], \[None, 1\]; it must return one tensor"),
        ([], "y", ""),
    ],
)
def test_outputs_must_be_those_that_have_a_label(outputs, label, words):
    import keras

    given = keras.Input((1,), name="x")
    answers = {name: keras.layers.Dense(1, name=name)(given) for name in outputs}
    model = keras.Model(given, answers or keras.layers.Dense(1)(given))
    if not words:
        require_outputs(model, label, "my.build_model")
        return
    with pytest.raises(ComponentError, match=words):
        require_outputs(model, label, "my.build_model")


@pytest.mark.slow  # Keras starts
@pytest.mark.filterwarnings("default")  # of TensorFlow's own imports
def test_several_labels_of_a_row_are_answered_one_by_one():
    import keras

    given = keras.Input((1,), name="x")
    scores = keras.layers.Dense(2)(given)
    require_outputs(keras.Model(given, keras.ops.sigmoid(scores)), ["y", "z"], "my.build_model")
    for answers in (
        keras.layers.Dense(2, activation="softmax")(given),
        keras.layers.Dense(2, activation=keras.layers.Softmax())(given),
        keras.layers.Softmax()(scores),
        keras.ops.softmax(scores),
    ):
        with pytest.raises(ComponentError, match="ends in a softmax, whose outputs sum to one"):
            require_outputs(keras.Model(given, answers), ["y", "z"], "my.build_model")
    wider = keras.Sequential([keras.Input((1,)), keras.layers.Dense(3)])
    with pytest.raises(ComponentError, match=r"returns \[None, 3\]; it must return one tensor \[rows, 2\]"):
        require_outputs(wider, ["y", "z"], "my.build_model")


@pytest.mark.slow  # Keras starts
@pytest.mark.filterwarnings("default", *KERAS_SAYS)  # of TensorFlow's own imports
def test_weights_to_begin_with_reach_the_argument_of_their_name_and_must_fit(tmp_path, monkeypatch):
    import keras

    (tmp_path / "begun_workload.py").write_text(
        "import keras\n"
        "def build_model(features, hyperparameters, pretrained):\n"
        "    inputs, units = keras.Input((1,), name='x'), hyperparameters['units']\n"
        "    model = keras.Sequential([inputs, keras.layers.Dense(units)])\n"
        "    if pretrained is not None:\n"
        "        model.load_weights(pretrained)\n"
        "    model.compile('sgd', 'mse')\n"
        "    return model\n"
        "def without(features, hyperparameters): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    features, file = {"x": Feature(name="x", dtype="float32")}, tmp_path / "before.weights.h5"
    before = keras.Sequential([keras.Input((1,)), keras.layers.Dense(2)])
    before.save_weights(file)

    def build(units, weights):
        return build_model("begun_workload.build_model", features, {"units": units}, pretrained=weights)

    np.testing.assert_array_equal(build(2, file).get_weights()[0], before.get_weights()[0])
    assert build(3, None).count_params() == 6
    with pytest.raises(ComponentError) as refused:
        build(3, file)
    words = refused.value.message
    assert words.startswith("train.pretrained: before.weights.h5 does not fit: begun_workload.py, line 6: ")
    assert "(1, 3)" in words
    file.write_bytes(b"no weights")
    with pytest.raises(ComponentError, match=r"before\.weights\.h5 does not fit: begun_workload\.py, line 6"):
        build(2, file)
    with pytest.raises(
        ComponentError, match=r"given, but begun_workload\.without takes no argument pretrained"
    ):
        build_model("begun_workload.without", features, {}, pretrained=file)


@pytest.mark.slow  # Keras starts
@pytest.mark.filterwarnings("default")  # of TensorFlow's own imports
def test_a_feature_may_have_the_name_of_a_layer(tmp_path, monkeypatch):
    (tmp_path / "names_workload.py").write_text(
        "import keras\n"
        "def build_model(features, hyperparameters):\n"
        "    inputs = {name: keras.Input(each.shape, name=name) for name, each in features.items()}\n"
        "    parts = [keras.ops.cast(each, 'float32') for each in inputs.values()]\n"
        "    joined = keras.layers.Concatenate()(parts)\n"
        "    answer = keras.layers.Dense(1, name=hyperparameters.get('name'))(joined)\n"
        "    model = keras.Model(inputs, answer)\n"
        "    model.compile('sgd', 'mse')\n"
        "    return model\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    names = ("cast", "concatenate", "dense")
    features = {name: Feature(name=name, dtype="float32") for name in names}
    assert build_model("names_workload.build_model", features, {}).built
    with pytest.raises(ComponentError, match="two layers or inputs of the model are named cast") as refused:
        build_model("names_workload.build_model", features, {"name": "cast"})
    assert "rename the feature" in refused.value.hint


@pytest.mark.slow  # Keras starts
@pytest.mark.filterwarnings("default")  # of TensorFlow's own imports
@pytest.mark.parametrize("model", ["boosted_trees", "wide_and_deep"])
def test_the_included_models_take_features_with_the_names_of_their_layers(model):
    names = ("linear", "trees", "output", "words_of_note", "flatten", "add", "one_hot", "get_item")
    features = {name: Feature(name=name, dtype="int64", categories=3) for name in names}
    features["note"] = Feature(name="note", dtype="int64", shape=(4,), categories=300)
    assert build_model(f"slipway.components.trainer.models.{model}.build_model", features, {}).built


def test_digest_of_a_model_is_of_what_it_imports(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shops", raising=False)  # that of this test in another folder
    files = {
        "shops/__init__.py": "",
        "shops/model.py": "from shops import layers\nimport shop_tools\n",
        "shops/layers.py": "",
        "shops/other.py": "",
        "shop_tools.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    before = source_digest("shops.model.build_model")
    for name, counts in {"shops/other.py": False, "shops/layers.py": True, "shop_tools.py": True}.items():
        (tmp_path / name).write_text("X = 1\n", encoding="utf-8")
        assert (source_digest("shops.model.build_model") != before) is counts, name
        (tmp_path / name).write_text("", encoding="utf-8")
    installed = tmp_path / "shops-1.0.dist-info/RECORD"
    installed.parent.mkdir()
    installed.write_text("shops/model.py,sha256=x,1\n", encoding="utf-8")
    before = source_digest("shops.model.build_model")
    (tmp_path / "shops/other.py").write_text("X = 1\n", encoding="utf-8")
    assert source_digest("shops.model.build_model") != before
