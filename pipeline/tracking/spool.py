"""Which trackers are still to be told of which runs: a small file a run, in `tracking/` of the output folder.

It holds no address and no credentials: the address is in the run's record, the others in the environment of
who sends.
"""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from slipway.pipeline.runs.record import write_json
from slipway.pipeline.runs.typed_json import DocumentError, read_document

FOLDER = "tracking"


@dataclass(frozen=True)
class Waiting:
    """A run that trackers are still to be told of.

    Attributes:
        run_id: the run.
        resumed: how often the run had been resumed when it ended.
        why: by tracker, in words, why the last attempt failed; empty where there was none.
        failed: how often it was this run that could not be told, not one before it. No part of what it says.
    """

    run_id: str
    resumed: int = 0
    why: dict[str, str] = field(default_factory=dict)
    failed: int = field(default=0, compare=False)

    def text(self) -> str:
        """One line: the run, each tracker and what it said."""
        trackers = ", ".join(f"{name} {said}" if said else name for name, said in self.why.items())
        return f"{self.run_id}: {trackers}"


def put(output: Path, waiting: Waiting) -> None:
    """Writes an entry, or takes it out where no tracker is left.

    Raises:
        OSError: the folder cannot be written.
    """
    path = _path(output, waiting.run_id)
    if waiting.why:
        path.parent.mkdir(exist_ok=True)
        write_json(path, asdict(waiting))
    else:
        path.unlink(missing_ok=True)


def all_waiting(output: Path) -> list[Waiting]:
    """All entries, the oldest run first; one that cannot be read is left out."""
    found = (_read(path) for path in sorted((output / FOLDER).glob("*.json")))
    return [entry for entry in found if entry is not None]


def waits_still(output: Path, entry: Waiting) -> bool:
    """Whether this very entry is in the spool: its run may have been resumed, and have ended again."""
    return _read(_path(output, entry.run_id)) == entry


@contextlib.contextmanager
def alone(output: Path) -> Iterator[bool]:
    """Whether this process is the only one that sends now; it is so until the end of the block.

    Raises:
        OSError: the folder cannot be written.
    """
    (output / FOLDER).mkdir(exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    lock = os.open(output / FOLDER / ".lock", flags, 0o666)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            with contextlib.suppress(OSError):  # no room: it is only said to whoever finds the lock taken
                os.ftruncate(lock, 0)
                os.write(lock, f"process {os.getpid()} on {socket.gethostname()}".encode())
            yield True
    finally:
        os.close(lock)


def who_sends(output: Path) -> str:
    """The process that has been `alone` last, by number and machine."""
    try:
        return (output / FOLDER / ".lock").read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return "which one is not known"


def _read(path: Path) -> Waiting | None:
    try:
        entry = read_document(Waiting, path)
    except (DocumentError, FileNotFoundError):
        return None
    return entry if entry.run_id == path.stem else None


def _path(output: Path, run_id: str) -> Path:
    return output / FOLDER / f"{run_id}.json"
