"""Reads the user's files into columns with Ingest's own readers, so that both see the same types."""

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slipway.components.ingest.blocks import BEYOND_64_BITS, check_columns
from slipway.components.ingest.column_notes import ColumnNotes
from slipway.components.ingest.column_types import Columns, ColumnType, merge
from slipway.components.ingest.compression import Stream
from slipway.components.ingest.csv_heads import check_heads
from slipway.components.ingest.file_kinds import AS_PARQUET, DUCKDB_AS_PARQUET, SPREADSHEET, UNPACK
from slipway.components.ingest.formats import FORMATS, WITH_COLUMNS, format_of
from slipway.components.ingest.options import Options
from slipway.components.ingest.parquet_table import column_kinds
from slipway.components.ingest.quarantine import describe
from slipway.components.ingest.source import check_spans, resolve_source
from slipway.components.ingest.spans import PLACEHOLDER, at_span, by_span, span_kind
from slipway.components.ingest.storage import StoredFile, fetched, list_files
from slipway.components.ingest.suffixes import SUFFIXES, is_hidden
from slipway.components.ingest.typed_rows import TOO_LARGE, typed_rows
from slipway.components.store_address import is_elsewhere
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.column_arrays import (
    are_merged,
    is_list,
    joined,
    list_arrays,
    rows_without_text,
    value_array,
)
from slipway.pipeline.start.dialect import dialect_of
from slipway.pipeline.start.encoding import check_encoding
from slipway.pipeline.start.number_like import codes, words
from slipway.pipeline.start.value_formats import (
    ValueFormats,
    decimal_signs,
    detect_value_formats,
    distinct_texts,
    maybe_thousands,
    whole_days,
)

# Enough to detect types, dates and rare categories; half a million rows of 20 columns are read in seconds.
MOST_ROWS = 500_000
# The size limit of the values, so that rows of long texts do not exhaust memory.
MOST_BYTES = 256 << 20
_HEAD_BYTES = 65_536
# Suffixes of tables beside those that Ingest finds in a folder.
_MORE_SUFFIXES = {"csv": (".tsv", ".txt")}
_SUFFIX_FORMATS = {
    suffix: name
    for name in WITH_COLUMNS
    for suffix in (*FORMATS[name].suffixes, *_MORE_SUFFIXES.get(name, ()))
}
_SHARD = re.compile(r"-\d+-of-\d+\Z")
_JSON = (
    "if each line is an object, name it .jsonl; if the whole file is one array: python -c 'import json, "
    "sys; [print(json.dumps(row)) for row in json.load(sys.stdin)]' < data.json > data.jsonl"
)
_TFRECORD = (
    "`new` does not read TFRecords: start with a copy of workloads/taxi, and set data.format to "
    "tfrecord (docs/data.md)"
)
_DATABASE = (
    "write the rows of a query to a CSV, or set data.format to sql in a copy of workloads/taxi (docs/data.md)"
)
_PANDAS_READERS = {
    ".feather": "read_feather", ".arrow": "read_feather", ".orc": "read_orc", ".dta": "read_stata",
    ".sas7bdat": "read_sas", ".sav": "read_spss", ".xml": "read_xml",
}  # fmt: skip
_OTHER_FILES = {
    **{end: AS_PARQUET.format(read) for end, read in _PANDAS_READERS.items()},
    **dict.fromkeys((".tfrecord", ".tfrecords"), _TFRECORD),
    **dict.fromkeys((".xlsx", ".xlsm", ".xls", ".ods"), SPREADSHEET),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), _DATABASE),
    ".duckdb": DUCKDB_AS_PARQUET,
    ".json": _JSON,
    ".avro": "pandas.DataFrame(fastavro.reader(open('data.avro', 'rb'))).to_parquet('data.parquet')",
    **dict.fromkeys((".zip", ".7z", ".rar", ".tar"), UNPACK),
}
_WHOLE = re.compile(r"-?[0-9]+")
# The largest share of undecodable values in a column of bytes that still counts as text; a column with more
# holds pictures or another encoding.
_FEW_WITHOUT_TEXT = 0.05
# The levels of folders below a folder without tables in which they are looked for, to say how to name them.
_MOST_LEVELS = 3


