"""Compares Ingest with TFX's CsvExampleGen in one run: python benchmarks/bench_ingest.py --rows 150000

Each measurement runs in a new process; imports are not counted. Memory is the growth of the peak over the
resident memory after the imports. `bound` is the lower bound for an ingest of this kind: pyarrow's parse of
the file, and gzip of the examples with the named library. Above 200,000 rows the stock component only runs
with --stock; above 3,000,000 rows only Ingest runs.
"""

import argparse
import gzip
import importlib.util
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
STOCK_UP_TO_ROWS = 200_000
WORKER_FILES = 4
BOUND_UP_TO_ROWS = 3_000_000  # the bound holds all examples in memory


def write_taxi(folder: Path, rows: int, files: int = 1) -> list[Path]:
    """Write CSV files with the rows of the taxi sample, repeated; return their paths."""
    package = Path(importlib.util.find_spec("tfx").origin).parent
    sample = (package / "examples/chicago_taxi_pipeline/data/simple/data.csv").read_bytes()
    head, *lines = sample.splitlines(keepends=True)
    lines[-1] = lines[-1].rstrip(b"\n") + b"\n"
    paths = []
    for index in range(files):
        wanted = rows // files
        path = folder / f"taxi-{rows}-{index}.csv"
        with path.open("wb") as file:
            file.write(head)
            for _ in range(wanted // len(lines)):
                file.writelines(lines)
            file.writelines(lines[: wanted % len(lines)])
        paths.append(path)
    return paths


def write_parquet(csv: Path) -> Path:
    """Write the table of a CSV file as Parquet; return its path."""
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    path = csv.with_suffix(".parquet")
    pq.write_table(pa_csv.read_csv(csv), path)
    return path


def write_one(folder: Path, rows: int, file_format: str) -> Path:
    """Write one file of the rows of the taxi sample with a little noise; return its path.

    Its Parquet has row groups of the size that DuckDB writes; pyarrow's own have 1,048,576 rows.
    """
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
    from bench_workers import write_rows

    write_rows(folder, files=1, rows=rows)
    [csv] = folder.iterdir()
    if file_format == "csv":
        return csv
    path = csv.with_suffix(f".{file_format}")
    table = pa_csv.read_csv(csv)
    if file_format == "parquet":
        pq.write_table(table, path, row_group_size=122_880)
    else:
        with path.open("w") as file:
            for batch in table.to_batches(max_chunksize=10_000):
                file.writelines(json.dumps(row) + "\n" for row in batch.to_pylist())
    csv.unlink()
    return path


def write_images(folder: Path, images: int) -> Path:
    """Write random images like those of MNIST, mostly black with some grey; return the path."""
    import numpy as np

    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (images, 28, 28)) * (random.random((images, 28, 28)) < 0.2)
    path = folder / "images.npz"
    classes = random.integers(0, 10, images).astype("uint8")
    np.savez(path, x_train=pixels.astype("uint8"), y_train=classes)
    return path


def run_one(which: str, pattern: str, out: str, options: str, beam_args: list[str]) -> dict[str, float]:
    """Run one executor in this process, and measure it."""
    os.environ["TF_USE_LEGACY_KERAS"] = "0"
    from tfx.components.example_gen import utils
    from tfx.components.example_gen.csv_example_gen.executor import Executor as Stock
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
    from tfx.proto import example_gen_pb2
    from tfx.types import standard_artifacts
    from tfx.utils import proto_utils

    from slipway.components.ingest.executor import Executor
    from slipway.components.ingest.options import Options
    from slipway.schemas.artifacts import Quarantine

    split = example_gen_pb2.Input.Split(name="all", pattern=Path(pattern).name)
    inputs = example_gen_pb2.Input(splits=[split])
    examples, quarantine = standard_artifacts.Examples(), Quarantine()
    examples.uri, quarantine.uri = f"{out}/examples", f"{out}/quarantine"
    context = BaseBeamExecutor.Context(
        beam_pipeline_args=["--runner=FnApiRunner", *beam_args],
        tmp_dir=f"{out}/beam",
        unique_id="1",
    )
    executor = (Stock if which == "stock" else Executor)(context)
    properties = {
        "input_base": str(Path(pattern).parent),
        "input_config": proto_utils.proto_to_json(inputs),
        "output_config": proto_utils.proto_to_json(utils.make_default_output_config(inputs)),
        "output_data_format": example_gen_pb2.FORMAT_TF_EXAMPLE,
        "output_file_format": example_gen_pb2.FORMAT_TFRECORDS_GZIP,
        "ingest": json.dumps(Options(**json.loads(options)).to_json()),
    }
    outputs = {"examples": [examples]} | ({} if which == "stock" else {"quarantine": [quarantine]})
    return measured(lambda: executor.Do({}, outputs, properties))


