"""Plans which worker converts which files, and the final names of their shards."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from slipway.components.ingest.options import MEBIBYTE
from slipway.components.ingest.storage import StoredFile
from slipway.components.ingest.suffixes import SUFFIXES
from slipway.components.ingest.tfrecord import Shard

# Files below this are converted together: each task writes a shard for every split.
TASK_BYTES = 64 * MEBIBYTE
# But where that makes fewer tasks than this they are smaller, so that processes that share them end together.
# It takes one some half a second to convert as much as the least.
MANY_TASKS = 16
LEAST_TASK_BYTES = 16 * MEBIBYTE
# A large file becomes so many files of examples and more, but none smaller than the least, so that the nodes
# after this one can share them out, too.
MANY_SHARDS = 64
LEAST_SHARD_BYTES = 4 * MEBIBYTE
# Opening a file costs more than reading a small one.
TASK_FILES = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Files that one worker converts, in order.

    Attributes:
        index: number among the tasks; stands in the names of what it writes.
        files: at least one.
        splits: where each split's files go, by its name; in the order of the split rule.
        quarantine: path of the file for rejected rows.
        lanes: files of each split that are filled side by side.
        shard_bytes: a file of examples that has it is followed by another one; None: as the options say.
        fixed_split: the split of all rows, where the source's files decide that; else None.
        skipped_bytes: of the files of earlier tasks, for the display.
        total_bytes: of all files, for the display.
    """

    index: int
    files: Sequence[StoredFile]
    splits: Mapping[str, str]
    quarantine: str
    lanes: int = 1
    shard_bytes: int | None = None
    fixed_split: str | None = None
    skipped_bytes: int = 0
    total_bytes: int = 0


def plan_tasks(
    sources: Mapping[str | None, Sequence[StoredFile]],
    splits: Mapping[str, str],
    *,
    quarantine: str,
    min_shards: int,
) -> list[Task]:
    """Deals files to tasks: the same files, the same tasks.

    Args:
        sources: the files; by split where the files decide that, else all under None.
        splits: where each split's files go, by name.
        quarantine: folder for rejected rows.
        min_shards: of each split.
    """
    groups = [(split, group) for split, files in sources.items() for group in _groups(files)]
    total = sum(file.size_bytes for files in sources.values() for file in files)
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
                shard_bytes=max(total // MANY_SHARDS, LEAST_SHARD_BYTES),
                fixed_split=split,
                skipped_bytes=done,
                total_bytes=total,
            )
        )
        done += sum(file.size_bytes for file in group)
    return tasks


def final_names(shards: Mapping[str, Sequence[Shard]], splits: Mapping[str, str]) -> list[tuple[str, str]]:
    """From the name of each written file to that under which TFX's components know it.

    Args:
        shards: of each split, in order.
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
    even = sum(file.size_bytes for file in files) // MANY_TASKS
    limit = min(max(even, LEAST_TASK_BYTES), TASK_BYTES)
    groups: list[list[StoredFile]] = []
    size = 0
    for file in files:
        if not groups or size + file.size_bytes > limit or len(groups[-1]) >= TASK_FILES:
            groups.append([])
            size = 0
        groups[-1].append(file)
        size += file.size_bytes
    return groups
