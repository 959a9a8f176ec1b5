"""Settings of several kinds as one parameter of a component.

TFX gives all values of a mapping one type, and cannot read back a mapping that holds lists or mappings beside
plain values (`set_parameter_value` and `get_parsed_value` in tfx/orchestration/data_types_utils.py). So
such a mapping travels as JSON text.
"""

import json
from collections.abc import Mapping
from typing import Any


def as_parameter(values: Mapping[str, object]) -> str:
    """Return a mapping as JSON text, the same for equal mappings."""
    return json.dumps(values, sort_keys=True)


def from_parameter(text: str) -> Any:
    """Return the mapping that `as_parameter` was given.

    Raises:
        ValueError: the text is no JSON object.
    """
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError(f"not a JSON object: {text[:80]}")  # noqa: TRY004 (what is wrong is the text)
    return values
