"""The lineage of a run: digests of data and code, package versions, and the command that repeats the run."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.screen.wording import run_command

_SHOWN_FILES = 60
# Paths by import name; records of earlier versions lack the prefix `slipway/`.
_OUR_FILES = ("slipway/", "components/", "pipeline/")


@dataclass(frozen=True)
class Lineage:
    """The lineage of a run.

    Attributes:
        command: the command that repeats the run, with code and data as they are when it is called.
        data: (file, digest), at most 60.
        code_digest: digest over all code files that any node depends on; empty if none are known.
        code: (file, digest) of the workload's own files, at most 60.
        code_files: the number of files in `code_digest`.
        stack: (package, version).
    """

    command: str
    data: tuple[tuple[str, str], ...]
    code_digest: str
    code: tuple[tuple[str, str], ...]
    code_files: int
    stack: tuple[tuple[str, str], ...]


def lineage(record: RunRecord, prints: Mapping[str, Fingerprint]) -> Lineage | None:
    """Return the lineage of a run, or None for a rollback or a run that ended before it was planned."""
    if not prints:
        return None
    parts = {name: value for own in prints.values() for name, value in own.parts.items()}
    code, data, stack = (_of_kind(kind, parts) for kind in ("code", "data", "stack"))
    text = "".join(f"{name}\0{digest}\n" for name, digest in code)
    return Lineage(
        command=run_command(record),
        data=data[:_SHOWN_FILES],
        code_digest=hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest() if code else "",
        code=tuple(entry for entry in code if not entry[0].startswith(_OUR_FILES))[:_SHOWN_FILES],
        code_files=len(code),
        stack=stack,
    )


def _of_kind(kind: str, parts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    prefix = f"{kind}:"
    return tuple(sorted((n.removeprefix(prefix), v) for n, v in parts.items() if n.startswith(prefix)))
