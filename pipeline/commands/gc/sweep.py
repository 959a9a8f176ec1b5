"""The things that `gc` removes and keeps, as data and in words. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["cache", "state", "run", "artifact"]

_NAMES = {
    "run": "run",
    "artifact": "artifact folder",
    "cache": "cache entry",
    "state": "checkpoint folder",
}


@dataclass(frozen=True)
class Removal:
    """One thing to remove: a remembered result, or a whole folder: a run's, an artifact's, or the state
    that an unfinished node saved to continue from.
    """

    kind: Kind
    path: Path
    size_bytes: int


@dataclass(frozen=True)
class Sweep:
    """The things that are no longer needed, and those that are.

    Attributes:
        output: the folder, links resolved.
        removals: in the order in which they go: what points to a thing before the thing.
        kept: run id -> why it is kept; the newest run first.
        is_done: False where nothing was removed (`--dry-run`).
    """

    output: Path
    removals: tuple[Removal, ...]
    kept: Mapping[str, str]
    is_done: bool = False

    @property
    def size_bytes(self) -> int:
        """The size of all removals together."""
        return sum(removal.size_bytes for removal in self.removals)

    def to_json(self) -> dict[str, object]:
        """Plain data; paths are relative to the output folder."""
        return {
            "removed": self.is_done,
            "size_bytes": self.size_bytes,
            "removals": [
                {"kind": r.kind, "path": str(r.path.relative_to(self.output)), "size_bytes": r.size_bytes}
                for r in self.removals
            ],
            "kept": dict(self.kept),
        }

    def text(self, *, command: str = "") -> str:
        """The outcome first; a dry run also lists the removals, and names the command that removes them.

        Args:
            command: removes what a dry run lists.
        """
        kept = f"Kept: {_count(len(self.kept), 'run')}."
        # The empty folders that TFX leaves behind every execution go too, but are not worth a line.
        kinds = [removal.kind for removal in self.removals if removal.size_bytes]
        if not kinds:
            return f"Nothing to remove. {kept}"
        counts = ", ".join(_count(kinds.count(kind), name) for kind, name in _NAMES.items() if kind in kinds)
        head = f"{'Removed' if self.is_done else 'Would remove'} {counts}: {_size(self.size_bytes)}. {kept}"
        return head if self.is_done else "\n".join([head, *self._listing(), f"hint: {command}"])

    def _listing(self) -> Iterator[str]:
        for removal in self.removals:
            if removal.kind != "cache" and removal.size_bytes:
                path = removal.path.relative_to(self.output)
                yield f"  {_size(removal.size_bytes):>9}  {path}"


def _size(size_bytes: float) -> str:
    """`812 B`, `4.1 MB`: decimal units, as disks are sold and `df -H` counts."""
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} B" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} TB"


def _count(number: int, name: str) -> str:
    plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return f"{number} {name if number == 1 else plural}"
