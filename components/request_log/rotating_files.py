"""Lines in a folder of files that begin anew when one is full; the oldest go when the folder is."""

import os
import time
from collections.abc import Callable
from pathlib import Path

PATTERN = "requests-*.jsonl"
"""The names of the files; their order is that in which they were begun."""

_PARTS = 8
_DAY_S = 86_400.0


class RotatingFiles:
    """Writes lines for one process; others may write files of their own beside them.

    A file is only ever appended to, and belongs to one process: after a kill at most its last line is torn.
    Only the owner can read it (0600).

    Args:
        folder: made where it is not there, for the owner only (0700).
        most_bytes: of all files in it; the oldest are removed. A file takes an eighth, and a day at most.
        clock: seconds since 1970.
    """

    def __init__(self, folder: Path, *, most_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._clock = folder, clock
        self._most_bytes, self._file_bytes = most_bytes, max(most_bytes // _PARTS, 1)
        self._descriptor: int | None = None
        self._written, self._began_s = 0, 0.0

    def write(self, lines: bytes) -> None:
        """Writes whole lines; what a full disk has cut off is the end of a file.

        Raises:
            OSError: they cannot be written.
        """
        is_full = self._written + len(lines) > self._file_bytes or self._clock() - self._began_s > _DAY_S
        if self._descriptor is None or is_full:
            self._begin(len(lines))
        assert self._descriptor is not None  # noqa: S101
        left = memoryview(lines)
        try:
            while left:
                written = os.write(self._descriptor, left)
                self._written += written
                left = left[written:]
        except OSError:
            self.close()  # the next line begins a file: this one may end within a line
            raise

    def close(self) -> None:
        """Closes the file; the next lines begin another one."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def _begin(self, size_bytes: int) -> None:
        self.close()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._make_room(max(size_bytes, self._file_bytes))
        now_s = self._clock()
        at = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now_s))
        path = self._folder / f"requests-{at}-{int(now_s % 1 * 1e6):06}-{os.getpid()}.jsonl"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
        self._descriptor = os.open(path, flags, 0o600)
        self._written, self._began_s = 0, now_s

    def _make_room(self, size_bytes: int) -> None:
        files = sorted(self._folder.glob(PATTERN))
        sizes = {}
        for file in files:
            try:
                sizes[file] = file.stat().st_size
            except FileNotFoundError:  # another process made room, too
                continue
        total = sum(sizes.values()) + size_bytes
        for file, size in sizes.items():
            if total <= self._most_bytes:
                return
            file.unlink(missing_ok=True)
            total -= size
