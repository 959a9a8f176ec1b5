"""Finds the raw files before any node starts, so that a wrong path is reported in milliseconds."""

import glob
import importlib.util
import itertools
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypedDict

from slipway.components.errors import ComponentError
from slipway.components.ingest.formats import FORMATS
from slipway.components.ingest.hub_address import data_set_and_path
from slipway.components.ingest.spans import PLACEHOLDER
from slipway.components.ingest.suffixes import is_hidden, left_out
from slipway.components.nearest import nearest
from slipway.components.store_address import AZ, GS, HF, S3, bucket_and_path, is_elsewhere, is_in_store

PACKAGE_PREFIX = "package://"
_OF_SPAN = re.compile(r"\{(SPAN|YYYY|MM|DD)(?::\d+)?\}")
_GLOB_CHARACTERS = re.compile(r"[*?\[]")
_GLOB_OR_ESCAPE = re.compile(r"[*?\[\\]")


class SourceError(ComponentError):
    """The data source of the workload does not exist or cannot be ingested."""


class PlainSource(TypedDict):
    """A `Source` in JSON types."""

    directory: str
    pattern: str
    files: list[str]


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a data source.

    Attributes:
        directory: absolute path of the folder that holds every file.
        pattern: glob relative to `directory` that matches exactly `files`, in TFX's syntax.
        files: absolute paths, sorted by name; at least one.
    """

    directory: Path
    pattern: str
    files: tuple[Path, ...]

    def to_json(self) -> PlainSource:
        """Return the source in JSON types for another process; `from_json` reads it back."""
        return {
            "directory": str(self.directory),
            "pattern": self.pattern,
            "files": [str(file) for file in self.files],
        }

    @classmethod
    def from_json(cls, data: PlainSource) -> Self:
        """Restore a source from what `to_json` returned."""
        return cls(Path(data["directory"]), data["pattern"], tuple(Path(file) for file in data["files"]))


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of a data source whose input splits may have separate patterns.

    Attributes:
        directory: the folder that holds every file: an absolute path, or its address in an object store or
            on the Hugging Face Hub.
        patterns: for each input split, a glob relative to `directory`, in TFX's syntax.
        files: absolute paths; none elsewhere, where files are listed when they are read.
    """

    directory: str
    patterns: Mapping[str, str]
    files: tuple[Path, ...]


def resolve_sources(sources: Mapping[str, str], *, root: Path, file_format: str = "csv") -> Sources:
    """Find the files of the input splits of a data source.

    Args:
        sources: for each input split, a source as for `resolve_source`, or an address in an object store
            or on the Hugging Face Hub; empty if no files are read.
        root: the folder that relative paths start from.
        file_format: a key of FORMATS.

    Raises:
        SourceError: no file is found, or a path is not supported.
    """
    if not sources:
        return Sources("", {}, ())
    if any(map(is_elsewhere, sources.values())):
        check_spans(sources.values())
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
    """Find the files of a data source.

    Args:
        source: a file, a directory (its files of the format), a glob, or package://PACKAGE/PATH for any of
            these inside an installed package, which is not imported. {SPAN}, {VERSION}, {YYYY}, {MM} and
            {DD} match anything here, and are left for TFX to resolve.
        root: the folder that relative paths start from.
        file_format: a key of FORMATS.

    Raises:
        SourceError: no file is found, a file is outside its package, or the spans are not complete.
    """
    if PLACEHOLDER.search(source):
        check_spans([source])
        found = resolve_source(PLACEHOLDER.sub("*", source), root=root, file_format=file_format)
        levels = found.pattern.count("/") + 1
        return replace(found, pattern="/".join(source.split("/")[-levels:]))
    if source.startswith(PACKAGE_PREFIX):
        package, path = _package_path(source)
        found = _found(source, path, file_format)
        for file in found.files:
            if not file.resolve().is_relative_to(package.resolve()):
                raise SourceError(f"{shown(source)} leads out of its package, to {shown(file)}")
        return found
    if "://" in source:
        raise SourceError(
            f"{shown(source)} is not on this machine",
            hint="copy it to a local folder and name that as data.source",
        )
    return _found(source, root.absolute() / source, file_format)


