import json
import os
from datetime import datetime
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.data_gate.finding import RowQuery
from slipway.pipeline.errors import UsageError
from slipway.pipeline.watch import requests as module
from slipway.pipeline.watch.log_folder import Logs
from slipway.pipeline.watch.requests import read_requests

KINDS = {"fare": "float", "company": "text"}


def test_rows_of_the_version_are_read_with_their_places(write_log):
    folder = write_log(0, rows=3)
    write_log(1, rows=2, version=8)
    write_log(2, rows=2, other="x")
    found = read_requests(Logs.of(folder), {**KINDS, "tips": "float"}, 7)
    assert found.table.column_names == ["fare", "company"]
    assert found.table["fare"].type == pa.float32()
    assert (found.file.tolist(), found.row.tolist()) == ([0, 0, 0, 2, 2], [0, 1, 2, 0, 1])
    assert found.at_ms[0] == 1_795_305_600_000


def test_torn_last_line_is_left_out(write_log):
    folder = write_log(0, rows=3)
    file = folder / "requests-0.jsonl"
    file.write_bytes(file.read_bytes()[:-5])
    (folder / "requests-1.jsonl").write_bytes(b'{"logged_at": "20')
    assert len(read_requests(Logs.of(folder), KINDS, 7).table) == 2


def test_first_line_that_is_just_being_written_is_left_out(write_log, monkeypatch):
    folder = write_log(0, rows=3)
    begun = folder / "requests-1.jsonl"
    line = (folder / "requests-0.jsonl").read_bytes().splitlines(keepends=True)[0]
    begun.write_bytes(line[:-1])
    names_of = module.names_of

    def names_before_the_rest(file):
        found = names_of(file)
        begun.write_bytes(line)
        return found

    monkeypatch.setattr(module, "names_of", names_before_the_rest)
    (folder / "requests-0.jsonl").rename(folder / "requests-2.jsonl")
    assert len(read_requests(Logs.of(folder), KINDS, 7).table) == 3


def test_columns_that_a_file_lacks_are_not_read(write_log):
    folder = write_log(0, rows=3)
    line = {"logged_at": "2026-11-22T00:00:00.000+00:00", "logged_version": 7, "fare": 1}
    (folder / "a.jsonl").write_text(json.dumps(line) + "\n")
    found = read_requests(Logs.of(folder), KINDS, 7)
    assert (found.table.column_names, len(found.table)) == (["fare"], 4)
    assert found.lacking == {"company": 1}


def test_files_of_other_versions_may_lack_columns(write_log):
    """As those from before request_log.columns was changed, which stay until there is no room."""
    folder = write_log(0, rows=3)
    line = {"logged_at": "2026-11-22T00:00:00.000+00:00", "logged_version": 6}
    (folder / "a.jsonl").write_text(json.dumps({**line, "fare": 1}) + "\n")
    (folder / "b.jsonl").write_text(json.dumps({**line, "old": 1}) + "\n")
    found = read_requests(Logs.of(folder), KINDS, 7)
    assert (found.table.column_names, len(found.table), found.lacking) == (["fare", "company"], 3, {})
    assert found.file.tolist() == [2, 2, 2]


@pytest.mark.parametrize("version", [7, 8])
def test_rows_of_other_versions_may_be_of_other_types(tmp_path, version):
    """As where a server goes on with a version whose data has numbers where there were texts."""
    line = {"logged_at": "2026-11-22T00:00:00.000+00:00"}
    lines = [{**line, "logged_version": 8, "fare": "x"}, {**line, "logged_version": 7, "fare": 1.5}] * 2
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    texts = {"logged_at": [line["logged_at"]], "logged_version": [8], "fare": ["y"]}
    pq.write_table(pa.table(texts), tmp_path / "b.parquet")
    found = read_requests(Logs.of(tmp_path), {"fare": "float" if version == 7 else "text"}, version)
    expected = ([1.5, 1.5], [1, 3]) if version == 7 else (["x", "x", "y"], [0, 2, 0])
    assert (found.table["fare"].to_pylist(), found.row.tolist()) == expected


