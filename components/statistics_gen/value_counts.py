"""Counts the values of texts and categories: exactly while memory allows, then with sketches."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tensorflow_data_validation import constants
from tensorflow_data_validation.arrow import arrow_util
from tensorflow_data_validation.statistics.generators import stats_generator
from tensorflow_data_validation.utils import schema_util, stats_util, top_k_uniques_stats_util
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx_bsl.arrow import array_util
from tfx_bsl.sketches import KmvSketch, MisraGriesSketch

LIMIT_BYTES = 256 << 20
"""The maximum size of the distinct values of all columns and slices together."""
# As in TFDV.
_DISTINCT_BUCKETS, _FREQUENT_BUCKETS, _LONG_BYTES = 16_384, 1_024, 1_024

_Counts = dict[Any, "_Exact | _Sketched"]


class ValueCounts(stats_generator.CombinerStatsGenerator):  # type: ignore[misc]
    """Computes what TFDV's TopKUniquesStatsGenerator does, but without Beam or an object per value.

    Args:
        options: a StatsOptions.
        limit_bytes: the size of the distinct values above which the columns with most of them are sketched;
            it applies to all accumulators together, see `share`.
    """

    def __init__(self, options: Any, limit_bytes: int = LIMIT_BYTES) -> None:
        super().__init__("ValueCounts", options.schema)
        schema = options.schema
        self._options = options
        self._weights = options.example_weight_map
        self._limit_bytes = self._share_bytes = limit_bytes
        self._bytes = frozenset(schema_util.get_bytes_features(schema) if schema else [])
        self._categories: Mapping[Any, Any] = (
            schema_util.get_categorical_numeric_feature_types(schema) if schema else {}
        )

    def share(self, accumulators: Sequence[_Counts]) -> None:
        """Give each of these accumulators, and each filled later, an equal part of the limit."""
        self._share_bytes = self._limit_bytes // max(len(accumulators), 1)
        for each in accumulators:
            self._shrink(each)

    def create_accumulator(self) -> _Counts:
        """Return an empty accumulator, which maps paths of columns to counts."""
        return {}

    def add_input(self, accumulator: _Counts, batch: pa.RecordBatch) -> _Counts:
        """Add the values of a batch to the counts."""
        for path, column, weights in arrow_util.enumerate_arrays(
            batch, example_weight_map=self._weights, enumerate_leaves_only=True
        ):
            if not self._is_counted(path, column.type):
                continue
            values, rows = array_util.flatten_nested(column, weights is not None)
            if len(values):
                found = _counted(values, None if weights is None else weights[rows])
                accumulator.setdefault(path, _Exact()).add(found)
        self._shrink(accumulator)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[_Counts]) -> _Counts:
        """Add the counts of all accumulators to the first, which is modified and returned."""
        first, *others = accumulators
        for other in others:
            for path, counts in other.items():
                mine = first.get(path)
                if mine is None:
                    first[path] = counts
                elif isinstance(counts, _Exact):
                    mine.add(counts.table())
                elif isinstance(mine, _Sketched):
                    mine.merge(counts)
                else:
                    counts.add(mine.table())
                    first[path] = counts
            self._shrink(first)
        return first

    def extract_output(self, accumulator: _Counts) -> Any:
        """Return the most frequent values and the number of distinct values of each column."""
        result = statistics_pb2.DatasetFeatureStatistics()
        options = self._options
        most = max(options.num_top_values, options.num_rank_histogram_buckets)
        for path, counts in accumulator.items():
            unique, frequent, weighty = counts.result(most)
            result.features.append(
                top_k_uniques_stats_util.make_feature_stats_proto_topk_uniques(
                    feature_path=path,
                    num_top_values=options.num_top_values,
                    num_rank_histogram_buckets=options.num_rank_histogram_buckets,
                    num_unique=unique,
                    value_count_list=_pairs(frequent),
                    weighted_value_count_list=_pairs(weighty),
                    frequency_threshold=options.frequency_threshold,
                    weighted_frequency_threshold=options.weighted_frequency_threshold,
                )
            )
        return result

    def _is_counted(self, path: Any, kind: pa.DataType) -> bool:
        feature = stats_util.get_feature_type_from_arrow_type(path, kind)
        if path in self._bytes:
            return False
        if feature == statistics_pb2.FeatureNameStatistics.STRING:
            return True
        return feature == statistics_pb2.FeatureNameStatistics.INT and bool(
            top_k_uniques_stats_util.output_categorical_numeric(self._categories, path, feature)
        )

    def _shrink(self, accumulator: _Counts) -> None:
        exact = {path: counts for path, counts in accumulator.items() if isinstance(counts, _Exact)}
        size = sum(counts.size_bytes for counts in exact.values())
        if size <= self._share_bytes:
            return
        most = max(self._options.num_top_values, self._options.num_rank_histogram_buckets, _FREQUENT_BUCKETS)
        for counts in exact.values():
            size += counts.compact()
        for path, counts in sorted(exact.items(), key=lambda each: each[1].size_bytes, reverse=True):
            # Shrink to half the limit: otherwise the next batch might exceed it again.
            if size <= self._share_bytes / 2:
                return
            size -= counts.size_bytes
            accumulator[path] = sketched = _Sketched(most)
            sketched.add(counts.table())


class _Exact:
    """Exact counts: tables of values, counts and weights, merged when the new ones outgrow the merged one."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []
        self._together = 0

    @property
    def size_bytes(self) -> int:
        return sum(part.nbytes for part in self._parts)

    def add(self, counts: pa.Table) -> None:
        self._parts.append(counts)
        if sum(part.num_rows for part in self._parts[1:]) > max(2 * self._together, 1_000):
            self.compact()

    def compact(self) -> int:
        """Merge all tables into one; return the change in size, in bytes, usually negative."""
        before = self.size_bytes
        if len(self._parts) > 1:
            merged = pa.concat_tables(self._parts).group_by("value")
            sums = merged.aggregate([(name, "sum") for name in self._parts[0].column_names[1:]])
            names = [name.removesuffix("_sum") for name in sums.column_names]
            self._parts = [sums.rename_columns(names).select(self._parts[0].column_names)]
        self._together = self._parts[0].num_rows
        return self.size_bytes - before

    def table(self) -> pa.Table:
        self.compact()
        return self._parts[0]

    def result(self, most: int) -> tuple[int, pa.Table, pa.Table | None]:
        table = self.table()
        weighty = _largest(table, "weight", most) if "weight" in table.column_names else None
        return table.num_rows, _largest(table, "count", most), weighty