def check_spans(sources: Iterable[str]) -> None:
    """Reject a pattern whose spans TFX cannot read.

    Raises:
        SourceError: it has a part of a day only, as {YYYY}-{MM} for months, or has one part twice.
    """
    for source in sources:
        if sorted(_OF_SPAN.findall(source)) not in ([], ["SPAN"], ["DD", "MM", "YYYY"]):
            raise SourceError(
                f"{shown(source)}: spans are {{SPAN}}, or {{YYYY}}, {{MM}} and {{DD}} together, each once",
                hint="write '*' for what is no span: all files that match are then read",
            )


def _remote(sources: Mapping[str, str], file_format: str) -> Sources:
    split_paths = {}
    for split, source in sources.items():
        top, path = _top_and_path(source)
        if not path or path.endswith("/"):
            path += FORMATS[file_format].in_store
        split_paths[split] = [top, *path.split("/")]
    folders = [parts[:-1] for parts in split_paths.values()]
    side_by_side = zip(*folders, strict=False)
    common = [parts[0] for parts in itertools.takewhile(lambda parts: len(set(parts)) == 1, side_by_side)]
    fixed = next(
        (i for i, part in enumerate(common) if _GLOB_OR_ESCAPE.search(part) or "{" in part), len(common)
    )
    if not fixed:
        raise SourceError(
            "all input splits of a source must be in one bucket or data set", hint="see data.split_by.files"
        )
    patterns = {split: "/".join(parts[fixed:]) for split, parts in split_paths.items()}
    return Sources("/".join(common[:fixed]), patterns, ())


def _top_and_path(source: str) -> tuple[str, str]:
    """Return the address of the bucket or data set, and the path in it."""
    if source.startswith(HF):
        try:
            data_set, path = data_set_and_path(source)
        except ComponentError as error:
            raise SourceError(shown(error.message), hint=error.hint) from error
        return data_set.address, path
    bucket, path = bucket_and_path(source)
    if not is_in_store(source) or not bucket or source.count("/") < 3:
        raise SourceError(
            f"{shown(source)} must be {GS}BUCKET/PATH, {S3}BUCKET/PATH or {AZ}CONTAINER/PATH",
            hint="an object, a pattern, or a folder with '/' at its end",
        )
    return source.partition("://")[0] + "://" + bucket, path


def _package_path(source: str) -> tuple[Path, Path]:
    """Return the folder of the package, and the path inside it that `source` names."""
    package, _, path = source.removeprefix(PACKAGE_PREFIX).partition("/")
    if not package.isidentifier() or not path:
        raise SourceError(
            f"{shown(source)} must be package://PACKAGE/PATH",
            hint="for example package://tfx/examples/chicago_taxi_pipeline/data/simple/data.csv",
        )
    if ".." in Path(path).parts or Path(path).is_absolute():
        raise SourceError(f"{shown(source)} leads out of its package", hint="remove '..' and doubled '/'")
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # a module without a spec, such as __main__
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise SourceError(
            f"{shown(source)}: no package {package!r} is installed", hint="install it into this environment"
        )
    folder = Path(next(iter(spec.submodule_search_locations)))
    return folder, folder / path


