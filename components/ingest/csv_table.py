"""Reads CSV files into blocks of text columns. Arrow parses regular rows; Python's csv handles the rest.

A row with too many or too few fields, broken quotes or a broken encoding is rejected with its place.
"""

import codecs
import csv
import io
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from slipway.components.ingest.blocks import (
    Block,
    FileError,
    FilePart,
    InputFile,
    Place,
    Reject,
    check_columns,
)
from slipway.components.ingest.column_types import Columns, ColumnType, infer_type
from slipway.components.ingest.compression import Stream
from slipway.components.ingest.csv_record_blocks import Records, scan_records
from slipway.components.ingest.file_kinds import HEAD_BYTES, other_kind
from slipway.components.ingest.header_names import Header, header_of, names_problem, with_index
from slipway.components.ingest.missing_values import is_number
from slipway.components.ingest.notations import Notations
from slipway.components.ingest.options import Options
from slipway.components.ingest.source_limits import TOO_LONG

_OTHER_MARKS = {
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# A row takes a few hundred bytes while it is processed, however short it is in the file.
_BLOCK_ROWS = 40_000
# The first of these rows that is not too short shows the fields after the last column.
_FIRST_ROWS = 100
_HEADER_AGAIN = "the line of column names again"


def infer(file: InputFile, options: Options, known: Columns) -> dict[str, ColumnType]:
    """Infer the type of each column of a file from its first rows or all of them; `known` types are kept."""
    table = _Table(file, options)
    kinds = {name: known.get(name, ColumnType.UNKNOWN) for name in table.chosen}
    # A guess is of the file's first rows.
    is_guessed = not (options.inferred_blocks and file.part and file.part.begin)
    unknown = [name for name in kinds if name not in known] if is_guessed else []
    for block in islice(table.blocks(), options.inferred_blocks or None) if unknown else ():
        for name in unknown:
            kinds[name] = infer_type(block.columns[name], kinds[name])
    return kinds


def read(file: InputFile, options: Options, columns: Columns) -> Iterator[Block]:
    """Yield the rows of a file.

    Raises:
        FileError: the file is not a CSV with these columns, or cannot be read to its end.
    """
    table = _Table(file, options, columns)
    if tuple(table.chosen) != tuple(columns):
        raise other_columns(file.name, tuple(table.chosen), tuple(columns))
    yield from table.blocks()


def other_columns(file: str, found: Sequence[str], expected: Sequence[str]) -> FileError:
    """Return the error for a file whose columns differ from those of the other files."""
    there, wanted = set(found), set(expected)
    missing = [name for name in expected if name not in there]
    more = [name for name in found if name not in wanted]
    words = [f"it lacks {', '.join(map(repr, missing))}"] if missing else []
    words += [f"it also has {', '.join(map(repr, more))}"] if more else []
    difference = " and ".join(words) or "they are in a different order"
    return FileError(
        f"{file} has different columns from the files beside it: {difference}",
        hint="all files of a source need the same columns in the same order; name a narrower data.source",
    )


@dataclass
class _Rows:
    """Rows that were parsed one by one."""

    cells: list[list[str]] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)


