"""The executor of StatisticsGen, which falls back to TFX's own where it does not support a node."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tensorflow as tf
import tensorflow_data_validation as tfdv
from absl import logging  # type: ignore[import-untyped]
from tfx.components.statistics_gen import executor as tfx_executor
from tfx.components.util import examples_utils
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import io_utils, json_utils, stats_utils

from slipway.components.beam_engine_workers import make_workers, most_shards
from slipway.components.counted_words import counted
from slipway.components.process_pool import TaskProgress
from slipway.components.progress import report as tell
from slipway.components.shards import Rows, Shard, redone_in_words, shards_of
from slipway.components.statistics_gen.executor_choice import OPTIONS, reason_for_stock_executor
from slipway.components.statistics_gen.reading import batches
from slipway.components.statistics_gen.tally import States, Tally

_KEYS = standard_component_specs

# Compressed examples per process: another process is worth starting for some seconds of work.
_BYTES_PER_PROCESS = 8 << 20
_SMALLER = 8
_TEMPORARY = ".temp_path"


@dataclass(frozen=True)
class Count:
    """Gathers the statistics of a shard.

    Attributes:
        options: StatsOptions, as JSON.
        samples: the share of rows to sample, by split; None for all rows.
        parts: the factor by which batches are smaller than usual.
    """

    options: str
    samples: Mapping[str, float | None]
    parts: int = 1

    def __call__(self, shard: Shard, progress: TaskProgress) -> tuple[States, int]:
        """Return the states and the number of rows of the shard's tally."""
        tally = Tally(tfdv.StatsOptions.from_json(self.options))
        for place, file in enumerate(shard.files):
            done_bytes = shard.size_bytes * place // len(shard.files)
            for batch in batches(file, self.samples[shard.split], parts=self.parts):
                tally.add(batch)
                progress(tally.rows, done_bytes)
        progress(tally.rows, shard.size_bytes)
        return tally.states, tally.rows


class Executor(tfx_executor.Executor):  # type: ignore[misc]
    """Computes the statistics of each split."""

    def Do(  # noqa: N802  (TFX's name)
        self,
        input_dict: Mapping[str, Sequence[Any]],
        output_dict: Mapping[str, Sequence[Any]],
        exec_properties: Mapping[str, Any],
    ) -> None:
        """Write the artifact `statistics`.

        Raises:
            ComponentError: a file of examples is damaged.
        """
        examples = artifact_utils.get_single_instance(input_dict[_KEYS.EXAMPLES_KEY])
        options = _options(exec_properties.get(_KEYS.STATS_OPTIONS_JSON_KEY))
        excluded = json_utils.loads(exec_properties.get(_KEYS.EXCLUDE_SPLITS_KEY) or "null") or []
        splits = [
            each for each in artifact_utils.decode_split_names(examples.split_names) if each not in excluded
        ]
        given = input_dict.get(_KEYS.SCHEMA_KEY)
        has_two_schemas = bool(given and options.schema)
        if given and not has_two_schemas:
            options.schema = _schema(given)
        why = self._reason_for_stock_executor(
            examples, options, splits, exec_properties, has_two_schemas=has_two_schemas
        )
        if why is not None:
            logging.info("StatisticsGen runs TFX's own executor: %s", why)
            super().Do(input_dict, output_dict, exec_properties)
            return
        by_split = json_utils.loads(exec_properties.get(_KEYS.SAMPLE_RATE_BY_SPLIT_KEY) or "null") or {}
        samples = {split: by_split.get(split, options.sample_rate) for split in splits}
        statistics = artifact_utils.get_single_instance(output_dict[_KEYS.STATISTICS_KEY])
        _describe(statistics, examples, samples)
        most = most_shards(self._beam_pipeline_args)
        shards = {split: shards_of(split, *_files(examples, split), most=most) for split in splits}
        self._count(options, samples, shards, statistics)

    def _count(
        self,
        options: Any,
        samples: Mapping[str, float | None],
        shards: Mapping[str, Sequence[Shard]],
        statistics: Any,
    ) -> None:
        dealt = list(itertools.chain.from_iterable(shards.values()))
        work = Count(options.to_json(), samples)
        rows = 0
        with make_workers(
            self, dealt, folder=f"{statistics.uri}/{_TEMPORARY}", bytes_per_process=_BYTES_PER_PROCESS
        ) as workers:
            results = workers.map(work, dealt, progress=Rows(dealt).tell, again=replace(work, parts=_SMALLER))
            for split in samples:
                tally = Tally(options)
                for states, more in itertools.islice(results, len(shards[split])):
                    tally.merge(states, more)
                rows += tally.rows
                _write(tally.result(), artifact_utils.get_split_uri([statistics], split))
            tell(counted(rows, "row") + redone_in_words(workers.redone))

    def _reason_for_stock_executor(
        self,
        examples: Any,
        options: Any,
        splits: Sequence[str],
        exec_properties: Mapping[str, object],
        *,
        has_two_schemas: bool,
    ) -> str | None:
        payload = example_gen_pb2.PayloadFormat.Name(examples_utils.get_payload_format(examples))
        config = options.slicing_config
        by_sql = any(each.slice_keys_sql for each in config.slicing_specs) if config else False
        return reason_for_stock_executor(
            examples=(payload, str(examples_utils.get_file_format(examples))),
            has_patterns=examples.has_custom_property(examples_utils.CUSTOM_SPLIT_PATTERN_PROPERTY_NAME),
            splits=splits,
            parameters=exec_properties,
            options={
                **{name: getattr(options, name, None) for name in OPTIONS},
                # TFDV 1.21 (Python 3.12 and 3.13) no longer has this option.
                "slice_sqls": bool(getattr(options, "experimental_slice_sqls", None)) or by_sql,
                "two_schemas": has_two_schemas,
                "derived_features": options.schema is not None and _has_derived(options.schema.feature),
            },
        )


