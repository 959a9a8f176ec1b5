"""Serialised tf.Examples without TensorFlow, whose features stand in the order that a test gives."""

import struct


def example(**features: float | bytes) -> bytes:
    """A serialised Example of features with one float, small whole number or bytes each."""
    kinds = {
        float: lambda v: (2, _message((1, struct.pack("<f", v)))),
        int: lambda v: (3, _message((1, bytes([v])))),
        bytes: lambda v: (1, _message((1, v))),
    }
    entries = [
        _message((1, name.encode()), (2, _message(kinds[type(value)](value))))
        for name, value in features.items()
    ]
    return _message((1, _message(*((1, entry) for entry in entries))))


def _message(*fields: tuple[int, bytes]) -> bytes:
    return b"".join(bytes([number << 3 | 2, len(content)]) + content for number, content in fields)
