"""Finds numbers that float32 cannot hold, since a tf.Example has no wider type for fractions.

Source: tensorflow/core/example/feature.proto, FloatList; IEEE 754, binary32.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from slipway.components.ingest.string_buffers import offsets, utf8_bytes

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]

WHOLE_UP_TO = 2**24  # float32 holds every whole number up to here
_DOUBLE_WHOLE_UP_TO = 2**53
# The text of a nonzero number that a double holds as 0 has, without an exponent, at least 323 zeros.
_LONG_ZERO = 300


@dataclass(frozen=True, slots=True)
class Misfits:
    """Numbers that do not fit; each attribute is a mask [numbers], or None if there are none.

    Attributes:
        too_large: finite numbers that would become infinite.
        to_zero: nonzero numbers that would become 0.
        rounded: whole numbers that would become different ones.
    """

    too_large: Mask | None
    to_zero: Mask | None
    rounded: Mask | None


def misfits(values: pa.Array, source: pa.Array) -> Misfits:
    """Find the numbers that a float32 column cannot hold.

    Args:
        values: float64, null where missing.
        source: what the values were converted from: UTF-8 texts, int64 or float64.
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
    """Return True if a text read as 0 may hold a nonzero digit: one with an exponent or very many zeros."""
    there = utf8_bytes(cells)
    has_exponent = bool((there == ord("e")).any() or (there == ord("E")).any())
    return has_exponent or int(np.diff(offsets(cells)).max(initial=0)) > _LONG_ZERO


def _rounded(numbers: Numbers, narrow: npt.NDArray[np.float32], large: Mask, source: pa.Array) -> Mask:
    large = np.asarray(large & np.isfinite(narrow))
    if not large.any():
        return large
    is_other = narrow != numbers
    if pa.types.is_integer(source.type):
        # Beyond 2**53, the double itself may be rounded already.
        with np.errstate(invalid="ignore"):
            back = narrow.astype(np.int64)
        return np.asarray(large & (back != source.fill_null(0).to_numpy(zero_copy_only=False)))
    if not _is_text(source):
        # Beyond 64 bits, every double is whole, and none is an id.
        return np.asarray(large & is_other & (numbers == np.rint(numbers)) & (np.abs(numbers) < 2.0**63))
    whole = _where(large, source, r"^\s*[+-]?[0-9_]+\s*$")
    unsure = np.flatnonzero(whole & (np.abs(numbers) >= _DOUBLE_WHOLE_UP_TO))
    found = np.asarray(whole & is_other)
    found[unsure] = [int(narrow[row]) != int(source[row].as_py()) for row in unsure.tolist()]
    return found


def _is_text(source: pa.Array) -> bool:
    return source.type in (pa.string(), pa.large_binary())


def _where(rows: Mask, cells: pa.Array, pattern: str, *, wanted: bool = True) -> Mask:
    """Return those of the rows whose text matches a regular expression, or does not."""
    found = rows.copy()
    places = np.flatnonzero(rows)
    matches = pc.match_substring_regex(cells.take(pa.array(places)), pattern).fill_null(not wanted)
    found[places] = matches.to_numpy(zero_copy_only=False) == wanted
    return found
