"""Queries of files, for the tests of this folder."""

import pyarrow.parquet as pq
import pytest

from slipway.components.ingest.query.duck import write_rows


@pytest.fixture
def ask(tmp_path):
    """Runs a query; what was written, and its rows."""
    count = 0

    def call(query, values=(), **relations):
        nonlocal count
        count += 1
        folder = tmp_path / f"rows-{count}"
        folder.mkdir()
        written = write_rows(query, relations, folder=folder, spill=tmp_path / "spill", values=dict(values))
        return written, pq.read_table(sorted(folder.iterdir())).to_pylist()

    return call
