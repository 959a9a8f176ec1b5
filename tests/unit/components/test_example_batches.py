"""Batches of examples, beside those of TFX's decoder."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serialised_example import example
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

from slipway.components import example_batches, example_columns
from slipway.components.example_batches import ExampleDecoder

_NUMBERS = st.floats(width=32, allow_nan=False)
_INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 200)
_LISTS = {
    "int": st.lists(_INTEGERS, min_size=1, max_size=4),
    "float": st.lists(_NUMBERS, min_size=1, max_size=40) | st.just([]),
    "bytes": st.binary(max_size=200).map(lambda text: [text]),
    "bytes lists": st.lists(st.binary(max_size=4), min_size=1, max_size=3),
}


@st.composite
def tables(draw):
    """Return serialised rows of the same columns."""
    kinds = draw(st.dictionaries(st.text(max_size=20), st.sampled_from(list(_LISTS)), min_size=1, max_size=4))
    row = st.fixed_dictionaries({name: st.none() | _LISTS[kind] for name, kind in kinds.items()})
    return [example(**each) for each in draw(st.lists(row, min_size=1, max_size=8))]


def stock(records, schema=None):
    """Return what TFX's decoder returns, or its error."""
    decoder = ExamplesToRecordBatchDecoder(*([schema.SerializeToString()] if schema else []))
    try:
        return decoder.DecodeBatch(records)
    except Exception as error:  # tfx_bsl raises errors of several kinds
        return type(error)


@pytest.fixture(autouse=True, scope="module")
def few_rows():
    """A few rows, too, are decoded together, more than three in pieces."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(example_batches, "FEWEST_ROWS", 1)
        patched.setattr(example_columns, "_PIECE_ROWS", 3)
        yield


@given(tables())
def test_batch_is_that_of_tfx(records):
    expected = stock(records)
    found = ExampleDecoder().decode(records)
    assert found.schema == expected.schema
    assert found.equals(expected)


@given(tables(), st.data())
def test_damaged_rows_are_decoded_as_by_tfx_or_by_it(records, data):
    row = data.draw(st.integers(0, len(records) - 1))
    place = data.draw(st.integers(0, len(records[row]) - 1))
    damaged = bytearray(records[row])
    damaged[place] = data.draw(st.integers(0, 255))
    records[row] = bytes(damaged)
    found = ExampleDecoder()._alike(records)
    if found is not None:
        expected = stock(records)
        assert found.schema == expected.schema
        assert str(found) == str(expected)  # a damaged float may be NaN, which equals nothing


def schema_of(**types):
    """Return a schema."""
    return schema_pb2.Schema(
        feature=[
            schema_pb2.Feature(name=name, type=getattr(schema_pb2, kind)) for name, kind in types.items()
        ]
    )


ROWS = [example(fare=[2.5], hour=[5], of=[b"cash"]), example(fare=[1.5], hour=None, of=[b"card"])]


class Counted:
    """A stock decoder that counts its calls."""

    def __init__(self, decoder):
        self.decoder, self.calls = decoder, 0

    def DecodeBatch(self, records):  # noqa: N802
        self.calls += 1
        return self.decoder.DecodeBatch(records)


def test_rows_that_are_alike_are_decoded_without_tfx_until_some_are_not(monkeypatch):
    decoder = ExampleDecoder()
    decoder._stock = stock = Counted(decoder._stock)
    monkeypatch.setattr(example_batches, "FEWEST_ROWS", 2)
    assert decoder.decode(ROWS).num_rows == 2
    assert stock.calls == 0
    assert decoder.decode(ROWS[:1]).num_rows == 1
    assert stock.calls == 1, "one row is too few"
    assert decoder.decode(ROWS).num_rows == 2
    assert decoder.decode([*ROWS, example(fare=[1.0])]).num_rows == 3
    assert decoder.decode(ROWS).num_rows == 2
    assert stock.calls == 3


def test_rows_without_any_column_are_counted():
    assert ExampleDecoder().decode([b"\x0a\x00"] * 3).num_rows == 3
    assert ExampleDecoder(schema_of()).decode(ROWS).num_rows == 2


@pytest.mark.parametrize(
    "schema",
    [
        schema_of(of="BYTES", fare="FLOAT"),
        schema_of(hour="INT", nowhere="FLOAT", nothing="BYTES"),
        schema_of(fare="INT"),
        schema_of(hour="FLOAT"),
    ],
    ids=["its order", "columns that no row has", "another type", "another type where rows lack one"],
)
def test_a_schema_decides_columns_order_and_types(schema):
    expected = stock(ROWS, schema)
    if isinstance(expected, type):
        with pytest.raises(expected):
            ExampleDecoder(schema).decode(ROWS)
        return
    found = ExampleDecoder(schema).decode(ROWS)
    assert found.schema == expected.schema
    assert found.equals(expected)


def test_nan_and_infinity_keep_their_bits():
    values = [np.float32("nan"), np.float32("-inf"), np.float32(1e-45)]
    column = ExampleDecoder().decode([example(a=[float(each)]) for each in values]).column(0)
    assert column.flatten().to_numpy().tobytes() == np.array(values).tobytes()


def test_no_rows_and_no_example():
    assert ExampleDecoder().decode([]).num_rows == 0
    with pytest.raises(stock([b"no tf.Example"])):
        ExampleDecoder().decode([b"no tf.Example"])
