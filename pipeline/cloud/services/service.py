"""The interface to a service that runs pipelines, and the data that it returns. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from slipway.pipeline.cloud.pipeline_job import PipelineJob
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.config.cloud_services import ScheduleConfig
from slipway.pipeline.runs.record import NodeState, Outputs

JobPhase = Literal["waiting", "running", "complete", "failed", "cancelled"]
PROFILE_LABEL = "slipway_profile"
"""The label of the runs that a schedule or a back-fill starts: its profile, empty for none."""


@dataclass(frozen=True)
class Submitted:
    """A run that the service has accepted.

    Attributes:
        name: the service's name of the run.
        link: the address of the run's page.
    """

    name: str
    link: str


@dataclass(frozen=True)
class TaskState:
    """One task of a run, as reported by the service.

    Attributes:
        error: the service's message about a failure.
        wall_s: seconds that the task took, or has taken so far; 0 if unknown.
        began, ended: when, in UTC; None if it has not, or if unknown.
        outputs: output key -> artifacts, each `{uri, type, properties}`; empty if unknown.
    """

    name: str
    state: NodeState
    error: str = ""
    wall_s: float = 0.0
    outputs: Outputs = field(default_factory=dict)
    began: datetime | None = None
    ended: datetime | None = None


@dataclass(frozen=True)
class JobState:
    """A run, as reported by the service.

    Attributes:
        error: the service's message about a failure.
        tasks: the tasks that the service has reported so far.
        began, ended: when, in UTC; None if it has not, or if unknown.
        workload: the workload that it is a run of; empty if unknown.
        profile: that of the schedule or back-fill that started it, empty for none; None if unknown.
        is_outdated: whether the run has ended, but the service tells its tasks as they were before.
    """

    phase: JobPhase
    error: str = ""
    tasks: tuple[TaskState, ...] = ()
    began: datetime | None = None
    ended: datetime | None = None
    workload: str = ""
    profile: str | None = None
    is_outdated: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.phase in ("complete", "failed", "cancelled")

    @property
    def took_s(self) -> float | None:
        """Seconds from begin to end; None while it runs, or if the service does not say."""
        if self.began is None or self.ended is None or self.ended < self.began:
            return None
        return (self.ended - self.began).total_seconds()


@dataclass(frozen=True)
class Schedule:
    """A schedule, as the service stores it.

    Attributes:
        state: `active`, `paused` or `completed`.
        cron: the cron expression in the service's form, with its time zone.
        next_run: the time of the next run; None if there is none, or unknown.
        link: the address of the schedule's page.
    """

    id: str
    name: str
    state: str
    cron: str
    next_run: datetime | None
    link: str


class Service(Protocol):
    """Vertex AI Pipelines, or an installation of Kubeflow Pipelines.

    Every method may raise PipelineError if the service refuses or cannot be reached; the message says what
    is missing.
    """

    title: str

    def check(self, *, places: Mapping[str, str], images: Mapping[str, str]) -> Iterable[str]:
        """Raise an error if something that a run needs is missing; return warnings as text.

        Args:
            places: the folders in a store that a run reads or writes, by the key that names each.
            images: the container images, each with the Dockerfile target that builds it.
        """

    def request(
        self,
        job: PipelineJob,
        *,
        when: ScheduleConfig | None = None,
        config: WorkloadConfig | None = None,
    ) -> PipelineJob:
        """Return a compiled job in this service's form.

        Args:
            when: the schedule by which its runs take the span of their day; None for a single run.
            config: the settings that the job was compiled from, if they are others than those that the
                service was opened with, such as another span.
        """

    def submit(self, job: PipelineJob, *, run_id: str) -> Submitted:
        """Start a run; if the service's answer is lost, no second run is started.

        Raises:
            UnansweredError: it is not known whether the run has begun; `place_of` says where to look.
        """

    def place_of(self, run_id: str) -> str:
        """Return where a run of that id is seen if it has begun: an address, in words."""

    def find(self, run_id: str) -> tuple[Submitted, JobState] | None:
        """Return the run that was submitted with that id, and its state; None if there is none."""

    def state(self, name: str) -> JobState:
        """Return the state of a run."""

    def job(self, name: str) -> PipelineJob:
        """Return the job of a run: at least its `pipelineSpec`."""

    def link(self, name: str) -> str:
        """Return the address of a run's page."""

    def cancel(self, name: str) -> None:
        """Cancel a run; its tasks are signalled to end."""

    def create_schedule(self, job: PipelineJob, *, name: str, when: ScheduleConfig) -> Schedule:
        """Create a schedule for a job."""

    def schedules(self) -> Sequence[Schedule]:
        """Return all schedules, the latest first."""

    def scheduled_runs(self, schedule: Schedule, *, workload: str) -> Iterable[tuple[Submitted, JobState]]:
        """Return the runs of a schedule that are complete or in progress; none if they are unknown."""

    def pause(self, schedule: Schedule) -> None:
        """Keep a schedule from starting runs."""

    def resume(self, schedule: Schedule, *, catch_up: bool) -> None:
        """Let a schedule start runs again; with `catch_up`, also those that it missed."""

    def delete(self, schedule: Schedule) -> None:
        """Remove a schedule; its runs stay."""

    def scheduled_job(self, schedule: Schedule, *, at: datetime) -> PipelineJob:
        """Return the job that a schedule starts, for a run at the given time."""
