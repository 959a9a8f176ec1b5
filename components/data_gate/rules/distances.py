"""Distances between two distributions, and how large chance alone can make them.

`distribution_limits.py` compares them with the limits, such as `max_drift_l_infinity`.
"""

import math
from collections.abc import Mapping

import numpy as np

from slipway.components.data_gate.statistics import Distribution
from slipway.components.data_profile.columns import Floats

# Standard errors allowed for chance: one comparison in 16,000 exceeds 4.
_SIGMAS = 4.0
# The number of cells of a Jensen-Shannon divergence.
_CELLS = 20
_CUTS = np.linspace(0, 1, _CELLS + 1)[1:-1]
# A scale factor needs at least this many distinct deciles, none of them off by more than this share.
_LEAST_DECILES = 5
_SPREAD = 0.05
_DECILES = np.linspace(0.1, 0.9, 9)


def l_infinity(
    first: Mapping[str, float], second: Mapping[str, float], sums: tuple[float, float] | None = None
) -> tuple[float, str]:
    """Return the largest difference between any value's shares, and that value.

    Source: TensorFlow Data Validation, `infinity_norm` of its drift and skew comparators. It takes the listed
    values for all, so that a long tail of rare ones would hide that the frequent ones lost their share.

    Args:
        first: the count of each value, >= 0.
        second: the same for the other distribution.
        sums: the number of all values of both; None: no value is missing in the counts.

    Returns:
        The difference, 0 to 1, and the value; 0 and an empty text if either distribution is empty.
    """
    sums = sums or (sum(first.values()), sum(second.values()))
    if not (first and second and all(sums)):
        return 0.0, ""
    differences = {
        value: abs(first.get(value, 0.0) / sums[0] - second.get(value, 0.0) / sums[1])
        for value in {**first, **second}
    }
    worst = max(differences, key=lambda value: differences[value])
    return differences[worst], worst


def l_infinity_by_chance(share: float, rows: tuple[int, int]) -> float:
    """Return how far apart chance alone may put a value's shares in two samples of one population.

    Source: the standard error of a difference of two shares, sqrt(p (1 - p) (1 / n + 1 / m)).

    Args:
        share: p, the share of the value in both samples together, 0 to 1.
        rows: n and m, the sizes of the two samples.
    """
    if not all(rows):
        return 1.0
    deviation = math.sqrt(max(share * (1 - share), 0.0) * (1 / rows[0] + 1 / rows[1]))
    return _SIGMAS * deviation + 1 / min(rows)  # plus one row, since rare values come in whole rows


def jensen_shannon(first: Distribution, second: Distribution) -> tuple[float, int]:
    """Return the Jensen-Shannon divergence with logarithms to base 2.

    It is computed over at most 20 cells of about equal weight: with finer cells it would measure where the
    two polylines have their points, not the data. Source: Lin 1991, "Divergence measures based on the
    Shannon entropy".

    Returns:
        The divergence, 0 (equal) to 1 (nothing in common), and the number of cells.
    """
    _, cells = _cells(first, second)
    ratio = cells / ((cells[0] + cells[1]) / 2)
    # An empty cell adds nothing: x log x tends to 0.
    terms = cells * np.log2(np.where(ratio > 0, ratio, 1.0))
    return float(terms.sum() / 2), cells.shape[1]


def most_grown(now: Distribution, then: Distribution) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the cell of the Jensen-Shannon divergence whose share grew most from `then` to `now`.

    Returns:
        The ends of the cell (values are above the first end, which is minus infinity for the first cell, and
        at most the second), and the shares of `now` and `then` in it, 0 to 1.
    """
    ends, cells = _cells(now, then)
    worst = int((cells[0] - cells[1]).argmax())
    low = float(ends[worst - 1]) if worst else -math.inf
    return (low, float(ends[worst])), (float(cells[0, worst]), float(cells[1, worst]))


def _cells(first: Distribution, second: Distribution) -> tuple[Floats, Floats]:
    """Return the upper ends of the cells, ascending, [cells], and both distributions' shares, [2, cells]."""
    points = np.sort(np.concatenate([first.points, second.points]))
    below = np.array([first.at_most(points), second.at_most(points)])
    cuts = np.searchsorted(below[0] + below[1], 2 * _CUTS)
    ends = sorted({*cuts.tolist(), len(points) - 1})
    cells = np.diff(below[:, ends], prepend=0.0)
    is_used = (cells[0] > 0) | (cells[1] > 0)
    return points[ends][is_used], cells[:, is_used]


def jensen_shannon_by_chance(cells: int, rows: tuple[int, int]) -> float:
    """Return how large chance alone may make the divergence of two samples of one population.

    8 ln 2 / (1 / n + 1 / m) times the divergence follows a chi-squared distribution with k - 1 degrees of
    freedom for k cells; the result allows for its mean plus four standard deviations.
    Source: Grosse and others 2002, "Analysis of symbolic sequences using the Jensen-Shannon divergence".

    Args:
        cells: k, the number of cells, >= 1.
        rows: n and m, the sizes of the two samples.
    """
    if not all(rows):
        return 1.0
    freedom = max(cells - 1, 1)
    chi_squared = freedom + _SIGMAS * math.sqrt(2 * freedom)
    return chi_squared / (8 * math.log(2)) * (1 / rows[0] + 1 / rows[1])


def scale(first: Distribution, second: Distribution) -> float:
    """Return the factor that turns the numbers of the first distribution into those of the second.

    The factor is measured at the deciles that are not zero, which must agree on it within 5%.

    Returns:
        The factor, > 0; 1 if there is no such factor.
    """
    before, after = first.quantiles(_DECILES), second.quantiles(_DECILES)
    used = (before != 0) & (after != 0)
    if len(np.unique(before[used])) < _LEAST_DECILES or (np.sign(before[used]) != np.sign(after[used])).any():
        return 1.0
    factors = after[used] / before[used]
    middle = float(np.median(factors))
    return middle if np.abs(factors / middle - 1).max() <= _SPREAD else 1.0
