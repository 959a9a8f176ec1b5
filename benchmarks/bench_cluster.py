"""Compares two TaskManagers of a Flink cluster with one, in turn, for the nodes that run on Beam.

    python benchmarks/bench_cluster.py --rows 600000 --rounds 3
    python benchmarks/bench_cluster.py --rows 600000 --rounds 3 --cores 0.5   # on a machine of two cores
    python benchmarks/bench_cluster.py --rows 15000 --rounds 1 --to StatisticsGen   # in minutes

The data are the taxi rows with a little noise, as four files. The cluster is that of the tests: each host is
a network namespace of this machine, so the TaskManagers share its cores. Needs `make flink`. Prints a line of
JSON per run, with the nodes' wall seconds, then the medians of the ratios of the pairs.

The results are only meaningful where a second TaskManager brings cores of its own: on a machine without other
work that has at least four; or with `--cores`, by which each TaskManager has, with its worker pool, so many
cores and no more, as a host of that size would. The kernel sees to it, by a control group; it takes root.
"""

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench_workers import PROJECT, write_rows

sys.path.append(str(PROJECT / "tests/support"))
from beam_cluster import FIRST, JOBS, SECOND, missing
from flink_cluster import BEAM, SLOTS, FlinkCluster

GROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
NODES = ("Ingest", "StatisticsGen", "Transform", "Evaluator")
FILES = 4


@contextlib.contextmanager
def host_of(cores: float | None) -> Iterator[Sequence[str]]:
    """Make a control group that has so many cores, or all for None; return what to put before its commands.

    Either version of the kernel's interface: https://docs.kernel.org/admin-guide/cgroup-v2.html (cpu.max),
    https://docs.kernel.org/scheduler/sched-bwc.html (cpu.cfs_quota_us).
    """
    if cores is None:
        yield ()
        return
    is_second = (GROUPS / "cgroup.controllers").exists()
    group = Path(tempfile.mkdtemp(prefix="bench-", dir=GROUPS if is_second else GROUPS / "cpu"))
    try:
        quota_us = round(cores * PERIOD_US)
        if is_second:
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        yield ("sh", "-c", 'echo $$ >"$0" && exec "$@"', str(group / "cgroup.procs"))
    finally:
        group.rmdir()


def run(cluster: FlinkCluster, folder: Path, task_managers: int, last: str = NODES[-1]) -> dict[str, float]:
    """Run the pipeline up to a node on the cluster; return wall seconds by node."""
    beam = {**BEAM, "options": {**BEAM["options"], "parallelism": SLOTS * task_managers}}
    output = folder / "out"
    command = [sys.executable, "local_runner.py", "run", "taxi", "--profile", "dev", "--no-cache"]
    command += ["--set", f"data.source={folder}/*.csv", "--set", "train.batch_size=4096"]
    command += ["--set", f"beam={json.dumps(beam)}", "--accept-data", "a benchmark"]
    command += ["--output", str(output), "--to", last]
    done = subprocess.run(cluster.on(JOBS, *command), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    record = max(output.glob("runs/*/run.json"))
    nodes = json.loads(record.read_text(encoding="utf-8"))["nodes"]
    return {node["id"]: node["wall_s"] for node in nodes if node["id"] in NODES and node["wall_s"]}


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=600_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--to", choices=NODES, default=NODES[-1], help="the last node to run")
    parser.add_argument(
        "--cores", type=float, help="what each TaskManager's host has (default: all that are here)"
    )
    options = parser.parse_args()
    measured = NODES[: NODES.index(options.to) + 1]
    if reason := missing(PROJECT, "flink"):
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_rows(folder, files=FILES, rows=options.rows // FILES)
        rounds = []
        for _ in range(options.rounds):
            found = []
            for hosts in ((FIRST,), (FIRST, SECOND)):
                with contextlib.ExitStack() as stack:
                    under = {host: stack.enter_context(host_of(options.cores)) for host in hosts}
                    logs = stack.enter_context(tempfile.TemporaryDirectory())
                    cluster = stack.enter_context(FlinkCluster(PROJECT, logs, hosts, under=under))
                    found.append(run(cluster, folder, len(hosts), options.to))
                print(json.dumps({"task_managers": len(hosts), **found[-1]}), flush=True)
            rounds.append(found)
        ratios = {node: statistics.median(one[node] / two[node] for one, two in rounds) for node in measured}
        print(
            json.dumps({"times_as_fast_with_two": {node: round(ratio, 2) for node, ratio in ratios.items()}})
        )


if __name__ == "__main__":
    main()
