"""A SavedModel answers by the same name whether a model answers a tensor, a list of one or a dict of one."""

import json
import os
import re

import pytest

from slipway.components.python_process import ForkedProcess

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

# In a process of its own: this one has other threads of TensorFlow's.
EXPORT = """
def main(arguments):
    import json
    import tensorflow as tf
    from slipway.components.errors import ComponentError
    from slipway.components.trainer.saved_model_export import ServedModel, named_answers
    from slipway.components.trainer.features import Feature

    graph = tf.Module()
    graph.transform_fn = tf.function(lambda raw: {**raw}, input_signature=[{"x": tf.TensorSpec([None, 1])}])
    tf.saved_model.save(graph, arguments[0])

    class Transform:
        transform_savedmodel_dir = arguments[0]

        def raw_feature_spec(self):
            return {"x": tf.io.FixedLenFeature([1], tf.float32)}

    def branch(row):
        if row[0] > 0:
            return row
        return -row

    feature = Feature(name="x", dtype="float32", shape=(1,), categories=None)
    answers = {
        "tensor": lambda x: x, "list": lambda x: [x], "dict": lambda x: {"tip": x},
        "named": lambda x: {"a": x, "b": x}, "pair": lambda x: (x, x), "map": lambda x: tf.map_fn(branch, x),
    }
    told = {}
    for name, answer in answers.items():
        model = lambda inputs, training: answer(inputs["x"])
        try:
            served = ServedModel(
                model=model, transform=Transform(), features={"x": feature}, serving_columns=["x"]
            )
            told[name] = sorted(served._signatures["serving_default"].structured_outputs)
        except TypeError as error:
            told[name] = str(error)
    types = {"a": tf.bfloat16, "b": tf.int32}
    half = lambda inputs, training: {name: tf.cast(inputs["x"], each) for name, each in types.items()}
    served = ServedModel(model=half, transform=Transform(), features={"x": feature}, serving_columns=["x"])
    outputs = served._signatures["serve_raw"].structured_outputs
    told["half"] = {name: each.dtype.name for name, each in outputs.items()}
    together = lambda inputs, training: tf.concat([inputs["x"], -inputs["x"]], 1)
    served = ServedModel(
        model=together, transform=Transform(), features={"x": feature}, serving_columns=["x"],
        label=["sport", "music"],
    )
    answers = served._serve_raw({"x": tf.constant([[1.0], [2.0]])})
    told["labels"] = {name: answer.numpy().tolist() for name, answer in answers.items()}
    two = {"a": tf.ones([4, 1]), "b": tf.ones([4, 1])}
    for name, answers in {"narrow": tf.ones([4, 2]), "two": two}.items():
        try:
            named_answers(answers, ["sport", "music", "art"])
        except TypeError as error:
            told[name] = str(error)
    import keras

    class Apart:
        def __init__(self):
            self.layer = keras.layers.Dense(1, name="apart")

    class Lost(keras.Model):
        def __init__(self, kept):
            super().__init__()
            self.kept = kept
            self.unkept = Apart()

        def call(self, inputs):
            return (self.kept[0] if self.kept else self.unkept.layer)(inputs["x"])

    for name, kept in {"owned": [keras.layers.Dense(1)], "lost": []}.items():
        model = Lost(kept)
        model({"x": tf.ones([1, 1])})
        served = ServedModel(
            model=model, transform=Transform(), features={"x": feature}, serving_columns=["x"]
        )
        try:
            served.save(f"{arguments[0]}-{name}")
            told[name] = ""
        except ComponentError as error:
            told[name] = error.message
    class Noise(keras.layers.Layer):
        def __init__(self, **options):
            super().__init__(**options)
            self.seed_generator = keras.random.SeedGenerator()

        def call(self, x):
            return x + keras.random.normal(keras.ops.shape(x), seed=self.seed_generator)

    def noisy(layer, last="ones", **options):
        x = keras.Input((1,), name="x")
        last = keras.layers.Dense(1, kernel_initializer=last)
        model = keras.Model({"x": x}, last(layer(x, **options)))
        return ServedModel(model=model, transform=Transform(), features={"x": feature}, serving_columns=["x"])

    for last in ("ones", "zeros"):
        try:
            noisy(Noise(name="noise"), last=last)
        except ComponentError as error:
            told[f"noisy {last}"] = error.message
    steps = keras.Input((1,), name="x")
    last = keras.layers.LSTM(3, dropout=0.2)(keras.layers.Reshape((1, 1))(steps))
    recurrent = keras.Model({"x": steps}, keras.layers.Dense(1)(last))
    served = ServedModel(
        model=recurrent, transform=Transform(), features={"x": feature}, serving_columns=["x"]
    )
    served.save(f"{arguments[0]}-recurrent")
    ask = tf.saved_model.load(f"{arguments[0]}-recurrent").signatures["serve_raw"]
    differ = [abs(ask(x=tf.ones([9, 1]))["outputs"] - recurrent({"x": tf.ones([9, 1])})) for _ in range(3)]
    told["recurrent"] = float(max(tf.reduce_max(each) for each in differ)) < 1e-6
    served = noisy(keras.layers.Dropout(0.5), training=True)
    served.save(f"{arguments[0]}-dropout")
    ask = tf.saved_model.load(f"{arguments[0]}-dropout").signatures["serve_raw"]
    told["dropout"] = len({str(ask(x=tf.ones([9, 1]))["outputs"].numpy()) for _ in range(3)})
    def normalised(data):
        layer = keras.layers.Normalization(name="norm")
        layer.adapt(data)
        x = keras.Input((1,), name="x")
        return keras.Model({"x": x}, layer(x))

    trained, model = (normalised(tf.constant(data)) for data in ([[3.0], [5.0]], [[0.0], [1.0]]))
    served = ServedModel(model=model, transform=Transform(), features={"x": feature}, serving_columns=["x"])
    trained.save_weights(f"{arguments[0]}.weights.h5")
    model.load_weights(f"{arguments[0]}.weights.h5")
    served.save(f"{arguments[0]}-normalised")
    ask = tf.saved_model.load(f"{arguments[0]}-normalised").signatures["serve_raw"]
    told["normalised"] = ask(x=tf.constant([[4.0], [6.0]]))["outputs"].numpy().tolist()
    graph = tf.Module()
    lists = tf.SparseTensorSpec([None, None])
    first = lambda raw: {"x": tf.sparse.to_dense(tf.sparse.slice(raw["x"], [0, 0], [2, 2]), -1.0)}
    graph.transform_fn = tf.function(first, input_signature=[{"x": lists}])
    tf.saved_model.save(graph, f"{arguments[0]}-lists")

    class Lists:
        transform_savedmodel_dir = f"{arguments[0]}-lists"

        def raw_feature_spec(self):
            return {"x": tf.io.VarLenFeature(tf.float32)}

    two = Feature(name="x", dtype="float32", shape=(2,), categories=None)
    served = ServedModel(
        model=lambda inputs, training: inputs["x"], transform=Lists(), features={"x": two},
        serving_columns=["x"], list_columns=["x"],
    )
    nan = float("nan")
    answered = served._signatures["serve_raw"](x=tf.constant([[nan, 5.0], [7.0, nan]]))["outputs"]
    told["gap"] = [[str(value) for value in row] for row in answered.numpy().tolist()]
    print(json.dumps(told))
    return 0
"""


