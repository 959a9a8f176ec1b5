"""Finds the files, folders and modules that a node's parameters name, to fingerprint their content."""

import glob
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.components.store_address import is_elsewhere, is_in_store

# The files of these parameters are handled elsewhere, by split and span; so are those of `input_config`,
# whose patterns start at `input_base`.
_READ_OTHERWISE = frozenset({"input_base", "artifact_uri"})
# The folders of these parameters of a data gate hold statistics.
_OF_STATISTICS = ("reference_folder", "serving_folder")
# The folders of these parameters are written, not read.
_WRITERS = frozenset({"Pusher"})
# `models.wide.build`, and as entry points are written, `models.wide:build` or `models/wide.py:build`.
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*[.:][A-Za-z_]\w*")
_IN_FILE = re.compile(r"(.*\.py)(:[A-Za-z_]\w*)?")
# Between several paths in one text: `train.csv,eval.csv`.
_BETWEEN = re.compile(r"\s*[,;\n]\s*")
# What code fills into a file's name: `data/{split}.csv`, `data/part-{:02d}.csv`, `data/part-%02d.csv`.
_FILLED_IN = re.compile(r"\{[^{}/]*\}|%\d*[ds]")
# Parameters that name a module even without a dot: the module of a component's functions, or of a metric.
_MODULES = frozenset({"module_path", "module"})


def named_files(
    values: Mapping[str, object],
    *,
    node_type: str,
    written: Iterable[Path] = (),
    folders: Iterable[Path] = (),
) -> tuple[list[str], list[str]]:
    """Return the files that parameters name, and glob patterns for named folders; absolute and sorted.

    Every text that is the path of a file counts, whether meant as a path or not; relative paths start at
    the working directory and at `folders`. A folder counts if the text is a parameter's whole value or has a
    slash; hidden files and folders in it match no pattern. A text that is itself a glob pattern counts if it
    has a slash, unless it may match what is written; so does one in which code fills in names or numbers. A
    text may name several, with commas between them, and the files of a TensorFlow checkpoint by what their
    names begin with. Python files are code, and are left out.

    Args:
        values: the parameters by name, with JSON texts parsed.
        written: folders that a run writes to. A folder that contains one of these, or one that relative
            paths start at, is left out.
        folders: absolute.
    """
    starts = dict.fromkeys((Path.cwd(), *folders))
    own = [*starts, *(path.absolute() for path in written)]
    files: set[str] = set()
    patterns: set[str] = set()
    for name, value in values.items():
        if name in _READ_OTHERWISE or (name == "input_config" and "input_base" in values):
            continue
        paths = (path for _, text in _named_texts("", value) for path in _paths_in(text))
        texts = (text for text in paths if text and not text.endswith(".py"))
        for text, start in itertools.product(texts, starts):
            path = Path(os.path.abspath(start / text))  # noqa: PTH100  (without following links)
            if os.path.isfile(path):  # noqa: PTH113  (False for impossible paths, e.g. a text of 5,000 letters)
                files.add(str(path))
            elif node_type in _WRITERS or not (text == value or "/" in text):
                continue
            elif os.path.isdir(path) and not _holds(path, own):  # noqa: PTH112
                patterns.add(f"{glob.escape(str(path))}/**/*")
            elif os.path.isfile(f"{path}.index"):  # noqa: PTH113
                patterns.add(f"{glob.escape(str(path))}.*")
            elif "/" in text and glob.has_magic(filled := _FILLED_IN.sub("*", str(path))):
                pattern = Path(filled)
                if not (_is_wide(pattern) and _holds(_base(pattern), own)):
                    patterns.add(filled)
    return sorted(files), sorted(patterns)


def statistics_patterns(values: Mapping[str, object]) -> list[str]:
    """Return glob patterns for the statistics in a store that a data gate compares with.

    Those on this machine are among `named_files`.

    Args:
        values: the parameters by name, with JSON texts parsed.
    """
    named = (str(values.get(name, "")).rstrip("/") for name in _OF_STATISTICS)
    folders = [glob.escape(folder) for folder in named if is_in_store(folder)]
    # In the folder itself is what the statistics do not hold, such as the number of rows.
    return [f"{folder}/{each}" for folder in folders for each in ("*", "Split-*/*")]


def imported_patterns(uri: str) -> list[str]:
    """Return glob patterns for what an Importer imports: the file of that name, or the folder with all in it.

    None for an address in a store, in which a pattern names objects of one level.
    """
    return [] if is_elsewhere(uri) else [glob.escape(uri), f"{glob.escape(uri)}/**/*"]


def named_code(values: Mapping[str, object]) -> set[str]:
    """Return the names in parameters that may be code: dotted paths, modules, and paths of Python files.

    A function may follow a colon.

    Args:
        values: the parameters by name, with JSON texts parsed.
    """
    found = set()
    for key, text in _named_texts("", values):
        files = {file[1] for path in _paths_in(text) if (file := _IN_FILE.fullmatch(path))}
        found |= files
        if not files and (_DOTTED.fullmatch(text) or (key in _MODULES and text.isidentifier())):
            found.add(text)
    return found


def _named_texts(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield every text in a value, with its key."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _named_texts(name, item)
    elif isinstance(value, list):
        for item in value:
            yield from _named_texts(key, item)


def _paths_in(text: str) -> Iterator[str]:
    """Yield what may be a path in a text: the whole, and the parts between commas, as Python opens them."""
    for part in dict.fromkeys((text, *_BETWEEN.split(text))):
        path = part.removeprefix("file://")
        yield os.path.expanduser(path) if path.startswith("~/") else path  # noqa: PTH111


def _base(pattern: Path) -> Path:
    """Return the folder in which a pattern's files are looked for."""
    return Path(*itertools.takewhile(lambda part: not glob.has_magic(part), pattern.parts))


def _is_wide(pattern: Path) -> bool:
    """Return True if a pattern matches all files, or files at any depth."""
    return pattern.name == "*" or "**" in pattern.parts


def _holds(folder: Path, own: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for path in own)
