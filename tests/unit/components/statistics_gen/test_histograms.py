"""Histograms from quantiles, beside TFDV's own."""

import numpy as np
import pytest
import tfx  # noqa: F401  (before TFDV: it patches what TFDV imports)
from tensorflow_data_validation.statistics.generators import basic_stats_generator
from tensorflow_data_validation.utils import quantiles_util

from slipway.components.statistics_gen.histograms import bin_weights, equi_width, quick_histograms

KINDS = {
    "fractions": lambda rng, n: rng.normal(size=n),
    "few different": lambda rng, n: rng.integers(0, 5, n).astype(float),
    "constant": lambda _, n: np.full(n, 3.0),
    "infinite below": lambda rng, n: np.r_[-np.inf, rng.normal(size=n - 1)],
    "infinite above": lambda rng, n: np.r_[np.full(1 + n // 10, np.inf), rng.normal(size=n)][:n],
    "infinite": lambda _, n: np.full(n, np.inf),
    "too wide": lambda rng, n: rng.choice([-1.7e308, 1.7e308], n),
}


@pytest.mark.parametrize("size", [1, 2, 3, 6, 101, 1_001])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:overflow|invalid value:RuntimeWarning")
def test_they_are_tfdv_s_to_the_last_bit(kind, size):
    rng = np.random.default_rng(size)
    quantiles = np.sort(KINDS[kind](rng, size))
    counts = 1.0 + np.cumsum(rng.integers(0, 4, size))
    theirs, ours = quantiles_util._get_bin_weights(quantiles, counts), bin_weights(quantiles, counts)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, other)
    finite = quantiles[np.isfinite(quantiles)]
    bounds = (finite.min(), finite.max()) if finite.size else (np.inf, -np.inf)
    infinite = float(np.isposinf(quantiles).sum() > 0)
    given = (quantiles, counts, *bounds, 10, infinite)
    assert equi_width(*given) == quantiles_util.generate_equi_width_histogram(*given)


def test_tfdv_has_its_own_again_afterwards():
    module = basic_stats_generator.quantiles_util
    own = module.generate_equi_width_histogram
    with quick_histograms():
        assert module.generate_equi_width_histogram is equi_width
    assert module.generate_equi_width_histogram is own
