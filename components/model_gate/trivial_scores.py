"""Scores of models without knowledge: always the majority, always the same number. Pure.

A threshold that such a score meets tests nothing, and a model that does not beat it has learned nothing.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from itertools import accumulate

from slipway.components.escaped_text import escaped, short
from slipway.components.metrics.definitions import METRICS, metric_of, plain_name
from slipway.components.model_gate.slice_names import slice_columns

LABEL_PREFIX = "label_"
"""Prefix of the label statistics among the Evaluator's metrics."""

DISTINCT_LABELS = 4096
"""If a slice has more distinct labels than this, they are a continuum and rounded, see `digits_of_labels`."""

_LEAST_DIGITS, _MOST_DIGITS = 3, 15
# The error of rounding a range to so many numbers adds at most a ten-thousandth to its variance.
_LEAST_ROUNDED = 100


@dataclass(frozen=True)
class LabelStatistics:
    """The labels of one slice.

    Attributes:
        rows: number of rows, > 0. If weights differ, it is the effective number, i.e. how many rows of equal
            weight tell as much: the squared sum of the weights divided by the sum of the squared weights (L.
            Kish, Survey Sampling, 1965).
        weight: total weight, > 0; the number of rows if every row weighs 1.
        count: number of labels, whatever their weights; a row with several labels counts each of them.
        positives, negatives: as `rows`, for the label 1 and for the label 0. They are computed separately:
            the weights of one class do not affect how certain the other's part of a value is.
        mean: mean of the labels; for labels 0 and 1 the share of ones.
        variance: mean squared distance from the mean.
        absolute_deviation: mean distance from the median.
        classes: number of distinct labels.
        majority: the most frequent label. Where a row has an answer for each class, `NO_CLASS` is none unless
            there is no other, since no answer is equal to it.
        majority_share: its share of the rows, 0 to 1.
        entropy: of the shares of the classes, in nats.
        pinball_loss: of always answering the labels' own quantiles; None if no quantiles are requested.
        constant_auc: the area under the curve of always answering how frequent each class is, if a row has
            several answers and an area or a precision is requested; else None.
        constant_precision: the precision of always answering only the most frequent class, in the same cases.
        entries: how many numbers a label has, if it is a vector; else None.
        entry_variance, entry_deviation: of labels that are vectors, `variance` and `absolute_deviation` of
            each entry by itself, and their mean over the entries; None if they were not counted. Those of all
            entries together are larger where the entries have other means: a model that always answers each
            one's mean has a smaller error.
        random_mean_reciprocal_rank, random_ndcg, random_ndcg_5, random_ndcg_10: the expected value if the
            rows of each group are in random order; None if it is not requested.
    """

    rows: float
    weight: float
    count: float
    positives: float
    negatives: float
    mean: float
    variance: float
    absolute_deviation: float
    classes: float
    majority: float
    majority_share: float
    entropy: float
    pinball_loss: float | None = None
    constant_auc: float | None = None
    constant_precision: float | None = None
    entries: float | None = None
    entry_variance: float | None = None
    entry_deviation: float | None = None
    random_mean_reciprocal_rank: float | None = None
    random_ndcg: float | None = None
    random_ndcg_5: float | None = None
    random_ndcg_10: float | None = None

    @classmethod
    def of_counts(
        cls,
        counts: Mapping[float, float],
        *,
        squares: Mapping[float, float] | None = None,
        count: float | None = None,
        quantiles: Sequence[float] = (),
        has_answer_for_each: bool = False,
    ) -> "LabelStatistics":
        """Build the statistics from counts or weights.

        Args:
            counts: the number of rows, or their weight, by label; at least one is > 0.
            squares: the sum of the squared weights, by label; None: every row weighs 1.
            count: of all labels, if rows have weights; None: every row weighs 1.
            quantiles: that a model predicts, each 0 to 1.
            has_answer_for_each: whether the labels are classes, and a row has an answer for each of them.
        """
        ordered = sorted((label, count) for label, count in counts.items() if count)
        rows = math.fsum(count for _, count in ordered)
        mean = math.fsum(label * count for label, count in ordered) / rows

        def effective_rows(*labels: float) -> float:
            weight = math.fsum(counts.get(label, 0.0) for label in labels)
            squared = math.fsum(squares.get(label, 0.0) for label in labels) if squares else 0.0
            return weight * weight / squared if squared else weight

        classes = [each for each in ordered if not has_answer_for_each or each[0] != NO_CLASS]
        majority, most = max(classes or ordered, key=lambda item: item[1])
        median = _weighted_quantile(ordered, rows, 0.5)
        return cls(
            rows=effective_rows(*(label for label, _ in ordered)),
            weight=rows,
            count=rows if count is None else count,
            positives=effective_rows(1.0),
            negatives=effective_rows(0.0),
            mean=mean,
            variance=math.fsum((label - mean) ** 2 * count for label, count in ordered) / rows,
            absolute_deviation=math.fsum(abs(label - median) * count for label, count in ordered) / rows,
            classes=float(len(ordered)),
            majority=majority,
            majority_share=most / rows,
            entropy=-math.fsum(count / rows * math.log(count / rows) for _, count in ordered),
            pinball_loss=_constant_pinball_loss(ordered, rows, quantiles) if quantiles else None,
        )

    def known(self) -> dict[str, float]:
        """Return the statistics that are not None, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_metrics(cls, metrics: Mapping[str, float]) -> "LabelStatistics | None":
        """Read the statistics from the Evaluator's metrics of a slice; return None if they lack any."""
        found = {
            each.name: metrics[LABEL_PREFIX + each.name]
            for each in fields(cls)
            if LABEL_PREFIX + each.name in metrics
        }
        if any(name not in found for name in ALWAYS):
            return None
        return cls(**found)

    @property
    def effective_share(self) -> float:
        """Average effective number of labels per label, 0 to 1: 1 if all weights are equal."""
        return min(self.rows / self.count, 1.0)

    @property
    def is_binary(self) -> bool:
        """Whether labels are 0 and 1, and both occur."""
        return self.classes == 2 and math.isclose(self.variance, self.mean * (1 - self.mean), abs_tol=1e-9)

    @property
    def squared_error(self) -> float | None:
        """The mean squared error of always answering the mean, of vectors each entry's; None: not known."""
        return self.variance if self.entries is None else self.entry_variance

    @property
    def absolute_error(self) -> float | None:
        """The same of always answering the median, and the mean absolute error."""
        return self.absolute_deviation if self.entries is None else self.entry_deviation

    @property
    def has_area_of_two_classes(self) -> bool:
        """Whether an area is that of one answer to labels 0 and 1, of which every constant has one half."""
        return self.is_binary and self.constant_auc is None

    @property
    def rows_by_class(self) -> tuple[int, int]:
        """`positives` and `negatives` of binary labels: both occur, so each is at least 1."""
        return max(round(self.positives), 1), max(round(self.negatives), 1)


