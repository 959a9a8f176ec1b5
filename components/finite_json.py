"""Leaves out of documents for JSON what it does not have: NaN and infinity. Pure.

Python writes them nevertheless, as metrics may be, and other programs then refuse the whole file.
"""

import math
from collections.abc import Mapping
from typing import Any


def finite(document: Any) -> Any:
    """Return plain data with None in place of each number that is not finite."""
    if isinstance(document, Mapping):
        return {key: finite(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [finite(value) for value in document]
    return None if isinstance(document, float) and not math.isfinite(document) else document


def finite_numbers(values: Mapping[str, float]) -> dict[str, float]:
    """Return the numbers that are finite, by their names, for documents in which each name has a number."""
    return {name: value for name, value in values.items() if math.isfinite(value)}
