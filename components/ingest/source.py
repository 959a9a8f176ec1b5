"""Where the raw files are, and whether they can be ingested: checked before any node starts.

Only names and the head of each file are read: a wrong path or a missing label is told in milliseconds.
"""

import codecs
import csv
import difflib
import glob
import importlib.util
import io
import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self

from components.errors import ComponentError
from components.ingest.options import Options
from components.ingest.suffixes import SUFFIXES

PACKAGE_PREFIX = "package://"
GS = "gs://"
# What a folder stands for, by format; the first that matches any file.
FOLDER_PATTERNS: Mapping[str, tuple[str, ...]] = {
    "csv": ("*.csv", "*.csv.*"),
    "jsonl": ("*.jsonl", "*.jsonl.*"),
    "parquet": ("*.parquet",),
    "tfrecord": ("*.tfrecord", "*.tfrecord*", "*"),
    "npz": ("*.npz",),
    "images": ("*/*",),
}
_PLACEHOLDER = re.compile(r"\{(?:SPAN|VERSION|YYYY|MM|DD)(?::\d+)?\}")
HEAD_BYTES = 256 * 1024  # far above any header; a file's rows are the ingest's business
_GLOB_CHARACTERS = re.compile(r"[*?\[]")
_GLOB_OR_ESCAPE = re.compile(r"[*?\[\\]")
_UTF8_BOM = codecs.BOM_UTF8
_OTHER_SEPARATORS = (";", "\t", "|")


