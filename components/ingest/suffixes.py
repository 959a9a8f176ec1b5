"""The suffixes of file names that say how a file is compressed, and the files of a format in a folder."""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

# From the suffix to Arrow's name for the codec.
SUFFIXES: Mapping[str, str] = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd"}
_IN_STORE = "?"
_IMAGES = (".jpg", ".jpeg", ".png", ".gif", ".bmp")
_PACKED_OR_SHARD = rf"(?:-\d+-of-\d+)?(?:{'|'.join(map(re.escape, SUFFIXES))})?"


def in_store(pattern: str) -> str:
    """Return a pattern such as `*.csv` as it stands for a folder of a store, not listed yet: `?*.csv`."""
    return _IN_STORE + pattern


def is_in_store(pattern: str) -> bool:
    """Return True if the last level of a pattern was made by `in_store`."""
    return pattern.rpartition("/")[2].startswith(f"{_IN_STORE}*.")


def as_named(pattern: str) -> str:
    """Return a pattern without what `in_store` put before its last level."""
    folder, slash, last = pattern.rpartition("/")
    return f"{folder}{slash}{last.removeprefix(_IN_STORE)}" if is_in_store(pattern) else pattern


def left_out(names: Iterable[str], pattern: str, suffix: str, *, folder: str) -> tuple[str, str] | None:
    """Say which files of a format a folder's pattern leaves out, compressed ones or shards, and the remedy.

    Args:
        names: the names in the folder.
        suffix: the format's suffix, such as `.csv`.
        folder: the folder as the user knows it.
    """
    of_format = re.compile(f".+{re.escape(suffix)}{_PACKED_OR_SHARD}", re.IGNORECASE)
    there = sorted(name for name in names if of_format.fullmatch(name) and not is_hidden(name, pattern))
    others = [name for name in there if not fnmatchcase(name, pattern)]
    if not others:
        return None
    taken = [name for name in there if name not in set(others)]
    folder = folder.rstrip("/")
    every = f"{folder}/*{suffix}*"
    if not all(fnmatchcase(name, f"*{suffix}*") for name in there):
        every = f"{folder}/*{''.join(map(_in_any_case, suffix))}*"
    if not taken:
        return f"{folder}/ holds no file *{suffix}, but {others[0]}", f"name {every}"
    return (
        f"{folder}/ holds files of two kinds, such as {taken[0]} and {others[0]}, of which a folder "
        "stands for one",
        f"name {every} for all of them, or {folder}/{as_named(pattern)} for the first kind",
    )


def _in_any_case(letter: str) -> str:
    """Return a pattern of a letter, small or capital; other signs are returned as they are."""
    return f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else letter


def is_hidden(name: str, pattern: str) -> bool:
    """Return True if a path that a pattern matches is hidden: at some level, its name begins with `.` or `_`.

    Spark, Hive and Beam write such names beside the data (`_SUCCESS`, `_metadata`, `.part-0.crc`), and leave
    them out. A level of the pattern that begins alike means them. Cameras name images `_DSC0001.jpg`.
    """
    signs = "." if name.lower().endswith(_IMAGES) else "._"
    levels = zip(name.split("/"), pattern.split("/"), strict=False)
    return any(level[:1] != wanted[:1] and level.startswith(tuple(signs)) for level, wanted in levels)
