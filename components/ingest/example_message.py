"""Parses tf.Example and tf.SequenceExample messages without TensorFlow.

The messages are those of tensorflow/core/example/{example,feature}.proto.
"""

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import DecodeError

from slipway.components.message_classes import message_classes

MESSAGES = message_classes(
    "slipway.ingest",
    {
        "BytesList": {"value": (1, "*BYTES")},
        "FloatList": {"value": (1, "*FLOAT")},
        "Int64List": {"value": (1, "*INT64")},
        "Feature": {
            "bytes_list": (1, "|BytesList"),
            "float_list": (2, "|FloatList"),
            "int64_list": (3, "|Int64List"),
        },
        "Features": {"feature": (1, "{}Feature")},
        "FeatureList": {"feature": (1, "*Feature")},
        "FeatureLists": {"feature_list": (1, "{}FeatureList")},
        "Example": {"features": (1, "Features")},
        "SequenceExample": {"context": (1, "Features"), "feature_lists": (2, "FeatureLists")},
    },
)


class SequenceError(Exception):
    """A SequenceExample cannot be converted to lists of values; the message says why."""


def find_value(record: bytes, name: str) -> int | float | bytes | None:
    """Return the first value of a feature of a serialised tf.Example; None if it has no value."""
    example = parse_example(record)
    if example is None or name not in example.features.feature:
        return None
    feature = example.features.feature[name]
    kind = feature.WhichOneof("kind")
    values = getattr(feature, kind).value if kind else ()
    return values[0] if values else None


def parse_example(record: bytes) -> Any:
    """Return the message; None if the bytes are not one, or have fields that a tf.Example lacks."""
    return _parsed("Example", record)


def example_of_sequence(record: bytes) -> bytes | None:
    """Convert a tf.SequenceExample to a tf.Example: context features stay, each feature list becomes a list.

    Returns:
        The serialised tf.Example; None if the bytes are not a tf.SequenceExample.

    Raises:
        SequenceError: a step does not have exactly one value, the steps of a list have values of several
            types, or a feature list has the name of a context feature.
    """
    sequence = _parsed("SequenceExample", record)
    if sequence is None:
        return None
    example = MESSAGES["Example"]()
    example.features.CopyFrom(sequence.context)
    features = example.features.feature
    for name, steps in sequence.feature_lists.feature_list.items():
        if name in features:
            raise SequenceError(f"{name!r} is both in the context and a list of steps")
        values = features[name]
        for step in steps.feature:
            kind = step.WhichOneof("kind")
            found: Sequence[object] = getattr(step, kind).value if kind else ()
            if len(found) != 1:
                raise SequenceError(f"a step of {name!r} has {len(found)} values; only one each can be read")
            if values.WhichOneof("kind") not in (None, kind):
                raise SequenceError(f"the steps of {name!r} have values of several types")
            getattr(values, kind).value.append(found[0])
    serialized: bytes = example.SerializeToString(deterministic=True)
    return serialized


def _parsed(name: str, record: bytes) -> Any:
    try:
        found = MESSAGES[name].FromString(record)
    except DecodeError:
        return None
    # Any message can be parsed as any other type: unknown fields are kept along.
    size = found.ByteSize()
    found.DiscardUnknownFields()
    return found if found.ByteSize() == size else None
