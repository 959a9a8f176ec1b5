"""Delta Lake and Iceberg tables at a snapshot."""

import json
import re
import shutil
import sys
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.ingest.query.duck import write_rows
from slipway.components.ingest.query.lakes import of_lake
from slipway.components.ingest.query.tables import QueryError, Table

pytest.importorskip("duckdb")


def rows_at(tmp_path, kind, place, at=None, query="SELECT id, zone FROM t ORDER BY id"):
    """The identity of a snapshot, and its rows."""
    snapshot = of_lake(Table(name="t", kind=kind, place=str(place), at=at), place)
    folder = tmp_path / f"rows-{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    relation = snapshot.relation(folder / "copy")
    (folder / "rows").mkdir()
    write_rows(query, {"t": relation}, folder=folder / "rows", spill=folder / "spill")
    return snapshot.identity, pq.read_table(folder / "rows").to_pylist()


def ids(rows):
    return [row["id"] for row in rows]


@pytest.fixture
def delta(tmp_path):
    """A Delta table of two versions, divided by its column `zone`."""
    deltalake = pytest.importorskip("deltalake")
    place = tmp_path / "delta"
    first, second = pa.table({"id": [1, 2], "zone": ["a", "b"]}), pa.table({"id": [3], "zone": ["a"]})
    deltalake.write_deltalake(place, first, partition_by=["zone"])
    deltalake.write_deltalake(place, second, mode="append")
    return place


def test_a_version_of_delta_is_known_by_its_number(delta, tmp_path):
    latest, rows = rows_at(tmp_path, "delta", delta)
    assert rows == [{"id": 1, "zone": "a"}, {"id": 2, "zone": "b"}, {"id": 3, "zone": "a"}]
    assert latest["version"] == 1
    first, rows = rows_at(tmp_path, "delta", delta, at=0)
    assert (first["delta"], first["version"], ids(rows)) == (latest["delta"], 0, [1, 2])
    assert rows_at(tmp_path, "delta", delta)[0] == latest


def test_copies_of_a_delta_table_that_went_apart_are_not_one(delta, tmp_path):
    import deltalake

    copy = tmp_path / "copied"
    shutil.copytree(delta, copy)
    for place, number in ((delta, 4), (copy, 5)):
        deltalake.write_deltalake(place, pa.table({"id": [number], "zone": ["a"]}), mode="append")
    (one, _), (other, rows) = (rows_at(tmp_path, "delta", each) for each in (delta, copy))
    assert (one["delta"], one["version"]) == (other["delta"], other["version"])
    assert one != other
    assert 5 in ids(rows)


def test_rows_that_were_deleted_from_delta_are_gone(delta, tmp_path):
    import deltalake

    deltalake.DeltaTable(delta).delete("id = 1")
    assert ids(rows_at(tmp_path, "delta", delta)[1]) == [2, 3]
    assert ids(rows_at(tmp_path, "delta", delta, at=1)[1]) == [1, 2, 3]


def test_times_as_spark_writes_them_into_delta_are_those_that_were_written(tmp_path):
    """As 96 bits, which Arrow takes for nanoseconds: 9999-12-31, for no end, would become 1816-03-29."""
    deltalake = pytest.importorskip("deltalake")
    delta, no_end = tmp_path / "spark", datetime(9999, 12, 31)
    rows = pa.table({"id": pa.array([no_end], pa.timestamp("us")), "zone": ["a"]})
    deltalake.write_deltalake(delta, rows)
    [file] = delta.glob("*.parquet")
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True, store_schema=False)
    log = delta / "_delta_log/00000000000000000000.json"
    log.write_text(re.sub(r'"size":\d+', f'"size":{file.stat().st_size}', log.read_text()))
    assert ids(rows_at(tmp_path, "delta", delta)[1]) == [no_end]


def test_what_is_no_delta_table_or_version_is_reported(delta, tmp_path):
    with pytest.raises(QueryError, match="has no _delta_log"):
        rows_at(tmp_path, "delta", tmp_path)
    with pytest.raises(QueryError, match=r"data\.tables\.t cannot be read: .*[vV]ersion"):
        rows_at(tmp_path, "delta", delta, at=7)
    (delta / "_delta_log/00000000000000000001.json").write_text("{")
    with pytest.raises(QueryError, match=r"data\.tables\.t cannot be read"):
        rows_at(tmp_path, "delta", delta)


