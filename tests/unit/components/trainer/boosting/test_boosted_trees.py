"""Trees that scikit-learn grew give the same answers when a TensorFlow graph walks them."""

import numpy as np
import pytest

from components.errors import ComponentError
from components.trainer.boosting.arrays import floor32, laid_out, words_of
from components.trainer.boosting.growing import Growth, grow, loss_of, scores_of
from components.trainer.boosting.matrix import Columns
from components.trainer.features import Feature
from components.trainer.models import boosted_trees
from components.trainer.own_fit import Rows

pytestmark = pytest.mark.filterwarnings("default")  # TensorFlow's own imports warn

FEATURES = {
    "size": Feature(name="size", dtype="float32"),
    "pair": Feature(name="pair", dtype="float32", shape=(2,)),
    "kind": Feature(name="kind", dtype="int64", categories=70),
    "zone": Feature(name="zone", dtype="int64", categories=4),
    "shop": Feature(name="shop", dtype="int64", categories=400),
}
SMALL = {"max_rounds": 60, "patience_rounds": 10, "learning_rate": 0.3, "min_leaf_rows": 5}


def _values(rows, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "size": rng.normal(size=(rows, 1)).astype(np.float32),
        "pair": rng.normal(size=(rows, 2)).astype(np.float32),
        "kind": rng.integers(0, 60, (rows, 1)).astype(np.int32),
        "zone": rng.integers(0, 3, (rows, 1)).astype(np.int32),
        "shop": rng.integers(0, 400, (rows, 1)).astype(np.int32),
    }


def _amounts(values):
    """What trees find and no line does."""
    return (
        np.where(values["kind"] % 3 == 0, 3.0, -1.0) * np.sign(values["size"]) + values["zone"] ** 2
    ).astype(np.float32)


def _growth(classes, **changed):
    return Growth(
        **{
            "classes": classes, "max_rounds": 20, "patience_rounds": 10, "learning_rate": 0.3,
            "max_leaves": 31, "max_depth": 12, "min_leaf_rows": 5, "linear_rows": 0, "seed": 1, **changed,
        }
    )  # fmt: skip


def _labels(values, classes):
    amounts = _amounts(values)[:, 0]
    if classes is None:
        return amounts
    return np.digitize(amounts, np.quantile(amounts, np.arange(1, classes) / classes)).astype(np.float32)


@pytest.mark.parametrize("classes", [None, 2, 4])
def test_the_graph_answers_as_scikit_learn_does(classes):
    values = _values(800)
    columns, growth = Columns.of(FEATURES), _growth(classes)
    grown = grow(columns.matrix(values), _labels(values, classes), columns, growth)
    model = boosted_trees.build_model(FEATURES, {"classes": classes, **SMALL})
    trees = model.get_layer("trees")
    trees.plant(laid_out(grown, columns, outputs=growth.outputs, max_leaves=31))

    new = _values(300, seed=9)
    new["kind"][:20] = 69  # categories that no row trained on had
    new["zone"][5:30] = 3
    matrix = columns.matrix(new)
    walked = trees(matrix).numpy() + grown.offsets(growth.outputs)
    np.testing.assert_allclose(walked, scores_of(grown.trees, matrix, growth), atol=2e-5)


@pytest.mark.parametrize("classes", [None, 2, 3])
def test_it_learns_what_no_linear_model_does(classes):
    values = _values(1500)
    labels = _labels(values, classes)
    model = _fitted(values, labels, classes)
    new = _values(300, seed=9)
    answers, truth = model.predict(new, verbose=0), _labels(new, classes)
    if classes is None:
        assert np.mean((answers[:, 0] - truth) ** 2) < 0.2 * np.var(truth)
    else:
        chosen = answers.argmax(axis=1) if classes > 2 else answers[:, 0] > 0.5
        assert np.mean(chosen == truth) > 0.8


def test_what_adds_up_is_left_to_the_linear_model():
    values = _values(300)
    labels = 5.0 + 1e4 * (2 * values["size"] - values["pair"][:, :1])
    model = _fitted(values, labels, None)
    answers = model.predict(values, verbose=0)
    assert np.mean((answers - labels) ** 2) < 1e-3 * np.var(labels)


def test_a_class_that_no_row_has_is_never_answered():
    values = _values(400)
    labels = _labels(values, 2) * 2  # 0 and 2 of four
    answers = _fitted(values, labels, 4).predict(values, verbose=0)
    assert answers.shape == (400, 4)
    assert answers[:, [1, 3]].max() < 1e-3
    assert np.mean(answers.argmax(axis=1) == labels) > 0.8


def test_a_seed_gives_one_model():
    values = _values(400)
    labels = _labels(values, None)
    first, second = (_fitted(values, labels, None).predict(values, verbose=0) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_weights_travel_in_keras_own_file(tmp_path):
    values = _values(300)
    model = _fitted(values, _labels(values, 2), 2)
    model.save_weights(tmp_path / "model.weights.h5")
    other = boosted_trees.build_model(FEATURES, {"classes": 2, **SMALL})
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(other.predict(values, verbose=0), model.predict(values, verbose=0))


def test_a_label_that_is_the_same_everywhere_is_refused():
    values = _values(50)
    with pytest.raises(ComponentError, match="the same in every row"):
        _fitted(values, np.ones(50, np.float32), 2)


def test_a_feature_that_is_not_a_number_is_named():
    values = _values(50)
    values["size"][3] = np.nan
    with pytest.raises(ComponentError, match="the feature size has values that are no finite numbers"):
        Columns.of(FEATURES).matrix(values)


def test_images_are_refused():
    with pytest.raises(ComponentError, match="photo is an image"):
        Columns.of({"photo": Feature(name="photo", dtype="uint8", shape=(8, 8, 1))})


def test_many_classes_leave_room_for_fewer_rounds():
    model = boosted_trees.build_model(FEATURES, {"classes": 50, "max_trees": 200})
    assert model.get_layer("trees").max_trees == 200


def test_no_number_changes_its_side_of_a_rounded_threshold():
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    thresholds = (values.astype(np.float64) + np.nextafter(values, np.float32(9)).astype(np.float64)) / 2
    assert (values <= floor32(thresholds)).all()
    assert (np.nextafter(values, np.float32(9)) > floor32(thresholds)).all()


def test_losses_are_those_of_keras():
    scores, labels = np.array([[0.3], [-2.0]]), np.array([1.0, 0.0])
    chances = 1 / (1 + np.exp(-scores[:, 0]))
    assert loss_of(scores, labels, 2) == pytest.approx(-np.mean(np.log([chances[0], 1 - chances[1]])))
    assert loss_of(scores, labels, None) == pytest.approx((0.7**2 + 2**2) / 2)
    assert loss_of(np.array([[1.0, 2.0, 0.0]]), np.array([1.0]), 3) == pytest.approx(
        -2 + np.log(np.exp([1, 2, 0]).sum())
    )


def test_categories_take_as_many_words_as_the_largest_needs():
    assert words_of(Columns.of(FEATURES)) == 3
    assert words_of(Columns(names=("size",), categories=())) == 0


def _fitted(values, labels, classes):
    settings = {"classes": classes, **SMALL}
    model = boosted_trees.build_model(FEATURES, settings)
    rows = Rows(features=FEATURES, values=values, labels=np.asarray(labels, np.float32), seed=1)
    boosted_trees.fit(model, rows, settings)
    return model
