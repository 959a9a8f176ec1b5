"""Computes the statistics of rows in whole batches, and merges those of several processes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from tensorflow_data_validation.arrow import arrow_util
from tensorflow_data_validation.statistics import stats_impl
from tensorflow_data_validation.statistics.generators import top_k_uniques_sketch_stats_generator
from tensorflow_data_validation.utils import slicing_util
from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx_bsl.statistics import merge_util

from slipway.components.counted_words import counted
from slipway.components.errors import ComponentError
from slipway.components.statistics_gen.histograms import quick_histograms
from slipway.components.statistics_gen.value_counts import ValueCounts

MOST_SLICES = 1000
"""The maximum number of slices: with more, the sketches per column and slice alone would take gigabytes."""

States = dict[str, list[Any]]
_Slicer = Callable[[pa.RecordBatch], Iterator[tuple[str, pa.RecordBatch]]]


class Tally:
    """The states of TFDV's generators after the rows so far: one set per slice, if there are slices.

    Args:
        options: a StatsOptions.
    """

    def __init__(self, options: Any) -> None:
        self._options = options
        self._generators = _generators(options)
        self._slicers = _slicers(options)
        self._states: States = {}
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch; a column has a list of values per row.

        Raises:
            ComponentError: there are too many slices, or a weight is missing, negative or not finite.
        """
        before = len(self._states)
        self.rows += batch.num_rows
        if self._options.feature_allowlist:
            batch = stats_impl._filter_features(batch, self._options.feature_allowlist)
        if self._options.weight_feature:
            _check_weights(batch, self._options.weight_feature)
        with np.errstate(invalid="ignore", over="ignore"):  # columns may hold infinite numbers
            for key, part in self._sliced(batch):
                states = self._states.get(key) or self._new()
                self._states[key] = [
                    generator.add_input(state, part)
                    for generator, state in zip(self._generators, states, strict=True)
                ]

        if len(self._states) > max(before, 1):
            self._share_memory()

    @property
    def states(self) -> States:
        """The generators' states, by slice; they can be pickled."""
        return self._states

    def merge(self, states: States, rows: int) -> None:
        """Add the states of another tally with the same options.

        Args:
            states: the other tally's states; they are modified.

        Raises:
            ComponentError: there are too many slices.
        """
        self.rows += rows
        for key, theirs in states.items():
            if key not in self._states:
                self._check_number()
                self._states[key] = theirs
                continue
            mine = self._states[key]
            with np.errstate(invalid="ignore", over="ignore"):
                self._states[key] = [
                    generator.merge_accumulators(pair)
                    for generator, *pair in zip(self._generators, mine, theirs, strict=True)
                ]
        if len(self._states) > 1:
            self._share_memory()

    def result(self) -> Any:
        """Return a DatasetFeatureStatisticsList with a data set per slice; that of all rows is the first.

        The tally cannot be used afterwards.

        Raises:
            ComponentError: all weights are 0, in a slice or in the rows that have a value in some column.
        """
        found = statistics_pb2.DatasetFeatureStatisticsList()
        with quick_histograms(), np.errstate(invalid="ignore", over="ignore"):
            for key in list(self._states) or [""]:
                states = self._states.pop(key) if self._states else self._empty()
                try:
                    found.datasets.append(self._extracted(states))
                except AssertionError as error:  # from TFDV: there is no median if all weights are 0
                    if self._options.weight_feature is None:
                        raise
                    raise ComponentError(
                        f"the statistics of {key or 'all rows'} cannot be weighted by "
                        f"{self._options.weight_feature!r}: it is 0 in all rows there, or in all that have a "
                        "value in some column",
                        hint="name another column in statistics.weight, or slice by others "
                        "(statistics.slices); null: no weights",
                    ) from error
                if self._slicers:
                    found.datasets[-1].name = key
        return found

    def _sliced(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if not self._slicers:
            yield "", batch
            return
        try:
            yield from slicing_util.generate_slices(batch, self._slicers)
        except ValueError as error:  # a value is not UTF-8 text
            raise ComponentError(
                f"the rows cannot be sliced for their statistics: {error.__context__ or error}",
                hint="slice by other columns (statistics.slices), or fix these values",
            ) from error

    def _new(self) -> list[Any]:
        self._check_number()
        return self._empty()

    def _check_number(self) -> None:
        if len(self._states) > MOST_SLICES:  # the states of all rows do not count as a slice
            raise ComponentError(
                f"the statistics are to be sliced into more than {counted(MOST_SLICES, 'slice')}",
                hint="slice by columns with fewer values (statistics.slices, or slicing_config of the "
                "StatsOptions); TFX's own executor has no such limit (beam.stock_nodes: [StatisticsGen])",
            )

    def _share_memory(self) -> None:
        for place, generator in enumerate(self._generators):
            if isinstance(generator, ValueCounts):
                generator.share([states[place] for states in self._states.values()])

    def _empty(self) -> list[Any]:
        return [generator.create_accumulator() for generator in self._generators]

    def _extracted(self, states: Sequence[Any]) -> Any:
        parts = [
            generator.extract_output(generator.compact(state))
            for generator, state in zip(self._generators, states, strict=True)
        ]
        return merge_util.merge_dataset_feature_statistics(parts).datasets[0]


def _generators(options: Any) -> list[Any]:
    """Return TFDV's generators, with `ValueCounts` in place of its sketches unless these are requested."""
    generators = stats_impl.get_generators(options, in_memory=True)
    if options.add_default_generators and not options.use_sketch_based_topk_uniques:
        sketch = top_k_uniques_sketch_stats_generator.TopKUniquesSketchStatsGenerator
        generators = [ValueCounts(options) if isinstance(each, sketch) else each for each in generators]
    for generator in generators:
        generator.setup()
    return generators  # type: ignore[no-any-return]


def _check_weights(batch: pa.RecordBatch, column: str) -> None:
    try:
        weights = np.asarray(arrow_util.get_weight_feature(batch, column), dtype=np.float64)
    except ValueError as error:
        raise ComponentError(
            f"the statistics cannot be weighted by {column!r}: {error}",
            hint="statistics.weight needs a column with one number in each row; null: no weights",
        ) from error
    is_wrong = ~(np.isfinite(weights) & (weights >= 0))
    if is_wrong.any():
        raise ComponentError(
            f"the statistics cannot be weighted by {column!r}: it is {weights[is_wrong][0]:g} in a row, and "
            "weights must be finite and >= 0",
            hint="fix these values, or name another column in statistics.weight; null: no weights",
        )


def _slicers(options: Any) -> list[_Slicer]:
    if not options.slicing_config:
        return []
    functions, _ = slicing_util.convert_slicing_config_to_slice_functions_and_sqls(options.slicing_config)
    return [slicing_util.default_slicer, *functions]
