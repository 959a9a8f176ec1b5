"""Tasks on this machine: types that are guessed first, and processes side by side."""

import json
import os
from concurrent.futures import wait
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slipway.components.errors import ComponentError
from slipway.components.ingest import file_parts
from slipway.components.ingest import local_ingest as here
from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.column_types import ColumnType
from slipway.components.ingest.file_parts import divided
from slipway.components.ingest.local_ingest import run_tasks, worker_count
from slipway.components.ingest.options import Options
from slipway.components.ingest.planning import TASK_BYTES, Task
from slipway.components.ingest.storage import StoredFile, list_files
from slipway.components.process_pool import ProcessPool
from slipway.components.progress import PROGRESS_VARIABLE


@pytest.fixture
def run(tmp_path):
    """Runs a task for each file or part of one; returns the report and the bytes of what was written."""

    def ran(pattern, *, workers=1, known=None, name="out", **settings):
        options = Options(split={"all": 1}, block_bytes=300, compression="none", **settings)
        out = tmp_path / name
        cleared = []

        def clear():
            cleared.append(True)
            for path in out.iterdir():
                path.unlink()

        out.mkdir()
        tasks = [
            Task(index=i, files=[file], splits={"all": str(out)}, quarantine=f"{out}/rows-{i}", total_bytes=1)
            for i, file in enumerate(divided(list_files(str(pattern)), options))
        ]
        report = run_tasks(tasks, options, known or {}, workers=workers, clear=clear)
        content = {path.name: path.read_bytes() for path in sorted(out.iterdir())}
        return report, content, bool(cleared)

    return ran


class _Punctual(ProcessPool):
    """Begins when all of its processes have started: these files are so small that one would do them all."""

    def map(self, *args, **settings):
        wait(self._started.values())
        return super().map(*args, **settings)


@pytest.fixture(autouse=True)
def punctual(monkeypatch):
    monkeypatch.setattr(here, "ProcessPool", _Punctual)


@pytest.fixture
def several(write):
    for index in range(5):
        path = write("n,s\n" + "".join(f"{i},row {index}\n" for i in range(200)), f"{index}.csv")
    return path.parent / "*.csv"


@pytest.mark.parametrize(
    ("early", "late", "typed"),
    [
        ("1", "x", b"\n\x01x"),
        ("1", "2.5", b"\x12\x06\n\x04"),
        ("1", "007", b"\n\x03007"),
        ("1.5", "007", b"\n\x03007"),
        ("", "5", b"\x1a\x03\n\x01\x05"),
        ("1", "9223372036854775808", b"9223372036854775808"),
    ],
)
def test_wrong_guess_gives_what_all_rows_say(run, write, early, late, typed):
    path = write("c,d\n" + f"{early},1\n" * 500 + f"{late},2\n")
    report, content, was_wrong = run(path)
    assert was_wrong
    assert report.tally.rows_in == 501
    written = content["task-00000-0000-0000"]
    assert typed in written[-60:]
    # The same file with the odd row first needs no guess.
    other = write("c,d\n" + f"{late},2\n" + f"{early},1\n" * 500, "other.csv")
    _, turned, _ = run(other, name="turned")
    assert len(turned["task-00000-0000-0000"]) == len(written)


def test_right_guess_reads_the_rows_once(run, several):
    report, _, was_wrong = run(several)
    assert not was_wrong
    assert report.tally.rows_in == 1000


def test_type_of_the_schema_is_no_guess(run, write):
    path = write("c\n" + "1\n" * 500 + "x\n")
    report, _, was_wrong = run(path, known={"c": ColumnType.INT})
    assert not was_wrong
    assert report.tally.reasons == {"not a whole number": 1}


@pytest.mark.slow
def test_processes_write_what_one_writes(run, several):
    one, content, _ = run(several)
    two, beside, _ = run(several, workers=2, name="beside")
    assert beside == content
    assert two.tally == one.tally
    assert [Path(digest.name).name for digest in two.digests] == [f"{i}.csv" for i in range(5)]