def _options(written: str | None) -> Any:
    return tfdv.StatsOptions.from_json(written) if written else tfdv.StatsOptions()


def _schema(schemas: Sequence[Any]) -> Any:
    folder = artifact_utils.get_single_uri(schemas)
    return io_utils.SchemaReader().read(io_utils.get_only_uri_in_dir(folder))


def _has_derived(features: Sequence[Any]) -> bool:
    return any(
        each.HasField("validation_derived_source") or _has_derived(each.struct_domain.feature)
        for each in features
    )


def _describe(statistics: Any, examples: Any, samples: Mapping[str, float | None]) -> None:
    """Set the properties of the artifact that TFX's executor sets."""
    statistics.split_names = artifact_utils.encode_split_names(list(samples))
    statistics.span = examples.span
    rates = {split: sample or 1.0 for split, sample in samples.items()}
    statistics.set_json_value_custom_property(
        tfx_executor.SAMPLE_RATE_BY_SPLIT_PROPERTY_NAME, json_utils.dumps(rates)
    )
    try:
        link = stats_utils.generate_stats_dashboard_link(statistics)
    except Exception:  # as in TFX's executor: a missing link must not fail the node
        logging.exception("there is no link to a dashboard of the statistics")
        link = ""
    statistics.set_string_custom_property(tfx_executor.STATS_DASHBOARD_LINK, link)


def _files(examples: Any, split: str) -> tuple[list[str], list[int]]:
    """Return the files of a split, and the size of each in bytes."""
    folder = artifact_utils.get_split_uri([examples], split)
    files = sorted(fileio.glob(io_utils.all_files_pattern(folder)))
    return files, [tf.io.gfile.stat(file).length for file in files]


def _write(found: Any, folder: str) -> None:
    fileio.makedirs(folder)
    with fileio.open(f"{folder}/{tfx_executor.DEFAULT_FILE_NAME}", "wb") as file:
        file.write(found.SerializeToString(deterministic=True))
