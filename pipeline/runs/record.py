"""The record of a run, `run.json`, and the types in it. JSON files are written completely or not at all."""

import itertools
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Self, TypedDict

from slipway.components.model_gate.prediction_counts import PlainCounts
from slipway.pipeline.runs.preflight_document import PreflightResult
from slipway.pipeline.runs.run_target import NOTHING, RecordedRequest
from slipway.pipeline.runs.typed_json import plain, typed
from slipway.pipeline.terminal.invocation import DEFAULT_OUTPUT

NodeState = Literal["waiting", "running", "complete", "cached", "failed", "skipped"]
RunState = Literal["running", "complete", "failed", "stopped", "interrupted", "killed", "pruned"]

# Options that let a run pass a gate, by their names in records; each takes a reason.
OVERRIDES = {"accept_data": "--accept-data", "bless": "--bless"}
# How the reason begins if a node, or one that it needs, was ended as hopeless.
PRUNED = "pruned"
# A placeholder for the reason in commands to paste, which is itself not accepted as a reason.
WHY = "why it is right"


class Artifact(TypedDict):
    """An output of a node: its URI, its TFX type, and its custom properties.

    `id` is its number in the metadata store, of an artifact that was recorded there. `copy_of` is where it
    lies if `uri` is a folder with copies of its reports only.
    """

    uri: str
    type: str
    properties: dict[str, Any]
    id: NotRequired[int]
    copy_of: NotRequired[str]


Outputs = Mapping[str, Sequence[Artifact]]
"""The outputs of a node: artifacts by output key."""


def artifacts_in(outputs: Outputs, type_name: str = "") -> Iterator[Artifact]:
    """Return the artifacts of a type; all artifacts if no type is named."""
    found = itertools.chain.from_iterable(outputs.values())
    return (each for each in found if type_name in ("", each["type"]))


class Finding(TypedDict, total=False):
    """A data gate's finding, as far as it is shown later."""

    rule: object
    stops: object
    feature: str
    what: str
    edits: list[dict[str, object]]


class VerdictCheck(TypedDict):
    """One check of a model gate; `found` is the result in words if there is no number."""

    metric: str
    required: str
    got: float | None
    passed: bool
    slice: NotRequired[str]
    baseline: NotRequired[float | None]
    found: NotRequired[str]
    unit: NotRequired[str]
    note: NotRequired[str]
    stops: NotRequired[bool]


class Verdict(TypedDict, total=False):
    """The verdict of a gate, as far as it is shown later; other gates may have none of these fields.

    Of each `Annotated`, the first type is what code relies on, and the second what is checked.
    """

    passed: Annotated[bool, object]
    message: Annotated[str, object]
    lines: list[str]
    override: Annotated[str, Literal["", "accept_data", "bless"]]
    findings: Annotated[list[Finding], list[dict[str, object]]]
    reference_folder: Annotated[str, object]
    preflight: Annotated[PreflightResult, object]
    reasons: list[str]
    warnings: list[str]
    notes: list[str]
    checks: list[VerdictCheck]
    metrics: dict[str, float]
    baseline_metrics: Annotated[dict[str, float], dict[str, float | None]]
    slices: Annotated[dict[str, dict[str, float]], dict[str, dict[str, float | None]]]
    intervals: dict[str, dict[str, tuple[float, float]]]
    telling_rows: dict[str, float]
    min_slice_rows: Annotated[int, float]
    reference_models: Annotated[dict[str, dict[str, float]], dict[str, dict[str, float | None]]]
    answers: Annotated[dict[str, PlainCounts], object]


class Export(TypedDict):
    """A smaller form of a model, and its cost in each metric."""

    kind: str
    size_bytes: int
    change: dict[str, float]
    no_number: NotRequired[list[str]]


class Training(TypedDict, total=False):
    """Our Trainer's report of speed, exports and tuned values; of `Annotated`, as in `Verdict`."""

    verdict: str
    speed: Annotated[dict[str, float], dict[str, object]]
    time: Annotated[dict[str, float], dict[str, object]]
    tuned: Annotated[dict[str, float | str], dict[str, object]]
    exports: list[Export]


