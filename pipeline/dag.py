"""The pipeline definition: the only module that creates and wires the components.

files -> Ingest -> StatisticsGen -> SchemaGen -> ExampleValidator -> DataGate (+ Reference)
            \\-> Transform (after DataGate passes) [-> Preflight] -> Trainer -> Evaluator (+ Baseline)
            -> ModelGate -> Pusher
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from tfx.components import Evaluator as StockEvaluator
from tfx.components import (
    ExampleValidator,
    Trainer,
    Tuner,
)
from tfx.components import SchemaGen as InferSchema
from tfx.components import StatisticsGen as StockStatisticsGen
from tfx.components import Transform as StockTransform
from tfx.components.schema_gen.import_schema_gen.component import ImportSchemaGen
from tfx.dsl.components.base import executor_spec
from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import LatestArtifactStrategy
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import LatestBlessedModelStrategy
from tfx.orchestration.pipeline import Pipeline
from tfx.proto import example_gen_pb2, range_config_pb2
from tfx.types import Channel
from tfx.types.standard_artifacts import Model, ModelBlessing

import tensorflow_data_validation as tfdv  # isort: skip  (after tfx, which patches what it imports)
from tfx_bsl.public.proto import slicing_spec_pb2  # isort: skip

from slipway.components.data_gate.component import DataGate
from slipway.components.data_gate.span_strategy import SpanStrategy
from slipway.components.evaluator.component import Evaluator
from slipway.components.evaluator.stock_executor import CheckedExecutor
from slipway.components.ingest.component import Ingest
from slipway.components.ingest.spans import span_number
from slipway.components.model_gate.component import ModelGate
from slipway.components.model_gate.eval_config import eval_config
from slipway.components.parameters import as_parameter
from slipway.components.preflight.component import Preflight
from slipway.components.pusher.component import Pusher
from slipway.components.reference_models.component import ReferenceModels
from slipway.components.serving_check.component import ServingCheck
from slipway.components.statistics_gen.component import StatisticsGen
from slipway.components.trainer.labels import served_label_columns
from slipway.components.transform.component import Transform
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.config.data_gate import LAST_BLESSED, LAST_PASSED, span_of
from slipway.pipeline.config.statistics import StatisticsConfig
from slipway.pipeline.wiring.beam_engine import beam_args
from slipway.pipeline.wiring.beam_options import check_options
from slipway.pipeline.wiring.gate_settings import (
    class_names,
    data_gate_settings,
    model_gate_settings,
    reference_models_settings,
)
from slipway.pipeline.wiring.ingest_options import ingest_options, split_weights
from slipway.pipeline.wiring.metadata_store import connection_config
from slipway.pipeline.wiring.own_metrics import own_metrics
from slipway.pipeline.wiring.preflight_question import node_settings
from slipway.pipeline.wiring.pushed_versions import (
    about_model,
    endpoint_settings,
    serving_base,
    signing_settings,
)
from slipway.pipeline.wiring.trainer_settings import class_weights, pretrained_weights
from slipway.schemas.artifacts import DataVerdict

# Buckets of the quantiles histogram. TFDV's default of 10 is too coarse for the data gate to locate values.
_QUANTILES = 100


def build_pipeline(
    *,
    config: WorkloadConfig,
    data: tuple[str, Mapping[str, str]],
    output: Path,
    overrides: Mapping[str, str] | None = None,
    today: str = "",
    training_job: Mapping[str, object] | None = None,
) -> Pipeline:
    """Wire a workload into a TFX pipeline.

    Args:
        config: the checked workload, with absolute paths.
        data: the resolved `config.data.source`: a folder, and a file pattern in it for each input split;
            see `slipway.pipeline.wiring.ingest_options.source_patterns`. Ignored for a BigQuery query.
        output: the folder for artifacts, metadata and, unless the workload says otherwise, served models.
        overrides: reasons to pass a gate despite its findings: `accept_data` for the data gate, `bless` for
            the model gate. Each gate receives its reason as a setting, so that a result that was let
            through is not taken from the cache as one that passed.
        today: the date, if the data gate's verdict is valid for one day only.
        training_job: a job on other machines to train with; see `slipway.pipeline.cloud.tpu_training_job`.

    Returns:
        The pipeline, not yet run, named after the workload.

    Raises:
        ConfigError: `beam.options` holds a name that Beam does not know.
    """
    check_options(config.beam)
    ingest = _ingest(config, data)
    examples = ingest.outputs["examples"]

    statistics_gen = (StockStatisticsGen if "StatisticsGen" in config.beam.stock_nodes else StatisticsGen)(
        examples=examples, stats_options=_stats_options(config.statistics)
    )
    if config.schema_path is None:
        schema_gen = InferSchema(statistics=statistics_gen.outputs["statistics"], infer_feature_shape=True)
    else:
        schema_gen = ImportSchemaGen(schema_file=config.schema_path)
    schema = schema_gen.with_id("SchemaGen").outputs["schema"]
    validator = ExampleValidator(statistics=statistics_gen.outputs["statistics"], schema=schema)
    # BigQuery's ExampleGen has no quarantine: the rows of a query have no position in a file.
    quarantine = {name: ingest.outputs[name] for name in ("quarantine",) if name in ingest.outputs}
    reference, compared_with = _reference(config.data_gate.reference)
    data_gate = DataGate(
        examples=examples,
        **quarantine,
        statistics=statistics_gen.outputs["statistics"],
        schema=schema,
        anomalies=validator.outputs["anomalies"],
        **compared_with,
        accept_data=(overrides or {}).get("accept_data", ""),
        day=today,
        **data_gate_settings(config),
    )

    transform = (StockTransform if "Transform" in config.beam.stock_nodes else Transform)(
        examples=examples,
        schema=schema,
        preprocessing_fn=config.transform.preprocessing_fn,
        # Statistics of the transformed examples would take a quarter of the time, and nothing reads them.
        disable_statistics=True,
        # Nothing reads the analyzer cache either.
        disable_analyzer_cache=True,
    )
    transform.add_upstream_node(data_gate)
    settings = {
        **config.train.run_fn_settings(),
        **({"training_job": training_job} if training_job else {}),
        **({"pretrained": pretrained} if (pretrained := pretrained_weights(config)) else {}),
        "label": config.transform.label,
        "raw_label": config.data.label,
        "weight": config.transform.weight,
        "group": config.transform.group,
        "class_weights": class_weights(config),
        "pass_through": list(config.transform.apart),
    }
    tuner = _tuner(config, transform, settings)
    trainer = Trainer(
        run_fn="slipway.components.trainer.run_fn.run_fn",
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        schema=schema,
        hyperparameters=tuner.outputs["best_hyperparameters"] if tuner else None,
        custom_config=settings,
    )
    preflight = _preflight(config, transform, statistics_gen)
    for node in (tuner, trainer):
        if preflight and node:
            node.add_upstream_node(preflight)

    baseline = _latest_blessed("Baseline")
    evaluator = (StockEvaluator if "Evaluator" in config.beam.stock_nodes else Evaluator)(
        examples=examples,
        model=trainer.outputs["model"],
        baseline_model=baseline.outputs["model"],
        schema=schema,
        eval_config=eval_config(
            label=served_label_columns(config.transform.label),
            metrics=config.evaluate.metrics,
            slices=config.evaluate.slices,
            weight=config.transform.weight,
            quantiles=config.evaluate.quantiles,
            group=config.transform.group or "",
            own=own_metrics(config.evaluate.own_metrics),
        ),
    )
    if "Evaluator" in config.beam.stock_nodes:
        evaluator.executor_spec = executor_spec.BeamExecutorSpec(CheckedExecutor)
    serving = _serving_check(config, trainer, transform, examples, schema)
    references = _reference_models(config, transform)
    gate = ModelGate(
        **({"serving": serving.outputs["report"]} if serving else {}),
        **({"references": references.outputs["report"]} if references else {}),
        model=trainer.outputs["model"],
        evaluation=evaluator.outputs["evaluation"],
        statistics=statistics_gen.outputs["statistics"],
        examples=examples,
        **quarantine,
        raw_label=config.data.label,
        sample_rows=config.data_gate.sample_rows,
        bless=(overrides or {}).get("bless", ""),
        pass_through=list(config.transform.apart),
        **class_names(config),
        **model_gate_settings(config.evaluate),
    )
    endpoint = endpoint_settings(config)
    pusher = Pusher(
        model=trainer.outputs["model"],
        blessing=gate.outputs["blessing"],
        data_verdict=data_gate.outputs["verdict"],
        examples=examples,
        **quarantine,
        schema=schema,
        base=serving_base(config, output),
        keep=config.push.keep or 0,
        hook=list(config.push.hook),
        **({"endpoint": as_parameter(asdict(endpoint))} if endpoint else {}),
        **({"sign": as_parameter(asdict(signing))} if (signing := signing_settings(config)) else {}),
        about=as_parameter(about_model(config)),
    )

    nodes: list[BaseNode] = [
        ingest, statistics_gen, schema_gen, validator, data_gate, transform, trainer, baseline, evaluator,
        *(node for node in (reference, preflight, tuner, serving, references) if node), gate, pusher,
    ]  # fmt: skip
    return Pipeline(
        pipeline_name=config.name,
        pipeline_root=str(output / "artifacts" / config.name),
        components=nodes,
        metadata_connection_config=connection_config(config.metadata, output),
        beam_pipeline_args=beam_args(config.beam, config.cloud),
        # Read by our engine, whose cache key covers the content of data and code; TFX's key covers neither.
        enable_cache=True,
    )


def _stats_options(wanted: StatisticsConfig) -> tfdv.StatsOptions:
    slices = [slicing_spec_pb2.SlicingSpec(feature_keys=list(columns)) for columns in wanted.slices]
    return tfdv.StatsOptions(
        num_quantiles_histogram_buckets=_QUANTILES,
        weight_feature=wanted.weight,
        sample_rate=wanted.sample_rate,
        slicing_config=slicing_spec_pb2.SlicingConfig(slicing_specs=slices) if slices else None,
    )


def _reference(wanted: str) -> tuple[BaseNode | None, dict[str, Channel]]:
    """Return the node that finds the data to compare with (None if not needed), and the DataGate's input."""
    span = span_of(wanted)
    if wanted == LAST_BLESSED:
        node = _latest_blessed("Reference")
        return node, {"blessing": node.outputs["model_blessing"]}
    if span is None and wanted != LAST_PASSED:
        return None, {}
    strategy = {"strategy_class": LatestArtifactStrategy}
    if span is not None:
        strategy = {"strategy_class": SpanStrategy, "config": {"span": span}}
    node = Resolver(**strategy, verdict=Channel(type=DataVerdict)).with_id("Reference")
    return node, {"reference": node.outputs["verdict"]}


