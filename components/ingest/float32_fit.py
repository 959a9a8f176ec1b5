"""Finds numbers that 32 bits cannot hold: an example holds fractions as float32, and nothing wider.

Source: tensorflow/core/example/feature.proto, FloatList; IEEE 754, binary32.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.ingest.cell_letters import bounds, letters

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]

WHOLE_UP_TO = 2**24  # float32 holds each whole number up to here
_DOUBLE_WHOLE_UP_TO = 2**53
# The shortest text of a number that a double holds as 0, without an exponent: "0." and 324 more zeros.
_LONG_ZERO = 300


@dataclass(frozen=True, slots=True)
class Misfits:
    """Numbers that do not fit; a mask [numbers], or None where there is none of them.

    Attributes:
        too_large: finite numbers that would become infinite.
        to_zero: others than 0 that become 0.
        rounded: whole numbers that become others.
    """

    too_large: Mask | None
    to_zero: Mask | None
    rounded: Mask | None


def misfits(values: pa.Array, source: pa.Array) -> Misfits:
    """Finds the numbers that a column of float32 does not hold.

    Args:
        values: float64, null where missing.
        source: what they were made of: texts, UTF-8; int64; or float64.
    """
    numbers = values.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        narrow = numbers.astype(np.float32)
    return Misfits(
        too_large=_any(_too_large(numbers, np.isinf(narrow), source)),
        to_zero=_any(_to_zero(numbers, narrow == 0, source)),
        rounded=_any(_rounded(numbers, narrow, np.abs(numbers) > WHOLE_UP_TO, source)),
    )


def _any(mask: Mask) -> Mask | None:
    return mask if mask.any() else None


def _too_large(numbers: Numbers, infinite: Mask, source: pa.Array) -> Mask:
    if not infinite.any():
        return infinite
    if _is_text(source):
        return _where(infinite, source, "(?i)inf", wanted=False)
    return np.asarray(infinite & np.isfinite(numbers))


def _to_zero(numbers: Numbers, zero: Mask, source: pa.Array) -> Mask:
    found = np.asarray(zero & (numbers != 0))
    if _is_text(source) and _may_hide_digits(source):
        found |= _where(np.asarray(numbers == 0), source, "^[^eE]*[1-9]")
    return found


def _may_hide_digits(cells: pa.Array) -> bool:
    """Whether the text of a double's 0 can have another digit: behind it an exponent, or very many zeros."""
    there = letters(cells)
    has_exponent = bool((there == ord("e")).any() or (there == ord("E")).any())
    return has_exponent or int(np.diff(bounds(cells)).max(initial=0)) > _LONG_ZERO


def _rounded(numbers: Numbers, narrow: npt.NDArray[np.float32], large: Mask, source: pa.Array) -> Mask:
    large = np.asarray(large & np.isfinite(narrow))
    if not large.any():
        return large
    is_other = narrow != numbers
    if pa.types.is_integer(source.type):
        # Beyond 2**53 a double may be the rounded number already.
        with np.errstate(invalid="ignore"):
            back = narrow.astype(np.int64)
        return np.asarray(large & (back != source.fill_null(0).to_numpy(zero_copy_only=False)))
    if not _is_text(source):
        # Beyond 64 bits nothing is an id, and every double is whole.
        return np.asarray(large & is_other & (numbers == np.rint(numbers)) & (np.abs(numbers) < 2.0**63))
    whole = _where(large, source, r"^\s*[+-]?[0-9_]+\s*$")
    unsure = np.flatnonzero(whole & (np.abs(numbers) >= _DOUBLE_WHOLE_UP_TO))
    found = np.asarray(whole & is_other)
    found[unsure] = [int(narrow[row]) != int(source[row].as_py()) for row in unsure.tolist()]
    return found


def _is_text(source: pa.Array) -> bool:
    return source.type in (pa.string(), pa.large_binary())


def _where(rows: Mask, cells: pa.Array, pattern: str, *, wanted: bool = True) -> Mask:
    """The rows, of these, whose text matches a regular expression, or does not."""
    found = rows.copy()
    places = np.flatnonzero(rows)
    matches = pc.match_substring_regex(cells.take(pa.array(places)), pattern).fill_null(not wanted)
    found[places] = matches.to_numpy(zero_copy_only=False) == wanted
    return found
