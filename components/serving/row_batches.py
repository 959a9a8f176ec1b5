"""Calls a model with a few rows at a time, however many a request has.

What a model needs for a row is often far more than the row: a residual network takes 3 MB for an image of
96x96, and a request may have 100,000 rows of a few bytes each.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from slipway.components.saved_model.signatures import Signature, TensorInfo
from slipway.components.serving.limits import ANSWER_S, ROWS_AT_ONCE
from slipway.components.serving.request_decoding import RequestError

Arrays = Mapping[str, npt.NDArray[Any]]


class Model(Protocol):
    """What is called, as `slipway.components.saved_model.loading.LoadedModel`."""

    signatures: Mapping[str, Signature]

    def call(self, signature: str, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
        """Return the answers to all rows of the inputs."""


def call_in_batches(model: Model, signature: str, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Return a model's answers to a request, by output.

    A signature that does not take and give any number of rows, or whose rows may differ in size from call to
    call, is called once; so is one whose first answers are not as many as its first rows.

    Args:
        inputs: by input, [rows, ...].

    Raises:
        RequestError: the calls took longer than `ANSWER_S` (413).

    Also raises the errors of `model.call`.
    """
    called = model.signatures[signature]
    rows = max((len(array) for array in inputs.values() if array.ndim), default=0)
    outputs = called.outputs.values()
    is_by_row = _are_rows([*called.inputs.values(), *outputs]) and _are_of_one_size(outputs)
    if rows <= ROWS_AT_ONCE or not is_by_row:
        return model.call(signature, inputs)
    parts: list[dict[str, npt.NDArray[Any]]] = []
    begin_s = time.monotonic()
    for first in range(0, rows, ROWS_AT_ONCE):
        if time.monotonic() - begin_s > ANSWER_S:
            raise RequestError(
                f"The model answered {first:,} of {rows:,} rows in {ANSWER_S:g} s, the longest that one "
                "request may take: send fewer rows in each.",
                status=413,
            )
        some = {name: array[first : first + ROWS_AT_ONCE] for name, array in inputs.items()}
        parts.append(model.call(signature, some))
        if not first and any(len(array) != ROWS_AT_ONCE for array in parts[0].values()):
            return model.call(signature, inputs)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _are_rows(tensors: Iterable[TensorInfo]) -> bool:
    return all((each.shape or ())[:1] == (None,) for each in tensors)


def _are_of_one_size(tensors: Iterable[TensorInfo]) -> bool:
    return all(None not in (each.shape or ())[1:] for each in tensors)
