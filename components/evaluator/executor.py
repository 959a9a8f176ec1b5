"""The executor of Evaluator: one pass over the rows for all models, metrics and slices.

If the configuration needs anything that this executor does not support, its base class, TFX's executor, runs
the whole evaluation.
"""

import json
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import tensorflow as tf
import tensorflow_model_analysis as tfma
from google.protobuf import json_format
from tensorflow_model_analysis.metrics.metric_types import registered_metrics
from tfx.components.util import examples_utils
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.standard_artifacts import ModelEvaluation
from tfx.utils import io_utils, json_utils, path_utils, proto_utils

from slipway.components.beam_engine_workers import make_workers, most_shards
from slipway.components.counted_words import counted
from slipway.components.errors import ComponentError
from slipway.components.evaluator.metric_files import merge_evaluation, result_names, write_evaluation
from slipway.components.evaluator.metric_values import results
from slipway.components.evaluator.own_metrics import (
    apart,
    own_metrics,
    require_metrics,
    require_new_names,
    unsupported_failure,
)
from slipway.components.evaluator.reading import BATCH_ROWS, LoadedModels
from slipway.components.evaluator.request import QUANTILES, RANKS, NotOursError, Request, read_request
from slipway.components.evaluator.spreads import spreads
from slipway.components.evaluator.stock_executor import KINDS, CheckedExecutor, read_config, with_defaults
from slipway.components.evaluator.tally import Tally
from slipway.components.metrics.definitions import of_output, plain_name
from slipway.components.model_gate.eval_config import CANDIDATE
from slipway.components.model_gate.evaluation import kinds_of_models
from slipway.components.model_gate.trivial_scores import LABEL_PREFIX
from slipway.components.process_pool import TaskProgress
from slipway.components.progress import report as tell
from slipway.components.saved_model.digest_files import require_as_exported
from slipway.components.shards import Rows, Shard, redone_in_words, shards_of, with_place

_EVAL = "eval"
_FORMATS = (example_gen_pb2.FORMAT_TF_EXAMPLE, example_gen_pb2.FORMAT_UNSPECIFIED)
_TEMPORARY = ".temp_path"
# In bytes of compressed examples: another process must load the models too, which pays off from a few seconds
# of work on.
_BYTES_PER_PROCESS = 4 << 20
_SMALLER = 8
_STOCK_COST = "some 30 times as long (0.65 s of processor time for 1,000 rows in 31 slices)"


@dataclass(frozen=True, slots=True)
class _Work:
    """One evaluation.

    Attributes:
        config: the EvalConfig, with TFMA's defaults.
        request: the parsed configuration, without custom metrics.
        own: a configuration of only the custom metrics, without defaults; None if there are none.
        models: folders of the SavedModels, by model name.
        schema: serialized schema of the raw examples; None if there is none.
    """

    config: Any
    request: Request
    own: Any
    models: Mapping[str, str]
    files: Sequence[str]
    schema: bytes | None
    folder: str


