"""The commands `submit`, `follow` and `cancel` of cloud_runner.py: start a run, watch it, cancel it."""

import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.compile_and_rehearse import cloud_target, compiled_job
from slipway.pipeline.cloud.experiment import note_in_experiment
from slipway.pipeline.cloud.follow import ending, finish, new_record, update
from slipway.pipeline.cloud.pipeline_job import PipelineJob
from slipway.pipeline.cloud.reports import bring_reports
from slipway.pipeline.cloud.services.service import JobState, Service, Submitted
from slipway.pipeline.cloud.tracked_run import (
    RUN_NAME,
    Followed,
    hand_over,
    keep_settings,
    kept_settings,
    trackers_of,
)
from slipway.pipeline.cloud.workload_in_image import Target
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.engine.signal_handlers import raise_interrupt, signals_handled_by
from slipway.pipeline.errors import PipelineError, UnansweredError, UsageError
from slipway.pipeline.exit_codes import DONE, INTERRUPTED
from slipway.pipeline.runs.record import WHY, RunRecord
from slipway.pipeline.runs.run_id import new_run_id
from slipway.pipeline.screen.display import RunDisplay
from slipway.pipeline.screen.run_display import stderr_display
from slipway.pipeline.terminal.printable import say

# Seconds between two checks of a run; a short run is reported at once, a long one costs the service little.
_FIRST_LOOK_S, _LONGEST_LOOK_S = 1.0, 15.0
_TICK_S = 0.5


def submit_workload(chosen: CloudChoice, *, wait: bool) -> int:
    """Start a run of a workload on its service and print the link to it; return the exit code.

    Args:
        wait: whether to follow the run to its end; the exit code is then the run's.

    Raises:
        UsageError: the workload cannot run in containers, or a setting is missing; the message says which.
        PipelineError: the service refused, could not be reached, or something that a run needs is missing.
    """
    with signals_handled_by(raise_interrupt):
        try:
            target = target_of(chosen)
            service = service_of(target.config)
            check(service, target, is_followed=wait)
            job = service.request(compiled_job(target))
        except KeyboardInterrupt:
            say("Interrupted; no run was started.")
            return INTERRUPTED
        name = run_name(target.config)
        try:
            submitted = begin(service, job, name=name)
        except KeyboardInterrupt:
            say(f"Interrupted while the run {name} was being started: {service.title} may have begun it.")
            return INTERRUPTED
        print(submitted.link, flush=True)
        if problem := keep_settings(target.config, submitted.name, chosen=chosen):
            say(problem)
        if not wait:
            return DONE
        return follow(service, job, submitted, chosen=chosen, display=stderr_display(), config=target.config)


def begin(service: Service, job: PipelineJob, *, name: str) -> Submitted:
    """Start a run.

    Raises:
        UnansweredError: it may have begun; says so, and where to look before another one is started.
        PipelineError: the service refused, or could not be reached.
    """
    try:
        return service.submit(job, run_id=name)
    except UnansweredError as error:
        raise UnansweredError(
            f"{error.message}; {service.title} may have begun the run {name} nevertheless",
            hint=f"before you start it again, look at {service.place_of(name)}",
        ) from error


def follow_run(run: str, chosen: CloudChoice) -> int:
    """Show an earlier run until it ends; return its exit code.

    Args:
        run: the link to it, or the last part of that.
        chosen: its workload, whose settings name the service.

    Raises:
        UsageError: that cannot be a run's name.
        PipelineError: the service has no such run, or does not answer.
    """
    run = run_named(run)
    config = chosen.config()
    service = service_of(config)
    job = service.job(run)
    submitted = Submitted(run, service.link(run))
    return follow(service, job, submitted, chosen=chosen, display=stderr_display(), config=config)


def cancel_run(run: str, chosen: CloudChoice) -> str:
    """Cancel a run; return the link to it.

    Args:
        run: the link to it, or the last part of that.
        chosen: its workload, whose settings name the service.

    Raises:
        UsageError: that cannot be a run's name.
        PipelineError: the service has no such run, or does not answer.
    """
    run = run_named(run)
    service = service_of(chosen.config())
    service.cancel(run)
    return service.link(run)


def run_named(text: str) -> str:
    """Return the name of a run, given as that or as the link to the run.

    Raises:
        UsageError: it is neither.
    """
    name = text.strip().partition("?")[0].rpartition("/")[2]
    if not RUN_NAME.fullmatch(name):
        raise UsageError(
            f"{text!r} cannot be the name of a run",
            hint="give the run's link as `submit` printed it, or the last part of that",
        )
    return name


def target_of(chosen: CloudChoice) -> Target:
    """Return the target of a workload for its service.

    Raises:
        UsageError: see `cloud_target`.
    """
    return cloud_target(chosen, overrides=chosen.overrides, is_sent=True)


