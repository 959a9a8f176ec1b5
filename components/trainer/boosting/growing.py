"""Grows the trees; held-out rows decide how many, and how much a linear model adds. Pure.

Each part of the rows is held out once from trees and a linear model that are fitted to the other parts. Trees
are added until the part's loss has not fallen for some rounds. Then both are fitted to all rows.
"""

import contextlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from slipway.components.errors import ComponentError
from slipway.components.trainer.boosting.matrix import BENDS, Columns, Matrix

Scores = npt.NDArray[np.float64]
Weights = npt.NDArray[np.float64] | None

HeldOut = Literal["rows", "blocks"]
BLOCKS = 50
"""Blocks of neighbours: enough to spread each part over all rows, few enough to separate few neighbours."""

ONE_THREAD_ROWS = 20_000
"""From this many rows on, all threads are used."""
STEP_ROUNDS = 10
"""Rounds to grow between two checks of the loss."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Candidate shares of the trees in the sum of trees and linear model."""
ABSENT_CLASS_SCORE = -10.0
"""Added to the lowest score, for a class that no training row has."""
_RIDGE_WEIGHT = 1.0
# Of the squared weight of a bend, in those of a slope: with few rows, many free bends follow chance.
_BEND_PENALTY = 10.0
# Of the squared weight of a category, which is 0 or 1. Scaled to variance 1, as numbers are, a rare one has
# as good as no penalty and follows its few rows. Held-out rows choose: the least suits categories that tell
# nearly all, the greatest many categories with few rows of a rare class each.
_CATEGORY_PENALTIES = (1.0, 10.0, 0.01)
# A leaf answers with the sum of its rows' gradients, divided by the sum of p (1 - p), where p is the class's
# share. With a rare class, one of its rows makes a small leaf far too sure, and the next trees overshoot
# further. XGBoost's default, lambda = 1, added to the divisor, prevents that.
_RARE_CLASS, _RARE_CLASS_DIVISOR = 0.05, 1.0
_MANY_ROWS = 5_000
# Numbers of the matrix that a linear model takes, beyond `linear_rows`: about 80 MB, and seconds a fit.
_LINEAR_NUMBERS = 10_000_000


@dataclass(frozen=True)
class Growth:
    """Settings for growing trees.

    Attributes:
        classes: the number of classes of the label, >= 2; None: the label is a number.
        max_rounds: most rounds of boosting; a round grows one tree, or one per class for more than two
            classes.
        patience_rounds: rounds without a lower loss after which growing stops.
        learning_rate: the factor of each tree's answer.
        linear_rows: with more rows than this, no linear model is tried, unless one of two classes has less
            than a twentieth of this.
        seed: of the choice of held-out parts.
        held_out: "rows": single rows; "blocks": blocks of neighbours, for neighbours of one person or one
            time, which would otherwise give away the held-out rows.
        groups: the number of each row's group, [rows]; of "rows", those of a group are held out together.
            None: there are no groups.
    """

    classes: int | None
    max_rounds: int
    patience_rounds: int
    learning_rate: float
    max_leaves: int
    max_depth: int
    min_leaf_rows: int
    linear_rows: int
    seed: int
    held_out: HeldOut = "rows"
    groups: npt.NDArray[Any] | None = None

    @property
    def outputs(self) -> int:
        """Scores per row: one for a number or two classes, else one for each class."""
        return 1 if self.classes is None or self.classes == 2 else self.classes


@dataclass(frozen=True)
class LinearFit:
    """A linear model that is already fitted.

    Attributes:
        kernel: [columns of `one_hot`, outputs].
        bias: [outputs].
        scores: [rows, outputs], each row's by a model that has not seen it.
    """

    kernel: Scores
    bias: Scores
    scores: Scores