class SourceError(ComponentError):
    """The data source of the workload does not exist or cannot be ingested."""


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a data source.

    Attributes:
        directory: absolute; holds every file.
        pattern: glob relative to `directory` that matches exactly `files`, in the syntax that TFX takes.
        files: absolute, sorted by name, at least one.
    """

    directory: Path
    pattern: str
    files: tuple[Path, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for another process; `from_json` reads it back."""
        return {
            "directory": str(self.directory),
            "pattern": self.pattern,
            "files": [str(file) for file in self.files],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads what `to_json` wrote."""
        return cls(Path(data["directory"]), data["pattern"], tuple(Path(file) for file in data["files"]))


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of a data source whose input splits may have patterns of their own.

    Attributes:
        directory: holds every file; absolute, or gs://bucket/folder.
        patterns: by input split, a glob relative to `directory`, in the syntax that TFX takes.
        files: absolute; none for gs://, where they are listed when they are read.
    """

    directory: str
    patterns: Mapping[str, str]
    files: tuple[Path, ...]


def resolve_sources(sources: Mapping[str, str], *, root: Path, file_format: str = "csv") -> Sources:
    """Finds the files of the input splits of a data source.

    Args:
        sources: by input split, what `resolve_source` takes, or gs://BUCKET/PATH.
        root: the folder that a relative path is relative to.
        file_format: a key of FOLDER_PATTERNS.

    Raises:
        SourceError: nothing is there, or a path cannot be taken.
    """
    if any(source.startswith(GS) for source in sources.values()):
        return _remote(sources, file_format)
    found = {
        split: resolve_source(source, root=root, file_format=file_format) for split, source in sources.items()
    }
    directory = Path(os.path.commonpath([each.directory for each in found.values()]))
    patterns = {
        split: (each.directory.relative_to(directory) / each.pattern).as_posix()
        for split, each in found.items()
    }
    files = tuple(file for each in found.values() for file in each.files)
    return Sources(str(directory), patterns, files)


def resolve_source(source: str, *, root: Path, file_format: str = "csv") -> Source:
    """Finds the files of a data source.

    Args:
        source: a file, a directory (its files of the format), a glob, or package://PACKAGE/PATH for any of
            these inside an installed package, which is not imported. {SPAN}, {VERSION}, {YYYY}, {MM} and
            {DD} match anything here, and are left for TFX to resolve.
        root: the folder that a relative path is relative to.
        file_format: a key of FOLDER_PATTERNS.

    Raises:
        SourceError: nothing is there, or it lies outside of its package.
    """
    if _PLACEHOLDER.search(source):
        found = resolve_source(_PLACEHOLDER.sub("*", source), root=root, file_format=file_format)
        levels = found.pattern.count("/") + 1
        return replace(found, pattern="/".join(source.split("/")[-levels:]))
    if source.startswith(PACKAGE_PREFIX):
        package, path = _package_path(source)
        found = _found(source, path, file_format)
        for file in found.files:
            if not file.resolve().is_relative_to(package.resolve()):
                raise SourceError(f"{_shown(source)} leads out of its package, to {_shown(file)}")
        return found
    if "://" in source:
        raise SourceError(
            f"{_shown(source)} is not on this machine",
            hint="copy it to a local folder and name that as data.source",
        )
    return _found(source, root.absolute() / source, file_format)


def check_heads(files: Sequence[Path], *, label: str, options: Options) -> None:
    """Checks what can be checked before a run of the files of a source; of compressed ones nothing.

    Raises:
        SourceError: names the file, what was expected and what was found.
    """
    if options.format != "csv":
        return
    if options.column_names:
        if label not in options.column_names:
            raise SourceError(f"data.column_names has no {label!r}, which data.label names")
        return
    plain = [file for file in files if file.suffix.lower() not in SUFFIXES]
    if plain and codecs.lookup(options.encoding).name == "utf-8":
        check_csv(plain, label=label, delimiter=options.delimiter, quote=options.quote)


def check_csv(
    files: Sequence[Path], *, label: str, delimiter: str = ",", quote: str | None = '"'
) -> tuple[str, ...]:
    """Checks the head of every file, and returns the names of the columns.

    Each file must be UTF-8 text with a header and at least one row as long as it; names must be unique and
    the same in all files, and `label` must be among them.

    Args:
        files: not compressed.
        label: a column.
        delimiter: between two fields.
        quote: around fields; None where it has no meaning.

    Raises:
        SourceError: names the file, what was expected and what was found.
    """
    first, *others = files
    dialect = (delimiter, quote)
    columns = _checked_header(first, dialect)
    if label not in columns:
        raise _no_label(first, columns, label)
    for file in others:
        if (header := _checked_header(file, dialect)) != columns:
            raise _other_header(file, header, first, columns)
    return columns


def _remote(sources: Mapping[str, str], file_format: str) -> Sources:
    split_paths = {}
    for split, source in sources.items():
        bucket, slash, path = source.removeprefix(GS).partition("/")
        if not source.startswith(GS) or not bucket or not slash:
            raise SourceError(
                f"{_shown(source)} must be {GS}BUCKET/PATH",
                hint="an object, a pattern, or a folder with '/' at its end",
            )
        if not path or path.endswith("/"):
            path += FOLDER_PATTERNS[file_format][0]
        split_paths[split] = [bucket, *path.split("/")]
    folders = [parts[:-1] for parts in split_paths.values()]
    side_by_side = zip(*folders, strict=False)
    common = [parts[0] for parts in itertools.takewhile(lambda parts: len(set(parts)) == 1, side_by_side)]
    fixed = next(
        (i for i, part in enumerate(common) if _GLOB_OR_ESCAPE.search(part) or "{" in part), len(common)
    )
    if not fixed:
        raise SourceError(
            "all input splits of a source must be in one bucket", hint="see data.split_by.files"
        )
    patterns = {split: "/".join(parts[fixed:]) for split, parts in split_paths.items()}
    return Sources(GS + "/".join(common[:fixed]), patterns, ())


def _package_path(source: str) -> tuple[Path, Path]:
    """The folder of the package, and the path inside it that `source` names."""
    package, _, path = source.removeprefix(PACKAGE_PREFIX).partition("/")
    if not package.isidentifier() or not path:
        raise SourceError(
            f"{_shown(source)} must be package://PACKAGE/PATH",
            hint="for example package://tfx/examples/chicago_taxi_pipeline/data/simple/data.csv",
        )
    if ".." in Path(path).parts or Path(path).is_absolute():
        raise SourceError(f"{_shown(source)} leads out of its package", hint="remove '..' and doubled '/'")
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # a module without a spec, such as __main__
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise SourceError(
            f"{_shown(source)}: no package {package!r} is installed", hint="install it into this environment"
        )
    folder = Path(next(iter(spec.submodule_search_locations)))
    return folder, folder / path


def _found(source: str, path: Path, file_format: str) -> Source:
    try:
        found = _find(source, path, file_format)
    except OSError as error:  # a folder without permission, a name that is too long
        raise SourceError(f"{_shown(source)} cannot be read: {error.strerror}") from error
    # TFX joins directory and pattern to one glob, in which '\\' hides the character behind it.
    if _GLOB_OR_ESCAPE.search(str(found.directory)) or "\\" in found.pattern:
        raise SourceError(
            f"{_shown(source)}: TFX takes the path {_shown(found.directory / found.pattern)} for a pattern",
            hint="rename what has '*', '?', '[' or '\\' in its name; only data.source may be a glob",
        )
    return found


def _find(source: str, path: Path, file_format: str) -> Source:
    if path.is_file():
        return Source(path.parent, glob.escape(path.name), (path,))
    if path.is_dir():
        patterns = FOLDER_PATTERNS[file_format]
        there = (pattern for pattern in patterns if any(path.glob(pattern)))
        return _matching(source, path, next(there, patterns[0]))
    fixed = [part for part in path.parts if not _GLOB_CHARACTERS.search(part)]
    globbed = next((i for i, part in enumerate(path.parts) if _GLOB_CHARACTERS.search(part)), None)
    if globbed is None:
        raise SourceError(f"{_shown(source)} does not exist{_nearest_entry(path)}", hint=_looked_at(path))
    directory = Path(*fixed[:globbed])
    pattern = "/".join(path.parts[globbed:])
    if "**" in pattern:
        raise SourceError(
            f"{_shown(source)}: '**' is not taken", hint="write one '*' for each level of folders"
        )
    if not directory.is_dir():
        raise SourceError(
            f"{_shown(source)}: {_shown(directory)} is not a folder", hint=_looked_at(directory)
        )
    return _matching(source, directory, pattern)


def _matching(source: str, directory: Path, pattern: str) -> Source:
    files = tuple(sorted(path for path in directory.glob(pattern) if path.is_file()))
    if not files:
        there = sorted(path.name for path in directory.iterdir())[:5]
        found = f"there are {', '.join(map(_shown, there))}" if there else "the folder is empty"
        raise SourceError(
            f"{_shown(source)} matches no file: no {_shown(pattern)} in {_shown(directory)}", hint=found
        )
    return Source(directory, pattern, files)


def _nearest_entry(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    close = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1)
    return f"; nearest: {_shown(close[0])}" if close else ""


def _looked_at(path: Path) -> str:
    return f"looked for {_shown(path)}; relative paths are relative to the project's root"


def _checked_header(file: Path, dialect: tuple[str, str | None]) -> tuple[str, ...]:
    text, is_whole = _head(file)
    # Cut inside a line, the last one would look shorter than it is.
    text = text if is_whole else text[: text.rfind("\n") + 1]
    try:
        delimiter, quote = dialect
        rows = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=delimiter,
            quotechar=quote,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        )
        header = next((row for row in rows if row), None)
        first_row = next((row for row in rows if row), None)
    except csv.Error as error:
        raise SourceError(
            f"{_shown(file)} is not CSV: {error}", hint="check the quotes in its first rows"
        ) from error
    if header is None or first_row is None:
        what = "has a header but no rows" if header else "has no header"
        if not is_whole:
            what = f"has no header and first row within {HEAD_BYTES} bytes"
        raise SourceError(
            f"{_shown(file)} {what}", hint="a CSV needs a line of column names, and rows below it"
        )
    _check_names(file, header)
    if len(first_row) != len(header):
        raise SourceError(
            f"{_shown(file)}: the first row has {len(first_row)} values, the header {len(header)} names",
            hint="quote values that hold the delimiter, and end no line with it; see data.delimiter",
        )
    return tuple(header)