def write_large(path):
    rows = [{"n": number, "s": f"row {number % 7}"} for number in range(600)]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=100)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"n": "600"}\n[]\n')
    else:
        path.write_text("n,s\n" + "".join(f"{row['n']},{row['s']}\n" for row in rows) + "600\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("file_format", ["csv", "jsonl", "parquet"])
def test_processes_write_of_one_file_in_parts_what_one_writes(run, tmp_path, monkeypatch, file_format):
    monkeypatch.setattr(file_parts, "PART_BYTES", 1_000)
    path = write_large(tmp_path / f"rows.{file_format}")
    one, content, _ = run(path, format=file_format)
    two, beside, _ = run(path, format=file_format, workers=2, name="beside")
    assert beside == content
    assert len([name for name in content if name.startswith("rows-")]) >= 5
    assert two.tally == one.tally
    assert two.digests == one.digests
    assert one.tally.rows_in >= 600


@pytest.mark.slow
def test_progress_counts_what_all_processes_did(run, several, tmp_path, monkeypatch):
    shown = tmp_path / "progress"
    monkeypatch.setenv(PROGRESS_VARIABLE, str(shown))
    run(several, workers=2)
    told = json.loads(shown.read_text(encoding="utf-8"))
    assert told["text"] == "1,000 rows"
    assert told["done"] == sum(path.stat().st_size for path in several.parent.iterdir())


@pytest.mark.slow
def test_wrong_guess_of_one_process_is_made_good_in_all(run, several, write):
    write("n,s\n" + "1,a\n" * 200 + "x,b\n", "3.csv")
    _, content, was_wrong = run(several, workers=2)
    assert was_wrong
    assert content == run(several, name="alone")[1]


@pytest.mark.slow
def test_error_in_a_process_comes_with_its_remedy(run, several, write):
    write("n,n\n1,2\n", "4.csv")
    with pytest.raises(FileError, match="two columns are named 'n'") as caught:
        run(several, workers=2)
    assert caught.value.hint


@pytest.mark.slow
def test_process_that_dies_is_reported(run, several, monkeypatch):
    monkeypatch.setattr(here, "WORKER", "slipway.components.ingest.no_such_module")
    with pytest.raises(ComponentError, match="one of the 2 processes of Ingest died") as caught:
        run(several, workers=2)
    assert "direct_num_workers=1" in caught.value.hint


def test_no_more_processes_than_tasks_work_wish_and_memory(monkeypatch):
    monkeypatch.setattr(here, "available_memory_bytes", lambda: 100 << 30)
    tasks = [Task(index=i, files=[StoredFile("f", TASK_BYTES)], splits={}, quarantine="") for i in range(3)]
    cores = len(os.sched_getaffinity(0))
    assert worker_count(tasks, at_most=0) == min(3, cores)
    assert worker_count(tasks, at_most=1) == 1
    assert worker_count(tasks[:1], at_most=8) == 1
    small = [Task(index=i, files=[StoredFile("f", 1000)], splits={}, quarantine="") for i in range(9)]
    assert worker_count(small, at_most=8) == 1
    monkeypatch.setattr(here, "available_memory_bytes", lambda: here.WORKER_MEMORY_BYTES)
    assert worker_count(tasks, at_most=8) == 2
    monkeypatch.setattr(here, "available_memory_bytes", lambda: 0)
    assert worker_count(tasks, at_most=8) == 1


@pytest.mark.parametrize(("asked", "several_files"), [({}, True), ({"target_shard_bytes": 100 << 20}, False)])
def test_files_of_examples_are_as_large_as_asked_and_else_as_planned(write, tmp_path, asked, several_files):
    path = write("n,s\n" + "".join(f"{i},row\n" for i in range(500)))
    (tmp_path / "out").mkdir()
    splits = {"all": str(tmp_path / "out")}
    [file] = list_files(str(path))
    task = Task(index=0, files=[file], splits=splits, quarantine=f"{tmp_path}/rows", shard_bytes=1_000)
    options = Options(split={"all": 1}, block_bytes=300, compression="none", **asked)
    run_tasks([task], options, {}, workers=1, clear=lambda: None)
    assert (len(list((tmp_path / "out").iterdir())) > 1) is several_files
