import json
from itertools import pairwise

import numpy as np
import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2

from slipway.pipeline.errors import UsageError
from slipway.pipeline.watch.training_data import read_training, training_statistics


@pytest.fixture
def statistics(tmp_path):
    folder = tmp_path / "verdict/statistics"
    made = statistics_pb2.DatasetFeatureStatisticsList()
    made.datasets.add(num_examples=5)
    (folder / "Split-train").mkdir(parents=True)
    (folder / "Split-train/FeatureStats.pb").write_bytes(made.SerializeToString())
    return folder


def test_statistics_are_those_that_the_gate_has_kept(statistics, tmp_path, monkeypatch):
    class Record:
        def outputs_of(self, type_name):
            assert type_name == "schemas.DataVerdict"
            return [(None, {"uri": str(tmp_path / "verdict")})]

    monkeypatch.setattr("slipway.pipeline.runs.history.History.find", lambda _, name: name and Record())
    assert training_statistics(tmp_path, "run", 7).rows == 5
    (statistics / "profile.json").write_text(json.dumps({"rows": {"train": 50}}))
    assert training_statistics(tmp_path, "run", 7).rows == 50
    (tmp_path / "verdict").rename(tmp_path / "gone")
    with pytest.raises(UsageError, match="are gone"):
        training_statistics(tmp_path, "run", 7)


@pytest.mark.parametrize("run_id", ["", "20260101-000000-abcd"])
def test_version_of_an_unknown_run_has_none(tmp_path, run_id):
    with pytest.raises(UsageError, match="What version 7 was trained on is not known") as error:
        training_statistics(tmp_path, run_id, 7)
    assert "--reference" in error.value.hint


def test_folder_of_something_else_is_refused(statistics, tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_training(tmp_path)
    (statistics / "Split-train/FeatureStats.pb").write_bytes(b"\xff\xff")
    with pytest.raises(UsageError, match="holds no statistics"):
        read_training(statistics)


def _of_ratio(folder, quantiles, infinite_at_the_end):
    """Write the statistics of a column of 100 rows: its deciles, and how many rows are infinite."""
    made = statistics_pb2.DatasetFeatureStatisticsList()
    feature = made.datasets.add(num_examples=100).features.add(
        type=statistics_pb2.FeatureNameStatistics.FLOAT
    )
    feature.path.step.append("ratio")
    numbers = feature.num_stats
    numbers.common_stats.num_non_missing = numbers.common_stats.tot_num_values = 100
    numbers.common_stats.max_num_values = 1
    numbers.max = numbers.mean = float("inf")
    widths = numbers.histograms.add(type=statistics_pb2.Histogram.STANDARD)
    widths.buckets.add(low_value=0, high_value=7, sample_count=100 - infinite_at_the_end)
    if infinite_at_the_end:
        inf = float("inf")
        widths.buckets.add(low_value=inf, high_value=inf, sample_count=infinite_at_the_end)
    weights = numbers.histograms.add(type=statistics_pb2.Histogram.QUANTILES)
    for low, high in pairwise(quantiles):
        weights.buckets.add(low_value=low, high_value=high, sample_count=10)
    (folder / "Split-train/FeatureStats.pb").write_bytes(made.SerializeToString())


def test_logs_that_cannot_hold_infinite_numbers_are_compared_with_the_finite_ones(statistics):
    """A third of a training's ratios are infinite: without these rows, nothing has moved."""
    inf = float("inf")
    _of_ratio(statistics, [0, 1, 2, 3, 4, 5, 6, inf, inf, inf, inf], 35)
    ratio = read_training(statistics, is_finite=True).features["ratio"]
    assert (ratio.rows, ratio.present, ratio.values, ratio.max) == (65, 65, 65, 7.0)
    shares = ratio.distribution.at_most(np.arange(8.0))
    assert shares == pytest.approx([0, *(10 * n / 65 for n in range(1, 7)), 1])
    assert ratio.mean == pytest.approx((0.5 + 1.5 + 2.5 + 3.5 + 4.5 + 5.5 + 6.5 / 2) * 10 / 65)
    assert read_training(statistics).features["ratio"].rows == 100


def test_column_without_infinite_numbers_stays_as_it_is(statistics):
    _of_ratio(statistics, range(11), 0)
    finite, whole = (read_training(statistics, is_finite=each).features["ratio"] for each in (True, False))
    assert finite.distribution.below.tolist() == whole.distribution.below.tolist()
    assert finite.rows == whole.rows == 100
