"""Keeps the rows of queries, and finds the rows of a query that ran before.

    queries/<workload>/<digest>/part-00000.parquet ...   the rows, in a folder named by a digest of them;
                                                         rows of a span are in span-<number>/
    queries/<workload>/<digest>/result.json              the query, what it read, columns, rows
    queries/<workload>/asked/<key>.json                  the digest of the rows for a query and what it read

The folder is named by its content, so that a query which gives the same rows again makes no node run again.
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

from slipway.components.atomic_file import whole_file
from slipway.components.ingest.query.duck import Written

PATTERN = "part-*.parquet"
_ABOUT = "result.json"
_DRAFT = ".draft-"
# The newest results are kept, and those that were used recently, since a run may be reading them.
_KEPT = 5
_IN_USE_S = 7 * 24 * 3600.0
# Part of every key: changing it invalidates all kept results.
_FORM = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The kept rows of a query.

    Attributes:
        folder: the folder whose only Parquet files are those of `pattern`.
        rows: the number of rows, at least 1.
        span: the rows' span as TFX counts spans; None if they have none.
    """

    folder: Path
    rows: int
    columns: tuple[str, ...]
    span: int | None = None

    @property
    def pattern(self) -> str:
        """The pattern of the rows' files below `folder`, in TFX's syntax."""
        return PATTERN if self.span is None else f"span-{{SPAN}}/{PATTERN}"

    @property
    def files(self) -> tuple[Path, ...]:
        """The rows' files, in order."""
        return tuple(sorted(self.folder.rglob(PATTERN)))


def key_of(query_identity: Mapping[str, object]) -> str:
    """Return the key of a query, a hex sha256.

    Args:
        query_identity: the query and everything that its rows depend on, as plain data.
    """
    return hashlib.sha256(json.dumps([_FORM, query_identity], sort_keys=True).encode()).hexdigest()


def recall(folder: Path, key: str) -> Result | None:
    """Return the rows that were kept for a key; None if there are none.

    Args:
        folder: the folder of the workload's queries.
        key: the query's key, from `key_of`.
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
        return None  # removed, or truncated by a full disk: the query runs again
    return result


@contextmanager
def draft(folder: Path) -> Iterator[Path]:
    """Create a folder next to the kept ones, and remove it at the end of the context."""
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
    """Keep rows, unless the same rows are kept already.

    Args:
        folder: the folder of the workload's queries.
        rows: the folder with the rows' parts, on the same disk; it is moved.
        key: the key to recall the rows by, from `key_of`; None: the query runs again each time.
        span: the rows' span as TFX counts spans; None if they have none.
        about: further entries of `result.json`, for people.
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
        with suppress(OSError):  # it exists: another process was quicker, or a full disk truncated it
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
    """Return the size of each part, since a power loss may leave it shorter than it was written."""
    return {path.name: path.stat().st_size for path in folder.rglob(PATTERN)}


def _changed_s(path: Path) -> float:
    """Return the time of a result's last use; 0 if another run has removed it in the meantime."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _remove_old(folder: Path, current: Path) -> None:
    """Remove results not used recently, drafts of processes that died, and entries that point to them."""
    since = time.time() - _IN_USE_S
    others = [path for path in folder.iterdir() if path.is_dir() and path not in (current, folder / "asked")]
    drafts = [path for path in others if path.name.startswith(_DRAFT)]
    results = sorted(set(others).difference(drafts), key=_changed_s, reverse=True)
    for path in [*drafts, *results[_KEPT - 1 :]]:
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < since:
                shutil.rmtree(path, ignore_errors=True)
    for pointer in (folder / "asked").glob("*.json"):
        with suppress(OSError, ValueError, KeyError):
            if not (folder / json.loads(pointer.read_bytes())["digest"]).is_dir():
                pointer.unlink()
