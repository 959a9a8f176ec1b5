"""The reference models on small tables."""

from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from slipway.components.errors import ComponentError
from slipway.components.reference_models import fit
from slipway.components.reference_models.fit import (
    Table,
    answers_of,
    label_of,
    require_labels,
    rows_that_count,
)

# scikit-learn calls SciPy with options that SciPy will drop.
pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")


@pytest.fixture(autouse=True)
def in_one_thread():
    """Threads of OpenMP wait for each other by spinning, which takes the cores of the tests beside these."""
    with threadpool_limits(1):
        yield


def table(task, rows=400, seed=0):
    drawn = np.random.default_rng(seed)
    number = drawn.normal(size=(rows, 1)).astype(np.float32)
    code = drawn.integers(0, 3, size=(rows, 1))
    score = number[:, 0] + 2.0 * (code[:, 0] == 1)
    labels = {"two": score > 0.5, "three": np.digitize(score, [0, 1]), "numbers": score}[task]
    return Table({"number": number, "code": code}, {"code": 3}, np.asarray(labels, np.float64))


@pytest.mark.parametrize("name", ["logistic", "boosted_trees"])
@pytest.mark.parametrize(("task", "outputs"), [("two", 1), ("three", 3)])
def test_classes_are_learned_and_probabilities_come_back(name, task, outputs):
    answers = answers_of(name, "classes", table(task), table(task, seed=1), seed=1)
    assert answers.shape == (400, outputs)
    held_out = table(task, seed=1).labels
    guess = answers.argmax(axis=1) if outputs > 1 else (answers[:, 0] > 0.5)
    assert (guess == held_out).mean() > 0.9
    assert answers.min() >= 0
    assert answers.max() <= 1


@pytest.mark.parametrize("name", ["logistic", "boosted_trees"])
def test_numbers_are_learned(name):
    held_out = table("numbers", seed=1)
    answers = answers_of(name, "numbers", table("numbers"), held_out, seed=1)
    assert answers.shape == (400, 1)
    assert np.mean((answers[:, 0] - held_out.labels) ** 2) < 0.2 * held_out.labels.var()


@pytest.mark.parametrize(
    ("task", "labels", "found"),
    [
        ("numbers", [1.5, np.nan, np.nan, 2], "the label 'fare' is nan in 2 of 4 rows of the split eval"),
        ("numbers", [1.5, np.inf], "the label 'fare' is inf in 1 of 2 rows"),
        ("classes", [1, np.nan], "the label 'fare' is nan in 1 of 2 rows"),
        ("classes", [0, 0.25, 1], "the label 'fare' is 0.25 in 1 of 3 rows"),
        ("classes", [-2, 0, 1], "the label 'fare' is -2 in 1 of 3 rows"),
    ],
)
def test_label_that_scikit_learn_does_not_take_is_told_in_words(task, labels, found):
    with pytest.raises(ComponentError) as refused:
        require_labels(np.array(labels), "fare", task, "eval")
    assert refused.value.message.startswith(found)
    assert "evaluate.baselines" in refused.value.message


@pytest.mark.parametrize(
    ("task", "labels"),
    [("numbers", [-1.5, 2.0]), ("classes", np.array([0, 2, -1])), ("classes", [0.0, 1.0])],
)
def test_labels_that_it_takes_are_left_as_they_are(task, labels):
    require_labels(np.asarray(labels), "fare", task, "train")


def test_rows_of_weight_0_are_left_out_whatever_their_label():
    columns = {"x": np.array([[1], [2], [3]]), "y": np.array([[0.0], [np.nan], [1.0]])}
    weights = np.array([[2.0], [0.0], [1.0]])
    kept, weighing = rows_that_count({**columns, "w": weights}, "w")
    assert {name: values.tolist() for name, values in kept.items()} == {"x": [[1], [3]], "y": [[0.0], [1.0]]}
    assert weighing.tolist() == [2.0, 1.0]
    same, none = rows_that_count(columns, "")
    assert list(same) == ["x", "y"]
    assert none is None


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0])
def test_weight_that_weighs_nothing_sensible_is_told_in_words(wrong):
    with pytest.raises(ComponentError, match=f"the weight w of a row is {wrong:g}; weights must be finite"):
        rows_that_count({"x": np.ones((2, 1)), "w": np.array([[1.0], [wrong]])}, "w")