@dataclass(frozen=True)
class Grown:
    """The fitted parts; the score of a row is share * trees + (1 - share) * linear.

    Attributes:
        trees: scikit-learn's HistGradientBoosting model, fitted to all rows; None: share is 0.
        present: the classes that the model knows; empty for a number.
        linear: kernel [columns of `one_hot`, then of `beyond` if there are bends; outputs] and bias
            [outputs]; None: share is 1.
        share: of the trees, 0 .. 1.
        losses: mean loss of the held-out rows, by share.
        bends: of the numbers in the linear model, [bent, BENDS]; None: their effects are straight.
    """

    trees: Any | None
    present: tuple[int, ...]
    linear: tuple[Scores, Scores] | None
    share: float
    losses: dict[float, float]
    bends: Matrix | None = None

    def answered(self, outputs: int) -> list[tuple[int, int, float]]:
        """Return for each score: its tree's index in a round, the score's index, and the tree's factor."""
        if outputs == 1:
            return [(0, 0, 1.0)]
        if len(self.present) == 2:  # scikit-learn grows one tree for two classes
            return [(0, self.present[0], -0.5), (0, self.present[1], 0.5)]
        return [(place, output, 1.0) for place, output in enumerate(self.present)]

    def offsets(self, outputs: int) -> Scores:
        """Return the offsets of all rows' scores, [outputs]: trees' baseline, linear bias, unseen classes."""
        linear = self.linear[1] if self.linear else np.zeros(outputs)
        begins = np.zeros(outputs)
        if self.trees is not None:
            begin = np.asarray(self.trees._baseline_prediction, np.float64).reshape(-1)
            for place, output, factor in self.answered(outputs):
                begins[output] = factor * begin[place]
        every = self.share * begins + (1 - self.share) * linear
        if outputs > 1:
            absent = np.ones(outputs, bool)
            absent[list(self.present)] = False
            every[absent] = every[~absent].min() + ABSENT_CLASS_SCORE
        return every


def grow(
    matrix: Matrix,
    labels: npt.NDArray[Any],
    columns: Columns,
    growth: Growth,
    *,
    weights: Weights = None,
    linear: LinearFit | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Grown:
    """Fit trees and a linear model.

    Args:
        matrix: [rows, columns], as `columns` makes it.
        labels: [rows]; class numbers, or numbers of about mean 0 and variance 1.
        weights: [rows], the weight of each row; None: equal weights.
        linear: the linear model if it is already fitted; None: it is fitted here.
        tell: receives a line of progress now and then.

    Raises:
        ComponentError: the label is the same in every row, or there are too few rows.
    """
    require_two_values(labels)
    with _threads_for(len(labels)):
        return _grown(matrix, labels, columns, growth, weights=weights, linear=linear, tell=tell)


def require_two_values(labels: npt.NDArray[Any]) -> None:
    """Reject labels that are all the same.

    Raises:
        ComponentError: all labels are the same.
    """
    if len(np.unique(labels)) < 2:
        raise ComponentError(
            "the label is the same in every row of the train split: there is nothing to learn",
            hint="check data.split, and what the label is made from",
        )


def _threads_for(rows: int) -> contextlib.AbstractContextManager[Any]:
    """Use one thread for few rows: to share out a small tree or product takes longer than to make it."""
    import sklearn.ensemble
    import sklearn.linear_model  # noqa: F401  only libraries that are loaded are limited
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1) if rows < ONE_THREAD_ROWS else contextlib.nullcontext()