@dataclass(frozen=True)
class Table:
    """Columns of equal length.

    Attributes:
        columns: name -> values: float64 with NaN, or objects (str) with None, for a missing value.
        lists: name -> the values of each row, of columns in which a row may have several; float64 or objects.
        kinds: column, in the order of the file -> type of the values: "int", "float" or "text".
        rows: the number of rows that were read.
        is_whole: whether these are all rows of the data.
        file_format: one of `formats.WITH_COLUMNS`.
        first_reject: the first rejected row, as text; empty if there is none.
        unread: column that `new` cannot use -> what it holds, as text.
        value_formats: the settings that Ingest needs to parse the values; `columns` hold the parsed values.
        notes: values that Ingest reads differently from how they are written.
        has_empty_end: whether rows end with a delimiter that nothing follows.
        texts: columns of bytes that are text in nearly all rows; other rows are among the rejected.
        merged: columns of integers that float64 cannot tell apart, or that exceed 64 bits.
        as_text: columns that were read as text, and that a run would read otherwise without being told to.
        durations: columns whose type in the file is that of durations.
    """

    columns: dict[str, npt.NDArray[Any]]
    kinds: dict[str, str]
    rows: int
    is_whole: bool
    rejected: int
    file_format: str
    delimiter: str = ","
    quote: str = '"'
    first_reject: str = ""
    unread: Mapping[str, str] = field(default_factory=dict)
    value_formats: ValueFormats = field(default_factory=ValueFormats)
    notes: ColumnNotes = field(default_factory=ColumnNotes)
    has_empty_end: bool = False
    texts: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    as_text: tuple[str, ...] = ()
    durations: frozenset[str] = frozenset()
    lists: Mapping[str, Sequence[npt.NDArray[Any]]] = field(default_factory=dict)

    @property
    def columns_and_lists(self) -> dict[str, npt.NDArray[Any]]:
        """The columns and, as texts that are equal where the lists are, the columns of lists."""
        texts = {
            name: np.array([_digest(each) for each in lists], dtype=object)
            for name, lists in self.lists.items()
        }
        return {**self.columns, **texts}


def _digest(values: npt.NDArray[Any]) -> str:
    """Return a short text for the values of a list: that of embeddings itself would fill the memory."""
    content = repr(values.tolist()).encode() if values.dtype == object else values.tobytes()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def read_table(
    source: str,
    *,
    root: Path,
    null_values: Sequence[str] = (),
    most_rows: int = MOST_ROWS,
    most_bytes: int = MOST_BYTES,
) -> Table:
    """Read the first rows of a file, folder or glob.

    Args:
        source: as `data.source` of a workload; on this machine or in an object store. Of a source with spans,
            the latest is read, as by a run.
        root: the folder that a relative path is relative to.
        null_values: texts that mean a missing value anywhere in a CSV; an integer also matches with zeros
            after a decimal point.
        most_rows: approximate maximum number of rows to read.
        most_bytes: approximate maximum size of their values.

    Raises:
        ComponentError: the source does not exist or cannot be read.
        UsageError: its format is not known, or it holds no readable row.
    """
    file_format = _format_of(source, root)
    if is_elsewhere(source):
        check_spans([source])
        pattern = source
    else:
        found = resolve_source(source, root=root, file_format=file_format)
        pattern = str(Path(found.directory) / found.pattern)
    files = _of_a_run(pattern)
    if null_values and file_format != "csv":
        raise UsageError(
            f"--null-value {null_values[0]}: only the cells of a CSV are text.", hint="empty these cells"
        )
    null_values = _as_written(null_values)
    options = Options(format=file_format, null_values=null_values)
    if FORMATS[file_format].is_text:
        with fetched(files[0]) as file:
            check_encoding(file)
    if file_format == "csv":
        with fetched(files[0]) as file:
            dialect = dialect_of(Stream(file).read(_HEAD_BYTES), name=file.name)
        options = replace(options, delimiter=dialect.delimiter, quote=dialect.quote)
    if file_format == "csv" and "://" not in source:
        check_heads(found.files, label=None, options=options)
    nested: dict[str, str] = {}
    if file_format == "parquet":
        with fetched(files[0]) as file:
            flat, nested = column_kinds(file)
        if flat and nested:
            options = replace(options, columns=flat)
    table = _table(files, options, most_rows, most_bytes)
    if not table.rows:
        wrong_row = f" The first: {table.first_reject}" if table.first_reject else ""
        raise UsageError(
            f"{source} holds no readable row.{wrong_row}",
            hint="a CSV has a header and, below it, one line per row"
            if file_format == "csv"
            else "name a file with rows",
        )
    if texts_of_bytes := table.texts:
        options = replace(options, types=dict.fromkeys(texts_of_bytes, "text"))
        table = _table(files, options, most_rows, most_bytes)
    # If a row has several such columns, only the first is known.
    while merged := [name for name in table.merged if name not in options.types]:
        options = replace(options, types={**options.types, **dict.fromkeys(merged, "text")})
        table = _table(files, options, most_rows, most_bytes)
    texts = {name: values for name, values in table.columns.items() if table.kinds[name] == "text"}
    whole = {name: values for name, values in table.columns.items() if table.kinds[name] == "int"}
    fractions = {name: values for name, values in table.columns.items() if table.kinds[name] == "float"}
    distinct = distinct_texts(texts)
    maybe = list(fractions) if decimal_signs(distinct) == {","} else maybe_thousands(fractions)
    if file_format == "csv" and maybe:
        written = _table(files, replace(options, types=dict.fromkeys(maybe, "text")), most_rows, most_bytes)
        distinct |= distinct_texts({name: written.columns[name] for name in maybe})
    formats = detect_value_formats({**distinct, **whole_days(whole)}, has_types=file_format != "csv")
    formats = replace(formats, null_values=tuple(sorted({*null_values, *formats.null_values})))
    named = replace(options, null_values=formats.null_values, numbers=formats.numbers, dates=formats.dates)
    if formats.words:
        table = _table(files, named, most_rows, most_bytes)
    notes = table.notes
    if texts_of := codes(notes):
        named = replace(named, types={**named.types, **dict.fromkeys(texts_of, "text")})
        table = _table(files, named, most_rows, most_bytes)
    formats = replace(formats, words={**words(notes), **formats.words})
    return replace(
        table,
        value_formats=formats,
        texts=texts_of_bytes,
        unread={**table.unread, **nested},
        as_text=tuple(named.types),
    )


