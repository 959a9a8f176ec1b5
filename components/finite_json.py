"""Keeps to the numbers that JSON has for all programs: none infinite or NaN, none beyond floats. Pure.

Python writes NaN and infinity nevertheless, as metrics may be, and other programs then refuse the whole file.
"""

import json
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


def json_text(document: object) -> str:
    """Return plain data as JSON; a number that is not finite, as metrics may be, becomes null."""
    return json.dumps(finite(document), indent=2, allow_nan=False)


def finite_numbers(values: Mapping[str, float]) -> dict[str, float]:
    """Return the numbers that are finite, by their names, for documents in which each name has a number."""
    return {name: value for name, value in values.items() if math.isfinite(value)}


def parsed(text: str | bytes) -> Any:
    """Return a JSON document, in which a whole number beyond floats, such as 1 with 400 zeros, is infinite.

    Python reads a fraction beyond floats, such as 1e400, as infinite, too. It reads a whole number of any
    size, which raises an error once something converts it to a float.

    Raises:
        ValueError: the text is not JSON.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_int=_whole)


def _whole(text: str) -> float:
    number = float(text)
    return int(text) if math.isfinite(number) else number
