"""The result of `gc`: what it removes and keeps, as data and as text. Pure."""

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
    """One thing to remove: a cached result, or the folder of a run, an artifact or a checkpoint."""

    kind: Kind
    path: Path
    size_bytes: int


@dataclass(frozen=True)
class Cleanup:
    """The unneeded files and folders, and the runs that are kept.

    Attributes:
        output: the output folder, with links resolved.
        removals: in order of removal: a reference is removed before what it refers to.
        kept: run id -> why it is kept; newest run first.
        checkpoints: what runs named as `train.checkpoint.folder`. It is not looked at: trainings of other
            machines may use it.
        is_done: whether the removals were made; False for `--dry-run`.
    """

    output: Path
    removals: tuple[Removal, ...]
    kept: Mapping[str, str]
    checkpoints: tuple[str, ...] = ()
    is_done: bool = False

    @property
    def size_bytes(self) -> int:
        """The size of all removals together."""
        return sum(removal.size_bytes for removal in self.removals)

    def to_json(self) -> dict[str, object]:
        """Return plain data; paths are relative to the output folder."""
        return {
            "removed": self.is_done,
            "size_bytes": self.size_bytes,
            "removals": [
                {"kind": r.kind, "path": str(r.path.relative_to(self.output)), "size_bytes": r.size_bytes}
                for r in self.removals
            ],
            "kept": dict(self.kept),
            "checkpoints": list(self.checkpoints),
        }

    def text(self, *, command: str = "") -> str:
        """Return the outcome; a dry run also lists the removals, and names the command that removes them.

        Args:
            command: the command that removes what a dry run lists.
        """
        return "\n".join([*self._lines(command), *self._not_looked_at()])

    def _lines(self, command: str) -> list[str]:
        kept = f"Kept: {_count(len(self.kept), 'run')}."
        # The empty folders that TFX leaves after every execution are removed too, but not listed.
        kinds = [removal.kind for removal in self.removals if removal.size_bytes]
        if not kinds:
            return [f"Nothing to remove. {kept}"]
        counts = ", ".join(_count(kinds.count(kind), name) for kind, name in _NAMES.items() if kind in kinds)
        head = f"{'Removed' if self.is_done else 'Would remove'} {counts}: {_size(self.size_bytes)}. {kept}"
        return [head] if self.is_done else [head, *self._listing(), f"hint: {command}"]

    def _not_looked_at(self) -> Iterator[str]:
        for folder in self.checkpoints:
            yield (
                f"Not looked at: {folder} (train.checkpoint.folder). A training that was given up leaves its "
                "checkpoints there: remove the folders in it that no training uses any more."
            )

    def _listing(self) -> Iterator[str]:
        for removal in self.removals:
            if removal.kind != "cache" and removal.size_bytes:
                path = removal.path.relative_to(self.output)
                yield f"  {_size(removal.size_bytes):>9}  {path}"


def _size(size_bytes: float) -> str:
    """Format a size in decimal units, like `df -H`: `812 B`, `4.1 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} B" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} TB"


def _count(number: int, name: str) -> str:
    plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    return f"{number} {name if number == 1 else plural}"
