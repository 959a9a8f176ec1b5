"""Finds and reads the files that the nodes of a run wrote."""

from pathlib import Path
from typing import Any

from slipway.components.finite_json import parsed
from slipway.pipeline.runs.record import RunRecord

# The result files of a run are small; a larger file is not meant for a report page.
_MOST_BYTES = 64 * 2**20


def folders(record: RunRecord, type_name: str) -> list[Path]:
    """Return the local folders of a type's artifacts that this run produced or took from the cache."""
    return [Path(each["uri"]) for _, each in record.outputs_of(type_name) if "://" not in each["uri"]]


def first_json(record: RunRecord, type_name: str, name: str) -> Any:
    """Return the JSON object in file `name` of the first artifact of a type that has this file.

    The result is empty if no artifact has it. It is typed `Any`, so that each caller can declare the types of
    the values.

    Raises:
        ValueError: the file does not hold a JSON object.
        OSError: the file cannot be read.
    """
    for folder in folders(record, type_name):
        if found := read_json(folder / name):
            return found
    return {}


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file; empty if there is no such file.

    Raises:
        ValueError: the file does not hold a JSON object.
        OSError: the file cannot be read.
    """
    if not path.is_file():
        return {}
    document = parsed(read_bytes(path))
    if not isinstance(document, dict):
        raise ValueError(f"{path.name} holds no JSON object")  # noqa: TRY004
    return document


def read_bytes(path: Path) -> bytes:
    """Read a file.

    Raises:
        ValueError: the file is larger than 64 MiB.
        OSError: the file cannot be read.
    """
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise ValueError(
            f"{path.name} has {size / 2**20:,.0f} MiB; a page reads {_MOST_BYTES / 2**20:.0f} at most"
        )
    return path.read_bytes()
