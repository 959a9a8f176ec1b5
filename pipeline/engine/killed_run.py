"""Takes up what nodes completed after their engine was killed, when the run is resumed."""

from collections.abc import Callable, Mapping

from slipway.pipeline.engine.journal import Journal
from slipway.pipeline.engine.result_store import NOT_CACHED
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import result_of
from slipway.pipeline.runs.record import NodeOutputs, RunRecord
from slipway.pipeline.runs.result_files import kept_files


def last_attempt(record: RunRecord) -> str:
    """Return under which id a resumed run was last at work, in the metadata store."""
    return record.run_id if record.resumed == 1 else f"{record.run_id}.{record.resumed - 1}"


def take_up(
    journal: Journal,
    published: Mapping[str, NodeOutputs],
    graph: Graph,
    is_unchanged: Callable[[Node, Fingerprint], bool],
) -> None:
    """Record results of nodes that completed after a killed engine could no longer record them.

    Not where code or data may have changed while they ran, which nobody looked at: their keys stand for what
    these had been. Nor where they read the result of such a node.

    Args:
        published: by node id, as `ForkServerClient.published` returns them.
        is_unchanged: returns True if code, data and settings of a node are those of a fingerprint.
    """
    record, history = journal.record, journal.history
    nodes = {node.id: node for node in graph.nodes}
    doubtful = {entry.id for entry in record.nodes if NOT_CACHED in entry.why}
    for entry in record.nodes:  # in topological order
        if entry.id not in published or not entry.key or entry.state in ("complete", "cached"):
            continue
        node, kept = nodes.get(entry.id), history.fingerprint_of(record, entry.id)
        if (
            node is None
            or kept is None
            or kept.key != entry.key
            or any(up in doubtful for up in node.upstream if up not in node.gates)
            or not is_unchanged(node, kept)
        ):
            doubtful.add(entry.id)
            continue
        entry.execution_id = published[entry.id]["execution_id"]
        entry.outputs = published[entry.id]["outputs"]
        files = {} if entry.is_resolver else kept_files(entry.outputs)
        history.remember(entry.key, result_of(entry, record, files=files))
