"""The files of logged requests in a folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

JSON_LINES, PARQUET = ".jsonl", ".parquet"


@dataclass(frozen=True)
class LogFile:
    """A file of rows with the columns of `components/request_log`.

    Attributes:
        path: of JSON Lines or Parquet, by its ending.
        name: as the user knows it.
    """

    path: Path
    name: str


@dataclass(frozen=True)
class Logs:
    """The logged requests of a folder.

    Attributes:
        folder: as the user names it.
    """

    folder: Path
    files: Sequence[LogFile]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """The files as `serve` and `predict` write them; none where there is no such folder."""
        found = sorted([*folder.glob(f"*{JSON_LINES}"), *folder.glob(f"*{PARQUET}")])
        return cls(folder, [LogFile(file, file.name) for file in found])
