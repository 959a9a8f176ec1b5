"""Lines in a folder of rotating files: the oldest files are removed when the folder is full."""

import contextlib
import errno
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PATTERN = "requests-*.jsonl"
"""The pattern of the files' names, which sort by the time of creation."""

_PARTS = 8
_DAY_S = 86_400.0
_MOST_NAMES = 1000


class RotatingFiles:
    """Writes lines for one process; other processes may write their own files beside them.

    A file is only ever appended to, and belongs to one process: after a kill at most its last line is torn.
    Only the owner can read it (0600). If the file is removed, the next lines go to a new one.

    Args:
        folder: created if it does not exist, for the owner only (0700).
        most_bytes: limit for all files in the folder; the oldest are removed. A file holds at most an eighth
            of the limit, and a day's lines.
        clock: seconds since 1970.
    """

    def __init__(self, folder: Path, *, most_bytes: int, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._clock = folder, clock
        self._most_bytes, self._file_bytes = most_bytes, max(most_bytes // _PARTS, 1)
        self._descriptor: int | None = None
        self._path, self._written, self._began_s = folder, 0, 0.0

    def write(self, lines: bytes) -> None:
        """Write whole lines: all of them, or none.

        Raises:
            OSError: the lines cannot be written.
        """
        descriptor = self._descriptor if self._takes(len(lines)) else None
        if descriptor is None:
            descriptor = self._begin(len(lines))
        left = memoryview(lines)
        try:
            while left:
                left = left[os.write(descriptor, left) :]
        except BaseException:
            self._give_up()
            raise
        self._written += len(lines)

    def close(self) -> None:
        """Close the file; the next lines go to a new one."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def adopt(self, paths: Sequence[Path]) -> None:
        """Move files of lines here, from a folder on the same disk.

        Raises:
            OSError: they cannot all be moved.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._make_room(sum(path.stat().st_size for path in paths))
        for path in paths:
            names = (f"{path.stem}-{number}{path.suffix}" for number in range(1, _MOST_NAMES))
            places = (self._folder / name for name in (path.name, *names))
            free = next((place for place in places if not place.exists()), None)
            if free is None:
                why = f"all {_MOST_NAMES:,} names of a file are taken; move such files to another folder"
                raise FileExistsError(errno.EEXIST, why, str(self._folder / path.name))
            path.rename(free)

    def _takes(self, size_bytes: int) -> bool:
        """Return True if the file exists, has room and is at most a day old.

        If the clock was set back, the age is unknown, so the result is False.
        """
        if self._descriptor is None or self._written + size_bytes > self._file_bytes:
            return False
        is_of_today = 0 <= self._clock() - self._began_s <= _DAY_S
        return is_of_today and os.fstat(self._descriptor).st_nlink > 0

    def _give_up(self) -> None:
        """Keep only whole lines, and no empty file: a full disk may refuse a million requests."""
        assert self._descriptor is not None  # noqa: S101
        with contextlib.suppress(OSError):  # if this fails, the file ends within a line
            os.ftruncate(self._descriptor, self._written)
            if not self._written:
                self._path.unlink(missing_ok=True)
        self.close()

    def _begin(self, size_bytes: int) -> int:
        self.close()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._make_room(max(size_bytes, self._file_bytes))
        self._began_s, self._written = self._clock(), 0
        begun_us = int(self._began_s * 1e6)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        for at_us in range(begun_us, begun_us + _MOST_NAMES):
            at = time.strftime("%Y%m%d-%H%M%S", time.gmtime(at_us // 1_000_000))
            self._path = self._folder / f"requests-{at}-{at_us % 1_000_000:06}-{os.getpid()}.jsonl"
            with contextlib.suppress(FileExistsError):  # of another log of this process, or of a container's
                self._descriptor = os.open(self._path, flags, 0o600)
                return self._descriptor
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self._path))

    def _make_room(self, size_bytes: int) -> None:
        files = sorted(self._folder.glob(PATTERN))
        sizes = {}
        for file in files:
            try:
                sizes[file] = file.lstat().st_size
            except FileNotFoundError:  # another process made room, too
                continue
        total = sum(sizes.values()) + size_bytes
        for file, size in sizes.items():
            if total <= self._most_bytes:
                return
            file.unlink(missing_ok=True)
            total -= size
