"""Finds the files of logged requests in a folder, and converts TensorFlow Serving's logs to our format."""

import stat
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pyarrow as pa

from slipway.components.ingest.blocks import InputFile
from slipway.components.request_log.logged_values import holds_infinity
from slipway.components.request_log.prediction_log import read_predictions
from slipway.components.request_log.request_log import (
    INFINITE,
    MOST_LINE_BYTES,
    TOO_LONG,
    logged_line,
    logged_time,
)
from slipway.components.request_log.reserved_columns import OWN
from slipway.pipeline.errors import UsageError

JSON_LINES, PARQUET = ".jsonl", ".parquet"
PREDICTION_LOGS = "*.tfrecord*"

NO_TIME = "requests without a time, which have that of their file"


@dataclass(frozen=True)
class LogFile:
    """A file of rows with the columns of `components/request_log`.

    Attributes:
        path: a JSON Lines or Parquet file, by its suffix.
        name: the name of the original file.
    """

    path: Path
    name: str


@dataclass(frozen=True)
class Logs:
    """The logged requests of a folder.

    Attributes:
        left_out_counts: counts, by reason in words, of TensorFlow Serving's requests that were left out or
            lack a time.
    """

    folder: Path
    files: Sequence[LogFile]
    left_out_counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def are_json(self) -> bool:
        """Whether all rows are JSON, which has no infinite number: a row with one was left out."""
        return all(file.path.suffix == JSON_LINES for file in self.files)

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Find the files that `serve` and `predict` have written; none if there is no such folder.

        Raises:
            UsageError: something there is called like a log, but is no file: a pipe would be waited for, and
                a device would never end.
        """
        found = sorted([*folder.glob(f"*{JSON_LINES}"), *folder.glob(f"*{PARQUET}")])
        return cls(folder, [LogFile(file, file.name) for file in found if _is_there(file)])


def unreadable_log(file: Path, reason: str) -> UsageError:
    """Return the error for a log that cannot be read."""
    return UsageError(f"{file} cannot be read as logged requests: {reason}", hint="fix or remove the file")


def checked(table: pa.Table) -> pa.Table:
    """Return a table of a log; Arrow does not check that its texts are UTF-8 when it reads them.

    Raises:
        pyarrow.ArrowInvalid: one is not.
    """
    table.validate(full=True)
    return table


def _is_there(file: Path) -> bool:
    try:
        is_file = stat.S_ISREG(file.stat().st_mode)
    except FileNotFoundError:  # meanwhile removed to make room
        return False
    except OSError as error:
        raise unreadable_log(file, f"{error.strerror or error}.") from error
    if not is_file:
        raise unreadable_log(file, "it is a folder, a pipe or a device.")
    return True


def left_out_lines(left_out_counts: Mapping[str, int]) -> list[str]:
    """Return a line about what was left out or is incomplete; no line if there is nothing."""
    if not left_out_counts:
        return []
    counts = "; ".join(f"{what} ({many:,})" for what, many in sorted(left_out_counts.items()))
    return [f"Left out or incomplete: {counts}."]


@contextmanager
def open_logs(folder: Path, columns: Sequence[str], needed: Collection[str] = ()) -> Iterator[Logs]:
    """Open a folder of logged requests, including TensorFlow Serving's TFRecord files of PredictionLogs.

    Args:
        columns: the columns to take from TensorFlow Serving's requests.
        needed: those that have a value in every row: an empty text there is one.

    Raises:
        UsageError: TensorFlow Serving's logs cannot be read, or converted to JSON Lines in the folder for
            temporary files.
    """
    logs = Logs.of(folder)
    ours = {file.path for file in logs.files}  # also one that somebody converted to `x.tfrecord.jsonl`
    theirs = [path for path in sorted(folder.glob(PREDICTION_LOGS)) if path.is_file() and path not in ours]
    if not theirs:
        yield logs
        return
    columns = [name for name in columns if name not in OWN]
    left_out_counts: Counter[str] = Counter()
    # A temporary folder is readable only by its owner.
    with tempfile.TemporaryDirectory(prefix="slipway-requests-") as own:
        files = list(logs.files)
        for path in theirs:
            converted = Path(own, f"{path.name}{JSON_LINES}")
            try:
                _convert(path, converted, columns, left_out_counts, needed)
            except OSError as error:
                if not path.exists():  # meanwhile removed to make room
                    continue
                raise UsageError(
                    f"{path} cannot be read into {own}: {error.strerror or error}.",
                    hint="make room there, or choose another folder with TMPDIR",
                ) from error
            files.append(LogFile(converted, path.name))
        yield Logs(folder, files, left_out_counts)


def _convert(
    path: Path,
    target: Path,
    columns: Sequence[str],
    left_out_counts: Counter[str],
    needed: Collection[str],
) -> None:
    """Convert a PredictionLog file to JSON Lines in the format of `serve`."""
    of_file_s = int(path.stat().st_mtime)
    at_s, at = -1, ""
    with target.open("wb") as lines:
        file = InputFile(path.name, path)
        for request in read_predictions(file, columns, left_out_counts, needed=needed):
            if not request.at_s:
                left_out_counts[NO_TIME] += 1
            if at_s != (request.at_s or of_file_s):
                at_s = request.at_s or of_file_s
                at = logged_time(at_s)
            for row, answer in zip(request.rows, request.answers, strict=True):
                if holds_infinity(row):
                    left_out_counts[INFINITE] += 1
                    continue
                line = logged_line(at, request.version, row, answer)
                if len(line) > MOST_LINE_BYTES:
                    left_out_counts[TOO_LONG] += 1
                else:
                    lines.write(line)