def test_one_answer_has_one_name_however_it_comes_and_several_need_names(tmp_path, warm):
    (tmp_path / "export_answers.py").write_text(EXPORT, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = ForkedProcess(warm._line, "export_answers", [str(tmp_path / "transform")], environment)
    with process.stdout:
        told = process.stdout.read()
    assert process.wait() == 0
    found = json.loads(told.splitlines()[-1])
    assert found.pop("labels") == {"sport": [[1.0], [2.0]], "music": [[-1.0], [-2.0]]}
    one = "but transform.label names 3 columns as one label: return one tensor [rows, 3]"
    assert found.pop("narrow") == f"the model returns [4, 2], {one}"
    assert found.pop("two") == f"the model returns [4, 1], [4, 1], {one}"
    assert found.pop("pair").startswith("the model returns 2 tensors without names"), "not AutoGraph's words"
    assert found.pop("map") == ["outputs"], "AutoGraph converts what a user's layer gives to TensorFlow"
    assert re.match(
        r"the model computes with \S+/(kernel|bias), which belongs to none of its", found.pop("lost")
    )
    assert found.pop("owned") == ""
    for each in ("noisy ones", "noisy zeros"):
        assert found.pop(each).startswith("the model draws random numbers while it answers (noise), so")
    assert found.pop("normalised") == [[0.0], [2.0]], "the mean and variance are those of the loaded weights"
    assert found.pop("recurrent"), "an LSTM draws the masks of its dropout, and uses them in training alone"
    assert found.pop("half") == {"a": "float32", "b": "int32"}, "no reader of answers knows bfloat16"
    assert found.pop("gap") == [["nan", "5.0"], ["7.0", "-1.0"]], "as in training; padding is at the end"
    assert found.pop("dropout") == 1, "a model is asked with training=False, whatever a layer was called with"
    assert found == {"tensor": ["outputs"], "list": ["outputs"], "dict": ["outputs"], "named": ["a", "b"]}
