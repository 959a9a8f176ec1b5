"""The target of a run: a workload, a module's pipeline, or one that was handed over as TFX's IR.

Each target is written to `run.json` and sent to the process that compiles it in one form, `plain`'s, and read
back by `typed_json.typed`. The workload's settings travel as the text of a JSON document, so that a record
can be read after keys of the workload file have changed; `settings` checks them, `kept` does not.
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
    """The names of the label's classes, and of the transformed label: of several outputs each one's."""

    classes: tuple[str, ...] = ()
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
    """Trackers that are told of the run; see `TrackConfig`."""

    mlflow: str | None = None
    experiment: str | None = None
    openlineage: str | None = None
    opentelemetry: str | None = None


@dataclass(frozen=True)
class KeptSettings:
    """The settings that are read from a run's record, written by any version of Slipway."""

    schema: str | None = None
    data: KeptData = KeptData()
    transform: KeptTransform = KeptTransform()
    notify: KeptNotify | None = None
    track: KeptTrack = KeptTrack()


@dataclass(frozen=True, kw_only=True)
class OfWorkload:
    """A target that is a workload.

    Attributes:
        config: its settings, as JSON.
        overrides: for this run only, the reason to pass a gate despite its findings, by a key of `OVERRIDES`.
    """

    config: str
    overrides: dict[str, str] = field(default_factory=dict)

    @property
    def import_from(self) -> tuple[str, ...]:
        """The user's folders that its modules are imported from."""
        return ()

    @cached_property
    def settings(self) -> "WorkloadConfig":
        """Its settings, checked."""
        from slipway.pipeline.config import WorkloadConfig

        return WorkloadConfig.model_validate_json(self.config)

    @cached_property
    def kept(self) -> KeptSettings:
        """Its settings as far as readers of a record need them.

        Raises:
            DocumentError: they are no JSON, or of the wrong types.
        """
        return typed_text(KeptSettings, self.config)


@dataclass(frozen=True)
class Source:
    """The folder of a workload's data, and the patterns in it by input split."""

    directory: str = ""
    patterns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WorkloadRun(OfWorkload):
    """A workload, run on this machine.

    Attributes:
        output: the folder for everything the run writes.
        today: the day, ISO 8601, where a gate judges the age of data; else empty.
    """

    source: Source = Source()
    output: Path = Path()
    today: str = ""


@dataclass(frozen=True, kw_only=True)
class ModuleRun:
    """A TFX pipeline that a module holds or makes.

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
        ir: true; tells it from other targets on disk.
        import_from: the folders that its modules are imported from.
        output: the folder for everything the run writes.
        module_files: a wheel's source file, by the id of the node that it was made for.
    """

    ir: bool
    import_from: tuple[str, ...] = ()
    output: Path = Path()
    module_files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ImageRun(OfWorkload):
    """A workload as a rehearsal compiles it: with the paths of the image; see
    `slipway.pipeline.cloud.workload_in_image`.

    Attributes:
        source: the folder of its data and the patterns in it, by input split.
        service: the service as which the tasks are run, see `slipway.pipeline.cloud.rehearsal.services`.
        containers: path of the program that runs each task in a container; empty: each is a process.
        container_image: id of the image that was found, by which they run: its name may soon mean another.
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


# Distinguished by the keys that each needs; the first that fits.
Target = ImageRun | ImageModuleRun | WorkloadRun | ModuleRun | IrRun


@dataclass(frozen=True, kw_only=True)
class Order:
    """The order for the process that imports TFX, for one run.

    Attributes:
        run_id: what the run is called in the metadata store.
        parameters: runtime parameters by name, as text.
        beam_args: more options for every Beam component.
    """

    target: Target
    run_id: str
    folder: Path = Path()
    parameters: dict[str, str] = field(default_factory=dict)
    beam_args: tuple[str, ...] = ()


@dataclass(frozen=True)
class Origin:
    """The workload file, the `--set`s and the profile that a target was made from."""

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
class Asked:
    """The original request of a run, as its record keeps it; empty for a rollback.

    Attributes:
        workload: the pipeline's name.
        target: what is compiled; None if nothing is, or a later version wrote what this one cannot read.
        output: the folder for everything the run writes, absolute, when it was asked.
        nodes: retries and limits by node id.
        parameters: runtime parameters of the pipeline by name.
        beam_args: options for every Beam component.
        origin: what the target was made of; None for `--pipeline`.
        overrides: for this run only, the reason to pass a gate despite its findings, by a key of `OVERRIDES`.
        start: run this node and what follows, cached or not; None: all that is not cached.
        end: stop after this node; None: go to the end.
        no_cache: run every node.
        jobs: nodes at once, >= 1; None: from the machine.
        fail_fast: a failure ends the nodes beside it.
        again: the command that rehearses it once more; empty if it is no rehearsal.
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

    def lying_in(self, output: Path) -> Self:
        """The same request for another folder: an output folder may be moved, or copied."""
        target = self.target
        if isinstance(target, (WorkloadRun, ModuleRun, IrRun)):
            target = replace(target, output=output)
        return replace(self, target=target, output=output) if self != NOTHING else self

    def to_json(self) -> dict[str, object]:
        """Plain data for `run.json`; the target of a rehearsal stands beside the command that repeats it."""
        if self == NOTHING:
            return {}
        if self.again:
            return {**(plain(self.target) or {}), "output": str(self.output), "again": self.again}
        return {each.name: plain(getattr(self, each.name)) for each in fields(Asked) if each.name != "again"}

    @staticmethod
    def from_document(document: dict[str, object]) -> dict[str, object]:
        """The result of `to_json` with the names of the fields, for `typed_json.typed`."""
        if "again" in document:
            kept = {key: value for key, value in document.items() if key in ("output", "again")}
            return {**kept, "target": _known(document)}
        return {**document, "target": _known(document.get("target"))}


NOTHING = Asked()
"""The request of a rollback, which compiles nothing."""


def _known(target: Any) -> Any:
    """A target's document; None if a later version wrote its kind."""
    is_known = not isinstance(target, dict) or not {"config", "pipeline", "ir"}.isdisjoint(target)
    return target if is_known else None
