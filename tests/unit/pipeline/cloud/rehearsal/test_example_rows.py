"""Rows of tf.Examples, read without TensorFlow."""

import struct

from slipway.pipeline.cloud.rehearsal.example_rows import Row, row_of


def message(*fields):
    return b"".join(bytes([number << 3 | 2, len(content)]) + content for number, content in fields)


def example(**features):
    """A serialized Example of float, int and bytes features, in the order given."""
    kinds = {
        float: lambda v: (2, message((1, struct.pack("<f", v)))),
        int: lambda v: (3, message((1, bytes([v])))),
        bytes: lambda v: (1, message((1, v))),
    }
    entries = [
        message((1, name.encode()), (2, message(kinds[type(value)](value))))
        for name, value in features.items()
    ]
    return message((1, message(*((1, entry) for entry in entries))))


def test_hand_written_examples_are_what_tensorflow_s_schema_reads():
    row = row_of(example(fare=1.5, big_tip=1, company=b"Flash"))
    assert row.floats == (1.5,)
    assert row.exact.startswith(b"['big_tip', 'int64_list', [1], 'company'"), "by name"
    assert row_of(b"no example") == Row(b"no example", ())
