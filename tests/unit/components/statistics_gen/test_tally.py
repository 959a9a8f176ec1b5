"""What a tally gathers, of all rows and of slices."""

import pyarrow as pa
import tfx  # noqa: F401  (before TFDV: it patches what TFDV imports)
from tensorflow_data_validation.statistics.stats_options import StatsOptions
from tfx_bsl.public.proto.slicing_spec_pb2 import SlicingConfig, SlicingSpec

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


def test_only_the_columns_that_are_wanted():
    assert list(told(StatsOptions(feature_allowlist=["size"]))[""][1]) == ["size"]


def test_no_rows_are_a_data_set_without_columns():
    assert told(StatsOptions(), []) == {"": (0, {})}


def test_tfdv_s_sketches_count_the_values_where_they_are_asked_for():
    for asked in (False, True):
        tally = Tally(StatsOptions(use_sketch_based_topk_uniques=asked))
        assert any(isinstance(each, ValueCounts) for each in tally._generators) is not asked
