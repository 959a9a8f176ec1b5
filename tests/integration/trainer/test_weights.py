"""Row weights in training: rows of weight 0 have no effect, on every backend."""

import textwrap
from dataclasses import replace

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature
from slipway.components.trainer.settings.compute import ComputeSettings
from slipway.components.trainer.settings.input_cache import InputSettings

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked")]


@pytest.fixture
def spoiled(request, job, tmp_path):
    """The job with every second row's label spoiled, and a column `w` that is 0 there and 2 elsewhere.

    In a column `g`, four rows each are of one group.

    It is 1,000 there, or the fixture's parameter.
    """
    import tensorflow as tf

    random, files, wrong = np.random.default_rng(5), [], getattr(request, "param", 1000.0)
    for split in ("train", "eval"):
        files.append(str(tmp_path / f"{split}.gz"))
        with tf.io.TFRecordWriter(files[-1], "GZIP") as writer:
            for row, x in enumerate(random.normal(size=(240, 16))):
                example = tf.train.Example()
                example.features.feature["x"].float_list.value.extend(x)
                example.features.feature["y"].float_list.value.append(wrong if row % 2 else x.sum())
                example.features.feature["w"].float_list.value.append(0.0 if row % 2 else 2.0)
                example.features.feature["g"].int64_list.value.append(2**40 + row // 4)
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


TREES = "slipway.components.trainer.models.boosted_trees.build_model"


@pytest.mark.parametrize(
    ("spoiled", "model", "hyperparameters"),
    [(float("nan"), "tiny_model.build_model", {}), (float("inf"), TREES, {"classes": None})],
    indirect=["spoiled"],
)
def test_a_row_that_weighs_nothing_may_lack_its_label(spoiled, train, model, hyperparameters):
    given = {name: getattr(spoiled, name) for name in ("train_files", "eval_files", "features", "weight")}
    found = train(epochs=40, group="g", model=model, hyperparameters=hyperparameters, **given)
    last = found["history"][-1]
    assert last["loss"] < 4
    assert last["val_loss"] < 8


CLASSES = """
    import keras

    def build_model(features, hyperparameters):
        classes = hyperparameters["classes"]
        inputs = {"x": keras.Input((1,), name="x")}
        is_yes = classes == 2
        last = keras.layers.Dense(1 if is_yes else classes, activation="sigmoid" if is_yes else "softmax")
        model = keras.Model(inputs, last(inputs["x"]))
        model.compile("adam", "binary_crossentropy" if is_yes else "sparse_categorical_crossentropy")
        return model
"""


@pytest.fixture
def labelled(tmp_path):
    """Writes rows of the given labels and weights; returns what changes in the job."""
    import tensorflow as tf

    (tmp_path / "classes_model.py").write_text(textwrap.dedent(CLASSES))

    def write(labels, weights, **changes):
        with tf.io.TFRecordWriter(str(tmp_path / "rows.gz"), "GZIP") as writer:
            for row, (label, weight) in enumerate(zip(labels, weights, strict=True)):
                example = tf.train.Example()
                example.features.feature["x"].float_list.value.append(row / len(labels))
                example.features.feature["y"].int64_list.value.append(label)
                example.features.feature["w"].float_list.value.append(weight)
                writer.write(example.SerializeToString())
        of_two = (Feature(name="y", dtype="int64"), Feature(name="w", dtype="float32"))
        return {
            "train_files": (str(tmp_path / "rows.gz"),),
            "eval_files": (str(tmp_path / "rows.gz"),),
            "features": (Feature(name="x", dtype="float32"), *of_two),
            "weight": "w",
            "model": "classes_model.build_model",
            "hyperparameters": {"classes": 3},
            "batch_size": 20,
            "epochs": 1,
            **changes,
        }

    return write


@pytest.mark.parametrize("changes", [{}, {"input": InputSettings(cache="none")}, {"model": TREES}])
def test_a_row_that_weighs_nothing_may_have_a_label_that_no_class_has(labelled, train, changes):
    labels = [-1 if row % 4 == 0 else row % 3 for row in range(100)]
    weights = [float(label >= 0) for label in labels]
    found = train(**labelled(labels, weights, **changes))
    assert 0 < found["history"][-1]["val_loss"] < 2


@pytest.mark.parametrize("cache", ["memory", "file", "none"])
def test_a_label_that_the_loss_does_not_know_is_refused_where_its_row_weighs_something(
    labelled, train, cache
):
    given = labelled(
        [1, 2] * 50, [1.0, 0.5] * 50, hyperparameters={"classes": 2}, input=InputSettings(cache=cache)
    )
    with pytest.raises(
        ComponentError, match="the label y is 2 in a row of the train split, but binary_cross"
    ):
        train(**given)


def test_balanced_classes_train_as_rows_of_the_balanced_weights_do(labelled, train):
    labels = [0] * 60 + [1] * 30 + [2] * 10
    balanced = {0: 100 / (3 * 60), 1: 100 / (3 * 30), 2: 100 / (3 * 10)}
    by_row = labelled(labels, [balanced[label] for label in labels])
    x, label, _ = by_row["features"]
    unweighted = by_row | {"weight": None, "features": (x, label)}
    weighed, by_class, plain = (
        train(**given) for given in (by_row, unweighted | {"class_weights": "balanced"}, unweighted)
    )
    notes = [event["message"] for event in by_class["events"] if event["event"] == "note"]
    assert notes == ["classes weigh 0: 0.5556, 1: 1.111, 2: 3.333"]
    assert by_class["history"][0]["loss"] == pytest.approx(weighed["history"][0]["loss"], rel=1e-5)
    moved = 0.0
    for name, values in weighed["weights"].items():
        assert by_class["weights"][name] == pytest.approx(values, abs=1e-6), name
        moved = max(moved, float(np.abs(plain["weights"][name] - values).max()))
    assert moved > 1e-4, "without the weights it learns something else"