class _Table:
    """One CSV file, whose header is read when it is created.

    Args:
        columns: the types of its columns; those that are not known yet are left out.
    """

    def __init__(self, file: InputFile, options: Options, columns: Columns = MappingProxyType({})) -> None:
        self._file = file
        self._options = options
        self._columns = columns
        self._notations = Notations.of(options)
        self._records = self._scanned()
        self._first = list(islice(self._records, 1))
        self._header = self._checked_header()
        self.names = self._header.names
        self.chosen = options.chosen(self.names, file=file.name)
        check_columns(self.chosen, options.limits, of=file.name)
        if file.part and file.part.begin:
            self._first = []
            self._records = self._scanned(file.part)

    def _scanned(self, part: FilePart | None = None) -> Iterator[Records]:
        """Return the records from the beginning of the file, or of a part of it, to the part's end."""
        begin, line = (part.begin, part.line) if part else (0, 1)
        end = self._file.part.end if self._file.part else None
        self._stream = Stream(self._file, encoding=self._options.encoding, begin=begin, end=end)
        self._position = begin
        return scan_records(
            self._read,
            delimiter=self._options.delimiter,
            quote=self._options.quote,
            max_record_bytes=self._options.limits.row_bytes,
            block_bytes=self._options.block_bytes,
            offset=begin,
            line=line,
        )

    def blocks(self) -> Iterator[Block]:
        """Yield the rows below the header; can be called once."""
        for records in chain(self._first, self._records):
            yield from self._blocks(records)

    def _read(self, size: int) -> bytes:
        data: bytes = self._stream.read(size)
        if self._position == 0:
            for mark, encoding in _OTHER_MARKS.items():
                if data.startswith(mark):
                    raise FileError(
                        f"{self._file.name} is {encoding.upper()} text, not {self._options.encoding}",
                        hint=f"set data.encoding: {encoding}",
                    )
        self._position += len(data)
        return data

    def _checked_header(self) -> Header:
        names = self._options.column_names
        first = next(iter(self._first), None)
        if first is None or not len(first):
            raise FileError(
                f"{self._file.name} is empty", hint="a CSV needs a line of column names, and rows below it"
            )
        if first.data.startswith(codecs.BOM_UTF8):
            first.starts[0] += len(codecs.BOM_UTF8)
        if names:
            self._header_line = self._options.delimiter.join(names).encode()
        else:
            names = self._named(first)
            self._header_line = first.data[first.starts[0] : first.ends[0]]
            self._first = [first.without_first()]
        header = header_of(names, self._first_rows())
        if problem := names_problem(header.names):
            raise FileError(f"{self._file.name}: {problem[0]}", hint=problem[1])
        return header

    def _first_rows(self) -> Iterator[list[str]]:
        """Yield the first rows that can be parsed; further blocks are read where a broken row fills one."""
        seen = 0
        for index in count():
            if index == len(self._first):
                self._first += islice(self._records, 1)
            if index == len(self._first) or seen >= _FIRST_ROWS:
                return
            block = self._first[index]
            for start, end in zip(block.starts[:_FIRST_ROWS], block.ends[:_FIRST_ROWS], strict=True):
                seen += 1
                rows = self._parse(block.data[start:end]) if not block.kept_bytes else ""
                yield from rows if isinstance(rows, list) else ()

    def _named(self, first: Records) -> tuple[str, ...]:
        raw = first.data[first.starts[0] : first.ends[0]]
        rows = [] if first.kept_bytes else self._parse(raw)
        if not isinstance(rows, list) or len(rows) != 1:
            why = rows if isinstance(rows, str) else "its first line is too long"
            if b"\r" in raw and b"\n" not in raw:
                raise FileError(
                    f"{self._file.name}: its lines end in CR alone, as on old Macs",
                    hint=f"tr '\\r' '\\n' < {shlex.quote(self._file.name)} > lines.csv",
                )
            if other := other_kind(first.data[:HEAD_BYTES]):
                raise FileError(f"{self._file.name} is {other[0]}", hint=other[1])
            raise FileError(
                f"{self._file.name} has no readable header: {why}",
                hint="a CSV begins with a line of column names; unpack compressed files or name them .gz",
            )
        return with_index(rows[0])

    def _blocks(self, records: Records) -> Iterator[Block]:
        for part in records.parts(_BLOCK_ROWS):
            # Concatenated files repeat their header; but a file with one column may have a cell
            # that equals the column's name.
            again = part.equal_to(self._header_line) if len(self.names) > 1 else []
            rows = part.without(again)
            block = self._parse_with_arrow(rows) or self._parse_one_by_one(rows)
            headers = [self._header_again(part, number) for number in again]
            yield replace(block, rejects=[*block.rejects, *headers]) if headers else block

    def _header_again(self, records: Records, number: int) -> Reject:
        start, end = int(records.starts[number]), int(records.ends[number])
        return self._reject(_HEADER_AGAIN, records.data[start:end], start, records)

    def _parse_with_arrow(self, records: Records) -> Block | None:
        """Parse all rows at once; None if anything about them is irregular."""
        if records.kept_bytes or not records.is_regular or not len(records):
            return None
        if (records.ends - records.starts > self._options.limits.row_bytes).any():
            return None
        data = memoryview(records.data)[int(records.starts[0]) : int(records.ends[-1])]
        # Arrow treats a lone "\r" as a line ending; the rules here do not.
        has_return = b"\r" in records.data and records.data.count(b"\r") != records.data.count(b"\r\n")
        if has_return or b"\0" in records.data or not _is_utf8(data):
            return None
        # Arrow would strip a byte order mark from the first cell of any block, not only of the file's first.
        if bytes(data[: len(codecs.BOM_UTF8)]) == codecs.BOM_UTF8:
            return None
        quote = self._options.quote
        # Arrow needs a name for each field, even for the empty ones after the last column.
        names = [*self.names, *(f"\0{number}" for number in range(self._header.empty_end))]
        try:
            table = pa_csv.read_csv(
                pa.py_buffer(data),
                read_options=pa_csv.ReadOptions(
                    use_threads=False, block_size=len(data) + 1, column_names=names
                ),
                parse_options=pa_csv.ParseOptions(
                    delimiter=self._options.delimiter,
                    quote_char=quote or False,
                    newlines_in_values=bool(quote),
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
        except pa.ArrowInvalid:
            return None
        if table.num_rows != len(records):
            return None
        columns = [
            column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in table.columns
        ]
        if any(pc.max(pc.binary_length(end)).as_py() for end in columns[len(self.names) :]):
            return None

        def find(row: int) -> Place:
            begin, end = int(records.starts[row]), int(records.ends[row])
            return Place(records.line_of(begin), records.offset + begin, records.data[begin:end])

        return self._as_block(columns[: len(self.names)], records, [], find)

    def _parse_one_by_one(self, records: Records) -> Block:
        rows = _Rows()
        for start, end in zip(records.starts.tolist(), records.ends.tolist(), strict=True):
            raw = records.data[start:end]
            if records.kept_bytes:
                rows.rejects.append(self._reject(TOO_LONG, raw, start, records))
            elif why := self._add(raw, start, rows):
                rows.rejects += self._rejected_lines(why, raw, start, records)
        cells = [pa.array(column, pa.string()) for column in zip(*rows.cells, strict=True)]
        columns = cells or [pa.array([], pa.string()) for _ in self.names]

        def find(row: int) -> Place:
            begin, end = rows.places[row]
            return Place(records.line_of(begin), records.offset + begin, records.data[begin:end])

        return self._as_block(columns, records, rows.rejects, find)

    def _add(self, raw: bytes, start: int, rows: _Rows) -> str:
        """Add a record as a row; return why it cannot be one, or ""."""
        if len(raw) > self._options.limits.row_bytes:
            return TOO_LONG
        parsed = self._parse(raw)
        if isinstance(parsed, str):
            return parsed
        if len(parsed) != 1:
            return "a line break outside of quotes"
        row, end = parsed[0][: len(self.names)], parsed[0][len(self.names) :]
        if len(row) < len(self.names):
            return "too few fields"
        if any(end) or len(end) > self._header.most_empty:
            return "too many fields"
        rows.cells.append(row)
        rows.places.append((start, start + len(raw)))
        return ""

    def _parse(self, raw: bytes) -> list[list[str]] | str:
        """Return the rows in some bytes, or why they cannot be parsed."""
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            return "not valid text"
        if "\0" in text:
            return "a NUL byte"
        quote = self._options.quote
        # csv's field limit is global; here a field may be as long as a record.
        limit = csv.field_size_limit(self._options.limits.row_bytes)
        try:
            return list(
                csv.reader(
                    io.StringIO(text, newline=""),
                    delimiter=self._options.delimiter,
                    quotechar=quote,
                    quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
                    strict=True,
                )
            )
        except csv.Error:
            return "broken quotes"
        finally:
            csv.field_size_limit(limit)

    def _rejected_lines(self, why: str, raw: bytes, start: int, records: Records) -> Iterator[Reject]:
        """Yield a reject for each line of a record that is not a row, since each line may have been a row."""
        reject = self._reject(why, raw, start, records)
        for line in raw.split(b"\n"):
            if text := line.rstrip(b"\r"):
                place = Place(records.line_of(start), records.offset + start, text)
                yield replace(reject, place=place)
            start += len(line) + 1

    def _reject(self, why: str, raw: bytes, start: int, records: Records) -> Reject:
        place = Place(records.line_of(start), records.offset + start, raw)
        detail = self._options.limits.exceeded("row_bytes") if why == TOO_LONG else ""
        if why in ("too few fields", "too many fields"):
            parsed = self._parse(raw)
            detail = f"{len(parsed[0])} fields, not {len(self.names)}"
        return Reject(why, place, detail=detail)

    def _as_block(
        self,
        columns: Sequence[pa.Array],
        records: Records,
        rejects: list[Reject],
        find: Callable[[int], Place],
    ) -> Block:
        named = dict(zip(self.names, columns, strict=True))
        chosen = {
            name: self._notations.plain(name, self._with_nulls(name, named[name])) for name in self.chosen
        }
        return Block(
            rows=len(columns[0]),
            columns=chosen,
            rejects=rejects,
            find=find,
            is_text=True,
            has_empty_end=self._header.empty_end > 0,
            position=records.offset + len(records.data),
        )

    def _with_nulls(self, column: str, cells: pa.Array) -> pa.Array:
        nulls = self._options.null_values
        if not (self._options.follows_csv or column in self._notations):
            # A word for a missing value cannot have been one of a column of numbers, as a number may have.
            is_text = self._columns.get(column, ColumnType.TEXT) == ColumnType.TEXT
            nulls = () if is_text else tuple(text for text in nulls if not is_number(text))
        if not nulls:
            return cells
        return pc.if_else(pc.is_in(cells, value_set=pa.array(nulls, pa.string())), "", cells)


def _is_utf8(data: memoryview) -> bool:
    whole = pa.Array.from_buffers(
        pa.large_binary(),
        1,
        [None, pa.py_buffer(b"\0" * 8 + len(data).to_bytes(8, "little")), pa.py_buffer(data)],
    )
    try:
        whole.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True
