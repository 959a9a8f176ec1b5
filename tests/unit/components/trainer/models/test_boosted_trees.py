"""Trees that scikit-learn grew give the same answers when a TensorFlow graph walks them."""

import numpy as np
import pytest
from rows_for_trees import (
    FEATURES,
    SMALL,
    WORDS,
    drawn_notes,
    drawn_values,
    growth_of,
    labels_of,
    told_by_words,
)

from slipway.components.errors import ComponentError
from slipway.components.trainer.boosting.arrays import in_the_middle, laid_out
from slipway.components.trainer.boosting.growing import grow, scores_of
from slipway.components.trainer.boosting.matrix import Columns, merge_rounding_duplicates
from slipway.components.trainer.custom_fit import Rows
from slipway.components.trainer.features import Feature
from slipway.components.trainer.models import boosted_trees

pytestmark = pytest.mark.filterwarnings("default")  # TensorFlow's own imports warn


@pytest.mark.parametrize("classes", [None, 2, 4])
def test_the_graph_answers_as_scikit_learn_does(classes):
    values = drawn_values(800)
    columns, growth = Columns.of(FEATURES), growth_of(classes)
    grown = grow(columns.matrix(values), labels_of(values, classes), columns, growth)
    model = boosted_trees.build_model(FEATURES, {"classes": classes, **SMALL})
    trees = model.get_layer("trees")
    trees.plant(laid_out(grown, columns, outputs=growth.outputs, max_leaves=31))

    new = drawn_values(300, seed=9)
    new["kind"][:20] = 69  # categories that no row trained on had
    new["zone"][5:30] = 3
    matrix = columns.matrix(new)
    walked = trees(matrix).numpy() + grown.offsets(growth.outputs)
    np.testing.assert_allclose(walked, scores_of(grown.trees, matrix, growth), atol=2e-5)


def test_what_rounding_changes_never_changes_the_answer():
    days = np.random.default_rng(5).integers(0, 40, 900)
    exact = np.sin(days * 0.15).astype(np.float32)
    other = np.nextafter(exact, np.float32(2))
    is_other = np.arange(900) % 2 == 1
    amounts = (exact + np.where(is_other, 0.5, 0.0)).astype(np.float32)  # as luck may have it
    features = {"season": Feature(name="season", dtype="float32")}
    rows = Rows(features, {"season": np.where(is_other, other, exact)[:, None]}, amounts, seed=1)
    model = boosted_trees.build_model(features, {"classes": None, **SMALL})
    boosted_trees.fit(model, rows, {"classes": None, **SMALL})
    trees = model.get_layer("trees")
    assert int(trees.size[0]) > 0
    answers = [
        trees(values[:, None]).numpy() for values in (exact, other, np.nextafter(exact, np.float32(-2)))
    ]
    assert (answers[0] == answers[1]).all()
    assert (answers[0] == answers[2]).all()


@pytest.mark.parametrize("classes", [None, 2, 3])
def test_it_learns_what_no_linear_model_does(classes):
    values = drawn_values(1500)
    labels = labels_of(values, classes)
    model = _fitted(values, labels, classes)
    new = drawn_values(300, seed=9)
    answers, truth = _asked(model, new), labels_of(new, classes)
    if classes is None:
        assert np.mean((answers[:, 0] - truth) ** 2) < 0.2 * np.var(truth)
    else:
        chosen = answers.argmax(axis=1) if classes > 2 else answers[:, 0] > 0.5
        assert np.mean(chosen == truth) > 0.8


@pytest.mark.parametrize("classes", [None, 2, 3])
def test_rows_that_weigh_nothing_change_nothing(classes):
    values = drawn_values(1500)
    labels, is_wrong = labels_of(values, classes), np.arange(1500) % 2 == 1
    labels[is_wrong] = labels.max() - labels[is_wrong]
    weights = np.where(is_wrong, 0.0, 2.0).astype(np.float32)
    new = drawn_values(300, seed=9)
    truth, losses = labels_of(new, classes), []
    for weighing in (weights, None):
        answers = _asked(_fitted(values, labels, classes, weights=weighing), new)
        chosen = answers.argmax(axis=1) if answers.shape[1] > 1 else answers[:, 0]
        losses.append(np.mean((chosen - truth.reshape(-1)) ** 2))
    assert losses[0] < 0.6 * losses[1]


