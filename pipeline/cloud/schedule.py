"""The commands of `cloud_runner.py schedule`."""

from collections.abc import Iterator
from datetime import UTC, datetime

from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.commands import compiled_job
from slipway.pipeline.cloud.scheduled_span import scheduled_kind
from slipway.pipeline.cloud.services.service import Schedule, Service
from slipway.pipeline.cloud.submit import check, run_name, service_of, target_of
from slipway.pipeline.errors import UsageError


def create(chosen: CloudChoice) -> Schedule:
    """Creates a schedule as `cloud.schedule` says.

    Raises:
        UsageError: there is one of that name already, or something is missing; the message says what.
        PipelineError: the service refused.
    """
    target = target_of(chosen)
    scheduled_kind(target.config)  # rejects what cannot advance, before the service is asked
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
    job = service.request(compiled_job(target), when=when)
    return service.create_schedule(job, name=name, when=when)


def listed(chosen: CloudChoice) -> Iterator[str]:
    """One line for each of the service's schedules, or one that says there are none."""
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
    """Keeps a schedule from starting runs; runs in progress continue."""
    service, schedule = _find(chosen)
    service.pause(schedule)
    return schedule


def resume(chosen: CloudChoice, *, catch_up: bool | None) -> Schedule:
    """Lets a paused schedule start runs again.

    Args:
        catch_up: whether missed runs are made up for; None: as `cloud.schedule.catch_up` says.
    """
    service, schedule = _find(chosen)
    wanted = chosen.config().cloud.schedule.catch_up if catch_up is None else catch_up
    service.resume(schedule, catch_up=wanted)
    return schedule


def delete(chosen: CloudChoice) -> Schedule:
    """Removes a schedule; its runs stay."""
    service, schedule = _find(chosen)
    service.delete(schedule)
    return schedule


def run_now(chosen: CloudChoice) -> str:
    """Starts a run of a schedule now, and returns the link to it."""
    service, schedule = _find(chosen)
    job = service.scheduled_job(schedule, at=datetime.now(UTC))
    return service.submit(job, run_id=run_name(chosen.config())).link


def _find(chosen: CloudChoice) -> tuple[Service, Schedule]:
    """The service and the schedule; the latest if there are several of that name.

    Raises:
        UsageError: there is none of that name.
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