def _latest_blessed(name: str) -> BaseNode:
    return Resolver(
        strategy_class=LatestBlessedModelStrategy,
        model=Channel(type=Model),
        model_blessing=Channel(type=ModelBlessing),
    ).with_id(name)


def _serving_check(
    config: WorkloadConfig, trainer: BaseNode, transform: BaseNode, examples: Channel, schema: Channel
) -> BaseNode | None:
    wanted = config.evaluate.serving
    if wanted is None:
        return None
    return ServingCheck(
        model=trainer.outputs["model"],
        model_run=trainer.outputs["model_run"],
        examples=examples,
        transform_graph=transform.outputs["transform_graph"],
        schema=schema,
        raw_label=config.data.label,
        rows=wanted.rows,
        limit_s=wanted.limit_s,
        pass_through=list(config.transform.apart),
    )


def _reference_models(config: WorkloadConfig, transform: BaseNode) -> BaseNode | None:
    if not config.evaluate.baselines:
        return None
    return ReferenceModels(
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        weight=config.transform.weight or "",
        pass_through=list(config.transform.apart),
        seed=config.train.seed,
        **reference_models_settings(config),
    )


def _preflight(config: WorkloadConfig, transform: BaseNode, statistics_gen: BaseNode) -> BaseNode | None:
    """Return the node that compiles the training step for its TPU beforehand, if the workload asks for it."""
    if not config.train.preflight or config.train.device != "tpu":
        return None
    return Preflight(
        transformed_examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        statistics=statistics_gen.outputs["statistics"],
        **node_settings(config),
    )