def test_the_unit_of_the_weights_does_not_matter():
    values, new = drawn_values(600), drawn_values(100, seed=9)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 600).astype(np.float32)
    answers = [
        _asked(_fitted(values, labels_of(values, 2), 2, weights=weights * unit), new)
        for unit in (1.0, 2.0**-20)
    ]
    np.testing.assert_allclose(*answers, atol=1e-5)


def test_what_adds_up_is_left_to_the_linear_model():
    values = drawn_values(300)
    labels = 5.0 + 1e4 * (2 * values["size"] - values["pair"][:, :1])
    model = _fitted(values, labels, None)
    answers = _asked(model, values)
    assert np.mean((answers - labels) ** 2) < 1e-3 * np.var(labels)


@pytest.mark.parametrize("classes", [None, 2, 3])
def test_an_effect_that_is_high_at_both_ends_is_left_to_the_linear_model_too(classes):
    values, new = drawn_values(2000), drawn_values(2000, seed=9)
    model = _fitted(values, _high_at_both_ends(values, classes, seed=1), classes)
    answers = _asked(model, new)
    chances = answers[:, 0] if classes != 3 else answers @ np.arange(3)
    exact = _high_at_both_ends(new)
    assert np.corrcoef(np.log(chances / (1 - chances)) if classes == 2 else chances, exact)[0, 1] > 0.93


def _high_at_both_ends(values, classes=None, seed=None):
    """Return what adds up, or labels by it and chance."""
    amounts = 2 * np.abs(values["size"][:, 0]) + values["pair"] @ [1.0, -1.0] + (values["zone"][:, 0] == 1)
    if seed is None:
        return amounts
    amounts = amounts + np.random.default_rng(seed).logistic(size=len(amounts))
    return amounts if classes is None else np.digitize(amounts, [1.5, 4.0][: classes - 1])


def test_a_class_that_no_row_has_is_never_answered():
    values = drawn_values(400)
    labels = labels_of(values, 2) * 2  # 0 and 2 of four
    answers = _asked(_fitted(values, labels, 4), values)
    assert answers.shape == (400, 4)
    assert answers[:, [1, 3]].max() < 1e-3
    assert np.mean(answers.argmax(axis=1) == labels) > 0.8


