"""Runs jobs and recurring runs on Kubeflow Pipelines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from slipway.components.s3_and_azure_store import VARIABLES, kind_of_store
from slipway.components.store_address import AZ, MINIO, speaks_s3
from slipway.pipeline.cloud.pipeline_job import PipelineJob
from slipway.pipeline.cloud.required_settings import needed_by_service, require
from slipway.pipeline.cloud.services.google import check_images
from slipway.pipeline.cloud.services.kubeflow_client import KubeflowClient
from slipway.pipeline.cloud.services.kubeflow_job import (
    fill_scheduled_time,
    kubeflow_concurrency,
    kubeflow_cron,
    kubeflow_job,
)
from slipway.pipeline.cloud.services.service import JobPhase, JobState, Schedule, Submitted, TaskState
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.config.cloud_services import ScheduleConfig
from slipway.pipeline.errors import PipelineError, UnansweredError, UsageError, raised_as
from slipway.pipeline.runs.record import NodeState

_PHASES: dict[str, JobPhase] = {
    "PENDING": "waiting",
    "SUCCEEDED": "complete",
    "SKIPPED": "complete",
    "FAILED": "failed",
    "CANCELED": "cancelled",
}
_TASK_STATES: dict[str, NodeState] = {
    "RUNNING": "running",
    "CANCELING": "running",
    "SUCCEEDED": "complete",
    "SKIPPED": "cached",
    "FAILED": "failed",
    "CANCELED": "failed",
}
_AT_WORK = ("PENDING", "RUNNING")


class Kubeflow:
    """One installation of Kubeflow Pipelines.

    Raises:
        ConfigError: its address is not set.
    """

    title = "Kubeflow Pipelines"

    def __init__(self, config: WorkloadConfig) -> None:
        self._config = config
        self._settings = config.cloud.kubeflow
        require(needed_by_service(config), who="Kubeflow Pipelines", profiles=config.profiles)
        self._client = KubeflowClient(self._settings)

    def check(self, *, places: Mapping[str, str], images: Mapping[str, str]) -> Iterator[str]:
        """Look for the images; see `Service`.

        The folders are not checked: only the cluster's own accounts can reach them.
        """
        yield f"not checked: whether the cluster can reach {', '.join(dict.fromkeys(places.values()))}"
        yield from self._missing_variables(places.values())
        yield from check_images(images, credentials=None)

    def _missing_variables(self, places: Iterable[str]) -> Iterator[str]:
        """Yield a warning for each place that tasks open themselves without getting variables for it here."""
        given = {
            *self._settings.variables,
            *(name for keys in self._settings.secrets.values() for name in keys),
        }
        opened = [place for place in places if speaks_s3(place) or place.startswith(AZ)]
        for kind, place in {kind_of_store(place): place for place in reversed(opened)}.items():
            if given.isdisjoint(VARIABLES[kind]):
                yield (
                    f"note: the tasks open {place} themselves, and cloud.kubeflow.variables and .secrets "
                    f"give them none of {', '.join(VARIABLES[kind])}: without these they need the role of "
                    "cloud.kubeflow.service_account, or what the cluster gives to every pod"
                )
            elif place.startswith(MINIO) and "AWS_ENDPOINT_URL" not in given:
                yield (
                    f"note: the tasks open {place} themselves, and AWS_ENDPOINT_URL, its store's address, "
                    "is not in cloud.kubeflow.variables"
                )

    def request(
        self,
        job: PipelineJob,
        *,
        when: ScheduleConfig | None = None,
        config: WorkloadConfig | None = None,
    ) -> PipelineJob:
        """Return a compiled job without the parts that Kubeflow cannot run; see `Service`."""
        return kubeflow_job(job, config or self._config, when=when)

    def submit(self, job: PipelineJob, *, run_id: str) -> Submitted:
        """Start a run; see `Service`."""
        body = self._client.models.V2beta1Run(display_name=run_id, **self._body(job))
        made = self._client.made_once(
            "starting the run",
            self._client.runs.run_service_create_run,
            body,
            list_some=self._client.runs.run_service_list_runs,
            key="runs",
            name=run_id,
        )
        return Submitted(made.run_id, self.link(made.run_id))

    def place_of(self, run_id: str) -> str:
        """Return the address of the list of runs, which the service gives ids itself; see `Service`."""
        return f"{self._client.host}/#/runs, under the name {run_id}"

    def find(self, run_id: str) -> tuple[Submitted, JobState] | None:
        """Return the latest run of that name, which is not unique on Kubeflow; see `Service`."""
        found = self._client.latest(
            f"looking for the run {run_id}", self._client.runs.run_service_list_runs, "runs", run_id
        )
        return (Submitted(found.run_id, self.link(found.run_id)), _state(found)) if found else None

    def link(self, name: str) -> str:
        """Return the address of a run's page; see `Service`."""
        return f"{self._client.host}/#/runs/details/{name}"

    def job(self, name: str) -> PipelineJob:
        """Return the job of a run; see `Service`."""
        get = self._client.runs.run_service_get_run
        found = self._client.ask(f"looking for the run {name}", get, name)
        return _told(found, what=f"the run {name}", link=self.link(name))

    def cancel(self, name: str) -> None:
        """Cancel a run; see `Service`.

        The API refuses a run that has ended, or that is being cancelled, as one whose row is not found.
        """
        try:
            self._client.ask(f"cancelling the run {name}", self._client.runs.run_service_terminate_run, name)
        except PipelineError as refused:
            try:
                found = self._run(name)
            except PipelineError:
                raise refused from None
            if found.state == "CANCELING" or _state(found).phase == "cancelled":
                return
            if _state(found).is_over:
                raise PipelineError(
                    f"the run {name} cannot be cancelled: it has ended, {found.state}", hint=self.link(name)
                ) from None
            raise

    def state(self, name: str) -> JobState:
        """Return the state of a run; see `Service`."""
        return _state(self._run(name))

    def create_schedule(self, job: PipelineJob, *, name: str, when: ScheduleConfig) -> Schedule:
        """Create a recurring run; see `Service`."""
        api, recurring = self._client.models, self._client.recurring
        cron = api.V2beta1CronSchedule(
            cron=kubeflow_cron(when), start_time=_utc(when.starts_at), end_time=_utc(when.ends_at)
        )
        body = api.V2beta1RecurringRun(
            display_name=name,
            mode=api.RecurringRunMode.ENABLE,
            max_concurrency=kubeflow_concurrency(when),
            no_catchup=not when.catch_up,
            trigger=api.V2beta1Trigger(cron_schedule=cron),
            **self._body(job),
        )
        made = self._client.made_once(
            "making the schedule",
            recurring.recurring_run_service_create_recurring_run,
            body,
            list_some=recurring.recurring_run_service_list_recurring_runs,
            key="recurring_runs",
            name=name,
        )
        return self._schedule(made)

    def schedules(self) -> Sequence[Schedule]:
        """Return all recurring runs; see `Service`."""
        list_some = self._client.recurring.recurring_run_service_list_recurring_runs
        found = self._client.all_of("listing the schedules", list_some, "recurring_runs")
        return [self._schedule(each) for each in found]

    def scheduled_runs(
        self,
        schedule: Schedule,  # noqa: ARG002
        *,
        workload: str,  # noqa: ARG002
    ) -> Sequence[tuple[Submitted, JobState]]:
        """Return no runs, since runs on Kubeflow do not report their spans; see `Service`."""
        return ()

    def pause(self, schedule: Schedule) -> None:
        """Pause a recurring run; see `Service`."""
        disable = self._client.recurring.recurring_run_service_disable_recurring_run
        self._client.ask(f"pausing {schedule.name}", disable, schedule.id)

    def resume(self, schedule: Schedule, *, catch_up: bool) -> None:
        """Resume a recurring run; see `Service`.

        Raises:
            UsageError: the schedule was created with the opposite of `catch_up`, which cannot be changed.
        """
        if bool(self._get(schedule).no_catchup) is catch_up:  # None where the server omits a false value
            raise UsageError(
                f"{schedule.name} was made with catch_up {str(not catch_up).lower()}, which cannot be "
                "changed",
                hint="schedule delete, then schedule create with the other cloud.schedule.catch_up",
            )
        enable = self._client.recurring.recurring_run_service_enable_recurring_run
        self._client.ask(f"resuming {schedule.name}", enable, schedule.id)

    def delete(self, schedule: Schedule) -> None:
        """Delete a recurring run; see `Service`."""
        delete = self._client.recurring.recurring_run_service_delete_recurring_run
        self._client.ask(f"deleting {schedule.name}", delete, schedule.id)

    def scheduled_job(self, schedule: Schedule, *, at: datetime) -> PipelineJob:
        """Return the job that a recurring run starts; see `Service`."""
        found = self._get(schedule)
        job = _told(found, what=f"the schedule {schedule.name}", link=schedule.link)
        settings = found.runtime_config
        values = fill_scheduled_time(settings.parameters or {}, at)
        job["runtimeConfig"] = {"gcsOutputDirectory": settings.pipeline_root, "parameterValues": values}
        return job

    def _run(self, name: str) -> Any:
        return self._client.ask(f"looking at the run {name}", self._client.runs.run_service_get_run, name)

    def _get(self, schedule: Schedule) -> Any:
        get = self._client.recurring.recurring_run_service_get_recurring_run
        return self._client.ask(f"reading {schedule.name}", get, schedule.id)

    def _body(self, job: PipelineJob) -> dict[str, object]:
        """Return the common part of the requests for a run and for a recurring run."""
        runtime = job["runtimeConfig"]
        return {
            "experiment_id": self._experiment_to_use(),
            "pipeline_spec": _both(job),
            "runtime_config": self._client.models.V2beta1RuntimeConfig(
                pipeline_root=runtime["gcsOutputDirectory"], parameters=runtime["parameterValues"]
            ),
            "service_account": self._settings.service_account,
        }

    def _experiment_to_use(self) -> str:
        with raised_as(PipelineError, UnansweredError):  # of the run itself, nothing was sent yet
            return self._experiment_id

    @cached_property
    def _experiment_id(self) -> str:
        experiments = self._client.experiments
        name = self._settings.experiment
        list_some = experiments.experiment_service_list_experiments
        found = self._client.latest(f"looking for the experiment {name}", list_some, "experiments", name)
        found = found or self._client.made_once(
            f"making the experiment {name}",
            experiments.experiment_service_create_experiment,
            self._client.models.V2beta1Experiment(display_name=name, namespace=self._settings.namespace),
            list_some=list_some,
            key="experiments",
            name=name,
        )
        return str(found.experiment_id)

    def _schedule(self, found: Any) -> Schedule:
        return Schedule(
            id=found.recurring_run_id,
            name=found.display_name,
            state="active" if found.status == "ENABLED" else "paused",
            cron=found.trigger.cron_schedule.cron if found.trigger and found.trigger.cron_schedule else "",
            next_run=None,  # the API does not say
            link=f"{self._client.host}/#/recurringrun/details/{found.recurring_run_id}",
        )


