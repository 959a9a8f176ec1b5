"""Reads labels that arrived later, and joins them to the logged answers by a key column."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from slipway.components.counted_words import counted
from slipway.components.data_profile.columns import Floats
from slipway.components.escaped_text import escaped
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.parquet_batches import batches
from slipway.components.ingest.source_limits import SourceLimits
from slipway.components.request_log.reserved_columns import AT, PREDICTION, VERSION
from slipway.pipeline.errors import UsageError
from slipway.pipeline.watch.log_folder import JSON_LINES, PARQUET, LogFile, Logs, checked

AGAIN = "labelled rows whose key was logged again later"
NO_ANSWER = f"labelled rows without {PREDICTION}"

_SHOWN = 60
_BLOCK_BYTES = 1 << 20
# From here on, float32 cannot tell whole numbers apart.
_ROUNDED_FROM = 1 << 24
# So many of any numbers from there on are not all among those that it holds: at most every second one is.
_SURE = 20
# Without it, the lines of a text that lies on both sides of a megabyte are taken for rows.
_CSV = pyarrow.csv.ParseOptions(newlines_in_values=True)
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")


@dataclass(frozen=True)
class Labelled:
    """The logged rows that have a label.

    Attributes:
        labels: float64 of shape [rows, 1].
        answers: float64 of shape [rows, outputs].
        without: the number of the version's rows without a label so far.
        left_out_counts: counts of rows with a label that are left out, by reason. Rows of one key are not
            independent, and counted as such they would make chance look smaller than it is.
    """

    labels: Floats
    answers: Floats
    without: int
    left_out_counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def not_finite(self) -> int:
        """The number of rows whose answer is NaN or infinite; the log has null for it."""
        return int((~np.isfinite(self.answers)).any(1).sum())


def read_labels(file: Path, *, key: str, label: str, classes: Sequence[str]) -> dict[str, float]:
    """Read the labels by key; if a key appears twice, the last label counts.

    Args:
        file: a CSV, JSON Lines or Parquet file with both columns.
        key: the column that identifies rows.
        label: the column of labels as the model learns them: numbers, or names of classes. A row has none yet
            if it is empty there, or NaN in a column of fractions.
        classes: the names of the classes in the order of their codes; empty if labels are numbers.

    Raises:
        UsageError: the file cannot be read, lacks a column, has no label, or has an invalid label.
    """
    codes = _codes(classes)
    found = {}
    _check_columns(file, [key, label])
    for row in _rows(file, [key, label]):
        name = _as_text(row.get(key))
        if name is None or _as_text(row.get(label)) is None:
            continue
        text = str(row[label])
        # A gap in a column of whole numbers makes 1 into 1.0, which is the class "1" and not the code 1; or
        # it did so in the data that the classes come from, and the labels have no gaps.
        code = codes.get(text, codes.get(_as_text(row[label]) or ""))
        if code is None and isinstance(
            row[label], bool
        ):  # which are classes by their words, before their codes
            code = codes.get(text.lower())
        try:
            value = float(row[label]) if code is None else code
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if not math.isfinite(value) or (classes and value not in codes.values()):
            last = len(classes) - 1
            named = f"one of {', '.join(classes)}, or its code, 0 to {last}" if classes else "a number"
            raise UsageError(
                f"{file} has the label {text[:_SHOWN]!r} for {name[:_SHOWN]!r}; it must be {named}.",
                hint="give the label as the model sees it, after preprocessing",
            )
        found[name] = value
    if not found:
        raise UsageError(f"{file} has no label.")
    return found


def _codes(classes: Sequence[str]) -> dict[str, float]:
    """Return the codes of classes by their names, and by those without .0 unless they are another's name."""
    named = {name: float(code) for code, name in enumerate(classes)}
    return {_as_text(name) or name: code for name, code in reversed(named.items())} | named


