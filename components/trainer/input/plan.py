"""Plans where the input is kept, which host reads what, and in which portions. Reads nothing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature

MEMORY_SHARE = 0.25
"""The share of available memory that parsed examples may take. Joining parsed batches needs it twice."""
PARSED_TOGETHER_ROWS = 256
"""Rows per call of the parser in a stream: single records cost 13 times as much, larger portions mix less."""
MAX_WINDOW_BYTES = 2**28
"""Two or three windows are in memory at a time. A constant, so the order does not depend on free memory."""
MAX_BLOCK_BYTES = 2**24
"""Size of batches passed together: large enough to cost nothing, small compared with memory."""
_BYTES = {"float32": 4, "int64": 4, "uint8": 1}  # as in memory: int64 becomes int32


def row_bytes(features: Sequence[Feature]) -> int:
    """Return the bytes of one parsed example."""
    return sum(_BYTES[each.dtype] * math.prod(each.shape) for each in features)


def block_steps(steps: int, *, batch_bytes: int) -> int:
    """Return how many batches to pass together: the largest divisor of `steps` within `MAX_BLOCK_BYTES`.

    Args:
        steps: of one call of the compiled function, >= 1.
        batch_bytes: bytes of one batch, > 0.
    """
    most = max(1, MAX_BLOCK_BYTES // batch_bytes)
    return next(each for each in range(min(steps, most), 0, -1) if steps % each == 0)


def files_of_host(files: Sequence[str], *, index: int, count: int) -> tuple[str, ...]:
    """Return the files that one of several hosts streams: every count-th.

    Raises:
        ComponentError: there are fewer files than hosts.
    """
    if len(files) < count:
        raise ComponentError(
            f"{count} hosts cannot share {len(files)} files",
            hint="let Transform write as many files as there are hosts or a multiple (Beam shards), or set "
            "train.input.cache to memory or file: then every host reads all",
        )
    return tuple(files[index::count])


@dataclass(frozen=True, kw_only=True)
class Window:
    """The rows that a stream shuffles at a time, if it leaves out none.

    Attributes:
        batch_size: examples per batch.
        batches: whole batches in a window, >= 1.
    """

    batch_size: int
    batches: int

    @property
    def rows(self) -> int:
        """Examples in a window."""
        return self.batch_size * self.batches


@dataclass(frozen=True)
class Portion:
    """What a stream shuffles together.

    Attributes:
        rows: examples that are read.
        batches: full batches that are taken of them; what is left over, in random order, is left out.
    """

    rows: int
    batches: int


def portions(window: Window, *, rows: int, steps: int) -> tuple[Portion, ...]:
    """Divide an epoch into windows of which each leaves out its share of the rows that no batch takes.

    Were they left out where the files end, the same rows would never be trained on.

    Args:
        rows: of this host, of which `steps` batches are taken.
        steps: 1 .. rows // window.batch_size.
    """
    # With many rows to leave out, as of a host with larger files than others, a window takes fewer batches.
    most = -(-window.rows * steps // rows)
    ends = [*range(most, steps, most), steps]
    begins = [0, *ends[:-1]]
    return tuple(
        Portion(rows=rows * end // steps - rows * begin // steps, batches=end - begin)
        for begin, end in zip(begins, ends, strict=True)
    )


def window(batch_size: int, shuffle_rows: int, *, row_bytes: int) -> Window:
    """Return the smallest window of whole batches that holds `shuffle_rows`, within `MAX_WINDOW_BYTES`."""
    rows = min(shuffle_rows, MAX_WINDOW_BYTES // row_bytes)
    return Window(batch_size=batch_size, batches=max(1, -(-rows // batch_size)))
