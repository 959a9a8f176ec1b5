"""What `new` looks at: the first rows, as far as there is room for them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from components.errors import ComponentError
from pipeline.start.reading import read_table

MEBIBYTE = 1 << 20


@pytest.fixture
def repeated(tmp_path):
    """A Parquet file of less than 10 kB whose rows take 50 MB."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 50, pa.int32()), pa.array(["x" * MEBIBYTE]))
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table({"t": text, "n": range(50)}), path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 10_000
    return path


def test_rows_are_read_until_their_values_take_as_much_as_they_may(repeated, tmp_path):
    before = pa.total_allocated_bytes()
    table = read_table(str(repeated), root=tmp_path, most_bytes=8 * MEBIBYTE)
    assert 8 <= table.rows <= 12
    assert not table.is_whole
    assert pa.total_allocated_bytes() - before < 40 * MEBIBYTE
    assert read_table(str(repeated), root=tmp_path).is_whole


def test_more_columns_than_the_limit_are_refused(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(",".join(f"c{index}" for index in range(5001)) + "\n" + "1," * 5000 + "1\n")
    with pytest.raises(ComponentError, match=r"has 5,001 columns, more than data\.limits\.columns \(5,000\)"):
        read_table(str(path), root=tmp_path)
