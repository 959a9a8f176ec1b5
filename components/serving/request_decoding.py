"""Converts values between the JSON of TF Serving's REST API and arrays. Pure.

A request holds `instances` (a list of rows) or `inputs` (a list by input); bytes are {"b64": "..."}.
https://www.tensorflow.org/tfx/serving/api_rest#predict_api
"""

import base64
import binascii
import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.image_sizes import (
    GIF_BEGIN,
    JPEG_BEGIN,
    MOST_SCANS,
    PNG_BEGIN,
    WEBP_BEGIN,
    WEBP_WORD,
    decoded_pixels,
    has_too_many_scans,
    is_webp_animation,
)
from slipway.components.iso_dates import ISO_DATE
from slipway.components.saved_model.signatures import SERVE_RAW, SERVING_DEFAULT, Signature, TensorInfo
from slipway.components.serving.limits import (
    MAX_DIMENSIONS,
    MAX_IMAGES,
    MAX_LIST_CELLS,
    MAX_PARTS,
    MAX_PIXELS,
    MAX_QUOTED,
    MAX_ROWS,
)

Array = npt.NDArray[Any]

_is_date = re.compile(ISO_DATE.encode()).match

_KEYS = frozenset({"signature_name", "instances", "inputs"})
# As slipway.components.trainer.saved_model_export reads them.
_EMPTY_CELLS = {"float": "NaN", "double": "NaN", "half": "NaN", "int64": str(-(2**63)), "string": '""'}
FILLERS: Mapping[str, float | str] = {"float": float("nan"), "int64": -(2**63), "string": ""}
"""An empty cell of `serve_raw`, by type."""
_FLOATS: Mapping[str, str] = {"float": "float32", "double": "float64", "half": "float16"}


class RequestError(Exception):
    """A request that cannot be answered; `status` is the HTTP status code."""

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def parse_request(
    document: Any,
    signatures: Mapping[str, Signature],
    *,
    most_rows: int = MAX_ROWS,
    dates: Collection[str] = (),
) -> tuple[str, bool, dict[str, Array]]:
    """Parse a prediction request.

    Args:
        document: the body of the request, parsed.
        dates: the raw columns of which all texts were ISO dates in training: the code that `new` writes would
            take another text for a missing date.

    Returns:
        The signature's name, whether the request is row by row (`instances`), and an array for each input.

    Raises:
        RequestError: the model cannot answer the request.
    """
    if not isinstance(document, dict):
        raise RequestError("The request must be a JSON object with 'instances' or 'inputs'.")
    if unknown := sorted(document.keys() - _KEYS):
        raise RequestError(
            f"The request has an unknown key {_shown(unknown[0])}; it takes {', '.join(sorted(_KEYS))}."
        )
    name = document.get("signature_name", SERVING_DEFAULT)
    if not isinstance(name, str) or name not in signatures:
        raise RequestError(
            f"There is no signature {_shown(name)}; there are {', '.join(sorted(signatures))}."
        )
    if ("instances" in document) == ("inputs" in document):
        raise RequestError("The request must have either 'instances' or 'inputs'.")
    inputs = signatures[name].inputs
    by_row = "instances" in document
    if "signature_name" not in document and (other := _meant(document, inputs, signatures)):
        raise RequestError(
            f"Without 'signature_name' the request is for {name}, which takes {', '.join(sorted(inputs))}; "
            f'for these columns add "signature_name": "{other}".'
        )
    columns = (
        _from_rows(document["instances"], inputs) if by_row else _from_columns(document["inputs"], inputs)
    )
    rows = max((len(column) for column in columns.values() if isinstance(column, list)), default=0)
    if rows > most_rows:
        raise RequestError(
            f"The request has {rows} rows; it may have {most_rows}: send them in parts, or start the server "
            "with another --max-rows.",
            status=413,
        )
    if name == SERVE_RAW:
        columns = _filled_up(columns, inputs)
    arrays = {each: to_array(each, columns[each], inputs[each]) for each in inputs}
    lengths = {each: len(array) for each, array in arrays.items() if array.ndim}
    if len(set(lengths.values())) > 1:
        raise RequestError(f"The inputs differ in their number of rows: {lengths}.")
    check_images(arrays)
    if name == SERVE_RAW:
        _check_dates({each: array for each, array in arrays.items() if each in dates})
    return name, by_row, arrays


