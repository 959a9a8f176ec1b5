"""The table of available metrics and their properties. Pure.

The names are those of `keras.metrics` in snake case, as far as TensorFlow Model Analysis computes them
without further arguments; `tests/integration/test_model_gate.py` compares the table with both.
"""

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower"]
Outputs = Literal["one", "classes", "quantiles", "ranks"]
Trivial = Literal[
    "majority_share",
    "chance",
    "variance",
    "deviation",
    "absolute_deviation",
    "entropy",
    "positive_share",
    "pinball_loss",
    "random_mean_reciprocal_rank",
    "random_ndcg",
    "random_ndcg_5",
    "random_ndcg_10",
]
Interval = Literal["proportion", "auc"]


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        class_name: the class that TensorFlow Model Analysis looks up; it has none for `quantiles` and
            `ranks`, which only our Evaluator computes.
        better: which values are better; None if neither is, e.g. a count.
        outputs: the output of the model that the metric needs: `one` number per row, one number for each of
            the `classes`, one for each of the `quantiles` in `evaluate.quantiles`, or one number that `ranks`
            the rows of a group; None: either of the first two. With the wrong output the libraries silently
            compute nonsense: `categorical_accuracy` of one output is always 1.
        trivial: the statistic of the labels that a constant answer, or a random order, scores; see
            `trivial.py`.
        interval: the formula of its confidence bounds; see `intervals.py`. None: they come from the spread
            that the Evaluator measures.
        at_most: the highest possible value, as for a share, an area or a cosine; None: there is no limit.
        at_least: the lowest possible value; None for a loss that takes logarithms, or whose labels need not
            be a share.
    """

    class_name: str
    better: Better | None
    outputs: Outputs | None = None
    trivial: Trivial | None = None
    interval: Interval | None = None
    at_most: float | None = None
    at_least: float | None = 0.0


OF_OUTPUT = "/"
"""Separates the name of an output from that of its metric, `sold/auc`, if a model has several outputs."""


def output_of(name: str) -> str:
    """Return the output that a metric belongs to; empty if the model has only one."""
    return name.rpartition(OF_OUTPUT)[0]


def plain_name(name: str) -> str:
    """Return a metric's name without the name of its output."""
    return name.rpartition(OF_OUTPUT)[2]


def of_output(output: str, name: str) -> str:
    """Return the full name of an output's metric."""
    return f"{output}{OF_OUTPUT}{name}" if output else name


def metric_of(name: str) -> "Metric":
    """Return the properties of a metric, by its name with or without an output's."""
    return METRICS[plain_name(name)]


METRICS = {
    "accuracy": Metric("Accuracy", "higher", "one", "majority_share", "proportion", at_most=1),
    "auc": Metric("AUC", "higher", None, "chance", "auc", at_most=1),
    "binary_accuracy": Metric("BinaryAccuracy", "higher", "one", "majority_share", "proportion", at_most=1),
    "binary_crossentropy": Metric("BinaryCrossentropy", "lower", "one", "entropy"),
    "categorical_accuracy": Metric(
        "CategoricalAccuracy", "higher", "classes", "majority_share", "proportion", at_most=1
    ),
    "categorical_hinge": Metric("CategoricalHinge", "lower", "classes"),
    "cosine_similarity": Metric("CosineSimilarity", "higher", at_most=1, at_least=-1),
    "f1_score": Metric("F1Score", "higher", at_most=1),
    "false_negatives": Metric("FalseNegatives", "lower"),
    "false_positives": Metric("FalsePositives", "lower"),
    "hinge": Metric("Hinge", "lower", "one"),
    "interval_coverage": Metric("IntervalCoverage", None, "quantiles", interval="proportion", at_most=1),
    "interval_width": Metric("IntervalWidth", "lower", "quantiles", at_least=None),
    "kl_divergence": Metric("KLDivergence", "lower", at_least=None),
    "log_cosh_error": Metric("LogCoshError", "lower", "one"),
    "mean_absolute_error": Metric("MeanAbsoluteError", "lower", "one", "absolute_deviation"),
    "mean_absolute_percentage_error": Metric("MeanAbsolutePercentageError", "lower", "one"),
    "mean_reciprocal_rank": Metric(
        "GroupReciprocalRank", "higher", "ranks", "random_mean_reciprocal_rank", at_most=1
    ),
    "mean_squared_error": Metric("MeanSquaredError", "lower", "one", "variance"),
    "mean_squared_logarithmic_error": Metric("MeanSquaredLogarithmicError", "lower", "one"),
    "ndcg": Metric("GroupNDCG", "higher", "ranks", "random_ndcg", at_most=1),
    "ndcg_5": Metric("GroupNDCG5", "higher", "ranks", "random_ndcg_5", at_most=1),
    "ndcg_10": Metric("GroupNDCG10", "higher", "ranks", "random_ndcg_10", at_most=1),
    "pinball_loss": Metric("PinballLoss", "lower", "quantiles", "pinball_loss"),
    "poisson": Metric("Poisson", "lower", "one", at_least=None),
    "precision": Metric("Precision", "higher", None, "positive_share", at_most=1),
    "quantile_crossing": Metric("QuantileCrossing", "lower", "quantiles", interval="proportion", at_most=1),
    "recall": Metric("Recall", "higher", at_most=1),
    "root_mean_squared_error": Metric("RootMeanSquaredError", "lower", "one", "deviation"),
    "sparse_categorical_accuracy": Metric(
        "SparseCategoricalAccuracy", "higher", "classes", "majority_share", "proportion", at_most=1
    ),
    "sparse_categorical_crossentropy": Metric("SparseCategoricalCrossentropy", "lower", "classes", "entropy"),
    "sparse_top_k_categorical_accuracy": Metric(
        "SparseTopKCategoricalAccuracy", "higher", "classes", None, "proportion", at_most=1
    ),
    "squared_hinge": Metric("SquaredHinge", "lower", "one"),
    "top_k_categorical_accuracy": Metric(
        "TopKCategoricalAccuracy", "higher", "classes", None, "proportion", at_most=1
    ),
    "true_negatives": Metric("TrueNegatives", "higher"),
    "true_positives": Metric("TruePositives", "higher"),
}
"""The metrics by their names in `evaluate.metrics`."""


def is_of_quantiles(name: str) -> bool:
    """Return True if a metric, with or without an output's name, needs answers that are quantiles."""
    return _outputs(name) == "quantiles"


def is_of_groups(name: str) -> bool:
    """Return True if a metric, with or without an output's name, measures ranks of rows in groups."""
    return _outputs(name) == "ranks"


def _outputs(name: str) -> Outputs | None:
    known = METRICS.get(plain_name(name))
    return known.outputs if known else None
