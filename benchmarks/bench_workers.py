"""Compares two processes with one, in turn, for the nodes that divide their input among processes.

    python benchmarks/bench_workers.py --rows 1000000 --rounds 3

The data are the taxi rows with a little noise, as four files of `--rows` rows and as one file of four times
as many. After a first run, which reads all files into memory, the nodes are run as a user runs them,
with `direct_num_workers` 1 and 2 in turn. Prints lines of JSON: the nodes' wall seconds and the CPU seconds
of the whole run, then the medians of the ratios of the pairs. The results are only meaningful on a machine
without other work, since each process needs a core. One process uses more than one: TensorFlow computes with
threads. `--own-core` keeps a run to as many cores as it has processes.
"""

import argparse
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
NODES = ("Ingest", "StatisticsGen", "Transform", "Evaluator")
# By column, the maximum distance by which a value is moved, so that rows differ: of 600,000 rows, 27 repeat
# another, and the data gate would stop at a tenth.
NOISE = {"pickup_latitude": 0.01, "pickup_longitude": 0.01, "trip_seconds": 30}


def write_rows(folder: Path, *, files: int, rows: int) -> None:
    """Write CSV files of `rows` rows each."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    package = importlib.util.find_spec("tfx")
    source = Path(package.origin).parent / "examples/chicago_taxi_pipeline/data/simple/data.csv"
    known = pa_csv.read_csv(source)
    draw = np.random.default_rng(1)

    def moved(column: pa.ChunkedArray, most: float, digits: int) -> pa.Array:
        """Move each number by at most `most`; one that is not negative stays so."""
        numbers = column.to_numpy(zero_copy_only=False).astype("float64")
        noise = draw.uniform(-most, most, len(numbers))
        noisy = np.where(numbers >= 0, np.abs(numbers + noise), numbers + noise)
        return pa.array(np.round(noisy, digits), pa.float64(), from_pandas=True)

    for number in range(files):
        with pa_csv.CSVWriter(folder / f"{number}.csv", known.schema) as writer:
            for start in range(0, rows, len(known)):
                part = known.slice(0, min(len(known), rows - start))
                for name, most in NOISE.items():
                    place, kind = part.column_names.index(name), part.schema.field(name)
                    column = moved(part[name], most, 5 if pa.types.is_floating(kind.type) else 0)
                    part = part.set_column(place, kind, column.cast(kind.type))
                writer.write_table(part)


def run(folder: Path, processes: int, more: Sequence[str], *, cores: int | None) -> dict[str, float]:
    """Run the pipeline up to the Evaluator; return wall seconds by node, and the run's CPU seconds.

    Args:
        cores: the number of cores that the run may use; None: all.
    """
    used = sorted(os.sched_getaffinity(0))[:cores]
    output = folder / "out"
    command = [sys.executable, str(PROJECT / "local_runner.py"), "run", "taxi", "--profile", "dev"]
    command += ["--set", f"data.source={folder}/*.csv", "--set", "train.batch_size=4096"]
    command += ["--set", f"beam.options={{direct_num_workers: {processes}}}"]
    command += ["--output", str(output), "--to", "Evaluator", *more]
    before = _cpu_s()
    command = ["taskset", "--cpu-list", ",".join(map(str, used)), *command]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    record = max(output.glob("runs/*/run.json"))
    nodes = json.loads(record.read_text(encoding="utf-8"))["nodes"]
    found = {node["id"]: node["wall_s"] for node in nodes if node["id"] in NODES}
    return {**found, "run_cpu_s": round(_cpu_s() - before, 1)}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare(folder: Path, rounds: int, size: dict[str, int], *, own_core: bool) -> None:
    """Run the nodes with one process and with two in turn, and print their times."""
    run(folder, 1, [], cores=None)
    found: dict[str, list[float]] = {name: [] for name in NODES}
    for _ in range(rounds):
        pair = []
        for processes in (1, 2):
            cores = processes if own_core else None
            pair.append(run(folder, processes, ["--no-cache"], cores=cores))
            load = round(os.getloadavg()[0], 1)
            print(json.dumps({"processes": processes, **size, "load": load, **pair[-1]}), flush=True)
        for name, ratios in found.items():
            ratios.append(pair[0][name] / pair[1][name])
    medians = {name: round(statistics.median(ratios), 2) for name, ratios in found.items()}
    print(json.dumps({"one_to_two": medians, **size}), flush=True)


def main() -> None:
    """Measure with several files and with one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=150_000, help="of each of the four files")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--files", type=int, nargs="*", default=[4, 1])
    parser.add_argument("--own-core", action="store_true", help="as many cores as processes, no more")
    asked = parser.parse_args()
    for files in asked.files:
        with tempfile.TemporaryDirectory() as name:
            write_rows(Path(name), files=files, rows=asked.rows * 4 // files)
            size = {"files": files, "rows": asked.rows * 4}
            compare(Path(name), asked.rounds, size, own_core=asked.own_core)


if __name__ == "__main__":
    main()
