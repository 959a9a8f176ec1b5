"""What `new` knows of a column, from values as they stand in a test."""

from collections.abc import Sequence

import numpy as np

from slipway.pipeline.start.facts import Facts, facts_of


def column_facts(name: str, values: Sequence[str | float | None]) -> Facts:
    """The facts of a column of texts, whole numbers or fractions, whichever its values are; None is empty."""
    if any(isinstance(value, str) for value in values):
        return facts_of(name, "text", np.array(values, dtype=object))
    kind = "int" if all(value is not None and float(value).is_integer() for value in values) else "float"
    numbers = [np.nan if value is None else value for value in values]
    return facts_of(name, kind, np.array(numbers, dtype=np.float64))
