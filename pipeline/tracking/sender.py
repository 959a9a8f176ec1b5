"""Sends all waiting runs to their trackers: `python -m slipway.pipeline.tracking.sender OUTPUT`.

At its end, a run adds an entry to the spool and starts this module in the background.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from slipway.pipeline.errors import PipelineError
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.terminal.printable import say
from slipway.pipeline.tracking import mlflow, openlineage, opentelemetry, spool
from slipway.pipeline.tracking.enqueue import named
from slipway.pipeline.tracking.spool import Waiting
from slipway.pipeline.tracking.tracker import Send, TrackerError

_SHOWN_LETTERS = 300
_Key = tuple[str, int, bool]
_RESUMED = "is sent when the resumed run has ended"
_SEND: Mapping[str, Send] = {
    "mlflow": mlflow.send,
    "openlineage": openlineage.send,
    "opentelemetry": opentelemetry.send,
}
"""The function that sends a run to each of `enqueue.TRACKERS`."""


def send_all(output: Path) -> list[Waiting] | None:
    """Send each tracker all runs that wait for it, trying each once.

    Returns:
        The entries that still wait; None if another process is sending right now, which will also send ours.

    Raises:
        OSError: the output folder cannot be written.
    """
    # Both are tried, also where another process is at work in the first.
    is_done = [_send_folder(folder) for folder in spool.folders(output)]
    return spool.all_waiting(output) if all(is_done) else None


def _send_folder(output: Path) -> bool:
    """Send all runs of one spool, trying each once; return False if another process is sending them."""
    tried: set[_Key] = set()
    while fresh := {_key(each) for each in spool.waiting_in(output)} - tried:
        with spool.alone(output) as is_alone:
            # The other process checks the spool again after it has released the lock.
            if not is_alone:
                return False
            _send(output, fresh)
        tried |= fresh
    return True


def _key(entry: Waiting) -> _Key:
    return entry.run_id, entry.resumed, entry.without_page  # a resumed run, or its page, is sent again


def _send(output: Path, fresh: set[_Key]) -> None:
    history, away = History(output), dict[tuple[str, str], str]()
    unwritten: OSError | None = None
    for entry in sorted(spool.waiting_in(output), key=_failed):
        if _key(entry) not in fresh:
            continue
        record = history.run(entry.run_id)
        asked = set(away)
        if record is not None and record.state == "running":
            left = dict.fromkeys(entry.why, _RESUMED)
        elif record is not None:
            left = {name: _told(name, record, away) for name in entry.why}
        elif history.folder(entry.run_id).exists():
            left = dict.fromkeys(entry.why, _unread(history, entry.run_id))
        else:
            left = {}
        why = {name: said for name, said in left.items() if said}
        failed = entry.failed + (set(away) != asked)
        try:
            if spool.waits_still(output, entry):
                spool.put(output, replace(entry, why=why, failed=failed))
        except OSError as error:  # a full disk: the other runs are sent all the same
            unwritten = error
    if unwritten is not None:
        raise unwritten


def _failed(entry: Waiting) -> int:
    """Return how far back in the queue a run comes, among those that wait from the oldest on.

    A run that a server hangs on might keep others from being sent, so it comes after them. MLflow is first
    asked for the experiment, so no run is at fault there; and it numbers models as they come: the newest
    run has to come last.
    """
    return 0 if "mlflow" in entry.why else entry.failed


def _unread(history: History, run_id: str) -> str:
    error = history.damaged.get(run_id)
    return f"was not sent the run: {error.message if error else 'the run has no record'}"[:_SHOWN_LETTERS]


def _told(name: str, record: RunRecord, away: dict[tuple[str, str], str]) -> str:
    """Send a run to a tracker; return why that failed, or an empty string.

    Args:
        away: (tracker, address) -> the reason, for servers that cannot be reached; they are not tried again.
    """
    address = named(record).get(name, "")
    if (name, address) in away:
        return away[name, address]
    try:
        if address and name in _SEND:
            _SEND[name](record, address)
    except TrackerError as error:
        if error.is_final:
            say(f"warning: {record.run_id}: {name} {error}")
            return ""
        if error.is_away:
            away[name, address] = str(error)
        return str(error)
    except PipelineError as error:
        return f"was not sent the run: {error.message}"
    except Exception as error:  # such as a missing file, or an unexpected answer: the others are still sent
        return f"was not sent the run: {type(error).__name__}: {error}"[:_SHOWN_LETTERS]
    return ""


if __name__ == "__main__":
    send_all(Path(sys.argv[1]))
