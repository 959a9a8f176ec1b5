"""Compares the local engine with TFX's LocalDagRunner and a plain script: same job, same machine, in turn.

    .venv/bin/python benchmarks/bench_engine.py [--rounds 3]

Each round times all of them, so that drift of the machine affects all alike; the ratios are of the medians.
The times are wall seconds of whole processes, including imports. Our engine runs in a copy of the project, so
that the model can be edited.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
STACK = {"CI": "true", "TF_USE_LEGACY_KERAS": "0", "PYTHONPATH": str(PROJECT)}
RUNNER = [sys.executable, str(PROJECT / "local_runner.py")]

# What a user of stock TFX would write: the same pipeline, run by LocalDagRunner.
STOCK_TAXI = """
import sys
from pathlib import Path
from tfx import v1 as tfx
from slipway.pipeline.config import load_workload
from slipway.components.ingest.source import resolve_sources
from slipway.pipeline.dag import build_pipeline
root = Path({root!r})
config = load_workload(root / "workloads/taxi/workload.yaml", root=root)
source = resolve_sources({{"all": config.data.source}}, root=root)
data = (source.directory, source.patterns)
pipeline = build_pipeline(config=config, data=data, output=Path(sys.argv[1]))
# What the engine adds as well (pipeline/engine/tfx/compile.py): with other options TFX would do more work
# here.
options = ["--runner=FnApiRunner", "--sdk_container_image=none"]
for node in pipeline.components:
    if hasattr(node.executor_spec, "add_beam_pipeline_args"):
        node.executor_spec.add_beam_pipeline_args(options)
tfx.orchestration.LocalDagRunner().run(pipeline)
"""
STOCK_TOY = """
import sys
from tfx import v1 as tfx
sys.path.insert(0, {benchmarks!r})
import toy_pipelines
tfx.orchestration.LocalDagRunner().run(getattr(toy_pipelines, sys.argv[1])())
"""


def timed(command: list[str], folder: Path, **environment: str) -> tuple[float, int]:
    """Run a command; return its wall seconds and the number of printed lines. Exit if the command fails."""
    began = time.perf_counter()
    finished = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **STACK, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    took_s = time.perf_counter() - began
    if finished.returncode != 0:
        sys.exit(f"{command} ended with {finished.returncode}:\n{finished.stdout[-3000:]}")
    return took_s, len(finished.stdout.splitlines())


def bench_taxi(scratch: Path) -> dict[str, float]:
    """Time the taxi run: cold, unchanged, with an edited model, and the last also with a warm process; then
    LocalDagRunner and the plain script.
    """
    ours, stock, plain = scratch / "ours", scratch / "stock", scratch / "plain"
    plain.mkdir()
    copy = scratch / "project"
    left_out = shutil.ignore_patterns(".*", "output")
    # With links as links: packages of files in their place are those of an installed Slipway.
    shutil.copytree(PROJECT, copy, ignore=left_out, symlinks=True)
    command = [sys.executable, str(copy / "local_runner.py"), "run", "--output", str(ours)]
    own = {"PYTHONPATH": str(copy)}
    cold_s, lines = timed(command, copy, **own)
    same_s, _ = timed(command, copy, **own)
    model = copy / "workloads" / "taxi" / "model.py"
    model.write_text(model.read_text().replace("dropout: float = 0.3", "dropout: float = 0.25"))
    model_s, _ = timed(command, copy, **own)
    latest = max((ours / "runs").iterdir())
    states = {n["id"]: n["state"] for n in json.loads((latest / "run.json").read_text())["nodes"]}
    if (states["Transform"], states["Trainer"]) != ("cached", "complete"):
        sys.exit(f"an edited model must rerun the Trainer and not Transform: {states}")
    with warm_process(copy, scratch, own) as with_warm:
        model.write_text(model.read_text().replace("dropout: float = 0.25", "dropout: float = 0.2"))
        warm_s, _ = timed(command, copy, **with_warm)
    plain_s, _ = timed([sys.executable, str(PROJECT / "benchmarks" / "plain_taxi.py"), str(plain)], PROJECT)
    stock_s, stock_lines = timed(
        [sys.executable, "-c", STOCK_TAXI.format(root=str(PROJECT)), str(stock)], PROJECT
    )
    return {
        "taxi cold, ours": cold_s,
        "taxi cold, LocalDagRunner": stock_s,
        "taxi, plain script": plain_s,
        "taxi unchanged, ours": same_s,
        "taxi edited model.py, ours": model_s,
        "taxi edited model.py, warm": warm_s,
        "lines, ours": lines,
        "lines, LocalDagRunner": stock_lines,
    }


@contextlib.contextmanager
def warm_process(copy: Path, scratch: Path, own: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Keep a process that has imported TFX; yield the variables with which a run finds it.

    It is what `SLIPWAY_WARM_MINUTES` has a run leave behind. Exit if it is not there after two minutes.
    """
    sockets = scratch / "warm"
    sockets.mkdir(mode=0o700)
    variables = {**own, "XDG_RUNTIME_DIR": str(sockets)}
    command = [sys.executable, str(copy / "local_runner.py"), "warm"]
    timed(command, copy, **variables)
    try:
        until = time.monotonic() + 120
        while not any(sockets.glob("*/*.socket")):
            if time.monotonic() > until:
                sys.exit("the warm process has not imported TFX in two minutes")
            time.sleep(0.1)
        yield variables
    finally:
        timed([*command, "--end"], copy, **variables)


