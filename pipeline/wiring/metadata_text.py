"""Lets ML Metadata keep text with backslashes in PostgreSQL. Imports ML Metadata.

ml-metadata 1.17.1 strips the quotes that PostgreSQL puts around a text, and does not know that a text with
a backslash is quoted as `E'...'`: the statement breaks, and with it every node whose settings hold one.
Text goes in with a stand-in and comes out as it was; nothing changes for SQLite and MySQL.
"""

from collections.abc import Mapping
from typing import Any

import ml_metadata
from google.protobuf.message import Message

# A code point for private use in Unicode, so that no text contains it.
STAND_IN = "\uf05c"


class _Call:
    """Replaces `MetadataStore._call`, which every request and answer passes through."""

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
    """Makes every `MetadataStore` of this process keep backslashes; a second call changes nothing."""
    if not isinstance(vars(ml_metadata.MetadataStore)["_call"], _Call):
        ml_metadata.MetadataStore._call = _Call(ml_metadata.MetadataStore._call)


def replace(message: Message, old: str, new: str) -> None:
    """Replaces a character in every text of a message, in place."""
    # Most hold none, and searching the bytes is much faster than the fields.
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
