"""Predicts rows in a notebook or a test with a pushed version: `slipway.load(workload).predict(frame)`."""

import base64
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, cast

import numpy as np

from slipway.components.nearest import nearest
from slipway.components.pusher.version_store import UntrustedError, version_store_at
from slipway.components.pusher.versions import version_number
from slipway.components.saved_model.signatures import SERVE_RAW, TensorInfo
from slipway.components.serving.limits import ROWS_AT_ONCE
from slipway.components.serving.request_decoding import FILLERS, RequestError
from slipway.pipeline.commands.versions import pushed_version
from slipway.pipeline.config import WorkloadChoice, read_assignments
from slipway.pipeline.errors import UsageError, raised_as
from slipway.pipeline.wiring.pushed_versions import serving_base, trust_in, trusted_versions

if TYPE_CHECKING:
    from slipway.components.serving.live_model import Served


Answer = TypedDict("Answer", {"row": int, "prediction": Any, "class": NotRequired[Any]})
"""The answer to a row, as on a line of `predict`."""


class Loaded:
    """A pushed version that predicts rows."""

    def __init__(self, served: "Served") -> None:
        self._served = served
        if SERVE_RAW not in served.model.signatures:
            raise UsageError(
                f"Version {served.version} takes no raw columns: it has no signature {SERVE_RAW}."
            )
        self._inputs = served.model.signatures[SERVE_RAW].inputs

    @property
    def version(self) -> int:
        """The version's number."""
        return self._served.version

    def predict(self, rows: Any) -> list[Answer]:
        """Predict rows with the checks and the answers of `serve`, in their order.

        Args:
            rows: a DataFrame of pandas, a table of pyarrow, or a list of dicts, each with the version's raw
                columns. None, and in a frame NaN, is an empty cell; columns that the model does not take are
                ignored.

        Returns:
            For each row what the command `predict` writes on its line: `row`, from 0; `prediction`; and
            `class`, if the classes have names. A number that is not finite stays NaN or infinite.

        Raises:
            UsageError: the rows have another form; or `serve` would refuse one, which the message names.
        """
        instances = [self._instance(number, row) for number, row in enumerate(_dicts(rows))]
        starts = range(0, len(instances), ROWS_AT_ONCE)
        found = [each for first in starts for each in self._answers(instances, first, first + ROWS_AT_ONCE)]
        keys = Answer.__annotations__
        return [cast("Answer", dict(zip(keys, (row, *each), strict=False))) for row, each in enumerate(found)]

    def _instance(self, number: int, row: Any) -> dict[str, object]:
        needed = self._served.needed
        if not isinstance(row, Mapping):
            raise UsageError(f"Row {number} is of the type {type(row).__name__}, not a dict.")
        if missing := sorted(self._inputs.keys() - row.keys()):
            near = nearest(missing[0], [str(name) for name in row if name not in self._inputs])
            raise UsageError(
                f"Row {number} lacks the column {missing[0]!r}{f' (nearest: {near})' if near else ''}.",
                hint="a row must have each column that the model takes; in one that is unknown, write None",
            )
        cells = {
            name: _cells(row[name], tensor, None if name in needed else FILLERS.get(tensor.dtype))
            for name, tensor in self._inputs.items()
        }
        # What stands for an empty cell would be taken for a value there.
        if empty := [name for name in needed if cells.get(name, 0) in (None, [None])]:
            raise UsageError(f"Row {number} has no value in the column {empty[0]!r}, which no row may lack.")
        return cells

    def _answers(self, instances: Sequence[object], first: int, end: int) -> list[tuple[object, ...]]:
        """Return the answers to some rows, each with its class if it has one.

        If the rows are refused together, each part of them is asked.
        """
        from slipway.components.serving.server import predicted

        asked = instances[first:end]
        try:
            said = predicted(self._served, {"signature_name": SERVE_RAW, "instances": asked})[1]
        except RequestError as error:
            if len(asked) == 1:
                raise UsageError(f"Row {first}: {error}") from error
            middle = first + len(asked) // 2
            return self._answers(instances, first, middle) + self._answers(instances, middle, end)
        columns = [cast("list[object]", said[key]) for key in ("predictions", "classes") if key in said]
        return list(zip(*columns, strict=True))


def load(
    model: str | Path,
    *,
    output: str | Path = "output",
    version: int | None = None,
    sets: Collection[str] = (),
    profile: str | None = None,
    verify_key: Path | None = None,
) -> Loaded:
    """Load a pushed version, after verifying it as `serve` does.

    Args:
        model: a workload file, or its name in workloads/; or the folder or address of a version.
        output: the folder for all files that runs write; a relative path starts in the current folder.
        version: the number of one of the workload's versions; None: the newest.
        sets: values that override the workload file, as `--set` takes them: `["push.destination=gs://..."]`.
        profile: one of the workload file's profiles; None: no profile.
        verify_key: the public key whose private key must have signed the version; None: the workload's key,
            if it names one.

    Raises:
        UsageError: there is no such workload or version, or it is not trusted, or takes no raw columns.
        ComponentError: the version is damaged, or cannot be loaded.
    """
    from slipway.components.serving.live_model import loaded

    chosen = WorkloadChoice(Path(model), read_assignments(sets), profile)
    base, _, name = str(model).rstrip("/").rpartition("/")
    if (number := version_number(name)) and not chosen.file.is_file():
        store = version_store_at(base or ".", trust_in(str(verify_key)) if verify_key else None)
        if number not in store.numbers() or version not in (None, number):
            raise UsageError(f"{model} is not the folder of version {version or number}.")
    else:
        config, folder = chosen.config(), Path(output).absolute()
        store = version_store_at(serving_base(config, folder), trusted_versions(config, verify_key))
        number = pushed_version(store, version, config, folder)
    with raised_as(UsageError, UntrustedError):
        return Loaded(loaded(store, number))


def _dicts(rows: Any) -> Sequence[Any]:
    """Return rows as dicts; None is an empty cell."""
    if hasattr(rows, "itertuples"):  # of pandas, which is not imported here: other users need none
        # Its numbers of NumPy are Python's once they are objects, and all that it takes for missing is None.
        return list(rows.astype(object).where(rows.notna(), None).to_dict("records"))
    rows = rows.to_pylist() if hasattr(rows, "to_pylist") else rows
    if not isinstance(rows, list):
        raise UsageError(
            f"Rows cannot be of the type {type(rows).__name__}.",
            hint="give a DataFrame of pandas, a table of pyarrow, or a list of dicts",
        )
    return rows


def _cells(value: Any, tensor: TensorInfo, empty: Any) -> Any:
    """Return a value as `serve` takes it in a row: of the input's type, and in a list unless it is one.

    Args:
        empty: stands for a missing value.
    """
    cell = _cell(value, tensor.dtype, empty)
    return cell if isinstance(cell, list) or len(tensor.shape or ()) == 1 else [cell]


def _cell(value: Any, dtype: str, empty: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_cell(each, dtype, empty) for each in value]
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, float) and dtype in ("int64", "string"):
        if math.isnan(value):
            value = None
        elif dtype == "int64" and value.is_integer():  # a frame's whole numbers, of which some are missing
            return int(value)
    return empty if value is None else value