def _both(job: PipelineJob) -> Mapping[str, object]:
    """Return a pipeline as the API takes it: together with its settings for Kubernetes, if it has any."""
    if "platformSpec" not in job:
        return job["pipelineSpec"]
    return {"pipeline_spec": job["pipelineSpec"], "platform_spec": job["platformSpec"]}


def _job(found: Any) -> PipelineJob:
    """Return the job of a run or of a recurring run; the inverse of `_both`.

    Its pipeline is empty if the service leaves it out.
    """
    sent = found.pipeline_spec or {}
    job: PipelineJob = {"pipelineSpec": sent.get("pipeline_spec", sent)}
    if platform := sent.get("platform_spec"):
        job["platformSpec"] = platform
    return job


def _told(found: Any, *, what: str, link: str) -> PipelineJob:
    """Return the job of a run or of a recurring run.

    Args:
        what: names it in words.

    Raises:
        PipelineError: the service leaves its pipeline out.
    """
    job = _job(found)
    if not job["pipelineSpec"].get("root"):
        raise PipelineError(
            f"Kubeflow Pipelines does not tell the tasks of {what}, which was made from an uploaded pipeline",
            hint=f"its page shows them: {link}",
        )
    return job


def _utc(moment: datetime | None) -> datetime | None:
    return moment.astimezone(UTC) if moment else None