def _grown(
    matrix: Matrix,
    labels: npt.NDArray[Any],
    columns: Columns,
    growth: Growth,
    *,
    weights: Weights,
    linear: LinearFit | None,
    tell: Callable[[str], None],
) -> Grown:
    with_linear = linear is not None or tries_linear(labels, columns, growth)
    tables, bends = [columns.one_hot(matrix)] if with_linear and linear is None else [], None
    # Blocks lie between others: they do not tell where an effect leads to, such as that of time.
    may_bend = growth.held_out == "rows" and len(labels) * columns.bent * BENDS <= _LINEAR_NUMBERS
    if tables and columns.bent and may_bend:
        bends = columns.bends(matrix)
        tables.append(np.hstack([tables[0], columns.beyond(matrix, bends)]))
    parts = held_out_parts(labels, growth)
    penalty = penalty_of_categories(tables[0], labels, columns, growth, parts, weights) if tables else 1.0
    rounds: list[int] = []
    shares = SHARES if with_linear else (1.0,)
    losses = {
        (place, share): np.zeros(len(labels)) for place in range(max(1, len(tables))) for share in shares
    }
    for number, held in enumerate(parts, 1):
        tell(f"part {number} of {len(parts)} is held out")
        kept = ~held
        count, scores = _rounds(matrix, labels, held, columns, growth, weights)
        rounds.append(count)
        others = [scores if linear is None else linear.scores[held]]
        if tables:
            weighing = of_rows(weights, kept)
            fitted = [
                _linear(table[kept], labels[kept], columns, growth, weighing, penalty) for table in tables
            ]
            others = [_linear_scores(each, table[held]) for each, table in zip(fitted, tables, strict=True)]
        for place, share in losses:
            mixed = share * scores + (1 - share) * others[place]
            losses[place, share][held] = _losses(mixed, labels[held], growth.classes)
    tried = np.logical_or.reduce(parts)
    judged, weighing = {each: lost[tried] for each, lost in losses.items()}, of_rows(weights, tried)
    chosen, share = least_loss(judged, weighing)
    tell(f"all rows, {round(np.mean(rounds))} rounds")
    model = None
    if share > 0:
        model = _trees(growth, columns, labels, rounds=max(1, round(np.mean(rounds))))
        model.fit(matrix, labels, sample_weight=weights)
    kernel = (linear.kernel, linear.bias) if linear is not None else None
    if share < 1 and tables:
        kernel = _linear(tables[chosen], labels, columns, growth, weights, penalty)
    return Grown(
        trees=model,
        present=() if growth.classes is None else tuple(int(each) for each in np.unique(labels)),
        linear=kernel if share < 1 else None,
        share=share,
        losses={each: _mean(judged[chosen, each], weighing) for each in shares},
        bends=bends if chosen and share < 1 else None,
    )


def tries_linear(labels: npt.NDArray[Any], columns: Columns, growth: Growth) -> bool:
    """Whether to try a linear model: for few rows, or few of one of two classes, which teach trees little."""
    if len(labels) <= growth.linear_rows:
        return True
    _, rows = np.unique(labels, return_counts=True)
    width = sum(columns.categories) + len(columns.names) - len(columns.categories)
    is_rare = growth.classes == 2 and rows.min() < _RARE_CLASS * growth.linear_rows
    return bool(is_rare) and len(labels) * width <= _LINEAR_NUMBERS


def penalty_of_categories(
    hot: Matrix,
    labels: npt.NDArray[Any],
    columns: Columns,
    growth: Growth,
    parts: Sequence[npt.NDArray[np.bool_]],
    weights: Weights = None,
) -> float:
    """Return the penalty of categories in the linear model that suits the held-out rows best.

    Args:
        hot: [rows, columns], as `columns.one_hot` makes it.
        parts: masks of the rows to hold out, [rows] each; of many rows the first suffices.
    """
    if not columns.categories:
        return 1.0
    if len(labels) >= _MANY_ROWS:
        parts = parts[:1]

    def lost(penalty: float) -> float:
        found = np.zeros(len(labels))
        for held in parts:
            kept = ~held
            fitted = _linear(hot[kept], labels[kept], columns, growth, of_rows(weights, kept), penalty)
            found[held] = _losses(_linear_scores(fitted, hot[held]), labels[held], growth.classes)
        return _mean(found, weights)

    return min(_CATEGORY_PENALTIES, key=lost)


def of_rows(weights: Weights, which: npt.NDArray[np.bool_]) -> Weights:
    """Return the weights of some rows; None: equal weights."""
    return None if weights is None else weights[which]


def least_loss(losses: Mapping[tuple[int, float], Scores], weights: Weights) -> tuple[int, float]:
    """Return the candidate of the least mean loss, bent only if that is lower by more than a standard error.

    The rule of one standard error: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees
    (1984), section 3.4.3. Among a few hundred rows the lower loss is often chance.

    Args:
        losses: of the held-out rows, [rows], by candidate: 1 if its effects bend, else 0; share of the trees.
    """

    def best_of(candidates: Iterable[tuple[int, float]]) -> tuple[int, float]:
        return min(candidates, key=lambda each: _mean(losses[each], weights))

    best, straight = best_of(losses), best_of(each for each in losses if not each[0])
    gains = losses[straight] - losses[best]
    gain, weighing = _mean(gains, weights), np.ones(len(gains)) if weights is None else weights
    return best if gain * weighing.sum() > np.linalg.norm(weighing * (gains - gain)) else straight


