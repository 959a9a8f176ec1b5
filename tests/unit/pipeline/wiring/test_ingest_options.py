"""What the workload's `data` means to Ingest: how files are read, and which splits come of which sources."""

import pytest

from slipway.components.ingest.options import Options
from slipway.pipeline.config import DataConfig
from slipway.pipeline.wiring.ingest_options import ingest_options, source_patterns, split_weights

PARTS = {"format": "npz", "split_by": {"parts": {"train": "train", "eval": "test"}}}
FILES = {"split_by": {"files": {"train": "train/*.csv", "eval": "eval/*.csv"}}}
STARTS = {"split_by": {"time": "day", "starts": {"train": None, "eval": "2026-01-01"}}}
TABLES = {
    "source": None,
    "format": "sql",
    "query": "SELECT * FROM trips",
    "tables": {"trips": {"files": "data/*.parquet"}},
}


def data(**changes):
    given = {"source": "data", "label": "tips"} | changes
    return DataConfig(**{name: value for name, value in given.items() if value is not None})


@pytest.mark.parametrize(
    ("changes", "weights"),
    [
        ({"split": {"train": 8, "eval": 2}}, {"train": 8, "eval": 2}),
        ({"split": {"train": 8, "eval": 2}, "split_by": {"key": "user"}}, {"train": 8, "eval": 2}),
        ({"split": {"train": 8, "eval": 2}, "split_by": {"row": True}}, {"train": 8, "eval": 2}),
        (FILES, {}),
        (STARTS, {"train": 1, "eval": 1}),
        (PARTS, {"train": 1, "eval": 1}),
    ],
)
def test_rows_are_dealt_to_the_splits_of_the_workload(changes, weights):
    assert split_weights(data(**changes)) == weights


@pytest.mark.parametrize(
    ("changes", "patterns"),
    [
        ({}, {"all": "data"}),
        ({"split_by": {"key": "user"}}, {"all": "data"}),
        (FILES, {"train": "data/train/*.csv", "eval": "data/eval/*.csv"}),
        (FILES | {"source": "gs://bucket/data/"}, {
            "train": "gs://bucket/data/train/*.csv", "eval": "gs://bucket/data/eval/*.csv"
        }),
        (TABLES, {"trips": "data/*.parquet"}),
        ({"source": None, "format": "bigquery", "query": "SELECT 1"}, {}),
    ],
)  # fmt: skip
def test_each_split_has_its_sources(changes, patterns):
    assert source_patterns(data(**changes)) == patterns


def test_options_that_are_not_given_are_those_of_ingest():
    assert ingest_options(data()) == Options(label="tips")


@pytest.mark.parametrize(
    ("changes", "option", "value"),
    [
        (TABLES, "format", "parquet"),  # a query's rows are kept as such
        ({"split_by": {"key": "user"}}, "split_by", {}),  # TFX's own setting of the node holds it
        ({"split_by": {"row": True}}, "split_by", {"row": True}),
        (FILES, "split_by", {}),  # the sources say it
        (PARTS, "split_by", {"parts": {"train": "train", "eval": "test"}}),
        ({"numbers": {"price": {"decimal": ","}}}, "numbers", {"price": {"decimal": ","}}),
        ({"numbers": {"price": {"decimal": ".", "unit": "EUR"}}}, "numbers", {"price": {"unit": "EUR"}}),
        ({"shard_mb": 3}, "target_shard_bytes", 3 << 20),
        ({"shard_mb": None}, "target_shard_bytes", Options().target_shard_bytes),
        ({"delimiter": ";"}, "delimiter", ";"),
    ],
)
def test_each_key_reaches_its_option(changes, option, value):
    assert getattr(ingest_options(data(**changes)), option) == value


def test_earliest_split_keeps_its_open_start():
    split_by = ingest_options(data(**STARTS)).split_by
    assert split_by["time"] == "day"
    assert split_by["starts"]["train"] is None
    assert str(split_by["starts"]["eval"]).startswith("2026-01-01")
