"""Boosted trees and a linear model, for tables: numbers, categories and texts to a class or a number.

scikit-learn's HistGradientBoosting fits the trees in seconds, on the CPU; a TensorFlow graph walks them when
the model is evaluated and served. The number of trees and the share of the linear model are found on held-out
rows of the train split: effects with few rows, or that add up, are left to the linear model. The words and
pairs of words of a text go to the linear model; the trees see what they add up to.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import keras
import numpy as np

from slipway.components.errors import ComponentError
from slipway.components.trainer.boosting.arrays import in_the_middle, laid_out, words_of
from slipway.components.trainer.boosting.growing import Grown, Growth, HeldOut, grow
from slipway.components.trainer.boosting.layer import TextScores, Trees
from slipway.components.trainer.boosting.matrix import BENDS, merge_rounding_duplicates
from slipway.components.trainer.boosting.texts import TEXTS, columns_with_texts, fit_texts, texts_of
from slipway.components.trainer.custom_fit import Rows
from slipway.components.trainer.features import Feature
from slipway.components.trainer.models.head import finish_scores, free_name, outputs_of


@dataclass(frozen=True)
class Hyperparameters:
    """The hyperparameters that `train.hyperparameters` may set.

    Attributes:
        classes: the number of classes of the label, >= 2; None: the label is a number.
        max_rounds: most rounds of boosting; each grows one tree, or one per class for more than two classes.
        max_trees: room for trees; with many classes it allows fewer rounds.
        patience_rounds: rounds without a lower loss on held-out rows after which growing stops.
        learning_rate: the factor of each tree's answer, above 0.
        max_leaves: most leaves of a tree, >= 2.
        max_depth: greatest depth of a tree, >= 1.
        min_leaf_rows: fewest rows of a leaf, >= 1.
        linear_rows: with more rows than this, no linear model is tried, unless one of two classes has less
            than a twentieth of this.
        held_out: "rows": single rows, or whole groups if rows have any (`Rows.groups`); "blocks": blocks of
            neighbours in the files, if neighbouring rows belong to one person or one time, and must not be
            split between fitting and judging.
    """

    classes: int | None = 2
    max_rounds: int = 400
    max_trees: int = 4000
    patience_rounds: int = 30
    learning_rate: float = 0.1
    max_leaves: int = 31
    max_depth: int = 12
    min_leaf_rows: int = 20
    linear_rows: int = 20_000
    held_out: HeldOut = "rows"


def build_model(features: Mapping[str, Feature], hyperparameters: Mapping[str, Any]) -> keras.Model:
    """Return the compiled model without a tree; `fit` grows them. See `head.finish` for its outputs.

    Args:
        features: the model's inputs by name. Integers without a known number of categories count as numbers,
            and so do categories of more than 255. A feature with several of more than 255 categories per row
            is the words of a text, as `slipway.components.trainer.ngrams.hashed_ngrams` makes them.
        hyperparameters: fields of `Hyperparameters`; missing ones keep their defaults.

    Raises:
        ComponentError: a feature is an image, or `classes` or `held_out` is wrong.
    """
    settings = Hyperparameters(**hyperparameters)
    if settings.held_out not in get_args(HeldOut):
        raise ComponentError(
            f"train.hyperparameters.held_out is {settings.held_out!r}, but must be 'rows' or 'blocks'",
            hint="blocks if neighbouring rows share a person or a time; otherwise rows",
        )
    outputs = outputs_of(settings.classes)
    columns = columns_with_texts(features, outputs)
    inputs = {
        name: keras.Input(feature.shape, dtype=feature.model_dtype, name=name)
        for name, feature in features.items()
    }
    told = dict(inputs)
    if texts := texts_of(features):
        told[TEXTS] = _sum(
            [
                TextScores(
                    outputs=outputs,
                    codes=features[name].categories or 0,
                    name=free_name(_layer(name), features),
                )(inputs[name])
                for name in texts
            ]
        )
    flat = [keras.layers.Flatten()(told[name]) for name in columns.features]
    matrix = _joined([keras.ops.cast(each, "float32") for each in flat])
    coded = len(columns.categories)
    hot = [
        keras.ops.one_hot(keras.ops.cast(matrix[:, place], "int32"), count)
        for place, count in enumerate(columns.categories)
    ]
    numbers = [matrix[:, coded:]] if coded < len(columns.names) else []
    if columns.bent and TEXTS not in told:
        beyond = keras.layers.Dense(
            columns.bent * BENDS,
            activation="relu",
            kernel_initializer="zeros",
            dtype="float32",
            name=free_name("bends", features),
        )
        numbers.append(beyond(numbers[0]))
    linear = keras.layers.Dense(outputs, dtype="float32", name=free_name("linear", features))
    trees = Trees(
        outputs=outputs,
        coded=coded,
        max_trees=_max_rounds(settings) * outputs,
        max_leaves=settings.max_leaves,
        words=words_of(columns),
        dtype="float32",
        name=free_name("trees", features),
    )
    scores = keras.layers.Add()([linear(_joined([*hot, *numbers])), trees(matrix)])
    return finish_scores(inputs, scores, classes=settings.classes)


def fit(model: keras.Model, rows: Rows, hyperparameters: Mapping[str, Any]) -> None:
    """Grow the trees and fit the linear model; the trainer calls this instead of taking steps.

    Raises:
        ComponentError: the rows cannot be learned from.
    """
    settings = Hyperparameters(**hyperparameters)
    outputs, growth = outputs_of(settings.classes), _growth(settings, rows)
    labels = _labels(rows, settings.classes)
    mean, deviation = 0.0, 1.0
    # The average row weighs 1: scikit-learn's regularisation is in units of a row.
    weights = None if rows.weights is None else rows.weights / np.mean(rows.weights, dtype=np.float64)
    if settings.classes is None:
        mean, deviation = float(labels.mean()), float(labels.std()) or 1.0
    scaled = (labels - mean) / deviation
    columns, values, linear_fit = columns_with_texts(rows.features, outputs), rows.values, None
    if texts_of(rows.features):
        rows.tell("words and pairs of words")
        found = fit_texts(rows.features, rows.values, scaled, growth, weights)
        values, linear_fit = {**rows.values, TEXTS: found.answers}, found.linear
        for name, words in found.words.items():
            model.get_layer(free_name(_layer(name), rows.features)).learn(words, found.kernels[name])
    matrix = columns.matrix(values)
    for place in range(len(columns.categories), matrix.shape[1]):
        matrix[:, place] = merge_rounding_duplicates(matrix[:, place])
    grown = grow(matrix, scaled, columns, growth, weights=weights, linear=linear_fit, tell=rows.tell)
    linear = model.get_layer(free_name("linear", rows.features))
    kernel = np.zeros(linear.kernel.shape)
    if grown.linear is not None:
        kernel[: len(grown.linear[0])] = (1 - grown.share) * deviation * grown.linear[0]
    linear.kernel.assign(kernel)
    if grown.bends is not None:  # relu(number - bend)
        each = np.repeat(np.eye(columns.bent), BENDS, axis=1)
        model.get_layer(free_name("bends", rows.features)).set_weights([each, -grown.bends.reshape(-1)])
    linear.bias.assign(deviation * grown.offsets(outputs) + mean)
    if grown.trees is not None:
        forest = laid_out(grown, columns, outputs=outputs, max_leaves=settings.max_leaves)
        model.get_layer(free_name("trees", rows.features)).plant(
            in_the_middle(forest, matrix), factor=deviation
        )
    rows.tell(_words(grown))


def _labels(rows: Rows, classes: int | None) -> Any:
    """Return the label of each row, float64 [rows].

    Raises:
        ComponentError: a row has several, or one that is not among the classes: the scores of another class
            would be overwritten.
    """
    if rows.labels.size != len(rows.labels):
        raise ComponentError(
            f"the label is {list(rows.labels.shape[1:])} numbers a row, but boosted trees predict one",
            hint="return the code of the class, or the number, from preprocessing_fn",
        )
    labels = rows.labels.reshape(-1).astype(np.float64)
    if classes is None:
        if not (is_number := np.isfinite(labels)).all():
            raise ComponentError(
                f"the label is {labels[~is_number][0]:g} in a row of the train split, and boosted trees "
                "predict numbers",
                hint="leave out rows without a label, or look at what preprocessing_fn computes it from (a "
                "logarithm or a division)",
            )
        return labels
    known = (labels >= 0) & (labels < classes) & (labels == np.floor(labels))
    if not known.all():
        raise ComponentError(
            f"the label is {labels[~known][0]:g} in a row of the train split, but "
            f"train.hyperparameters.classes is {classes}: the codes of classes are 0 to {classes - 1}",
            hint="set classes to their number, or to null where the label is a number; or check the codes "
            "that preprocessing_fn gives the classes (-1 is that of a value that is not in a vocabulary, or "
            "not in CLASSES of a preprocessing.py that `new` wrote)",
        )
    return labels


def _words(grown: Grown) -> str:
    rounds = f"{grown.trees.n_iter_} rounds of boosted trees" if grown.trees is not None else ""
    if not grown.share:
        return "a linear model alone: trees beside it did not predict the held-out rows better"
    return rounds if grown.linear is None else f"{rounds}, {grown.share:.0%}, and a linear model"


def _growth(settings: Hyperparameters, rows: Rows) -> Growth:
    return Growth(
        classes=settings.classes,
        max_rounds=_max_rounds(settings),
        patience_rounds=settings.patience_rounds,
        learning_rate=settings.learning_rate,
        max_leaves=settings.max_leaves,
        max_depth=settings.max_depth,
        min_leaf_rows=settings.min_leaf_rows,
        linear_rows=settings.linear_rows,
        held_out=settings.held_out,
        groups=rows.groups,
        seed=rows.seed,
    )


def _max_rounds(settings: Hyperparameters) -> int:
    return max(1, min(settings.max_rounds, settings.max_trees // outputs_of(settings.classes)))


def _layer(text: str) -> str:
    return f"words_of_{text}"


def _sum(parts: list[Any]) -> Any:
    return keras.layers.Add()(parts) if len(parts) > 1 else parts[0]


def _joined(parts: list[Any]) -> Any:
    return keras.layers.Concatenate()(parts) if len(parts) > 1 else parts[0]
