"""Shares the files of examples that a node reads out among processes. Pure.

What a file gives is gathered by itself, in shards that only the data decide, and put together in their order:
the result does not depend on how many processes there are, to the last bit.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock

from slipway.components import python_process
from slipway.components.available_memory import available_memory_bytes
from slipway.components.counted_words import counted
from slipway.components.errors import ComponentError
from slipway.components.progress import report as tell

MOST_SHARDS = 8
"""Of a split. Each has a state of its own, which for thousands of columns is large, and slow to merge."""

MOST_SHARDS_ELSEWHERE = 64
"""Of a split, where another engine of Beam works: it may have many workers, and their results are files."""

LEAST_BYTES = 2 << 20
"""Of the files of a shard, as they are stored; below, putting together costs more than is gained."""

WORKER_MEMORY_BYTES = 1 << 30
"""What another process may need; see docs/scale.md for what nodes take."""

WORTH_VARIABLE = "SLIPWAY_WORKER_BYTES"
"""Names the bytes of files that another process is worth, in the place of what each node says: for tests, and
to measure what a process is worth; below LEAST_BYTES, shards get as small."""

_WORKERS_OPTION = "--direct_num_workers"


@dataclass(frozen=True, slots=True)
class Shard:
    """Files that are read one after the other, into one state.

    Attributes:
        split: whose they are.
        first: the place of the first among all files of the split.
        of: how many files the split has.
        files: at least one.
        size_bytes: of all of them.
    """

    split: str
    first: int
    of: int
    files: tuple[str, ...]
    size_bytes: int


def shards_of(
    split: str, files: Sequence[str], sizes: Sequence[int], *, most: int = MOST_SHARDS
) -> list[Shard]:
    """Deals the files of a split: neighbours together, about as many bytes in each shard.

    Args:
        split: its name.
        files: in their order; the same files give the same shards.
        sizes: of each, in bytes.
        most: how many shards there may be, about.

    Raises:
        ComponentError: WORTH_VARIABLE names no number of bytes.
    """
    least = max(min(LEAST_BYTES, _worth(LEAST_BYTES)), sum(sizes) // most)
    found: list[Shard] = []
    first = size = 0
    for place, its_size in enumerate(sizes):
        size += its_size
        if size >= least or place == len(files) - 1:
            found.append(Shard(split, first, len(files), tuple(files[first : place + 1]), size))
            first, size = place + 1, 0
    return found


def process_count(shards: Sequence[Shard], beam_args: Sequence[str], *, worth_bytes: int) -> int:
    """How many processes are worth it, this one among them: by cores, memory and data.

    Args:
        shards: what is to be done.
        beam_args: `--direct_num_workers`, if named, is the most; 0: one a core.
        worth_bytes: of the files, as much as a process that the engine forks is worth, see WORTH_VARIABLE.

    Raises:
        ComponentError: WORTH_VARIABLE names no number of bytes.
    """
    worth_bytes = _worth(worth_bytes)
    cores = len(os.sched_getaffinity(0))
    given = " ".join(beam_args).replace("=", " ").split()
    named = [value for option, value in pairwise(given) if option == _WORKERS_OPTION]
    at_most = int(named[-1]) if named else cores
    if python_process.fork_channel is None:
        worth_bytes *= _AFRESH
    worth = sum(shard.size_bytes for shard in shards) // worth_bytes
    fits = 1 + available_memory_bytes() // WORKER_MEMORY_BYTES
    return max(min(at_most or cores, len(shards), worth, fits), 1)


def _worth(usual_bytes: int) -> int:
    named = os.environ.get(WORTH_VARIABLE, "")
    if not named:
        return usual_bytes
    if not (named.isascii() and named.isdigit() and int(named)):
        raise ComponentError(
            f"{WORTH_VARIABLE} is {named!r}, but must be a number of bytes, 1 or more",
            hint=f"export {WORTH_VARIABLE}={8 << 20}, say, or unset it",
        )
    return int(named)


# A process that is started afresh imports TensorFlow, for 4 to 5 s; one that the engine forks has it.
_AFRESH = 8


class Rows:
    """Tells how many rows of all shards are done."""

    def __init__(self, shards: Sequence[Shard], words: str = "") -> None:
        self._total = sum(shard.size_bytes for shard in shards)
        self._words = words
        self._done: dict[Shard, tuple[int, int]] = {}
        self._lock = Lock()

    def tell(self, shard: Shard, rows: int, done_bytes: int) -> None:
        """As `worker_pool.Progress`."""
        with self._lock:
            self._done[shard] = rows, done_bytes
            all_rows, all_bytes = map(sum, zip(*self._done.values(), strict=True))
            tell(counted(all_rows, "row") + self._words, done=all_bytes, total=self._total)


def with_place(shard: Shard) -> Iterator[tuple[int, str]]:
    """The files of a shard, each with its place among all of the split."""
    return enumerate(shard.files, shard.first)


def redone_in_words(count: int) -> str:
    """What a node says of shards that were done again; empty if there is none."""
    return f"; {counted(count, 'part')} redone by one process, in smaller batches" if count else ""
