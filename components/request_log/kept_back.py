"""Keeps rows back from a log until their job is done: of one that fails, the next one logs them."""

import contextlib
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from slipway.components.lock_file import WAIT_S, locked_folder
from slipway.components.request_log.request_log import LogSettings
from slipway.components.request_log.rotating_files import PATTERN, RotatingFiles

_HIDDEN = re.compile(r"\.unlogged\.[0-9a-f]{8}")


@dataclass(frozen=True)
class KeptBack:
    """Rows that are not in the log yet.

    Attributes:
        settings: those of the log, but for the folder, which readers of the log do not look into.
    """

    settings: LogSettings
    _log: LogSettings

    def log(self) -> None:
        """Put the rows into the log, all at once: their files are moved, not copied.

        Raises:
            OSError: they cannot all be moved.
        """
        written = sorted(Path(self.settings.folder).glob(PATTERN))
        if written:
            RotatingFiles(Path(self._log.folder), most_bytes=self._log.most_bytes).adopt(written)


@contextlib.contextmanager
def kept_back(log: LogSettings) -> Iterator[KeptBack]:
    """Provide a hidden folder in the log's own for the rows of a job; it is removed at the end.

    Those of killed processes are removed first. An active process is recognized by the lock on its folder,
    which the kernel releases when the process ends, however it ends.

    Raises:
        OSError: it cannot be created.
    """
    folder = Path(log.folder)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    own = folder / f".unlogged.{secrets.token_hex(4)}"
    with contextlib.ExitStack() as at_end:
        for path in reversed(made):  # at the end the innermost goes first
            at_end.callback(_remove_if_empty, path)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        at_end.callback(shutil.rmtree, own, ignore_errors=True)
        # Without this lock, another process could take the folder for a leftover before it is locked.
        with locked_folder(folder, wait_s=WAIT_S) as is_locked:
            if is_locked:
                _remove_left(folder)
            own.mkdir(mode=0o700)
            at_end.enter_context(locked_folder(own))
        yield KeptBack(replace(log, folder=str(own)), log)


def _remove_left(folder: Path) -> None:
    for path in folder.iterdir():
        if _HIDDEN.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            with (
                contextlib.suppress(OSError),
                locked_folder(path) as is_left,
            ):
                if is_left:
                    shutil.rmtree(path)


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