def service_of(config: WorkloadConfig) -> Service:
    """Return the service that `cloud.service` names.

    Raises:
        UsageError: a setting that it needs is missing.
        ComponentError: there are no credentials that work.
    """
    # It logs each try; whoever asked says what came of them.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    if config.cloud.service == "kubeflow":
        from slipway.pipeline.cloud.services.kubeflow import Kubeflow

        return Kubeflow(config)
    from slipway.pipeline.cloud.services.vertex import Vertex

    return Vertex(config)


def check(service: Service, target: Target, *, is_followed: bool = False) -> None:
    """Let the service check what a run needs; print its warnings, and notes on trackers and notifications.

    Args:
        is_followed: whether this command follows the run, at whose end trackers are told of it.

    Raises:
        PipelineError: something is missing; the message says what.
    """
    for note in service.check(places=target.places, images=target.images):
        say(note)
    if (named := trackers_of(target.config)) and not is_followed:
        say(f"note: {named}: a cloud run is sent once `follow` has seen its end")
    if target.config.notify is not None and target.config.cloud.exit_handler is None:
        say("note: notify: a cloud run sends no notification; cloud.exit_handler names a task at its end")


def run_name(config: WorkloadConfig) -> str:
    """Return a unique name for a new run."""
    return f"{config.name}-{new_run_id()}"


def follow(
    service: Service,
    job: PipelineJob,
    submitted: Submitted,
    *,
    chosen: CloudChoice,
    display: RunDisplay,
    config: WorkloadConfig | None = None,
) -> int:
    """Show a run until it ends; return its exit code, or 130 if the user stopped watching.

    Args:
        chosen: its workload, for the commands in hints.
        config: the workload's settings, which may name an experiment and trackers; None means that the run
            is logged to none.

    Raises:
        PipelineError: the service no longer answers; the run itself continues.
    """
    began = time.monotonic()
    record = new_record(job, run_id=submitted.name)
    try:
        with signals_handled_by(raise_interrupt):
            display.begins(record)
            display.planned(record, {})
            state = _watch(service, submitted.name, record, display)
    except KeyboardInterrupt:
        display.close()
        _say_it_goes_on(submitted, chosen)
        return INTERRUPTED
    except PipelineError:
        display.close()
        _say_it_goes_on(submitted, chosen)
        raise
    return tell_end(
        record,
        state,
        link=submitted.link,
        began=began,
        bless=chosen.command("submit", "--bless", WHY),
        chosen=chosen,
        config=config,
        leave_table=display.leave_table,
    )


def tell_end(
    record: RunRecord,
    state: JobState,
    *,
    link: str,
    began: float,
    bless: str,
    chosen: CloudChoice,
    config: WorkloadConfig | None,
    leave_table: Callable[[RunRecord], int | None] | None = None,
    before: str = "",
) -> int:
    """Report a run that is over, and tell its experiment and trackers of it; return its exit code.

    Args:
        began: when it was begun, or first seen, by `time.monotonic`; used if the service gives no time.
        bless: the command that runs it again and lets its model pass.
        config: the run's settings; None means that it is logged to no experiment and no tracker.
        leave_table: shows the finished record as a table, and returns the width of the screen.
        before: begins each line.
    """
    wall_s = state.took_s if state.took_s is not None else time.monotonic() - began
    with tempfile.TemporaryDirectory(prefix="slipway-reports-") as folder:
        missing = bring_reports(record, Path(folder))
        code = finish(record, state, wall_s=wall_s)
        width = leave_table(record) if leave_table else None
        for line in ending(record, state, link=link, bless=bless, width=width):
            say(f"{before}{line}")
        seen = Followed(record, state, reports=Path(folder), is_whole=not missing)
        handed = hand_over(seen, config, chosen=chosen) if config else ""
    is_noted = config is not None and config.cloud.vertex.experiment is not None
    kept = kept_settings(record.run_id, chosen=chosen) if is_noted else None
    noted = note_in_experiment(config, record, state.phase, kept=kept) if config else ""
    for line in filter(None, (missing, noted, handed)):
        say(f"{before}{line}")
    return code


def _watch(service: Service, name: str, record: RunRecord, display: RunDisplay) -> JobState:
    """Report each change until the run is over; return its last state."""
    look_s = _FIRST_LOOK_S
    while True:
        state = service.state(name)
        for node in update(record, state):
            display.changed(record, node)
        if state.is_over:
            return state
        next_look = time.monotonic() + look_s
        while time.monotonic() < next_look:
            display.tick(record, {})
            time.sleep(_TICK_S)
        look_s = min(2 * look_s, _LONGEST_LOOK_S)


def _say_it_goes_on(submitted: Submitted, chosen: CloudChoice) -> None:
    say(f"Stopped following; the run continues: {submitted.link}")
    for verb, does in (("follow", "shows it again"), ("cancel", "ends it")):
        say(f"hint: {chosen.command(f'{verb} {submitted.name}')}   # {does}")