ALWAYS = tuple(each.name for each in fields(LabelStatistics) if each.default is MISSING)
"""The statistics that every evaluation has."""


def digits_of_labels(labels: Collection[float]) -> int:
    """Return to how many digits labels of a continuum are rounded: three, or as many as leave 100 of them.

    To three digits all pressures around 101,300 Pa would be equal, and no model better than always the mean.
    """
    for digits in range(_LEAST_DIGITS, _MOST_DIGITS):
        if len({rounded_label(label, digits) for label in labels}) >= _LEAST_ROUNDED:
            return digits
    return _MOST_DIGITS


def rounded_label(label: float, digits: int) -> float:
    """Round a label of a continuum to a number of digits."""
    return float(f"{label:.{digits}g}")


MOST_ENTRIES = 1024
"""Most entries of a label whose constants are counted one by one: some 130 MB at `DISTINCT_LABELS` each."""


def of_entries(entries: Sequence[Mapping[float, float]]) -> dict[str, float]:
    """Return `entry_variance` and `entry_deviation` of `LabelStatistics`; empty without any label.

    Args:
        entries: for each entry of the labels, the number of rows, or their weight, by its number. An entry
            counts by the rows that have it.
    """
    found = [LabelStatistics.of_counts(each) for each in entries if any(each.values())]
    if not found:
        return {}
    weight = math.fsum(each.weight for each in found)
    return {
        "entry_variance": math.fsum(each.weight * each.variance for each in found) / weight,
        "entry_deviation": math.fsum(each.weight * each.absolute_deviation for each in found) / weight,
    }


