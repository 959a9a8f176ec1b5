"""Launches one node, in the process forked for it, and reads its outputs from the metadata store."""

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import ml_metadata as mlmd
from ml_metadata.proto import metadata_store_pb2
from tfx.dsl.compiler import compiler_utils, constants
from tfx.dsl.io import fileio
from tfx.orchestration import metadata
from tfx.orchestration.portable import launcher, outputs_utils
from tfx.orchestration.portable.mlmd import context_lib, execution_lib
from tfx.types.value_artifact import ValueArtifact

from slipway.components.errors import ComponentError
from slipway.pipeline.engine.failure import Failed
from slipway.pipeline.engine.processes.grpc_on_loopback import watch_no_executions
from slipway.pipeline.engine.tfx.compile import Compiled
from slipway.pipeline.engine.tfx.read_graph import RESOLVER
from slipway.pipeline.runs.record import Artifact, NodeOutputs, Outputs, Result

_Execution, _Event = metadata_store_pb2.Execution, metadata_store_pb2.Event
_SUCCESSFUL = (_Execution.COMPLETE, _Execution.CACHED)

# TFX's message when it cannot resolve a node's inputs.
_TOO_FEW = re.compile(r"inputs\[(\w+)\] has min_count = (\d+) but only got (\d+) artifacts")
# TFX's message when a ForEach has more than one artifact.
_SEVERAL = "Handling more than one input dicts not implemented yet."
_ERROR_CLASS = re.compile(r"^[\w.]+(Error|Exception): ")
_OBJECT = re.compile(r"<(?:\w+\.)*(\w+) object at 0x\w+>")


def launch(compiled: Compiled, node_id: str, *, attempt: int) -> NodeOutputs | Failed:
    """Run one node through TFX's launcher.

    Args:
        attempt: from 1. A further attempt continues the execution of the previous one, because TFX allows
            one execution per node and run. If the previous attempt published its outputs before it died,
            they are the result.

    Returns:
        `{"state": "complete" | "skipped", "execution_id", "outputs": {key: [artifact, ...]}}`; an artifact
        is `{"id", "uri", "type", "properties"}`. Skipped means that a condition was not met. A
        resolver that found nothing is complete, without an execution to reuse. If inputs are missing,
        `{"state": "failed", "lacks_inputs": True, "message", "hint", "where"}`.

    Raises:
        Exception: any exception of the component.
    """
    if attempt > 1:
        _clear_outputs(compiled, node_id)
    watch_no_executions(launcher)
    info = _Launcher(
        pipeline_node=compiled.node(node_id),
        mlmd_connection=metadata.Metadata(compiled.connection),
        pipeline_info=compiled.ir.pipeline_info,
        pipeline_runtime_spec=compiled.ir.runtime_spec,
        executor_spec=compiled.executor_spec(node_id),
        custom_driver_spec=compiled.driver_spec(node_id),
    ).launch()
    if info is None or info.execution_id is None:
        return {"state": "skipped", "execution_id": None, "outputs": {}}
    with metadata.Metadata(compiled.connection) as handle:
        # launch() also returns normally if inputs are missing: only the store knows the outcome.
        [execution] = handle.store.get_executions_by_id([info.execution_id])
        if execution.last_known_state in _SUCCESSFUL:
            return _result(handle.store, execution.id)
    cause = _failure(execution)
    if compiled.graph[node_id].is_resolver and cause.endswith("returned None."):
        # As in TFX's own runner: nodes that can run without the input continue, the others report it.
        return {"state": "complete", "execution_id": None, "outputs": {}}
    message = f"could not start: {cause}"
    return Failed(state="failed", lacks_inputs=True, message=message, hint="", where="")


