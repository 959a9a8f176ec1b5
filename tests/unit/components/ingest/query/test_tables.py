"""The tables that a query reads."""

from pathlib import Path

import pytest

from slipway.components.ingest.query.tables import QueryError, kind_of_files


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["a.parquet", "b.PARQUET"], "parquet"),
        (["a.csv", "b.csv.gz", "c.tsv"], "csv"),
        (["a.jsonl.zst"], "jsonl"),
        (["a.arrow", "b.feather"], "arrow"),
    ],
)
def test_the_end_of_a_name_says_how_a_file_is_read(names, kind):
    assert kind_of_files([Path("/data") / name for name in names], table="t") == kind


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["a.txt"], r"data\.tables\.t: a\.txt is none of \.parquet, \.csv"),
        (["a.parquet.gz"], "is none of"),
        (["a.csv.bz2"], "is none of"),
        (["a.csv", "b.parquet"], "files of several formats: csv, parquet"),
        (["a[1].csv"], "would be read as a pattern"),
    ],
)
def test_other_files_are_refused(names, words):
    with pytest.raises(QueryError, match=words):
        kind_of_files([Path("/data") / name for name in names], table="t")


@pytest.mark.parametrize(("name", "remedy"), [("a.duckdb", "write_parquet"), ("a.db", "`sqlite`")])
def test_a_database_among_the_files_is_refused_with_the_way_that_works_for_it(name, remedy):
    with pytest.raises(QueryError, match="is none of") as refused:
        kind_of_files([Path("/data") / name], table="t")
    assert remedy in refused.value.hint
