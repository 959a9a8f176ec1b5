"""Which values of typed columns are those that a CSV's null_values call missing."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from slipway.components.ingest.missing_values import MissingValues
from slipway.components.ingest.options import Options

AS_IN_A_CSV = Options(format="parquet", null_values=("NA", "-999", "nan", "0.5", "-99.9"), trained_as="csv")


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        (pa.array([b"NA", b"", b" NA", b"-999", None], pa.large_binary()), [2]),
        (pa.array([-999, 5, None, 2**62 + 1], pa.int64()), [1, 3]),
        (pa.array([999, 2**64 - 1], pa.uint64()), [0, 1]),
        (pa.array([-999.0, np.nan, 0.5, np.inf, 0.0], pa.float64()), [3, 4]),
        (pa.array([-99.9, -99.8], pa.float32()).cast(pa.float64()), [1]),  # as a Parquet file may hold them
        (pa.array([Decimal("-999"), Decimal("9" * 20)], pa.decimal128(20, 0)), [1]),
        (pa.array([[b"NA"], []], pa.large_list(pa.large_binary())), [0, 1]),
        (pa.nulls(1), []),
    ],
)
def test_values_of_each_type_are_missing_if_the_cell_of_a_csv_would_be(values, kept):
    found = MissingValues.of(AS_IN_A_CSV).left_out_of(values)
    assert found.type == values.type
    assert np.flatnonzero(found.is_valid()).tolist() == kept
    assert (
        MissingValues.of(Options(format="parquet", null_values=("NA", "-999"))).left_out_of(values) is values
    )


def test_numbers_that_a_float32_does_not_hold_are_no_others():
    extreme = Options(format="parquet", null_values=("1e300", "1e-300"), trained_as="csv")
    found = MissingValues.of(extreme).left_out_of(pa.array([np.inf, 0.0, 1e300, 1e-300]))
    assert found.to_pylist() == [np.inf, 0.0, None, None]


def test_values_of_rows_are_missing_by_the_same_rule():
    row = {"a": "NA", "b": "", "c": -999, "d": -999.0, "e": True, "f": ["NA"], "g": None, "h": "x", "i": 0.5}
    MissingValues.of(AS_IN_A_CSV).remove_from([row])
    assert [name for name, value in row.items() if value is not None] == ["e", "f", "h"]
    MissingValues.of(Options(format="jsonl", null_values=("x",))).remove_from([row])
    assert row["h"] == "x"
