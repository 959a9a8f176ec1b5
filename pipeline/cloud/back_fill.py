"""`cloud_runner.py schedule back-fill`: runs a workload once for each span of a range.

A run's id is derived from the schedule and the span, and the service is asked for a run with that id before
a new one is started. So after any interruption, the same command continues the back-fill.
"""

import contextlib
import itertools
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from slipway.components.ingest.spans import at_span, span_kind, span_number
from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.compile_and_rehearse import compiled_job
from slipway.pipeline.cloud.follow import new_record, update
from slipway.pipeline.cloud.services.service import PROFILE_LABEL, JobPhase, JobState, Service, Submitted
from slipway.pipeline.cloud.submit import check, service_of, target_of, tell_end
from slipway.pipeline.cloud.tracked_run import keep_settings
from slipway.pipeline.cloud.workload_in_image import Target
from slipway.pipeline.config import WorkloadConfig, read_assignments
from slipway.pipeline.engine.signal_handlers import raise_interrupt, signals_handled_by
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.exit_codes import INTERRUPTED
from slipway.pipeline.runs.record import WHY, RunRecord
from slipway.pipeline.terminal.printable import say
from slipway.pipeline.wiring.ingest_options import source_patterns

_LOOK_S = 10.0
_LONGEST = 1000
_DAY = "{YYYY}-{MM}-{DD}"
_UNDONE: tuple[JobPhase, ...] = ("failed", "cancelled")
# Leaves room for the span and the attempt within the 128 characters that Vertex AI allows for an id.
_NAME = re.compile(r"[a-z][a-z0-9._-]{0,79}")


def back_fill(chosen: CloudChoice, *, first: str, last: str) -> int:
    """Run the workload for each span of a range, `max_concurrent_runs` at a time; return the exit code.

    A span whose run has completed or is in progress is not run again; a run in progress is followed. A span
    whose run failed, was stopped by a gate or was cancelled is tried again. After a run ends with an exit
    code other than 0, no more are started; the first such code is returned.

    Args:
        chosen: the workload; the name of its schedule is part of the runs' ids.
        first: the first span, a number or a day.
        last: the last span, included.

    Raises:
        UsageError: the range is not valid, the source has no such spans, or the name cannot be part of an
            id.
        PipelineError: the service refused, or stopped answering; the same command continues.
    """
    target = target_of(chosen)
    spans = span_range(first, last, kind=span_kind(source_patterns(target.config.data).values()))
    name = chosen.schedule or target.config.name
    name = f"{name}-{chosen.profile}" if chosen.profile else name
    span_run_id(name, spans[0], attempt=1)  # rejects a bad name before the service is called
    service = service_of(target.config)
    check(service, target, is_followed=True)
    return _Backfill(chosen, service, target, name, spans).run()


def span_range(first: str, last: str, *, kind: str | None) -> list[int | str]:
    """Return the spans from `first` to `last`, both included.

    Args:
        first: a number or a day.
        last: likewise.
        kind: how the source names its spans; see `span_kind`.

    Raises:
        UsageError: the source has no such spans, one is before the first that TFX counts, they are in the
            wrong order, or there are more than 1000.
    """
    if kind is None:
        raise UsageError(
            "data.source has no spans to back-fill", hint="it needs {SPAN}, or {YYYY}, {MM} and {DD}"
        )
    try:
        start, end = (span_number(int(span) if kind == "number" else span) for span in (first, last))
    except ValueError:
        wanted = "numbers from 0 on" if kind == "number" else "days from 1970-01-01 on, as 2027-01-31"
        raise UsageError(f"--from {first} --to {last}: data.source wants {wanted}") from None
    if start > end:
        raise UsageError(f"--from {first} is after --to {last}")
    if end - start >= _LONGEST:
        raise UsageError(f"--from {first} --to {last}: at most {_LONGEST} spans, not {end - start + 1}")
    numbers = range(start, end + 1)
    return list(numbers) if kind == "number" else [at_span(_DAY, number) for number in numbers]


