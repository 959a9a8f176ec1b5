"""What the commands of `cloud_runner.py schedule` do."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from components.ingest.spans import span_kind
from pipeline.cloud.chosen import Chosen
from pipeline.cloud.commands import compiled_job
from pipeline.cloud.following import ending, finish, new_record, update
from pipeline.cloud.job import Job
from pipeline.cloud.scheduled_span import scheduled_kind
from pipeline.cloud.service import Schedule, Service
from pipeline.cloud.submit import run_name, say, service_of, target_of
from pipeline.cloud.target import Target
from pipeline.errors import UsageError
from pipeline.ingest_options import source_patterns
from pipeline.local.execution import INTERRUPTED
from pipeline.local.signals import answered_by, raise_interrupt

_LOOK_S = 10.0
_LONGEST_BACKFILL = 1000


def create(chosen: Chosen) -> Schedule:
    """Makes a schedule as `cloud.schedule` says.

    Raises:
        UsageError: there is one of that name already, or something is missing; the message says what.
        PipelineError: the service refused.
    """
    target = target_of(chosen)
    scheduled_kind(target.config)  # refuses what cannot advance, before the service is asked
    service = service_of(target.config)
    name = chosen.schedule or target.config.name
    for there in service.schedules():
        if there.name == name and there.state != "completed":
            raise UsageError(
                f"there is a schedule {name!r} already: {there.state}, {there.cron}; {there.link}",
                hint=f"{chosen.command('schedule delete')}   # removes it; or --name for the new one",
            )
    for note in service.check(root=target.root, images=target.images):
        say(note)
    when = target.config.cloud.schedule
    job = service.request(compiled_job(target), when=when)
    return service.create_schedule(job, name=name, when=when)


def listed(chosen: Chosen) -> Iterator[str]:
    """A line for each schedule that the service has; it says so where there is none."""
    service = service_of(chosen.config())
    schedules = service.schedules()
    if not schedules:
        yield f"no schedules at {service.title}"
    width = max((len(schedule.name) for schedule in schedules), default=0)
    for schedule in schedules:
        is_due = schedule.next_run is not None and schedule.state == "active"
        at = f"next {schedule.next_run:%Y-%m-%d %H:%M} UTC" if is_due else ""
        words = (f"{schedule.name:<{width}}", f"{schedule.state:<9}", schedule.cron, at, schedule.link)
        yield "  ".join(word for word in words if word)


def pause(chosen: Chosen) -> Schedule:
    """Keeps a schedule from starting runs; those that run go on."""
    service = service_of(chosen.config())
    schedule = _find(chosen, service)
    service.pause(schedule)
    return schedule


def resume(chosen: Chosen, *, catch_up: bool | None) -> Schedule:
    """Lets a paused schedule start runs again.

    Args:
        chosen: which one.
        catch_up: whether missed runs are made up for; None: as `cloud.schedule.catch_up` says.
    """
    config = chosen.config()
    service = service_of(config)
    schedule = _find(chosen, service)
    wanted = config.cloud.schedule.catch_up if catch_up is None else catch_up
    service.resume(schedule, catch_up=wanted)
    return schedule


def delete(chosen: Chosen) -> Schedule:
    """Removes a schedule; its runs stay."""
    service = service_of(chosen.config())
    schedule = _find(chosen, service)
    service.delete(schedule)
    return schedule


def run_now(chosen: Chosen) -> str:
    """Starts what a schedule starts, at once, and returns the link to the run."""
    config = chosen.config()
    service = service_of(config)
    job = service.scheduled_job(_find(chosen, service), at=datetime.now(UTC))
    return service.submit(job, run_id=run_name(config)).link


def back_fill(chosen: Chosen, *, first: str, last: str) -> int:
    """Runs the workload for each span of a range, `max_concurrent_runs` at once; returns the exit code.

    After a run that fails, or that a gate stops, no more are started. The exit code is the first such run's.

    Args:
        chosen: which workload.
        first: the first span, a number or a day.
        last: the last one.

    Raises:
        UsageError: the range is none, or the source has no such spans.
        PipelineError: the service refused.
    """
    target = target_of(chosen)
    spans = span_range(first, last, kind=span_kind(source_patterns(target.config.data).values()))
    service = service_of(target.config)
    for note in service.check(root=target.root, images=target.images):
        say(note)
    return _Backfill(chosen, service, target, spans).run()


def _find(chosen: Chosen, service: Service) -> Schedule:
    """The schedule that is meant, the latest where there are several.

    Raises:
        UsageError: there is none of that name.
    """
    name = chosen.schedule or chosen.config().name
    there = service.schedules()
    for schedule in there:
        if schedule.name == name:
            return schedule
    names = ", ".join(sorted({schedule.name for schedule in there})) or "none"
    raise UsageError(
        f"there is no schedule {name!r} at {service.title}; there are: {names}",
        hint=f"{chosen.command('schedule create')}   # makes one; --name picks another",
    )


def span_range(first: str, last: str, *, kind: str | None) -> list[int | str]:
    """The spans from the first to the last.

    Args:
        first: a number or a day.
        last: likewise.
        kind: how the source names its spans; see `span_kind`.

    Raises:
        UsageError: they are none of the source's, or in the wrong order, or more than 1000.
    """
    if kind is None:
        raise UsageError(
            "data.source has no spans to go back over", hint="it needs {SPAN}, or {YYYY}, {MM} and {DD}"
        )
    spans: list[int | str]
    try:
        if kind == "number":
            spans = list(range(int(first), int(last) + 1))
        else:
            day, end = date.fromisoformat(first), date.fromisoformat(last)
            spans = [(day + timedelta(days=n)).isoformat() for n in range((end - day).days + 1)]
    except ValueError:
        wanted = "numbers" if kind == "number" else "days as 2027-01-31"
        raise UsageError(f"--from {first} --to {last}: data.source wants {wanted}") from None
    if not 0 < len(spans) <= _LONGEST_BACKFILL:
        raise UsageError(
            f"--from {first} --to {last}: must be 1 to {_LONGEST_BACKFILL} spans, not {len(spans)}"
        )
    return spans


class _Backfill:
    """Runs for spans, a few at a time."""

    def __init__(self, chosen: Chosen, service: Service, target: Target, spans: Sequence[int | str]) -> None:
        self._chosen = chosen
        self._service = service
        self._target = target
        self._waiting = list(spans)
        self._running: dict[int | str, tuple[str, str, float]] = {}
        self._job: Job = {}
        self._at_once = target.config.cloud.schedule.max_concurrent_runs

    def run(self) -> int:
        code = 0
        try:
            with answered_by(raise_interrupt):
                while self._running or (self._waiting and not code):
                    while self._waiting and not code and len(self._running) < self._at_once:
                        self._start(self._waiting[0])
                        del self._waiting[0]  # only now: one that was interrupted is named below
                    code = self._look() or code
                    if self._running:
                        time.sleep(_LOOK_S)
        except KeyboardInterrupt:
            for span, (_, link, _) in self._running.items():
                say(f"{span}: no longer followed; the run goes on: {link}")
            code = INTERRUPTED
        if self._waiting:
            say(f"not started: {self._waiting[0]} to {self._waiting[-1]}")
            rest = ("--from", str(self._waiting[0]), "--to", str(self._waiting[-1]))
            say(f"hint: {self._chosen.command('schedule back-fill', *rest)}   # goes on")
        return code

    def _start(self, span: int | str) -> None:
        config = self._target.config
        data = config.data.model_copy(update={"span": span})
        target = replace(self._target, config=config.model_copy(update={"data": data}))
        job = self._service.request(compiled_job(target))
        name = f"{run_name(config)}-{str(span).replace('-', '')}"
        submitted = self._service.submit(job, run_id=name)
        self._job = job
        self._running[span] = (submitted.name, submitted.link, time.monotonic())
        say(f"{span}: started, {submitted.link}")

    def _look(self) -> int:
        """Tells of runs that ended; the first exit code among them that is not 0."""
        code = 0
        for span, (name, link, began) in list(self._running.items()):
            state = self._service.state(name)
            if not state.is_over:
                continue
            del self._running[span]
            record = new_record(self._job, run_id=name)
            update(record, state)
            code = code or finish(record, state, wall_s=time.monotonic() - began)
            for line in ending(record, state, link=link):
                say(f"{span}: {line}")
        return code
