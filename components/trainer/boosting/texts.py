"""Fits texts, as codes of words and pairs of words, in a linear model beside the other columns. Pure.

The codes are sparse: a row has a few dozen of some hundred thousand. A linear model takes all of them at
once, with TF-IDF weights, which trees cannot. The trees get what the linear model adds up from a row's words,
as numbers. So that these numbers are no better in training than later, those of a row come from a model that
has not seen the row.
"""

import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.trainer.boosting.growing import (
    Growth,
    LinearFit,
    Scores,
    Weights,
    loss_of,
    of_rows,
    part_of,
    require_two_values,
)
from slipway.components.trainer.boosting.matrix import Columns, Matrix, is_text
from slipway.components.trainer.devices.machine import usable_cores
from slipway.components.trainer.features import Feature

ROOM = 2**15
"""Most rows of a text's kernel: the first for codes not told apart, then one for each frequent code."""
STRENGTHS = (0.1, 1.0, 10.0)
"""Candidate weights of the data against the kernel's L2 penalty, compared on held-out rows."""
TEXTS = "~texts"
"""The name, among the features, of the numbers that a row's words add up to, one for each score."""
SURE_SCORE = 10.0
"""The score of a class that all rows have; negated, of a class that no row has."""
_PARTS, _FEW_PARTS, _MANY_ROWS = 5, 3, 20_000
_LEAST_ROWS = 2


@dataclass(frozen=True)
class Words:
    """The codes of a text column that the model distinguishes.

    Attributes:
        place: int32 [codes], each code's row in the kernel; 0: not distinguished.
        weight: float32 [rows of the kernel], the inverse document frequency, greater for rarer codes; 0 for
            the first row.
    """

    place: npt.NDArray[np.int32]
    weight: npt.NDArray[np.float32]

    @classmethod
    def of(cls, codes: npt.NDArray[Any], count: int) -> "Words":
        """Return the codes that occur in at least two rows, the most frequent first.

        Args:
            codes: [rows, codes per row]; 0 stands for none.
            count: the number of codes, 0 included.
        """
        ordered = np.sort(codes, axis=1)
        is_first = np.ones(ordered.shape, bool)
        is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        rows = np.bincount(ordered[is_first & (ordered > 0)], minlength=count)
        kept = np.argsort(-rows, kind="stable")[: ROOM - 1]
        kept = kept[rows[kept] >= _LEAST_ROWS]
        place, weight = np.zeros(count, np.int32), np.zeros(len(kept) + 1, np.float32)
        place[kept] = np.arange(1, len(kept) + 1)
        weight[1:] = np.log((1 + len(codes)) / (1 + rows[kept])) + 1
        return cls(place, weight)

    def matrix(self, codes: npt.NDArray[Any]) -> Any:
        """Return the weights of each row's codes, with squares that sum to 1: SciPy's [rows, kernel rows]."""
        from scipy import sparse

        places = self.place[codes]
        weights = self.weight[places].astype(np.float64)
        lengths = np.sqrt(np.sum(weights**2, axis=1, keepdims=True))
        is_known = places > 0
        ends = np.concatenate([[0], np.cumsum(is_known.sum(axis=1))])
        data = (weights / np.maximum(lengths, 1e-12))[is_known]
        found = sparse.csr_matrix((data, places[is_known], ends), shape=(len(codes), len(self.weight)))
        found.sum_duplicates()
        return found


@dataclass(frozen=True)
class TextFit:
    """A linear model of all columns.

    Attributes:
        words: by text.
        kernels: by text, float64 [rows of the kernel, outputs].
        answers: [rows, outputs], what each row's words add up to, by models that have not seen the row.
        columns: of the other features and, as numbers, of what the words add up to.
        linear: the whole model, on these columns.
    """

    words: Mapping[str, Words]
    kernels: Mapping[str, Scores]
    answers: Scores
    columns: Columns
    linear: LinearFit


def texts_of(features: Mapping[str, Feature]) -> list[str]:
    """Return the features that are texts."""
    return sorted(name for name, feature in features.items() if is_text(feature))


def columns_with_texts(features: Mapping[str, Feature], outputs: int) -> Columns:
    """Return the columns that trees see: numbers, categories, and the words' sum for each score."""
    others = {name: feature for name, feature in features.items() if not is_text(feature)}
    if len(others) < len(features):
        others[TEXTS] = Feature(name=TEXTS, dtype="float32", shape=(outputs,))
    return Columns.of(others)


