"""Lets ML Metadata keep text with backslashes in PostgreSQL. Imports ML Metadata.

ml-metadata 1.17.1 strips the quotes that PostgreSQL puts around a text, but does not know that text with a
backslash is quoted as `E'...'`: the statement breaks, and with it every node whose settings hold a
backslash. Backslashes are replaced by a stand-in on the way in, and restored on the way out; SQLite and
MySQL are not affected.
"""

from collections.abc import Mapping
from typing import Any

import ml_metadata
from google.protobuf.message import Message

# A private-use code point of Unicode, which texts do not contain.
STAND_IN = "\uf05c"


class _Call:
    """A replacement of `MetadataStore._call`, which every request and response passes through."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def __get__(self, store: Any, owner: Any = None) -> Any:
        def call(method_name: str, request: Message, response: Message, *rest: Any) -> Any:
            replace(request, "\\", STAND_IN)
            answer = self._call(store, method_name, request, response, *rest)
            replace(response, STAND_IN, "\\")
            return answer

        return call


def keep_backslashes() -> None:
    """Make every `MetadataStore` of this process keep backslashes; a second call changes nothing."""
    if not isinstance(vars(ml_metadata.MetadataStore)["_call"], _Call):
        ml_metadata.MetadataStore._call = _Call(ml_metadata.MetadataStore._call)


def replace(message: Message, old: str, new: str) -> None:
    """Replace a character in every text of a message, in place."""
    # Most messages do not contain it, and searching the bytes is much faster than searching the fields.
    if old.encode() in message.SerializeToString():
        _replace(message, old, new)


def _replace(message: Message, old: str, new: str) -> None:
    for field, value in message.ListFields():
        if isinstance(value, str):
            setattr(message, field.name, value.replace(old, new))
        elif isinstance(value, Message):
            _replace(value, old, new)
        elif field.type == field.TYPE_STRING:
            value[:] = [text.replace(old, new) for text in value]
        elif field.type == field.TYPE_MESSAGE:
            for part in value.values() if isinstance(value, Mapping) else value:
                if isinstance(part, Message):
                    _replace(part, old, new)
