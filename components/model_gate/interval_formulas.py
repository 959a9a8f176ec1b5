"""Confidence bounds of metrics: by formula, or from a measured spread. Pure.

All bounds are one-sided at the given confidence (0.95: the true value lies above the lower bound in 95 of 100
such evaluations): the formulas use the normal quantile z, and spreads use Student's t.
"""

import functools
import math
from dataclasses import dataclass
from statistics import NormalDist

FEW_FREEDOM = 30
"""With fewer degrees of freedom, a spread is measured over few rows, which may all agree by chance."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How far chance moves a value, as measured by the Evaluator.

    Attributes:
        error: the standard error, in the unit of the value, >= 0.
        degrees_of_freedom: of the measurement, >= 1.
    """

    error: float
    degrees_of_freedom: int

    def half(self, confidence: float) -> float:
        """Return the distance between the value and its one-sided bounds."""
        return student_quantile(confidence, self.degrees_of_freedom) * self.error


@functools.lru_cache(maxsize=4096)
def student_quantile(confidence: float, degrees_of_freedom: int) -> float:
    """Return the t of a one-sided bound: 1.669 for 0.95 and 63 degrees of freedom."""
    from scipy.special import stdtrit  # imported here because the command line never needs a quantile

    return float(stdtrit(degrees_of_freedom, confidence))


def normal_quantile(confidence: float) -> float:
    """Return the z of a one-sided bound: 1.645 for 0.95. `confidence` lies between 0.5 and 1."""
    return NormalDist().inv_cdf(confidence)


def proportion_bounds(share: float, rows: float, *, confidence: float) -> tuple[float, float]:
    """Return Wilson's score bounds of a share, such as an accuracy.

    Args:
        share: 0 to 1.
        rows: number of rows that the share is counted over, > 0.
        confidence: of each bound by itself.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, Journal of
    the American Statistical Association 22 (1927).
    """
    z2 = normal_quantile(confidence) ** 2
    middle = (share + z2 / (2 * rows)) / (1 + z2 / rows)
    half = math.sqrt(z2 * share * (1 - share) / rows + z2 * z2 / (4 * rows * rows)) / (1 + z2 / rows)
    return max(0.0, middle - half), min(1.0, middle + half)


def auc_bounds(auc: float, positives: float, negatives: float, *, confidence: float) -> tuple[float, float]:
    """Return the bounds of an area under the ROC curve, from Hanley's and McNeil's standard error.

    Args:
        auc: 0 to 1. A value of 0 or 1 is moved inwards by half a pair, because its error would be 0.
        positives, negatives: rows of each class, >= 1.
        confidence: of each bound by itself.

    Source: J. A. Hanley, B. J. McNeil, The meaning and use of the area under a receiver operating
    characteristic (ROC) curve, Radiology 143 (1982), equation 1.
    """
    pairs = positives * negatives
    area = min(max(auc, 0.5 / pairs), 1 - 0.5 / pairs)
    q1, q2 = area / (2 - area), 2 * area * area / (1 + area)
    variance = area * (1 - area) + (positives - 1) * (q1 - area * area) + (negatives - 1) * (q2 - area * area)
    half = normal_quantile(confidence) * math.sqrt(max(variance, 0.0) / pairs)
    return max(0.0, auc - half), min(1.0, auc + half)


def auc_of_chance(positives: float, negatives: float, *, confidence: float) -> float:
    """Return the largest area that random answers reach, at this confidence.

    The area is a multiple of the Mann-Whitney U statistic, whose variance under the null hypothesis gives
    that of the area: (positives + negatives + 1) / (12 positives negatives).

    Source: H. B. Mann, D. R. Whitney, On a test of whether one of two random variables is stochastically
    larger than the other, Annals of Mathematical Statistics 18 (1947).
    """
    variance = (positives + negatives + 1) / (12 * positives * negatives)
    return min(1.0, 0.5 + normal_quantile(confidence) * math.sqrt(variance))


def least_difference(larger: tuple[float, float, float], smaller: tuple[float, float, float]) -> float:
    """Return the lower bound of the difference of two measured values, from the bounds of each.

    The values are treated as measured on different rows. Two models evaluated on the same rows differ less by
    chance, so the bound is conservative.

    Args:
        larger: value, lower bound, upper bound.
        smaller: the same; it is subtracted.

    Source: R. G. Newcombe, Interval estimation for the difference between independent proportions,
    Statistics in Medicine 17 (1998), method 10.
    """
    difference = larger[0] - smaller[0]
    return difference - math.hypot(larger[0] - larger[1], smaller[2] - smaller[0])
