"""Compiles a TFX pipeline into what the engine needs: IR for the launcher, a graph for the plan.

Imports TFX: runs in the fork server only.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from tfx.dsl.compiler import compiler, constants
from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import LatestArtifactStrategy
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import LatestBlessedModelStrategy
from tfx.orchestration.local import runner_utils
from tfx.orchestration.pipeline import Pipeline
from tfx.proto.orchestration import executable_spec_pb2, pipeline_pb2

from slipway.components.data_gate.span_strategy import SpanStrategy
from slipway.components.ingest.spans import PLACEHOLDER, at_span
from slipway.pipeline.engine.tfx.load_pipeline import load_pipeline
from slipway.pipeline.engine.tfx.parameters import fill_parameters
from slipway.pipeline.engine.tfx.user_modules import package_user_modules
from slipway.pipeline.errors import UsageError
from slipway.pipeline.fingerprint.fingerprint import flatten_params
from slipway.pipeline.plan.named_files import named_code, named_files
from slipway.pipeline.plan.placeholders import unforeseen
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.run_target import IR_NAME, ImageRun, IrRun, ModuleRun, Order, WorkloadRun
from slipway.pipeline.wiring.beam_engine import completed_args
from slipway.pipeline.wiring.metadata_store import connection_config, prepare_server, sqlite_file
from slipway.schemas.artifacts import DataVerdict, PreflightReport

RESOLVER = "tfx.dsl.components.common.resolver.Resolver"
# The driver class of ExampleGens that query a database: BigQuery's, or a custom one.
_QUERY = "QueryBasedDriver"
# Key in an InfraValidator's settings if it starts its model server on this machine.
_LOCAL_DOCKER = "local_docker"
# The operation of a ForEach that takes its artifacts one by one.
_EACH = "tfx.internal.Unnest"
# Output types of the gates that other nodes wait for.
_JUDGEMENTS = {DataVerdict.TYPE_NAME, PreflightReport.TYPE_NAME}


@dataclass(frozen=True)
class Compiled:
    """A compiled pipeline.

    Attributes:
        ir: TFX's intermediate representation, with runtime parameters filled in.
        deployment: executors, drivers and the metadata store's connection.
        graph: the same pipeline as the engine sees it.
    """

    ir: pipeline_pb2.Pipeline
    deployment: Any
    graph: Graph

    @property
    def connection(self) -> Any:
        """The connection to the metadata store."""
        config = self.deployment.metadata_connection_config
        return getattr(config, config.WhichOneof("connection_config"))

    @property
    def run_id(self) -> str:
        """The run's id in the metadata store."""
        return str(self.ir.runtime_spec.pipeline_run_id.field_value.string_value)

    def node(self, node_id: str) -> pipeline_pb2.PipelineNode:
        """Return the IR of one node."""
        return next(n.pipeline_node for n in self.ir.nodes if n.pipeline_node.node_info.id == node_id)

    def executor_spec(self, node_id: str) -> Any:
        """Return the specification of the node's executor; None for a resolver or an importer."""
        return runner_utils.extract_executor_spec(self.deployment, node_id)

    def executor_modules(self) -> list[str]:
        """Return the modules of the nodes' executors, in the nodes' order."""
        paths = (_class_path(self.executor_spec(node_id)) for node_id in self.graph.ids)
        return list(dict.fromkeys(path.rpartition(".")[0] for path in paths if path))

    def driver_spec(self, node_id: str) -> Any:
        """Return the node's custom driver; None for most nodes."""
        return runner_utils.extract_custom_driver_spec(self.deployment, node_id)


def compile_target(order: Order) -> Compiled:
    """Build a pipeline, or read one that was handed over, and compile it for one run.

    Raises:
        ConfigError: a Beam engine would listen on the network; see `beam_ports.without_ports`.
        UsageError: there is no such pipeline; a runtime parameter is unknown, lacks a value or has a value
            of the wrong type; the pipeline holds another pipeline, or a loop that cannot run; or its
            metadata store cannot be used.
    """
    target = order.target
    if isinstance(target, ImageRun):
        raise UsageError("A workload with the paths of an image is compiled for a service only.")
    if isinstance(target, IrRun):
        serialized = (order.folder / IR_NAME).read_bytes()
        ir, rest = pipeline_pb2.Pipeline.FromString(serialized), order.parameters
        packed: Mapping[str, str] = target.module_files
    else:
        pipeline, rest = _pipeline(target, order.parameters)
        packed = package_user_modules(pipeline)
        ir = compiler.Compiler().compile(pipeline)
    _check_loops(ir)
    _check_producers(ir)
    fill_parameters(ir, run_id=order.run_id, values=rest)
    return _complete(ir, output=target.output, beam_args=order.beam_args, packed=packed)


