"""Version numbers in TF Serving's format, and the result of a push."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from slipway.components.errors import ComponentError

# TF Serving stores a version as a signed 64-bit integer and ignores longer names.
LARGEST_VERSION = 2**63 - 1


@dataclass(frozen=True)
class Published:
    """A version that holds the model.

    Attributes:
        version: its number, > 0; larger than those of all earlier versions.
        base: the directory or address in an object store that holds the versions.
        was_there: True if an earlier push has published the same files, so nothing was written.
    """

    version: int
    base: str
    was_there: bool

    @property
    def address(self) -> str:
        """The version's own directory or address in an object store."""
        return f"{self.base}/{self.version}"

    @property
    def path(self) -> Path:
        """The folder of a version in a directory."""
        return Path(self.base, str(self.version))


def version_number(name: str) -> int | None:
    """Return the version that a name stands for; None if a server would ignore it."""
    # A longer number is too large anyway, and slow for Python to parse.
    if not (name.isascii() and name.isdigit() and len(name) <= 19):
        return None
    number = int(name)
    return number if 0 < number <= LARGEST_VERSION else None


def next_version(taken: Iterable[int], *, base: str) -> int:
    """Return the number for a new version: seconds since the epoch, or one more than the largest taken.

    Raises:
        ComponentError: the largest possible number is taken.
    """
    version = max(int(time.time()), max(taken, default=0) + 1)
    if version > LARGEST_VERSION:
        raise ComponentError(f"{base} holds the largest possible version.", hint="rename it")
    return version