@dataclass(frozen=True)
class Count:
    """Counts the rows of a shard.

    Attributes:
        models: folders of the SavedModels, by model name.
        schema: serialized schema of the raw examples; None if there is none.
    """

    request: Request
    models: Mapping[str, str]
    schema: bytes | None

    @cached_property
    def _loaded(self) -> LoadedModels:
        return LoadedModels(self.request, self.models, self.schema)

    def __call__(self, shard: Shard, progress: TaskProgress) -> Tally:
        """Count the rows of a shard."""
        tally = Tally(self.request)
        for done, (place, file) in enumerate(with_place(shard)):
            for _ in self._loaded.tally(file, place, tally):
                progress(tally.total, shard.size_bytes * done // len(shard.files))
        progress(tally.total, shard.size_bytes)
        return tally

    def in_smaller_batches(self, shard: Shard, progress: TaskProgress) -> Tally:
        """Count in smaller batches, because memory is scarce, with the models already loaded."""
        self._loaded.most_rows = min(self._loaded.most_rows, BATCH_ROWS // _SMALLER)
        return self(shard, progress)

    def __getstate__(self) -> dict[str, object]:
        # Without the loaded models: each process loads its own.
        return {each.name: getattr(self, each.name) for each in fields(self)}


class Executor(CheckedExecutor):
    """Measures models as TFX's executor does, but in batches of thousands of rows."""

    def Do(  # noqa: N802  (TFX's name)
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, object],
    ) -> None:
        """Write the artifact `evaluation`.

        Raises:
            ComponentError: the rows, or one of the custom metrics, cannot be measured; TFX's executor, which
                took over, failed; or the baseline's files changed after its export: a worse baseline would
                let a worse model pass.
        """
        for baseline in input_dict.get(standard_component_specs.BASELINE_MODEL_KEY) or ():
            require_as_exported("the baseline model", _saved_model(baseline))
        try:
            work = _work(input_dict, output_dict, exec_properties)
            words = self._measure(work)
            if work.own is not None:
                self._add_own(work, words, input_dict, output_dict, exec_properties)
        except NotOursError as reason:
            _require_stock(exec_properties, reason)
            words = f"TFX's own executor evaluates, row by row: {reason}"
            logging.warning("%s; it takes %s, and gives no confidence bounds", words, _STOCK_COST)
            tell(words)
            try:
                super().Do(input_dict, output_dict, exec_properties)
            except (ComponentError, MemoryError, OSError):
                raise  # the engine has words of its own for lack of memory and disk
            except Exception as error:  # Beam and TensorFlow Model Analysis let any through
                raise unsupported_failure(reason, error) from error
        for evaluation in output_dict[standard_component_specs.EVALUATION_KEY]:
            evaluation.set_string_custom_property("metrics", json.dumps(_overall_metrics(evaluation.uri)))

    def _add_own(
        self,
        work: _Work,
        words: str,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, object],
    ) -> None:
        """Compute the custom metrics with TFX's own executor and add them to the others."""
        metrics = own_metrics(with_defaults(work.own, input_dict))
        names = ", ".join(metric.full_name for metric in metrics)
        words = f"{words}; {names} by TFX's own executor, row by row"
        tell(words)
        logging.warning("%s; it takes %s, and gives no confidence bounds", words, _STOCK_COST)
        begun = time.monotonic()
        of_own = ModelEvaluation()
        of_own.uri = f"{work.folder}/own"
        super().Do(
            input_dict,
            {**output_dict, standard_component_specs.EVALUATION_KEY: [of_own]},
            {**exec_properties, standard_component_specs.EVAL_CONFIG_KEY: _as_json(work.own)},
        )
        require_new_names(metrics, result_names(of_own.uri), taken=result_names(work.folder))
        merge_evaluation(work.folder, of_own.uri)
        fileio.rmtree(of_own.uri)
        words = f"{words}: {time.monotonic() - begun:.1f} s"
        logging.warning(words)
        tell(words)

    def _measure(self, work: _Work) -> str:
        """Write the evaluation; return a summary in words."""
        sizes = [tf.io.gfile.stat(file).length for file in work.files]
        shards = shards_of("", work.files, sizes, most=most_shards(self._beam_pipeline_args))
        count = Count(work.request, work.models, work.schema)
        tally = Tally(work.request)
        with make_workers(
            self, shards, folder=f"{work.folder}/{_TEMPORARY}", bytes_per_process=_BYTES_PER_PROCESS
        ) as workers:
            found = workers.map(count, shards, progress=Rows(shards).tell, again=count.in_smaller_batches)
            for each in found:
                tally.merge(each)
        return _write(work, tally, redone_in_words(workers.redone))


def _require_stock(properties: Mapping[str, object], reason: NotOursError) -> None:
    """Check that TFX's own executor can compute the metrics.

    Raises:
        ComponentError: TFX's executor does not know a metric: a mean over labels, or one of quantiles or
            groups.
    """
    config = tfma.EvalConfig()
    proto_utils.json_to_proto(properties[standard_component_specs.EVAL_CONFIG_KEY], config)
    for spec in config.metrics_specs:
        if spec.HasField("aggregate") and spec.aggregate.macro_average:
            raise ComponentError(
                f"TFX's own executor would evaluate, which has no mean over labels: {reason}",
                hint="name the metrics of each label in evaluate.metrics, as LABEL/METRIC",
            )
        # A class with a module is the user's, whatever its name is.
        if any(not each.module and each.class_name in QUANTILES | RANKS for each in spec.metrics):
            raise ComponentError(
                "TFX's own executor would evaluate, which has no metrics of quantiles and of "
                f"groups: {reason}",
                hint="change what is named after the colon, or remove metrics of quantiles and groups "
                "from evaluate.metrics and the thresholds",
            )