def _check_loops(ir: pipeline_pb2.Pipeline) -> None:
    """Reject a ForEach over the outputs of several nodes, which would fail only after these have run."""
    for each in ir.nodes:
        node = each.pipeline_node
        if not any(step.op_type == _EACH for step in _steps(node)):
            continue
        for spec in node.inputs.inputs.values():
            if len(spec.mixed_inputs.input_keys) > 1:
                names = sorted(node.upstream_nodes)
                raise UsageError(
                    f"{node.node_info.id} is in a ForEach over the outputs of {', '.join(names)}: TFX's "
                    "launcher cannot execute a node more than once in a run.",
                    hint="make a node for each in Python: `for` instead of `with ForEach`",
                )


def _check_producers(ir: pipeline_pb2.Pipeline) -> None:
    """Reject a node that reads an output of a node which the pipeline leaves out: it would never exist."""
    prefix = f"{ir.pipeline_info.id}."
    known = {each.pipeline_node.node_info.id for each in ir.nodes}
    for each in ir.nodes:
        for spec in each.pipeline_node.inputs.inputs.values():
            for channel in spec.channels:
                asked = {query.type.name: query.name for query in channel.context_queries}
                of_this_run = constants.PIPELINE_RUN_CONTEXT_TYPE_NAME in asked
                if not (spec.min_count and of_this_run and constants.NODE_CONTEXT_TYPE_NAME in asked):
                    continue
                context = asked[constants.NODE_CONTEXT_TYPE_NAME].field_value.string_value
                producer = context.removeprefix(prefix)
                if producer not in known:
                    name = each.pipeline_node.node_info.id
                    raise UsageError(
                        f"{name} reads an output of {producer}, which the pipeline's components leave out.",
                        hint=f"add it: Pipeline(..., components=[..., {producer}])",
                    )


def _pipeline(target: WorkloadRun | ModuleRun, parameters: dict[str, str]) -> tuple[Pipeline, dict[str, str]]:
    """Return the pipeline, and the parameters that its function did not take."""
    if isinstance(target, ModuleRun):
        return load_pipeline(target, parameters)
    from slipway.pipeline.dag import build_pipeline  # users' own pipelines need none of its components

    pipeline = build_pipeline(
        config=target.settings,
        data=(target.source.directory, target.source.patterns),
        output=target.output,
        overrides=target.overrides,
        today=target.today,
    )
    return pipeline, parameters


def _complete(
    ir: pipeline_pb2.Pipeline, *, output: Path, beam_args: Sequence[str], packed: Mapping[str, str]
) -> Compiled:
    deployment = runner_utils.extract_local_deployment_config(ir)
    store = deployment.metadata_connection_config
    if store.WhichOneof("connection_config") is None:
        store.database_connection_config.CopyFrom(connection_config(None, output))
    prepare_server(getattr(store, store.WhichOneof("connection_config")))
    for spec in deployment.executor_specs.values():
        if spec.WhichOneof("spec") == "beam_executable_spec":
            _complete_beam_args(spec.beam_executable_spec, beam_args)
    root = Path(ir.runtime_spec.pipeline_root.field_value.string_value)
    nodes = [_node(n.pipeline_node, deployment, written=(output, root), packed=packed) for n in ir.nodes]
    for node in ir.nodes:
        # The engine's own cache decides (slipway.pipeline.plan.decide); TFX's cache would interfere.
        node.pipeline_node.execution_options.caching_options.enable_cache = False
    connection = getattr(store, store.WhichOneof("connection_config"))
    graph = Graph(name=ir.pipeline_info.id, nodes=_with_gates(nodes, ir), store=sqlite_file(connection))
    return Compiled(ir=ir, deployment=deployment, graph=graph)


