"""The command `track`: sends trackers the runs that they have missed."""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from slipway.components.counted_words import counted
from slipway.pipeline.engine.journal import way_to_write
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.tracking.spool import FOLDER, Waiting, all_waiting, folders, who_sends


@dataclass(frozen=True)
class Sent:
    """The result of sending.

    Attributes:
        waiting: the runs that are not yet sent to all of their trackers.
        is_sending: whether another process is sending right now.
        who: that process, as `spool.who_sends` names it.
    """

    waiting: Sequence[Waiting]
    is_sending: bool = False
    who: str = ""

    @property
    def is_all(self) -> bool:
        """Whether all runs have been sent, as far as is known."""
        return not self.waiting and not self.is_sending

    def to_json(self) -> dict[str, object]:
        """Return the result as plain data."""
        return {"sending": self.is_sending, "waiting": [_plain(each) for each in self.waiting]}

    def text(self) -> str:
        """Return one line per waiting run, with each tracker's last error."""
        if self.is_sending:
            return f"Another process is sending right now: {self.who}. If it hangs, end it and try again."
        return "\n".join(each.text() for each in self.waiting) or "All runs were sent to their trackers."


def track(output: Path) -> Sent:
    """Send all waiting runs, once.

    Raises:
        UsageError: there is no such folder.
        PipelineError: the output folder cannot be written.
        OSError: the waiting runs may not be listed.
    """
    if not output.is_dir():
        raise UsageError(f"{output} does not exist.", hint="name the folder of the runs with --output")
    for folder in folders(output):
        with contextlib.suppress(FileNotFoundError):  # no run has waited there
            os.listdir(folder / FOLDER)  # noqa: PTH208  (a glob takes one that may not be read for empty)
    # The HTTP client takes a quarter of a second to import, and only this command needs it.
    from slipway.pipeline.tracking.sender import send_all

    try:
        left = send_all(output)
    except OSError as error:
        raise PipelineError(
            f"{output} cannot be written: {error.strerror}.", hint=way_to_write(error)
        ) from error
    if left is None:
        return Sent(all_waiting(output), is_sending=True, who=who_sends(output))
    return Sent(left)


def _plain(entry: Waiting) -> dict[str, object]:
    return {"run_id": entry.run_id, "resumed": entry.resumed, "why": entry.why}


def waiting_line(output: Path) -> str:
    """Return a line that counts the unsent runs and names the command that sends them; empty if none."""
    waiting = all_waiting(output.absolute())
    if not waiting:
        return ""
    return f"{counted(len(waiting), 'run')} not yet sent to a tracker: {command('track', output=output)}"
