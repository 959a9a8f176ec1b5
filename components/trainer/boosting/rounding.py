"""Merges numbers that differ only by rounding, so that no tree tells them apart. Pure.

The last bit of a sine or a logarithm depends on how many rows are computed at once. With a threshold between
two such values, a row would get another answer alone than in a batch.
"""

import numpy as np
import numpy.typing as npt

# How far values of usual size differ by rounding, in steps of float32: a few, times what scaling makes of
# them.
_STEPS = 16


def merge_rounding_duplicates(column: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return a column with values that lie within rounding of each other replaced by the least of them.

    Values that are so dense that no gap separates such groups stay as they are.

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