def _as_written(null_values: Sequence[str]) -> tuple[str, ...]:
    """Return the texts, and each integer also as pandas writes it in a float column ("7.0")."""
    whole = [text for text in null_values if _WHOLE.fullmatch(text)]
    return (*null_values, *(f"{text}{zeros}" for text in whole for zeros in (".0", ".00")))


def _table(files: Sequence[StoredFile], options: Options, most_rows: int, most_bytes: int) -> Table:
    """Read the rows of some files with the given options."""
    kinds: Columns = {}
    for stored in files:
        with fetched(stored) as file:
            kinds = merge(kinds, format_of(options).infer(file, options, options.known({})))
            check_columns(kinds, options.limits, of=f"the data up to {file.name}")
    guessed = [name for name in kinds if name not in options.types and name not in options.numbers]
    # Only the first wrong value of a row is known: numbers, which may be too large, come last.
    typed = dict(sorted(kinds.items(), key=lambda each: each[1] == ColumnType.FLOAT))
    notes = ColumnNotes()
    parts: dict[str, list[pa.Array]] = {name: [] for name in kinds}
    rows = rejected = size_bytes = 0
    first_reject = ""
    has_empty_end = False
    merged: set[str] = set()
    durations: set[str] = set()
    for stored in files:
        if rows >= most_rows or size_bytes >= most_bytes:
            break
        with fetched(stored) as file:
            for block in format_of(options).read(file, options, kinds):
                values, wrong = typed_rows(block, typed, limits=options.limits, guessed=guessed, notes=notes)
                # A column with numbers that are too large is left out, so a run reads its rows.
                unfit = [each for each in wrong.values() if each.reason != TOO_LARGE]
                rejects = [*block.rejects, *unfit]
                rejected += len(rejects)
                merged |= {each.column or "" for each in wrong.values() if each.reason == BEYOND_64_BITS}
                if rejects and not first_reject:
                    first_reject = describe(file.name, min(rejects, key=lambda each: each.place.offset))
                for name, column in values.items():
                    parts[name].append(column)
                    size_bytes += column.nbytes
                rows += block.rows
                has_empty_end |= block.has_empty_end
                durations |= block.units.keys()
                if rows >= most_rows or size_bytes >= most_bytes:
                    break
    columns = {name: joined(chunks) for name, chunks in parts.items() if chunks}
    no_text = {name: count for name, values in columns.items() if (count := rows_without_text(values))}
    unread = dict.fromkeys(no_text, "bytes that are not text")
    return Table(
        columns={
            name: value_array(column)
            for name, column in columns.items()
            if name not in unread and not is_list(column)
        },
        lists={
            name: list_arrays(column)
            for name, column in columns.items()
            if name not in unread and is_list(column)
        },
        kinds={name: _KINDS[kinds[name]] for name in columns if name not in unread},
        rows=rows,
        is_whole=rows < most_rows and size_bytes < most_bytes,
        rejected=rejected,
        file_format=options.format,
        delimiter=options.delimiter,
        quote=options.quote or "",
        first_reject=first_reject,
        unread=unread,
        notes=notes,
        has_empty_end=has_empty_end,
        texts=tuple(name for name, count in no_text.items() if count <= _FEW_WITHOUT_TEXT * rows),
        merged=tuple(name for name in columns if name in merged or are_merged(columns[name])),
        durations=frozenset(durations),
    )