NO_CLASS = -1.0
"""The label of a vector of zeros, or of a text that its vocabulary does not hold: none of the classes."""


def labels_of_vectors(
    classes: Mapping[float, float], numbers: Mapping[float, float], *, width: int, are_classes: bool
) -> dict[float, float]:
    """Return the weight of each label, for labels that are vectors.

    A single one-hot vector may be a class, or one of several labels that a row may have. One-hot vectors are
    therefore counted as classes, and converted to numbers here if there are other vectors.

    Args:
        classes: by class, the weight of its one-hot vectors; under `NO_CLASS`, that of vectors of zeros.
        numbers: by number, the weight of the elements of all other vectors.
        width: length of a vector.
        are_classes: whether there are no other vectors.

    Returns:
        Weights by class, or by number, over all vectors. A vector of zeros is then of the first class: an
        accuracy takes its first number for the highest.
    """
    ones = {label: weight for label, weight in classes.items() if label != NO_CLASS}
    if are_classes:
        return ones | ({0.0: ones.get(0.0, 0.0) + classes[NO_CLASS]} if classes.get(NO_CLASS) else {})
    found = {0.0: 0.0, 1.0: 0.0, **numbers}
    found[1.0] += math.fsum(ones.values())
    found[0.0] += (width - 1) * math.fsum(ones.values()) + width * classes.get(NO_CLASS, 0.0)
    return found


def constant_area(positives: Sequence[float], weight: float) -> float:
    """Return the area under the ROC curve of always answering how frequent each class is.

    The answers to all classes are ranked together, so the frequent classes, which have most of the positives,
    stand above the rare ones. No other constant has a larger area.

    Args:
        positives: by class, how many rows have it, or their weight.
        weight: number of rows, or their weight.

    Returns:
        0.5 to 1; NaN where no row, or every one, has each class.
    """
    area = above = 0.0
    for each in sorted(positives, reverse=True):
        area += (weight - each) * (above + each / 2)
        above += each
    pairs = above * (len(positives) * weight - above)
    return area / pairs if pairs > 0 else math.nan


def constant_precision(positives: Sequence[float], weight: float) -> float:
    """Return the precision, over all classes, of always answering yes to the most frequent one alone.

    Yes to further classes adds predictions of which fewer are right, so no other constant has a larger one.

    Args:
        positives, weight: as in `constant_area`.

    Returns:
        0 to 1; NaN where no row has a class.
    """
    most = max(positives, default=0.0)
    return most / weight if most > 0 else math.nan


def trivial_value(metric: str, labels: LabelStatistics) -> float | None:
    """Return the score of the best constant answer; None if it is not known.

    The constants are: the majority for an accuracy, the mean for squared errors, the median for the absolute
    error (of labels that are vectors, those of each entry), the shares of the classes for a cross-entropy and
    for an AUC of several answers, any for one of one answer, always "yes" for a precision, of several answers
    to the most frequent class alone. A label that is itself a share, 0 to 1, counts as both answers, each
    with its share.
    """
    known = METRICS.get(plain_name(metric))
    if known and known.outputs == "ranks":
        found: float | None = getattr(labels, known.trivial or "")
        return found
    match known.trivial if known else None:
        case "majority_share":
            return max(labels.mean, 1 - labels.mean) if _are_shares(metric, labels) else labels.majority_share
        case "constant_auc":
            return 0.5 if labels.constant_auc is None else labels.constant_auc
        case "variance":
            return labels.squared_error
        case "deviation":
            return None if labels.squared_error is None else math.sqrt(labels.squared_error)
        case "absolute_deviation":
            return labels.absolute_error
        case "entropy":
            return labels.entropy
        case "binary_entropy":
            return _entropy_of_yes(labels.mean)
        case "positive_share":
            if labels.constant_precision is not None:
                return labels.constant_precision
            return labels.mean if labels.is_binary or _are_shares(metric, labels) else None
        case "pinball_loss":
            return labels.pinball_loss
    return None