def _complete_beam_args(spec: executable_spec_pb2.BeamExecutableSpec, beam_args: Sequence[str]) -> None:
    wanted = completed_args(list(spec.beam_pipeline_args), beam_args)
    spec.beam_pipeline_args.extend(wanted)
    # The launcher reads only the placeholders: the same arguments as expressions.
    for arg in wanted:
        spec.beam_pipeline_args_placeholders.add().value.string_value = arg


def _node(
    node: pipeline_pb2.PipelineNode, deployment: Any, *, written: Sequence[Path], packed: Mapping[str, str]
) -> Node:
    node_id, node_type = node.node_info.id, node.node_info.type.name.rpartition(".")[2]
    values = {key: _value(parameter) for key, parameter in node.parameters.parameters.items()}
    options = node.execution_options
    executor = runner_utils.extract_executor_spec(deployment, node_id)
    class_path = _class_path(executor)
    # The module's source counts as code as well: its imports may lie outside the wheel made from it.
    code = {class_path, packed.get(node_id, ""), *named_code(values)} - {""}
    files, folders = named_files(values, node_type=node_type, written=written)
    for key, output in sorted(node.outputs.outputs.items()):
        # Artifact properties given to an Importer: split names, a version.
        if given := _given_properties(output.artifact_spec):
            values[f"{key}_properties"] = given
    conditions = node.inputs.conditionals
    if conditions:
        values["condition"] = [json_format.MessageToDict(conditions[key]) for key in sorted(conditions)]
    return Node(
        id=node_id,
        type=node_type,
        upstream=tuple(sorted(node.upstream_nodes)),
        params=flatten_params("", values),
        code=tuple(sorted(code)),
        data=tuple(sorted({*_input_patterns(values), *folders})),
        files=tuple(files),
        uncached=_uncached(node, runner_utils.extract_custom_driver_spec(deployment, node_id)),
        is_resolver=node.node_info.type.name == RESOLVER,
        finds_baseline=_strategies(node) == {LatestBlessedModelStrategy.__name__},
        finds_reference=_finds_reference(node),
        outputs={key: spec.artifact_spec.type.name for key, spec in node.outputs.outputs.items()},
        optional=_optional(node),
        by_docker=_is_container(executor) or _LOCAL_DOCKER in _keys_of(values.get("serving_spec")),
        retries=max(options.max_execution_retries, 0),
        timeout_s=options.execution_timeout_sec or None,
    )


def _is_container(executor: Any) -> bool:
    return isinstance(executor, executable_spec_pb2.ContainerExecutableSpec)


def _keys_of(value: Any) -> Collection[str]:
    return value.keys() if isinstance(value, Mapping) else ()


def _uncached(node: pipeline_pb2.PipelineNode, driver: Any) -> str:
    """Return why the node's earlier results are never reused, in words; empty if they may be."""
    if not node.execution_options.caching_options.enable_cache:
        return "its pipeline has enable_cache=False"
    if _class_path(driver).endswith(f".{_QUERY}"):
        return "the tables behind its query may have changed"
    expressions = {
        f"parameter {name}": parameter.placeholder
        for name, parameter in sorted(node.parameters.parameters.items())
        if parameter.WhichOneof("value") == "placeholder"
    }
    for condition in node.inputs.conditionals.values():
        expressions["condition"] = condition.placeholder_expression
    for name, expression in expressions.items():
        if what := unforeseen(json_format.MessageToDict(expression)):
            return f"its {name} takes {what}"
    return ""


def _optional(node: pipeline_pb2.PipelineNode) -> tuple[str, ...]:
    needed = {
        channel.producer_node_query.id
        for spec in node.inputs.inputs.values()
        if spec.min_count > 0
        for channel in spec.channels
    }
    return tuple(sorted(set(node.upstream_nodes) - needed))


