"""Compares what two executors of the Evaluator have written: all values of all slices and models."""

import json
import math
from pathlib import Path
from typing import Any

Values = dict[str, dict[str, Any]]

TOLERANCE = 1e-6
"""Relative and absolute."""


def content(folder: str | Path, *, spreads: bool = False) -> Values:
    """Return all that the files of metrics in a folder hold: slice -> key -> value.

    Args:
        folder: the artifact.
        spreads: as well, which only our executor writes.
    """
    import tensorflow_model_analysis as tfma

    found: Values = {}
    for record in tfma.load_metrics(str(folder)):
        values: dict[str, Any] = {}
        for entry in record.metric_keys_and_values:
            kind = entry.value.WhichOneof("type")
            value = getattr(entry.value, kind)
            values[str(entry.key)] = value.value if kind == "double_value" else json.loads(value)
            if entry.HasField("confidence_interval") and spreads:
                error = entry.confidence_interval.standard_error.double_value.value
                values[f"error of {entry.key}"] = error
        assert str(record.slice_key) not in found
        found[str(record.slice_key)] = values
    return found


def close(ours: Any, theirs: Any, size: float = 1.0) -> bool:
    """Return whether they are the same; `size` is that of the numbers that a difference is made of."""
    if isinstance(theirs, float):
        both_nan = math.isnan(ours) and math.isnan(theirs)
        return both_nan or math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE * size)
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(close(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    return bool(ours == theirs)


_CONSTANT = 'name: "label_constant_'


def assert_same(ours: Values, theirs: Values) -> None:
    """Assert that two evaluations hold the same values, as `content` reads them.

    TFX's executor counts what constants reach for all classes, ours only for an AUC or a precision.
    """
    assert ours.keys() == theirs.keys()
    theirs = {
        where: {key: value for key, value in each.items() if key in ours[where] or _CONSTANT not in key}
        for where, each in theirs.items()
    }
    assert {key: set(each) for key, each in ours.items()} == {key: set(each) for key, each in theirs.items()}
    wrong = [
        (where, key, ours[where][key], value)
        for where, each in theirs.items()
        for key, value in each.items()
        if not close(ours[where][key], value, size=max(1.0, _largest(each, key)))
    ]
    assert not wrong, f"{len(wrong)} of {sum(map(len, theirs.values()))}: {wrong[:12]}"


def _largest(values: dict[str, Any], key: str) -> float:
    """Of the two values that a difference is made of; the libraries compute them with seven digits."""
    if "is_diff" not in key:
        return 0.0
    candidate = key.replace("is_diff: true\n", "")
    return max(abs(values[each]) for each in (candidate, candidate.replace("candidate", "baseline")))
