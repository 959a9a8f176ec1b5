"""Computes TFDV's histograms with arrays.

TFDV makes a histogram of ten buckets from thousands of quantiles, each of them a protocol buffer, in loops,
which take most of the time for a column of a short table. The results here are the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
from tensorflow_data_validation.statistics.generators import basic_stats_generator
from tensorflow_data_validation.utils import quantiles_util
from tensorflow_metadata.proto.v0 import statistics_pb2

Array = np.ndarray[Any, Any]


@contextmanager
def quick_histograms() -> Iterator[None]:
    """Patch TFDV's generator of basic statistics, in all threads, to use the functions of this module."""
    with (
        patch.object(basic_stats_generator.quantiles_util, "_get_bin_weights", bin_weights),
        patch.object(basic_stats_generator.quantiles_util, "generate_equi_width_histogram", equi_width),
    ):
        yield


def bin_weights(boundaries: Array, cumulative: Array) -> tuple[Array, Array, Array]:
    """Return the lower and upper bounds of bins, and the weight of each bin.

    Args:
        boundaries: the boundaries of the bins, ascending; [n + 1].
        cumulative: the weight of the values at or below each boundary; [n + 1].

    Returns:
        Three arrays [n]. Bins with the same upper bound share their weight evenly; the weight at the least
        boundary goes to the first bin and those equal to it.
    """
    cumulative = cumulative.astype(np.float64)
    low, high = boundaries[:-1], boundaries[1:]
    if not low.size:
        return low, high, np.diff(cumulative)
    starts = np.flatnonzero(np.r_[True, high[1:] != high[:-1]])
    lengths = np.diff(np.r_[starts, high.size])
    weights = np.repeat(np.add.reduceat(np.diff(cumulative), starts) / lengths, lengths)
    different = (low != low[0]) | (high != high[0])
    first = int(different.argmax()) if different.any() else low.size
    weights[:first] += cumulative[0] / first
    return low, high, weights


def equi_width(
    quantiles: Array,
    cumulative_counts: Array,
    finite_min: float,
    finite_max: float,
    num_buckets: int,
    num_pos_inf: float,
) -> Any:
    """Return a histogram whose buckets have equal widths; the arguments are those of TFDV's function.

    Args:
        quantiles: the quantiles, ascending.
        cumulative_counts: the weight of the values at or below each quantile.
        num_pos_inf: the weight of the values that are positive infinity.

    Returns:
        A `Histogram`: the values between two quantiles are assumed to be spread evenly.
    """
    result = statistics_pb2.Histogram(type=statistics_pb2.Histogram.STANDARD)
    if not np.isfinite(finite_min) and not np.isfinite(finite_max):
        result.buckets.add(low_value=finite_min, high_value=finite_max, sample_count=cumulative_counts[-1])
        return result
    quantiles, counts, negative = quantiles_util._strip_infinities(
        quantiles, cumulative_counts, finite_max, num_pos_inf
    )
    bounds = np.array([finite_min, finite_max])
    if finite_min != finite_max:
        bounds = np.linspace(finite_min, finite_max, num_buckets + 1)
        if not np.isfinite(bounds).all():
            return result  # as TFDV does when the width overflows
    if negative:
        result.buckets.add(low_value=-np.inf, high_value=-np.inf, sample_count=negative)
    bins = bin_weights(quantiles, counts)
    for place, (left, right) in enumerate(pairwise(bounds)):
        weight = _between(*bins, left, right, is_first=place == 0)
        result.buckets.add(low_value=left, high_value=right, sample_count=weight)
    if num_pos_inf:
        result.buckets.add(low_value=np.inf, high_value=np.inf, sample_count=num_pos_inf)
    return result


def _between(low: Array, high: Array, weights: Array, left: float, right: float, *, is_first: bool) -> float:
    """Return the weight of bins between two bounds; a zero-width bin at `left` is in the previous bucket."""
    some = slice(np.searchsorted(high, left, "left"), np.searchsorted(low, right, "right"))
    low, high, weights = low[some], high[some], weights[some]
    if not weights.size:
        return 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = (np.minimum(high, right) - np.maximum(low, left)) / (high - low)
    parts[(left <= low) & (right >= high)] = 1.0
    if not is_first:
        parts[(low == high) & (low == left)] = 0.0
    # Add one after the other, as TFDV does: the sum is the same to the last bit.
    return float(np.add.accumulate(parts * weights)[-1])