def _finds_reference(node: pipeline_pb2.PipelineNode) -> str:
    """Return the rule by which a resolver of verdicts chooses one; empty for every other node."""
    if _takes(node) != {DataVerdict.TYPE_NAME}:
        return ""
    for step in _steps(node):
        if step.op_type.endswith(f".{SpanStrategy.__name__}"):
            return f"span {step.kwargs['span'].value.field_value.int_value}"
    return "passed" if _strategies(node) == {LatestArtifactStrategy.__name__} else ""


def _takes(node: pipeline_pb2.PipelineNode) -> set[str]:
    """Return the types of the artifacts that a node reads."""
    channels = (channel for spec in node.inputs.inputs.values() for channel in spec.channels)
    return {channel.artifact_query.type.name for channel in channels}


def _with_gates(nodes: Sequence[Node], ir: pipeline_pb2.Pipeline) -> tuple[Node, ...]:
    """Return the nodes, each with the upstream gates that it only waits for, without reading their outputs.

    A resolver of the latest blessed model that is upstream of a gate finds the reference data of that
    model.
    """
    judges = {node.id for node in nodes if _JUDGEMENTS.intersection(node.outputs.values())}
    asked = {up for node in nodes if node.id in judges for up in node.upstream}
    found = []
    for node, each in zip(nodes, ir.nodes, strict=True):
        inputs = each.pipeline_node.inputs.inputs.values()
        givers = {channel.producer_node_query.id for spec in inputs for channel in spec.channels}
        changed = replace(node, gates=tuple(sorted(judges.intersection(node.upstream) - givers)))
        if node.finds_baseline and node.id in asked:
            changed = replace(changed, finds_baseline=False, finds_reference="blessed")
        found.append(changed)
    return tuple(found)


def _strategies(node: pipeline_pb2.PipelineNode) -> set[str]:
    """Return the class names of a resolver's strategies; empty for another node."""
    return {step.op_type.rpartition(".")[2] for step in _steps(node) if step.op_type}


def _steps(node: pipeline_pb2.PipelineNode) -> Iterator[Any]:
    return (step.op_node for graph in node.inputs.input_graphs.values() for step in graph.nodes.values())


def _class_path(executor: Any) -> str:
    """Return the class of an executor or a driver; empty if there is none (resolver, importer, container)."""
    return getattr(getattr(executor, "python_executor_spec", executor), "class_path", "")


def _value(parameter: pipeline_pb2.Value) -> Any:
    """Return a setting as plain data.

    Texts that hold JSON, as TFX often writes them, are parsed so that changes inside them can be named.
    """
    if parameter.WhichOneof("value") != "field_value":
        return json_format.MessageToDict(parameter)
    value = getattr(parameter.field_value, parameter.field_value.WhichOneof("value"))
    if isinstance(value, (str, int, float, bool)):
        return _opened(value)
    return json_format.MessageToDict(value)


def _given_properties(spec: Any) -> dict[str, object]:
    given = {**spec.additional_properties, **spec.additional_custom_properties}
    return {name: _value(given[name]) for name in sorted(given)}


def _opened(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return _opened(json.loads(value))
        except json.JSONDecodeError:
            return value
    if isinstance(value, dict):
        return {key: _opened(item) for key, item in value.items()}
    return value


def _input_patterns(values: Mapping[str, object]) -> list[str]:
    """Return the file patterns of a file-based ExampleGen (one per input split) or of an Importer."""
    base, config, imported = (values.get(key) for key in ("input_base", "input_config", "artifact_uri"))
    patterns = [imported, f"{imported}/**/*"] if isinstance(imported, str) else []
    if isinstance(base, str) and isinstance(config, Mapping):
        # Only TFX knows which span or version is the latest, so all of them count unless one is named.
        named = [f"{base}/{split['pattern']}" for split in config.get("splits", [])]
        if (span := _one_span(values.get("range_config"))) is not None:
            named = [at_span(pattern, span) for pattern in named]
        patterns += [PLACEHOLDER.sub("*", pattern) for pattern in named]
    return patterns


def _one_span(range_config: Any) -> int | None:
    """Return the span of an ExampleGen that takes a single named span; None for other nodes."""
    if not isinstance(range_config, Mapping):
        return None
    ends = range_config.get("static_range", {})
    first, last = (int(ends.get(key, -1)) for key in ("start_span_number", "end_span_number"))
    return first if first == last and first >= 0 else None
