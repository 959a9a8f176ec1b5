"""The spool of runs that are not yet sent to trackers: one small file per run, in OUTPUT/tracking/.

Followed cloud runs have theirs in OUTPUT/cloud/tracking/.

The files hold no addresses or credentials: addresses are in the run's record, credentials in the environment
of the sending process.
"""

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from slipway.components.lock_file import is_taken_in
from slipway.pipeline.runs.record import write_json
from slipway.pipeline.runs.typed_json import DocumentError, read_document

FOLDER = "tracking"
CLOUD = "cloud"
"""The folder in an output folder with the records of followed cloud runs, and a spool of its own."""


@dataclass(frozen=True)
class Waiting:
    """A run that is not yet sent to all of its trackers.

    Attributes:
        resumed: how often the run had been resumed when it ended.
        why: tracker -> why the last attempt failed, in words; empty if there was no attempt.
        failed: how often sending this run, and not one before it, failed; ignored in comparisons.
        without_page: whether its report page was still to be written. A process that sends it now sends it
            again, with the page, once that is told; and one that dies while it writes the page loses nothing.
    """

    run_id: str
    resumed: int = 0
    why: dict[str, str] = field(default_factory=dict)
    failed: int = field(default=0, compare=False)
    without_page: bool = False

    def text(self) -> str:
        """Return one line: the run, and each tracker with its last error."""
        trackers = ", ".join(f"{name} {said}" if said else name for name, said in self.why.items())
        return f"{self.run_id}: {trackers}"


def put(output: Path, waiting: Waiting) -> None:
    """Write an entry, or remove it if no tracker is left.

    Raises:
        OSError: the folder cannot be written.
    """
    path = _path(output, waiting.run_id)
    if waiting.why:
        path.parent.mkdir(exist_ok=True)
        write_json(path, asdict(waiting))
    else:
        path.unlink(missing_ok=True)


def folders(output: Path) -> tuple[Path, Path]:
    """Return the folders with a spool: the output folder, and the one in it for cloud runs."""
    return output, output / CLOUD


def all_waiting(output: Path) -> list[Waiting]:
    """Return all entries, those of cloud runs last; one that cannot be read is left out."""
    return [entry for folder in folders(output) for entry in waiting_in(folder)]


def waiting_in(folder: Path) -> list[Waiting]:
    """Return the entries of one spool, oldest run first; one that cannot be read is left out."""
    found = (_read(path) for path in sorted((folder / FOLDER).glob("*.json")))
    return [entry for entry in found if entry is not None]


def waits_still(output: Path, entry: Waiting) -> bool:
    """Return True if the spool still has this entry; a run that is resumed and ends again replaces it."""
    return _read(_path(output, entry.run_id)) == entry


@contextlib.contextmanager
def alone(output: Path) -> Iterator[bool]:
    """Try to become the only sending process until the end of the block; yield whether that succeeded.

    Raises:
        OSError: the folder cannot be written.
    """
    (output / FOLDER).mkdir(exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    lock = os.open(output / FOLDER / ".lock", flags, 0o666)
    try:
        is_alone = is_taken_in(0, lock)
        if is_alone:
            with contextlib.suppress(OSError):  # if the disk is full: the text is only for `who_sends`
                os.ftruncate(lock, 0)
                os.write(lock, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield is_alone
    finally:
        os.close(lock)


def who_sends(output: Path) -> str:
    """Return which processes last held the locks of `alone`, by process id and machine."""
    found = dict.fromkeys(filter(None, (_owner(folder) for folder in folders(output))))
    return " or ".join(found) or "which one is not known"


def _owner(folder: Path) -> str:
    try:
        return (folder / FOLDER / ".lock").read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return ""


def _read(path: Path) -> Waiting | None:
    try:
        entry = read_document(Waiting, path)
    except (DocumentError, FileNotFoundError):
        return None
    return entry if entry.run_id == path.stem else None


def _path(output: Path, run_id: str) -> Path:
    return output / FOLDER / f"{run_id}.json"