def _state(found: Any) -> JobState:
    details = found.run_details.task_details if found.run_details else None
    phase = _PHASES.get(found.state or "PENDING", "running")
    # Argo ends a workflow that is cancelled as one that failed.
    if phase == "failed" and any(each.state == "CANCELING" for each in found.state_history or ()):
        phase = "cancelled"
    # Argo compresses the tasks of a workflow that grows to 1 MB; the backend then keeps those it read before.
    is_over = phase in ("complete", "failed", "cancelled")
    is_outdated = is_over and any(each.state in _AT_WORK for each in details or ())
    return JobState(
        phase=phase,
        error=found.error.message if found.error else "",
        tasks=tuple(_task(each) for each in details or ()),
        began=_utc(found.created_at),
        ended=_utc(found.finished_at),
        workload=_job(found)["pipelineSpec"].get("pipelineInfo", {}).get("name", ""),
        is_outdated=is_outdated,
    )


def _task(found: Any) -> TaskState:
    state = _TASK_STATES.get(found.state or "", "waiting")
    end = found.end_time or (datetime.now(UTC) if state == "running" else None)
    error = found.error.message if found.error and found.error.message else "no error message was reported"
    return TaskState(
        name=found.display_name or "",
        state=state,
        error=error if state == "failed" else "",
        wall_s=max(0.0, (end - found.start_time).total_seconds()) if end and found.start_time else 0.0,
        began=_utc(found.start_time),
        ended=_utc(found.end_time),
    )
