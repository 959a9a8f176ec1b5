"""Manages the folders of saved state that incomplete nodes continue from (`kept_state` of `components`)."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from slipway.components.lock_file import held
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.plan.decide import Decision
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.record import file_name


class KeptStates:
    """The state folders under one output folder.

    They are named by the fingerprint's key: a retry, `resume` or another run continues from the state of an
    earlier attempt, as long as nothing changes that the node depends on.
    """

    def __init__(self, output: Path) -> None:
        self.root = output / "cache" / "state"

    def folder(self, key: str, node_id: str) -> Path:
        """Return a node's folder, which the node creates.

        Nodes with equal settings share a key, but not a folder.
        """
        return (self.root / f"{key}.{file_name(node_id)}").absolute()

    def forget(self, key: str, node_id: str) -> None:
        """Remove a node's saved state, if any.

        Raises:
            PipelineError: the state could not be removed, and a later run would continue from it.
        """
        folder = self.folder(key, node_id)
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            return
        except OSError as error:
            raise PipelineError(
                f"{folder} cannot be removed ({error.filename}): {error.strerror or error}.",
                hint=f"first remove {folder}",
            ) from error


class StatesOfStep(KeptStates):
    """The state folders as a step sees them, beside which steps of equal runs may be at work.

    Args:
        node_id: the step's node; the state of others may be in use.
        apart: the id of the run, if it has a folder of its own because another run uses the common one.
    """

    def __init__(self, output: Path, *, node_id: str, apart: str = "") -> None:
        super().__init__(output)
        self._node_id, self._apart = node_id, apart

    def folder(self, key: str, node_id: str) -> Path:
        """As `KeptStates.folder`."""
        common = super().folder(key, node_id)
        return common.with_name(f"{common.name}.{self._apart}") if self._apart else common

    def forget(self, key: str, node_id: str) -> None:
        """As `KeptStates.forget`, for the step's own node; of another node nothing is removed."""
        if node_id == self._node_id:
            super().forget(key, node_id)


@contextmanager
def states_of_step(output: Path, *, key: str, node_id: str, run_id: str) -> Iterator[StatesOfStep]:
    """Hold a node's state folder for a step: no other run, which may have the same key, uses it meanwhile.

    If another run holds it, or held it when this run began the node, the run has a folder of its own.

    Args:
        key: of the node's fingerprint.

    Raises:
        OSError: the output folder cannot be written.
    """
    common, own = StatesOfStep(output, node_id=node_id), StatesOfStep(output, node_id=node_id, apart=run_id)
    if own.folder(key, node_id).exists():
        yield own
        return
    path = common.root.with_name("state.locks") / common.folder(key, node_id).name
    path.parent.mkdir(parents=True, exist_ok=True)
    with held(path) as is_held:
        yield common if is_held else own


def key_of(folder: Path) -> str:
    """Return the fingerprint key that a state folder belongs to."""
    return folder.name.partition(".")[0]


def is_state_kept(node_id: str, graph: Graph, decisions: Mapping[str, Decision], *, was_begun: bool) -> bool:
    """Return True if the state of a node's earlier attempts is kept when a run begins or is resumed. Pure.

    It is not kept if the node is forced to run again, or if a node upstream runs, whose new result gets the
    same key but need not be the same. A node answered from the cache needs no state.

    Args:
        was_begun: whether this run has begun the node before it was resumed.
    """
    decision = decisions[node_id]
    if decision.action == "reuse" or (decision.is_forced and not was_begun):
        return False
    upstream = graph.upstream_of([node_id]) - {node_id}
    return not any(decisions[up].action == "run" and not graph[up].is_resolver for up in upstream)
