"""Merges numbers that differ only by rounding: a tree must not tell them apart. Pure.

The last bit of a sine or a logarithm depends on how many rows it is computed for at once: with a threshold
between the two, a row would be answered otherwise alone than in a batch.
"""

import numpy as np
import numpy.typing as npt

# How far values of a usual size lie apart by rounding, in steps of float32: a few, and what scaling makes
# of them.
_STEPS = 16


def settled(column: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The values of a column, each that lies within rounding of others as the least of these.

    Where values lie so dense that there is no gap between such groups, they stay as they are.

    Args:
        column: finite, [rows].
    """
    found, places = np.unique(column, return_inverse=True)
    if len(found) < 2:
        return column
    apart = _STEPS * float(np.finfo(np.float32).eps) * float(np.median(np.abs(found)))
    begins = np.concatenate(([True], np.diff(found.astype(np.float64)) > apart))
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(found)) - 1
    is_narrow = found[last] - found[first] <= apart
    group = np.cumsum(begins) - 1
    return np.where(is_narrow[group], found[first][group], found)[places]
