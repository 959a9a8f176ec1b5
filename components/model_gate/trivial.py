"""Scores of models that know nothing: always the majority, always the same number. Pure.

A threshold below that value tests nothing, and a model that does not reach it has learned nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from itertools import accumulate

from slipway.components.model_gate.metrics import METRICS, metric_of, plain_name

LABEL_PREFIX = "label_"
"""Before the names of the label's statistics among the Evaluator's metrics."""

DISTINCT_LABELS = 4096
"""More different labels than this in a slice are a continuum: they are then rounded to three digits."""


@dataclass(frozen=True)
class LabelStatistics:
    """The labels of one slice.

    Attributes:
        rows: how many, > 0. Where rows weigh differently it is how many of one weight tell as much: the
            square of the sum of weights by the sum of their squares (L. Kish, Survey Sampling, 1965).
        weight: what they weigh together, > 0; where every row weighs 1, how many there are.
        count: how many there are, whatever they weigh; of a row with several labels each.
        positives, negatives: as `rows`, of those with the label 1 and with 0. Of each by itself: the weights
            of one class say nothing about how sure the other's share of a value is.
        mean: of the labels; for labels 0 and 1 the share of the ones.
        variance: mean squared distance from the mean.
        absolute_deviation: mean distance from the median.
        classes: how many different labels there are.
        majority_share: its share of the rows, 0 to 1.
        entropy: of the shares of the classes, in nats.
        pinball_loss: of always answering the labels' own quantiles; None where none are asked for.
        random_mean_reciprocal_rank, random_ndcg, random_ndcg_5, random_ndcg_10: what ranking the rows of each
            group in a random order is expected to have; None where it is not asked for.
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
    ) -> "LabelStatistics":
        """From how often each label occurs, or what its rows weigh; at least one does.

        Args:
            counts: by label.
            squares: the sum of the squared weights, by label; None: every row weighs 1.
            count: of all labels, where rows have weights; None: every row weighs 1.
            quantiles: that a model answers, each 0 to 1.
        """
        ordered = sorted((label, count) for label, count in counts.items() if count)
        rows = math.fsum(count for _, count in ordered)
        mean = math.fsum(label * count for label, count in ordered) / rows

        def telling(*labels: float) -> float:
            weight = math.fsum(counts.get(label, 0.0) for label in labels)
            squared = math.fsum(squares.get(label, 0.0) for label in labels) if squares else 0.0
            return weight * weight / squared if squared else weight

        majority, most = max(ordered, key=lambda item: item[1])
        median = _weighted_quantile(ordered, rows, 0.5)
        return cls(
            rows=telling(*(label for label, _ in ordered)),
            weight=rows,
            count=rows if count is None else count,
            positives=telling(1.0),
            negatives=telling(0.0),
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
        """The statistics that there are, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_metrics(cls, metrics: Mapping[str, float]) -> "LabelStatistics | None":
        """From the Evaluator's metrics of a slice; None where they do not hold them."""
        found = {
            each.name: metrics[LABEL_PREFIX + each.name]
            for each in fields(cls)
            if LABEL_PREFIX + each.name in metrics
        }
        if any(name not in found for name in ALWAYS):
            return None
        return cls(**found)

    @property
    def telling(self) -> float:
        """How much of a label one tells on average, 0 to 1: 1 where all weigh the same."""
        return min(self.rows / self.count, 1.0)

    @property
    def is_binary(self) -> bool:
        """Whether labels are 0 and 1, and both occur."""
        return self.classes == 2 and math.isclose(self.variance, self.mean * (1 - self.mean), abs_tol=1e-9)

    @property
    def rows_by_class(self) -> tuple[int, int]:
        """`positives` and `negatives` of binary labels: both occur, so each is at least 1."""
        return max(round(self.positives), 1), max(round(self.negatives), 1)


ALWAYS = tuple(each.name for each in fields(LabelStatistics) if each.default is MISSING)
"""The statistics that every evaluation has."""


def rounded_label(label: float) -> float:
    """One of a continuum, to three digits."""
    return float(f"{label:.3g}")


NO_CLASS = -1.0
"""Of a vector of zeros: none of the classes."""


def labels_of_vectors(
    classes: Mapping[float, float], numbers: Mapping[float, float], *, width: int, are_classes: bool
) -> dict[float, float]:
    """What each label weighs, where labels are vectors.

    One vector with a one among zeros does not tell a class from one of several labels that a row may have, so
    such are counted as classes, and become numbers here where other vectors say so.

    Args:
        classes: what the vectors of a class weigh, or `NO_CLASS` those of zeros.
        numbers: what the numbers of all other vectors weigh.
        width: of a vector.
        are_classes: whether there are no others.

    Returns:
        By class, without `NO_CLASS`; or by number, of all vectors.
    """
    ones = {label: weight for label, weight in classes.items() if label != NO_CLASS}
    if are_classes:
        return ones
    found = {0.0: 0.0, 1.0: 0.0, **numbers}
    found[1.0] += math.fsum(ones.values())
    found[0.0] += (width - 1) * math.fsum(ones.values()) + width * classes.get(NO_CLASS, 0.0)
    return found


def trivial_value(metric: str, labels: LabelStatistics) -> float | None:
    """Return the score of the best constant answer; None if it is not known.

    The constants are: the majority for an accuracy, the mean for squared errors, the median for the absolute
    error, the shares of the classes for a cross-entropy, always "yes" for a precision, any for an AUC.
    """
    known = METRICS.get(plain_name(metric))
    if known and known.outputs == "ranks":
        found: float | None = getattr(labels, known.trivial or "")
        return found
    match known.trivial if known else None:
        case "majority_share":
            return labels.majority_share
        case "chance":
            return 0.5
        case "variance":
            return labels.variance
        case "deviation":
            return math.sqrt(labels.variance)
        case "absolute_deviation":
            return labels.absolute_deviation
        case "entropy":
            return labels.entropy
        case "positive_share":
            return labels.mean if labels.is_binary else None
        case "pinball_loss":
            return labels.pinball_loss
    return None


def trivial_answer(metric: str, labels: LabelStatistics, classes: Sequence[str] = ()) -> str:
    """The constant answer in words, e.g. `always answering 0`.

    Args:
        metric: one of METRICS, with or without the name of an output.
        classes: their names, in the order of the labels' numbers; (): they have none.
    """
    match metric_of(metric).trivial:
        case "majority_share":
            return f"always answering {class_name(labels.majority, classes)}"
        case "variance" | "deviation":
            return f"always answering {labels.mean:.4g}, the mean"
        case "absolute_deviation":
            return "always answering the median"
        case "entropy":
            return "always answering the shares of the classes"
        case "pinball_loss":
            return "always answering the same quantiles"
        case "positive_share":
            return f"always answering {class_name(1, classes)}"
    return "a random order" if metric_of(metric).outputs == "ranks" else "answers drawn at random"


def class_name(label: float, classes: Sequence[str]) -> str:
    """The name of a class, or its number where it has none."""
    return classes[int(label)] if label in range(len(classes)) else f"{label:g}"


def majority_per_slice(slices: Mapping[str, LabelStatistics]) -> dict[str, float]:
    """The accuracy of answering each slice's own majority, by the columns that the slices are made of.

    It says what one column alone is worth.

    Args:
        slices: by name, `payment_type=Cash` or `payment_type=Cash, trip_start_hour=7`; `overall` is left out.
    """
    weights: dict[str, float] = {}
    hits: dict[str, float] = {}
    for name, labels in slices.items():
        if name == "overall":
            continue
        columns = slice_columns(name)
        weights[columns] = weights.get(columns, 0.0) + labels.weight
        hits[columns] = hits.get(columns, 0.0) + labels.weight * labels.majority_share
    return {columns: hits[columns] / weights[columns] for columns in weights}


def slice_columns(name: str) -> str:
    """The columns of a slice's name: `a, b` for `a=1, b=x`."""
    return ", ".join(part.partition("=")[0] for part in name.split(", ") if "=" in part)


def _constant_pinball_loss(
    ordered: list[tuple[float, float]], rows: float, quantiles: Sequence[float]
) -> float:
    """The mean pinball loss of always answering the labels' own quantiles."""
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
