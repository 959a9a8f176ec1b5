"""The target of a run: a workload, a module's pipeline, or a pipeline that was handed over as TFX's IR.

A target has the same form in `run.json` and in messages to the process that compiles it: `plain` writes it,
and `typed_json.typed` reads it back. A workload's settings are kept as JSON text, so that a record can
still be read after keys of the workload file have changed; `settings` validates them, `kept` does not.
"""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from slipway.pipeline.runs.typed_json import plain, typed_text

# The modules that read workload files take a quarter of a second to import.
if TYPE_CHECKING:
    from slipway.pipeline.config import WorkloadConfig

IR_NAME = "pipeline.pb"
"""The file in a run's folder that holds the IR of a pipeline that was handed over."""


@dataclass(frozen=True)
class KeptTransform:
    """The names of the label's classes, and of the transformed label, by output if there are several."""

    classes: tuple[str, ...] | dict[str, tuple[str, ...]] = ()
    label: str | dict[str, str] | list[str] = ""


@dataclass(frozen=True)
class KeptData:
    """The raw column that the label comes from."""

    label: str = ""


@dataclass(frozen=True)
class KeptNotify:
    """Notifications of the run's end; see `NotifyConfig`."""

    when: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    webhook_env: str | None = None


@dataclass(frozen=True)
class KeptTrack:
    """The trackers that the run is reported to; see `TrackConfig`."""

    mlflow: str | None = None
    experiment: str | None = None
    openlineage: str | None = None
    opentelemetry: str | None = None


@dataclass(frozen=True)
class KeptCheckpoint:
    """The folder of the training's checkpoints; None: the engine's."""

    folder: str | None = None


@dataclass(frozen=True)
class KeptTrain:
    """What outlives a training; see `TrainConfig`."""

    checkpoint: KeptCheckpoint = KeptCheckpoint()


@dataclass(frozen=True)
class KeptPush:
    """The public key of the versions that may be used; None: all may."""

    verify_key: str | None = None


@dataclass(frozen=True)
class KeptSettings:
    """The settings that readers of a run's record need, whichever version of Slipway wrote it."""

    schema: str | None = None
    data: KeptData = KeptData()
    transform: KeptTransform = KeptTransform()
    notify: KeptNotify | None = None
    track: KeptTrack = KeptTrack()
    train: KeptTrain = KeptTrain()
    push: KeptPush = KeptPush()


@dataclass(frozen=True, kw_only=True)
class OfWorkload:
    """A target that is a workload.

    Attributes:
        config: its settings, as JSON.
        overrides: for this run only, the reason to pass a gate despite its findings, by a key of
            `OVERRIDES`.
    """

    config: str
    overrides: dict[str, str] = field(default_factory=dict)

    @property
    def import_from(self) -> tuple[str, ...]:
        """The user's folders that its modules are imported from."""
        return ()

    @cached_property
    def settings(self) -> "WorkloadConfig":
        """Its settings, validated."""
        from slipway.pipeline.config import WorkloadConfig

        return WorkloadConfig.model_validate_json(self.config)

    @cached_property
    def kept(self) -> KeptSettings:
        """Its settings, as far as readers of a record need them.

        Raises:
            DocumentError: the settings are not JSON, or of the wrong types.
        """
        return typed_text(KeptSettings, self.config)


@dataclass(frozen=True)
class Source:
    """The folder of a workload's data, and the file patterns in it by input split."""

    directory: str = ""
    patterns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WorkloadRun(OfWorkload):
    """A workload to run on this machine.

    Attributes:
        output: the folder for everything the run writes.
        today: the day, ISO 8601, if a gate judges the age of data; else empty.
    """

    source: Source = Source()
    output: Path = Path()
    today: str = ""


@dataclass(frozen=True, kw_only=True)
class ModuleRun:
    """A TFX pipeline that a module holds or creates.

    Attributes:
        pipeline: `module:function`, or `module:attribute` of a pipeline object.
        output: the folder for everything the run writes.
    """

    pipeline: str
    folder: str = ""
    output: Path = Path()

    @property
    def import_from(self) -> tuple[str, ...]:
        """The user's folders that its modules are imported from."""
        return (self.folder,) if self.folder else ()


