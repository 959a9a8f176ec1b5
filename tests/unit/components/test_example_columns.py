"""Columns of serialised tf.Examples; test_example_batches.py holds them beside what TFX's decoder returns."""

import pytest
from serialised_example import example

from slipway.components import example_columns
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
    found = column([1, 2, 3], None, [-5], [400] * 9)
    assert found.counts.tolist() == [3, -1, 1, 9]
    assert found.flat.tolist() == [1, 2, 3, -5, *[400] * 9]
    found = column([0.5, 1.5], [], None)
    assert found.counts.tolist() == [2, 0, -1]
    assert found.flat.tolist() == [0.5, 1.5]


def test_many_rows_are_decoded_in_pieces(monkeypatch):
    rows = [None, None, [1], [2, 300], None, [-1], [b"text"]]
    monkeypatch.setattr(example_columns, "_PIECE_ROWS", 2)
    found = column(*rows[:6])
    assert (found.kind, found.counts.tolist()) == ("int", [-1, -1, 1, 2, -1, 1])
    assert found.flat.tolist() == [1, 2, 300, -1]
    assert column(*rows[:2]).kind is None
    texts = column(None, None, [b"a"], [b"bc"], [b""])
    assert (bytes(texts.flat), texts.lengths.tolist()) == (b"abc", [1, 2, 0])
    assert columns_of([example(column=each) for each in rows]) is None, "numbers, then texts"
    assert columns_of([example(a=[1]), example(a=[1]), example(b=[1])]) is None, "other columns"
    assert columns_of([example(a=[1]), example(a=[1]), example(b=[1])], ["c"]) == {}


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
    assert columns_of(records) is None or columns_of(records) == {}


def test_unpacked_numbers_need_another_decoder():
    # Two numbers, each with its own tag: written by no TensorFlow, and allowed.
    unpacked = b"\x0a\x0e\x0a\x0c\x0a\x01a\x12\x07\x1a\x05\x08\x01\x08\x02\x08"
    assert columns_of([unpacked]) is None


def test_many_whole_numbers_a_row_need_another_decoder():
    assert column([300] * 8).flat.tolist() == [300] * 8
    assert columns_of([example(column=[300] * 9)]) is None
    assert column(*([-1] for _ in range(9))).flat.tolist() == [-1] * 9


def test_a_damaged_length_without_end_is_given_up_at_once():
    assert columns_of([b"\x0a\x7f\x0a" + b"\xff" * 2_000_000]) is None


def field(tag, *parts):
    """Return a field of a message: its tag, the length of its parts, and the parts."""
    content = b"".join(parts)
    return bytes([tag, len(content)]) + content


def entry(*feature, name=b"a"):
    """Return the entry of a column with a serialised Feature."""
    return field(0x0A, field(0x0A, name), field(0x12, *feature))


def record(*entries):
    """Return a serialised tf.Example."""
    return field(0x0A, *entries)


def ints(*values):
    """Return the Feature of a list of packed whole numbers."""
    return field(0x1A, field(0x0A, *values))


def test_a_record_by_hand_is_read():
    assert columns_of([record(entry(ints(b"\x05")))])["a"].flat.tolist() == [5]


@pytest.mark.parametrize(
    "damaged",
    [
        record(entry(ints(b"\x05")), entry(ints(b"\x06"))),
        record(entry(ints(b"\x80"))),
        record(entry(ints(b"\x80" * 9))),
        record(entry(ints(b"\xff" * 10 + b"\x01"))),
        record(entry(ints(b""), b"")),
        record(entry(field(0x12, field(0x0A, b"\0\0\0")))),
        record(entry(field(0x12, field(0x0A, b"\0" * 6)))),
        record(entry(field(0x12, field(0x0A, b"\0\0\0\0"), field(0x0A, b"\0\0\0\0")))),
        record(entry(ints(b"\x05"), ints(b"\x06"))),
        record(field(0x0A, field(0x0A, b"a"), field(0x12, ints(b"\x05")), b"\x10\x01")),
        record(entry(field(0x22, field(0x0A, b"\x05")))),
        record(entry(ints(b"\x05"))[:-1] + b""),
        record(entry(ints(b"\x05")).replace(b"\x0a\x0a", b"\x0a\x20", 1)),
        b"\x12" + record(entry(ints(b"\x05")))[1:],
        b"\x0a\x0b" + record(entry(ints(b"\x05")))[2:],
        record(entry(ints(b"\x05")).replace(b"\x12\x05", b"\x12\x04")),
        record(entry(ints(b"\x05")).replace(b"\x1a\x03", b"\x1a\x02")),
        record(entry(ints(b"\x05")).replace(b"\x12\x05", b"\x12" + b"\xff" * 20)),
        record(entry(ints(b"\x05"), name=b"\xff")),
        record(entry(ints(b"\x05"), name=b"a\0b")),
    ],
    ids=[
        "the same column twice",
        "a number without an end",
        "a long number without an end",
        "a number of eleven bytes",
        "a packed list of none",
        "three quarters of a fraction",
        "one and a half fractions",
        "two packed lists",
        "two lists",
        "a third field of an entry",
        "an unknown list",
        "an entry that is cut off",
        "an entry longer than the record",
        "no Features",
        "Features longer than they say",
        "a Feature longer than it says",
        "a list longer than it says",
        "a length without an end",
        "a name that is no text",
        "a name that ends in its middle",
    ],
)
def test_unusual_or_damaged_fields_need_another_decoder(damaged):
    assert columns_of([damaged]) is None
    assert columns_of([damaged, damaged]) is None
    assert columns_of([record(entry()), damaged]) is None, "where a row has no list"
