"""Parses the JSON of a request without loss: no duplicate keys, no number that becomes infinite. Pure."""

import json
import math
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.serving.limits import MAX_QUOTED
from slipway.components.serving.request_decoding import RequestError


def read_json(body: bytes) -> Any:
    """Return the value in the body of a request; NaN and Infinity are numbers, as in TF Serving.

    Raises:
        RequestError: the body is not JSON in UTF-8, or an object has a key twice: only its last value would
            count.
    """
    try:
        return json.loads(body.decode("utf-8-sig"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        why = f"byte {error.start} is not UTF-8"
    except json.JSONDecodeError as error:
        why = str(error)
    except RecursionError:
        why = "it is nested too deeply"
    except ValueError:  # the only other cause is Python's limit of digits
        why = f"a whole number has more than {sys.get_int_max_str_digits():,} digits"
    raise RequestError(f"JSON Parse error: {why}")


def refuse_overflow(body: bytes, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Check that infinite numbers in a request were written as such.

    Args:
        body: the body that `read_json` parsed.
        arrays: its values as arrays.

    Raises:
        RequestError: the body has a number beyond the range of float64.
    """
    if any(array.dtype.kind == "f" and np.isinf(array).any() for array in arrays.values()):
        json.loads(body.decode("utf-8-sig"), parse_float=_finite)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise RequestError(f"An object has the key {twice[:MAX_QUOTED]!r} twice; send each key once.")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        shown = text[:MAX_QUOTED]
        raise RequestError(f"The number {shown} is beyond 64-bit fractions; infinity is written Infinity.")
    return number
