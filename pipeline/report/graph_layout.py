"""Lays out the graph of a pipeline in layers from top to bottom, with few crossings. Pure."""

import graphlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BOX_WIDTH_PX = 156
BOX_HEIGHT_PX = 60
_GAP_X_PX = 20
_GAP_Y_PX = 28
_MARGIN_PX = 4


@dataclass(frozen=True)
class Box:
    """The position of a node.

    Attributes:
        x: left edge, in px of the picture.
        y: upper edge, in px of the picture.
    """

    node_id: str
    x: float
    y: float


@dataclass(frozen=True)
class Edge:
    """A cubic Bézier curve from the lower edge of one box to the upper edge of another.

    Attributes:
        source: the ID of the upper node.
        target: the ID of the lower node.
        path: the `d` attribute of an SVG path.
    """

    source: str
    target: str
    path: str


@dataclass(frozen=True)
class Drawing:
    """The layout of a pipeline.

    Attributes:
        edges: the edges that remain after transitive reduction.
        width: in px.
        height: in px.
    """

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float

    @property
    def sources(self) -> frozenset[str]:
        """The nodes that other nodes depend on."""
        return frozenset(edge.source for edge in self.edges)


def lay_out(upstream: Mapping[str, Sequence[str]]) -> Drawing:
    """Place the nodes in layers, each node below all nodes that it depends on.

    Args:
        upstream: node -> the nodes it depends on; names that are not keys are ignored.

    Raises:
        graphlib.CycleError: the graph has a cycle.
    """
    needs = {node: [up for up in dict.fromkeys(ups) if up in upstream] for node, ups in upstream.items()}
    order = tuple(graphlib.TopologicalSorter(needs).static_order())
    kept = _without_detours(needs, order)
    layers = _layers(kept, order)
    widest = max((len(layer) for layer in layers), default=1)
    width = widest * BOX_WIDTH_PX + (widest - 1) * _GAP_X_PX + 2 * _MARGIN_PX
    boxes = {}
    for depth, layer in enumerate(layers):
        own = len(layer) * BOX_WIDTH_PX + (len(layer) - 1) * _GAP_X_PX
        for place, node in enumerate(layer):
            x = (width - own) / 2 + place * (BOX_WIDTH_PX + _GAP_X_PX)
            boxes[node] = Box(node, x, _MARGIN_PX + depth * (BOX_HEIGHT_PX + _GAP_Y_PX))
    edges = tuple(_edge(boxes[up], boxes[node]) for node in order for up in kept[node])
    height = len(layers) * (BOX_HEIGHT_PX + _GAP_Y_PX) - _GAP_Y_PX + 2 * _MARGIN_PX
    return Drawing(tuple(boxes.values()), edges, width, max(height, 0))


def _without_detours(needs: Mapping[str, Sequence[str]], order: Sequence[str]) -> dict[str, list[str]]:
    """Return the transitive reduction, which omits an edge if a longer path connects its nodes."""
    above: dict[str, set[str]] = {}
    for node in order:
        above[node] = set(needs[node]).union(*(above[up] for up in needs[node]))
    return {
        node: [up for up in ups if not any(up in above[other] for other in ups)]
        for node, ups in needs.items()
    }


def _layers(needs: Mapping[str, Sequence[str]], order: Sequence[str]) -> list[list[str]]:
    depth: dict[str, int] = {}
    for node in order:
        depth[node] = 1 + max((depth[up] for up in needs[node]), default=-1)
    needed_by: dict[str, list[str]] = {node: [] for node in order}
    for node in order:
        for up in needs[node]:
            needed_by[up].append(node)
    for node in reversed(order):
        # Place a source right above its first consumer, to keep its edge short and the picture narrow.
        if not needs[node] and needed_by[node]:
            depth[node] = min(depth[down] for down in needed_by[node]) - 1
    layers: list[list[str]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    for node in order:
        layers[depth[node]].append(node)
    place: dict[str, float] = {}
    for layer in layers:
        middle = {n: _mean([place[up] for up in needs[n]], otherwise=len(layer)) for n in layer}
        layer.sort(key=middle.__getitem__)  # stable, so ties keep the pipeline's order
        place.update({node: index - (len(layer) - 1) / 2 for index, node in enumerate(layer)})
    return layers


def _mean(values: Sequence[float], *, otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _edge(source: Box, target: Box) -> Edge:
    x1, y1 = source.x + BOX_WIDTH_PX / 2, source.y + BOX_HEIGHT_PX
    x2, y2 = target.x + BOX_WIDTH_PX / 2, target.y
    bend = _GAP_Y_PX * 0.8
    path = f"M{x1:g} {y1:g}C{x1:g} {y1 + bend:g} {x2:g} {y2 - bend:g} {x2:g} {y2:g}"
    return Edge(source.node_id, target.node_id, path)
