"""Decides what becomes of a column of lists, and why. Pure."""

import math

from slipway.components.counted_words import counted
from slipway.pipeline.start.facts import Facts

MOST_CODES = 256
"""The most values of a row's list that are read as categories."""
_MOST_PLACES = 1024
_LEAST_CODES, _MOST_CODES = 2**14, 2**18
_MOST_CATEGORIES, _ROWS_PER_CATEGORY, _ROWS_PER_WHOLE_NUMBER = 100, 10, 30
MOSTLY_MISSING = 0.95
_CODE_GAP, _LEAST_CODE = 50, 10_000


def reason_against(column: Facts) -> str:
    """Return why a column of lists is no feature; "" if it is one."""
    if column.missing_share > MOSTLY_MISSING:
        return f"a value in {column.present:,} of {column.rows:,} rows only"
    if column.is_too_large:
        span = f"from {column.least:g} to {column.greatest:g}"
        return f"lists of numbers {span}, beyond what 32-bit numbers hold: remove these values"
    if column.nan_lists:
        rows = counted(column.nan_lists, "row")
        return f"lists with NaN in {rows}: write other numbers there, or an empty list"
    if column.moment:
        return (
            "lists of points in time: write what matters of them, such as the first, as a column of its own"
        )
    if column.kind == "text" and 2 * column.distinct > column.values:
        return (
            "lists of texts, hardly any of which occurs twice: join each list to one text, and its words "
            "become a feature"
        )
    return ""


def are_categories(column: Facts) -> bool:
    """Return True if a list holds texts, or whole numbers that stand for things rather than amounts."""
    if column.kind != "int":
        return column.kind == "text"
    if is_vector(column):
        return False
    few = min(_MOST_CATEGORIES, column.present // _ROWS_PER_WHOLE_NUMBER)
    gaps = (column.greatest - column.least) / max(column.distinct, 1)
    return column.distinct <= few or (
        gaps > _CODE_GAP
        and column.least > _LEAST_CODE
        and column.present > _ROWS_PER_CATEGORY * column.distinct
    )


def is_vector(column: Facts) -> bool:
    """Return True if all lists hold equally many numbers, so that each place has a meaning of its own."""
    return column.kind != "text" and column.shortest == column.longest <= _MOST_PLACES


def length_words(column: Facts) -> str:
    """Return how many values a row has, as text."""
    if column.shortest == column.longest:
        return f"{column.longest:,} in every list"
    return f"{column.shortest:,} to {column.longest:,} in a list"


def codes_per_row(column: Facts) -> int:
    """Return how many values of a list are read as categories: as many as nearly all rows have."""
    return min(max(column.values_per_row, 2), MOST_CODES)


def codes_of(column: Facts) -> int:
    """Return how many codes values are hashed into: so many that few of them share one."""
    return int(min(max(_LEAST_CODES, 2 ** math.ceil(math.log2(64 * column.distinct))), _MOST_CODES))