def _meant(
    document: Mapping[str, object], inputs: Mapping[str, TensorInfo], signatures: Mapping[str, Signature]
) -> str:
    """Return the signature whose inputs the request names, if it names none of `inputs`; else ""."""
    rows = document.get("instances", document.get("inputs"))
    first = rows[0] if isinstance(rows, list) and rows else rows
    named = first.keys() if isinstance(first, dict) else set()
    if named & inputs.keys():
        return ""
    return next((name for name, each in signatures.items() if named & each.inputs.keys()), "")


def _check_dates(arrays: Mapping[str, Array]) -> None:
    for name, array in arrays.items():
        texts = (cell for cell in array.flat if cell) if array.dtype == object else ()
        if (other := next((text for text in texts if not _is_date(text)), None)) is not None:
            raise RequestError(
                f"Input {name!r} holds {_shown(other.decode(errors='replace'))}, and held dates only in "
                "training: write YYYY-MM-DD, with HH:MM:SS behind if there is a time."
            )


def check_images(arrays: Mapping[str, Array]) -> None:
    """Refuse images that are small as files and large in memory, before any is decoded.

    Args:
        arrays: by input. Images are searched for in each cell of bytes, including inside a tf.Example.

    Raises:
        RequestError: the images have more than `MAX_PIXELS` together, or more than `MAX_PARTS`; or one is a
            JPEG of more than `MOST_SCANS`, or a WebP of several frames.
    """
    pixels = 0
    step = _countdown(MAX_PARTS)
    for name, array in arrays.items():
        cells = array.flat if array.dtype == object else ()
        for cell in cells:
            for begin in (PNG_BEGIN, GIF_BEGIN, JPEG_BEGIN, WEBP_BEGIN):
                pixels += _pixels_within(name, cell, begin, step)
        if pixels > MAX_PIXELS:
            raise RequestError(
                f"The images have {pixels} pixels; a request may have {MAX_PIXELS}.", status=413
            )


def _countdown(steps: int) -> Callable[[], None]:
    """Return a function that raises RequestError if it is called more than `steps` times."""
    left = itertools.repeat(None, steps)

    def step() -> None:
        for _ in left:
            return
        raise RequestError(f"The images have more than {MAX_PARTS} parts before their pixels.", status=413)

    return step


def _pixels_within(name: str, cell: bytes, begin: bytes, step: Callable[[], None]) -> int:
    places = list(itertools.islice(_places(cell, begin), MAX_IMAGES + 1))
    if len(places) > MAX_IMAGES:
        raise RequestError(f"A cell of the input {name!r} holds more than {MAX_IMAGES} images.", status=413)
    pixels = 0
    for at in places:
        if begin == JPEG_BEGIN and has_too_many_scans(cell, at, step=step):
            raise RequestError(
                f"An image of the input {name!r} has more than {MOST_SCANS} scans.", status=413
            )
        if begin == WEBP_BEGIN and is_webp_animation(cell, at):
            raise RequestError(
                f"An image of the input {name!r} is an animated WebP, which cannot be decoded."
            )
        pixels += decoded_pixels(cell, at, step=step)
    return pixels


def _places(cell: bytes, begin: bytes) -> Iterator[int]:
    """Yield where images may begin; those of WebP also hold a word, as texts have TARIFF and the like."""
    at = cell.find(begin)
    while at >= 0:
        if begin != WEBP_BEGIN or cell.startswith(WEBP_WORD, at + 8):
            yield at
        at = cell.find(begin, at + 1)


def answer(outputs: Mapping[str, Array], *, by_row: bool) -> dict[str, object]:
    """Return the body of a response: `predictions` with a value per row, or `outputs` with a list per output.

    If the model has only one output, its name is left out, as in TF Serving.

    Raises:
        RequestError: a value per row is asked for, and the outputs have not the same number of rows.
    """
    rows = {array.shape[0] if array.ndim else None for array in outputs.values()}
    if by_row and (None in rows or len(rows) > 1):
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in outputs.items())
        raise RequestError(
            f"The model does not answer row by row ({shapes}): send 'inputs', not 'instances'."
        )
    plain = {name: _plain(array, is_bytes=name.endswith("_bytes")) for name, array in outputs.items()}
    if len(plain) == 1:
        [values] = plain.values()
        return {"predictions" if by_row else "outputs": values}
    if not by_row:
        return {"outputs": plain}
    each_row = zip(*plain.values(), strict=True)
    return {"predictions": [dict(zip(plain, row, strict=True)) for row in each_row]}


