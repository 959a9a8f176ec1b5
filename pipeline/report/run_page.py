"""Gathers the content of a run's report page from the run's files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from google.protobuf.message import DecodeError

from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.report.class_names import class_names
from slipway.pipeline.report.data import Data, data
from slipway.pipeline.report.flows import Flow, flows
from slipway.pipeline.report.graph_layout import Drawing, lay_out
from slipway.pipeline.report.lineage import Lineage, lineage
from slipway.pipeline.report.model import Model, model
from slipway.pipeline.report.nodes import NodeCard, node_cards, upstream_of
from slipway.pipeline.report.page_head import Head, head
from slipway.pipeline.report.preflight import Preflight, preflight
from slipway.pipeline.report.timeline import Timeline, timeline
from slipway.pipeline.report.training import Training, training
from slipway.pipeline.runs.diff import read_fingerprints
from slipway.pipeline.runs.record import RunRecord

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class RunPage:
    """The content of a run's report page; a part is None if the run lacks it or it cannot be read.

    Attributes:
        flows: node ID -> rows and bytes that leave the node.
        problems: the parts that could not be read, with the reason, as text.
    """

    head: Head
    nodes: tuple[NodeCard, ...]
    drawing: Drawing | None
    flows: Mapping[str, Flow]
    timeline: Timeline | None
    data: Data | None
    model: Model | None
    training: Training | None
    preflight: Preflight | None
    lineage: Lineage | None
    problems: tuple[str, ...]

    @property
    def failed(self) -> tuple[NodeCard, ...]:
        """The nodes that failed, including gates that stopped the run."""
        return tuple(node for node in self.nodes if node.state == "failed")


_OF_DAMAGE = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, DecodeError, PipelineError,
)  # fmt: skip


class _Reader:
    """Reads the parts of a page; a part that cannot be read is reported without affecting the others."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def read(self, what: str, part: Callable[[], _Part], otherwise: _Part) -> _Part:
        try:
            return part()
        except _OF_DAMAGE as e:
            # A file may be damaged or of another version; the rest of the page is still useful.
            self.problems.append(f"{what} cannot be shown: {type(e).__name__}: {e}")
            return otherwise


def gather(record: RunRecord, output: Path) -> RunPage:
    """Gather the content of a run's report page.

    Raises:
        OSError, ValueError: a verdict that the head of the page needs cannot be read.
    """
    folder = output / "runs" / record.run_id
    reader = _Reader()
    no_prints: dict[str, Fingerprint] = {}
    prints = reader.read("Fingerprints", lambda: read_fingerprints(folder) or no_prints, no_prints)
    for node in record.nodes:
        node.upstream = list(upstream_of(node, prints.get(node.id)))
    needs = {node.id: node.upstream for node in record.nodes}
    told = reader.read("The data", lambda: data(record), None)
    ahead = reader.read("The preflight", lambda: preflight(record, output), None)
    no_names: tuple[str, ...] = ()
    names = reader.read("The names of the classes", lambda: class_names(record), no_names)
    no_flows: dict[str, Flow] = {}
    return RunPage(
        head=head(record, cost=ahead.cost if ahead else None),
        nodes=reader.read("The nodes", lambda: node_cards(record, folder, prints), ()),
        drawing=reader.read("The graph", lambda: lay_out(needs), None) if record.nodes else None,
        flows=reader.read("Rows and bytes", lambda: flows(record, told.rows if told else {}), no_flows),
        timeline=reader.read("The timeline", lambda: timeline(record.nodes), None),
        data=told,
        model=reader.read("The model", lambda: model(record, names), None),
        training=reader.read("The training", lambda: training(record), None),
        preflight=ahead,
        lineage=reader.read("The lineage", lambda: lineage(record, prints), None),
        problems=tuple(reader.problems),
    )
