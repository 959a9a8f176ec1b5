"""Rows of queries, kept by their content."""

import os
import time

import pyarrow as pa
import pyarrow.parquet as pq

from slipway.components.ingest.query.duck import Written
from slipway.components.ingest.query.result_cache import draft, keep, key_of, recall


def kept(folder, *, key="k", checksum="c", ids=(1, 2), span=None):
    with draft(folder) as made:
        rows = made / "rows"
        rows.mkdir()
        pq.write_table(pa.table({"id": list(ids)}), rows / "part-00000.parquet")
        written = Written(len(ids), ("id",), checksum)
        return keep(folder, rows, key=key, written=written, span=span, about={"query": "FROM t"})


def test_what_was_kept_is_found_by_its_key(tmp_path):
    made = kept(tmp_path)
    assert recall(tmp_path, "k") == made
    assert [file.name for file in made.files] == ["part-00000.parquet"]
    assert recall(tmp_path, "other") is None
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".draft")]


def test_equal_rows_share_a_folder_and_the_first_stay(tmp_path):
    first = kept(tmp_path)
    stamp = first.files[0].stat().st_mtime_ns
    again = kept(tmp_path, key="another", ids=(2, 1))
    assert (again, again.files[0].stat().st_mtime_ns) == (first, stamp)
    assert kept(tmp_path, checksum="other").folder != first.folder


def test_rows_of_a_span_stand_in_a_folder_that_tfx_finds(tmp_path):
    made = kept(tmp_path, span=20_000)
    assert recall(tmp_path, "k") == made
    assert made.pattern == "span-{SPAN}/part-*.parquet"
    assert [str(file.relative_to(made.folder)) for file in made.files] == ["span-20000/part-00000.parquet"]
    assert kept(tmp_path, key="other").folder != made.folder


def test_rows_without_a_key_are_not_found(tmp_path):
    assert kept(tmp_path, key=None).folder.is_dir()
    assert not (tmp_path / "asked").exists()


def test_damaged_rows_are_not_found_and_made_again(tmp_path):
    made = kept(tmp_path)
    made.files[0].unlink()
    assert recall(tmp_path, "k") is None
    assert kept(tmp_path).files
    made.files[0].write_bytes(b"")  # as after a power cut
    assert recall(tmp_path, "k") is None
    assert kept(tmp_path).files[0].stat().st_size
    (tmp_path / "asked/k.json").write_text("{")
    assert recall(tmp_path, "k") is None


def test_old_rows_go_and_what_was_used_lately_stays(tmp_path):
    made = [kept(tmp_path, key=f"k{number}", checksum=f"{number}") for number in range(8)]
    assert all(each.folder.is_dir() for each in made)
    long_ago = time.time() - 30 * 24 * 3600
    for each in made[:6]:
        os.utime(each.folder, (long_ago, long_ago + len(each.files)))
    os.utime(made[0].folder, (long_ago, long_ago + 9))
    kept(tmp_path, key="now", checksum="now")
    left = [number for number, each in enumerate(made) if each.folder.is_dir()]
    assert left[0] == 0
    assert left[-2:] == [6, 7]
    assert len(left) == 4
    assert sorted(path.stem for path in (tmp_path / "asked").iterdir()) == sorted(
        ["now", *(f"k{number}" for number in left)]
    )


def test_a_key_depends_on_all_that_is_asked():
    assert key_of({"query": "a", "tables": {}}) == key_of({"tables": {}, "query": "a"})
    assert key_of({"query": "a"}) != key_of({"query": "b"})