def trivial_answer(metric: str, labels: LabelStatistics, classes: Sequence[str] = ()) -> str:
    """Return the constant answer in words, e.g. `always answering 0`.

    Args:
        metric: one of METRICS, with or without the name of an output.
        classes: their names, in the order of the labels' numbers; (): they have no names.
    """
    match metric_of(metric).trivial:
        case "majority_share":
            if _are_shares(metric, labels):
                return f"always answering {class_name(float(labels.mean > 0.5), classes)}"
            return f"always answering {class_name(labels.majority, classes)}"
        case "variance" | "deviation" if labels.entries is not None:
            return "always answering the mean of each number of the label"
        case "absolute_deviation" if labels.entries is not None:
            return "always answering the median of each number of the label"
        case "variance" | "deviation":
            return f"always answering {labels.mean:.4g}, the mean"
        case "absolute_deviation":
            return "always answering the median"
        case "constant_auc" if labels.constant_auc is None:
            return "answers drawn at random"
        case "entropy" | "constant_auc":
            return "always answering the shares of the classes"
        case "binary_entropy":
            if labels.is_binary:
                return "always answering the shares of the classes"
            return f"always answering {labels.mean:.4g}, the mean"
        case "pinball_loss":
            return "always answering the same quantiles"
        case "positive_share" if labels.constant_precision is not None:
            return "always answering only the most frequent class"
        case "positive_share":
            return f"always answering {class_name(1, classes)}"
    return "a random order"


def class_name(label: float, classes: Sequence[str]) -> str:
    """Return the name of a class, on one line and shortened for a message, or its number if it has none."""
    return short(escaped(classes[int(label)])) if label in range(len(classes)) else f"{label:g}"


def _are_shares(metric: str, labels: LabelStatistics) -> bool:
    """Whether a metric of yes or no has labels between 0 and 1, which vary no more than ones and zeros do."""
    if metric_of(metric).confusion is None or labels.is_binary:
        return False
    return 0 <= labels.mean <= 1 and labels.variance <= labels.mean * (1 - labels.mean)


def _entropy_of_yes(share: float) -> float | None:
    """Return the entropy of an answer of yes or no, in nats; None if the share of yes is none."""
    if not 0 <= share <= 1:
        return None
    return -math.fsum(each * math.log(each) for each in (share, 1 - share) if each)


def majority_per_slice(slices: Mapping[str, LabelStatistics], metric: str = "accuracy") -> dict[str, float]:
    """Return the accuracy of answering each slice's own majority, by the columns that define the slices.

    It shows how much the columns alone can predict.

    Args:
        slices: by name, `payment_type=Cash` or `payment_type=Cash, trip_start_hour=7`; `overall` is left out.
        metric: the accuracy that is meant.
    """
    weights: dict[str, float] = {}
    hits: dict[str, float] = {}
    for name, labels in slices.items():
        if name == "overall":
            continue
        columns = slice_columns(name)
        weights[columns] = weights.get(columns, 0.0) + labels.weight
        hits[columns] = hits.get(columns, 0.0) + labels.weight * (trivial_value(metric, labels) or 0.0)
    return {columns: hits[columns] / weights[columns] for columns in weights}


def _constant_pinball_loss(
    ordered: list[tuple[float, float]], rows: float, quantiles: Sequence[float]
) -> float:
    """Return the mean pinball loss of always answering the labels' own quantiles."""
    losses = []
    for level in quantiles:
        answer = _weighted_quantile(ordered, rows, level)
        misses = ((label - answer, count) for label, count in ordered)
        losses += [max(level * miss, (level - 1) * miss) * count / rows for miss, count in misses]
    return math.fsum(losses) / len(quantiles)


def _weighted_quantile(ordered: list[tuple[float, float]], rows: float, level: float) -> float:
    seen = accumulate(count for _, count in ordered)
    reached = (label for (label, _), so_far in zip(ordered, seen, strict=True) if so_far >= rows * level)
    return next(reached, ordered[-1][0])
