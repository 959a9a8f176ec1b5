"""Finds and reads the files that the nodes of a run wrote."""

import json
from pathlib import Path
from typing import Any

from slipway.pipeline.runs.record import RunRecord

# Results of a run are small; larger files are not meant for a page.
_MOST_BYTES = 64 * 2**20


def folders(record: RunRecord, type_name: str) -> list[Path]:
    """The local folders of artifacts of a type that this run made or took from its cache."""
    return [Path(each["uri"]) for _, each in record.outputs_of(type_name) if "://" not in each["uri"]]


def first_json(record: RunRecord, type_name: str, name: str) -> Any:
    """The JSON object in that file of the first artifact of that type that has it; empty if none has.

    What its values are is for the reader to say.

    Raises:
        ValueError: it is no JSON object.
        OSError: it cannot be read.
    """
    for folder in folders(record, type_name):
        if found := read_json(folder / name):
            return found
    return {}


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object from a file; empty if there is no such file.

    Raises:
        ValueError: it is no JSON object.
        OSError: it cannot be read.
    """
    if not path.is_file():
        return {}
    document = json.loads(read_bytes(path))
    if not isinstance(document, dict):
        raise ValueError(f"{path.name} holds no JSON object")  # noqa: TRY004
    return document


def read_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises:
        ValueError: it is larger than 64 MiB.
        OSError: it cannot be read.
    """
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise ValueError(f"{path.name} is too large for a page: {size / 2**20:,.0f} MiB")
    return path.read_bytes()
