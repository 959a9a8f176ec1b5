"""The executor of Transform, which falls back to TFX's own where it does not support a node."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
from absl import logging  # type: ignore[import-untyped]
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io
from tfx.components.transform import executor as tfx_executor
from tfx.components.transform import executor_utils, labels
from tfx.components.util import examples_utils
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import io_utils

from slipway.components.accelerators import keep_to_cpu
from slipway.components.beam_engine_workers import make_workers, most_shards, runs_elsewhere
from slipway.components.errors import ComponentError
from slipway.components.process_pool import ProcessPool, Workers
from slipway.components.progress import report as tell
from slipway.components.shards import Rows, Shard, redone_in_words, shards_of
from slipway.components.transform.analysis import Reading, analyze
from slipway.components.transform.examples import Columns
from slipway.components.transform.executor_choice import reason_for_stock_executor
from slipway.components.transform.graph import Preprocessing, trace
from slipway.components.transform.materialize import Materialize
from slipway.components.transform.operations import UnknownOperationError

# Compressed examples per process: another process is worth starting for some seconds of work.
_BYTES_PER_PROCESS = 8 << 20
_SMALLER = 8
_TEMPORARY = ".temp_path"
_ENGINE = ".temp_engine"


class Executor(tfx_executor.Executor):  # type: ignore[misc]
    """Analyzes and transforms examples."""

    def Do(  # noqa: N802  (TFX's name)
        self,
        input_dict: Mapping[str, Sequence[Any]],
        output_dict: Mapping[str, Sequence[Any]],
        exec_properties: Mapping[str, object],
    ) -> None:
        """Write the artifacts `transform_graph` and `transformed_examples`.

        Raises:
            ComponentError: the preprocessing_fn returns nothing that can be written, or fails at some rows.
        """
        # On a GPU, the graph's many small operations took 35 times as long (1,797 images, NVIDIA H200).
        keep_to_cpu()
        why = self._reason_for_stock_executor(input_dict, output_dict, exec_properties)
        if why is None:
            try:
                self._transform(input_dict, output_dict, exec_properties)
            except UnknownOperationError as unknown:
                why = f"ours does not support {unknown}"
            else:
                return
        logging.info("Transform runs TFX's own executor: %s", why)
        super().Do(input_dict, output_dict, exec_properties)

    def _reason_for_stock_executor(
        self,
        input_dict: Mapping[str, Sequence[Any]],
        output_dict: Mapping[str, Sequence[Any]],
        exec_properties: Mapping[str, object],
    ) -> str | None:
        examples = input_dict[standard_component_specs.EXAMPLES_KEY]
        return reason_for_stock_executor(
            examples=[
                (
                    example_gen_pb2.PayloadFormat.Name(examples_utils.get_payload_format(each)),
                    str(examples_utils.get_file_format(each)),
                )
                for each in examples
            ],
            outputs=[*input_dict, *output_dict],
            parameters=exec_properties,
        )

    def _transform(
        self,
        input_dict: Mapping[str, Sequence[Any]],
        output_dict: Mapping[str, Sequence[Any]],
        exec_properties: Mapping[str, object],
    ) -> None:
        examples = input_dict[standard_component_specs.EXAMPLES_KEY]
        splits = executor_utils.ResolveSplitsConfig(
            exec_properties.get(standard_component_specs.SPLITS_CONFIG_KEY), examples
        )
        schema_file = io_utils.get_only_uri_in_dir(
            artifact_utils.get_single_uri(input_dict[standard_component_specs.SCHEMA_KEY])
        )
        schema = io_utils.SchemaReader().read(schema_file)
        graph = artifact_utils.get_single_uri(output_dict[standard_component_specs.TRANSFORM_GRAPH_KEY])
        outputs = output_dict.get(standard_component_specs.TRANSFORMED_EXAMPLES_KEY)
        executor_utils.SetSplitNames(splits.transform, outputs)
        prefixes = (
            dict(zip(splits.transform, executor_utils.GetSplitPaths(outputs), strict=True)) if outputs else {}
        )
        files = {split: _files(examples, split) for split in {*splits.analyze, *prefixes}}
        function = self._function(exec_properties, schema_file)
        with _local(graph) as folder, _temporary(folder) as temporary:
            traced = trace(function, Columns(schema).specs, temporary=temporary)
            wanted = traced.transformed_columns()
            if not wanted:
                raise UnknownOperationError("outputs that are made of no column")
            if runs_elsewhere(self._beam_pipeline_args) and not traced.can_be_shared:
                raise UnknownOperationError(
                    "Python functions or random numbers in the graph, with a beam.runner other than direct"
                )
            most = most_shards(self._beam_pipeline_args)
            analyzed = [
                shard for split in splits.analyze for shard in shards_of(split, *files[split], most=most)
            ]
            written = [shard for split in prefixes for shard in _one_each(split, *files[split])]
            # The data is read twice; the larger reading decides, since often only some splits are analyzed.
            workers = make_workers(
                self, analyzed, written, folder=f"{graph}/{_ENGINE}", bytes_per_process=_BYTES_PER_PROCESS
            )
            with workers if traced.can_be_shared else ProcessPool(1) as workers:
                serialized = schema.SerializeToString()
                reading = Reading(analyzed, workers, serialized, traced.analyzed_columns())
                _write_graph(traced, reading, schema, folder)
                work = Materialize(
                    workers.reachable(folder),
                    serialized,
                    wanted,
                    prefixes,
                    unfinished=f"{graph}/{_ENGINE}" if runs_elsewhere(self._beam_pipeline_args) else "",
                )
                _materialize(work, written, workers)

    def _function(self, exec_properties: Mapping[str, object], schema_file: str) -> Any:
        """Return the user's preprocessing_fn, found as TFX finds it."""
        given = {
            labels.PREPROCESSING_FN: exec_properties.get(standard_component_specs.PREPROCESSING_FN_KEY),
            labels.CUSTOM_CONFIG: exec_properties.get(standard_component_specs.CUSTOM_CONFIG_KEY),
            labels.SCHEMA_PATH_LABEL: schema_file,
        }
        return self._GetPreprocessingFn(given, {})


