"""Rows of a test become examples of their schema, and TFX's Beam pipeline does what ours cannot."""

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.pipeline.testing import transform

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's and Beam's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

SCHEMA = """
feature { name: "size" type: FLOAT presence { min_fraction: 1 } shape { dim { size: 1 } } }
feature { name: "words" type: BYTES }
feature { name: "pair" type: INT presence { min_fraction: 1 } shape { dim { size: 2 } } }
"""
ROWS = [
    {"size": [1], "words": ["low", "é"], "pair": [1, 2], "of no schema": [object()]},
    {"size": [2.5], "words": [], "pair": np.array([3, 4])},
    {"size": [np.float32(4)], "words": [b"\x00\xff"], "pair": [np.int64(5), 6]},
]


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "schema.pbtxt"
    path.write_text(SCHEMA)
    return path


def as_they_are(inputs):
    return {**inputs, "alone": inputs["size"][:, 0]}


def test_values_come_back_in_order_as_the_types_of_their_columns(schema):
    first, second, third = transform.transformed(as_they_are, ROWS, schema=schema)
    assert [row["size"].tolist() for row in (first, second, third)] == [[1.0], [2.5], [4.0]]
    assert [row["alone"] for row in (first, second, third)] == [1.0, 2.5, 4.0]
    assert [list(row["words"]) for row in (first, second, third)] == [
        [b"low", "é".encode()],
        [],
        [b"\x00\xff"],
    ]
    assert [row["pair"].tolist() for row in (first, second, third)] == [[1, 2], [3, 4], [5, 6]]
    assert (first["size"].dtype, first["pair"].dtype) == (np.float32, np.int64)


def test_what_ours_cannot_do_is_left_to_tfx(schema, monkeypatch):
    from slipway.components.transform import analysis
    from slipway.components.transform.operations import UnknownOperationError

    def unknown(*_):
        raise UnknownOperationError("a user's Beam transform")

    asked = []

    def with_beam(function, rows, raw, folder):
        asked.append((function, rows, [feature.name for feature in raw.feature]))
        return ["of TFX"], None

    monkeypatch.setattr(analysis, "analyze", unknown)
    monkeypatch.setattr(transform, "_transform_with_beam", with_beam)
    assert transform.transformed(as_they_are, ROWS, schema=schema) == ["of TFX"]
    assert asked == [(as_they_are, ROWS, ["size", "words", "pair"])]


@pytest.mark.parametrize(
    ("column", "values", "kind"),
    [("pair", [1.5, 2], "INT"), ("words", [7], "BYTES"), ("size", ["1"], "FLOAT")],
)
def test_value_of_another_type_is_named_with_its_column(schema, column, values, kind):
    with pytest.raises(TypeError, match=f"column '{column}' holds .*; its schema says {kind}"):
        transform.transformed(as_they_are, [{**ROWS[0], column: values}], schema=schema)


def test_whole_number_that_no_model_takes_is_refused_as_training_refuses_it(schema):
    rows = [ROWS[0], {**ROWS[0], "pair": [1, 2**31]}]
    with pytest.raises(ComponentError, match="the transformed column pair holds 2147483648, beyond 32 bits"):
        transform.transformed_table(as_they_are, rows, schema=schema, label="size", pass_through=["words"])