@pytest.mark.parametrize("value", [["A", "B"], 1, 1.5, True])
def test_row_whose_value_has_another_type_is_left_out_and_counted(tmp_path, value):
    """As a client may send it in a tf.Example, in a column that the model ignores."""
    line = {"logged_at": "2026-11-22T00:00:00.000+00:00", "logged_version": 7, "fare": 1.5}
    lines = [{**line, "company": "A"}, {**line, "company": value}, {**line, "company": None}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    found = read_requests(Logs.of(tmp_path), KINDS, 7)
    assert found.table["company"].to_pylist() == ["A", None]
    assert (found.row.tolist(), found.misfits) == ([0, 2], 1)


def test_files_with_no_column_in_common_are_refused(tmp_path):
    line = {"logged_at": "2026-11-22T00:00:00.000+00:00", "logged_version": 7}
    (tmp_path / "a.jsonl").write_text(json.dumps({**line, "fare": 1}) + "\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({**line, "company": "A"}) + "\n")
    with pytest.raises(UsageError, match="no column in common"):
        read_requests(Logs.of(tmp_path), KINDS, 7)


def test_first_line_that_is_too_long_is_not_taken_for_an_empty_file(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"fare": 1' + " " * 2**20 + "}\n")
    with pytest.raises(UsageError, match="its first line has more than 1,048,576 bytes"):
        read_requests(Logs.of(tmp_path), KINDS, 7)


def test_parquet_is_read(tmp_path):
    at = ["2026-11-22T01:00:00+01:00", "2026-11-22T00:00:00Z"]
    rows = {"logged_at": at, "logged_version": [7, 7], "fare": [1.0, 2.0]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    found = read_requests(Logs.of(tmp_path), KINDS, 7)
    assert found.at_ms.tolist() == [1_795_305_600_000] * 2
    assert found.showing(RowQuery("fare", above=1.5), np.arange(2))[0].line is None


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_of_other_servers_are_read(tmp_path, unit):
    at = pa.array([1_795_305_600_123_000_000], pa.timestamp("ns", "UTC")).cast(pa.timestamp(unit, "UTC"))
    rows = {"logged_at": at, "logged_version": [7], "fare": [1.0]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    line = {"logged_at": "2026-11-22T00:00:00.123456+00:00", "logged_version": 7, "fare": 1}
    (tmp_path / "a.jsonl").write_text(json.dumps(line) + "\n")
    assert read_requests(Logs.of(tmp_path), KINDS, 7).at_ms.tolist() == [1_795_305_600_123] * 2


def test_times_of_96_bits_are_those_that_the_training_had(tmp_path):
    rows = {"logged_at": ["2026-11-22T00:00:00Z"], "logged_version": [7], "until": [datetime(9999, 12, 31)]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    found = read_requests(Logs.of(tmp_path), {"until": "text"}, 7)
    assert found.table["until"].to_pylist() == ["9999-12-31 00:00:00.000000"]


@pytest.mark.parametrize("writer", ["Arrow", "DuckDB"])
def test_uuids_are_the_texts_that_the_training_had(tmp_path, writer):
    """Marked by Arrow in the file's schema or, as DuckDB and Spark write them, by Parquet alone."""
    texts = pa.array([str(UUID(int=2**127 + 7)), None, str(UUID(int=8))])
    stored = pa.array([UUID(int=2**127 + 7).bytes, None, UUID(int=8).bytes], pa.binary(16))
    ids = pa.ExtensionArray.from_storage(pa.uuid(), stored) if writer == "Arrow" else texts
    times = ["2026-11-22T00:00:00Z"] * 3
    rows = pa.table({"logged_at": times, "logged_version": [7, 7, 8], "id": ids, "fare": [1.0, 2.0, 3.0]})
    if writer == "Arrow":
        pq.write_table(rows, tmp_path / "a.parquet")
    else:
        with pytest.importorskip("duckdb").connect() as duck:
            duck.register("rows", rows)
            duck.sql("select * replace (id::uuid as id) from rows").write_parquet(str(tmp_path / "a.parquet"))
    found = read_requests(Logs.of(tmp_path), {**KINDS, "id": "text"}, 7)
    assert found.table["id"].to_pylist() == ["80000000-0000-0000-0000-000000000007", None]
    assert found.table["fare"].to_pylist() == [1.0, 2.0]


def test_parquet_below_a_folder_that_is_named_like_a_column_is_read(tmp_path):
    folder = tmp_path / "logged_version=7"
    folder.mkdir()
    at = ["2026-11-22T00:00:00+00:00"]
    rows = {"logged_at": at * 2, "logged_version": [7, 8], "fare": [1.0, 2.0]}
    pq.write_table(pa.table(rows), folder / "a.parquet")
    assert read_requests(Logs.of(folder), KINDS, 7).table["fare"].to_pylist() == [1.0]


@pytest.mark.parametrize("name", ["gone.jsonl", "gone.parquet"])
def test_file_that_is_removed_meanwhile_is_left_out(write_log, monkeypatch, name):
    folder = write_log(0, rows=3)
    glob = Path.glob
    gone = [folder / name]
    monkeypatch.setattr(
        Path, "glob", lambda self, p: [*glob(self, p), *(gone if name.endswith(p[1:]) else [])]
    )
    assert len(read_requests(Logs.of(folder), KINDS, 7).table) == 3


def test_file_that_is_removed_between_two_looks_has_no_rows(tmp_path, monkeypatch):
    """Its rows would be missing among those of the other files, whose numbers then belong to others."""
    line = {"logged_at": "2026-11-22T00:00:00.000+00:00", "logged_version": 7}
    for name, fares in (("a", [1.5, "x"]), ("b", [2.5])):
        rows = ({**line, "fare": fare, "logged_version": 8 if fare == "x" else 7} for fare in fares)
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = module._read

    def removed(file, types, *, only=None):
        if only is not None:
            file.unlink()
        return read(file, types, only=only)

    monkeypatch.setattr(module, "_read", removed)
    found = read_requests(Logs.of(tmp_path), {"fare": "float"}, 7)
    assert (found.table["fare"].to_pylist(), found.file.tolist(), found.row.tolist()) == ([2.5], [1], [0])


def test_rows_that_show_a_finding_are_found(write_log):
    found = read_requests(Logs.of(write_log(0, rows=100)), KINDS, 7)
    rows = found.showing(RowQuery("company", values=("B",)), np.arange(100))
    assert len(rows) == 5
    assert {row.value for row in rows} == {"B"}
    assert rows[0].line == rows[0].row + 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"fare": 1}, "has no column logged_at"),
        ({"logged_at": "2026-11-22T00:00:00Z", "fare": 1}, "has no column logged_version"),
        (
            {"logged_at": "2026-11-22T00:00:00Z", "logged_version": 7, "x": 1},
            "no column of the version",
        ),
        ({"logged_at": "now", "logged_version": 7, "fare": 1}, "cannot be read"),
        ({"logged_at": None, "logged_version": 7, "fare": 1}, "a row without logged_at"),
        ({"logged_at": "2026-11-22T00:00:00Z", "logged_version": 7, "fare": "x"}, "cannot be read"),
        ({"logged_at": "2026-11-22T00:00:00Z", "logged_version": 9, "fare": 1}, "those there are of 9"),
        ([1], "has no column logged_at"),
        ({"logged_at": "0000-01-01T00:00:00Z", "logged_version": 7, "fare": 1}, "before 1970"),
    ],
)
def test_wrong_log_is_one_sentence(tmp_path, content, words):
    (tmp_path / "a.jsonl").write_text(json.dumps(content) + "\n")
    with pytest.raises(UsageError, match=words) as error:
        read_requests(Logs.of(tmp_path), KINDS, 7)
    assert "\n" not in error.value.message


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_file_of_something_else_is_one_sentence(tmp_path, name):
    (tmp_path / name).write_text("%PDF\n")
    with pytest.raises(UsageError, match="cannot be read"):
        read_requests(Logs.of(tmp_path), KINDS, 7)


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Path.mkdir, "it is a folder, a pipe or a device"),
        (os.mkfifo, "it is a folder, a pipe or a device"),  # which would be waited for
        (lambda path: path.symlink_to("/dev/zero"), "it is a folder, a pipe or a device"),  # which never ends
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
)
def test_no_file_that_is_called_as_a_log_is_one_sentence(tmp_path, name, make, words):
    make(tmp_path / name)
    with pytest.raises(UsageError, match=f"{name} cannot be read as logged requests: {words}"):
        Logs.of(tmp_path)


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_text_that_is_not_utf_8_is_one_sentence(tmp_path, name):
    rows = {"logged_at": ["2026-11-22T00:00:00Z"] * 2, "logged_version": [7] * 2, "shop": ["a", "Koeln"]}
    kinds = {"shop": "text"}
    if name.endswith(".parquet"):
        texts = pa.array([b"a", b"K\xf6ln"]).view(pa.string())
        pq.write_table(pa.table({**rows, "shop": texts}), tmp_path / name)
    else:
        lines = (
            json.dumps(dict(zip(rows, row, strict=True))) + "\n" for row in zip(*rows.values(), strict=True)
        )
        (tmp_path / name).write_bytes("".join(lines).encode().replace(b"oe", b"\xf6"))
    with pytest.raises(UsageError, match=r"cannot be read as logged requests: .*UTF"):
        read_requests(Logs.of(tmp_path), kinds, 7)


def test_no_log_is_one_sentence(tmp_path):
    with pytest.raises(UsageError, match="no logged requests"):
        read_requests(Logs.of(tmp_path), KINDS, 7)
    with pytest.raises(UsageError, match="does not exist"):
        read_requests(Logs.of(tmp_path / "none"), KINDS, 7)


def test_folder_of_another_user_is_not_called_empty(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(UsageError, match="cannot be read: only its owner may") as refused:
        read_requests(Logs.of(tmp_path), KINDS, 7)
    assert refused.value.hint == "run this as its owner"
