"""One node, in the process that was forked for it: launch it, then tell from the metadata store what came out."""

from typing import Any

import ml_metadata as mlmd
from ml_metadata.proto import metadata_store_pb2
from tfx.orchestration import metadata
from tfx.orchestration.portable import execution_publish_utils, launcher
from tfx.orchestration.portable.mlmd import context_lib, execution_lib

from components.errors import ComponentError
from pipeline.local.compile import Compiled

_Execution = metadata_store_pb2.Execution
_SUCCESSFUL = (_Execution.COMPLETE, _Execution.CACHED)


def launch(compiled: Compiled, node_id: str) -> dict[str, Any]:
    """Runs one node through TFX's launcher.

    Returns:
        `{"state": "complete" | "skipped", "execution_id", "outputs": {key: [artifact, ...]}}`; an artifact is
        `{"uri", "type", "properties"}`. Skipped: a condition of the pipeline was not met.

    Raises:
        ComponentError: the launcher returned without running the node, because inputs are missing.
        Exception: whatever the component raised.
    """
    node = compiled.node(node_id)
    info = launcher.Launcher(
        pipeline_node=node,
        mlmd_connection=metadata.Metadata(compiled.connection),
        pipeline_info=compiled.ir.pipeline_info,
        pipeline_runtime_spec=compiled.ir.runtime_spec,
        executor_spec=compiled.executor_spec(node_id),
        custom_driver_spec=compiled.driver_spec(node_id),
    ).launch()
    if info is None or info.execution_id is None:
        return {"state": "skipped", "execution_id": None, "outputs": {}}
    with metadata.Metadata(compiled.connection) as handle:
        # launch() returns normally when inputs are missing: the store alone knows the outcome.
        [execution] = handle.store.get_executions_by_id([info.execution_id])
        if execution.last_known_state not in _SUCCESSFUL:
            raise ComponentError(f"{node_id} could not start: {_failure(execution)}")
        return _result(handle.store, execution.id)


def reuse(compiled: Compiled, executions: dict[str, int]) -> dict[str, dict[str, Any]]:
    """Registers the outputs of earlier executions as those of this run's nodes, as TFX does for its cache.

    Args:
        compiled: the pipeline.
        executions: node id -> id of the successful execution whose outputs are taken.

    Returns:
        The nodes that could be reused, with their results as `launch` gives them. A node whose execution is
        not (or no longer successfully) in the store is left out: it has to run.
    """
    results = {}
    with metadata.Metadata(compiled.connection) as handle:
        for node_id, execution_id in executions.items():
            found = handle.store.get_executions_by_id([execution_id])
            if not found or found[0].last_known_state not in _SUCCESSFUL:
                continue
            contexts = context_lib.prepare_contexts(
                metadata_handle=handle, node_contexts=compiled.node(node_id).contexts
            )
            if not execution_lib.get_executions_associated_with_all_contexts(handle, contexts):
                execution = execution_lib.prepare_execution(
                    metadata_handle=handle,
                    execution_type=metadata_store_pb2.ExecutionType(id=found[0].type_id),
                    state=_Execution.RUNNING,
                )
                execution_publish_utils.publish_cached_executions(
                    metadata_handle=handle,
                    contexts=contexts,
                    executions=[execution],
                    output_artifacts_maps=[execution_lib.get_output_artifacts(handle, execution_id)],
                )
            # The first execution is named, not its copy: it stays valid when the copy's run is forgotten.
            results[node_id] = _result(handle.store, execution_id)
    return results


def _result(store: mlmd.MetadataStore, execution_id: int) -> dict[str, Any]:
    events = [
        event
        for event in store.get_events_by_execution_ids([execution_id])
        if event.type in (metadata_store_pb2.Event.OUTPUT, metadata_store_pb2.Event.INTERNAL_OUTPUT)
    ]
    artifacts = {a.id: a for a in store.get_artifacts_by_id([event.artifact_id for event in events])}
    outputs: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        key = next((step.key for step in event.path.steps if step.WhichOneof("value") == "key"), "")
        artifact = artifacts[event.artifact_id]
        outputs.setdefault(key, []).append(
            {
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
    recorded = execution.custom_properties.get("__execution_result__")
    text = recorded.string_value if recorded else ""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else "its inputs could not be resolved"


