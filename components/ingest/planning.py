"""Plans which task converts which files, and the final names of the shards."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from slipway.components.ingest.options import MEBIBYTE
from slipway.components.ingest.storage import StoredFile
from slipway.components.ingest.suffixes import SUFFIXES
from slipway.components.ingest.tfrecord import Shard

# Small files are converted together, up to this size, because each task writes a shard for every split.
TASK_BYTES = 64 * MEBIBYTE
# If that makes fewer tasks than this, tasks are smaller, so that the processes that share them end together.
# A process converts a task of the least size in about half a second.
MANY_TASKS = 16
LEAST_TASK_BYTES = 16 * MEBIBYTE
# A large source becomes about this many shards or more, so that later nodes can divide them among processes,
# too; but the planned size of a shard is never below the least or above the most.
MANY_SHARDS = 64
LEAST_SHARD_BYTES = 4 * MEBIBYTE
MOST_SHARD_BYTES = 100 * MEBIBYTE
# Opening a file costs more than reading a small one.
TASK_FILES = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Files that one worker converts, in order.

    Attributes:
        index: the task's number, which is part of the names of its output files.
        files: the input files; at least one.
        splits: the output folder of each split, by name; in the order of the split rule.
        quarantine: path of the file for rejected rows.
        lanes: the number of files of each split that are filled in turn.
        shard_bytes: the size from which a shard is followed by another one, unless the options name one.
        fixed_split: the split of all rows, if the input files decide it; else None.
        skipped_bytes: size of the files of earlier tasks, for the progress display.
        total_bytes: size of the files of all tasks, for the progress display.
        attempt: part of the names of what is written, where a task may be done more than once.
    """

    index: int
    files: Sequence[StoredFile]
    splits: Mapping[str, str]
    quarantine: str
    lanes: int = 1
    shard_bytes: int = MOST_SHARD_BYTES
    fixed_split: str | None = None
    skipped_bytes: int = 0
    total_bytes: int = 0
    attempt: str = ""

    def attempted(self, name: str) -> "Task":
        """Return the same task as an attempt, whose files have names of their own."""
        return replace(self, attempt=f"-{name}", quarantine=f"{self.quarantine}-{name}")


def plan_tasks(
    sources: Mapping[str | None, Sequence[StoredFile]],
    splits: Mapping[str, str],
    *,
    quarantine: str,
    min_shards: int,
) -> list[Task]:
    """Group files into tasks; the same files give the same tasks.

    Args:
        sources: the files by split if the files decide the split, else all under None.
        splits: the output folder of each split, by name.
        quarantine: folder for rejected rows.
    """
    groups = [(split, group) for split, files in sources.items() for group in _groups(files)]
    total = sum(file.read_bytes for files in sources.values() for file in files)
    tasks: list[Task] = []
    done = 0
    for index, (split, group) in enumerate(groups):
        beside = sum(1 for other, _ in groups if other == split)
        tasks.append(
            Task(
                index=index,
                files=group,
                splits=dict(splits) if split is None else {split: splits[split]},
                quarantine=f"{quarantine}/rows-{index:05d}.jsonl",
                lanes=math.ceil(min_shards / beside),
                shard_bytes=min(max(total // MANY_SHARDS, LEAST_SHARD_BYTES), MOST_SHARD_BYTES),
                fixed_split=split,
                skipped_bytes=done,
                total_bytes=total,
            )
        )
        done += sum(file.read_bytes for file in group)
    return tasks


def final_names(shards: Mapping[str, Sequence[Shard]], splits: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the name of each written file with the name under which TFX's components look for it.

    Args:
        shards: the shards of each split, in order.
        splits: the folder of each split.
    """
    return [
        (shard.name, f"{splits[name]}/data_tfrecord-{index:05d}-of-{len(written):05d}{_suffix(shard.name)}")
        for name, written in shards.items()
        for index, shard in enumerate(written)
    ]


def _suffix(name: str) -> str:
    suffix = PurePath(name).suffix
    return suffix if suffix in SUFFIXES else ""


def _groups(files: Sequence[StoredFile]) -> list[list[StoredFile]]:
    even = sum(file.read_bytes for file in files) // MANY_TASKS
    limit = min(max(even, LEAST_TASK_BYTES), TASK_BYTES)
    groups: list[list[StoredFile]] = []
    size = 0
    for file in files:
        if not groups or size + file.read_bytes > limit or len(groups[-1]) >= TASK_FILES:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.read_bytes
    return groups