@dataclass(frozen=True, kw_only=True)
class IrRun:
    """A TFX pipeline that another program, such as a notebook, handed over; `IR_NAME` holds it.

    Attributes:
        ir: always true; distinguishes it from other targets in a record.
        import_from: the folders that its modules are imported from.
        output: the folder for everything the run writes.
        module_files: the source file of a wheel, by the id of the node that it was built for.
    """

    ir: bool
    import_from: tuple[str, ...] = ()
    output: Path = Path()
    module_files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ImageRun(OfWorkload):
    """A workload as a rehearsal compiles it, with the paths in the image.

    See `slipway.pipeline.cloud.workload_in_image`.

    Attributes:
        source: the folder of its data and the patterns in it, by input split.
        service: the service whose tasks are imitated, see `slipway.pipeline.cloud.rehearsal.services`.
        containers: path of the program that runs each task in a container; empty runs each in a process.
        container_image: id of the image that the tasks run in: its name may soon mean another image.
        container_user: number of the user that the image's commands run as.
    """

    source: tuple[str, dict[str, str]]
    image: str
    root: str
    service: str = "vertex"
    containers: str = ""
    container_image: str = ""
    container_user: int = 0


@dataclass(frozen=True, kw_only=True)
class ImageModuleRun(ModuleRun):
    """A module's pipeline as a rehearsal compiles it.

    Attributes:
        serving: the folder that TFX's Pusher pushes into.
    """

    image: str
    parameters: dict[str, str] = field(default_factory=dict)
    root: str = ""
    serving: str = ""
    beam_args: tuple[str, ...] = ()


# Told apart by their required keys, in this order.
Target = ImageRun | ImageModuleRun | WorkloadRun | ModuleRun | IrRun


@dataclass(frozen=True, kw_only=True)
class Order:
    """The order for the process that imports TFX, for one run.

    Attributes:
        run_id: the run's id in the metadata store.
        parameters: runtime parameters by name, as text.
    """

    target: Target
    run_id: str
    folder: Path = Path()
    parameters: dict[str, str] = field(default_factory=dict)
    beam_args: tuple[str, ...] = ()


@dataclass(frozen=True)
class Origin:
    """The workload file, the `--set` values and the profile that a target was made from."""

    path: str = ""
    sets: tuple[str, ...] = ()
    profile: str | None = None


@dataclass(frozen=True)
class NodeLimits:
    """Retries and time limits of one node; see `NodeConfig`."""

    retries: int = 0
    timeout_s: float | None = None
    backoff_s: float = 1.0


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """The original request of a run, as its record keeps it; empty for a rollback.

    Attributes:
        workload: the pipeline's name.
        target: what is compiled; None if nothing is, or a later version wrote a target that this one cannot
            read.
        output: the folder for everything the run writes, absolute, at the time of the request.
        nodes: retries and limits by node id.
        parameters: runtime parameters of the pipeline by name.
        origin: what the target was made from; None for `--pipeline`.
        overrides: for this run only, the reason to pass a gate despite its findings, by a key of
            `OVERRIDES`.
        start: run this node and those after it, cached or not; None runs all that are not cached.
        end: stop after this node; None runs to the end.
        jobs: the number of nodes at once, >= 1; None derives it from the machine.
        fail_fast: whether a failure ends the other running nodes.
        again: the command that repeats the rehearsal; empty if it is not a rehearsal.
    """

    workload: str = ""
    target: Target | None = None
    output: Path = Path()
    nodes: dict[str, NodeLimits] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    beam_args: tuple[str, ...] = ()
    origin: Origin | None = None
    overrides: dict[str, str] = field(default_factory=dict)
    start: str | None = None
    end: str | None = None
    no_cache: bool = False
    jobs: int | None = None
    fail_fast: bool = False
    again: str = ""

    @property
    def settings(self) -> KeptSettings | None:
        """The workload's settings as far as readers of a record need them; None if it is not a workload."""
        return self.target.kept if isinstance(self.target, OfWorkload) else None

    def with_output(self, output: Path) -> Self:
        """Return the request for another folder, because an output folder may be moved or copied."""
        target = self.target
        if isinstance(target, (WorkloadRun, ModuleRun, IrRun)):
            target = replace(target, output=output)
        return replace(self, target=target, output=output) if self != NOTHING else self

    def to_json(self) -> dict[str, object]:
        """Return plain data for `run.json`; a rehearsal's target is beside the command that repeats it."""
        if self == NOTHING:
            return {}
        if self.again:
            return {**(plain(self.target) or {}), "output": str(self.output), "again": self.again}
        return {
            each.name: plain(getattr(self, each.name))
            for each in fields(RecordedRequest)
            if each.name != "again"
        }

    @staticmethod
    def from_document(document: dict[str, object]) -> dict[str, object]:
        """Return the result of `to_json` with the names of the fields, for `typed_json.typed`."""
        if "again" in document:
            kept = {key: value for key, value in document.items() if key in ("output", "again")}
            return {**kept, "target": _known(document)}
        return {**document, "target": _known(document.get("target"))}


NOTHING = RecordedRequest()
"""The request of a rollback, which compiles nothing."""


def _known(target: Any) -> Any:
    """Return a target's document; None if a later version wrote its kind."""
    is_known = not isinstance(target, dict) or not {"config", "pipeline", "ir"}.isdisjoint(target)
    return target if is_known else None
