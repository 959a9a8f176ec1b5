"""Divides the example files that a node reads among processes. Pure.

Results are computed per shard and merged in the order of the shards, and only the data decide what is in a
shard. So the result does not depend on the number of processes, to the last bit.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock

from slipway.components import python_process
from slipway.components.available_memory import available_memory_bytes
from slipway.components.beam_args import most_workers
from slipway.components.counted_words import counted
from slipway.components.errors import ComponentError
from slipway.components.progress import report as tell

MOST_SHARDS = 8
"""Approximate maximum per split. Each shard has its own state, which for thousands of columns is large and
slow to merge."""

MOST_SHARDS_ELSEWHERE = 64
"""Approximate maximum per split on an external Beam runner, which may have many workers and whose results are
files."""

LEAST_BYTES = 2 << 20
"""Minimum size of a shard's files, as stored; with less, merging costs more than is gained."""

WORKER_MEMORY_BYTES = 1 << 30
"""Memory that one more process may need; see docs/scale.md for the memory of each node."""

BYTES_PER_PROCESS_VARIABLE = "SLIPWAY_WORKER_BYTES"
"""Environment variable that overrides each node's number of input bytes for which one more process pays off,
for tests and measurements. A value below LEAST_BYTES also lowers the minimum size of a shard."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Files that are read one after the other into one state.

    Attributes:
        first: the index of the first file among all files of the split.
        of: the number of files of the split.
        files: the paths; at least one.
    """

    split: str
    first: int
    of: int
    files: tuple[str, ...]
    size_bytes: int


def shards_of(
    split: str, files: Sequence[str], sizes: Sequence[int], *, most: int = MOST_SHARDS
) -> list[Shard]:
    """Divide the files of a split into shards of adjacent files and about equal size.

    Args:
        files: the paths in order; the same files give the same shards.
        sizes: the size of each file in bytes.
        most: the approximate maximum number of shards.

    Raises:
        ComponentError: BYTES_PER_PROCESS_VARIABLE is not a number of bytes.
    """
    least = max(min(LEAST_BYTES, _bytes_per_process(LEAST_BYTES)), sum(sizes) // most)
    found: list[Shard] = []
    first = size = 0
    for place, its_size in enumerate(sizes):
        size += its_size
        if size >= least or place == len(files) - 1:
            found.append(Shard(split, first, len(files), tuple(files[first : place + 1]), size))
            first, size = place + 1, 0
    return found


def process_count(shards: Sequence[Shard], beam_args: Sequence[str], *, bytes_per_process: int) -> int:
    """Return how many processes pay off, including this one, given the cores, the memory and the data.

    Args:
        beam_args: Beam's options; `--direct_num_workers`, if given, is the maximum, and 0 means one per core.
        bytes_per_process: the input bytes for which one more process forked by the engine pays off;
            BYTES_PER_PROCESS_VARIABLE overrides it.

    Raises:
        ComponentError: BYTES_PER_PROCESS_VARIABLE is not a number of bytes.
    """
    bytes_per_process = _bytes_per_process(bytes_per_process)
    cores = len(os.sched_getaffinity(0))
    at_most = most_workers(beam_args)
    if python_process.fork_channel is None:
        bytes_per_process *= _AFRESH
    worth = sum(shard.size_bytes for shard in shards) // bytes_per_process
    fits = 1 + available_memory_bytes() // WORKER_MEMORY_BYTES
    return max(min(at_most or cores, len(shards), worth, fits), 1)


def _bytes_per_process(usual_bytes: int) -> int:
    named = os.environ.get(BYTES_PER_PROCESS_VARIABLE, "")
    if not named:
        return usual_bytes
    if not (named.isascii() and named.isdigit() and int(named)):
        raise ComponentError(
            f"{BYTES_PER_PROCESS_VARIABLE} is {named!r}, but must be a number of bytes, 1 or more",
            hint=f"export {BYTES_PER_PROCESS_VARIABLE}={8 << 20}, say, or unset it",
        )
    return int(named)


# A process that is started afresh takes 4 to 5 s to import TensorFlow; one that the engine forks has it.
_AFRESH = 8


class Rows:
    """Reports how many rows of all shards are done.

    Args:
        words: text to append to the number of rows.
    """

    def __init__(self, shards: Sequence[Shard], words: str = "") -> None:
        self._total = sum(shard.size_bytes for shard in shards)
        self._words = words
        self._done: dict[Shard, tuple[int, int]] = {}
        self._lock = Lock()

    def tell(self, shard: Shard, rows: int, done_bytes: int) -> None:
        """Record a shard's progress and report the total; a `process_pool.Progress`."""
        with self._lock:
            self._done[shard] = rows, done_bytes
            all_rows, all_bytes = map(sum, zip(*self._done.values(), strict=True))
            tell(counted(all_rows, "row") + self._words, done=all_bytes, total=self._total)


def with_place(shard: Shard) -> Iterator[tuple[int, str]]:
    """Yield each file of a shard with its index among all files of the split."""
    return enumerate(shard.files, shard.first)


def redone_in_words(count: int) -> str:
    """Return how many shards were redone, as the end of a node's message; empty if none was."""
    return f"; {counted(count, 'part')} redone by one process, in smaller batches" if count else ""
