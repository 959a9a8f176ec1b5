"""How often values occur: exact, in sketches, and merged."""

import random
from collections import Counter

import pyarrow as pa
import pytest
import tfx  # noqa: F401  (before TFDV: it patches what TFDV imports)
from tensorflow_data_validation.statistics.stats_options import StatsOptions

from slipway.components.statistics_gen.value_counts import ValueCounts


def batch(rows, **columns):
    lists = {name: pa.array(values, pa.large_list(kind)) for name, (kind, values) in columns.items()}
    assert all(len(each) == rows for each in lists.values())
    return pa.RecordBatch.from_pydict(lists)


def words(values, weights=None):
    columns = {"word": (pa.large_binary(), [[value] for value in values])}
    if weights is not None:
        columns["weight"] = (pa.float32(), [[weight] for weight in weights])
    return batch(len(values), **columns)


def counted(generator, *batches):
    state = generator.create_accumulator()
    for each in batches:
        state = generator.add_input(state, each)
    return state


def found(generator, state):
    (feature,) = generator.extract_output(state).features
    return feature.string_stats


def top(stats):
    return [(each.value, each.frequency) for each in stats.top_values]


@pytest.fixture
def many():
    """20,000 words in batches; some are frequent."""
    rng = random.Random(1)  # noqa: S311
    drawn = [b"%05d" % int(rng.paretovariate(0.5) % 5_000) for _ in range(20_000)]
    return drawn, [words(drawn[begin : begin + 700]) for begin in range(0, len(drawn), 700)]


def test_counts_are_exact(many):
    drawn, batches = many
    generator = ValueCounts(StatsOptions(num_rank_histogram_buckets=30))
    stats = found(generator, counted(generator, *batches))
    expected = sorted(((count, value.decode()) for value, count in Counter(drawn).items()), reverse=True)
    assert stats.unique == len(expected)
    assert top(stats) == [(value, count) for count, value in expected[:20]]
    assert [(bucket.label, bucket.sample_count) for bucket in stats.rank_histogram.buckets] == [
        (value, count) for count, value in expected[:30]
    ]


def test_merged_counts_are_those_of_all(many):
    _, batches = many
    generator = ValueCounts(StatsOptions())
    whole = counted(generator, *batches)
    parts = [counted(generator, *batches[:9]), counted(generator), counted(generator, *batches[9:])]
    assert found(generator, generator.merge_accumulators(parts)) == found(generator, whole)


def test_what_takes_too_much_memory_is_sketched(many):
    drawn, batches = many
    generator = ValueCounts(StatsOptions(), limit_bytes=20_000)
    parts = [counted(generator, *batches[:15]), counted(generator, *batches[15:])]
    exact = counted(generator, words([b"00001"] * 10))
    stats = found(generator, generator.merge_accumulators([exact, *parts]))
    counts = Counter(drawn)
    assert stats.unique == pytest.approx(len(counts), rel=0.01)
    (value, frequency), *_ = top(stats)
    assert value == "00001"
    # A sketch of 1,024 values is off by at most the share of one of them.
    assert frequency == pytest.approx(counts[b"00001"] + 10, abs=20_010 / 1_024)


def test_weights_are_summed_beside_the_counts():
    generator = ValueCounts(StatsOptions(weight_feature="weight"))
    state = counted(generator, words([b"a", b"b", b"a"], [1, 5, 2]), words([b"a", b"c"], [0.5, 4]))
    stats = found(generator, state)
    assert top(stats) == [("a", 3), ("c", 1), ("b", 1)]
    assert top(stats.weighted_string_stats) == [("b", 5), ("c", 4), ("a", 3.5)]


def test_text_that_is_none_has_its_placeholder_and_empty_columns_nothing():
    generator = ValueCounts(StatsOptions())
    state = counted(
        generator,
        words([b"\xff\xfe", "höch".encode()]),
        batch(2, number=(pa.float32(), [[1.0], None]), none=(pa.large_binary(), [None, []])),
    )
    assert top(found(generator, state)) == [("__BYTES_VALUE__", 1), ("höch", 1)]
