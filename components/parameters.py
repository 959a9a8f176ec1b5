"""Passes settings of several types as one parameter of a component, as JSON text.

TFX gives all values of a mapping one type, and cannot read back a mapping that mixes lists or mappings with
plain values (`set_parameter_value` and `get_parsed_value` in tfx/orchestration/data_types_utils.py).
"""

import json
from collections.abc import Mapping
from typing import Any


def as_parameter(values: Mapping[str, object]) -> str:
    """Return a mapping as JSON text; equal mappings give equal text."""
    return json.dumps(values, sort_keys=True)


def from_parameter(text: str) -> Any:
    """Return the mapping that `as_parameter` was given.

    Raises:
        ValueError: the text is not a JSON object.
    """
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError(f"not a JSON object: {text[:80]}")  # noqa: TRY004 (what is wrong is the text)
    return values
