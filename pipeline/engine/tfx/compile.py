"""Compiles a TFX pipeline into what the engine needs: IR for the launcher, a graph for the plan.

Imports TFX: runs in the fork server only.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tfx.dsl.compiler import constants
from tfx.orchestration.local import runner_utils
from tfx.orchestration.pipeline import Pipeline
from tfx.proto.orchestration import executable_spec_pb2, pipeline_pb2

from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.engine.tfx.load_pipeline import load_pipeline
from slipway.pipeline.engine.tfx.parameters import compiled, fill_parameters
from slipway.pipeline.engine.tfx.read_graph import class_path_of, read_graph, resolver_steps
from slipway.pipeline.engine.tfx.user_modules import package_user_modules
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.run_target import IR_NAME, ImageRun, IrRun, ModuleRun, Order, WorkloadRun
from slipway.pipeline.wiring.beam_engine import completed_args
from slipway.pipeline.wiring.import_folders import import_folders
from slipway.pipeline.wiring.keras_choice import other_keras
from slipway.pipeline.wiring.metadata_store import connection_config, prepare_server, sqlite_file

# The operation of a ForEach that takes its artifacts one by one.
_EACH = "tfx.internal.Unnest"


@dataclass(frozen=True)
class Compiled:
    """A compiled pipeline.

    Attributes:
        ir: TFX's intermediate representation, with runtime parameters filled in.
        deployment: executors, drivers and the metadata store's connection.
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
        paths = (class_path_of(self.executor_spec(node_id)) for node_id in self.graph.ids)
        return list(dict.fromkeys(path.rpartition(".")[0] for path in paths if path))

    def driver_spec(self, node_id: str) -> Any:
        """Return the node's custom driver; None for most nodes."""
        return runner_utils.extract_custom_driver_spec(self.deployment, node_id)


def compile_target(order: Order) -> Compiled:
    """Build a pipeline, or read one that was handed over, and compile it for one run.

    Raises:
        ConfigError: a Beam runner would listen on the network; see `beam_ports.without_ports`.
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
        ir = compiled(pipeline)
    _check_loops(ir)
    _check_producers(ir)
    fill_parameters(ir, run_id=order.run_id, values=rest)
    # The paths of a workload's settings, such as train.pretrained, start at the project's folder.
    folders = [PROJECT_ROOT] if isinstance(target, WorkloadRun) else []
    made = _complete(ir, output=target.output, beam_args=order.beam_args, packed=packed, folders=folders)
    if isinstance(target, ModuleRun):
        imported, keras = tuple(map(str, import_folders())), other_keras(os.environ, is_ours=False)
        return replace(made, graph=replace(made.graph, import_from=imported, keras=keras))
    return made


def _check_loops(ir: pipeline_pb2.Pipeline) -> None:
    """Reject a ForEach over the outputs of several nodes, which would fail only after these have run."""
    for each in ir.nodes:
        node = each.pipeline_node
        if not any(step.op_type == _EACH for step in resolver_steps(node)):
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
    ir: pipeline_pb2.Pipeline,
    *,
    output: Path,
    beam_args: Sequence[str],
    packed: Mapping[str, str],
    folders: Sequence[Path],
) -> Compiled:
    deployment = runner_utils.extract_local_deployment_config(ir)
    store = deployment.metadata_connection_config
    if store.WhichOneof("connection_config") is None:
        store.database_connection_config.CopyFrom(connection_config(None, output))
    connection = getattr(store, store.WhichOneof("connection_config"))
    prepare_server(connection)
    for spec in deployment.executor_specs.values():
        if spec.WhichOneof("spec") == "beam_executable_spec":
            _complete_beam_args(spec.beam_executable_spec, beam_args)
    root = Path(ir.runtime_spec.pipeline_root.field_value.string_value)
    graph = read_graph(
        ir,
        deployment,
        store=sqlite_file(connection),
        written=(output, root),
        packed=packed,
        folders=folders,
    )
    for node in ir.nodes:
        # The engine's own cache decides (slipway.pipeline.plan.decide); TFX's cache would interfere.
        node.pipeline_node.execution_options.caching_options.enable_cache = False
    return Compiled(ir=ir, deployment=deployment, graph=graph)


def _complete_beam_args(spec: executable_spec_pb2.BeamExecutableSpec, beam_args: Sequence[str]) -> None:
    wanted = completed_args(list(spec.beam_pipeline_args), beam_args)
    spec.beam_pipeline_args.extend(wanted)
    # The launcher reads only the placeholders: the same arguments as expressions.
    for arg in wanted:
        spec.beam_pipeline_args_placeholders.add().value.string_value = arg