def to_array(name: str, value: Any, tensor: TensorInfo) -> Array:
    """Return an input as an array of exactly the tensor's type and shape; nothing is rounded or truncated.

    Raises:
        RequestError: a value has another type, or the whole another shape.
    """
    array = _texts(name, value) if tensor.dtype == "string" else _numbers(name, value, tensor.dtype)
    shape = tensor.shape
    if shape is not None and not _fits(array.shape, shape):
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        is_bare = shape[-1:] == (1,) and _fits((*array.shape, 1), shape)
        remedy = " Put each value into a list of its own: [VALUE]." if is_bare else ""
        raise RequestError(f"Input {name!r} has the shape {list(array.shape)}, but needs [{wanted}].{remedy}")
    return array


def _filled_up(columns: Mapping[str, Any], inputs: Mapping[str, TensorInfo]) -> dict[str, Any]:
    """Pad the lists of each list column with empty cells to the length of the column's longest list."""
    longest = {
        name: max([1, *map(len, columns[name])])
        for name, tensor in inputs.items()
        if _takes_lists(tensor) and _holds_lists(columns[name])
    }
    cells = {name: length * len(columns[name]) for name, length in longest.items()}
    if sum(cells.values()) > MAX_LIST_CELLS:
        name = max(cells, key=cells.__getitem__)
        others = f", those of all inputs {sum(cells.values())}" if len(cells) > 1 else ""
        raise RequestError(
            f"The lists of the input {name!r} take {cells[name]} cells, {len(columns[name])} rows as long as "
            f"the longest{others}; a request may have {MAX_LIST_CELLS}: send long lists separately.",
            status=413,
        )
    fillers = {name: FILLERS[inputs[name].dtype] for name in longest}
    return {
        name: [row + [fillers[name]] * (longest[name] - len(row)) for row in rows]
        if name in longest
        else rows
        for name, rows in columns.items()
    }


def _takes_lists(tensor: TensorInfo) -> bool:
    shape = tensor.shape
    return shape is not None and len(shape) == 2 and shape[1] is None and tensor.dtype in FILLERS


def _holds_lists(rows: Any) -> bool:
    return isinstance(rows, list) and all(isinstance(row, list) for row in rows)


def _from_rows(rows: Any, inputs: Mapping[str, TensorInfo]) -> dict[str, list[Any]]:
    if not isinstance(rows, list) or not rows:
        raise RequestError("'instances' must be a list of at least one row.")
    if len(inputs) == 1 and not all(isinstance(row, dict) and row.keys() == inputs.keys() for row in rows):
        [only] = inputs
        return {only: rows}
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise RequestError(f"Row {number} of 'instances' must be an object with a value for each input.")
        _check_names(row, inputs, f"row {number} of 'instances'")
    return {name: [row[name] for row in rows] for name in inputs}


def _from_columns(columns: Any, inputs: Mapping[str, TensorInfo]) -> dict[str, object]:
    if len(inputs) == 1 and not (isinstance(columns, dict) and columns.keys() == inputs.keys()):
        [only] = inputs
        return {only: columns}
    if not isinstance(columns, dict):
        raise RequestError("'inputs' must be an object with a list for each input.")
    _check_names(columns, inputs, "'inputs'")
    return dict(columns)


def _check_names(given: Mapping[str, object], inputs: Mapping[str, TensorInfo], where: str) -> None:
    if missing := sorted(inputs.keys() - given.keys()):
        raise RequestError(f"In {where} the input {missing[0]!r} is missing.")
    if unknown := sorted(given.keys() - inputs.keys()):
        raise RequestError(f"In {where} there is an unknown input {_shown(unknown[0])}.")


def _shown(text: Any) -> str:
    return repr(text if isinstance(text, str) else type(text).__name__)[:MAX_QUOTED]


