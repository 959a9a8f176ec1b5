"""What the engine and its fork server tell each other, as JSON and back. Pure.

engine -> server    StartAhead, Compile, Settle, Reuse, FindPublished, Start, Signal
server -> engine    Compiled, Settled, Reused, Published or Refused; Started, Exited
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from slipway.pipeline.engine.launcher import Exited, Start, Started
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.record import Made, Result
from slipway.pipeline.runs.run_target import Order
from slipway.pipeline.runs.typed_json import plain, typed


@dataclass(frozen=True)
class StartAhead:
    """Start what a node will ask for; see `slipway.components.isolated_script.IsolatedScript`."""

    path: str
    variables: dict[str, str]


@dataclass(frozen=True)
class Compile:
    """Compile the order."""

    order: Order


@dataclass(frozen=True)
class Compiled:
    """The order's pipeline."""

    graph: Graph


@dataclass(frozen=True)
class Settle:
    """Prepare the metadata store; see `store_upkeep.settle`."""

    runs: str


@dataclass(frozen=True)
class Settled:
    """That is done."""


@dataclass(frozen=True)
class Reuse:
    """Register earlier results, by node id, as this run's; see `launch.reuse`."""

    sources: dict[str, Result]


@dataclass(frozen=True)
class Reused:
    """They are registered, as far as the store knows them."""

    results: dict[str, Made]


@dataclass(frozen=True)
class FindPublished:
    """Find what nodes published under those ids of runs; see `launch.published`."""

    run_ids: list[str]


@dataclass(frozen=True)
class Published:
    """It was found, by node id."""

    results: dict[str, Made]


@dataclass(frozen=True)
class Refused:
    """An order, or a store, that cannot be used; `is_ours`: our own code says so, and not the pipeline's."""

    is_ours: bool
    message: str
    hint: str
    where: str


@dataclass(frozen=True)
class Signal:
    """Send a signal to a node."""

    node: str
    signum: int


Request = StartAhead | Compile | Settle | Reuse | FindPublished | Start | Signal
Answer = Compiled | Settled | Reused | Published | Refused | Started | Exited
_KINDS: dict[str, type] = {kind.__name__: kind for kind in (*get_args(Request), *get_args(Answer))}


def to_json(message: Request | Answer) -> dict[str, object]:
    """A message for the line."""
    return {"is": type(message).__name__, **plain(message)}


def from_json(document: Mapping[str, object]) -> Any:
    """The `Request` or `Answer` that `to_json` made a document from."""
    return typed(_KINDS[str(document["is"])], document)
