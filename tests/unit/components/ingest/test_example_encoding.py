"""Rows as serialised tf.Examples."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.components.ingest import example_encoding
from slipway.components.ingest.column_types import (
    ColumnType,
)
from slipway.components.ingest.example_encoding import ExampleEncoder, varint, varints
from slipway.components.ingest.example_message import parse_example

ALL = {"split": {"all": 1}}


def _no_strings(values, kind):
    """Texts as Arrow has them where nobody has checked that they are some."""
    bytes_of = pa.array(values, pa.binary())
    return pa.Array.from_buffers(kind, len(bytes_of), bytes_of.buffers())


@pytest.mark.parametrize(
    ("column", "settings"),
    [
        (pa.array([b"a", b"\xffb", None, b"c"]), {"types": {"t": "text"}}),
        (_no_strings([b"a", b"\xffb", None, b"c"], pa.string()), {}),
        (_no_strings([b"a", b"\xffb", None, b"c"], pa.string()).dictionary_encode(), {}),
    ],
)
def test_row_without_text_in_a_column_of_texts_is_rejected_with_its_bytes(ingest, tmp_path, column, settings):
    pq.write_table(pa.table({"n": [1, 2, 3, 4], "t": column}), tmp_path / "in.parquet")
    found = ingest(tmp_path / "in.parquet", format="parquet", **settings, **ALL)
    assert [(row["n"], row["t"]) for row in found.rows] == [([1], [b"a"]), ([3], []), ([4], [b"c"])]
    [reject] = found.rejects
    assert (reject["offset"], reject["column"], reject["reason"]) == (1, "t", "not valid text")
    assert reject["detail"] == "b'\\xffb'"


def test_text_in_a_list_counts_and_bytes_elsewhere_may_be_anything(ingest, tmp_path):
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), pa.array([b"a", b"b", b"\xff"]))
    pq.write_table(pa.table({"image": [b"\xff\xd8", b"\xff\xd8"], "l": lists}), tmp_path / "in.parquet")
    kept = ingest(tmp_path / "in.parquet", format="parquet", **ALL)
    assert [row["l"] for row in kept.rows] == [[b"a", b"b"], [b"\xff"]]
    found = ingest(tmp_path / "in.parquet", format="parquet", types={"l": "text"}, **ALL)
    assert [row["l"] for row in found.rows] == [[b"a", b"b"]]
    assert [(each["offset"], each["column"]) for each in found.rejects] == [(1, "l")]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_numbers_are_encoded_as_protocol_buffers_do(numbers):
    data, lengths = varints(np.array(numbers, dtype=np.int64))
    expected = [varint(number & 0xFFFFFFFFFFFFFFFF) for number in numbers]
    assert data.tobytes() == b"".join(expected)
    assert lengths.tolist() == [len(each) for each in expected]


NAMES = st.text(st.characters(codec="utf-8"), max_size=200) | st.sampled_from(["a", "ab", "a\xe9", "b"])
VALUES = {
    ColumnType.INT: (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    ColumnType.FLOAT: (st.floats(width=32), pa.float64()),
    ColumnType.TEXT: (st.binary(max_size=300), pa.large_binary()),
    ColumnType.UNKNOWN: (st.none(), pa.null()),
}


@given(st.data())
def test_examples_are_serialised_as_protocol_buffers_do(data):
    rows = data.draw(st.integers(1, 5))
    columns = data.draw(st.dictionaries(NAMES, st.sampled_from(ColumnType), max_size=5))
    arrays = {}
    for name, kind in columns.items():
        values, arrow = VALUES[kind]
        if kind != ColumnType.UNKNOWN and data.draw(st.booleans()):
            values, arrow = st.lists(values, max_size=3), pa.large_list(arrow)
        drawn = data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        arrays[name] = pa.array(drawn, arrow)
    for record in ExampleEncoder(columns).encode(arrays, rows).to_pylist():
        example = parse_example(record)
        assert example.SerializeToString(deterministic=True) == record
        assert set(example.features.feature) == set(columns)


def test_long_value_costs_no_table_of_all_lengths(monkeypatch):
    calls = []
    head = example_encoding._FeatureEncoder._head
    monkeypatch.setattr(
        example_encoding._FeatureEncoder, "_head", lambda *args: calls.append(args) or head(*args)
    )
    texts = pa.array([b"x" * 1_000_000, b"y", None, b"z" * 20_000], pa.large_binary())
    numbers = pa.array([[1] * 500_000, [2], None, [3]], pa.large_list(pa.int64()))
    kinds = {"t": ColumnType.TEXT, "n": ColumnType.INT}
    records = ExampleEncoder(kinds).encode({"t": texts, "n": numbers}, 4).to_pylist()
    read = [parse_example(record).features.feature for record in records]
    assert [list(each["t"].bytes_list.value) for each in read] == [
        [b"x" * 1_000_000],
        [b"y"],
        [],
        [b"z" * 20_000],
    ]
    assert [list(each["n"].int64_list.value) for each in read] == [[1] * 500_000, [2], [], [3]]
    assert len(calls) <= 8