def fit_texts(
    features: Mapping[str, Feature],
    values: Mapping[str, npt.NDArray[Any]],
    labels: npt.NDArray[Any],
    growth: Growth,
    weights: Weights = None,
) -> TextFit:
    """Fit the linear model, with the strength that suits held-out rows best.

    Args:
        features: at least one is a text.
        values: by feature, [rows, ...].
        labels: [rows], as `growing.grow` takes them.
        weights: [rows], the weight of each row; None: equal weights.

    Raises:
        ComponentError: the label is the same in every row.
    """
    require_two_values(labels)
    names, columns = texts_of(features), columns_with_texts(features, growth.outputs)
    words = {name: Words.of(values[name], features[name].categories or 0) for name in names}
    others = Columns.of({name: feature for name, feature in features.items() if name not in names})
    other, scale = scaled_others(others, values, len(labels))
    table = _joined([*(words[name].matrix(values[name]) for name in names), other])
    starts = np.cumsum([0, *(len(words[name].weight) for name in names)])
    width = int(starts[-1])
    part = part_of(labels, growth, count=_PARTS if len(labels) < _MANY_ROWS else _FEW_PARTS)
    answers, scores = np.zeros((2, len(labels), growth.outputs))
    first = _strengths(table, labels, part == 0, growth, weights)
    best = min(first, key=lambda each: first[each][0])
    for number in range(part.max() + 1):
        held = part == number
        kernel, bias = first[best][1]
        if number:
            kernel, bias = _fitted(table[~held], labels[~held], growth, best, of_rows(weights, ~held))
        answers[held] = table[held][:, :width] @ kernel[:width]
        scores[held] = table[held] @ kernel + bias
    kernel, bias = _fitted(table, labels, growth, best, weights)
    return TextFit(
        words=words,
        kernels={name: kernel[starts[at] : starts[at + 1]] for at, name in enumerate(names)},
        answers=answers,
        columns=columns,
        linear=LinearFit(_spread(kernel[width:] / scale[:, None], columns, growth.outputs), bias, scores),
    )


def _strengths(
    table: Any, labels: npt.NDArray[Any], held: npt.NDArray[np.bool_], growth: Growth, weights: Weights
) -> dict[float, tuple[float, tuple[Scores, Scores]]]:
    """Return, by strength, the loss of the held-out rows, and the model."""
    found = {}
    for strength in STRENGTHS:
        kernel, bias = _fitted(table[~held], labels[~held], growth, strength, of_rows(weights, ~held))
        scores, weighing = table[held] @ kernel + bias, of_rows(weights, held)
        found[strength] = loss_of(scores, labels[held], growth.classes, weighing), (kernel, bias)
    return found


def scaled_others(columns: Columns, values: Mapping[str, npt.NDArray[Any]], rows: int) -> tuple[Any, Scores]:
    """Return the other columns as the linear model takes them, sparse [rows, columns], and their divisors.

    Args:
        columns: without the texts.
        values: by feature, [rows, ...].
    """
    from scipy import sparse

    if not columns.names:
        return sparse.csr_matrix((rows, 0)), np.ones(0)
    matrix = columns.matrix(values)
    coded = len(columns.categories)
    deviation = matrix[:, coded:].std(axis=0, dtype=np.float64)
    least, greatest = matrix[:, coded:].min(axis=0), matrix[:, coded:].max(axis=0)
    is_flag = ((matrix[:, coded:] == least) | (matrix[:, coded:] == greatest)).all(axis=0)
    # A rare flag divided by its deviation would be huge where it is set.
    deviation = np.where(is_flag, greatest - least, deviation)
    deviation[deviation < 1e-12] = 1.0
    hot = [_hot(matrix[:, place], count) for place, count in enumerate(columns.categories)]
    numbers = sparse.csr_matrix(matrix[:, coded:] / deviation)
    return _joined([*hot, numbers]), np.concatenate([np.ones(sum(columns.categories)), deviation])


def _hot(codes: Matrix, count: int) -> Any:
    from scipy import sparse

    places = np.clip(codes.astype(np.int64), 0, count - 1)
    ends = np.arange(len(codes) + 1)
    return sparse.csr_matrix((np.ones(len(codes)), places, ends), shape=(len(codes), count))


def _joined(parts: Sequence[Any]) -> Any:
    from scipy import sparse

    return sparse.hstack(parts, format="csr")


def _fitted(
    table: Any, labels: npt.NDArray[Any], growth: Growth, strength: float, weights: Weights
) -> tuple[Scores, Scores]:
    """Return kernel [columns, outputs] and bias [outputs]; with several classes, each against all others."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression, Ridge

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # held-out rows judge the result
        warnings.simplefilter("ignore", DeprecationWarning)  # scikit-learn's own call of SciPy
        if growth.classes is None:
            ridge = Ridge(1 / strength, solver="sparse_cg", tol=1e-4).fit(table, labels, weights)
            return ridge.coef_[:, None], np.array([ridge.intercept_])
        kernel, bias = np.zeros((table.shape[1], growth.outputs)), np.full(growth.outputs, SURE_SCORE)

        def fit(output: int) -> None:
            is_class = labels == (1 if growth.outputs == 1 else output)
            if is_class.all() or not is_class.any():
                bias[output] *= 1 if is_class.any() else -1
                return
            model = LogisticRegression(C=strength, solver="liblinear", tol=1e-2).fit(table, is_class, weights)
            kernel[:, output], bias[output] = model.coef_[0], model.intercept_[0]

        # liblinear computes without Python's lock, and its primal solver draws no random numbers.
        with ThreadPoolExecutor(usable_cores()) as pool:
            list(pool.map(fit, range(growth.outputs)))
    return kernel, bias


def _spread(kernel: Scores, columns: Columns, outputs: int) -> Scores:
    """Return the kernel with rows for the words' sums, which go into the scores unchanged."""
    coded = sum(columns.categories)
    numbers = columns.names[len(columns.categories) :]
    found = np.zeros((coded + len(numbers), outputs))
    is_text = np.array([False] * coded + [name == TEXTS for name in numbers])
    found[~is_text], found[is_text] = kernel, np.eye(outputs)
    return found
