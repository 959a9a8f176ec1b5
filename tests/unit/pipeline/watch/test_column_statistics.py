from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from slipway.components.data_gate.rules.distances import jensen_shannon
from slipway.components.data_gate.statistics import Distribution, SplitStatistics
from slipway.pipeline.watch.column_statistics import MOST_TEXTS, at_cuts_of, counted_at, statistics_of

DECILES = np.linspace(0, 1, 11)


def test_numbers_have_their_deciles_and_what_is_missing():
    column = pa.array([1.0, 2.0, 3.0, None, np.nan, np.inf], pa.float32())
    found = statistics_of(pa.table({"x": column})).features["x"]
    assert (found.kind, found.rows, found.present, found.missing) == ("float", 6, 4, 2)
    assert (found.min, found.max, found.mean) == (1, 3, 2)
    assert found.distribution.points[5] == 2.5


@pytest.mark.parametrize("sign", [1, -1])
def test_infinite_numbers_are_the_greatest_or_least_of_the_others_and_not_missing(sign):
    """As the training data's statistics count them: as missing, they would seem a rise of missing values."""
    some = statistics_of(pa.table({"x": [1.0, 2.0, sign * np.inf, sign * np.inf]})).features["x"]
    assert (some.missing, some.min, some.max) == (0, 1, 2)
    assert some.distribution.points[5] == (2 if sign > 0 else 1)
    table = pa.table({"x": [1.0, sign * np.inf]})
    then = replace(some, distribution=Distribution(DECILES, DECILES))
    cut = at_cuts_of(SplitStatistics(4, {"x": then}), table, statistics_of(table)).features["x"]
    assert np.isfinite(cut.distribution.points).all()
    only = statistics_of(pa.table({"x": [sign * np.inf]})).features["x"]
    assert (only.present, only.missing, only.distribution) == (1, 0, None)


def test_texts_are_counted():
    found = statistics_of(pa.table({"x": ["a", "b", "a", None]})).features["x"]
    assert (found.kind, found.present, found.unique, dict(found.counts)) == ("text", 3, 2, {"a": 2, "b": 1})
    empty = statistics_of(pa.table({"x": ["a", "", None, "a"]})).features["x"]
    assert (empty.present, empty.values, empty.unique, dict(empty.counts)) == (2, 2, 1, {"a": 2})
    many = statistics_of(pa.table({"x": [str(each) for each in range(2 * MOST_TEXTS)]})).features["x"]
    assert (many.unique, len(many.counts)) == (2 * MOST_TEXTS, MOST_TEXTS)


def test_column_without_any_value_has_no_distribution():
    found = statistics_of(pa.table({"x": pa.array([None, None], pa.int64())})).features["x"]
    assert (found.kind, found.present, found.distribution) == ("int", 0, None)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_samples_of_one_column_of_few_values_do_not_differ(seed):
    draw = np.random.default_rng(seed)
    values = np.sort(draw.normal(size=40))
    shares = draw.dirichlet(np.ones(40))
    one, two = (np.sort(draw.choice(values, many, p=shares)) for many in (10_000, 2_000))
    then = Distribution(np.quantile(one, DECILES), DECILES)
    assert jensen_shannon(counted_at(then, two), then)[0] < 0.003
    # What the deciles of both would say.
    assert jensen_shannon(Distribution(np.quantile(two, DECILES), DECILES), then)[0] > 0.003


def test_values_beyond_the_training_are_counted():
    then = Distribution(DECILES, DECILES)
    found = counted_at(then, np.sort(np.random.default_rng(0).random(1000) * 2))
    assert found.at_most(np.array([0.0, 0.5, 1.0, 2.0])) == pytest.approx([0, 0.25, 0.5, 1], abs=0.03)
    assert jensen_shannon(found, then)[0] > 0.2


def test_only_columns_that_the_training_has_are_cut_otherwise(training):
    table = pa.table({"fare": [1.0, 2.0], "other": [1.0, 2.0], "company": ["A", "B"]})
    own = statistics_of(table)
    cut = at_cuts_of(training, table, own)
    assert cut.features["other"] is own.features["other"]
    assert cut.features["company"] is own.features["company"]
    assert len(cut.features["fare"].distribution.points) == 13