def _found(source: str, path: Path, file_format: str) -> Source:
    try:
        found = _find(source, path, file_format)
    except OSError as error:  # a folder without permission, a name that is too long
        raise SourceError(f"{shown(source)} cannot be read: {error.strerror}") from error
    for file in found.files:
        if not _is_utf8(str(file)):  # TFX's metadata cannot hold other bytes
            raise SourceError(
                f"{shown(file)}: its path holds bytes that are not UTF-8",
                hint="rename that file or folder, or name a data.source that leaves it out",
            )
    # TFX joins directory and pattern to one glob, in which '\\' escapes the next character.
    if _GLOB_OR_ESCAPE.search(str(found.directory)) or "\\" in found.pattern:
        raise SourceError(
            f"{shown(source)}: TFX reads the path {shown(found.directory / found.pattern)} for a pattern",
            hint="rename what has '*', '?', '[' or '\\' in its name; only data.source may be a glob",
        )
    return found


def _find(source: str, path: Path, file_format: str) -> Source:
    if path.is_file():
        return Source(path.parent, glob.escape(path.name), (path,))
    if path.is_dir():
        patterns = FORMATS[file_format].in_folder
        there = (pattern for pattern in patterns if _files(path, pattern))
        pattern = next(there, patterns[0])
        names = [file.name for file in path.iterdir()]
        for suffix in FORMATS[file_format].suffixes if "/" not in pattern else ():  # images lie deeper
            if words := left_out(names, pattern, suffix, folder=shown(source)):
                raise SourceError(words[0], hint=words[1])
        return _matching(source, path, pattern)
    fixed = [part for part in path.parts if not _GLOB_CHARACTERS.search(part)]
    if path.exists():
        raise SourceError(
            f"{shown(source)} is a pipe or a device: a source is read more than once",
            hint="write its content to a file first: cat PIPE > data.csv",
        )
    globbed = next((i for i, part in enumerate(path.parts) if _GLOB_CHARACTERS.search(part)), None)
    if globbed is None:
        raise SourceError(
            f"{shown(source)} does not exist{_nearest_entry(path)}", hint=_looked_at(path, source)
        )
    directory = Path(*fixed[:globbed])
    pattern = "/".join(path.parts[globbed:])
    if "**" in pattern:
        raise SourceError(
            f"{shown(source)}: '**' is not supported", hint="write one '*' for each level of folders"
        )
    if not directory.is_dir():
        wrong = "is not a folder" if directory.exists() else "does not exist"
        raise SourceError(f"{shown(source)}: {shown(directory)} {wrong}", hint=_looked_at(directory, source))
    return _matching(source, directory, pattern)


def _files(directory: Path, pattern: str) -> tuple[Path, ...]:
    found = (path for path in directory.glob(pattern) if path.is_file())
    return tuple(
        sorted(path for path in found if not is_hidden(path.relative_to(directory).as_posix(), pattern))
    )


def _matching(source: str, directory: Path, pattern: str) -> Source:
    if not (files := _files(directory, pattern)):
        there = sorted(path.name for path in directory.iterdir())[:5]
        found = f"there are {', '.join(map(shown, there))}" if there else "the folder is empty"
        if any(path.is_file() for path in directory.glob(pattern)):
            found += "; names that begin with '.' or '_' are left out unless they are named"
        raise SourceError(
            f"{shown(source)} matches no file: no {shown(pattern)} in {shown(directory)}", hint=found
        )
    return Source(directory, pattern, files)


def _nearest_entry(path: Path) -> str:
    if path.is_symlink():
        return f": it is a link to {shown(path.readlink())}, which leads nowhere"
    if not path.parent.is_dir():
        return ""
    close = nearest(path.name, [entry.name for entry in path.parent.iterdir()])
    return f"; nearest: {shown(close)}" if close else ""


def _is_utf8(path: str) -> bool:
    """Return True if a path is valid UTF-8; Python represents other bytes as lone surrogates."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _looked_at(path: Path, source: str) -> str:
    is_relative = not Path(source).is_absolute()
    rule = f"; {shown(source)} is relative to the project's root" if is_relative else ""
    return f"looked for {shown(path)}{rule}"


def shown(name: str | Path) -> str:
    """Return the name unchanged if it is safe to print on a terminal, else escaped."""
    return str(name) if str(name).isprintable() else repr(str(name))
