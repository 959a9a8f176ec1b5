import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.ingest.blocks import FileError, InputFile
from slipway.components.ingest.column_names import column_names
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.options import Options
from slipway.components.ingest.typed_rows import example_rows


@pytest.fixture
def file(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        return InputFile(name=name, path=path)

    return write


def test_names_of_the_columns_are_read_from_the_head_of_a_file(file, tmp_path):
    csv = file("a.csv", b"fare;my company\n1;a\n")
    assert column_names(csv, Options(delimiter=";")) == ("fare", "my company")
    jsonl = file("a.jsonl", b'{"fare": 1}\nno json\n{"company": "a", "fare": 2}\n')
    assert column_names(jsonl, Options(format="jsonl")) == ("fare", "company")
    pq.write_table(pa.table({"fare": [1.0], "company": ["a"]}), tmp_path / "a.parquet")
    parquet = InputFile(name="a.parquet", path=tmp_path / "a.parquet")
    assert column_names(parquet, Options(format="parquet")) == ("fare", "company")


def test_further_columns_of_a_parquet_file_may_be_nested(tmp_path):
    table = {"fare": [1.5, 2.5], "trip": [{"from": "a"}, {"from": "b"}], " ": [1, 2]}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    file, options = InputFile(name="a.parquet", path=tmp_path / "a.parquet"), Options(format="parquet")
    assert column_names(file, options) == ("fare", "trip", " ")
    [rows] = example_rows(file, options, {"fare": ColumnType.FLOAT, "tip": ColumnType.FLOAT}, known={})
    assert len(rows.records) == 2
    with pytest.raises(FileError, match="column 'trip' is nested"):
        list(example_rows(file, options, {"trip": ColumnType.TEXT}, known={}))


def test_keys_are_those_of_the_first_objects_and_a_file_without_any_has_no_names(file):
    options = Options(format="jsonl", block_bytes=16)
    assert column_names(file("late.jsonl", 20 * b"[]\n" + b'{"fare": null}\n'), options) == ("fare",)
    for content in (b"", b"[1]\n"):
        with pytest.raises(FileError, match=r"none\.jsonl holds no JSON object"):
            column_names(file("none.jsonl", content), options)


def test_wanted_keys_are_looked_for_in_all_objects(file):
    """A key without a value in the first megabytes is none of a file of another table."""
    options = Options(format="jsonl", block_bytes=16)
    late = file("late.jsonl", 20 * b'{"fare": 1}\n' + b'{"tip": 2}\n' + b'{"city": "Ulm"}\n')
    assert column_names(late, options) == ("fare",)
    assert column_names(late, options, wanted=["tip"]) == ("fare", "tip")
    assert column_names(late, options, wanted=["no such"]) == ("fare", "tip", "city")


def test_bytes_of_images_in_a_parquet_file_reach_the_examples_unchanged(tmp_path):
    images = [bytes(range(256)), b"\x89PNG\r\n\x00"]
    pq.write_table(pa.table({"image": images}), tmp_path / "a.parquet")
    file = InputFile(name="a.parquet", path=tmp_path / "a.parquet")
    [rows] = example_rows(file, Options(format="parquet"), {"image": ColumnType.TEXT}, known={})
    assert all(image in record for image, record in zip(images, rows.records, strict=True))
    assert rows.rejects == []


def test_durations_in_another_unit_than_those_of_the_training_are_refused(tmp_path):
    """A model would take a million for each thousand: pandas writes nanoseconds, Polars microseconds."""
    times = {"wait": pa.array([1, 2], pa.duration("ns")), "id": pa.array([1, 2], pa.duration("s"))}
    pq.write_table(pa.table(times), tmp_path / "a.parquet")
    file = InputFile(name="a.parquet", path=tmp_path / "a.parquet")
    options, columns = Options(format="parquet"), {"wait": ColumnType.INT}
    with pytest.raises(FileError, match=r"a\.parquet: column 'wait' holds durations in ns, .* were in us"):
        list(example_rows(file, options, columns, known={}, units={"wait": "us"}))
    for units in ({}, {"wait": "ns"}, {"wait": "ns", "id": "us"}):
        [rows] = example_rows(file, options, columns, known={}, units=units)
        assert len(rows.records) == 2