@pytest.mark.parametrize("name", ["logistic", "boosted_trees"])
def test_the_unit_of_the_weights_does_not_matter(name):
    plain, weights = table("two"), np.random.default_rng(2).uniform(0.5, 2.0, 400)
    answers = [
        answers_of(name, "classes", replace(plain, weights=weights * unit), table("two", seed=1), seed=1)
        for unit in (1.0, 2.0**-20)
    ]
    np.testing.assert_allclose(*answers, atol=1e-5)


@pytest.mark.parametrize("name", ["logistic", "boosted_trees"])
def test_hashed_words_of_a_text_are_left_out_instead_of_a_column_each(name):
    def with_words(plain):
        words = np.random.default_rng(3).integers(0, 2**18, size=(len(plain.labels), 9))
        return Table({**plain.columns, "words": words}, {**plain.categories, "words": 2**18}, plain.labels)

    train, held_out = table("two"), table("two", seed=1)
    answers = answers_of(name, "classes", with_words(train), with_words(held_out), seed=1)
    np.testing.assert_array_equal(answers, answers_of(name, "classes", train, held_out, seed=1))
    alone = Table({"words": with_words(train).columns["words"]}, {"words": 2**18}, train.labels)
    assert len(np.unique(answers_of(name, "classes", alone, alone, seed=1))) == 1


@pytest.mark.parametrize("name", ["logistic", "boosted_trees"])
@pytest.mark.parametrize("only", [0.0, 1.0])
def test_a_label_that_every_row_has_or_none_is_answered_as_it_is(name, only):
    train = replace(table("two"), labels=np.full(400, only))
    assert (answers_of(name, "classes", train, table("two", seed=1), seed=1) == only).all()


def test_label_is_one_number_or_the_place_of_a_one():
    np.testing.assert_array_equal(label_of(np.array([[3.0], [0.5]]), "y", "numbers"), [3.0, 0.5])
    np.testing.assert_array_equal(label_of(np.array([[0, 0, 1], [1, 0, 0]]), "y", "classes"), [2, 0])
    for several in ([[1, 1], [0, 1]], [[0, 0], [0, 1]], [[2, 0], [0, 1]]):
        with pytest.raises(ComponentError, match="label 'y' has 2 numbers per row, but a reference"):
            label_of(np.array(several), "y", "classes")
    with pytest.raises(ComponentError, match="label 'y' has 2 numbers per row"):
        label_of(np.array([[0, 1], [1, 0]]), "y", "numbers")  # of which no class is asked


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_feature_that_a_linear_model_cannot_take_is_named(place, value):
    tables = [table("two", rows=40), table("two", rows=40, seed=1)]
    tables[place].columns["number"][[3, 5]] = value
    with pytest.raises(ComponentError, match=f"the feature number is {value:g} in 2 of 40 rows") as raised:
        answers_of("logistic", "classes", *tables, seed=1)
    assert "preprocessing_fn" in raised.value.hint


@pytest.mark.parametrize(("task", "kind"), [("two", "classes"), ("three", "classes"), ("numbers", "numbers")])
def test_many_categories_are_no_other_columns_to_a_linear_model(monkeypatch, task, kind):
    train, held_out = table(task), table(task, seed=1)
    dense = answers_of("logistic", kind, train, held_out, seed=1)
    monkeypatch.setattr(fit, "MOST_DENSE_CATEGORIES", 2)
    np.testing.assert_allclose(answers_of("logistic", kind, train, held_out, seed=1), dense, atol=2e-3)


def test_a_feature_of_many_categories_takes_no_square_of_them():
    def with_products(plain, seed):
        products = np.random.default_rng(seed).integers(0, 200_000, size=(len(plain.labels), 1))
        columns, categories = plain.columns, plain.categories
        return Table({**columns, "product": products}, {**categories, "product": 200_000}, plain.labels)

    train, held_out = with_products(table("two"), 5), with_products(table("two", seed=1), 6)
    answers = answers_of("logistic", "classes", train, held_out, seed=1)
    assert ((answers[:, 0] > 0.5) == held_out.labels).mean() > 0.9


@pytest.mark.parametrize("name", ["logistic", "boosted_trees"])
def test_no_class_is_not_taken_for_the_last_one(name):
    train, held_out = table("three"), table("three", seed=1)
    train = replace(train, labels=np.where(train.labels == 2, -1, train.labels))
    assert (answers_of(name, "classes", train, held_out, seed=1)[:, 2] == 0).all(), "no row taught it"