class Failure(TypedDict):
    """The cause of a failure; of a node's, see `failure.Cause`."""

    message: str
    hint: NotRequired[str]
    where: NotRequired[str]
    start: NotRequired[str]


class Pushed(TypedDict):
    """A pushed version.

    Attributes:
        live: the version that was served instead when the run ended.
        over: the version before it, in words, if that was trained on a later span.
    """

    version: str
    path: str
    live: NotRequired[str]
    over: NotRequired[str]


class Rollback(TypedDict):
    """The version that was published again, what it replaced, by whom, and why; empty for other runs."""

    version: NotRequired[int]
    instead_of: NotRequired[int]
    by: NotRequired[str]
    reason: NotRequired[str]


Files = dict[str, tuple[int, int, str]]
"""Files by path: size in bytes, mtime in ns, and sha256 of the content."""


class Result(TypedDict):
    """The cached result of a node.

    `read` holds the executions of the nodes that were over before it, by their ids; `unmet` says why a
    condition left it out.
    """

    run_id: str
    execution_id: int | None
    outputs: dict[str, list[Artifact]]
    node: NotRequired[str]
    read: NotRequired[dict[str, int | None]]
    files: NotRequired[Files]
    unmet: NotRequired[str]
    made_s: NotRequired[float]


class NodeOutputs(TypedDict):
    """The outputs of a node that did not fail, as its process reports them.

    `execution_id` is None if there is no execution.
    """

    state: Literal["complete", "cached", "skipped"]
    execution_id: int | None
    outputs: dict[str, list[Artifact]]
    why: NotRequired[str]
    files: NotRequired[Files]


@dataclass
class NodeRecord:
    """One node of one run.

    Attributes:
        id: the node's name; `type`: its component's.
        state: see `NodeState`; `skipped` also covers nodes that did not run because of a failure or `--to`.
        wall_s: duration of its last attempt in seconds; 0 if it did not run.
        why: in words, why it ran, where its result came from, or why it was left out.
        started_s: seconds from the start of the run.
        preemptions: the number of these attempts that were interrupted from outside with state kept.
        key: its fingerprint's key.
        execution_id: of the execution in the metadata store that made its outputs.
        outputs: output key -> artifacts, each `{uri, type, properties}`.
        upstream: the nodes that must be done before it.
        error: `{message, hint, where}` of a failure, and `start` if an earlier node has to run again.
        is_stop: whether that failure is a gate that stopped the run; its verdict is kept with the run.
        log: its log file, relative to the run's folder.
    """

    id: str
    type: str = ""
    state: NodeState = "waiting"
    wall_s: float = 0.0
    why: str = ""
    started_s: float | None = None
    attempts: int = 0
    preemptions: int = 0
    peak_bytes: int = 0
    key: str = ""
    execution_id: int | None = None
    outputs: dict[str, list[Artifact]] = field(default_factory=dict)
    upstream: list[str] = field(default_factory=list)
    error: Failure | None = None
    is_stop: bool = False
    log: str = ""

    @property
    def failure(self) -> Failure:
        """The cause of its failure; with empty texts if it did not fail."""
        return self.error or Failure(message="")

    @property
    def is_resolver(self) -> bool:
        """Whether it is a resolver, which only looks up artifacts."""
        return self.type == "Resolver"

    @property
    def is_done(self) -> bool:
        """Whether its outputs exist, made now or earlier."""
        return self.state in ("complete", "cached")

    def outputs_of(self, type_name: str) -> list[Artifact]:
        """Return its outputs of a type."""
        return list(artifacts_in(self.outputs, type_name))

    def makes(self, type_name: str) -> bool:
        """Return True if it made an artifact of that type; what a resolver found was made elsewhere."""
        return not self.is_resolver and bool(self.outputs_of(type_name))


