"""Ingest without TFX: files are converted as a worker does it, and read back."""

import gzip
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from slipway.components.ingest.column_types import merge
from slipway.components.ingest.convert import Report, convert
from slipway.components.ingest.example_message import parse_example
from slipway.components.ingest.file_parts import divided
from slipway.components.ingest.formats import format_of
from slipway.components.ingest.options import Options
from slipway.components.ingest.planning import plan_tasks
from slipway.components.ingest.storage import fetched, list_files
from slipway.components.ingest.tfrecord import read_records


@dataclass
class Ingested:
    report: Report
    splits: dict[str, list[dict[str, list[Any] | None]]]
    rejects: list[dict[str, Any]]
    files: dict[str, list[Path]]

    @property
    def rows(self):
        return [row for rows in self.splits.values() for row in rows]

    @property
    def reasons(self):
        return [reject["reason"] for reject in self.rejects]

    @property
    def notes(self):
        """Of each column, how many values were noted for what."""
        return {
            column: {what: count for what, (count, _) in kinds.items()}
            for column, kinds in self.report.tally.notes.found.items()
        }


def decode(record: bytes) -> dict[str, list[Any] | None]:
    features = parse_example(record).features.feature
    decoded = {}
    for name in features:
        kind = features[name].WhichOneof("kind")
        decoded[name] = list(getattr(features[name], kind).value) if kind else None
    return decoded


def open_output(path: str):
    return Path(path).open("wb")


def open_any(path: Path):
    if path.suffix == ".zst":
        return zstandard.open(path)
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


@pytest.fixture
def read_shard():
    """The records of a written file."""

    def read(path):
        with open_any(path) as stream:
            return [record for _, record in read_records(stream, max_bytes=1 << 30)]

    return read


@pytest.fixture
def ingest(tmp_path, read_shard):
    """Ingests the files that match a pattern; the rows come back decoded, by split."""

    def run(pattern, *, known=None, progress=lambda rows, done: None, read_back=True, **settings):
        options = Options(**settings)
        out = tmp_path / "out"
        names = list(options.split_by.get("parts", options.split_by.get("starts", options.split)))
        options = replace(options, split={name: options.split.get(name, 1) for name in names})
        splits = {name: str(out / name) for name in names}
        for folder in splits.values():
            Path(folder).mkdir(parents=True, exist_ok=True)
        files = divided(list_files(str(pattern)), options)
        tasks = plan_tasks({None: files}, splits, quarantine=str(out), min_shards=options.min_shards)
        known = options.known(known or {})
        columns = {}
        for task in tasks:
            for stored in task.files:
                with fetched(stored) as file:
                    columns = merge(columns, format_of(options).infer(file, options, known))
        report = Report()
        for task in tasks:
            report.add(
                convert(task, options, columns, known=known, open_output=open_output, progress=progress)
            )
        rejects = [
            json.loads(line) for task in tasks for line in Path(task.quarantine).read_bytes().splitlines()
        ]
        written = {name: [Path(shard.name) for shard in shards] for name, shards in report.shards.items()}
        rows = {
            name: [decode(record) for path in paths for record in read_shard(path)]
            for name, paths in written.items()
            if read_back
        }
        tally = report.tally
        assert tally.rows_in == sum(tally.rows_out.values()) + len(rejects) + tally.unlabelled
        assert not read_back or tally.rows_out == {name: len(found) for name, found in rows.items()}
        return Ingested(report, rows, rejects, written)

    return run


@pytest.fixture
def peak_mb():
    """Calls a function; returns its result and by how many MB it raised the peak of this process's memory."""

    def measured(work):
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here on
        before = _memory_mb("VmRSS")
        return work(), _memory_mb("VmHWM") - before

    return measured


def _memory_mb(name):
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(name)]
    return int(line.split()[1]) / 1024


@pytest.fixture
def write(tmp_path):
    """Writes a file below a folder of its own and returns its path."""

    def written(content, name="in.csv"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


@pytest.fixture
def parquet(tmp_path):
    """Writes columns as a Parquet file below that folder, and returns its path."""

    def written(columns, name="in.parquet", **options):
        path = tmp_path / "in" / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), path, **options)
        return path

    return written


@pytest.fixture
def trips(tmp_path):
    """A folder with two CSV files, something else, and a folder of two months."""
    for name in ("data/a.csv", "data/b.csv", "months/2024-01/x.csv", "months/2024-02/y.csv"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("miles,tips\n1.5,2\n")
    (tmp_path / "data/notes.txt").write_text("not data")
    return tmp_path