def test_a_seed_gives_one_model():
    values = drawn_values(400)
    labels = labels_of(values, None)
    first, second = (_asked(_fitted(values, labels, None), values) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_weights_travel_in_keras_own_file(tmp_path):
    values = drawn_values(300)
    model = _fitted(values, labels_of(values, 2), 2)
    model.save_weights(tmp_path / "model.weights.h5")
    other = boosted_trees.build_model(FEATURES, {"classes": 2, **SMALL})
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(_asked(other, values), _asked(model, values))


def test_a_label_that_is_the_same_everywhere_is_refused():
    values = drawn_values(50)
    with pytest.raises(ComponentError, match="the same in every row"):
        _fitted(values, np.ones(50, np.float32), 2)


@pytest.mark.parametrize(
    ("classes", "wrong", "words"),
    [
        (3, 3.0, "is 3 in a row of the train split, but train.hyperparameters.classes is 3"),
        (3, -1.0, "is -1 in a row of the train split"),
        (2, 2.0, "the codes of classes are 0 to 1"),
        (3, 0.5, "is 0.5 in a row of the train split"),
        (3, np.nan, "is nan in a row of the train split"),
        (None, np.nan, "is nan in a row of the train split, and boosted trees predict numbers"),
        (None, -np.inf, "is -inf in a row of the train split"),
    ],
)
def test_a_label_that_is_no_number_or_none_of_the_classes_is_refused(classes, wrong, words):
    values = drawn_values(50)
    labels = labels_of(values, classes)
    labels[7] = wrong
    with pytest.raises(ComponentError, match=words):
        _fitted(values, labels, classes)


@pytest.mark.parametrize(("classes", "label"), [(3, -1), (3, np.nan), (None, np.nan), (None, 1e9)])
def test_label_of_a_row_that_weighs_nothing_does_not_matter(classes, label):
    values = drawn_values(200)
    labels, weights = labels_of(values, classes), np.ones(200, np.float32)
    weights[:5] = 0
    of_none, of_one = np.where(weights == 0, label, labels), np.where(weights == 0, 0, labels)
    np.testing.assert_array_equal(
        _asked(_fitted(values, of_none, classes, weights=weights), values),
        _asked(_fitted(values, of_one, classes, weights=weights), values),
    )


def test_labels_of_several_numbers_are_refused():
    values = drawn_values(50)
    rows = Rows(FEATURES, values, np.eye(3, dtype=np.float32)[np.arange(50) % 3], seed=1)
    model = boosted_trees.build_model(FEATURES, {"classes": 3, **SMALL})
    with pytest.raises(
        ComponentError, match=r"the label is \[3\] numbers a row, but boosted trees predict one"
    ):
        boosted_trees.fit(model, rows, {"classes": 3, **SMALL})


def test_a_feature_that_is_not_a_number_is_named():
    values = drawn_values(50)
    values["size"][3] = np.nan
    with pytest.raises(ComponentError, match="the feature size has values that are not finite"):
        Columns.of(FEATURES).matrix(values)


def test_images_are_refused():
    with pytest.raises(ComponentError, match="photo is an image"):
        Columns.of({"photo": Feature(name="photo", dtype="uint8", shape=(8, 8, 1))})


def test_numbers_that_repeat_are_answered_alike_however_they_are_rounded():
    """Of more than 255 different values scikit-learn takes quantiles of the rows as thresholds: values."""
    rng = np.random.default_rng(3)
    fares = np.round(rng.gamma(2.0, 5.0, 3000), 2)  # some prices, again and again
    matrix = merge_rounding_duplicates(np.log1p(rng.choice(fares, 3000)).astype(np.float32))[:, np.newaxis]
    labels = np.sin(9 * matrix[:, 0]) + rng.normal(size=3000)
    feature = {"size": FEATURES["size"]}
    columns, growth = Columns.of(feature), growth_of(None, max_rounds=30)
    grown = grow(matrix, labels, columns, growth)
    forest = laid_out(grown, columns, outputs=1, max_leaves=31)
    trees = boosted_trees.build_model(feature, {"classes": None, "max_rounds": 60}).get_layer("trees")

    def answers(of, forest):
        trees.plant(forest)
        return trees(of).numpy()

    otherwise = np.nextafter(np.nextafter(matrix, np.float32(9)), np.float32(9))
    assert (answers(otherwise, forest) != answers(matrix, forest)).any()
    settled_forest = in_the_middle(forest, matrix)
    np.testing.assert_array_equal(answers(matrix, settled_forest), answers(matrix, forest))
    np.testing.assert_array_equal(answers(otherwise, settled_forest), answers(matrix, forest))


@pytest.mark.parametrize("classes", [None, 2, 3])
def test_it_learns_what_stands_in_words(classes):
    values, new = drawn_notes(3000), drawn_notes(500, seed=9)
    model = _fitted(values, told_by_words(values, classes), classes, features=WORDS)
    answers, truth = _asked(model, new), told_by_words(new, classes)
    if classes is None:
        assert np.mean((answers[:, 0] - truth) ** 2) < 0.15 * np.var(truth)
    else:
        chosen = answers.argmax(axis=1) if classes > 2 else answers[:, 0] > 0.5
        assert np.mean(chosen == truth) > (0.85 if classes == 2 else 0.75)


def test_words_alone_are_enough():
    features = {"note": WORDS["note"]}
    values = {"note": drawn_notes(1000)["note"]}
    labels = np.random.default_rng(5).normal(size=1000)[values["note"]].sum(axis=1)
    answers = _asked(_fitted(values, labels, None, features=features), values)
    assert np.mean((answers[:, 0] - labels) ** 2) < 0.3 * np.var(labels)


def test_a_class_of_one_row_and_texts_without_a_word_are_no_obstacle():
    values = drawn_notes(100)
    values["title"][:] = 0
    labels = np.zeros(100)
    labels[0], labels[1:20] = 2, 1
    answers = _asked(_fitted(values, labels, 4, features=WORDS), values)
    assert np.isfinite(answers).all()
    assert answers[:, 3].max() < 0.01
    with pytest.raises(ComponentError, match="the same in every row"):
        _fitted(values, np.ones(100), 2, features=WORDS)


def _fitted(values, labels, classes, features=FEATURES, weights=None):
    settings = {"classes": classes, **SMALL}
    model = boosted_trees.build_model(features, settings)
    rows = Rows(
        features=features, values=values, labels=np.asarray(labels, np.float32), seed=1, weights=weights
    )
    boosted_trees.fit(model, rows.that_count(), settings)
    return model


def _asked(model, values):
    """The model's predictions; `predict` would first compile a function for each model."""
    return np.asarray(model(values))
