"""The commands of `cloud_runner.py schedule`."""

from collections.abc import Iterator
from datetime import UTC, datetime

from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.compile_and_rehearse import compiled_job
from slipway.pipeline.cloud.scheduled_span import scheduled_kind
from slipway.pipeline.cloud.services.service import PROFILE_LABEL, Schedule, Service
from slipway.pipeline.cloud.submit import begin, check, run_name, service_of, target_of
from slipway.pipeline.errors import UnansweredError, UsageError


def create(chosen: CloudChoice) -> Schedule:
    """Create a schedule according to `cloud.schedule`.

    Raises:
        UsageError: a schedule of that name exists, or something is missing; the message says what.
        UnansweredError: it may have been made.
        PipelineError: the service refused.
    """
    target = target_of(chosen)
    scheduled_kind(target.config)  # rejects a span that cannot advance, before the service is called
    service = service_of(target.config)
    name = chosen.schedule or target.config.name
    for there in service.schedules():
        if there.name == name and there.state != "completed":
            raise UsageError(
                f"there is a schedule {name!r} already: {there.state}, {there.cron}; {there.link}",
                hint=f"{chosen.command('schedule delete')}   # removes it; or --name for the new one",
            )
    check(service, target)
    when = target.config.cloud.schedule
    job = compiled_job(target)
    # A back-fill with another profile then does not take this schedule's runs for its own.
    job = {**job, "labels": {**job.get("labels", {}), PROFILE_LABEL: chosen.profile or ""}}
    job = service.request(job, when=when)
    try:
        return service.create_schedule(job, name=name, when=when)
    except UnansweredError as error:
        raise UnansweredError(
            f"{error.message}; {service.title} may have made the schedule {name} nevertheless",
            hint=f"{chosen.command('schedule list')}   # shows whether it has",
        ) from error


def listed(chosen: CloudChoice) -> Iterator[str]:
    """Yield a line for each of the service's schedules, or a line that says there are none."""
    service = service_of(chosen.config())
    schedules = service.schedules()
    if not schedules:
        yield f"no schedules on {service.title}"
    width = max((len(schedule.name) for schedule in schedules), default=0)
    for schedule in schedules:
        is_due = schedule.next_run is not None and schedule.state == "active"
        at = f"next {schedule.next_run:%Y-%m-%d %H:%M} UTC" if is_due else ""
        words = (f"{schedule.name:<{width}}", f"{schedule.state:<9}", schedule.cron, at, schedule.link)
        yield "  ".join(word for word in words if word)


def pause(chosen: CloudChoice) -> Schedule:
    """Keep a schedule from starting runs; runs in progress continue."""
    service, schedule = _find(chosen)
    service.pause(schedule)
    return schedule


def resume(chosen: CloudChoice, *, catch_up: bool | None) -> Schedule:
    """Let a paused schedule start runs again.

    Args:
        catch_up: whether to make up for missed runs; None means the value of `cloud.schedule.catch_up`.
    """
    service, schedule = _find(chosen)
    wanted = chosen.config().cloud.schedule.catch_up if catch_up is None else catch_up
    service.resume(schedule, catch_up=wanted)
    return schedule


def delete(chosen: CloudChoice) -> Schedule:
    """Remove a schedule; its runs stay."""
    service, schedule = _find(chosen)
    service.delete(schedule)
    return schedule


def run_now(chosen: CloudChoice) -> str:
    """Start a run of a schedule now, and return the link to the run."""
    service, schedule = _find(chosen)
    job = service.scheduled_job(schedule, at=datetime.now(UTC))
    return begin(service, job, name=run_name(chosen.config())).link


def _find(chosen: CloudChoice) -> tuple[Service, Schedule]:
    """Return the service and the schedule; the latest one if several have that name.

    Raises:
        UsageError: no schedule has that name.
    """
    config = chosen.config()
    service = service_of(config)
    name = chosen.schedule or config.name
    there = service.schedules()
    for schedule in there:
        if schedule.name == name:
            return service, schedule
    names = ", ".join(sorted({schedule.name for schedule in there})) or "none"
    raise UsageError(
        f"there is no schedule {name!r} on {service.title}; there are: {names}",
        hint=f"{chosen.command('schedule create')}   # makes one; --name picks another",
    )
