"""The digits' file: scikit-learn's images, all of them, in the layout of Keras' MNIST file."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from workloads.digits.make_data import DIGITS_FILE, digits_arrays


@pytest.fixture(scope="module")
def kept():
    with np.load(DIGITS_FILE) as arrays:
        return {name: arrays[name] for name in arrays.files}


def test_script_makes_the_file_of_the_repository_again(kept):
    made = digits_arrays()
    assert made.keys() == kept.keys()
    for name, array in made.items():
        np.testing.assert_array_equal(array, kept[name], strict=True)


def test_layout_is_that_of_keras_mnist_file(kept):
    assert {name: (array.shape, str(array.dtype)) for name, array in kept.items()} == {
        "x_train": ((1442, 28, 28), "uint8"),
        "y_train": ((1442,), "uint8"),
        "x_test": ((355, 28, 28), "uint8"),
        "y_test": ((355,), "uint8"),
    }
    assert kept["x_train"].max() == 255


def test_no_image_and_no_shade_is_lost(kept):
    digits = load_digits()
    images = np.concatenate([kept["x_train"], kept["x_test"]])[:, 2:-2:3, 2:-2:3]
    small = np.rint(images * (16 / 255)).reshape(-1, 64)
    labels = np.concatenate([kept["y_train"], kept["y_test"]])
    there = np.column_stack([small, labels])
    wanted = np.column_stack([digits.data, digits.target])
    np.testing.assert_array_equal(there[np.lexsort(there.T)], wanted[np.lexsort(wanted.T)])


def test_every_digit_is_in_the_test_part_alike(kept):
    counts = np.bincount(kept["y_test"], minlength=10)
    assert counts.min() >= 34
    assert counts.max() <= 36