class _Sketched:
    """Approximate counts: TFDV's sketches."""

    def __init__(self, most: int) -> None:
        self._distinct = KmvSketch(_DISTINCT_BUCKETS)
        self._frequent, self._weighty = (
            MisraGriesSketch(
                num_buckets=most,
                invalid_utf8_placeholder=constants.NON_UTF8_PLACEHOLDER,
                large_string_threshold=_LONG_BYTES,
                large_string_placeholder=constants.LARGE_BYTES_PLACEHOLDER,
            )
            for _ in range(2)
        )

    def add(self, counts: pa.Table) -> None:
        for batch in counts.combine_chunks().to_batches():
            values = batch.column("value")
            self._distinct.AddValues(values)
            self._frequent.AddValues(values, batch.column("count").cast(pa.float32()))
            if "weight" in counts.column_names:
                self._weighty.AddValues(values, batch.column("weight").cast(pa.float32()))

    def merge(self, other: "_Sketched") -> None:
        self._distinct.Merge(other._distinct)
        self._frequent.Merge(other._frequent)
        self._weighty.Merge(other._weighty)

    def result(self, most: int) -> tuple[int, pa.Table, pa.Table | None]:
        frequent, weighty = (_estimated(sketch, most) for sketch in (self._frequent, self._weighty))
        return self._distinct.Estimate(), frequent, weighty if weighty.num_rows else None


def _counted(values: pa.Array, weights: Any) -> pa.Table:
    if weights is None:
        found = values.value_counts()
        return pa.table({"value": found.field("values"), "count": found.field("counts")})
    encoded = values.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    counts = np.bincount(codes, minlength=len(encoded.dictionary))
    sums = np.bincount(codes, weights=weights, minlength=len(encoded.dictionary))
    return pa.table({"value": encoded.dictionary, "count": counts, "weight": sums})


def _estimated(sketch: Any, most: int) -> pa.Table:
    values, counts = sketch.Estimate().flatten()
    return _largest(pa.table({"value": values, "count": counts}), "count", most)


def _largest(table: pa.Table, by: str, most: int) -> pa.Table:
    """Return the rows [value, by] with the largest `by`; of equal ones, those with the largest value."""
    table = table.select(["value", by])
    if table.num_rows <= most:
        return table
    places = pc.select_k_unstable(table, k=most, sort_keys=[(by, "descending"), ("value", "descending")])
    return table.take(places)


def _pairs(table: pa.Table | None) -> list[Any] | None:
    if table is None:
        return None
    values, counts = (column.to_pylist() for column in table.columns)
    return list(map(top_k_uniques_stats_util.FeatureValueCount, values, counts))
