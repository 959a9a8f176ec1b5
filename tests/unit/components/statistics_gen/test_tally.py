"""Statistics of a tally, of all rows and of slices."""

import numpy as np
import pyarrow as pa
import pytest
import tfx  # noqa: F401  (before TFDV: it patches what TFDV imports)
from tensorflow_data_validation.statistics.stats_options import StatsOptions
from tfx_bsl.public.proto.slicing_spec_pb2 import SlicingConfig, SlicingSpec

from slipway.components.errors import ComponentError
from slipway.components.statistics_gen import tally as tallies
from slipway.components.statistics_gen.tally import Tally
from slipway.components.statistics_gen.value_counts import ValueCounts

BATCHES = [
    pa.RecordBatch.from_pydict(
        {
            "kind": pa.array([[b"a"], [b"b"], [b"a"]], pa.large_list(pa.large_binary())),
            "size": pa.array([[1.0], None, [first]], pa.large_list(pa.float32())),
        }
    )
    for first in (3.0, 7.0)
]


def test_value_that_cannot_name_a_slice_is_reported():
    sliced = SlicingConfig(slicing_specs=[SlicingSpec(feature_keys=["word"])])
    batch = pa.RecordBatch.from_pydict({"word": [[b"\xff"]]})
    with pytest.raises(ComponentError, match="must be valid UTF-8") as told:
        Tally(StatsOptions(slicing_config=sliced)).add(batch)
    assert "statistics.slices" in told.value.hint


@pytest.mark.parametrize(
    ("column", "words"),
    [("word", "must be of numeric type"), ("some", "exactly one value"), ("none", "not present")],
)
def test_column_that_is_no_weight_is_reported(column, words):
    batch = pa.RecordBatch.from_pydict({"word": [["a"], ["b"]], "some": [[1.0], []], "x": [[1], [2]]})
    with pytest.raises(ComponentError, match=words) as told:
        Tally(StatsOptions(weight_feature=column)).add(batch)
    assert "statistics.weight" in told.value.hint


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_weight_that_no_mean_can_be_made_with_is_reported_with_its_value(weight):
    batch = pa.RecordBatch.from_pydict({"size": [[1.0], [weight]], "x": [[1], [2]]})
    with pytest.raises(ComponentError, match=f"'size': it is {weight:g} in a row") as told:
        Tally(StatsOptions(weight_feature="size")).add(batch)
    assert "statistics.weight" in told.value.hint


def test_slice_whose_rows_weigh_nothing_is_named():
    batch = pa.RecordBatch.from_pydict(
        {"size": [[1.0], [0.0]], "x": [[1], [2]], "paid": [["card"], ["cash"]]}
    )
    tally = Tally(
        StatsOptions(
            weight_feature="size",
            slicing_config=SlicingConfig(slicing_specs=[SlicingSpec(feature_keys=["paid"])]),
        )
    )
    tally.add(batch)
    with pytest.raises(
        ComponentError, match="statistics of paid_cash cannot be weighted by 'size': it is 0 in all"
    ):
        tally.result()


def told(options, batches=BATCHES):
    tally = Tally(options)
    for batch in batches:
        tally.add(batch)
    return {
        dataset.name: (dataset.num_examples, {each.path.step[0]: each for each in dataset.features})
        for dataset in tally.result().datasets
    }


def test_every_column_has_its_statistics():
    rows, features = told(StatsOptions())[""]
    assert rows == 6
    assert features["kind"].string_stats.unique == 2
    assert features["size"].num_stats.mean == 3
    assert features["size"].num_stats.common_stats.num_missing == 2


def test_slices_have_their_own():
    config = SlicingConfig(slicing_specs=[SlicingSpec(feature_keys=["kind"])])
    found = told(StatsOptions(slicing_config=config))
    assert [(name, rows) for name, (rows, _) in found.items()] == [
        ("All Examples", 6),
        ("kind_a", 4),
        ("kind_b", 2),
    ]


def test_slices_share_the_memory_for_their_values():
    rng = np.random.default_rng(2)
    config = SlicingConfig(slicing_specs=[SlicingSpec(feature_keys=["slice"])])
    tally = Tally(StatsOptions(slicing_config=config))
    (counts,) = (each for each in tally._generators if isinstance(each, ValueCounts))
    place = tally._generators.index(counts)
    counts._limit_bytes = counts._share_bytes = 200_000
    for slices in (1, 1, 2, 8, 8):
        rows = 3_000
        words = [[b"%08d" % number] for number in rng.integers(0, 10**8, rows)]
        parts = [[b"%d" % number] for number in rng.integers(0, slices, rows)]
        kind = pa.large_list(pa.large_binary())
        tally.add(pa.RecordBatch.from_pydict({"slice": pa.array(parts, kind), "word": pa.array(words, kind)}))
        columns = [column for states in tally._states.values() for column in states[place].values()]
        sizes = [column.size_bytes for column in columns if hasattr(column, "size_bytes")]
        assert sum(sizes) <= 200_000
    assert len(tally._states) == 9
    found = {dataset.name: dataset for dataset in tally.result().datasets}
    words = {each.path.step[0]: each for each in found["All Examples"].features}["word"].string_stats
    assert words.unique == pytest.approx(15_000, rel=0.02)


def test_more_slices_than_there_is_memory_for_are_refused(monkeypatch):
    config = SlicingConfig(slicing_specs=[SlicingSpec(feature_keys=["kind"])])
    monkeypatch.setattr(tallies, "MOST_SLICES", 2)
    assert len(told(StatsOptions(slicing_config=config))) == 3
    monkeypatch.setattr(tallies, "MOST_SLICES", 1)
    with pytest.raises(ComponentError) as refused:
        told(StatsOptions(slicing_config=config))
    assert refused.value.message == "the statistics are to be sliced into more than 1 slice"
    assert "beam.stock_nodes: [StatisticsGen]" in refused.value.hint
    assert "statistics.slices" in refused.value.hint


def test_only_the_columns_that_are_wanted():
    assert list(told(StatsOptions(feature_allowlist=["size"]))[""][1]) == ["size"]


def test_no_rows_are_a_data_set_without_columns():
    assert told(StatsOptions(), []) == {"": (0, {})}


def test_tfdv_s_sketches_count_the_values_where_they_are_asked_for():
    for asked in (False, True):
        tally = Tally(StatsOptions(use_sketch_based_topk_uniques=asked))
        assert any(isinstance(each, ValueCounts) for each in tally._generators) is not asked