def loss_of(scores: Scores, labels: npt.NDArray[Any], classes: int | None, weights: Weights = None) -> float:
    """Return the mean loss of scores [rows, outputs].

    The loss is the squared error, or the cross-entropy in nats; 0 if no row has a weight.
    """
    return _mean(_losses(scores, labels, classes), weights)


def _mean(losses: Scores, weights: Weights) -> float:
    if weights is None:
        return float(np.mean(losses))
    return float(np.average(losses, weights=weights)) if weights.any() else 0.0


def _losses(scores: Scores, labels: npt.NDArray[Any], classes: int | None) -> Scores:
    found: Scores
    if classes is None:
        found = (scores[:, 0] - labels) ** 2
    elif scores.shape[1] == 1:
        signs = np.where(labels > 0, 1.0, -1.0)
        found = np.logaddexp(0.0, -signs * scores[:, 0])
    else:
        top = scores.max(axis=1, keepdims=True)
        norms = top[:, 0] + np.log(np.exp(scores - top).sum(axis=1))
        found = norms - scores[np.arange(len(scores)), labels.astype(np.int64)]
    return found


def held_out_parts(labels: npt.NDArray[Any], growth: Growth) -> list[npt.NDArray[np.bool_]]:
    """Return masks of the rows to hold out together; the more rows, the fewer parts.

    A part is passed over, and the next one held out in its place, if the other rows are all of one class:
    there is nothing to learn from them.

    Raises:
        ComponentError: there are too few rows.
    """
    rows = len(labels)
    count, times = (5, 5) if rows < _MANY_ROWS else (4, 2) if rows < 20_000 else (6, 1)
    part = part_of(labels, growth, count=count)
    parts = (part == number for number in range(count))
    found = list(islice((held for held in parts if held.any() and len(np.unique(labels[~held])) > 1), times))
    if not found:
        raise ComponentError(
            f"boosted trees learn from some rows and are judged by others; the train split has {rows} only",
            hint="train on more rows, or a network: train.model names it",
        )
    return found