def _numbers(name: str, value: Any, dtype: str) -> Array:
    try:
        kinds = _kinds(value)
    except RecursionError as error:
        raise RequestError(f"Input {name!r} is nested too deeply.") from error
    if type(None) in kinds:
        raise _null(name, dtype)
    # Checked before creating an array: in an array of text each cell is as wide as the longest.
    if not kinds <= ({bool} if dtype == "bool" else {int, float}):
        raise RequestError(f"Input {name!r} must be of type {dtype}.")
    try:
        found = np.array(value)
        if found.dtype == object and dtype in _FLOATS:  # whole numbers beyond 64 bits
            found = found.astype(np.float64)
    except OverflowError as error:
        raise RequestError(f"Input {name!r} holds a number that {dtype} cannot hold.") from error
    except ValueError as error:
        raise RequestError(f"Input {name!r} must be numbers in lists of equal lengths.") from error
    if found.size == 0:
        raise RequestError(f"Input {name!r} holds no value.")
    if dtype in _FLOATS:
        fits = found.dtype.kind in "iuf"
    else:
        fits = dtype == "bool" or (found.dtype.kind in "iu" and _in_range(found, dtype))
    if not fits:
        raise RequestError(f"Input {name!r} must be of type {dtype}.")
    with np.errstate(over="ignore"):
        typed = found.astype(_FLOATS.get(dtype, dtype))
    if dtype in _FLOATS and (np.isinf(typed) & np.isfinite(found)).any():
        raise RequestError(f"Input {name!r} holds a number that {dtype} cannot hold.")
    return typed


def _in_range(found: Array, dtype: str) -> bool:
    limits = np.iinfo(dtype)
    return bool(int(found.min()) >= limits.min and int(found.max()) <= limits.max)


def _null(name: str, dtype: str) -> RequestError:
    remedy = f"; an empty cell is {_EMPTY_CELLS[dtype]}" if dtype in _EMPTY_CELLS else ""
    return RequestError(f"Input {name!r} holds null, not {dtype}{remedy}.")


def _kinds(value: Any) -> set[type]:
    """Return the types of the values in nested lists; NumPy would take true and false for 1 and 0."""
    if not isinstance(value, list):
        return {type(value)}
    found = set(map(type, value))
    if list in found:
        found.remove(list)
        found.update(*(_kinds(each) for each in value if isinstance(each, list)))
    return found


def _texts(name: str, value: Any) -> Array:
    sizes: list[int] = []
    flat = value
    while isinstance(flat, list) and len(sizes) <= MAX_DIMENSIONS:
        sizes.append(len(flat))
        flat = flat[0] if flat else None
    if len(sizes) > MAX_DIMENSIONS:
        raise RequestError(f"Input {name!r} is nested too deeply.")
    cells: list[bytes] = []
    _collect(name, value, sizes, cells)
    if not cells:
        raise RequestError(f"Input {name!r} holds no value.")
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array.reshape(sizes)


def _collect(name: str, value: Any, sizes: list[int], cells: list[bytes]) -> None:
    if not sizes:
        cells.append(_bytes(name, value))
        return
    if not isinstance(value, list) or len(value) != sizes[0]:
        raise RequestError(f"Input {name!r} must be texts in lists of equal lengths.")
    for each in value:
        _collect(name, each, sizes[1:], cells)


def _bytes(name: str, value: Any) -> bytes:
    try:
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str):
            return base64.b64decode(value["b64"], validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError) as error:
        raise RequestError(f"Input {name!r} holds a text that cannot be decoded.") from error
    if value is None:
        raise _null(name, "string")
    raise RequestError(f'Input {name!r} must be texts, or bytes as {{"b64": "..."}}.')


def _fits(found: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(found) == len(wanted) and all(w in (None, f) for f, w in zip(found, wanted, strict=True))


def _plain(array: Array, *, is_bytes: bool) -> Any:
    if array.dtype.kind not in "OS":
        return array.tolist()
    return _texts_out(array.tolist(), is_bytes)


def _texts_out(value: Any, is_bytes: bool) -> Any:
    if isinstance(value, list):
        return [_texts_out(each, is_bytes) for each in value]
    if not is_bytes:
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass  # returned as bytes, whatever its name
    return {"b64": base64.b64encode(value).decode()}
