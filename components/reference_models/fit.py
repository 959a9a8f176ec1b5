"""Fits a reference model and lets it predict. Pure (NumPy and scikit-learn)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from slipway.components.errors import ComponentError
from slipway.components.reference_models import ReferenceModel

Task = Literal["classes", "numbers"]
MAX_TREE_CATEGORIES = 255
"""The most categories that HistGradientBoosting supports; a feature with more is treated as a number."""
MOST_DENSE_CATEGORIES = 1_000
"""With more columns for categories than this, a linear model takes them sparse: a dense table of 50,000 rows
and as many products would take 10 GB, and be copied."""


@dataclass(frozen=True)
class Table:
    """Examples as columns.

    Attributes:
        columns: float32 or integers [rows, size] by feature.
        categories: number of categories, counted from 0, of each categorical feature.
        labels: [rows]; class numbers from 0, or numbers.
        weights: [rows], the weight of each row, > 0; None: all rows count the same.
    """

    columns: Mapping[str, np.ndarray]
    categories: Mapping[str, int]
    labels: np.ndarray
    weights: np.ndarray | None = None


def rows_that_count(
    columns: Mapping[str, np.ndarray], weight: str
) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
    """Return the other columns and the weights, without rows of weight 0, whose label may be anything.

    Args:
        columns: [rows, size] each.
        weight: the column with the weight of each row; empty: all rows count the same.

    Raises:
        ComponentError: a weight is negative, infinite or not a number.
    """
    if not weight:
        return dict(columns), None
    weights = columns[weight][:, 0]
    is_wrong = ~(np.isfinite(weights) & (weights >= 0))
    if is_wrong.any():
        raise ComponentError(
            f"the weight {weight} of a row is {weights[is_wrong][0]:g}; weights must be finite and >= 0",
            hint="check transform.weight: what preprocessing_fn returns must be 0 or more in every row",
        )
    counts = weights != 0
    others = {name: values[counts] for name, values in columns.items() if name != weight}
    return others, weights[counts]


def label_of(column: np.ndarray, name: str, task: Task) -> np.ndarray:
    """Return the label of each row, [rows]; a one-hot vector becomes the number of its class.

    Args:
        column: [rows, size].
        task: whether labels are classes or numbers: then a vector is never a class.

    Raises:
        ComponentError: a row has a vector that is not one-hot.
    """
    if column.shape[1] == 1:
        return column[:, 0]
    if task == "numbers" or not ((np.count_nonzero(column, axis=1) == 1) & (column.max(axis=1) == 1)).all():
        raise ComponentError(
            f"label {name!r} has {column.shape[1]} numbers per row, but a reference model predicts one",
            hint="remove evaluate.baselines, or list a column for each label in transform.label",
        )
    classes: np.ndarray = column.argmax(axis=1)
    return classes


def require_labels(labels: np.ndarray, name: str, task: Task, split: str) -> None:
    """Check that scikit-learn can learn the labels of a split.

    Args:
        labels: [rows].
        name: of the label, for the message.
        task: whether labels are classes or numbers.

    Raises:
        ComponentError: one is NaN, as of a row that a loss masks, or infinite; or no class where there should
            be one. -1 is none of the classes.
    """
    unfit = ~np.isfinite(labels)
    wanted = "a number in each row"
    if task == "classes":
        unfit |= (labels != np.floor(labels)) | (labels < -1)
        wanted = "a class in each row, 0, 1, ..."
    if unfit.any():
        raise ComponentError(
            f"the label {name!r} is {labels[unfit][0]:g} in {unfit.sum():,} of {len(labels):,} rows of "
            f"the split {split}, and the reference models of evaluate.baselines need {wanted}",
            hint="remove evaluate.baselines, or give rows without a label the weight 0 in transform.weight",
        )


def answers_of(name: ReferenceModel, task: Task, train: Table, rows: Table, *, seed: int) -> np.ndarray:
    """Fit a model on `train` and predict `rows`.

    Args:
        name: `logistic` (for numbers: ridge regression on the same inputs) or `boosted_trees`, both with
            scikit-learn's default settings. Neither uses text features.
        task: whether labels are classes or numbers.
        train, rows: with the same columns.

    Returns:
        float32 [rows, 1], the probability of class 1 or the number; for more than two classes [rows,
        classes].

    Raises:
        ComponentError: `logistic` is asked for, and a feature is NaN or infinite; trees take both.
    """
    train, rows = _without_texts(train), _without_texts(rows)
    if name == "logistic":
        _require_finite(train, rows)
    if task == "classes" and np.unique(train.labels).size == 1 and train.labels[0] in (0, 1):
        # scikit-learn cannot fit a single class; one of several labels may be so rare that train has only
        # one.
        return np.full((len(rows.labels), 1), train.labels[0], np.float32)
    model, encode = _linear(task, train) if name == "logistic" else _trees(task, train, seed)
    last = model.steps[-1][0] + "__" if name == "logistic" else ""
    # The average row weighs 1, because scikit-learn's regularisation is in units of a row.
    weights = None if train.weights is None else train.weights / np.mean(train.weights, dtype=np.float64)
    model.fit(encode(train), train.labels, **{f"{last}sample_weight": weights})
    if task == "numbers":
        return np.asarray(model.predict(encode(rows)), np.float32)[:, None]
    found = model.predict_proba(encode(rows))
    classes = int(max(train.labels.max(), rows.labels.max(), 1)) + 1
    probabilities = np.zeros((len(found), classes), np.float32)
    known = model.classes_ >= 0  # -1 is none of the classes, and no place from the end
    probabilities[:, model.classes_[known].astype(int)] = found[:, known]
    return probabilities[:, 1:] if classes == 2 else probabilities


def _without_texts(table: Table) -> Table:
    """Drop features with several codes of a large vocabulary per row, such as hashed words.

    They would need as many one-hot columns as the vocabulary has words.
    """
    kept = {
        name: values
        for name, values in table.columns.items()
        if values.shape[1] == 1 or table.categories.get(name, 0) <= MAX_TREE_CATEGORIES
    }
    nothing = {"": np.zeros((len(table.labels), 1), np.float32)}
    return Table(kept or nothing, table.categories, table.labels, table.weights)


def _require_finite(*tables: Table) -> None:
    for table in tables:
        for name, values in table.columns.items():
            unfit = ~np.isfinite(values)
            if unfit.any():
                raise ComponentError(
                    f"the feature {name} is {values[unfit][0]:g} in {unfit.any(axis=1).sum():,} of "
                    f"{len(values):,} rows, and the reference model logistic needs numbers",
                    hint="fill it in preprocessing_fn; or leave logistic out of evaluate.baselines "
                    "(boosted_trees takes such rows)",
                )


def _linear(task: Task, train: Table) -> tuple[Any, Any]:
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = LogisticRegression(max_iter=1000) if task == "classes" else Ridge()
    sizes = {name: values.shape[1] for name, values in train.columns.items()}
    if sum(train.categories.get(name, 0) * size for name, size in sizes.items()) <= MOST_DENSE_CATEGORIES:
        return make_pipeline(StandardScaler(), model), _one_hot
    # Only numbers are centred, as zeros would not stay zeros; the intercept makes up for the others.
    means = {
        name: values.mean(axis=0, dtype=np.float64)
        for name, values in train.columns.items()
        if name not in train.categories
    }
    return make_pipeline(StandardScaler(with_mean=False), model), partial(_sparse_one_hot, means=means)


def _trees(task: Task, train: Table, seed: int) -> tuple[Any, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if task == "classes" else HistGradientBoostingRegressor
    flags = [
        0 < train.categories.get(name, 0) <= MAX_TREE_CATEGORIES
        for name in sorted(train.columns)
        for _ in range(train.columns[name].shape[1])
    ]
    return kind(random_state=seed, categorical_features=flags), _numbers


def _numbers(table: Table) -> np.ndarray:
    return np.concatenate([table.columns[name] for name in sorted(table.columns)], axis=1).astype(np.float32)


def _one_hot(table: Table) -> np.ndarray:
    parts = []
    for name in sorted(table.columns):
        values, count = table.columns[name], table.categories.get(name)
        if count is None:
            parts.append(values.astype(np.float32))
        else:
            codes = _codes(values, count)
            parts += [np.eye(count, dtype=np.float32)[codes[:, place]] for place in range(codes.shape[1])]
    return np.concatenate(parts, axis=1)


def _sparse_one_hot(table: Table, means: Mapping[str, np.ndarray]) -> Any:
    """Return the columns of `_one_hot` as SciPy's sparse matrix, numbers less their means."""
    from scipy import sparse

    parts = []
    for name in sorted(table.columns):
        values, count = table.columns[name], table.categories.get(name)
        if count is None:
            parts.append(sparse.csr_matrix((values - means[name]).astype(np.float32)))
        else:
            ones, ends = np.ones(len(values), np.float32), np.arange(len(values) + 1)
            parts += [
                sparse.csr_matrix((ones, codes, ends), shape=(len(values), count))
                for codes in _codes(values, count).T
            ]
    return sparse.hstack(parts, format="csr")


def _codes(values: np.ndarray, count: int) -> np.ndarray:
    """Return the codes of a feature, int64 [rows, size], within its categories."""
    found: np.ndarray = np.clip(values.astype(np.int64), 0, count - 1).reshape(len(values), -1)
    return found