def part_of(labels: npt.NDArray[Any], growth: Growth, *, count: int) -> npt.NDArray[np.int64]:
    """Assign the rows to `count` parts, [rows]: each class to all parts, or neighbours or groups to one."""
    rows, random = len(labels), np.random.default_rng(growth.seed)
    if growth.held_out == "blocks":
        blocks = min(BLOCKS, rows)
        return (random.permutation(blocks) % count)[np.arange(rows) * blocks // rows]
    if growth.groups is not None:
        found, group = np.unique(growth.groups, return_inverse=True)
        if len(found) >= count:
            return (random.permutation(len(found)) % count)[group]
    order = random.permutation(rows)
    if growth.classes is not None:
        order = order[np.argsort(labels[order], kind="stable")]
    part = np.empty(rows, np.int64)
    part[order] = np.arange(rows) % count
    return part


def _rounds(
    matrix: Matrix,
    labels: npt.NDArray[Any],
    held: npt.NDArray[np.bool_],
    columns: Columns,
    growth: Growth,
    weights: Weights,
) -> tuple[int, Scores]:
    """Return the best number of rounds for the held-out rows, and their scores [rows, outputs] after it."""
    model = _trees(growth, columns, labels, rounds=min(STEP_ROUNDS, growth.max_rounds))
    best, best_loss, scores = 0, np.inf, np.zeros((int(held.sum()), growth.outputs))
    while True:
        model.fit(matrix[~held], labels[~held], sample_weight=of_rows(weights, ~held))
        found = scores_of(model, matrix[held], growth)
        loss = loss_of(found, labels[held], growth.classes, of_rows(weights, held))
        if loss < best_loss:
            best, best_loss, scores = model.max_iter, loss, found
        if model.max_iter - best >= growth.patience_rounds or model.max_iter >= growth.max_rounds:
            return best, scores
        model.set_params(max_iter=min(model.max_iter + STEP_ROUNDS, growth.max_rounds))


def scores_of(model: Any, matrix: Matrix, growth: Growth) -> Scores:
    """Return the trees' scores [rows, outputs]; a class that the model does not know scores low."""
    if growth.classes is None:
        return np.asarray(model.predict(matrix), np.float64)[:, None]
    return _all_classes(model.decision_function(matrix), model.classes_, growth)


def _all_classes(found: Any, present: Any, growth: Growth) -> Scores:
    """Return scikit-learn's scores, [rows] for two classes or [rows, classes], by class number."""
    scores = np.asarray(found, np.float64)
    if growth.outputs == 1:
        return scores[:, None]
    if scores.ndim == 1:  # more than two classes, of which two are present
        scores = np.stack([-scores / 2, scores / 2], axis=1)
    every = np.full((len(scores), growth.outputs), scores.min() + ABSENT_CLASS_SCORE)
    every[:, np.asarray(present, np.int64)] = scores
    return every


def _trees(growth: Growth, columns: Columns, labels: npt.NDArray[Any], *, rounds: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if growth.classes is None else HistGradientBoostingClassifier
    return kind(
        learning_rate=growth.learning_rate,
        max_iter=rounds,
        max_leaf_nodes=growth.max_leaves,
        max_depth=growth.max_depth,
        min_samples_leaf=growth.min_leaf_rows,
        l2_regularization=_RARE_CLASS_DIVISOR if has_rare_class(labels, growth) else 0.0,
        categorical_features=list(range(len(columns.categories))) or None,
        early_stopping=False,
        warm_start=True,
        random_state=growth.seed,
    )


def has_rare_class(labels: npt.NDArray[Any], growth: Growth) -> bool:
    """Whether a class that occurs has fewer than one row in twenty."""
    if growth.classes is None:
        return False
    _, rows = np.unique(labels, return_counts=True)
    return bool(rows.min() < _RARE_CLASS * len(labels))


def _linear(
    hot: Matrix,
    labels: npt.NDArray[Any],
    columns: Columns,
    growth: Growth,
    weights: Weights,
    penalty: float,
) -> tuple[Scores, Scores]:
    """Return kernel and bias of ridge or logistic regression; fitted to scaled numbers, for unscaled ones.

    Args:
        hot: [rows, columns], as `columns.one_hot` makes it, then those of `columns.beyond` if effects bend.
        penalty: of the squared weight of a category, in those of a number's slope.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression, Ridge

    mean, scale = hot.mean(axis=0, dtype=np.float64), hot.std(axis=0, dtype=np.float64)
    coded = sum(columns.categories)
    scale[:coded] = penalty**0.5
    scale[scale < 1e-12] = 1.0
    scale[coded + len(columns.names) - len(columns.categories) :] *= _BEND_PENALTY**0.5
    model = Ridge(_RIDGE_WEIGHT) if growth.classes is None else LogisticRegression(max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # held-out rows judge the result
        warnings.simplefilter("ignore", DeprecationWarning)  # scikit-learn's own call of SciPy
        model.fit((hot - mean) / scale, labels, sample_weight=weights)
    weights = np.atleast_2d(model.coef_)
    kernel, bias = (weights / scale).T, np.atleast_1d(model.intercept_) - weights @ (mean / scale)
    if growth.outputs == 1:
        return kernel, bias
    if len(weights) == 1:  # more than two classes, of which two are present
        kernel, bias = np.hstack([-kernel / 2, kernel / 2]), np.hstack([-bias / 2, bias / 2])
    present = model.classes_.astype(np.int64)
    every = np.zeros((len(kernel), growth.outputs)), np.full(growth.outputs, bias.min() + ABSENT_CLASS_SCORE)
    every[0][:, present], every[1][present] = kernel, bias
    return every


def _linear_scores(linear: tuple[Scores, Scores], hot: Matrix) -> Scores:
    return hot @ linear[0] + linear[1]