_KINDS = {
    ColumnType.UNKNOWN: "float",
    ColumnType.INT: "int",
    ColumnType.FLOAT: "float",
    ColumnType.TEXT: "text",
}


def _of_a_run(pattern: str) -> list[StoredFile]:
    """Return the files that a run would read: with spans in the pattern, of the latest the latest version."""
    files = {Path(file.name): file for file in list_files(PLACEHOLDER.sub("*", pattern))}
    while span_kind([pattern]) and (spans := by_span(files, [pattern])):
        latest = max(spans)
        files = {path: files[path] for path in spans[latest]}
        pattern = at_span(pattern, latest).replace("{VERSION", "{SPAN")
    return list(files.values())


def _format_of(source: str, root: Path) -> str:
    names = [source]
    folder = root / source
    matched: list[str] = []
    if "://" not in source and not folder.exists():
        # Raises an error that says what exists instead, unless the source is a pattern that matches.
        found = resolve_source(source, root=root, file_format="csv")
        matched = [path.name for path in found.files]
    elif is_elsewhere(source) and source.endswith("*") and _end(source) not in _SUFFIX_FORMATS:
        matched = [file.name for file in list_files(source)]
    if len({_SUFFIX_FORMATS.get(_end(name)) for name in matched}) == 1:
        names += matched  # *.csv* stands for a.csv and b.csv.gz
    if "://" not in source and folder.is_dir():
        names = sorted(path.name for path in folder.iterdir() if not is_hidden(path.name, "*"))
    for name in names:
        if (end := _end(name)) in _SUFFIX_FORMATS:
            return _SUFFIX_FORMATS[end]
    other = next((_OTHER_FILES[end] for name in names if (end := _end(name)) in _OTHER_FILES), "")
    if not other and "://" not in source and (below := _pattern_below(folder)):
        other = (
            f"name those in its folders: --data {shlex.quote(f'{source}/{below}')}; what a folder's name "
            "says, such as year=2024, is not read"
        )
    raise UsageError(
        f"{source}: no file whose name ends in {', '.join(_SUFFIX_FORMATS)}.",
        hint=other or "give the files the suffix of their format; images need a folder for each class",
    )


def _pattern_below(folder: Path) -> str:
    """Return a pattern of the tables in the folders of a folder, such as */*.csv; empty if there are none."""
    for levels in range(1, _MOST_LEVELS + 1):
        for path in folder.glob("*/" * levels + "*"):
            if _end(path.name) in _SUFFIX_FORMATS and path.is_file():
                packed = path.suffix if path.suffix.lower() in SUFFIXES else ""
                return f"{'*/' * levels}*{Path(path.name.removesuffix(packed)).suffix}{packed}"
    return ""


def _end(name: str) -> str:
    """Return the suffix of a file name in lower case, ignoring those of a compression and of a shard."""
    path = Path(name.lower())
    suffix = Path(path.stem).suffix if path.suffix in SUFFIXES else path.suffix
    return _SHARD.sub("", suffix)
