"""Writes documents for other programs as JSON that all of them read: it has no NaN and no infinity."""

import json
import math
from collections.abc import Mapping
from typing import Any


def json_text(document: object) -> str:
    """Return plain data as JSON; a number that is not finite, as metrics may be, becomes null."""
    return json.dumps(finite(document), indent=2, allow_nan=False)


def finite(document: Any) -> Any:
    """Return plain data with None in place of each number that is not finite."""
    if isinstance(document, Mapping):
        return {key: finite(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [finite(value) for value in document]
    return None if isinstance(document, float) and not math.isfinite(document) else document
