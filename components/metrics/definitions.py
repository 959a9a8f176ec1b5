"""The table of available metrics and their properties. Pure.

The names are those of `keras.metrics` in snake case, as far as TensorFlow Model Analysis computes them
without further arguments; `tests/integration/test_model_gate.py` compares the table with both.
"""

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower"]
Outputs = Literal["one", "numbers", "classes", "quantiles", "ranks"]
Trivial = Literal[
    "majority_share",
    "constant_auc",
    "variance",
    "deviation",
    "absolute_deviation",
    "entropy",
    "binary_entropy",
    "positive_share",
    "pinball_loss",
    "random_mean_reciprocal_rank",
    "random_ndcg",
    "random_ndcg_5",
    "random_ndcg_10",
]
_OF_CLASSES: tuple[Trivial, ...] = ("majority_share", "entropy", "binary_entropy")
"""Scores of constant answers to labels that are classes."""

Interval = Literal["proportion", "auc"]
Labels = Literal["one", "one_an_answer"]

Cells = tuple[int, int, int, int]
"""How often each cell of the confusion matrix counts: true positives, true negatives, false positives, false
negatives, in the order of `row_values.confusion`."""

_ALL: Cells = (1, 1, 1, 1)
_POSITIVES: Cells = (1, 0, 0, 1)
_NEGATIVES: Cells = (0, 1, 1, 0)


