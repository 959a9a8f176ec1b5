"""Looks up what resolvers would find now, so that nodes after them need not run again for the same artifacts.

The baseline is looked up only if runs made it that are recorded elsewhere: `dag.py` chooses its strategy,
`plan/resolver_keys.py` predicts its result from the records, and `plan/baseline_changes.py` changes it.

Imports TFX: runs in the fork server only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ml_metadata.proto import metadata_store_pb2
from tfx.dsl.compiler import constants
from tfx.orchestration import metadata
from tfx.orchestration.portable import inputs_utils
from tfx.orchestration.portable.input_resolution import exceptions
from tfx.proto.orchestration import pipeline_pb2

from slipway.pipeline.engine.tfx.compile import Compiled
from slipway.pipeline.engine.tfx.store_upkeep import is_of
from slipway.pipeline.plan.node_fingerprints import found_key
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.record import Artifact

_Found = Mapping[str, Sequence[Any]]
"""Artifacts by the names of a resolver's outputs."""


def with_found(compiled: Compiled, *, runs: Path | None) -> Compiled:
    """Return the pipeline with what each resolver would find in the metadata store now (`Node.found`).

    Resolvers whose result is predicted from the records of runs, such as that of the latest blessed model,
    are left unchanged. Nothing is written; a store that does not exist yet holds nothing. A resolver waits
    for the nodes before it that make what it looks for.

    Args:
        runs: the folder of the records; None if the baseline is predicted in any case.
    """
    nodes = []
    for node in compiled.graph.nodes:
        if node.is_resolver and not node.finds_reference and not (node.finds_baseline and runs is None):
            found = _found(compiled, node)
            if not (node.finds_baseline and runs and _is_recorded(compiled, found, runs)):
                looks_at = _looked_at(compiled, node)
                # TFX's local runner runs one node after another: what it runs before is found.
                ids = compiled.graph.ids
                awaited = {*looks_at}.intersection(ids[: ids.index(node.id)]).difference(node.upstream)
                node = replace(
                    node,
                    finds_baseline=False,
                    found=_key(found),
                    looks_at=looks_at,
                    upstream=tuple(sorted({*node.upstream, *awaited})),
                    optional=tuple(sorted({*node.optional, *awaited})),
                )
        nodes.append(node)
    return replace(compiled, graph=replace(compiled.graph, nodes=tuple(nodes)))


def _is_recorded(compiled: Compiled, found: _Found | None, runs: Path) -> bool:
    """Return True if a run that is recorded here made or reused each artifact that was found."""
    wanted = {artifact.id for each in (found or {}).values() for artifact in each}
    if not wanted:
        return True
    with metadata.Metadata(compiled.connection) as handle:
        # Runs that only read an artifact are in its own contexts, too.
        given = [
            event
            for event in handle.store.get_events_by_artifact_ids(sorted(wanted))
            if event.type == metadata_store_pb2.Event.OUTPUT
        ]
        known = {event.artifact_id for event in given if is_of(handle.store, event.execution_id, runs)}
    return known == wanted


def _found(compiled: Compiled, node: Node) -> _Found | None:
    store = compiled.graph.store
    if store and not Path(store).exists():
        return {}
    with metadata.Metadata(compiled.connection) as handle:
        try:
            resolved = inputs_utils.resolve_input_artifacts(
                pipeline_node=compiled.node(node.id), metadata_handle=handle
            )
        except exceptions.InputResolutionError:
            return {}  # the resolver will find nothing, and report that or fail
    if len(resolved) != 1:
        return None
    [inputs] = resolved
    # A resolver's outputs have the names of its inputs.
    hidden = {key for key, spec in compiled.node(node.id).inputs.inputs.items() if spec.hidden}
    return {key: each for key, each in inputs.items() if each and key not in hidden}


def _key(found: _Found | None) -> str | None:
    if found is None:
        return None
    known = {
        key: [Artifact(uri=one.uri, type="", properties={}, id=one.id) for one in each]
        for key, each in found.items()
    }
    return found_key(known)


def _looked_at(compiled: Compiled, node: Node) -> tuple[str, ...]:
    """Return the nodes whose runs may add to what a resolver finds: it starts after them or beside them."""
    later = compiled.graph.downstream_of([node.id])
    taken = compiled.node(node.id).inputs.inputs.values()
    channels = [channel for spec in taken for channel in spec.channels]
    makers = (
        other.id
        for other in compiled.graph.nodes
        if other.id not in later
        and not other.is_resolver
        and any(_gives(other, channel, compiled.graph) for channel in channels)
    )
    return tuple(sorted({*node.upstream, *makers}))


def _gives(node: Node, channel: pipeline_pb2.InputSpec.Channel, graph: Graph) -> bool:
    named = [
        _name(query)
        for query in channel.context_queries
        if query.type.name == constants.NODE_CONTEXT_TYPE_NAME
    ]
    return channel.artifact_query.type.name in node.outputs.values() and (
        not named or f"{graph.name}.{node.id}" in named
    )


def _name(query: Any) -> str:
    return str(query.name.field_value.string_value)
