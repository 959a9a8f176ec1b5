"""Reads stored JSON back into the types it was written from, or rejects it with an explanation."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson

from slipway.components import typed_json
from slipway.components.finite_json import parsed
from slipway.components.typed_json import MisfitError
from slipway.pipeline.errors import PipelineError, raised_as

T = TypeVar("T")


class DocumentError(PipelineError):
    """A document is damaged, or not one of ours."""


def read_document(kind: type[T], path: Path, *, leave_out: Sequence[str] = ()) -> T:
    """Return the content of a JSON file, as `typed` reads it.

    Args:
        leave_out: keys of the outermost mapping to ignore.

    Raises:
        FileNotFoundError: there is no such file.
        DocumentError: names the file, and what is wrong with it.
    """
    try:
        document = _parsed(path.read_bytes())
        if leave_out and isinstance(document, dict):
            document = {key: value for key, value in document.items() if key not in leave_out}
        return typed(kind, document)
    except FileNotFoundError:
        raise
    except OSError as error:
        why = error.strerror
    except (ValueError, RecursionError):
        why = f"its {path.stat().st_size:,} bytes are not complete JSON; the file was truncated or changed"
    except PipelineError as error:
        why = error.message
    raise DocumentError(f"{path} cannot be read: {why}")


def _parsed(text: bytes) -> Any:
    """Return a JSON document. orjson takes less than half the time, which counts for thousands of records."""
    try:
        return orjson.loads(text)
    except ValueError:  # e.g. NaN, which Python's json writes and reads
        return parsed(text)


def typed_text(kind: type[T], text: str) -> T:
    """Return the JSON document in a text, as `typed` reads it.

    Raises:
        DocumentError: says what is wrong with it.
    """
    try:
        return typed(kind, parsed(text))
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"the text is not JSON: {error}") from error


def plain(document: Any) -> Any:
    """Return a document as data for JSON, which `typed` reads back. Pure."""
    if is_dataclass(document) and not isinstance(document, type):
        return {each.name: plain(getattr(document, each.name)) for each in fields(document)}
    if isinstance(document, Mapping):
        return {key: plain(value) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [plain(value) for value in document]
    return str(document) if isinstance(document, Path) else document


def typed(kind: type[T], value: object) -> T:
    """Read plain data as the given type, see `components.typed_json`.

    Raises:
        DocumentError: names the field that does not fit, its value, and the expected type.
    """
    with raised_as(DocumentError, MisfitError):
        return typed_json.typed(kind, value)