class _Launcher(launcher.Launcher):  # type: ignore[misc]
    """TFX's launcher, by which a component fails whose output is gone when it ends."""

    def _run_executor(self, execution_info: Any) -> Any:
        done = super()._run_executor(execution_info)
        given = {key: {each.uri for each in made.artifacts} for key, made in done.output_artifacts.items()}
        for key, made in execution_info.output_dict.items():
            for artifact in made:
                is_given = key not in given or artifact.uri in given[key]
                if is_given and not artifact.is_external and not fileio.exists(artifact.uri):
                    raise ComponentError(
                        f"its output {key!r} is gone: {artifact.uri} was there when it began",
                        hint="look in its code for what removes or renames that path",
                    )
        return done


def _clear_outputs(compiled: Compiled, node_id: str) -> None:
    """Remove what a killed attempt left half done where the next one writes, e.g. some shards.

    After an exception TFX does this itself. The stateful working folder, e.g. checkpoints, stays on
    purpose.
    """
    node = compiled.node(node_id)
    resolver = outputs_utils.OutputsResolver(
        pipeline_node=node,
        pipeline_info=compiled.ir.pipeline_info,
        pipeline_runtime_spec=compiled.ir.runtime_spec,
    )
    with metadata.Metadata(compiled.connection) as handle:
        contexts = context_lib.prepare_contexts(metadata_handle=handle, node_contexts=node.contexts)
        for execution in execution_lib.get_executions_associated_with_all_contexts(handle, contexts):
            if execution.last_known_state not in _SUCCESSFUL:
                for artifacts in resolver.generate_output_artifacts(execution.id).values():
                    for artifact in artifacts:
                        _remove(artifact)


def _remove(artifact: Any) -> None:
    if artifact.is_external or not fileio.exists(artifact.uri):
        return
    if isinstance(artifact, ValueArtifact):
        fileio.remove(artifact.uri)
    else:
        fileio.rmtree(artifact.uri)


def reuse(compiled: Compiled, sources: Mapping[str, Result]) -> dict[str, NodeOutputs]:
    """Register the outputs of earlier executions as those of this run's nodes, as TFX does for its cache.

    Args:
        sources: node id -> the cached result whose outputs are taken, `{execution_id, outputs}`.

    Returns:
        The reused nodes with their results, as `launch` returns them. Left out is a node whose execution
        the store does not (or no longer) hold with exactly these outputs, e.g. because it is another store
        that counts from 1 again, and every node that depends on such a node. They have to run; nothing is
        registered for them.
    """
    results: dict[str, NodeOutputs] = {}
    lost: set[str] = set()
    with metadata.Metadata(compiled.connection) as handle:
        for node in compiled.graph.nodes:
            if node.id not in sources:
                continue
            source = sources[node.id]
            execution = _successful(handle.store, source["execution_id"], compiled.node(node.id))
            result = _result(handle.store, execution.id) if execution else None
            if result is None or _uris(result["outputs"]) != _uris(source["outputs"]):
                lost = compiled.graph.downstream_of(lost | {node.id})
            if node.id not in lost and execution and result:
                _register_copy(handle, compiled.node(node.id), execution)
                # The result names the original execution, which stays valid after the copy's run is removed.
                results[node.id] = result
    return results


def _successful(
    store: mlmd.MetadataStore, execution_id: int | None, node: Any
) -> metadata_store_pb2.Execution | None:
    if execution_id is None:
        return None
    for execution in store.get_executions_by_id([execution_id]):
        if execution.last_known_state in _SUCCESSFUL and execution.type == node.node_info.type.name:
            return execution
    return None


def _uris(outputs: Outputs) -> dict[str, list[str]]:
    return {key: sorted(artifact["uri"] for artifact in made) for key, made in outputs.items()}


