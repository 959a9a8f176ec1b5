"""TFDV's statistics as plain data."""

import itertools
import math

import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2

from slipway.components.data_gate.protos import anomalies, split_statistics
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_gate.rules.distribution_limits import find_drift


def statistics(*edges, rows=1000, standard=None):
    """The statistics of a column of fractions with equally many values between any two of these edges."""
    found = statistics_pb2.DatasetFeatureStatisticsList()
    whole = found.datasets.add(num_examples=rows)
    feature = whole.features.add(type=statistics_pb2.FeatureNameStatistics.FLOAT)
    feature.path.step.append("x")
    stats = feature.num_stats
    stats.min, stats.max = edges[0], edges[-1]
    stats.common_stats.num_non_missing = stats.common_stats.tot_num_values = rows
    histogram = stats.histograms.add(type=statistics_pb2.Histogram.QUANTILES)
    for low, high in itertools.pairwise(edges):
        histogram.buckets.add(low_value=low, high_value=high, sample_count=rows / (len(edges) - 1))
    if standard is not None:
        stats.histograms.append(standard)
    return split_statistics(found.SerializeToString())


@pytest.mark.parametrize(
    "edges",
    [(5.0, 6.0, 7.0, math.inf), (-math.inf, 5.0, 6.0, 7.0), (-math.inf, 5.0, 6.0, math.inf, math.inf)],
)
def test_column_with_infinite_numbers_is_compared_by_the_others(edges):
    before = {"train": statistics(0.0, 1.0, 2.0, 3.0)}
    [finding] = find_drift({"train": statistics(*edges)}, before, Limits(), skip=())
    assert (finding.rule, finding.feature) == ("drift", "x")
    assert finding.measured == pytest.approx(1.0)


def test_column_of_nothing_but_infinite_numbers_has_no_distribution():
    assert statistics(math.inf, math.inf).features["x"].distribution is None


@pytest.mark.parametrize(
    ("edges", "rows", "counts"),
    [
        ((1.0, 1.9, 2.8, 3.7), (500, 0.5, 0), {"1": 500.0, "2": 0.5, "3": 0.0}),
        ((0.0, 0.5, 1.0, 1.5, 2.0), (600, 300, 1, 100), {"0": 600.0, "1": 300.0, "2": 100.0}),
        ((-1.0, -0.5, 0.0), (2, 1), {"-1": 2.0, "0": 1.0}),
        ((0.0, 1.0, 2.0), (2, 1), {}),  # the first bucket holds 0 and 1
        ((-math.inf, -math.inf, 0.0, 0.5), (1, 0, 1), {}),
    ],
)
def test_few_whole_numbers_are_counted(edges, rows, counts):
    buckets = [
        statistics_pb2.Histogram.Bucket(low_value=low, high_value=high, sample_count=many)
        for (low, high), many in zip(itertools.pairwise(edges), rows, strict=True)
    ]
    standard = statistics_pb2.Histogram(type=statistics_pb2.Histogram.STANDARD, buckets=buckets)
    assert statistics(0.0, 1.0, 2.0, standard=standard).features["x"].whole_counts == counts
    assert statistics(0.0, 1.5, 2.0, standard=standard).features["x"].whole_counts == {}
    assert statistics(0.0, 1.0, 2.0).features["x"].whole_counts == {}


@pytest.mark.parametrize(
    ("lengths", "missing"),
    [([(0, 0), (0, 0), (0, 1), (3, 3)], 500), ([(0, 2), (2, 2), (2, 3), (3, 3)], 0), ([(0, 0), (1, 1)], 500)],
)
def test_rows_with_an_empty_list_have_no_value(lengths, missing):
    """As many as are certain: TFDV counts them as rows that have the column."""
    found = statistics_pb2.DatasetFeatureStatisticsList()
    whole = found.datasets.add(num_examples=1000)
    feature = whole.features.add(type=statistics_pb2.FeatureNameStatistics.STRING)
    feature.path.step.append("tags")
    common = feature.string_stats.common_stats
    common.num_non_missing, common.max_num_values = 1000, 3
    common.tot_num_values = 2500
    for low, high in lengths:
        common.num_values_histogram.buckets.add(
            low_value=low, high_value=high, sample_count=1000 / len(lengths)
        )
    assert split_statistics(found.SerializeToString()).features["tags"].missing == missing


@pytest.mark.parametrize(("nan", "missing"), [(2000, 0), (0, 0), (3000, 1000)])
def test_nan_within_lists_is_no_missing_row_unless_there_is_nothing_else(nan, missing):
    found = statistics_pb2.DatasetFeatureStatisticsList()
    whole = found.datasets.add(num_examples=1000)
    feature = whole.features.add(type=statistics_pb2.FeatureNameStatistics.FLOAT)
    feature.path.step.append("amounts")
    common = feature.num_stats.common_stats
    common.num_non_missing, common.tot_num_values, common.max_num_values = 1000, 3000, 3
    histogram = feature.num_stats.histograms.add(type=statistics_pb2.Histogram.QUANTILES, num_nan=nan)
    if nan < 3000:
        histogram.buckets.add(low_value=0.0, high_value=1.0, sample_count=3000 - nan)
    amounts = split_statistics(found.SerializeToString()).features["amounts"]
    assert (amounts.missing, amounts.is_number) == (missing, not missing)


@pytest.mark.parametrize("name", ["fare", "price (EUR)", "a.b", "it's"])
def test_anomaly_has_the_name_of_its_column_whatever_quotes_its_key_has(name):
    found = anomalies_pb2.Anomalies()
    info = found.anomaly_info[f"'{name}'"]
    info.path.step.append(name)
    info.reason.add(short_description="New column")
    [anomaly] = anomalies(found.SerializeToString(), split="train")
    assert anomaly.feature == name


def test_anomaly_of_the_data_as_a_whole_names_no_column():
    found = anomalies_pb2.Anomalies()
    found.dataset_anomaly_info.reason.add(short_description="Few rows")
    [anomaly] = anomalies(found.SerializeToString(), split="train")
    assert not anomaly.feature
