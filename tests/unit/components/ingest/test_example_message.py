"""Sequences as examples: a list of steps becomes a list of values, or it is said why not."""

import pytest

from slipway.components.ingest.example_message import (
    SequenceError,
    example_of_sequence,
    parse_example,
)


def message(*fields):
    return b"".join(bytes([number << 3 | 2, len(data)]) + data for number, data in fields)


def int64s(*values):
    return message((3, message((1, bytes(values)))))


def texts(*values):
    return message((1, message(*((1, value) for value in values))))


def entry(name, value):
    return message((1, message((1, name), (2, value))))


def steps(name, *values):
    return entry(name, message(*((1, value) for value in values)))


def sequence(context, lists):
    return message((1, context), (2, lists))


def test_steps_of_one_value_each_are_a_list_beside_the_features_of_the_context():
    lists = steps(b"page", int64s(7), int64s(9)) + steps(b"word", texts(b"a"), texts(b"b")) + steps(b"none")
    record = sequence(entry(b"user", int64s(1)), lists)
    assert parse_example(record) is None
    features = parse_example(example_of_sequence(record)).features.feature
    assert features["user"].int64_list.value == [1]
    assert features["page"].int64_list.value == [7, 9]
    assert features["word"].bytes_list.value == [b"a", b"b"]
    assert features["none"].WhichOneof("kind") is None, "a list without a step is an empty cell"


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        (steps(b"page", int64s(7), int64s(8, 9)), "a step of 'page' has 2 values; only one each can be read"),
        (steps(b"page", int64s(7), b""), "a step of 'page' has 0 values"),
        (steps(b"page", int64s(7), texts(b"a")), "the steps of 'page' have values of several types"),
        (steps(b"user", int64s(7)), "'user' is both in the context and a list of steps"),
    ],
)
def test_sequence_that_no_lists_can_hold_says_why(lists, words):
    with pytest.raises(SequenceError, match=words):
        example_of_sequence(sequence(entry(b"user", int64s(1)), lists))


def test_other_messages_are_no_sequences():
    assert example_of_sequence(message((4, b"a name"))) is None
    assert example_of_sequence(b"\xff\xff") is None