@dataclass
class RunRecord:
    """One run, as `run.json` holds it.

    Attributes:
        run_id: sorts by time.
        state: `complete`; `failed`: a node failed; `stopped`: a gate stopped it; `interrupted`: Ctrl-C;
            `killed`: the engine died without closing the run; `pruned`: a sweep ended its training early.
        exit_code: of the command; None while it runs.
        started_at: UTC, ISO 8601.
        wall_s: seconds from start to end; of a resumed run, of its last attempt.
        nodes: in topological order.
        metrics: of the candidate, overall, by name.
        blessed: the model gate's decision; None if no gate ran.
        blessing_reasons: the reasons for that decision, in words.
        pushed: `{version, path}` of the version pushed by this run, or by the run that its Pusher is cached
            from, and `live` if another version was served when the run ended; None if nothing was pushed.
        training: `{verdict, speed, time, tuned, exports}` of the trained model; empty without our Trainer.
        overrides: reasons to let this run pass a gate despite its findings, by a key of `OVERRIDES`.
        reference: what the reference data, which passed its gate before this run's own data, depended on;
            see `resolver_keys.reference_key`.
        baseline: what the latest blessed model before this run's own depended on; see
            `resolver_keys.baseline_key`.
        error: why it failed, if no node did.
        target: the request, so that `resume` can run it again.
        rollback: `{version, instead_of, by, reason}` if this is a rollback and not a pipeline run, in which
            case there are no nodes; else empty. `pushed` holds what it published.
        in_steps: whether another program, such as Airflow, runs its nodes; see
            `slipway.pipeline.engine.stepwise_run`.
        airflow: Airflow's command that begins such a run, to which overrides are added as JSON; empty if
            Airflow does not run its nodes.
        output: the folder that holds its record in `runs/RUN_ID/`. It is not part of the record, which may
            have been moved or copied.
    """

    run_id: str
    workload: str
    state: RunState = "running"
    exit_code: int | None = None
    started_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    wall_s: float = 0.0
    nodes: list[NodeRecord] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    blessed: bool | None = None
    blessing_reasons: list[str] = field(default_factory=list)
    pushed: Pushed | None = None
    training: Annotated[Training, dict[str, object]] = field(default_factory=lambda: Training())
    overrides: dict[str, str] = field(default_factory=dict)
    reference: str = ""
    baseline: str = ""
    error: Failure | None = None
    target: RecordedRequest = NOTHING
    resumed: int = 0
    rollback: Rollback = field(default_factory=lambda: Rollback())
    in_steps: bool = False
    airflow: str = ""
    output: Path = DEFAULT_OUTPUT

    @property
    def folder(self) -> Path:
        """The run's own folder: `run.json`, `events.jsonl`, `logs/`, `verdicts/`."""
        return self.output / "runs" / self.run_id

    def node(self, node_id: str) -> NodeRecord:
        """Return the record of one node; raise KeyError if the run has none of that id."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)

    def outputs_of(self, type_name: str) -> Iterator[tuple[NodeRecord, Artifact]]:
        """Yield the artifacts of a type that its nodes made or took from the cache, each with its node.

        Outputs of resolvers are left out, because earlier runs made them.
        """
        for node in self.nodes:
            if node.is_done and not node.is_resolver:
                yield from ((node, artifact) for artifact in node.outputs_of(type_name))

    def to_json(self) -> dict[str, object]:
        """Return plain data for `run.json`."""
        document: dict[str, object] = plain(self) | {"target": self.target.to_json()}
        del document["output"]
        return document

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Self:
        """Read `run.json`; ignore keys of later versions.

        Raises:
            DocumentError: the data is not a run's record.
        """
        return typed(cls, data)


def file_name(node_id: str) -> str:
    """Return a node's id as part of a file name: TFX allows slashes in ids."""
    return node_id.replace("%", "%25").replace("/", "%2F")


def verdict_path(folder: Path, node_id: str) -> Path:
    """Return the file of a stopping gate's verdict, in the run's folder."""
    return folder / "verdicts" / f"{file_name(node_id)}.json"


def write_json(path: Path, document: Any) -> None:
    """Write JSON atomically: a reader sees the old file or the new one, even after a crash.

    Raises:
        OSError: the disk is full or the folder cannot be written, with the file's name; the old file stays.
    """
    # Threads of one process may write it, too, and processes in two containers, which may have the same id.
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with partial.open("w", encoding="utf-8") as stream:
            json.dump(document, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            error.filename = error.filename or str(path)  # a full disk refuses a write, which names no file
        raise
