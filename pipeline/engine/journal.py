"""Writes a run's files while it runs (record, events, verdicts), and reads the progress of its nodes."""

import errno
import json
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slipway.pipeline.engine.launcher import Start
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord, RunRecord, file_name


@contextmanager
def writing(record: RunRecord) -> Iterator[None]:
    """Convert an OSError of the block that writes a run's record.

    Raises:
        PipelineError: the record cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise PipelineError(
            f"{record.folder} cannot be written: {error.strerror}.", hint=f"first {way_to_write(error)}"
        ) from error


def way_to_write(error: OSError) -> str:
    """Return what lets a run's folder be written again after an error, as text."""
    if error.errno == errno.ENOENT:
        return "put that folder back, which was moved or removed meanwhile"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "make that folder one that you can write to"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "raise the limit of open files (`ulimit -n`)"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room on the disk"
    return "check that disk"


@dataclass(frozen=True)
class Journal:
    """Keeps the files of one run. Methods raise PipelineError if they cannot be written.

    Args:
        began: when the run began, in seconds of `time.monotonic()`.
    """

    record: RunRecord
    history: History
    began: float

    @property
    def wall_s(self) -> float:
        """How long the run has lasted, in seconds; 0 where steps began it by a clock that was fast."""
        return max(0.0, round(time.monotonic() - self.began, 3))

    def note_alive(self) -> None:
        """Record how long the run has lasted, in case it is killed."""
        self.history.note_alive(self.record.run_id, self.wall_s)

    def changed(self, entry: NodeRecord) -> None:
        """Record that a node's state has changed."""
        self.record.wall_s = self.wall_s
        event = {"node": entry.id, "state": entry.state, "attempt": entry.attempts, "why": entry.why}
        with writing(self.record):
            self.history.save(self.record)
            self.history.append_event(self.record.run_id, event)

    def begin(self, entry: NodeRecord, *, state: Path | None) -> Start:
        """Prepare the files of an attempt at a node, and remove those left by the previous attempt.

        Args:
            state: the folder of the state to continue from; None if there is none.
        """
        folder, name = self.record.folder, file_name(entry.id)
        progress, left = folder / "progress" / name, folder / "left" / name
        entry.log = f"logs/{name}.log"
        entry.started_s = self.wall_s
        with writing(self.record):
            progress.parent.mkdir(exist_ok=True)
            progress.unlink(missing_ok=True)
            if left.exists():
                shutil.rmtree(left)
        return Start(
            node=entry.id,
            attempt=entry.attempts,
            log=str(folder / entry.log),
            progress=str(progress),
            left=str(left),
            state=str(state or ""),
        )

    def keep_verdict(self, entry: NodeRecord, verdict: Mapping[str, object]) -> None:
        """Store the verdict of a gate that stopped the run."""
        with writing(self.record):
            self.history.keep_verdict(self.record.run_id, entry.id, verdict)

    def progress(self, running: Iterable[str]) -> dict[str, str]:
        """Return a short progress text for each of the nodes that has reported progress."""
        told = {}
        for node_id in running:
            path = self.record.folder / "progress" / file_name(node_id)
            try:
                line = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue  # no progress reported yet
            share = f"{line['done']:,} of {line['total']:,}" if line.get("total") else ""
            told[node_id] = ", ".join(filter(None, [share, line.get("text", "")]))
        return told
