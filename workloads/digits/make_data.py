"""Writes digits.npz: scikit-learn's handwritten digits in the layout and shape of Keras' MNIST file.

    python -m workloads.digits.make_data            # the file of the repository, again
    python -m workloads.digits.make_data other.npz

scikit-learn includes 1,797 images of 8x8 pixels with 16 shades of grey. Each pixel is repeated 3 times in
both directions, a border of 2 pixels is added, and the shades are scaled to 0..255. The result is 28x28
pixels of uint8, as in MNIST; no information is added or lost. So the same schema, preprocessing and model
work for this file and for the real MNIST.

The data: "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, 1998, UCI Machine Learning
Repository, doi 10.24432/C50P49, licence CC BY 4.0; scikit-learn has a copy of its test set, digits by 13
people.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

DIGITS_FILE = Path(__file__).with_name("digits.npz")
TEST_EVERY = 5
"""One image in five of each digit is for the test. All 13 writers are in both parts: a new one is harder."""

_SHADES = 16  # the shades in scikit-learn's images, in addition to white
_REPEATS, _BORDER = 3, 2


def digits_arrays() -> dict[str, np.ndarray[Any, np.dtype[np.uint8]]]:
    """Return x_train [N, 28, 28], y_train [N], x_test [M, 28, 28] and y_test [M]: uint8; N + M is 1,797."""
    digits = load_digits()
    shades = np.rint(digits.images * (255 / _SHADES)).astype(np.uint8)
    enlarged = shades.repeat(_REPEATS, axis=1).repeat(_REPEATS, axis=2)
    images = np.pad(enlarged, ((0, 0), (_BORDER, _BORDER), (_BORDER, _BORDER)))
    labels = digits.target.astype(np.uint8)
    is_test = np.zeros(len(labels), dtype=np.bool_)
    for digit in np.unique(labels):
        is_test[np.flatnonzero(labels == digit)[TEST_EVERY - 1 :: TEST_EVERY]] = True
    return {
        "x_train": images[~is_test],
        "y_train": labels[~is_test],
        "x_test": images[is_test],
        "y_test": labels[is_test],
    }


if __name__ == "__main__":
    np.savez_compressed(sys.argv[1] if len(sys.argv) > 1 else DIGITS_FILE, **digits_arrays())  # type: ignore[arg-type]