def join(logs: Logs, *, key: str, version: int, labels: Mapping[str, float]) -> Labelled:
    """Return a version's predictions for the rows that have a label, with the labels.

    If a key was logged more than once, as of a repeated request, only the row with the latest time counts;
    the order of rows says little, because several servers may write files at once.

    Raises:
        UsageError: the log lacks the key or has rounded it, no row has a label, or the answers are not
            arrays of numbers of the same length.
    """
    wanted: list[float] = []
    answers: list[Any] = []
    places: dict[str, int] = {}
    times_s: list[float] = []
    without = 0
    left_out_counts: Counter[str] = Counter()
    has_key = False
    precision = _Precision()
    for file in logs.files:
        for row in _logged(file.path, [key, AT, VERSION, PREDICTION]):
            if row.get(VERSION) != version:
                continue
            has_key |= key in row
            precision.add(row.get(VERSION), row.get(key))
            name = _as_text(row.get(key))
            if name is None or name not in labels:
                without += 1
                continue
            if PREDICTION not in row:  # as another server may have logged it; null is an answer
                left_out_counts[NO_ANSWER] += 1
                continue
            answer = row[PREDICTION]
            answer = answer if isinstance(answer, list) else [answer]
            at_s = _time_s(row)
            if name in places:
                left_out_counts[AGAIN] += 1
                if at_s >= times_s[place := places[name]]:
                    answers[place], times_s[place] = answer, at_s
                continue
            places[name] = len(wanted)
            wanted.append(labels[name])
            answers.append(answer)
            times_s.append(at_s)
    precision.require(logs, key, labels)
    unanswered = left_out_counts[NO_ANSWER]
    _check_joined(logs, key, has_key=has_key, with_label=len(wanted) + unanswered, without=without)
    if not wanted:
        raise UsageError(
            f"The requests in {logs.folder} have no column {PREDICTION}, so no metric can be computed.",
            hint="leave out --labels, or log the answers there too",
        )
    try:
        numbers = np.array(answers, np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"The answers in {logs.folder} differ in length, so no metric can be computed."
        ) from error
    if numbers.shape[2:] or not numbers.size:
        raise UsageError(
            f"The answers in {logs.folder} are not one or several numbers a row, so no metric can be "
            "computed."
        )
    return Labelled(np.array(wanted, np.float64)[:, None], numbers, without, +left_out_counts)


