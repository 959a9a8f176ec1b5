"""Writes documents for other programs as JSON that all of them read: it has no NaN and no infinity."""

import json

from slipway.components.finite_json import finite


def json_text(document: object) -> str:
    """Return plain data as JSON; a number that is not finite, as metrics may be, becomes null."""
    return json.dumps(finite(document), indent=2, allow_nan=False)