def bound(csv: str, out: str, library: str) -> dict[str, float]:
    """Measure pyarrow's parse of the file and gzip, with zlib or isal, of the examples made from it."""
    import pyarrow.csv as pa_csv
    from isal import isal_zlib

    compress = {"zlib": zlib, "isal": isal_zlib}[library].compressobj

    records = [gzip.decompress(path.read_bytes()) for path in Path(out, "examples").rglob("*.gz")]

    def work() -> None:
        pa_csv.read_csv(csv)  # not open_csv, which infers types from the first block only
        for each in records:
            compressor = compress(1)
            for start in range(0, len(each), 1 << 20):
                compressor.compress(each[start : start + (1 << 20)])
            compressor.flush()

    return measured(work)


def measured(work) -> dict[str, float]:
    """Measure some work: wall and CPU seconds (with child processes), growth and peak of memory in MB."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before, began, times = memory_mb("VmRSS"), time.perf_counter(), os.times()
    work()
    after = os.times()
    cpu = sum(after[:4]) - sum(times[:4])
    return {
        "wall_s": time.perf_counter() - began,
        "cpu_s": cpu,
        "grown_mb": memory_mb("VmHWM") - before,
        "peak_mb": memory_mb("VmHWM"),
    }


def memory_mb(name: str) -> float:
    """Return a memory size from this process's status, in MB."""
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith(name)]
    return int(line.split()[1]) / 1024