def test_a_delta_table_whose_columns_have_other_names_in_its_files_is_refused(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    delta = tmp_path / "mapped"
    deltalake.write_deltalake(delta, pa.table({"id": [1], "zone": ["a"]}))
    log = delta / "_delta_log/00000000000000000000.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in line:
            line["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
            schema = json.loads(line["metaData"]["schemaString"])
            for number, field in enumerate(schema["fields"], 1):
                field["metadata"] = {
                    "delta.columnMapping.id": number,
                    "delta.columnMapping.physicalName": f"col-{number}",
                }
            line["metaData"]["schemaString"] = json.dumps(schema)
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(QueryError, match=r"column mapping \('name'\) is not supported"):
        rows_at(tmp_path, "delta", delta)


@pytest.mark.parametrize(
    "path", ["../secret.parquet", "file:///etc/passwd", "/etc/passwd", "s3://bucket/x.parquet"]
)
def test_a_delta_log_cannot_name_files_elsewhere(delta, tmp_path, path):
    log = delta / "_delta_log/00000000000000000001.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = path
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(QueryError, match=rf"Object at location {delta}/.* not found"):
        rows_at(tmp_path, "delta", delta)


@pytest.fixture
def iceberg(tmp_path):
    """An Iceberg table of two snapshots: its folder and their ids."""
    pytest.importorskip("pyiceberg")
    from pyiceberg.catalog.memory import InMemoryCatalog

    catalog = InMemoryCatalog("test", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("shop")
    first = pa.table({"id": [1, 2], "zone": ["a", "b"]})
    table = catalog.create_table("shop.trips", first.schema)
    table.append(first)
    table.append(pa.table({"id": [3], "zone": ["a"]}))
    return tmp_path / "warehouse/shop/trips", [each.snapshot_id for each in table.snapshots()]


def test_a_snapshot_of_iceberg_is_known_by_its_id(iceberg, tmp_path):
    place, snapshots = iceberg
    latest, rows = rows_at(tmp_path, "iceberg", place)
    assert (latest["snapshot"], ids(rows)) == (snapshots[1], [1, 2, 3])
    first, rows = rows_at(tmp_path, "iceberg", place, at=snapshots[0])
    assert (first, ids(rows)) == ({**latest, "snapshot": snapshots[0]}, [1, 2])


def test_a_change_of_columns_alone_counts_in_iceberg(iceberg, tmp_path):
    place, snapshots = iceberg
    before, _ = rows_at(tmp_path, "iceberg", place)
    latest = max((place / "metadata").glob("*.metadata.json"))
    now = json.loads(latest.read_text())
    [schema] = now["schemas"]
    renamed = [{**each, "name": "area"} if each["name"] == "zone" else each for each in schema["fields"]]
    now["schemas"].append({**schema, "schema-id": 1, "fields": renamed})
    (place / "metadata/00009-x.metadata.json").write_text(json.dumps(now | {"current-schema-id": 1}))
    after, rows = rows_at(tmp_path, "iceberg", place, query="SELECT id, area FROM t ORDER BY id")
    assert (before | {"schema": 1}, rows[0]) == (after, {"id": 1, "area": "a"})
    assert rows_at(tmp_path, "iceberg", place, at=snapshots[1])[1][0] == {"id": 1, "zone": "a"}


def test_columns_of_a_snapshot_of_iceberg_that_does_not_say_them_count(iceberg, tmp_path):
    """As older programs write them: also a snapshot that is named is read with the columns of now."""
    place, snapshots = iceberg
    latest = max((place / "metadata").glob("*.metadata.json"))
    now = json.loads(latest.read_text())
    for each in now["snapshots"]:
        del each["schema-id"]
    (place / "metadata/00008-x.metadata.json").write_text(json.dumps(now))
    before, rows = rows_at(tmp_path, "iceberg", place, at=snapshots[1])
    assert rows[0] == {"id": 1, "zone": "a"}
    [schema] = now["schemas"]
    renamed = [{**each, "name": "area"} if each["name"] == "zone" else each for each in schema["fields"]]
    now["schemas"].append({**schema, "schema-id": 1, "fields": renamed})
    (place / "metadata/00009-x.metadata.json").write_text(json.dumps(now | {"current-schema-id": 1}))
    after, rows = rows_at(
        tmp_path, "iceberg", place, at=snapshots[1], query="SELECT id, area FROM t ORDER BY id"
    )
    assert rows[0] == {"id": 1, "area": "a"}
    assert before != after


def test_a_metadata_file_can_be_named_and_a_moved_table_is_read(iceberg, tmp_path):
    place, snapshots = iceberg
    moved = place.rename(tmp_path / "moved")
    files = sorted((moved / "metadata").glob("*.metadata.json"))
    identity, rows = rows_at(tmp_path, "iceberg", files[1])
    assert (identity["snapshot"], ids(rows)) == (snapshots[0], [1, 2])


@pytest.fixture
def migrated(tmp_path):
    """Makes an Iceberg table of a file as Hive and Spark write it, with times of 96 bits."""
    pytest.importorskip("pyiceberg")
    from pyiceberg.catalog.memory import InMemoryCatalog

    def made(time, until=None, then=None, in_file="until"):
        catalog = InMemoryCatalog("test", warehouse=f"file://{tmp_path}/warehouse")
        catalog.create_namespace("shop")
        rows = pa.table({"id": pa.array([time, None], pa.timestamp("us")), "zone": ["a", "b"]})
        rows = rows if until is None else rows.append_column("until", until)
        table = catalog.create_table("shop.trips", rows.schema)
        table.append(rows)
        if then is not None:
            with table.update_schema(allow_incompatible_changes=True) as change:
                then(change)
        place = tmp_path / "warehouse/shop/trips"
        [file] = place.rglob("*.parquet")
        # A name that the program that writes a file takes as it is; PyIceberg would write another.
        rows = pq.read_table(file)
        rows = rows.rename_columns([in_file if name == "until" else name for name in rows.column_names])
        pq.write_table(rows, file, use_deprecated_int96_timestamps=True, store_schema=False)
        return place

    return made


def test_times_of_96_bits_in_iceberg_are_those_that_were_written(migrated, tmp_path):
    time = datetime(2024, 2, 29, 12, 30)
    assert ids(rows_at(tmp_path, "iceberg", migrated(time))[1]) == [time, None]


@pytest.mark.parametrize("time", [datetime(9999, 12, 31), datetime(1, 1, 1)])
def test_times_of_96_bits_in_iceberg_that_would_become_others_are_refused(migrated, tmp_path, time):
    """PyIceberg takes them for nanoseconds: 9999-12-31, for no end, would become 1816-03-29."""
    with pytest.raises(QueryError, match=r"'id' in .*\.parquet holds .* beyond") as refused:
        rows_at(tmp_path, "iceberg", migrated(time))
    assert "TIMESTAMP_MICROS" in refused.value.hint


@pytest.mark.parametrize(
    ("kind", "dropped"),
    [
        (pa.timestamp("us"), "until"),
        (pa.struct({"time": pa.timestamp("us"), "place": pa.string()}), "until"),
        (pa.struct({"time": pa.timestamp("us"), "place": pa.string()}), "until.time"),
        (pa.list_(pa.timestamp("us")), "until"),
    ],
)
def test_times_of_96_bits_do_not_matter_in_a_column_that_iceberg_has_no_more(
    migrated, tmp_path, kind, dropped
):
    time = datetime(9999, 12, 31)
    value = {"time": time, "place": "x"} if pa.types.is_struct(kind) else time
    until = pa.array([[time] if pa.types.is_list(kind) else value, None], kind)
    place = migrated(datetime(2024, 2, 29), until=until, then=lambda now: now.delete_column(dropped))
    assert ids(rows_at(tmp_path, "iceberg", place)[1]) == [datetime(2024, 2, 29), None]


def test_times_of_96_bits_in_iceberg_are_refused_in_a_column_that_was_renamed(migrated, tmp_path):
    place = migrated(datetime(9999, 12, 31), then=lambda now: now.rename_column("id", "ended"))
    with pytest.raises(QueryError, match=r"'id' in .*\.parquet holds .* beyond"):
        rows_at(tmp_path, "iceberg", place, query="SELECT ended FROM t")


@pytest.mark.parametrize("in_file", ["until", "until.when", "a.b.c"])
@pytest.mark.parametrize("is_list", [True, False])
def test_times_of_96_bits_in_lists_in_iceberg_are_refused(migrated, tmp_path, in_file, is_list):
    time, kind = datetime(9999, 12, 31), pa.timestamp("us")
    until = pa.array([[time], None], pa.list_(kind)) if is_list else pa.array([time, None], kind)
    with pytest.raises(QueryError, match=rf"'{in_file}.* beyond"):
        rows_at(tmp_path, "iceberg", migrated(datetime(2024, 2, 29), until=until, in_file=in_file))


def test_what_is_no_iceberg_table_or_snapshot_is_reported(iceberg, tmp_path):
    place, snapshots = iceberg
    with pytest.raises(QueryError, match=r"has no metadata/\*\.metadata\.json"):
        rows_at(tmp_path, "iceberg", tmp_path)
    with pytest.raises(QueryError, match="there is no snapshot 7") as refused:
        rows_at(tmp_path, "iceberg", place, at=7)
    assert str(snapshots[1]) in refused.value.hint
    for path in (place / "data").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(QueryError, match=r"data\.tables\.t cannot be read"):
        rows_at(tmp_path, "iceberg", place)


def test_iceberg_metadata_cannot_name_code_or_files_elsewhere(iceberg, tmp_path):
    place, _ = iceberg
    latest = max((place / "metadata").glob("*.metadata.json"))
    metadata = json.loads(latest.read_text())
    metadata["properties"]["py-io-impl"] = "antigravity.FileIO"
    latest.write_text(json.dumps(metadata))
    assert ids(rows_at(tmp_path, "iceberg", place)[1]) == [1, 2, 3]
    assert "antigravity" not in sys.modules
    # Its lists and files lie where the metadata say, which is not below the folder that was named.
    other = tmp_path / "other"
    (other / "metadata").mkdir(parents=True)
    shutil.copy(latest, other / "metadata")
    metadata["location"] = "file:///nowhere"
    (other / "metadata" / latest.name).write_text(json.dumps(metadata))
    with pytest.raises(QueryError, match="names a file outside of its folder"):
        rows_at(tmp_path, "iceberg", other)


@pytest.mark.parametrize(("kind", "package"), [("delta", "deltalake"), ("iceberg", "pyiceberg.table")])
def test_without_its_package_the_package_is_named(monkeypatch, tmp_path, kind, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(QueryError, match=f"needs the package {package.partition('.')[0]}") as refused:
        rows_at(tmp_path, kind, tmp_path)
    assert "(the extra `lake`)" in refused.value.hint
