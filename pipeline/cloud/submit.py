"""What `cloud_runner.py submit` does: checks, compiles, submits, and follows the run where asked to."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline.cloud.commands import cloud_target, compiled_job
from pipeline.cloud.following import ending, finish, new_record, update
from pipeline.cloud.job import Job
from pipeline.cloud.service import Service, Submitted
from pipeline.config import WorkloadConfig
from pipeline.errors import PipelineError
from pipeline.local.execution import INTERRUPTED, RunDisplay
from pipeline.local.history import new_run_id
from pipeline.local.printable import printable
from pipeline.local.progress import stderr_display

# Between two looks at a run; a short run is told at once, a long one costs the service little.
_FIRST_LOOK_S, _LONGEST_LOOK_S = 1.0, 15.0
_TICK_S = 0.5


def submit_workload(workload: Path, *, sets: Sequence[str], profile: str | None, wait: bool) -> int:
    """Starts a run of a workload at its service and prints the link to it; returns the exit code.

    Args:
        workload: the workload file, or its name in workloads/.
        sets: `key=value` over the file.
        profile: one of the file's profiles.
        wait: whether to follow the run to its end; the exit code is then the run's.

    Raises:
        UsageError: the workload cannot run in containers, or a setting is missing; the message says which.
        PipelineError: the service refused, could not be reached, or something that a run needs is missing.
    """
    target = cloud_target(workload, sets=sets, profile=profile)
    service = service_of(target.config)
    for note in service.check(root=target.root, image=target.image):
        say(note)
    job = service.request(compiled_job(target))
    submitted = service.submit(job, run_id=run_name(target.config))
    print(submitted.link, flush=True)
    return follow(service, job, submitted, display=stderr_display()) if wait else 0


def service_of(config: WorkloadConfig) -> Service:
    """The service that `cloud.service` names.

    Raises:
        UsageError: a setting that it needs is missing.
        PipelineError: it does not know us.
    """
    if config.cloud.service == "kubeflow":
        from pipeline.cloud.kubeflow import Kubeflow

        return Kubeflow(config)
    from pipeline.cloud.vertex import Vertex

    return Vertex(config)


def run_name(config: WorkloadConfig) -> str:
    """A name for a new run, which no other one has."""
    return f"{config.name}-{new_run_id()}"


def follow(service: Service, job: Job, submitted: Submitted, *, display: RunDisplay) -> int:
    """Shows a run until it ends; returns its exit code, or 130 where the user stopped looking.

    Raises:
        PipelineError: the service no longer answers; the run goes on without us.
    """
    began = time.monotonic()
    record = new_record(job, run_id=submitted.name)
    display.begins(record)
    display.planned(record, {})
    look_s = _FIRST_LOOK_S
    try:
        while not (state := service.state(submitted.name)).is_over:
            for node in update(record, state):
                display.changed(record, node)
            next_look = time.monotonic() + look_s
            while time.monotonic() < next_look:
                display.tick(record, {})
                time.sleep(_TICK_S)
            look_s = min(2 * look_s, _LONGEST_LOOK_S)
        for node in update(record, state):
            display.changed(record, node)
    except KeyboardInterrupt:
        display.close()
        say(f"No longer followed; the run goes on: {submitted.link}")
        return INTERRUPTED
    except PipelineError:
        display.close()
        say(f"The run goes on: {submitted.link}")
        raise
    code = finish(record, state, wall_s=time.monotonic() - began)
    display.close()
    for line in ending(record, state, link=submitted.link):
        say(line)
    return code


def say(line: str) -> None:
    """Tells the user; what services say is made safe for a terminal."""
    print(printable(line), file=sys.stderr, flush=True)
