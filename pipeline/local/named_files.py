"""The files and folders that a node's parameters name, so that their content counts."""

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# What these name is read in another way already, split by split and span by span.
_READ_OTHERWISE = frozenset({"input_base", "artifact_uri"})
# The folders that these name are written, not read.
_WRITERS = frozenset({"Pusher"})


def named_files(
    values: Mapping[str, Any], *, node_type: str, written: Iterable[Path] = ()
) -> tuple[list[str], list[str]]:
    """The files, and the patterns of the files in folders, that parameters name; each whole path, sorted.

    A text that is the path of a file counts, whether it was meant as one or not, from the folder that is
    worked in if it is relative. So does a folder, where the text is a parameter's whole value or has a slash.
    Python files are code, and not among them.

    Args:
        values: the parameters by name, JSON opened.
        node_type: the component's class name.
        written: what a run writes below; no folder counts that holds one of these, or the one worked in.
    """
    own = [Path.cwd(), *(path.absolute() for path in written)]
    files: set[str] = set()
    patterns: set[str] = set()
    for name, value in values.items():
        if name in _READ_OTHERWISE:
            continue
        for text in texts_in(value):
            path = Path(os.path.abspath(text)) if text else None  # noqa: PTH100  (without following links)
            if path is None or text.endswith(".py"):
                continue
            if os.path.isfile(path):  # noqa: PTH113  (False for what no path can be, as a text of 5,000 letters)
                files.add(str(path))
            elif node_type in _WRITERS or not (text == value or "/" in text):
                continue
            elif os.path.isdir(path) and not _holds(path, own):  # noqa: PTH112
                patterns.add(f"{glob.escape(str(path))}/**/*")
    return sorted(files), sorted(patterns)


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a parameter's value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def _holds(folder: Path, own: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for path in own)