def _time_s(row: Mapping[str, object]) -> float:
    """Return when a row was logged, in seconds since 1970; 0 if it does not tell, as another server's may."""
    at: Any = row.get(AT)
    try:
        at = at if isinstance(at, datetime) else datetime.fromisoformat(at)
        return float((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _check_columns(file: Path, wanted: Sequence[str]) -> None:
    """Reject a table that lacks one of the columns; JSON Lines have no header to check."""
    if file.suffix == ".jsonl":
        return
    try:
        names = (
            pq.read_schema(file).names
            if file.suffix == ".parquet"
            else pyarrow.csv.open_csv(file, parse_options=_CSV).schema.names
        )
    except (pa.ArrowException, ValueError, OSError):
        return  # the reader of the rows reports the error
    for name in wanted:
        if name not in names:
            raise UsageError(
                f"{file} has no column {name!r}; it has {', '.join(map(escaped, names[:10]))}.",
                hint="name the key as in the log (logged_id, or a column of request_log.columns), and the "
                "label as in training",
            )


def labels_of_rows(
    logs: Logs, *, key: str, labels: Mapping[str, float], left_out_counts: Counter[str]
) -> Mapping[LogFile, npt.NDArray[np.float64]]:
    """Return the label of each row of each file, whichever version answered the row; NaN if there is none.

    If a key was logged more than once, only its latest row gets the label, as in `join`.

    Args:
        left_out_counts: counts the other rows.

    Raises:
        UsageError: the log lacks the key or has rounded it, or no row has a label.
    """
    by_file: dict[LogFile, list[float]] = {}
    places: dict[str, tuple[LogFile, int, float]] = {}
    rows, has_key, precision = 0, False, _Precision()
    for file in logs.files:
        of_file = by_file[file] = []
        for row in _logged(file.path, [key, AT, VERSION]):
            has_key |= key in row
            precision.add(row.get(VERSION), row.get(key))
            name = _as_text(row.get(key))
            of_file.append(math.nan)
            if name is None or name not in labels:
                continue
            at_s = _time_s(row)
            if name in places:
                left_out_counts[AGAIN] += 1
                before, place, last_s = places[name]
                if at_s < last_s:
                    continue
                by_file[before][place] = math.nan
            places[name] = file, len(of_file) - 1, at_s
            of_file[-1] = labels[name]
        rows += len(of_file)
    precision.require(logs, key, labels)
    _check_joined(logs, key, has_key=has_key, with_label=len(places), without=rows - len(places))
    return {file: np.array(of_file, np.float64) for file, of_file in by_file.items()}


class _Precision:
    """Whether keys were rounded to float32, as a model's inputs are that hold fractions: several rows then
    have the key of one, and get its label."""

    def __init__(self) -> None:
        # By version: the inputs of one may be whole numbers, and those of the next fractions.
        self._rounded: dict[str, float] = {}
        self._exact: set[str] = set()

    def add(self, version: object, key: Any) -> None:
        """Look at the key of a row that a version has answered."""
        of = str(version)
        if isinstance(key, float) and math.isfinite(key) and abs(key) >= _ROUNDED_FROM:
            if _is_float32(key):
                self._rounded[of] = key
            else:  # a float64, as pandas makes of a column of whole numbers with gaps
                self._exact.add(of)
        elif (isinstance(key, str) and key) or (isinstance(key, int) and not _is_float32(key)):
            self._exact.add(of)  # as written: a fraction beside it is what one client has sent

    def require(self, logs: Logs, key: str, labels: Mapping[str, float]) -> None:
        """Check that the keys are exact.

        Raises:
            UsageError: all fractions among those of a version, from 2^24 on, are those that a float32 holds,
                and the keys of the labels are not, or too few to tell.
        """
        large = _large(labels)
        rounded = next((self._rounded[each] for each in self._rounded.keys() - self._exact), None)
        if rounded is None or not large:
            return
        are, few = "are", ""
        if all(map(_is_float32, large)):
            if len(large) >= _SURE:
                return  # all ids are such numbers
            are, few = "may be", f"; {counted(len(large), 'label')} are too few to tell"
        raise UsageError(
            f"The keys {key} in {logs.folder}, such as {rounded:.0f}, {are} rounded: the model takes "
            f"that column as a float32, which holds whole numbers exactly up to {_ROUNDED_FROM:,} only{few}.",
            hint="join by another column or by request ids (request_log.ids); or let data.types make the "
            "column a whole number or text, and train anew",
        )


def _is_float32(number: float) -> bool:
    """Return True if a finite number has no more digits than a float32 holds."""
    return (math.frexp(number)[0] * _ROUNDED_FROM).is_integer()


def _large(keys: Iterable[str]) -> list[float]:
    """Return the keys that are numbers of which a float32 would round some."""
    found = []
    for key in keys:
        try:
            number = float(key)
        except ValueError:
            continue
        if math.isfinite(number) and abs(number) >= _ROUNDED_FROM:
            found.append(number)
    return found


def _check_joined(logs: Logs, key: str, *, has_key: bool, with_label: int, without: int) -> None:
    if not has_key:
        raise UsageError(
            f"The requests in {logs.folder} have no column {key!r} to join labels by.",
            hint="name the key in request_log.columns: an input of the model or, for predict, one that "
            "transform.pass_through names; or log request ids: request_log.ids",
        )
    if not with_label:
        raise UsageError(f"No key in {logs.folder} has a label yet: {without:,} rows have none.")


def _as_text(key: Any) -> str | None:
    """Return a key, or a label, as text; None if it is missing or empty.

    7.0 becomes "7", because a missing value in a column of integers turns them into floats; so does the
    decimal 7.00.
    """
    if key in (None, "") or (isinstance(key, float) and math.isnan(key)):
        return None
    text = str(key)
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def _logged(file: Path, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a logged file, or none if the log has meanwhile removed the file to make room."""
    try:
        yield from _rows(file, columns)
    except UsageError:
        if file.exists():
            raise


def _rows(file: Path, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a file with at least these columns; a truncated last line of JSON is left out."""
    try:
        if file.suffix == JSON_LINES:
            with file.open("rb") as lines:
                for line in lines:
                    if line.strip() and not _is_torn(line):
                        row = orjson.loads(line)
                        if not isinstance(row, dict):
                            raise UsageError(f"{file} has a line that is not an object.")
                        yield row
            return
        for batch in _batches(file, columns):
            yield from batch.to_pylist()
    except FileError as error:  # a column is too large
        raise _too_large(file) from error
    except (pa.ArrowException, ValueError, OverflowError, OSError, RecursionError) as error:
        raise UsageError(f"{file} cannot be read: {' '.join(str(error).split())[:300]}") from error


def _is_torn(line: bytes) -> bool:
    """Return True if a line is the last one of a file, truncated by a kill or a full disk."""
    if line.endswith(b"\n"):
        return False
    try:
        orjson.loads(line)
    except ValueError:
        return True
    return False


def _too_large(file: Path) -> UsageError:
    most = SourceLimits().decoded_bytes
    return UsageError(
        f"{file} has a row, or a much compressed column, of more than {most:,} bytes unpacked.",
        hint="write the key and the label alone, with smaller row groups",
    )


def _batches(file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch | pa.Table]:
    """Yield the rows of a CSV or Parquet file in pieces, however strongly it is compressed."""
    if file.suffix != PARQUET:
        as_text = pyarrow.csv.ConvertOptions(
            include_columns=list(columns), column_types=dict.fromkeys(columns, pa.string())
        )
        yield from pyarrow.csv.open_csv(file, parse_options=_CSV, convert_options=as_text)
        return
    there = set(pq.read_schema(file).names)
    names = [name for name in dict.fromkeys(columns) if name in there]
    for batch in batches(file, names, name=str(file), block_bytes=_BLOCK_BYTES, limits=SourceLimits()):
        if batch.skipped:
            raise _too_large(file)
        yield _with_plain_times(checked(pa.Table.from_batches([batch.rows])))


def _with_plain_times(table: pa.Table) -> pa.Table:
    """Return a table with the times of logging as texts in UTC: Python may not know their zone."""
    if AT not in table.column_names or not pa.types.is_timestamp(table.schema.field(AT).type):
        return table
    texts = table[AT].cast(pa.timestamp("us"), safe=False).cast(pa.string())
    return table.set_column(table.column_names.index(AT), AT, texts)