def _write(work: _Work, tally: Tally, redone: str = "") -> str:
    """Write the results; return a summary in words."""
    values, found = results(work.request, tally), spreads(work.request, tally)
    write_evaluation(work.folder, work.config, work.request, values, found, work.models)
    bounds = "; confidence bounds of all rows only" if tally.is_cut else ""
    cut = f"; batches of at most {counted(tally.cut_to, 'row')}: memory ran out" if tally.cut_to else ""
    words = f"{counted(tally.total, 'row')}, {counted(len(tally.keys), 'slice')}{bounds}{cut}{redone}"
    if tally.is_cut:
        logging.warning(words)  # on another machine nobody receives progress reports
    tell(words)
    return words


def _overall_metrics(folder: str) -> dict[str, float]:
    """Return the candidate's metrics over all rows.

    A run's record holds them, so that its readers need not open TFMA's files.
    """
    found, kinds = {}, kinds_of_models(folder)
    for record in tfma.load_metrics(folder):
        if record.slice_key.single_slice_keys:
            continue
        for entry in record.metric_keys_and_values:
            is_own = kinds[entry.key.model_name] == CANDIDATE and not entry.key.is_diff
            value = entry.value.double_value.value
            if is_own and entry.value.HasField("double_value") and math.isfinite(value):
                found[of_output(entry.key.output_name, entry.key.name)] = value
    return {name: value for name, value in found.items() if not plain_name(name).startswith(LABEL_PREFIX)}


def _work(
    inputs: Mapping[str, list[Any]], outputs: Mapping[str, list[Any]], properties: Mapping[str, object]
) -> _Work:
    """Read the work from TFX's artifacts and parameters.

    Raises:
        NotOursError: this executor does not support something in it.
    """
    keys = standard_component_specs
    for key in (keys.MODULE_FILE_KEY, keys.MODULE_PATH_KEY, "custom_eval_shared_model", "custom_extractors"):
        if properties.get(key):
            raise NotOursError(f"it has a {key} of its own")
    if not properties.get(keys.EVAL_CONFIG_KEY) or not inputs.get(keys.MODEL_KEY):
        raise NotOursError("it has no eval_config, or no model")
    if json_utils.loads(properties.get(keys.FAIRNESS_INDICATOR_THRESHOLDS_KEY) or "null"):
        raise NotOursError("it asks for fairness indicators")
    given = read_config(properties)
    ours, own = apart(given)
    config, ours = (with_defaults(each, inputs) for each in (given, ours))
    tfma.utils.verify_eval_config(config)
    request = read_request(json_format.MessageToDict(ours, preserving_proto_field_name=True))
    if own is not None:
        require_metrics(own_metrics(own), kinds=KINDS, taken=registered_metrics())
    by_kind = {True: keys.BASELINE_MODEL_KEY, False: keys.MODEL_KEY}
    folders = {}
    for model in request.models:
        artifact = artifact_utils.get_single_instance(inputs[by_kind[model.is_baseline]])
        folders[model.name] = _saved_model(artifact)
    splits = json_utils.loads(properties.get(keys.EXAMPLE_SPLITS_KEY) or "null") or [_EVAL]
    return _Work(
        config=config,
        request=request,
        own=own,
        models=folders,
        files=_files(inputs[keys.EXAMPLES_KEY], splits),
        schema=_schema(inputs.get(keys.SCHEMA_KEY)),
        folder=artifact_utils.get_single_uri(outputs[keys.EVALUATION_KEY]),
    )


def _saved_model(artifact: Any) -> str:
    folder: str = path_utils.serving_model_path(artifact.uri, path_utils.is_old_model_artifact(artifact))
    return folder


def _as_json(config: Any) -> str:
    found: str = proto_utils.proto_to_json(config)
    return found


def _files(examples: Sequence[Any], splits: Sequence[str]) -> list[str]:
    for artifact in examples:
        if examples_utils.get_payload_format(artifact) not in _FORMATS:
            raise NotOursError("its examples are not tf.Examples")
        if examples_utils.get_file_format(artifact) not in ("", None, "tfrecords_gzip", "tfrecords"):
            raise NotOursError("its examples are not in TFRecord files")
    folders = [uri for split in splits for uri in artifact_utils.get_split_uris(examples, split)]
    return sorted(file for folder in folders for file in fileio.glob(io_utils.all_files_pattern(folder)))


def _schema(schemas: Sequence[Any] | None) -> bytes | None:
    if not schemas:
        return None
    folder = artifact_utils.get_single_uri(schemas)
    schema = io_utils.SchemaReader().read(io_utils.get_only_uri_in_dir(folder))
    serialized: bytes = schema.SerializeToString()
    return serialized