def _register_copy(handle: metadata.Metadata, node: Any, execution: metadata_store_pb2.Execution) -> None:
    contexts = context_lib.prepare_contexts(metadata_handle=handle, node_contexts=node.contexts)
    if execution_lib.get_executions_associated_with_all_contexts(handle, contexts):
        return
    copy = _Execution(name=str(uuid.uuid4()), type_id=execution.type_id, last_known_state=_Execution.CACHED)
    for name, value in execution.properties.items():
        copy.properties[name].CopyFrom(value)
    for name, value in execution.custom_properties.items():
        if not execution_lib.is_internal_key(name) or execution_lib.is_schema_key(name):
            copy.custom_properties[name].CopyFrom(value)
    # The copy keeps the original's inputs, as TFX's own cache does.
    known = handle.store.get_contexts_by_execution(execution.id)
    is_resolver = node.node_info.type.name == RESOLVER
    execution_lib.put_execution(
        handle,
        copy,
        [*contexts, *(each for each in known if each.type == context_lib.CONTEXT_TYPE_EXECUTION_CACHE)],
        input_artifacts=execution_lib.get_input_artifacts(handle, execution.id),
        output_artifacts=execution_lib.get_output_artifacts(handle, execution.id),
        output_event_type=_Event.INTERNAL_OUTPUT if is_resolver else _Event.OUTPUT,
    )


def published(compiled: Compiled, run_ids: Sequence[str]) -> dict[str, NodeOutputs]:
    """Return the results of nodes that completed in those runs, even if the engine died before noting them.

    Args:
        run_ids: the ids of the runs in the metadata store; an unknown id has no results.

    Returns:
        Node id -> result as `launch` returns it. If several runs have one, that of the last run id in the
        list.
    """
    results: dict[str, NodeOutputs] = {}
    with metadata.Metadata(compiled.connection) as handle:
        for run_id in run_ids:
            run = handle.store.get_context_by_type_and_name(constants.PIPELINE_RUN_CONTEXT_TYPE_NAME, run_id)
            if run is None:
                continue
            for execution in handle.store.get_executions_by_context(run.id):
                if execution.last_known_state == _Execution.COMPLETE:
                    node_id = _node_of(handle.store, execution.id, compiled)
                    results[node_id] = _result(handle.store, execution.id)
    return results


def _node_of(store: mlmd.MetadataStore, execution_id: int, compiled: Compiled) -> str:
    names = {
        context.name
        for context in store.get_contexts_by_execution(execution_id)
        if context.type == constants.NODE_CONTEXT_TYPE_NAME
    }
    pipeline = compiled.ir.pipeline_info.id
    return next(
        (i for i in compiled.graph.ids if compiler_utils.node_context_name(pipeline, i) in names), "unknown"
    )


def _result(store: mlmd.MetadataStore, execution_id: int) -> NodeOutputs:
    events = [
        event
        for event in store.get_events_by_execution_ids([execution_id])
        if event.type in (metadata_store_pb2.Event.OUTPUT, metadata_store_pb2.Event.INTERNAL_OUTPUT)
    ]
    artifacts = {a.id: a for a in store.get_artifacts_by_id([event.artifact_id for event in events])}
    outputs: dict[str, list[Artifact]] = {}
    for event in events:
        key = next((step.key for step in event.path.steps if step.WhichOneof("value") == "key"), "")
        artifact = artifacts[event.artifact_id]
        outputs.setdefault(key, []).append(
            {
                "id": artifact.id,
                "uri": artifact.uri,
                "type": artifact.type,
                "properties": {
                    name: getattr(value, value.WhichOneof("value"))
                    for name, value in artifact.custom_properties.items()
                    if value.WhichOneof("value") in ("int_value", "double_value", "string_value")
                },
            }
        )
    return {"state": "complete", "execution_id": execution_id, "outputs": outputs}


def _failure(execution: metadata_store_pb2.Execution) -> str:
    """Return the last line of the message that TFX recorded, without error classes and object addresses."""
    recorded = execution.custom_properties.get("__execution_result__")
    text = json.loads(recorded.string_value).get("resultMessage", "") if recorded else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = lines[-1] if lines else "its inputs could not be resolved"
    if last.endswith(_SEVERAL):
        return "its ForEach has several artifacts, and TFX's launcher executes a node once in a run"
    if few := _TOO_FEW.search(last):
        return f"its input {few[1]!r} needs {few[2]} artifact{'s' * (few[2] != '1')} and there are {few[3]}"
    return _OBJECT.sub(r"\1", _ERROR_CLASS.sub("", last))
