"""A SavedModel takes its columns by their own names, whatever stands in these."""

import json
import subprocess
import sys
import textwrap

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

NAMES = [
    "class", "lambda", "self", "self_", "cls", "name", "args", "2019", "1st visit", "_farbe", "größe",
    "Größe", "a b", "a.b", "a,b", "a_b", "A_b", "/x", "%", "年", "😀", "column_000001", '"quoted"',
    "Mean Radius\t(mm)",
]  # fmt: skip

# In a process of its own: this one has other threads of TensorFlow's.
EXPORT = """
    import json, sys
    from pathlib import Path
    import numpy as np
    import tensorflow as tf
    from components.saved_model.loading import LoadedModel
    from components.trainer.export import ServedModel
    from components.trainer.features import Feature

    folder, names = sys.argv[1], json.loads(sys.argv[2])

    class Transform:
        def raw_feature_spec(self):
            kinds = [tf.io.FixedLenFeature([1], tf.float32), tf.io.VarLenFeature(tf.float32)]
            return {name: kinds[index % 2] for index, name in enumerate(names)}

        def transform_features_layer(self):
            def layer(raw):
                dense = lambda x: tf.sparse.to_dense(x) if isinstance(x, tf.SparseTensor) else x
                # Each column has a digit of its own in the answer.
                digits = [tf.cast(dense(raw[n]), tf.float64) * 2.0**i for i, n in enumerate(names)]
                return {"x": tf.add_n(digits)}
            return layer

    feature = Feature(name="x", dtype="float32", shape=(1,), categories=None)
    model = lambda inputs, training: inputs["x"]
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
"""


def test_a_model_is_asked_by_the_names_of_its_columns_whatever_stands_in_them(tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(EXPORT), str(tmp_path / "model"), json.dumps(NAMES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {name: 2.0**index for index, name in enumerate(NAMES)}
