"""Rewords a model's error about an example that it refuses. Pure."""

import re

_COUNT = re.compile(
    r"Key: (?P<name>.*?), Index: \d+\.\s+Number of \w+ values != expected\.\s+"
    r"Values size: (?P<found>\d+) but output shape: \[(?P<needed>[\d,]*)\]"
)
_ABSENT = re.compile(r"Feature: (?P<name>.*?) \(data type: \w+\) is required but could not be found")
_TYPE = re.compile(
    r"Key: (?P<name>.*?), Index: \d+\.\s+Data types don't match\.\s+"
    r"(?:Data type: (?P<found>\w+) but )?[Ee]xpected type: (?P<needed>\w+)"
)
_NO_EXAMPLE = "Could not parse example input"
_TYPES = {"int64": "whole numbers", "float": "fractions", "string": "text"}


def in_words(message: str) -> str:
    """Return the message, reworded if it is TensorFlow's about a column of an example."""
    if found := _ABSENT.search(message) or _COUNT.search(message):
        fields = found.groupdict()
        count = int(fields.get("found") or 0)
        if not count:
            return f"{fields['name']} has no value, but the model needs one in every row"
        needed = fields["needed"] or "1"
        return f"{fields['name']} has {count} values, but the model needs {needed} in every row"
    if found := _TYPE.search(message):
        holds = _TYPES.get(found["found"], "another type")
        needs = _TYPES.get(found["needed"], found["needed"])
        return f"{found['name']} holds {holds}, but the model needs {needs}"
    if _NO_EXAMPLE in message:  # the rest of the message is the bytes
        return f"{_NO_EXAMPLE}: it is not a serialized tf.Example"
    return message
