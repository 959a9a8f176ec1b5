"""The reference models on small tables."""

import numpy as np
import pytest

from components.reference_models.fit import Table, answers_of

# scikit-learn calls SciPy with options that SciPy will drop.
pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")


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
