"""The details of each node on the report page: inputs and outputs, why it ran, the end of its log."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs.record import Artifact, Failure, NodeRecord, RunRecord
from slipway.pipeline.screen.wording import MARKS
from slipway.pipeline.terminal.durations import seconds
from slipway.pipeline.terminal.printable import plain_log

_LOG_BYTES = 3_000
_FAILED_LOG_BYTES = 4_000
_SHOWN_PARAMETERS = 60
_SHOWN_ARTIFACTS = 20
_VALUE_LENGTH = 300


@dataclass(frozen=True)
class Output:
    """One artifact.

    Attributes:
        properties: (name, value), without the properties that every artifact has.
    """

    key: str
    type: str
    uri: str
    properties: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class NodeCard:
    """One node.

    Attributes:
        anchor: its HTML anchor; generated, because a node ID may hold any character.
        time: its duration, as text; empty if it did not run.
        upstream: the IDs of the nodes that it depends on.
        outputs: its output artifacts, at most 20.
        parameters: (name, value), at most 60.
        more_parameters: the number of parameters that are not shown.
        log: the last lines of its log.
        log_path: the log file, relative to the run's folder.
        facts: attempts, memory and the like, as text.
    """

    anchor: str
    id: str
    type: str
    state: str
    mark: str
    time: str
    why: str
    upstream: tuple[str, ...]
    outputs: tuple[Output, ...]
    parameters: tuple[tuple[str, str], ...]
    more_parameters: int
    log: str
    log_path: str
    error: Failure | None
    facts: str


def node_cards(record: RunRecord, folder: Path, prints: Mapping[str, Fingerprint]) -> tuple[NodeCard, ...]:
    """Return the details of a run's nodes, in the order of the record.

    Args:
        prints: the run's fingerprints by node ID; they hold the parameters.
    """
    return tuple(_card(index, node, folder, prints.get(node.id)) for index, node in enumerate(record.nodes))


def upstream_of(node: NodeRecord, own: Fingerprint | None) -> tuple[str, ...]:
    """Return the nodes that a node depends on; an old record lacks them, so its fingerprint is used."""
    if node.upstream or own is None:
        return tuple(node.upstream)
    return tuple(part.removeprefix("upstream:") for part in own.parts if part.startswith("upstream:"))


def _card(index: int, node: NodeRecord, folder: Path, own: Fingerprint | None) -> NodeCard:
    named = own.parts.items() if own else ()
    parameters = [(k.removeprefix("param:"), _cut(v)) for k, v in named if k.startswith("param:")]
    limit = _FAILED_LOG_BYTES if node.state == "failed" else _LOG_BYTES
    return NodeCard(
        anchor=f"node-{index}",
        id=node.id,
        type=node.type,
        state=node.state,
        mark=MARKS[node.state],
        time=seconds(node.wall_s) if node.state in ("complete", "failed") else "",
        why=node.why,
        upstream=upstream_of(node, own),
        outputs=tuple(_outputs(node)),
        parameters=tuple(parameters[:_SHOWN_PARAMETERS]),
        more_parameters=max(len(parameters) - _SHOWN_PARAMETERS, 0),
        log=log_tail(folder, node.log, limit_bytes=limit),
        log_path=node.log,
        error=_error(node),
        facts=_facts(node),
    )


def _error(node: NodeRecord) -> Failure | None:
    """Return the cause of a failure with all texts that the page asks for; None if it did not fail."""
    if node.error is None and node.state != "failed":
        return None
    found = Failure(message="", hint="", where="")
    found.update(node.failure)
    return found


def _outputs(node: NodeRecord) -> list[Output]:
    made = [(key, artifact) for key, artifacts in node.outputs.items() for artifact in artifacts]
    return [_output(key, artifact) for key, artifact in made[:_SHOWN_ARTIFACTS]]


def _output(key: str, artifact: Artifact) -> Output:
    told = {k: v for k, v in artifact["properties"].items() if k not in ("tfx_version", "is_external")}
    properties = tuple((name, _cut(str(value))) for name, value in told.items() if value != "")
    return Output(key, artifact["type"], artifact.get("copy_of") or artifact["uri"], properties)


def _facts(node: NodeRecord) -> str:
    facts = []
    if node.attempts > 1:
        facts.append(f"{node.attempts} attempts")
    if node.preemptions:
        facts.append(f"preempted {node.preemptions} times")
    if node.peak_bytes:
        facts.append(f"peak memory {node.peak_bytes / 2**20:,.0f} MiB")
    return ", ".join(facts)


def _cut(text: str) -> str:
    return text if len(text) <= _VALUE_LENGTH else f"{text[:_VALUE_LENGTH]}…"


def log_tail(folder: Path, name: str, *, limit_bytes: int) -> str:
    """Return the last complete lines of a log in the run's folder; empty if there is no such log."""
    path = (folder / name).resolve()
    if not name or not path.is_relative_to(folder.resolve()) or not path.is_file():
        return ""
    with path.open("rb") as stream:
        size = path.stat().st_size
        stream.seek(max(size - limit_bytes, 0))
        text = stream.read(limit_bytes).decode("utf-8", "replace")
    if size > limit_bytes:
        text = text.partition("\n")[2] or text
    return plain_log(text.rstrip("\n"))
