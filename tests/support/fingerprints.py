"""The fingerprints of a graph's nodes, from the files as they are."""

from collections.abc import Sequence
from pathlib import Path

from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.plan.node_fingerprints import fingerprint_nodes, own_parts
from slipway.pipeline.runs.graph import Graph


def fingerprints(
    graph: Graph, *, roots: Sequence[Path], memo: Path | None, baseline: str, reference: str = ""
) -> dict[str, Fingerprint]:
    """As a plan takes them, see `fingerprint_nodes` and `own_parts`."""
    own = {node.id: own_parts(node, roots=roots, memo=memo) for node in graph.nodes}
    return fingerprint_nodes(graph, own, baseline=baseline, reference=reference)