@dataclass(frozen=True)
class Confusion:
    """How a metric is computed from the confusion matrix at the threshold one half.

    Attributes:
        part: the cells that are counted.
        deciding: the rows that the value depends on: of a recall the positives.
        whole: the cells that the part is a share of; None: the value is a count.
    """

    part: Cells
    deciding: Cells
    whole: Cells | None = None

    @property
    def is_of_some_rows(self) -> bool:
        """Whether it is a share of rows of some kind, of which there may be none."""
        return self.whole is not None and 0 in self.whole


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        class_name: the class that TensorFlow Model Analysis looks up; it has none for `quantiles` and
            `ranks`, which only our Evaluator computes.
        better: which values are better; None if neither is, e.g. a count.
        outputs: the output of the model that the metric needs: `one` number per row, as many `numbers` as the
            label has, one number for each of the `classes`, one for each of the `quantiles` in
            `evaluate.quantiles`, or one number that `ranks` the rows of a group; None: one number, or one for
            each class. With the wrong output the libraries silently compute nonsense: `categorical_accuracy`
            of one output is always 1.
        trivial: the statistic of the labels that a constant answer, or a random order, scores; see
            `trivial_scores.py`.
        interval: the formula of its confidence bounds; see `interval_formulas.py`. None: they come from the
            spread that the Evaluator measures.
        at_most: the highest possible value, as for a share, an area or a cosine; None: there is no limit.
        at_least: the lowest possible value; None for a loss that takes logarithms, or whose labels need not
            be a share.
        confusion: how the metric is computed from the confusion matrix; None if it is not.
        is_curve: whether the metric needs the distributions of predictions for positives and for negatives.
        labels: the shape of the labels, if the metric takes only one: `one` number per row, or
            `one_an_answer`; None: any.
        skips_zeros: whether rows with the label 0 are left out.

    A metric that is computed neither from the confusion matrix nor from the curve has its formula in
    `row_values.py`, one of ranks in `evaluator/ranking.py`.
    """

    class_name: str
    better: Better | None
    outputs: Outputs | None = None
    trivial: Trivial | None = None
    interval: Interval | None = None
    at_most: float | None = None
    at_least: float | None = 0.0
    confusion: Confusion | None = None
    is_curve: bool = False
    labels: Labels | None = None
    skips_zeros: bool = False

    def is_better(self, value: float, *, than: float) -> bool:
        """Return True if a value is better than another one; never where neither side is, or one is NaN."""
        return value > than if self.better == "higher" else self.better == "lower" and value < than

    def fits(self, width: int, *, entries: int = 1) -> bool:
        """Return True if it applies to `width` numbers a row; on others it silently computes nonsense.

        The number of quantiles is not checked.

        Args:
            width: how many numbers the model answers for a row.
            entries: how many numbers the label of a row has.
        """
        match self.outputs:
            case "numbers":
                return width == entries
            case "classes":
                return width > 1
            case "one" | "ranks":
                return width == 1
        return True

    def needed_outputs(self, *, entries: int = 1) -> str:
        """Return in words which outputs it needs, for a label of so many numbers."""
        if self.outputs == "numbers" and entries > 1:
            return "one output for each number of the label"
        return "one output for each class" if self.outputs == "classes" else "one output"

    @property
    def needs_both_classes(self) -> bool:
        """Whether it says nothing of rows of one class, as an area or a share of the positives does."""
        return self.is_curve or (self.confusion is not None and self.confusion.is_of_some_rows)

    @property
    def is_of_some_rows(self) -> bool:
        """Whether only rows of some kind count, of which there may be none: for a precision a yes."""
        return self.skips_zeros or (self.confusion is not None and self.confusion.is_of_some_rows)

    @property
    def is_of_classes(self) -> bool:
        """Whether its labels are classes, not numbers."""
        is_yes_or_no = self.is_curve or self.confusion is not None
        return is_yes_or_no or self.outputs == "classes" or self.trivial in _OF_CLASSES

    @property
    def takes_probabilities(self) -> bool:
        """Whether it is one of probabilities; of other answers, as logits, it silently computes nonsense."""
        is_entropy = self.trivial in ("entropy", "binary_entropy") or self.class_name == "KLDivergence"
        return self.is_curve or self.confusion is not None or is_entropy

    @property
    def is_of_each_class(self) -> bool:
        """Whether answers for several classes are taken as a yes or no for each."""
        return self.outputs is None and (self.is_curve or self.confusion is not None)


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
    "accuracy": Metric(
        "Accuracy", "higher", "one", "majority_share", "proportion", at_most=1, labels="one_an_answer"
    ),
    "auc": Metric("AUC", "higher", None, "constant_auc", "auc", at_most=1, is_curve=True),
    "binary_accuracy": Metric(
        "BinaryAccuracy",
        "higher",
        "one",
        "majority_share",
        "proportion",
        at_most=1,
        confusion=Confusion(part=(1, 1, 0, 0), deciding=_ALL, whole=_ALL),
    ),
    "binary_crossentropy": Metric("BinaryCrossentropy", "lower", "one", "binary_entropy"),
    "categorical_accuracy": Metric(
        "CategoricalAccuracy", "higher", "classes", "majority_share", "proportion", at_most=1
    ),
    "categorical_hinge": Metric("CategoricalHinge", "lower", "classes"),
    "cosine_similarity": Metric("CosineSimilarity", "higher", at_most=1, at_least=-1),
    "f1_score": Metric(
        "F1Score",
        "higher",
        at_most=1,
        confusion=Confusion(part=(2, 0, 0, 0), deciding=_POSITIVES, whole=(2, 0, 1, 1)),
    ),
    "false_negatives": Metric(
        "FalseNegatives", "lower", confusion=Confusion(part=(0, 0, 0, 1), deciding=_POSITIVES)
    ),
    "false_positives": Metric(
        "FalsePositives", "lower", confusion=Confusion(part=(0, 0, 1, 0), deciding=_NEGATIVES)
    ),
    "hinge": Metric("Hinge", "lower", "one"),
    "interval_coverage": Metric("IntervalCoverage", None, "quantiles", interval="proportion", at_most=1),
    "interval_width": Metric("IntervalWidth", "lower", "quantiles", at_least=None),
    "kl_divergence": Metric("KLDivergence", "lower", at_least=None),
    "log_cosh_error": Metric("LogCoshError", "lower", "numbers"),
    "mean_absolute_error": Metric("MeanAbsoluteError", "lower", "numbers", "absolute_deviation"),
    "mean_absolute_percentage_error": Metric(
        "MeanAbsolutePercentageError", "lower", "numbers", skips_zeros=True
    ),
    "mean_reciprocal_rank": Metric(
        "GroupReciprocalRank", "higher", "ranks", "random_mean_reciprocal_rank", at_most=1
    ),
    "mean_squared_error": Metric("MeanSquaredError", "lower", "numbers", "variance"),
    "mean_squared_logarithmic_error": Metric("MeanSquaredLogarithmicError", "lower", "numbers"),
    "ndcg": Metric("GroupNDCG", "higher", "ranks", "random_ndcg", at_most=1),
    "ndcg_5": Metric("GroupNDCG5", "higher", "ranks", "random_ndcg_5", at_most=1),
    "ndcg_10": Metric("GroupNDCG10", "higher", "ranks", "random_ndcg_10", at_most=1),
    "pinball_loss": Metric("PinballLoss", "lower", "quantiles", "pinball_loss"),
    "poisson": Metric("Poisson", "lower", "numbers", at_least=None),
    "precision": Metric(
        "Precision",
        "higher",
        None,
        "positive_share",
        at_most=1,
        confusion=Confusion(part=(1, 0, 0, 0), deciding=(1, 0, 1, 0), whole=(1, 0, 1, 0)),
    ),
    "quantile_crossing": Metric("QuantileCrossing", "lower", "quantiles", interval="proportion", at_most=1),
    "recall": Metric(
        "Recall",
        "higher",
        at_most=1,
        confusion=Confusion(part=(1, 0, 0, 0), deciding=_POSITIVES, whole=_POSITIVES),
    ),
    "root_mean_squared_error": Metric("RootMeanSquaredError", "lower", "numbers", "deviation"),
    "sparse_categorical_accuracy": Metric(
        "SparseCategoricalAccuracy",
        "higher",
        "classes",
        "majority_share",
        "proportion",
        at_most=1,
        labels="one",
    ),
    "sparse_categorical_crossentropy": Metric(
        "SparseCategoricalCrossentropy", "lower", "classes", "entropy", labels="one"
    ),
    "sparse_top_k_categorical_accuracy": Metric(
        "SparseTopKCategoricalAccuracy", "higher", "classes", None, "proportion", at_most=1, labels="one"
    ),
    "squared_hinge": Metric("SquaredHinge", "lower", "one"),
    "top_k_categorical_accuracy": Metric(
        "TopKCategoricalAccuracy", "higher", "classes", None, "proportion", at_most=1
    ),
    "true_negatives": Metric(
        "TrueNegatives", "higher", confusion=Confusion(part=(0, 1, 0, 0), deciding=_NEGATIVES)
    ),
    "true_positives": Metric(
        "TruePositives", "higher", confusion=Confusion(part=(1, 0, 0, 0), deciding=_POSITIVES)
    ),
}
"""The metrics by their names in `evaluate.metrics`."""

BY_CLASS = {metric.class_name: metric for metric in METRICS.values()}
"""The metrics by the names of their classes."""

CONFUSION = {name: metric.confusion for name, metric in BY_CLASS.items() if metric.confusion is not None}
"""By the class of metric, how it is computed from the confusion matrix."""

OF_DEVIATIONS = {
    name
    for name, metric in BY_CLASS.items()
    if metric.trivial in ("variance", "deviation", "absolute_deviation")
}
"""Classes of metrics of which a constant answer's score is how far the labels are from their middle."""

CURVES = {name for name, metric in BY_CLASS.items() if metric.is_curve}
"""Classes of metrics that need the predictions' distribution."""


def is_of_quantiles(name: str) -> bool:
    """Return True if a metric, with or without an output's name, needs answers that are quantiles."""
    return _outputs(name) == "quantiles"


def is_of_groups(name: str) -> bool:
    """Return True if a metric, with or without an output's name, measures ranks of rows in groups."""
    return _outputs(name) == "ranks"


def _outputs(name: str) -> Outputs | None:
    known = METRICS.get(plain_name(name))
    return known.outputs if known else None
