"""The interface to a service that runs pipelines, and the data that it returns. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from slipway.pipeline.cloud.pipeline_job import PipelineJob
from slipway.pipeline.config.cloud_services import ScheduleConfig
from slipway.pipeline.runs.record import NodeState, Outputs

JobPhase = Literal["waiting", "running", "complete", "failed", "cancelled"]


@dataclass(frozen=True)
class Submitted:
    """A run that the service has accepted.

    Attributes:
        name: by which the service knows it.
        link: where a person looks at it.
    """

    name: str
    link: str


@dataclass(frozen=True)
class TaskState:
    """One task of a run, as reported by the service.

    Attributes:
        error: what the service says of a failure.
        wall_s: seconds that it took, or takes so far; 0 if unknown.
        outputs: output key -> artifacts, each `{uri, type, properties}`; empty if unknown.
    """

    name: str
    state: NodeState
    error: str = ""
    wall_s: float = 0.0
    outputs: Outputs = field(default_factory=dict)


@dataclass(frozen=True)
class JobState:
    """A run, as reported by the service.

    Attributes:
        phase: of the run as a whole.
        error: what the service says of a failure.
        tasks: those that it knows of already.
    """

    phase: JobPhase
    error: str = ""
    tasks: tuple[TaskState, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        return self.phase in ("complete", "failed", "cancelled")


@dataclass(frozen=True)
class Schedule:
    """A schedule, as the service keeps it.

    Attributes:
        id: by which the service knows it.
        name: by which a person does.
        state: `active`, `paused` or `completed`.
        cron: as the service has it, with its time zone.
        next_run: when it runs next; None: never, or unknown.
        link: where a person looks at it.
    """

    id: str
    name: str
    state: str
    cron: str
    next_run: datetime | None
    link: str


class Service(Protocol):
    """Vertex AI Pipelines, or an installation of Kubeflow Pipelines.

    Every method may raise PipelineError: the service refused, or could not be reached; the message says what
    is missing.
    """

    title: str

    def check(self, *, root: str, images: Mapping[str, str]) -> Iterable[str]:
        """Fails if something that a run needs is missing; returns warnings in words.

        Args:
            images: the container images, each with the target that it is built by.
        """

    def request(self, job: PipelineJob, *, when: ScheduleConfig | None = None) -> PipelineJob:
        """A compiled job as this service takes it; with `when`, its runs take the span of their day."""

    def submit(self, job: PipelineJob, *, run_id: str) -> Submitted:
        """Starts a run; an answer that is lost on the way does not start a second one."""

    def find(self, run_id: str) -> tuple[Submitted, JobState] | None:
        """The run that was submitted with that id, and its state; None if there is none."""

    def state(self, name: str) -> JobState:
        """The state of a run."""

    def job(self, name: str) -> PipelineJob:
        """The job of a run: at least its `pipelineSpec`."""

    def link(self, name: str) -> str:
        """The page of a run, for people."""

    def cancel(self, name: str) -> None:
        """Cancels a run; its tasks are told to end."""

    def create_schedule(self, job: PipelineJob, *, name: str, when: ScheduleConfig) -> Schedule:
        """Creates a schedule for a job."""

    def schedules(self) -> Sequence[Schedule]:
        """All schedules, the latest first."""

    def scheduled_runs(self, schedule: Schedule, *, workload: str) -> Iterable[tuple[Submitted, JobState]]:
        """The runs that a schedule has started and that are done or at work; none where that is unknown."""

    def pause(self, schedule: Schedule) -> None:
        """Keeps a schedule from starting runs."""

    def resume(self, schedule: Schedule, *, catch_up: bool) -> None:
        """Lets a schedule start runs again; with `catch_up` also those that it missed."""

    def delete(self, schedule: Schedule) -> None:
        """Removes a schedule; its runs stay."""

    def scheduled_job(self, schedule: Schedule, *, at: datetime) -> PipelineJob:
        """The job that a schedule starts, for a run at the given moment."""
