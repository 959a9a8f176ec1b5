"""Runs jobs on Vertex AI Pipelines, through Google's generated clients of its API, imported when first used.

google-cloud-aiplatform's own `PipelineJob` is not used: it creates a missing bucket and swallows the errors
of doing so, takes three times as long to import, and does not pass `catch_up` on when it resumes a
schedule.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from slipway.components import google_retries
from slipway.components.google_credentials import find_credentials
from slipway.components.google_retries import may_pass, patience
from slipway.components.store_address import bucket_and_path
from slipway.pipeline.cloud.pipeline_job import PipelineJob
from slipway.pipeline.cloud.scheduled_span import fix_time, follow_schedule
from slipway.pipeline.cloud.services.google import check_bucket, check_images, translated_google_errors
from slipway.pipeline.cloud.services.service import (
    PROFILE_LABEL,
    JobPhase,
    JobState,
    Schedule,
    Submitted,
    TaskState,
)
from slipway.pipeline.cloud.services.service_refusal import may_be_sent
from slipway.pipeline.cloud.services.vertex_request import (
    job_id,
    run_link,
    schedule_link,
    schedule_request,
    vertex_place,
    vertex_request,
)
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.config.cloud_services import ScheduleConfig
from slipway.pipeline.errors import PipelineError, UnansweredError
from slipway.pipeline.runs.record import Artifact, NodeState

_PHASES: dict[str, JobPhase] = {
    "PIPELINE_STATE_QUEUED": "waiting",
    "PIPELINE_STATE_PENDING": "waiting",
    "PIPELINE_STATE_SUCCEEDED": "complete",
    "PIPELINE_STATE_FAILED": "failed",
    "PIPELINE_STATE_CANCELLED": "cancelled",
}
_TASK_STATES: dict[str, NodeState] = {
    "PENDING": "waiting",
    "RUNNING": "running",
    "CANCEL_PENDING": "running",
    "CANCELLING": "running",
    "SUCCEEDED": "complete",
    "SKIPPED": "cached",  # an equal task ran before
    "NOT_TRIGGERED": "skipped",  # its condition was not met
    "FAILED": "failed",
    "CANCELLED": "failed",
}


class Vertex:
    """Vertex AI Pipelines in one project and region.

    Raises:
        ConfigError: the project or the region is not set.
        ComponentError: there are no credentials that work.
    """

    title = "Vertex AI Pipelines"

    def __init__(self, config: WorkloadConfig) -> None:
        self._cloud = config.cloud
        self._project, self._region = vertex_place(config)
        self._address = config.cloud.vertex.endpoint or f"https://{self._region}-aiplatform.googleapis.com"
        self._parent = f"projects/{self._project}/locations/{self._region}"
        self._credentials = find_credentials("Google Cloud")

    def check(self, *, places: Mapping[str, str], images: Mapping[str, str]) -> Iterator[str]:
        """Look for the buckets and the images; see `Service`."""
        key_of: dict[str, str] = {}
        for key, place in places.items():
            key_of.setdefault(bucket_and_path(place)[0], key)
        for bucket, key in key_of.items():
            yield from check_bucket(
                bucket, key=key, credentials=self._credentials, project=self._project, region=self._region
            )
        yield from check_images(images, credentials=self._credentials)

    def request(
        self,
        job: PipelineJob,
        *,
        when: ScheduleConfig | None = None,
        config: WorkloadConfig | None = None,
    ) -> PipelineJob:
        """Return a compiled job with service account, network, key and failure policy; see `Service`."""
        return vertex_request(
            follow_schedule(job, when) if when else job, config.cloud if config else self._cloud
        )

    def submit(self, job: PipelineJob, *, run_id: str) -> Submitted:
        """Start a run; see `Service`."""
        from google.api_core.exceptions import Conflict
        from google.cloud.aiplatform_v1.types import PipelineJob as Message

        name = job_id(run_id)
        asked = Message.from_json(json.dumps(job))
        failed: list[Exception] = []
        with _unanswered_after(failed), self._in_words("starting the run"):
            try:
                self._pipelines.create_pipeline_job(
                    parent=self._parent,
                    pipeline_job=asked,
                    pipeline_job_id=name,
                    **_patient_to_start(failed),
                )
            except Conflict:
                # No other run has this id: the answer to a first request was lost, or another process
                # started the run for the same span.
                self._pipelines.get_pipeline_job(name=self._run_name(name), **patience())
        return Submitted(name, self.link(name))

    def place_of(self, run_id: str) -> str:
        """Return the address of the page that a run has once it has begun; see `Service`."""
        return self.link(job_id(run_id))

    def find(self, run_id: str) -> tuple[Submitted, JobState] | None:
        """Return the run with that id, and its state; see `Service`."""
        from google.api_core.exceptions import NotFound

        name = job_id(run_id)
        with self._in_words(f"looking for the run {name}"):
            try:
                found = self._pipelines.get_pipeline_job(name=self._run_name(name), **patience())
            except NotFound:
                return None
        return Submitted(name, self.link(name)), _state(found)

    def link(self, name: str) -> str:
        """Return the address of a run's page; see `Service`."""
        return run_link(self._region, self._project, name)

    def job(self, name: str) -> PipelineJob:
        """Return the job of a run; see `Service`."""
        from google.cloud.aiplatform_v1.types import PipelineJob as Message

        with self._in_words(f"looking for the run {name}"):
            found = self._pipelines.get_pipeline_job(name=self._run_name(name), **patience())
        job: PipelineJob = json.loads(Message.to_json(found))
        if not (job.get("pipelineSpec") or {}).get("root"):
            raise PipelineError(
                f"{self.title} does not tell the tasks of the run {name}, which was made from a template",
                hint=f"its page shows them: {self.link(name)}",
            )
        return job

    def cancel(self, name: str) -> None:
        """Cancel a run; see `Service`."""
        with self._in_words(f"cancelling the run {name}"):
            self._pipelines.cancel_pipeline_job(name=self._run_name(name), **patience())

    def state(self, name: str) -> JobState:
        """Return the state of a run; see `Service`."""
        with self._in_words(f"looking at the run {name}"):
            found = self._pipelines.get_pipeline_job(name=self._run_name(name), **patience())
        return _state(found)

    def create_schedule(self, job: PipelineJob, *, name: str, when: ScheduleConfig) -> Schedule:
        """Create a schedule for a job; see `Service`."""
        from google.cloud.aiplatform_v1.types import Schedule as Asked

        asked = Asked.from_json(json.dumps(schedule_request(job, name, when, parent=self._parent)))
        with self._in_words("making the schedule"):
            # No retries: the service chooses a schedule's id, so a duplicate would go unnoticed.
            made = self._schedules.create_schedule(
                parent=self._parent, schedule=asked, timeout=google_retries.TIMEOUT_S
            )
        return self._schedule(made)

    def schedules(self) -> Sequence[Schedule]:
        """Return all schedules of the project in the region; see `Service`."""
        with self._in_words("listing the schedules"):
            request = {"parent": self._parent, "order_by": "create_time desc"}
            return [self._schedule(each) for each in self._schedules.list_schedules(request, **patience())]

    def scheduled_runs(self, schedule: Schedule, *, workload: str) -> Iterator[tuple[Submitted, JobState]]:
        """Yield the runs of a schedule that are complete or in progress; see `Service`."""
        with self._in_words(f"looking for the runs of {schedule.name}"):
            asked = {
                "parent": self._parent,
                "filter": f'labels.slipway_workload="{workload}"',
                "read_mask": {"paths": ["name", "schedule_name", "state"]},
            }
            listed = [
                each.name.rpartition("/")[2]
                for each in self._pipelines.list_pipeline_jobs(asked, **patience())
                if each.schedule_name.rpartition("/")[2] == schedule.id
                and _PHASES.get(each.state.name, "running") in ("complete", "running")
            ]
        # The list omits the tasks' outputs, from which a run's span is read.
        yield from filter(None, map(self.find, listed))

    def pause(self, schedule: Schedule) -> None:
        """Pause a schedule; see `Service`."""
        with self._in_words(f"pausing {schedule.name}"):
            self._schedules.pause_schedule(name=self._schedule_name(schedule), **patience())

    def resume(self, schedule: Schedule, *, catch_up: bool) -> None:
        """Resume a schedule; see `Service`."""
        request = {"name": self._schedule_name(schedule), "catch_up": catch_up}
        with self._in_words(f"resuming {schedule.name}"):
            self._schedules.resume_schedule(request, **patience())

    def delete(self, schedule: Schedule) -> None:
        """Remove a schedule and wait until it is gone; see `Service`."""
        with self._in_words(f"deleting {schedule.name}"):
            operation = self._schedules.delete_schedule(
                name=self._schedule_name(schedule), timeout=google_retries.TIMEOUT_S
            )
            operation.result(timeout=google_retries.RETRY_S)

    def scheduled_job(self, schedule: Schedule, *, at: datetime) -> PipelineJob:
        """Return the job that a schedule starts; see `Service`."""
        from google.cloud.aiplatform_v1.types import PipelineJob as Message

        with self._in_words(f"reading {schedule.name}"):
            found = self._schedules.get_schedule(name=self._schedule_name(schedule), **patience())
        kept = found.create_pipeline_job_request.pipeline_job
        job: PipelineJob = json.loads(Message.to_json(kept, always_print_fields_with_no_presence=False))
        return fix_time(job, at)

    @cached_property
    def _pipelines(self) -> Any:
        from google.cloud.aiplatform_v1.services.pipeline_service import PipelineServiceClient

        return PipelineServiceClient(**self._connection)

    @cached_property
    def _schedules(self) -> Any:
        from google.cloud.aiplatform_v1.services.schedule_service import ScheduleServiceClient

        return ScheduleServiceClient(**self._connection)

    @property
    def _connection(self) -> dict[str, object]:
        from google.api_core.client_options import ClientOptions

        return {
            "credentials": self._credentials,
            "transport": "rest",
            "client_options": ClientOptions(api_endpoint=self._address),
        }

    def _in_words(self, doing: str) -> Any:
        return translated_google_errors(doing, project=self._project, address=self._address)

    def _run_name(self, name: str) -> str:
        return f"{self._parent}/pipelineJobs/{name}"

    def _schedule_name(self, schedule: Schedule) -> str:
        return f"{self._parent}/schedules/{schedule.id}"

    def _schedule(self, found: Any) -> Schedule:
        name = found.name.rpartition("/")[2]
        return Schedule(
            id=name,
            name=found.display_name,
            state=found.state.name.lower(),
            cron=found.cron,
            next_run=_utc(found.next_run_time),
            link=schedule_link(self._region, self._project, name),
        )


