"""Queries of files, for the tests of this folder."""

import threading

import pyarrow.parquet as pq
import pytest

from slipway.components.ingest.query.duck import write_rows
from slipway.components.ingest.query.stoppable import stoppable


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


@pytest.fixture
def is_long(monkeypatch):
    """Returns an event that is set once a module's query has worked at one thing for half a second."""

    def call(module):
        found = threading.Event()

        def watched(work, *, stop):
            timer = threading.Timer(0.5, found.set)

            def begin():
                timer.start()
                return work()

            try:
                return stoppable(begin, stop=stop)
            finally:
                timer.cancel()

        monkeypatch.setattr(module, "stoppable", watched)
        return found

    return call
