"""Ends a run: closes it with its state and exit code, or gives up with the command that continues it.

`exit_codes.py` names the codes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from slipway.pipeline.engine.journal import Journal, way_to_write
from slipway.pipeline.engine.processes.client import RefusedError
from slipway.pipeline.engine.signal_handlers import raise_interrupt, signals_handled_by
from slipway.pipeline.errors import PipelineError, UsageError, of_the_machine
from slipway.pipeline.exit_codes import DONE, FAILED, GATE_STOPPED, INTERRUPTED
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.outcome import complete_outcome, exit_code
from slipway.pipeline.runs.record import RunRecord, RunState
from slipway.pipeline.screen.display import RunDisplay
from slipway.pipeline.screen.wording import resume_command
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.terminal.printable import say

Listener = Callable[[RunRecord], None]
"""Called with a finished run. Must not raise: the run has already ended."""

_STATES: Mapping[int, RunState] = {
    DONE: "complete", FAILED: "failed", GATE_STOPPED: "stopped", INTERRUPTED: "interrupted",
}  # fmt: skip


@dataclass
class Ending:
    """How a run ended, set inside the block of `closed_at_end`.

    Attributes:
        pruned: whether a node was ended as hopeless. A failure beside it counts more.
    """

    interrupted: bool = False
    pruned: bool = False


@contextmanager
def closed_at_end(
    journal: Journal, display: RunDisplay, listeners: Sequence[Listener] = ()
) -> Iterator[Ending]:
    """Close a run when its block ends, with or without an error. Ctrl-C interrupts the run.

    Args:
        display: shows the outcome; an error is left to the caller.

    Raises:
        PipelineError: the engine failed, or the machine ran out of disk space or memory.
    """
    end = Ending()
    try:
        with signals_handled_by(raise_interrupt):
            yield end
    except KeyboardInterrupt:
        end.interrupted = True
    except PipelineError as error:
        give_up(journal, error, listeners)
        raise
    except (OSError, MemoryError) as error:
        refused = of_the_machine(error)
        give_up(journal, refused, listeners)
        raise refused from error
    except Exception:  # a bug of ours: close the run, and let the traceback show it
        journal.record.state, journal.record.exit_code = "failed", FAILED
        _end(journal, listeners)
        raise
    close(journal, end, display, listeners)


def give_up(journal: Journal, error: PipelineError, listeners: Sequence[Listener] = ()) -> None:
    """Close a run that an error ended; remove one that was rejected before anything ran.

    The error's hint becomes the command that continues the run.
    """
    record = journal.record
    is_refused = isinstance(error, UsageError) and not isinstance(error, RefusedError)
    if is_refused and not record.resumed:
        journal.history.discard(record)  # there is nothing to resume or to inspect
        return
    record.state, record.exit_code = "failed", error.exit_code
    _end(journal, listeners)
    if not record.in_steps:
        on = resume_command(record)
        error.hint = f"{on}   # {error.hint}" if error.hint and on not in error.hint else error.hint or on


def close(journal: Journal, end: Ending, display: RunDisplay, listeners: Sequence[Listener] = ()) -> None:
    """Close a run whose nodes are done: record its outcome, state and exit code, and show them.

    Ctrl-C ends what the listeners do, such as writing the report, but the outcome is shown nevertheless: it
    names the command that continues the run.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed meanwhile.
    """
    conclude(journal.record, interrupted=end.interrupted, pruned=end.pruned)
    again: KeyboardInterrupt | None = None
    try:
        _end(journal, listeners)
    except KeyboardInterrupt as error:
        again = error
    with signals_handled_by(lambda *_: None):
        display.ends(journal.record)
    if again is not None:
        raise again


def conclude(record: RunRecord, *, interrupted: bool = False, pruned: bool = False) -> None:
    """Fill in the outcome of a run whose nodes are done, its state and exit code; see `Ending`."""
    complete_outcome(record)
    record.exit_code = INTERRUPTED if interrupted else exit_code(record)
    record.state = _STATES[record.exit_code]
    if pruned and record.exit_code == DONE:
        record.exit_code, record.state = INTERRUPTED, "pruned"


def _end(journal: Journal, listeners: Sequence[Listener]) -> None:
    """Write the record of a finished run, and call the listeners."""
    record, history = journal.record, journal.history
    record.wall_s = journal.wall_s
    try:
        history.save(record)
        history.forget_alive(record.run_id)
        told = {"run": record.run_id, "state": record.state, "exit_code": record.exit_code}
        history.append_event(record.run_id, told)
    except OSError as error:
        raise PipelineError(
            f"{record.folder} cannot be written: {error.strerror}. What is finished is kept.",
            hint=f"{way_to_write(error)}, then {command('resume', record.run_id, output=history.output)}",
        ) from error
    for listener in listeners:
        listener(record)
    warn_of_damage(history)


def warn_of_damage(history: History) -> None:
    """Print a warning for each run whose record cannot be read."""
    for error in history.damaged.values():
        say(f"warning: {error.message}; it does not count as a run.")