def _patient_to_start(failed: list[Exception]) -> dict[str, object]:
    """Return those of a request that starts a run: a quota of runs is not free again within the minute.

    Args:
        failed: the errors of tries that may be repeated are added to it.
    """
    from google.api_core.exceptions import TooManyRequests

    def passes(error: Exception) -> bool:
        return may_pass(error) and not isinstance(error, TooManyRequests)

    return patience(passes, failed.append)


@contextmanager
def _unanswered_after(failed: Sequence[Exception]) -> Iterator[None]:
    """Raise an error as an UnansweredError if a try before it may have been carried out.

    The last try tells nothing of those before it: a network may end after a first answer was lost.

    Args:
        failed: the errors of the tries, as they are known when the block ends.
    """
    from google.auth.exceptions import GoogleAuthError

    try:
        yield
    except PipelineError as error:
        if any(may_be_sent(each) and not isinstance(each, GoogleAuthError) for each in failed):
            raise UnansweredError(error.message, hint=error.hint) from error
        raise


def _state(found: Any) -> JobState:
    return JobState(
        phase=_PHASES.get(found.state.name, "running"),
        error=found.error.message,
        tasks=tuple(_task(each) for each in found.job_detail.task_details),
        began=_utc(found.start_time),
        ended=_utc(found.end_time),
        workload=found.labels.get("slipway_workload", ""),
        profile=found.labels.get(PROFILE_LABEL),
    )


def _task(found: Any) -> TaskState:
    state = _TASK_STATES.get(found.state.name, "waiting")
    end = found.end_time or (datetime.now(UTC) if state == "running" else None)
    error = found.error.message
    if not error and state == "failed":
        error = "cancelled" if found.state.name == "CANCELLED" else "no error message was reported"
    return TaskState(
        name=found.task_name,
        state=state,
        error=error if state == "failed" else "",
        wall_s=(end - found.start_time).total_seconds() if end and found.start_time else 0.0,
        outputs={
            key: [_artifact(each) for each in listed.artifacts] for key, listed in found.outputs.items()
        },
        began=_utc(found.start_time),
        ended=_utc(found.end_time),
    )


def _utc(moment: Any) -> datetime | None:
    return datetime.fromtimestamp(moment.timestamp(), UTC) if moment else None


def _artifact(found: Any) -> Artifact:
    properties = dict(found.metadata.items()) if found.metadata else {}
    return {"uri": found.uri, "type": found.schema_title.removeprefix("tfx."), "properties": properties}