@contextmanager
def _local(folder: str) -> Iterator[str]:
    """Yield a local folder to write to; if `folder` is in a bucket, the files are copied there at the end.

    The graph is saved and loaded several times, in dozens of small files, which would be slow in a bucket.
    """
    if "://" not in folder:
        yield folder
        return
    with TemporaryDirectory(prefix="transform-") as place:
        yield place
        io_utils.copy_dir(place, folder)


@contextmanager
def _temporary(folder: str) -> Iterator[str]:
    """Yield a folder for intermediate results of the passes, and remove it afterwards."""
    temporary = f"{folder}/{_TEMPORARY}"
    fileio.makedirs(temporary)
    try:
        yield temporary
    finally:
        fileio.rmtree(temporary)


def _write_graph(traced: Preprocessing, reading: Reading, schema: Any, folder: str) -> None:
    """Analyze the rows and write the finished graph, with the raw schema, to `folder`."""
    replacements = analyze(traced, reading)
    raw = f"{folder}/{tft.TFTransformOutput.RAW_METADATA_DIR}"
    metadata_io.write_metadata(dataset_metadata.DatasetMetadata(schema), raw)
    traced.finish(replacements, folder)


def _one_each(split: str, files: Sequence[str], sizes: Sequence[int]) -> list[Shard]:
    """Return one shard for each file of a split."""
    return [
        Shard(split, place, len(files), (file,), size)
        for place, (file, size) in enumerate(zip(files, sizes, strict=True))
    ]


def _materialize(work: Materialize, shards: Sequence[Shard], workers: Workers) -> None:
    """Transform the shards, one file at a time per worker."""
    for prefix in work.prefixes.values():
        fileio.makedirs(prefix.rpartition("/")[0])
    progress = Rows(shards, " transformed").tell
    for _ in workers.map(work, shards, progress=progress, again=replace(work, parts=_SMALLER)):
        pass
    if workers.redone:
        tell(redone_in_words(workers.redone).removeprefix("; "))


def _files(examples: Sequence[Any], split: str) -> tuple[list[str], list[int]]:
    """Return the files of a split, and the size of each in bytes."""
    (folder,) = artifact_utils.get_split_uris(examples, split)
    files = sorted(fileio.glob(io_utils.all_files_pattern(folder)))
    if not files:
        raise ComponentError(
            f"the split {split!r} has no file of examples in {folder}",
            hint="write at least one file for each split, even if it has no rows",
        )
    return files, [tf.io.gfile.stat(file).length for file in files]