def child(*args: str, program: str = __file__) -> dict[str, Any]:
    """Run a measurement in a new process, and return what it prints."""
    done = subprocess.run(
        [sys.executable, program, "--child", *args],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def split_counts(out: Path) -> dict[str, Counter]:
    """Count the examples of each split, by the hash of their deterministic serialization."""
    from slipway.components.ingest.example_message import parse_example
    from slipway.components.ingest.tfrecord import read_records

    found = {}
    for folder in (out / "examples").iterdir():
        counted = found[folder.name] = Counter()
        for path in folder.iterdir():
            with gzip.open(path) as stream:
                for _, record in read_records(stream, max_bytes=1 << 30):
                    counted[hash(parse_example(record).SerializeToString(deterministic=True))] += 1
    return found


def show(what: str, found: dict[str, float], beside: dict[str, float] | None = None) -> None:
    """Print one line of the table; the ratios are those of `beside` to `found`."""
    ratios = ""
    if beside:
        ratios = (
            f"{beside['cpu_s'] / found['cpu_s']:.1f}x CPU, {beside['wall_s'] / found['wall_s']:.1f}x wall"
        )
        ratios += f", {found['grown_mb'] / beside['grown_mb']:.2f} of the memory"
    print(
        f"| {what} | {found['wall_s']:.2f} | {found['cpu_s']:.2f} | {found['grown_mb']:.0f} "
        f"| {found['peak_mb']:.0f} | {ratios} |",
        flush=True,
    )


def main() -> None:
    """Run the requested measurements and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[150_000])
    parser.add_argument("--images", type=int, default=60_000)
    parser.add_argument("--stock", action="store_true", help="run the stock component above 200,000 rows too")
    parser.add_argument(
        "--workers", type=int, nargs="*", default=[], help="one and two workers: rows in each of four files"
    )
    parser.add_argument("--one-file", type=int, nargs="*", default=[], help="the same: rows in one file")
    parser.add_argument("--formats", nargs="*", default=["csv", "jsonl", "parquet"], help="of --one-file")
    parser.add_argument("--rounds", type=int, default=5, help="of --workers and --one-file")
    args = parser.parse_args()
    print(
        f"{date.today()}, {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}\n"
    )
    print("| what | wall s | CPU s | memory grown MB | peak MB | stock to this |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rows in args.rows:
            compare(folder, rows, stock=args.stock or rows <= STOCK_UP_TO_ROWS)
        if args.images:
            options = json.dumps({"format": "npz"})
            show(
                f"npz, {args.images:,} images of 28x28",
                child("ours", str(write_images(folder, args.images)), f"{name}/npz", options),
            )
        for rows in args.workers:
            parts = folder / f"parts-{rows}"
            parts.mkdir()
            write_taxi(parts, WORKER_FILES * rows, files=WORKER_FILES)
            workers(parts, f"{WORKER_FILES} files of {rows:,} rows", rounds=args.rounds)
        for rows, file_format in itertools.product(args.one_file, args.formats):
            whole = folder / f"{file_format}-{rows}"
            whole.mkdir()
            size = write_one(whole, rows, file_format).stat().st_size
            what = f"one {file_format} file of {rows:,} rows, {size / 1e6:.0f} MB"
            workers(whole, what, rounds=args.rounds, file_format=file_format)


def compare(folder: Path, rows: int, *, stock: bool) -> None:
    """Compare Ingest with the stock component, the bound, and Ingest of Parquet, for one size."""
    [csv] = write_taxi(folder, rows)
    outs = {which: folder / f"{which}-{rows}" for which in ("stock", "ours", "again", "parquet")}
    beside = child("stock", str(csv), str(outs["stock"]), "{}") if stock else None
    if beside:
        show(f"stock CsvExampleGen, {rows:,} rows", beside)
    show(f"Ingest, {rows:,} rows", child("ours", str(csv), str(outs["ours"]), "{}"), beside)
    if rows > BOUND_UP_TO_ROWS:
        return
    for library in ("zlib", "isal"):
        show(f"bound with {library}, {rows:,} rows", child("bound", str(csv), str(outs["ours"]), library))
    parquet = write_parquet(csv)
    options = json.dumps({"format": "parquet"})
    show(f"Ingest of Parquet, {rows:,} rows", child("ours", str(parquet), str(outs["parquet"]), options))
    child("ours", str(csv), str(outs["again"]), "{}")
    assert content(outs["again"]) == content(outs["ours"]), "two runs differ"
    if beside:
        assert split_counts(outs["stock"]) == split_counts(outs["ours"]), "the examples differ"


def content(out: Path) -> dict[str, bytes]:
    """Read the files of an artifact."""
    found = (path for path in (out / "examples").rglob("*") if path.is_file())
    return {str(path.relative_to(out)): path.read_bytes() for path in found}


def workers(folder: Path, what: str, *, rounds: int, file_format: str = "csv") -> None:
    """Ingest the files of a folder with one worker and with two, in turn."""
    outs = {n: folder / f"{n}-workers" for n in (1, 2)}
    options = json.dumps({"format": file_format})
    pattern = str(folder / f"*.{file_format}")
    ratios = []
    for round_number in range(1, rounds + 1):
        one, two = (
            child("ours", pattern, str(out), options, f"--direct_num_workers={n}") for n, out in outs.items()
        )
        assert content(outs[1]) == content(outs[2]), "one worker's examples and those of two differ"
        ratios.append(one["wall_s"] / two["wall_s"])
        show(f"Ingest, {what}, one worker, round {round_number}", one)
        show(f"the same, two workers ({ratios[-1]:.2f}x wall)", two)
    print(
        f"\nTwo workers beside one, {what}, {rounds} rounds: "
        f"{statistics.median(ratios):.2f}x wall, the median\n"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        which, *rest = sys.argv[2:]
        result = bound(*rest) if which == "bound" else run_one(which, *rest[:3], rest[3:])
        print(json.dumps(result))
    else:
        sys.path.insert(0, str(PROJECT))
        main()
