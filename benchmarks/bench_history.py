"""Times an unchanged taxi run, its plan, the list and the page of runs after thousands of runs.

    .venv/bin/python benchmarks/bench_history.py [--runs 0 2000]

Runs the taxi workload once with one epoch, copies its record as often as requested, and times each command
three times. Prints the medians of the wall seconds of whole processes.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
FIRST = datetime(2020, 1, 1, tzinfo=UTC)
COMMANDS = (
    ("run", "--set", "train.epochs=1"),
    ("plan", "--set", "train.epochs=1"),
    ("runs",),
    ("report", "--index"),
    ("show",),
)


def call(command: tuple[str, ...], output: Path) -> float:
    """Run one command, and return its wall seconds."""
    began = time.perf_counter()
    line = [sys.executable, str(PROJECT / "local_runner.py"), *command, "--output", str(output)]
    finished = subprocess.run(
        line, cwd=PROJECT, env={**os.environ, "CI": "true"}, capture_output=True, text=True, check=False
    )
    # One epoch is too few for the gate: it stops the run, which is recorded like any other.
    if finished.returncode not in (0, 3):
        sys.exit(f"{line} ended with {finished.returncode}:\n{finished.stderr[-2000:]}")
    return time.perf_counter() - began


def lengthen(output: Path, runs: int) -> None:
    """Add `runs` copies of the only run to the history."""
    [original] = (output / "runs").iterdir()
    record = json.loads((original / "run.json").read_text(encoding="utf-8"))
    for number in range(runs):
        at = (FIRST + timedelta(minutes=number)).strftime("%Y%m%d-%H%M%S")
        folder = output / "runs" / f"{at}-{number:04x}"
        (folder / "logs").mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({**record, "run_id": folder.name}, indent=1))
        shutil.copy(original / "fingerprints.json", folder)


def main() -> None:
    """Print one line for each length of the history."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, nargs="+", default=[0, 2000])
    for runs in parser.parse_args().runs:
        output = Path(tempfile.mkdtemp(prefix="bench-history-"))
        try:
            call(COMMANDS[0], output)
            lengthen(output, runs)
            times = {c[0]: statistics.median(call(c, output) for _ in range(3)) for c in COMMANDS}
        finally:
            shutil.rmtree(output)
        print(f"{runs:>6} runs: " + ", ".join(f"{name} {took:.2f} s" for name, took in times.items()))


if __name__ == "__main__":
    main()
