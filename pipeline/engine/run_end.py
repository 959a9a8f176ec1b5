"""Ends a run: closes it with its state and exit code, or gives up with the command that continues it.

`exit_codes.py` names the codes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from slipway.pipeline.engine.journal import Journal, way_to_write
from slipway.pipeline.engine.processes.client import RefusedError
from slipway.pipeline.engine.signal_handlers import Interruptions, raise_interrupt, signals_handled_by
from slipway.pipeline.errors import PipelineError, UsageError, of_the_machine
from slipway.pipeline.exit_codes import DONE, FAILED, GATE_STOPPED, INTERRUPTED
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.outcome import complete_outcome, exit_code
from slipway.pipeline.runs.record import Failure, RunRecord, RunState
from slipway.pipeline.screen.display import RunDisplay
from slipway.pipeline.screen.wording import resume_command
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.terminal.printable import say

Listener = Callable[[RunRecord], None]
"""Called with a finished run. Must not raise: the run has already ended."""

_STATES: Mapping[int, RunState] = {
    DONE: "complete", FAILED: "failed", GATE_STOPPED: "stopped", INTERRUPTED: "interrupted",
}  # fmt: skip


class LateInterrupt(KeyboardInterrupt):
    """Ctrl-C or SIGTERM came when all nodes of a run were over: it is closed, and its outcome stands.

    Attributes:
        exit_code: the run's.
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__()
        self.exit_code = exit_code


@dataclass
class Ending:
    """How a run ended, set inside the block of `closed_at_end`.

    Attributes:
        pruned: whether a node was ended as hopeless. A failure beside it counts more.
        are_nodes_over: whether the nodes are over, so that a signal changes nothing of how the run ended.
        signals: counts those that came after that.
    """

    interrupted: bool = False
    pruned: bool = False
    are_nodes_over: bool = False
    signals: Interruptions = field(default_factory=Interruptions)

    def nodes_are_over(self, *, interrupted: bool = False, pruned: bool = False) -> None:
        """Note how the nodes ended; arguments as the attributes."""
        self.interrupted, self.pruned, self.are_nodes_over = interrupted, pruned, True

    def interrupt(self) -> None:
        """Note a signal that has ended the block."""
        if self.are_nodes_over:
            self.signals.note()
        else:
            self.interrupted = True


@contextmanager
def closed_at_end(
    journal: Journal, display: RunDisplay, listeners: Sequence[Listener] = ()
) -> Iterator[Ending]:
    """Close a run when its block ends, with or without an error. Ctrl-C interrupts the run.

    Args:
        display: shows the outcome; an error is left to the caller.

    Raises:
        PipelineError: the engine failed, or the machine ran out of disk space or memory.
        LateInterrupt: as `close`.
    """
    end = Ending()
    with signals_handled_by(end.signals.note):  # also between the block and `close`
        try:
            with signals_handled_by(raise_interrupt):
                yield end
        except KeyboardInterrupt:
            end.interrupt()
        except PipelineError as error:
            give_up(journal, error, listeners)
            raise
        except (OSError, MemoryError) as error:
            refused = of_the_machine(error)
            give_up(journal, refused, listeners)
            raise refused from error
        except Exception as error:  # a bug of ours: close the run, and let the traceback show it
            journal.record.state, journal.record.exit_code = "failed", FAILED
            journal.record.error = Failure(message=f"{type(error).__name__}: {error}")
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
    record.error = Failure(message=error.message, hint=error.hint)
    _end(journal, listeners)
    if not record.in_steps:
        on = resume_command(record)
        error.hint = f"{on}   # {error.hint}" if error.hint and on not in error.hint else error.hint or on


def close(journal: Journal, end: Ending, display: RunDisplay, listeners: Sequence[Listener] = ()) -> None:
    """Close a run whose nodes are done: record its outcome, state and exit code, and show them.

    The record is written whole, and the outcome is shown, whatever signals come: it names the command that
    continues the run. Each signal cuts short one listener, such as the one that writes the report.

    Raises:
        LateInterrupt: there was a signal meanwhile, or since the nodes were over.
    """
    record = journal.record
    with signals_handled_by(end.signals.note):
        conclude(record, interrupted=end.interrupted, pruned=end.pruned)
        _end(journal, listeners, end.signals)
        display.ends(record)
    if end.signals.count:
        raise LateInterrupt(record.exit_code or DONE)


def conclude(record: RunRecord, *, interrupted: bool = False, pruned: bool = False) -> None:
    """Fill in the outcome of a run whose nodes are done, its state and exit code; see `Ending`."""
    complete_outcome(record)
    record.exit_code = INTERRUPTED if interrupted else exit_code(record)
    record.state = _STATES[record.exit_code]
    if pruned and record.exit_code == DONE:
        record.exit_code, record.state = INTERRUPTED, "pruned"


def _end(journal: Journal, listeners: Sequence[Listener], signals: Interruptions | None = None) -> None:
    """Write the record of a finished run, and call the listeners; each signal cuts short one of these.

    Args:
        signals: counts the signals that came meanwhile; None: nobody asks.

    Raises:
        PipelineError: the record could not be written. The listeners were told of a failed run first: a full
            disk keeps no notification back.
    """
    signals = signals or Interruptions()
    record, history = journal.record, journal.history
    record.wall_s = journal.wall_s
    unwritten = None
    try:
        history.save(record)
        history.forget_alive(record.run_id)
        told = {"run": record.run_id, "state": record.state, "exit_code": record.exit_code}
        history.append_event(record.run_id, told)
    except OSError as error:
        record.state, record.exit_code = "failed", FAILED
        unwritten = PipelineError(
            f"{record.folder} cannot be written: {error.strerror}. What is finished is kept.",
            hint=f"{way_to_write(error)}, then {command('resume', record.run_id, output=history.output)}",
        )
        unwritten.__cause__ = error
    for listener in listeners:
        try:
            with signals_handled_by(raise_interrupt):
                listener(record)
        except KeyboardInterrupt:
            signals.note()
    if unwritten:
        raise unwritten
    warn_of_damage(history)


def warn_of_damage(history: History) -> None:
    """Print a warning for each run whose record cannot be read."""
    for error in history.damaged.values():
        say(f"warning: {error.message}; it does not count as a run.")
