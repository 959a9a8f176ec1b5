"""Reads a compiled pipeline's IR into the graph that the engine plans and schedules.

Imports TFX: runs in the fork server only.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from tfx.dsl.compiler import constants
from tfx.dsl.input_resolution.strategies.latest_artifact_strategy import LatestArtifactStrategy
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import LatestBlessedModelStrategy
from tfx.orchestration.local import runner_utils
from tfx.proto.orchestration import executable_spec_pb2, pipeline_pb2

from slipway.components.data_gate.span_strategy import SpanStrategy
from slipway.components.ingest.spans import PLACEHOLDER, at_span
from slipway.components.store_address import is_elsewhere
from slipway.pipeline.fingerprint.fingerprint import canonical_json, flatten_params
from slipway.pipeline.plan.named_files import (
    imported_patterns,
    named_code,
    named_files,
    statistics_patterns,
)
from slipway.pipeline.plan.placeholders import unforeseen
from slipway.pipeline.runs.graph import COMPONENT, CONDITION, Graph, Node
from slipway.pipeline.wiring.beam_options import unknown_options
from slipway.schemas.artifacts import DataVerdict, PreflightReport

RESOLVER = "tfx.dsl.components.common.resolver.Resolver"
# The driver class of ExampleGens that query a database: BigQuery's, or a custom one.
_QUERY = "QueryBasedDriver"
# The drivers that look for what the fingerprints know: files by their patterns.
_OF_FILES = ("tfx.components.example_gen.driver.FileBasedDriver", "slipway.components.ingest.driver.Driver")
# The parameters by which an ExampleGen names what it reads.
_READ = ("input_base", "input_config")
# The operation that finds what the latest run of another pipeline made.
_OF_LATEST_RUN = "tfx.LatestPipelineRunOutputs"
# Key in an InfraValidator's settings if it starts its model server on this machine.
_LOCAL_DOCKER = "local_docker"
# Name among the settings of a container component for its image and its command.
_CONTAINER = "container"
# Name among the settings for the flags that an executor's specification gives it.
_EXTRA_FLAGS = "extra_flags"
# Name among the settings for the Beam options that only the user's own code reads.
_BEAM_OPTIONS = "beam_options"
# The type of a node that only names an artifact which was there before.
_IMPORTER = "Importer"
# Output types of the gates that other nodes wait for.
_JUDGEMENTS = {DataVerdict.TYPE_NAME, PreflightReport.TYPE_NAME}


def read_graph(
    ir: pipeline_pb2.Pipeline,
    deployment: Any,
    *,
    store: str,
    written: Sequence[Path],
    packed: Mapping[str, str],
    folders: Sequence[Path] = (),
) -> Graph:
    """Return the graph of a compiled pipeline.

    Args:
        deployment: executors and drivers of the nodes.
        store: the file of the metadata store, as in `Graph`.
        written: the folders that runs write into: what nodes name in them is not their data.
        packed: the source file of a wheel, by the id of the node that it was built for.
        folders: where the paths that nodes name may start, besides the working directory.
    """
    nodes = [
        _node(each.pipeline_node, deployment, written=written, packed=packed, folders=folders)
        for each in ir.nodes
    ]
    return Graph(name=ir.pipeline_info.id, nodes=_with_gates(nodes, ir), store=store)


def _node(
    node: pipeline_pb2.PipelineNode,
    deployment: Any,
    *,
    written: Sequence[Path],
    packed: Mapping[str, str],
    folders: Sequence[Path],
) -> Node:
    node_id, node_type = node.node_info.id, node.node_info.type.name.rpartition(".")[2]
    values = {key: _value(parameter) for key, parameter in node.parameters.parameters.items()}
    options = node.execution_options
    executor = runner_utils.extract_executor_spec(deployment, node_id)
    driver = runner_utils.extract_custom_driver_spec(deployment, node_id)
    classes = map(class_path_of, (executor, driver))
    # The module's source counts as code as well: its imports may lie outside the wheel made from it.
    code = {*classes, packed.get(node_id, ""), *named_code(values)} - {""}
    files, patterns = named_files(values, node_type=node_type, written=written, folders=folders)
    return Node(
        id=node_id,
        type=node_type,
        upstream=tuple(sorted(node.upstream_nodes)),
        params=_settings(node, values, executor),
        inputs=_inputs(node),
        code=tuple(sorted(code)),
        data=tuple(sorted({*_input_patterns(values), *patterns})),
        files=tuple(files),
        uncached=_uncached(node, values, executor=executor, driver=driver),
        is_resolver=node.node_info.type.name == RESOLVER,
        finds_baseline=_finds_baseline(node),
        finds_reference=_finds_reference(node),
        outputs={key: spec.artifact_spec.type.name for key, spec in node.outputs.outputs.items()},
        optional=_optional(node),
        by_docker=_is_container(executor) or _LOCAL_DOCKER in _keys_of(values.get("serving_spec")),
        retries=max(options.max_execution_retries, 0),
        timeout_s=options.execution_timeout_sec or None,
    )


def _settings(node: pipeline_pb2.PipelineNode, values: Mapping[str, object], executor: Any) -> dict[str, str]:
    """Return the node's parameters, condition, container, flags, options and given properties, flattened.

    Args:
        values: the parameters by name.
    """
    own: dict[str, object] = {}
    for key, output in sorted(node.outputs.outputs.items()):
        # Artifact properties given to an Importer: split names, a version.
        if given := _given_properties(output.artifact_spec):
            own[f"{key}_properties"] = given
    conditions = node.inputs.conditionals
    if conditions:
        own[CONDITION] = [json_format.MessageToDict(conditions[key]) for key in sorted(conditions)]
    if _is_container(executor):
        own[_CONTAINER] = json_format.MessageToDict(executor)
    if flags := list(getattr(_python_spec(executor), _EXTRA_FLAGS, ())):
        own[_EXTRA_FLAGS] = flags
    if options := unknown_options(getattr(executor, "beam_pipeline_args", ())):
        own[_BEAM_OPTIONS] = options
    taken = {*own, CONDITION, COMPONENT, _CONTAINER}
    # A parameter of one's own may have any name.
    apart = {f"parameter {name}" if name in taken else name: value for name, value in values.items()}
    return {**flatten_params("", apart), **flatten_params("", own)}


def _inputs(node: pipeline_pb2.PipelineNode) -> dict[str, str]:
    """Return what each input reads: `Node.output`, or JSON if it reads more than one output, or by a rule.

    Implicit inputs whose keys already say it, `_Node.output`, are left out.
    """
    found = {}
    for key, spec in sorted(node.inputs.inputs.items()):
        told: list[Any] = [_channel(channel, node) for channel in spec.channels]
        for part in ("mixed_inputs", "static_inputs", "input_graph_ref"):
            if spec.HasField(part):
                told.append(json_format.MessageToDict(getattr(spec, part)))
        if spec.HasField("input_graph_ref"):
            graph = node.inputs.input_graphs[spec.input_graph_ref.graph_id]
            told.append(json_format.MessageToDict(graph))
        is_plain = len(told) == 1 and isinstance(told[0], str)
        text = told[0] if is_plain else canonical_json(told)
        if key != f"_{text}":
            found[key] = text
    return found


def _channel(channel: pipeline_pb2.InputSpec.Channel, node: pipeline_pb2.PipelineNode) -> Any:
    """Return which artifacts are asked for, without the run: it is another one each time."""
    if _is_of_own_run(channel, node) and (producer := channel.producer_node_query.id):
        return f"{producer}.{channel.output_key}"
    asked = pipeline_pb2.InputSpec.Channel()
    asked.CopyFrom(channel)
    del asked.context_queries[:]
    own = _own_run(node)
    asked.context_queries.extend(query for query in channel.context_queries if query.name != own)
    return json_format.MessageToDict(asked)


def _is_container(executor: Any) -> bool:
    return isinstance(executor, executable_spec_pb2.ContainerExecutableSpec)


def _keys_of(value: Any) -> Collection[str]:
    return value.keys() if isinstance(value, Mapping) else ()


def _uncached(
    node: pipeline_pb2.PipelineNode, values: Mapping[str, object], *, executor: Any, driver: Any
) -> str:
    """Return why the node's earlier results are never reused, in words; empty if they may be."""
    if not node.execution_options.caching_options.enable_cache:
        return "its pipeline has enable_cache=False"
    if class_path_of(driver).endswith(f".{_QUERY}"):
        return "the tables behind its query may have changed"
    if class_path_of(driver) not in ("", *_OF_FILES):
        return "its driver may find something else"
    if is_elsewhere(str(values.get("artifact_uri", ""))):
        return "what it imports is in a store, where it may have changed"
    if _reads_other_runs(node):
        return "other runs may have made more of what it reads"
    expressions = {
        f"parameter {name}": parameter.placeholder
        for name, parameter in sorted(node.parameters.parameters.items())
        if parameter.WhichOneof("value") == "placeholder"
    }
    for condition in node.inputs.conditionals.values():
        expressions["condition"] = condition.placeholder_expression
    if _is_container(executor):
        expressions["command"] = executor
    for name, expression in expressions.items():
        if what := unforeseen(json_format.MessageToDict(expression)):
            return f"its {name} takes {what}"
    if class_path_of(driver) in _OF_FILES:
        for name in _READ:
            if f"parameter {name}" in expressions:
                return f"its {name} is another node's value, and what is there may have changed"
    return ""