def _tuner(config: WorkloadConfig, transform: BaseNode, settings: Mapping[str, object]) -> BaseNode | None:
    """Return the hyperparameter search, if the workload asks for one."""
    if config.tune is None:
        return None
    return Tuner(
        tuner_fn="slipway.components.trainer.tuner_fn.tuner_fn",
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        # Settings that only affect the export do not change the search.
        custom_config={**settings, "exports": [], "tune": config.tune.model_dump(mode="json")},
    )


def _ingest(config: WorkloadConfig, data: tuple[str, Mapping[str, str]]) -> BaseNode:
    folder, patterns = data
    by = config.data.split_by
    split_config = example_gen_pb2.SplitConfig(
        splits=[
            example_gen_pb2.SplitConfig.Split(name=name, hash_buckets=buckets)
            for name, buckets in split_weights(config.data).items()
        ],
        partition_feature_name=by.key if by is not None else None,
    )
    if config.data.format == "bigquery":
        # Imported here because it needs a client library that no other workload needs.
        from tfx.extensions.google_cloud_big_query.example_gen.component import BigQueryExampleGen

        return BigQueryExampleGen(
            query=config.data.query, output_config=example_gen_pb2.Output(split_config=split_config)
        ).with_id("Ingest")
    return Ingest(
        input_base=folder,
        input_config=example_gen_pb2.Input(
            splits=[
                example_gen_pb2.Input.Split(name=name, pattern=pattern) for name, pattern in patterns.items()
            ]
        ),
        range_config=_one_span(config.data.span),
        # If each split has files of its own, there is nothing to split.
        output_config=example_gen_pb2.Output(split_config=split_config if split_config.splits else None),
        options=ingest_options(config.data),
        schema_file=config.schema_path,
    ).with_id("Ingest")


def _one_span(span: int | str | None) -> range_config_pb2.RangeConfig | None:
    """Return the range of exactly that span; None means the latest."""
    if span is None:
        return None
    number = span_number(span)
    one = range_config_pb2.StaticRange(start_span_number=number, end_span_number=number)
    return range_config_pb2.RangeConfig(static_range=one)
