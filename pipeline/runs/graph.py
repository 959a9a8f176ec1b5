"""The pipeline as the engine sees it: its nodes, their order, and what their results depend on. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field

from slipway.components.nearest import nearest
from slipway.pipeline.errors import UsageError

CONDITION, COMPONENT = "condition", "component"
"""Names among a node's settings that stand for its condition, and for its component's class."""


@dataclass(frozen=True)
class Node:
    """One node of a compiled pipeline.

    Attributes:
        type: the component's class name, e.g. `Transform`.
        upstream: ids of the nodes that must be done before this one starts.
        params: its settings, flattened to `key.subkey` -> canonical JSON.
        code: dotted paths and Python files of the code that it runs, as far as its settings name them.
        inputs: the key of each input -> which outputs it reads, and by which rule if not by their order.
        data: path patterns (globs) of its input data.
        files: other files that its settings name, e.g. a schema.
        uncached: why its result is never taken from an earlier run, in words; empty if it may be.
        is_resolver: whether its outputs depend on the content of the metadata store.
        finds_baseline: True for the resolver of the pipeline's own latest blessed model, where models are
            made: its result can be predicted.
        finds_reference: for the resolver of the data that a gate compares with, whose result can be
            predicted too: `passed`, `blessed` or `span N`, see `resolver_keys.reference_key`; empty for
                every other node.
        found: for any other resolver, the key of what it would find now, see `found_key`; None if that
            cannot be determined, and for every other node.
        looks_at: for such a resolver, the nodes whose runs may change what it finds; for one whose result can
            be predicted, those of them that run every time, which only their results tell apart.
        gates: the upstream nodes that only let it run. Its result does not depend on theirs, because it
            reads none of their outputs.
        outputs: output key -> artifact type name.
        optional: the upstream nodes that may be left out by a condition: it reads none of their outputs, or
            reads them only if there are any.
        by_docker: whether it starts a container on this machine.
        retries: the number of retries after a failure, >= 0.
        timeout_s: seconds after which an attempt is killed; None for no limit.
        backoff_s: seconds to wait before the first retry; doubled for each further one.
    """

    id: str
    type: str
    upstream: tuple[str, ...]
    params: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    code: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    uncached: str = ""
    is_resolver: bool = False
    finds_baseline: bool = False
    finds_reference: str = ""
    found: str | None = None
    looks_at: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    by_docker: bool = False
    retries: int = 0
    timeout_s: float | None = None
    backoff_s: float = 1.0

    @property
    def has_condition(self) -> bool:
        """Whether it runs under a condition only (`Cond`)."""
        return any(key.partition(".")[0] == CONDITION for key in self.params)


@dataclass(frozen=True)
class Graph:
    """A compiled pipeline.

    Attributes:
        nodes: in topological order.
        store: the SQLite file of its metadata store; empty if the store is on a server.
        import_from: the folders that the process imports from in which a user's own pipeline was built: its
            module may have added some to `sys.path`.
        keras: the variables by which that process takes another Keras than the default: it may have set them.
    """

    name: str
    nodes: tuple[Node, ...]
    store: str = ""
    import_from: tuple[str, ...] = ()
    keras: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, node_id: str) -> Node:
        """Return the node of that id.

        Raises:
            UsageError: there is none; names the closest.
        """
        for node in self.nodes:
            if node.id == node_id:
                return node
        ids = [node.id for node in self.nodes]
        closest = nearest(node_id, ids, similarity=0)
        raise UsageError(f"No node {node_id!r}. Closest: {closest!r}.", hint=f"nodes: {', '.join(ids)}")

    @property
    def ids(self) -> tuple[str, ...]:
        """All node ids in topological order."""
        return tuple(node.id for node in self.nodes)

    def downstream_of(self, roots: Iterable[str]) -> set[str]:
        """Return the given nodes and all that depend on them, directly or indirectly."""
        found = set(roots)
        for node in self.nodes:
            if found.intersection(node.upstream):
                found.add(node.id)
        return found

    def upstream_of(self, roots: Iterable[str]) -> set[str]:
        """Return the given nodes and all that they depend on, directly or indirectly."""
        found = set(roots)
        for node in reversed(self.nodes):
            if node.id in found:
                found.update(node.upstream)
        return found

    def select(self, *, start: str | None, end: str | None) -> set[str]:
        """Return the nodes of `run --from START --to END`, both inclusive.

        These are the nodes that depend on START and that END depends on.

        Raises:
            UsageError: a name is not a node's, or END does not depend on START.
        """
        chosen = set(self.ids) if start is None else self.downstream_of([self[start].id])
        if end is not None:
            chosen &= self.upstream_of([self[end].id])
        if not chosen:
            raise UsageError(f"--to {end} does not depend on --from {start}: nothing would run.")
        return chosen

    def to_json(self) -> dict[str, object]:
        """Return plain data, which `typed_json.typed` reads back."""
        return asdict(self)


def ready(
    graph: Graph, *, waiting: Collection[str], done: Collection[str], unmet: Collection[str]
) -> list[str]:
    """Return the waiting nodes whose dependencies are all done, in topological order.

    Indirect dependencies count too: a cached result upstream is available at once, while a gate before it
    may still reject.

    Args:
        unmet: nodes left out because their condition, or that of a node they need, was not met.
    """
    return [
        node.id
        for node in graph.nodes
        if node.id in waiting
        and all(up in done or (up in unmet and up in node.optional) for up in node.upstream)
        and all(up in done or up in unmet for up in graph.upstream_of(node.upstream))
    ]