def _reads_other_runs(node: pipeline_pb2.PipelineNode) -> bool:
    """Return True if a node itself asks for artifacts of other runs; what a resolver finds is looked up."""
    if node.node_info.type.name == RESOLVER:
        return False
    channels = (channel for spec in node.inputs.inputs.values() for channel in spec.channels)
    return not all(_is_of_own_run(channel, node) for channel in channels) or any(
        step.op_type == _OF_LATEST_RUN for step in resolver_steps(node)
    )


def _is_of_own_run(channel: pipeline_pb2.InputSpec.Channel, node: pipeline_pb2.PipelineNode) -> bool:
    own = _own_run(node)
    return any(query.name == own for query in channel.context_queries)


def _own_run(node: pipeline_pb2.PipelineNode) -> pipeline_pb2.Value:
    """Return the name by which the metadata store knows the run that is compiled."""
    return next(
        context.name
        for context in node.contexts.contexts
        if context.type.name == constants.PIPELINE_RUN_CONTEXT_TYPE_NAME
    )


def _optional(node: pipeline_pb2.PipelineNode) -> tuple[str, ...]:
    needed = {
        channel.producer_node_query.id
        for spec in node.inputs.inputs.values()
        if spec.min_count > 0
        for channel in spec.channels
    }
    return tuple(sorted(set(node.upstream_nodes) - needed))


