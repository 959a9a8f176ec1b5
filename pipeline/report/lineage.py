"""The origin of a run: data and code by digest, versions, and the command that repeats it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from slipway.pipeline.fingerprint.parts import Fingerprint
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.screen.wording import run_command

_SHOWN_FILES = 60
# As modules are imported; in records of earlier versions without `slipway`.
_OUR_FILES = ("slipway/", "components/", "pipeline/")


@dataclass(frozen=True)
class Lineage:
    """The origin of a run.

    Attributes:
        command: makes it again, with the code and data as they are then.
        data: file and digest, at most 60.
        code_digest: over all files of code that any node depends on; empty if none is known.
        code: file and digest, of the workload's own files only, at most 60.
        code_files: how many files went into `code_digest`.
        stack: package and version.
    """

    command: str
    data: tuple[tuple[str, str], ...]
    code_digest: str
    code: tuple[tuple[str, str], ...]
    code_files: int
    stack: tuple[tuple[str, str], ...]


def lineage(record: RunRecord, prints: Mapping[str, Fingerprint]) -> Lineage | None:
    """The origin of a run; None for a rollback, and for a run that ended before its plan."""
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
