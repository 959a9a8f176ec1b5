"""What the SQL of a query may read, in a workload file."""

import pytest
from pydantic import ValidationError

from slipway.components.ingest.query.tables import Table
from slipway.pipeline.config import DataConfig
from slipway.pipeline.config.tables import TableConfig
from slipway.pipeline.wiring.ingest_options import ingest_options, source_patterns, split_weights

TABLES = {"trips": {"files": "data/trips.parquet"}}


def sql(**changes):
    return DataConfig(**{"format": "sql", "label": "tips", "tables": TABLES, **changes})


@pytest.mark.parametrize(
    ("written", "table"),
    [
        ({"files": "a.csv"}, Table(name="t", kind="files", place="a.csv")),
        ({"sqlite": "a.db", "query": "q"}, Table(name="t", kind="sqlite", place="a.db", query="q")),
        (
            {"database_env": "URL", "query": "q", "as_of": "monday"},
            Table(name="t", kind="database_env", place="URL", query="q", at="monday"),
        ),
        ({"delta": "lake/t", "version": 0}, Table(name="t", kind="delta", place="lake/t", at=0)),
        ({"iceberg": "lake/t", "snapshot": 7}, Table(name="t", kind="iceberg", place="lake/t", at=7)),
        ({"iceberg": "lake/t"}, Table(name="t", kind="iceberg", place="lake/t")),
    ],
)
def test_a_table_has_a_kind_and_a_place(written, table):
    assert TableConfig(**written).table("t") == table


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({}, "exactly one of files, sqlite, database_env, delta and iceberg"),
        ({"files": "a.csv", "delta": "lake"}, "exactly one of"),
        ({"database_env": "URL"}, "missing; a SELECT in the database's own SQL"),
        ({"database_env": "postgresql://u:p@h/d", "query": "q"}, "should match pattern"),
        ({"files": "a.csv", "query": "q"}, "has no meaning for files"),
        ({"sqlite": "a.db", "query": "q", "as_of": "monday"}, "has no meaning for sqlite"),
        ({"delta": "lake", "snapshot": 1}, "has no meaning for delta"),
        ({"delta": "lake", "version": -1}, "greater than or equal to 0"),
    ],
)
def test_keys_of_another_kind_are_refused(written, words):
    with pytest.raises(ValidationError, match=words):
        TableConfig(**written)


def test_rows_of_a_query_are_read_and_split_as_parquet():
    data = sql(query="SELECT 1", types={"zip": "text"}, split_by={"key": "user"}, unlabelled_rows="leave_out")
    options = ingest_options(data)
    assert (options.format, options.types, options.unlabelled_rows) == (
        "parquet",
        {"zip": "text"},
        "leave_out",
    )
    assert source_patterns(data) == {"trips": "data/trips.parquet"}
    assert split_weights(data) == {"train": 2, "eval": 1}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tables": {}}, "missing; name what the query reads"),
        ({"tables": {"A b": {"files": "x.csv"}}}, "should match pattern"),
        ({"source": "data/trips.csv"}, "names a file with the query"),
        ({"source": "trips.sql", "query": "SELECT 1"}, "keep one"),
        ({"tables": TABLES | {"zones": {"files": "z.csv"}}}, "write a SELECT over them"),
        ({"span": 7}, r"data\.tables holds no \{SPAN\}"),
        ({"delimiter": ";"}, "has no meaning for the format sql"),
        ({"split_by": {"files": {"train": "a", "eval": "b"}}}, "split by key, time, row or hash"),
        ({"format": "parquet", "source": "a.parquet"}, "only the format sql has tables"),
    ],
)
def test_keys_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(ValidationError, match=words):
        sql(**changes)
