"""A SavedModel takes its columns by their own names, whatever stands in these."""

import json
import os

import pytest

from slipway.components.python_process import ForkedProcess

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

NAMES = [
    "class", "lambda", "self", "self_", "cls", "name", "args", "2019", "1st visit", "_farbe", "größe",
    "Größe", "a b", "a.b", "a,b", "a_b", "A_b", "/x", "%", "年", "😀", "column_000001", '"quoted"',
    "Mean Radius\t(mm)",
]  # fmt: skip

# In a process of its own: this one has other threads of TensorFlow's.
EXPORT = """
def main(arguments):
    import json
    from pathlib import Path
    import keras
    import numpy as np
    import tensorflow as tf
    from slipway.components.saved_model.loading import LoadedModel
    from slipway.components.trainer.saved_model_export import ServedModel
    from slipway.components.trainer.features import Feature

    folder, names = arguments[0], json.loads(arguments[1])

    def transform_fn(raw):
        dense = lambda x: tf.sparse.to_dense(x) if isinstance(x, tf.SparseTensor) else x
        # Each column has a digit of its own in the answer.
        digits = [tf.cast(dense(raw[n]), tf.float64) * 2.0**i for i, n in enumerate(names)]
        return {"x": tf.add_n(digits)}

    kinds = [tf.TensorSpec([None, 1]), tf.SparseTensorSpec([None, None])]
    specs = {name: kinds[index % 2] for index, name in enumerate(names)}
    graph = tf.Module()
    graph.transform_fn = tf.function(transform_fn, input_signature=[specs], autograph=False)
    tf.saved_model.save(graph, folder + "-transform")

    class Transform:
        transform_savedmodel_dir = folder + "-transform"

        def raw_feature_spec(self):
            kinds = [tf.io.FixedLenFeature([1], tf.float32), tf.io.VarLenFeature(tf.float32)]
            return {name: kinds[index % 2] for index, name in enumerate(names)}

    feature = Feature(name="x", dtype="float32", shape=(1,), categories=None)
    x = keras.Input((1,), name="x", dtype="float64")
    model = keras.Model({"x": x}, x)
    settings = {"transform": Transform(), "features": {"x": feature}, "serving_columns": names}
    ServedModel(model=model, **settings).save(folder)
    loaded = LoadedModel(Path(folder))
    arguments = sorted(loaded.signatures["serve_raw"].inputs)
    found = {}
    for argument in arguments:
        one = {a: np.full([1, 1], float(a == argument), np.float32) for a in arguments}
        [answer] = loaded.call("serve_raw", one).values()
        found[argument] = float(answer[0, 0])
    print(json.dumps(found))
    return 0
"""


def test_a_model_is_asked_by_the_names_of_its_columns_whatever_stands_in_them(tmp_path, warm):
    (tmp_path / "export_with_names.py").write_text(EXPORT, encoding="utf-8")
    arguments = [str(tmp_path / "model"), json.dumps(NAMES)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = ForkedProcess(warm._line, "export_with_names", arguments, environment)
    with process.stdout:
        told = process.stdout.read()
    assert process.wait() == 0
    assert json.loads(told.splitlines()[-1]) == {name: 2.0**index for index, name in enumerate(NAMES)}
