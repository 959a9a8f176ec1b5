"""Row weights in training: rows of weight 0 have no effect, on every backend."""

from dataclasses import replace

import numpy as np
import pytest

from slipway.components.trainer.features import Feature
from slipway.components.trainer.settings.compute import ComputeSettings

pytestmark = pytest.mark.slow


@pytest.fixture
def spoiled(job, tmp_path):
    """The job with every second row's label spoiled, and a column `w` that is 0 there and 2 elsewhere."""
    import tensorflow as tf

    random, files = np.random.default_rng(5), []
    for split in ("train", "eval"):
        files.append(str(tmp_path / f"{split}.gz"))
        with tf.io.TFRecordWriter(files[-1], "GZIP") as writer:
            for row, x in enumerate(random.normal(size=(240, 16))):
                example = tf.train.Example()
                example.features.feature["x"].float_list.value.extend(x)
                example.features.feature["y"].float_list.value.append(1000.0 if row % 2 else x.sum())
                example.features.feature["w"].float_list.value.append(0.0 if row % 2 else 2.0)
                writer.write(example.SerializeToString())
    weight = Feature(name="w", dtype="float32")
    return replace(
        job, train_files=(files[0],), eval_files=(files[1],), features=(*job.features, weight), weight="w"
    )


@pytest.mark.parametrize("backend", ["tensorflow", pytest.param("jax", marks=pytest.mark.external)])
def test_rows_that_weigh_nothing_change_nothing(spoiled, train, request, backend):
    interpreter = request.getfixturevalue("jax_python") if backend == "jax" else None
    given = {name: getattr(spoiled, name) for name in ("train_files", "eval_files", "features", "weight")}
    compute = ComputeSettings(backend=backend)
    found = train(interpreter=interpreter, epochs=40, compute=compute, **given)
    last = found["history"][-1]
    assert last["loss"] < 4, "a spoiled row that counted would add half a million"
    assert last["val_loss"] < 4
    assert last["mae"] > 100, "metrics that are not weighted see all rows"