def span_run_id(name: str, span: int | str, *, attempt: int) -> str:
    """Return the id of a span's run, e.g. `taxi-prod-back-fill-20270131`; a second attempt ends in `-try-2`.

    Args:
        name: the schedule's name, with the profile's.
        span: a number, or a day as 2027-01-31.
        attempt: the number of the attempt, from 1.

    Raises:
        UsageError: the name cannot be part of an id.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"the runs of a back-fill cannot be named {name!r}: their ids take lower-case letters, "
            "digits, '-', '_' and '.', a letter first, at most 80 characters",
            hint="the ids are made of --name NAME and the name of --profile",
        )
    run_id = f"{name}-back-fill-{str(span).replace('-', '')}"
    return run_id if attempt == 1 else f"{run_id}-try-{attempt}"


def span_read(state: JobState) -> int | None:
    """Return the number of the span that a run's Ingest read; None if it read none or does not report it."""
    for task in state.tasks:
        made = task.outputs.get("examples", ()) if task.name == "Ingest" else ()
        for artifact in made:
            with contextlib.suppress(ValueError, OverflowError):
                return int(float(str(artifact["properties"].get("span", ""))))
    return None


@dataclass
class _Followed:
    """A run that is followed to its end."""

    submitted: Submitted
    record: RunRecord
    began: float


