"""Columns of serialised tf.Examples; test_example_batches.py holds them beside what TFX's decoder returns."""

import numpy as np
import pytest
from serialised_example import example

from slipway.components.example_columns import columns_of


def column(*rows):
    """Return the column of these rows."""
    return columns_of([example(column=each) for each in rows])["column"]


def test_a_number_a_row():
    found = columns_of(
        [example(hour=[5], fare=[2.5], of=[b"cash"]), example(hour=[300], fare=[-1.0], of=[b""])]
    )
    assert {name: each.kind for name, each in found.items()} == {
        "fare": "float",
        "hour": "int",
        "of": "bytes",
    }
    assert found["hour"].flat.tolist() == [5, 300]
    assert found["fare"].flat.tolist() == [2.5, -1.0]
    assert bytes(found["of"].flat) == b"cash"
    assert found["of"].lengths.tolist() == [4, 0]
    assert all(each.counts.tolist() == [1, 1] for each in found.values())


@pytest.mark.parametrize(
    "values",
    [[0, 127, 128, 2**14, 2**35, 2**56 - 1], [2**56, 2**63 - 1], [-1, -(2**63)], [1, -1, 2**62]],
    ids=["up to a word", "longer", "negative", "mixed"],
)
def test_integers_of_all_lengths(values):
    assert column(*([each] for each in values)).flat.tolist() == values


def test_rows_may_have_no_list_an_empty_one_or_several_numbers():
    found = column([1, 2, 3], None, [-5], [400] * 200)
    assert found.counts.tolist() == [3, -1, 1, 200]
    assert found.flat.tolist() == [1, 2, 3, -5, *[400] * 200]
    found = column([0.5, 1.5], [], None)
    assert found.counts.tolist() == [2, 0, -1]
    assert found.flat.tolist() == [0.5, 1.5]


def test_long_texts_and_long_names():
    name = "a name of more than a hundred and twenty-eight letters, " * 3
    texts = [b"x" * 1000, b"short", b"y" * 130]
    found = columns_of([example(**{name: [text]}) for text in texts])[name]
    assert bytes(found.flat) == b"".join(texts)
    assert found.lengths.tolist() == [1000, 5, 130]


def test_column_without_any_list_has_no_type():
    found = column(None, None)
    assert (found.kind, found.counts.tolist(), len(found.flat)) == (None, [-1, -1], 0)


def test_only_the_named_columns_are_decoded():
    assert columns_of([example(a=[1], b=[2], c=[3])], {"b", "d"}).keys() == {"b"}


@pytest.mark.parametrize(
    "records",
    [
        [example(a=[1]), example(b=[1])],
        [example(a=[1]), example(a=[1], b=[1])],
        [example(a=[1], b=[1]), example(a=[1])],
        [example(a=[1]), example(a=[1.5])],
        [example(a=[b"two", b"texts"])],
        [example(a=[1]), b""],
        [b""],
        [b"\x0a\x00"],
        [example(a=[1])[:-1]],
        [example(a=[1]) + b"\x12\x00"],
        [b"no tf.Example"],
    ],
    ids=[
        "other column",
        "one more",
        "one less",
        "other type",
        "several texts",
        "an empty row",
        "no column",
        "empty features",
        "cut off",
        "another field",
        "text",
    ],
)
def test_rows_that_are_not_alike_need_another_decoder(records):
    assert not columns_of(records)


def test_unpacked_numbers_need_another_decoder():
    # Two numbers, each with its own tag: written by no TensorFlow, and allowed.
    unpacked = b"\x0a\x0e\x0a\x0c\x0a\x01a\x12\x07\x1a\x05\x08\x01\x08\x02\x08"
    assert columns_of([unpacked]) is None


def test_values_do_not_share_memory_that_others_write_to():
    records = [example(a=[1.0] * 40)]
    before = bytes(records[0])
    found = columns_of(records)["a"].flat
    assert isinstance(found, np.ndarray)
    assert not found.flags.writeable or np.array_equal(columns_of(records)["a"].flat, found)
    assert records[0] == before
