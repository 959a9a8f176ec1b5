"""Keeps the rows of queries, and finds those of a query that was asked before.

    queries/<workload>/<digest>/part-00000.parquet ...   the rows: equal rows in whatever order, equal folder;
                                                         those of a span in span-<number>/
    queries/<workload>/<digest>/result.json              the text, what it read, columns, rows
    queries/<workload>/asked/<key>.json                  which rows a text gives over what it read

The folder is named by its content, so that rows which are the same again make no node run again.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from slipway.components.ingest.query.duck import Written
from slipway.components.whole_file import whole_file

PATTERN = "part-*.parquet"
_ABOUT = "result.json"
_DRAFT = ".draft-"
# The newest stay, and what was used lately: a run may be reading it.
_KEPT = 5
_IN_USE_S = 7 * 24 * 3600.0
# Another number forgets all that was kept.
_FORM = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The rows of a query.

    Attributes:
        folder: holds `pattern` and nothing else of Parquet.
        rows: how many, at least 1.
        columns: their names, in order.
        span: their number as TFX counts spans; None: they have none.
    """

    folder: Path
    rows: int
    columns: tuple[str, ...]
    span: int | None = None

    @property
    def pattern(self) -> str:
        """Of the rows' files below `folder`, as TFX takes it."""
        return PATTERN if self.span is None else f"span-{{SPAN}}/{PATTERN}"

    @property
    def files(self) -> tuple[Path, ...]:
        """The rows' files, in order."""
        return tuple(sorted(self.folder.rglob(PATTERN)))


def key_of(asked: Mapping[str, object]) -> str:
    """The name of what is asked: sha256 in hexadecimal.

    Args:
        asked: the text and all that its rows depend on, as plain data.
    """
    return hashlib.sha256(json.dumps([_FORM, asked], sort_keys=True).encode()).hexdigest()


def recall(folder: Path, key: str) -> Result | None:
    """The rows that were kept for a key; None if there are none.

    Args:
        folder: of the workload's queries.
    """
    try:
        digest = json.loads((folder / "asked" / f"{key}.json").read_bytes())["digest"]
        about = json.loads((folder / digest / _ABOUT).read_bytes())
        columns = tuple(about["columns"])
        result = Result(folder=folder / digest, rows=about["rows"], columns=columns, span=about["span"])
        if _sizes(result.folder) != about["parts"]:
            return None
        os.utime(result.folder)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # removed, or cut by a full disk: it is asked again
    return result


@contextmanager
def draft(folder: Path) -> Iterator[Path]:
    """A new folder beside the kept ones, which is gone at the end."""
    made = folder / f"{_DRAFT}{os.getpid()}-{time.monotonic_ns()}"
    made.mkdir(parents=True)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def keep(
    folder: Path,
    rows: Path,
    *,
    key: str | None,
    written: Written,
    span: int | None,
    about: Mapping[str, object],
) -> Result:
    """Keeps rows, or finds that the same ones are kept already.

    Args:
        folder: of the workload's queries.
        rows: holds their parts; on the same disk.
        key: of `key_of`, to recall them by; None: they are asked for again each time.
        written: how many they are, and their checksum.
        span: their number as TFX counts spans; None: they have none.
        about: for people, in `result.json`.
    """
    digest = hashlib.sha256(f"{written.checksum} {span}".encode()).hexdigest()[:16]
    result = Result(folder=folder / digest, rows=written.rows, columns=written.columns, span=span)
    if span is not None:
        below = rows.with_name("spans")
        below.mkdir()
        rows.rename(below / f"span-{span}")
        rows = below
    parts = _sizes(rows)
    if not _is_whole(result.folder):
        document = {
            **about,
            "rows": result.rows,
            "columns": list(result.columns),
            "span": span,
            "parts": parts,
        }
        (rows / _ABOUT).write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
        with suppress(OSError):  # there is one: another process was quicker, or a disk cut it
            rows.rename(result.folder)
        if not _is_whole(result.folder):
            shutil.rmtree(result.folder, ignore_errors=True)
            rows.rename(result.folder)
    os.utime(result.folder)
    if key is not None:
        (folder / "asked").mkdir(exist_ok=True)
        with whole_file(folder / "asked" / f"{key}.json") as pointer:
            pointer.write_text(json.dumps({"digest": digest}), "ascii")
    _remove_old(folder, result.folder)
    return result


def _is_whole(folder: Path) -> bool:
    try:
        about = json.loads((folder / _ABOUT).read_bytes())
    except (OSError, ValueError):
        return False
    return bool(_sizes(folder) == about.get("parts"))


def _sizes(folder: Path) -> dict[str, int]:
    """The bytes of each part: a machine that lost its power may leave it shorter than it was written."""
    return {path.name: path.stat().st_size for path in folder.rglob(PATTERN)}


def _remove_old(folder: Path, current: Path) -> None:
    """Removes results that were not used lately, drafts of processes that died, and what points to them."""
    since = time.time() - _IN_USE_S
    others = [path for path in folder.iterdir() if path.is_dir() and path not in (current, folder / "asked")]
    drafts = [path for path in others if path.name.startswith(_DRAFT)]
    results = sorted(set(others).difference(drafts), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in [*drafts, *results[_KEPT - 1 :]]:
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < since:
                shutil.rmtree(path, ignore_errors=True)
    for pointer in (folder / "asked").glob("*.json"):
        with suppress(OSError, ValueError, KeyError):
            if not (folder / json.loads(pointer.read_bytes())["digest"]).is_dir():
                pointer.unlink()
