"""Times whole runs of many rows: ours, TFX's executors under LocalDagRunner, and a plain script, in turn.

    .venv/bin/python benchmarks/bench_whole.py --rows 600000 --beside stock
    .venv/bin/python benchmarks/bench_whole.py --rows 1500000 --beside plain
    .venv/bin/python benchmarks/bench_whole.py --rows 10000000

The data are the taxi rows with a little noise, in one CSV file; the data gate passes them. All train the same
model for one epoch of large batches. Each is a process of its own, with its imports and an empty output
folder; ours is a user's command, with all nodes up to the push. Prints lines of JSON: wall and CPU seconds,
the most memory that the whole tree of processes held (shared pages counted once), and ours by node; then the
ratios.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench_workers import write_rows

PROJECT = Path(__file__).resolve().parent.parent
BATCH_SIZE = 4096
# One epoch of large batches reaches no more than that; what is measured is how long it takes.
SETTINGS = {
    "train.batch_size": BATCH_SIZE,
    "train.epochs": 1,
    "evaluate.thresholds": "{auc: {min: 0.6}}",
    "evaluate.slice_thresholds": "{}",
}
STOCK = """
import sys
from pathlib import Path
from tfx import v1 as tfx
from slipway.components.ingest.source import resolve_sources
from slipway.pipeline.config import load_workload
from slipway.pipeline.config import read_assignments
from slipway.pipeline.dag import build_pipeline
root, source, output, *sets = sys.argv[1:]
file = Path(root, "workloads/taxi/workload.yaml")
config = load_workload(file, root=Path(root), sets=read_assignments(sets))
found = resolve_sources({"all": source}, root=Path(root))
data = (found.directory, found.patterns)
pipeline = build_pipeline(config=config, data=data, output=Path(output))
tfx.orchestration.LocalDagRunner().run(pipeline)
"""
LOOK_S = 2  # each look costs some 50 ms: the kernel adds up gigabytes of pages


def measured(command: Sequence[str], **environment: str) -> dict[str, float]:
    """Run a command, or exit if it fails; return its wall and CPU seconds and the most MB it held."""
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        running = subprocess.Popen(
            command,
            cwd=PROJECT,
            env={**os.environ, **environment},
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        most_mb = 0.0
        while (ended := os.wait4(running.pid, os.WNOHANG))[0] == 0:
            most_mb = max(most_mb, sum(_held_mb(pid) for pid in _tree(running.pid)))
            time.sleep(LOOK_S)
        _, status, used = ended
        wall_s = time.perf_counter() - began
        if status:
            said.seek(0)
            sys.exit(f"{command} ended with {status}:\n{said.read()[-3000:]}")
    cpu_s = used.ru_utime + used.ru_stime
    return {"wall_s": round(wall_s, 1), "cpu_s": round(cpu_s, 1), "most_mb": round(most_mb)}


def _tree(root: int) -> list[int]:
    """Return a process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def _held_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def ours(source: Path, output: Path) -> dict[str, object]:
    """Run the workload as a user does."""
    sets = [
        word
        for key, value in {"data.source": source, **SETTINGS}.items()
        for word in ("--set", f"{key}={value}")
    ]
    command = [
        sys.executable,
        str(PROJECT / "local_runner.py"),
        "run",
        "taxi",
        "--output",
        str(output),
        *sets,
    ]
    found = measured(command, CI="true")
    [record] = output.glob("runs/*/run.json")
    nodes = json.loads(record.read_text(encoding="utf-8"))["nodes"]
    return {**found, "nodes": {node["id"]: round(node["wall_s"], 1) for node in nodes}}


def stock(source: Path, output: Path) -> dict[str, object]:
    """Run the same pipeline with TFX's own executors under LocalDagRunner."""
    sets = [f"{key}={value}" for key, value in SETTINGS.items()]
    sets.append("beam.stock_nodes=[StatisticsGen, Transform, Evaluator]")
    command = [sys.executable, "-c", STOCK, str(PROJECT), str(source), str(output), *sets]
    return {**measured(command, PYTHONPATH=str(PROJECT), TF_USE_LEGACY_KERAS="0")}


def plain(source: Path, output: Path) -> dict[str, object]:
    """Run the plain script."""
    output.mkdir()
    script = str(PROJECT / "benchmarks" / "plain_taxi.py")
    command = [sys.executable, script, str(output), str(source), "1", str(BATCH_SIZE)]
    return {**measured(command, PYTHONPATH=str(PROJECT))}


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=600_000)
    parser.add_argument("--beside", choices=("stock", "plain"))
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    others = {"stock": stock, "plain": plain}
    for number in range(asked.rounds):
        with tempfile.TemporaryDirectory(prefix="bench-whole-") as name:
            write_rows(Path(name), files=1, rows=asked.rows)
            source, found = Path(name, "0.csv"), {}
            for which in ("ours", *([asked.beside] if asked.beside else [])):
                call = {"ours": ours, **others}[which]
                found[which] = call(source, Path(name, which))
                load = round(os.getloadavg()[0], 1)
                print(
                    json.dumps({"round": number + 1, "what": which, "load": load, **found[which]}), flush=True
                )
        if asked.beside:
            ratio = round(found[asked.beside]["wall_s"] / found["ours"]["wall_s"], 2)
            print(json.dumps({"round": number + 1, f"{asked.beside} to ours, wall": ratio}), flush=True)


if __name__ == "__main__":
    main()