class _Backfill:
    """Runs a workload for a list of spans, a few at a time."""

    def __init__(
        self, chosen: CloudChoice, service: Service, target: Target, name: str, spans: Sequence[int | str]
    ) -> None:
        self._chosen = chosen
        self._service = service
        self._target = target
        self._name = name
        self._spans = list(spans)
        self._waiting = list(spans)
        self._running: dict[int | str, _Followed] = {}
        self._done: set[int | str] = set()
        self._has_told = False
        self._at_once = target.config.cloud.schedule.max_concurrent_runs

    def run(self) -> int:
        try:
            with signals_handled_by(raise_interrupt):
                code = self._run_all()
        except KeyboardInterrupt:
            self._say_what_goes_on()
            code = INTERRUPTED
        except PipelineError:
            self._say_what_goes_on()
            self._say_how_to_go_on()
            raise
        self._say_how_to_go_on()
        return code

    def _run_all(self) -> int:
        code = 0
        while self._running or (self._waiting and not code):
            while self._waiting and not code and len(self._running) < self._at_once:
                self._take_up(self._waiting[0])
                del self._waiting[0]
            code = self._look() or code
            if self._running:
                time.sleep(_LOOK_S)
        return code

    def _take_up(self, span: int | str) -> None:
        run_id, found = self._latest(span)
        found = found or self._scheduled.get(span_number(span))
        if found is None:
            self._tell_of_later_runs()
            self._start(span, run_id)
            return
        submitted, state = found
        if state.is_over:
            self._done.add(span)
            say(f"{span}: has already run, {submitted.link}")
            return
        self._follow(span, submitted, new_record(self._service.job(submitted.name), run_id=submitted.name))
        say(f"{span}: is already running, {submitted.link}")

    def _latest(self, span: int | str) -> tuple[str, tuple[Submitted, JobState] | None]:
        """Return the id of a span's current attempt, and its run; None if it was not started yet."""
        for attempt in itertools.count(1):
            run_id = span_run_id(self._name, span, attempt=attempt)
            found = self._service.find(run_id)
            if found is not None and (whose := self._of_another(found[1])):
                raise UsageError(
                    f"{run_id} is a run {whose}, {found[0].link}",
                    hint="--name NAME gives the runs of this back-fill other ids",
                )
            if found is None or found[1].phase not in _UNDONE:
                break
        return run_id, found

    def _of_another(self, state: JobState) -> str:
        """Return whose run it is, in words; empty if it may be this back-fill's.

        The names of a schedule and of a profile joined may be another schedule's or workload's name.
        """
        if state.workload not in ("", self._target.config.name):
            return f"of the workload {state.workload}"
        if state.profile not in (None, self._profile):
            return f"with the profile {state.profile}" if state.profile else "without a profile"
        return ""

    @property
    def _profile(self) -> str:
        return self._chosen.profile or ""

    @cached_property
    def _scheduled(self) -> dict[int, tuple[Submitted, JobState]]:
        """The runs that the schedule of that name started itself, by the number of their span.

        Runs of a schedule that was made with another profile do not count: they read other data, or push
        elsewhere.
        """
        config = self._target.config
        name = self._chosen.schedule or config.name
        runs = [
            run
            for schedule in self._service.schedules()
            if schedule.name == name
            for run in self._service.scheduled_runs(schedule, workload=config.name)
            if run[1].profile in (None, self._profile)
        ]
        return {span: run for run in runs if (span := span_read(run[1])) is not None}

    def _tell_of_later_runs(self) -> None:
        """Say once, before the first run is started, whether the schedule has come to later spans."""
        later = max(self._scheduled, default=0)
        if self._has_told or later <= span_number(self._spans[-1]):
            return
        self._has_told = True
        named = at_span(_DAY, later) if isinstance(self._spans[-1], str) else later
        say(
            f"note: the schedule has already run {named}: a model that is blessed here is published over "
            "that of the later span, and is what later models are compared with"
        )

    def _start(self, span: int | str, run_id: str) -> None:
        target = replace(self._target, config=self._config(span))
        job = compiled_job(target)
        job = {**job, "labels": {**job.get("labels", {}), PROFILE_LABEL: self._profile}}
        job = self._service.request(job, config=target.config)
        submitted = self._service.submit(job, run_id=run_id)
        self._follow(span, submitted, new_record(job, run_id=submitted.name))
        say(f"{span}: started, {submitted.link}")
        if problem := keep_settings(target.config, submitted.name, chosen=self._choice(span)):
            say(problem)

    def _config(self, span: int | str) -> WorkloadConfig:
        """Return the settings of a span's run."""
        config = self._target.config
        return config.model_copy(update={"data": config.data.model_copy(update={"span": span})})

    def _choice(self, span: int | str) -> CloudChoice:
        """Return the workload as a command would name it that runs the span alone."""
        return replace(
            self._chosen, sets=(*self._chosen.sets, *read_assignments([f"data.span={json.dumps(span)}"]))
        )

    def _follow(self, span: int | str, submitted: Submitted, record: RunRecord) -> None:
        self._running[span] = _Followed(submitted, record, time.monotonic())

    def _look(self) -> int:
        """Report runs that ended; return the first exit code among them that is not 0."""
        code = 0
        for span, run in list(self._running.items()):
            state = self._service.state(run.submitted.name)
            if not state.is_over:
                continue
            del self._running[span]
            update(run.record, state)
            if state.phase == "complete":
                self._done.add(span)
            ended = tell_end(
                run.record,
                state,
                link=run.submitted.link,
                began=run.began,
                bless=self._choice(span).command("submit", "--bless", WHY),
                chosen=self._choice(span),
                config=self._config(span),
                before=f"{span}: ",
            )
            code = code or ended
        return code

    def _say_what_goes_on(self) -> None:
        for span, run in self._running.items():
            say(f"{span}: stopped following; the run continues: {run.submitted.link}")

    def _say_how_to_go_on(self) -> None:
        """Print the command for the range from the first unfinished span on; it skips finished spans."""
        rest = [span for span in self._spans if span not in self._done]
        if not rest:
            return
        if self._waiting:
            say(f"not started: {self._waiting[0]} to {self._waiting[-1]}")
        words = ("--from", str(rest[0]), "--to", str(rest[-1]))
        say(f"hint: {self._chosen.command('schedule back-fill', *words)}   # continues")