def _finds_baseline(node: pipeline_pb2.PipelineNode) -> bool:
    """Return True for a resolver of the latest model that runs of the node's own pipeline blessed."""
    own = _name_of(node.contexts.contexts)
    channels = (channel for spec in node.inputs.inputs.values() for channel in spec.channels)
    return _strategies(node) == {LatestBlessedModelStrategy.__name__} and all(
        _name_of(channel.context_queries) == own for channel in channels
    )


def _name_of(contexts: Iterable[Any]) -> Any:
    """Return the name of the pipeline among contexts, or queries for them; None if none is named."""
    return next(
        (each.name for each in contexts if each.type.name == constants.PIPELINE_CONTEXT_TYPE_NAME), None
    )


def _finds_reference(node: pipeline_pb2.PipelineNode) -> str:
    """Return the rule by which a resolver of verdicts chooses one; empty for every other node."""
    if _takes(node) != {DataVerdict.TYPE_NAME}:
        return ""
    for step in resolver_steps(node):
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
    model. One after which no model is made or blessed, as for inference, compares none with itself: the store
    is asked.
    """
    judges = {node.id for node in nodes if _JUDGEMENTS.intersection(node.outputs.values())}
    asked = {up for node in nodes if node.id in judges for up in node.upstream}
    found = []
    graph = Graph(ir.pipeline_info.id, tuple(nodes))
    trains = any("Model" in node.outputs.values() for node in nodes if not node.is_resolver)
    for node, each in zip(nodes, ir.nodes, strict=True):
        inputs = each.pipeline_node.inputs.inputs.values()
        givers = {channel.producer_node_query.id for spec in inputs for channel in spec.channels}
        changed = replace(node, gates=tuple(sorted(judges.intersection(node.upstream) - givers)))
        if node.finds_baseline and node.id in asked:
            changed = replace(changed, finds_baseline=False, finds_reference="blessed")
        elif not (trains and _is_compared(node, graph)):
            changed = replace(changed, finds_baseline=False)
        found.append(changed)
    return _looking_each_time(found)


def _looking_each_time(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the nodes, with what is made anew in every run as what those look at that find an earlier one.

    Its key is the same each time, and tells nothing of which one was the last. Nor does that of what is made
    of what another resolver finds, as the latest spans: it may be known only in the run. What is imported is
    left out: it is no run's own.
    """
    foreseen, anew = {node.id for node in nodes if node.finds_baseline or node.finds_reference}, set[str]()
    for node in nodes:
        is_looked_up = node.is_resolver and node.id not in foreseen
        if node.uncached or is_looked_up or anew.intersection(node.upstream).difference(node.gates, foreseen):
            anew.add(node.id)
    makers = [n for n in nodes if n.id in anew and not n.is_resolver and n.type != _IMPORTER]

    def looking(node: Node) -> Node:
        kind = "ExampleStatistics" if node.finds_reference else "Model"
        return replace(node, looks_at=tuple(each.id for each in makers if kind in each.outputs.values()))

    return tuple(looking(n) if n.id in foreseen else n for n in nodes)


def _is_compared(node: Node, graph: Graph) -> bool:
    """Return True if models are made or blessed after a resolver, with what it finds."""
    later = (graph[name] for name in graph.downstream_of([node.id]) - {node.id})
    return any({"Model", "ModelBlessing"}.intersection(each.outputs.values()) for each in later)


def _strategies(node: pipeline_pb2.PipelineNode) -> set[str]:
    """Return the class names of a resolver's strategies; empty for another node."""
    return {step.op_type.rpartition(".")[2] for step in resolver_steps(node) if step.op_type}


def resolver_steps(node: pipeline_pb2.PipelineNode) -> Iterator[Any]:
    """Return the operations by which a node's inputs are found; none unless a resolver or a loop asks."""
    return (step.op_node for graph in node.inputs.input_graphs.values() for step in graph.nodes.values())


def class_path_of(executor: Any) -> str:
    """Return the class of an executor or a driver; empty if there is none (resolver, importer, container)."""
    return getattr(_python_spec(executor), "class_path", "")


def _python_spec(executor: Any) -> Any:
    return getattr(executor, "python_executor_spec", executor)


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
    """Return the file patterns of an ExampleGen (one per input split), an Importer or a data gate."""
    base, config, imported = (values.get(key) for key in ("input_base", "input_config", "artifact_uri"))
    patterns = imported_patterns(imported) if isinstance(imported, str) else []
    patterns += statistics_patterns(values)
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
