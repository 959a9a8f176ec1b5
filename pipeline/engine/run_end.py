"""How a run ends: closed with what it achieved, or given up with the command that goes on with it."""

import sys
import time
from typing import Any

from slipway.pipeline.engine.notify import notify
from slipway.pipeline.engine.processes.client import RefusedError
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.outcome import complete_outcome, exit_code
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.screen.wording import resume_command
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.terminal.printable import printable

INTERRUPTED = 130  # what shells report after Ctrl-C: 128 + SIGINT


def give_up(history: History, record: RunRecord, error: PipelineError, *, began: float) -> None:
    """Closes a run that an error ended; one that was refused before anything ran is forgotten.

    The error's hint then is the command that goes on.
    """
    if is_refused(error) and not record.resumed:
        history.discard(record)  # there is nothing to resume or to look at
        return
    end(history, record, began, state="failed", code=error.exit_code)
    if not record.in_steps:
        error.hint = way_on(record, error)


def is_refused(error: PipelineError) -> bool:
    """Whether it says that nothing could run, other than by the fault of the pipeline's own code."""
    return isinstance(error, UsageError) and not isinstance(error, RefusedError)


def way_on(record: RunRecord, error: PipelineError) -> str:
    """The command that goes on with a run that an error ended, and what the error says of it."""
    on = resume_command(record)
    return f"{on}   # {error.hint}" if error.hint and on not in error.hint else error.hint or on


def close(history: History, record: RunRecord, *, began: float, interrupted: bool) -> None:
    """Closes a run whose nodes are done: what it achieved, its state and exit code."""
    complete_outcome(record)
    code = INTERRUPTED if interrupted else exit_code(record)
    states = {0: "complete", 1: "failed", 3: "stopped", INTERRUPTED: "interrupted"}
    end(history, record, began, state=states[code], code=code)


def end(history: History, record: RunRecord, began: float, *, state: Any, code: int) -> None:
    """Writes the record and the page of a run that is over, and tells who wants to know.

    Raises:
        PipelineError: the record cannot be written.
    """
    record.state, record.exit_code = state, code
    record.wall_s = round(time.monotonic() - began, 3)
    try:
        history.save(record)
        history.forget_alive(record.run_id)
        history.append_event(record.run_id, {"run": record.run_id, "state": state, "exit_code": code})
    except OSError as error:
        folder = history.folder(record.run_id)
        raise PipelineError(
            f"{folder} cannot be written: {error.strerror}. What is finished is kept.",
            hint=f"make room, then {command('resume', record.run_id, output=history.output)}",
        ) from error
    _write_page(history, record)
    _notify(record)
    warn_of_damage(history)


def warn_of_damage(history: History) -> None:
    """Tells of the runs that were looked for and whose records cannot be read."""
    for error in history.damaged.values():
        print(printable(f"warning: {error.message}; it counts as no run."), file=sys.stderr)


def _notify(record: RunRecord) -> None:
    try:
        for problem in notify(record):
            print(printable(f"warning: {problem}."), file=sys.stderr)
    except Exception as error:
        print(printable(f"warning: nobody was told: {type(error).__name__}: {error}"), file=sys.stderr)


def _write_page(history: History, record: RunRecord) -> None:
    """The run's page. Whatever goes wrong with it, the run has ended as it has."""
    try:
        from slipway.pipeline.report.page import write_page

        write_page(record, history.output)
    except Exception as error:
        again = command("report", record.run_id, output=history.output)
        message = f"warning: no report was written: {type(error).__name__}: {error}; again: {again}"
        print(printable(" ".join(message.split())), file=sys.stderr)
