"""Content digests of data files, remembered between runs so that unchanged files are not read twice."""

import hashlib
import json
import os
import re
import stat
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

from slipway.pipeline.errors import PipelineError

# Measured on 2 cores with SHA instructions: sha256 1.2 GiB/s per core, blake2b 0.7. From 256 KiB per file on,
# two threads take 0.6 of the time of one; below 64 KiB they take longer than one.
_PARALLEL_FROM_BYTES = 1 << 20
# Eight cores hash about 10 GiB/s; beyond that the disk decides.
_MAX_THREADS = 8
# The coarsest file system clock still in use (FAT) ticks every 2 s; git has the same "racy" rule.
_RACY_NS = 2_000_000_000
_MEMO_VERSION = 1
_SHA256_HEX = re.compile(r"[0-9a-f]{64}")

# Size in bytes, mtime in ns, inode, ctime in ns: known without reading the file.
_Stamp = tuple[int, int, int, int]
_Memo = dict[str, tuple[_Stamp, str]]


def data_digests(files: Iterable[Path], *, base: Path, memo: Path | None) -> dict[str, str]:
    """Return the sha256 hex digest of the content of each file.

    With `memo`, a file is not read again while its path, size, mtime, inode and ctime are those under which
    it was hashed. Two rules prevent stale digests. A file that was changed less than 2 s before its hashing
    began, or during hashing, is not remembered: a second write within the same tick of the clock would be
    invisible. And since the kernel sets ctime at every change of content or times, an edit that keeps the
    size and resets mtime is noticed. Changes are missed only if a clock is set back to the same nanosecond,
    the raw disk is written below the file system, or a program keeps writing through a shared memory map
    (`mmap`) more than 2 s after its first write.

    The memo is only a cache: if it is missing, damaged or of another format, it is ignored and replaced. It
    holds no secrets, but anyone who can write it can make changed data look unchanged; keep it in the
    output folder. Concurrent writers are safe, the last one wins.

    Args:
        files: regular files; a symbolic link counts with the content of its target.
        base: the folder that names are relative to; a file outside keeps its absolute path.
        memo: a JSON file, created with its folders if missing; None reads every file.

    Returns:
        Name (posix) -> digest, sorted by name.

    Raises:
        PipelineError: a file is missing, unreadable or not a regular file.

    Warns:
        UserWarning: the memo could not be written; the digests are right, and the next call is slow.
    """
    paths = sorted({os.path.abspath(file) for file in files})  # noqa: PTH100  (resolve() would rename links)
    known = _load(memo) if memo is not None else {}
    digests: dict[str, str] = {}
    unknown: list[tuple[str, int]] = []
    for path in paths:
        stamp = _stamp_of(path)
        stamped, digest = known.get(path, (None, ""))
        if stamped == stamp:
            digests[path] = digest
        else:
            unknown.append((path, stamp[0]))
    fresh = _hash_all(unknown)
    digests.update((path, digest) for path, (digest, _) in fresh.items())
    learned: _Memo = {path: (stamp, digest) for path, (digest, stamp) in fresh.items() if stamp is not None}
    if memo is not None and learned:
        _save(memo, known | learned)
    top = os.path.abspath(base)  # noqa: PTH100
    return dict(sorted((_name(path, top), digest) for path, digest in digests.items()))


def _name(path: str, top: str) -> str:
    return Path(path).relative_to(top).as_posix() if Path(path).is_relative_to(top) else path


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns


def _stamp_of(path: str) -> _Stamp:
    try:
        status = os.stat(path)  # noqa: PTH116  (100,000 images: a Path for each doubles the time)
    except OSError as error:
        raise _unreadable(path, error.strerror) from error
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would block forever
        raise _unreadable(path, "not a regular file")
    return _stamp(status)


def _unreadable(path: str, reason: str | None) -> PipelineError:
    return PipelineError(
        f"{path}: cannot be read as a data file ({reason})",
        hint="Check data.source of the workload; every matched path must be a file this user may read.",
    )


def _hash_all(files: list[tuple[str, int]]) -> dict[str, tuple[str, _Stamp | None]]:
    """Hash files given as (path, size in bytes): the large ones in threads, which slow down small ones."""
    large = [path for path, size in files if size >= _PARALLEL_FROM_BYTES]
    threads = min(len(large), len(os.sched_getaffinity(0)), _MAX_THREADS)
    if threads < 2:
        return {path: _hash(path) for path, _ in files}
    from concurrent.futures import ThreadPoolExecutor  # 10 ms to import, which only large files need

    with ThreadPoolExecutor(threads) as pool:
        hashed = dict(zip(large, pool.map(_hash, large), strict=True))
    return hashed | {path: _hash(path) for path, size in files if size < _PARALLEL_FROM_BYTES}


def _hash(path: str) -> tuple[str, _Stamp | None]:
    """Return the digest and the stamp to remember it under.

    The stamp is None if a later edit could have the same.
    """
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            began_ns = time.time_ns()
            before = _stamp(os.fstat(stream.fileno()))
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            after = _stamp(os.fstat(stream.fileno()))
    except OSError as error:
        raise _unreadable(path, error.strerror) from error
    changed_ns = max(before[1], before[3])  # mtime too: some network file systems keep no ctime
    settled = before == after and began_ns - changed_ns > _RACY_NS
    return digest, before if settled else None


def _load(memo: Path) -> _Memo:
    try:
        content = json.loads(memo.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}  # no memo, or one truncated by a crash: hash everything, and rewrite the memo
    if not isinstance(content, dict) or content.get("version") != _MEMO_VERSION:
        return {}
    files = content.get("files")
    if not isinstance(files, dict):
        return {}
    return {path: ((*entry[:4],), entry[4]) for path, entry in files.items() if _is_entry(entry)}


def _is_entry(entry: object) -> bool:
    return (
        isinstance(entry, list)
        and len(entry) == 5
        and isinstance(entry[4], str)
        and _SHA256_HEX.fullmatch(entry[4]) is not None
    )


def _save(memo: Path, entries: _Memo) -> None:
    files = {path: [*stamp, digest] for path, (stamp, digest) in entries.items() if os.path.lexists(path)}
    draft = memo.with_name(f".{memo.name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    try:
        memo.parent.mkdir(parents=True, exist_ok=True)
        try:
            draft.write_text(json.dumps({"version": _MEMO_VERSION, "files": files}), encoding="ascii")
            draft.replace(memo)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        warnings.warn(f"{memo}: not written ({error}); the next run reads all data again", stacklevel=3)