def _head(file: Path) -> tuple[str, bool]:
    """The first HEAD_BYTES of the file as text, and whether that is all of it."""
    try:
        with file.open("rb") as stream:
            head = stream.read(HEAD_BYTES + 1)
    except FileNotFoundError as error:
        raise SourceError(f"{_shown(file)} does not exist") from error
    except OSError as error:
        raise SourceError(f"{_shown(file)} cannot be read: {error.strerror}") from error
    if not head.strip():
        raise SourceError(
            f"{_shown(file)} is empty", hint="a CSV needs a line of column names, and rows below it"
        )
    head = head.removeprefix(_UTF8_BOM)
    is_whole = len(head) <= HEAD_BYTES
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head, final=is_whole)
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        raise SourceError(
            f"{_shown(file)} is not UTF-8 text (line {line})",
            hint="set data.encoding, as latin-1 or utf-16; compressed files must be named .gz, .bz2 or .zst",
        ) from error
    if "\0" in text:
        raise SourceError(
            f"{_shown(file)} is not text", hint="set data.format, or data.encoding if it is utf-16"
        )
    return text, is_whole


def _check_names(file: Path, header: list[str]) -> None:
    for index, name in enumerate(header):
        if not name.strip():
            raise SourceError(
                f"{_shown(file)}: column {index + 1} has no name",
                hint="name it in the header, or leave it out",
            )
        if name in header[:index]:
            raise SourceError(
                f"{_shown(file)}: two columns are named {name!r} ({header.index(name) + 1} and {index + 1})",
                hint="rename one of them; only one would be read",
            )


def _no_label(file: Path, columns: tuple[str, ...], label: str) -> SourceError:
    close = difflib.get_close_matches(label, columns, n=1)
    separator = next((each for each in _OTHER_SEPARATORS if len(columns) == 1 and each in columns[0]), None)
    if separator:
        hint = f"the header seems to be separated by {separator!r}; set data.delimiter"
    elif close:
        hint = f"set data.label to {close[0]!r}"
    else:
        hint = f"there are {', '.join(map(_shown, columns[:20]))}{', ...' if len(columns) > 20 else ''}"
    nearest = f"; nearest: {close[0]!r}" if close else ""
    return SourceError(f"{_shown(file)} has no column {label!r}, which data.label names{nearest}", hint=hint)


def _other_header(file: Path, header: tuple[str, ...], first: Path, columns: tuple[str, ...]) -> SourceError:
    index, (found, expected) = next(
        (i, pair) for i, pair in enumerate(zip_longest(header, columns)) if pair[0] != pair[1]
    )
    has = "no further column" if found is None else repr(found)
    other = "no further column" if expected is None else repr(expected)
    return SourceError(
        f"{_shown(file)} has another header than {_shown(first)}: column {index + 1} is {has}, not {other}",
        hint="all files of a source need the same columns in the same order",
    )


def _shown(name: str | Path) -> str:
    """The name as it is where it is harmless on a terminal, else escaped."""
    return str(name) if str(name).isprintable() else repr(str(name))