def bench_toys(scratch: Path) -> dict[str, float]:
    """Time a chain of ten no-op nodes, and eight sleeping nodes that run in parallel."""
    benchmarks = str(PROJECT / "benchmarks")
    found: dict[str, float] = {}
    for name, jobs in (("chain", 1), ("sleepers", 8)):
        output = scratch / f"toy-{name}"
        command = [*RUNNER, "run", "--pipeline", f"toy_pipelines:{name}", "--jobs", str(jobs)]
        environment = {"BENCH_ROOT": str(output)}
        output.mkdir()
        timed([*command, "--output", str(output)], Path(benchmarks), **environment)
        run = next((output / "runs").iterdir())
        record = json.loads((run / "run.json").read_text(encoding="utf-8"))
        began_s = min(node["started_s"] for node in record["nodes"])
        ended_s = max(node["started_s"] + node["wall_s"] for node in record["nodes"])
        found[f"{name}, nodes only, ours"] = ended_s - began_s
    output = scratch / "toy-stock"
    output.mkdir()
    environment = {"BENCH_ROOT": str(output)}
    stock = [sys.executable, "-c", STOCK_TOY.format(benchmarks=benchmarks)]
    found["chain whole, LocalDagRunner"], _ = timed([*stock, "chain"], PROJECT, **environment)
    return found


def main() -> None:
    """Run the rounds and print medians and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    rounds: list[dict[str, float]] = []
    for number in range(parser.parse_args().rounds):
        scratch = Path(tempfile.mkdtemp(prefix="bench-engine-"))
        try:
            rounds.append({**bench_taxi(scratch), **bench_toys(scratch)})
        finally:
            shutil.rmtree(scratch)
        print(
            f"round {number + 1}: {json.dumps({k: round(v, 2) for k, v in rounds[-1].items()})}", flush=True
        )
    median = {key: statistics.median(found[key] for found in rounds) for key in rounds[0]}
    for key, value in median.items():
        spread = f"{min(f[key] for f in rounds):.2f} to {max(f[key] for f in rounds):.2f}"
        print(f"{key:<32} {value:>8.2f}   ({spread})")
    for other in ("taxi cold, LocalDagRunner", "taxi, plain script"):
        print(f"{f'ours / {other}':<32} {median['taxi cold, ours'] / median[other]:>8.2f}")
    print(f"{'no-op node':<32} {median['chain, nodes only, ours'] / 10:>8.3f} s")
    print(f"{'eight sleepers / one':<32} {median['sleepers, nodes only, ours'] / 5.0:>8.2f}")


if __name__ == "__main__":
    main()
