"""The type of a column, guessed from its cells and merged over files."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from slipway.components.ingest.column_types import (
    ColumnType,
    as_type,
    infer_type,
    merge,
    parse,
    parse_guessed,
)


def test_columns_of_two_files_are_merged_to_the_greater_type():
    first = {"a": ColumnType.INT, "b": ColumnType.UNKNOWN}
    assert merge(first, {"b": ColumnType.TEXT, "a": ColumnType.FLOAT, "c": ColumnType.INT}) == {
        "a": ColumnType.FLOAT,
        "b": ColumnType.TEXT,
        "c": ColumnType.INT,
    }


def _stock_type(cell):
    """TFX's rule, and ours for leading zeros."""
    if not cell:
        return ColumnType.UNKNOWN
    try:
        number = int(cell)
    except ValueError:
        try:
            float(cell)
        except ValueError:
            return ColumnType.TEXT
        return ColumnType.FLOAT
    digits = cell.strip().lstrip(b"+-")
    plain = len(digits) == 1 or not digits.startswith(b"0")
    return ColumnType.INT if plain and -(2**63) <= number < 2**63 else ColumnType.TEXT


NUMBERS = st.one_of(
    st.integers(-(10**22), 10**22).map(str),
    st.floats().map(repr),
    st.from_regex(r"\A[ +-]?[0-9_]{0,20}(\.[0-9]*)?(e[+-]?[0-9]{1,3})? ?\Z"),
    st.sampled_from(["nan(1)", "0x1f", "-0X1", "infinity", "1e5", "+007", "0_1", "00", "-00.5", "1."]),
    st.text(max_size=3),
)


@given(st.lists(NUMBERS, min_size=1, max_size=6))
def test_type_of_any_cells_is_that_of_tfxs_rules(cells):
    try:
        expected = max(_stock_type(cell.encode()) for cell in cells)
    except UnicodeEncodeError:
        return
    assert infer_type(pa.array(cells, pa.string())) == expected


@given(st.lists(NUMBERS, max_size=6), st.sampled_from(ColumnType), st.integers(0, 3))
def test_guess_holds_exactly_where_all_cells_give_the_same_type(cells, guess, skipped):
    try:
        texts = pa.array(cells, pa.string()).slice(skipped)
    except UnicodeEncodeError:
        return
    found = parse_guessed(texts, guess)
    if infer_type(texts, guess) == guess:
        values, bad = parse(texts, guess)
        assert found.to_pandas().equals(values.to_pandas())  # a nan equals another there
        assert found.null_count == values.null_count
        assert not bad.any()
    else:
        assert found is None


def test_fractions_become_whole_numbers_only_where_nothing_is_lost():
    values, bad = as_type(pa.array([1.0, 1.5, None, 1e300, float("nan")]), ColumnType.INT)
    assert values.to_pylist() == [1, None, None, None, None]
    assert bad.tolist() == [False, True, False, True, True]
