"""Times runs of taxi with and without MLflow, in turn: `make mlflow`, then

    .venv/bin/python benchmarks/bench_tracking.py [--rounds 7]

Starts MLflow's server of .venv-mlflow on loopback. After one whole run, an unchanged one, whose nodes are all
reused, is repeated with `track.mlflow` and without: what a tracker adds to a command does not depend on the
nodes that ran before it. Prints the median of the wall seconds of whole processes, the difference (the bar
is 0.5 s), and how many runs the server has in the end.
"""

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
START_S = 180.0
BAR_S = 0.5
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # its seven processes are asked for nothing
}


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run MLflow's server, and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    store = [
        "--backend-store-uri",
        f"sqlite:///{folder}/store.db",
        "--artifacts-destination",
        f"{folder}/artifacts",
    ]
    words = [
        PROJECT / ".venv-mlflow/bin/mlflow",
        "server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        *store,
    ]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            words, env={**os.environ, **ENVIRONMENT}, stdout=log, stderr=log, start_new_session=True
        )
    address, ends = f"http://127.0.0.1:{port}", time.monotonic() + START_S
    try:
        while not _answers(f"{address}/health"):
            if process.poll() is not None or time.monotonic() > ends:
                sys.exit((folder / "server.log").read_text()[-3000:])
            time.sleep(0.2)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _answers(url: str, data: dict[str, object] | None = None) -> dict[str, object] | bool:
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(  # noqa: S310 (the server on loopback)
        url, data=body, headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            read = answer.read()
            return json.loads(read) if data is not None else True
    except OSError:
        return False


def seconds(output: Path, *words: str) -> float:
    """Run taxi, and return the wall seconds of its command."""
    command = [
        sys.executable,
        str(PROJECT / "local_runner.py"),
        "run",
        "taxi",
        "--output",
        str(output),
        *words,
    ]
    began = time.perf_counter()
    ended = subprocess.run(
        command, cwd=PROJECT, env={**os.environ, "CI": "true"}, capture_output=True, text=True
    )
    took = time.perf_counter() - began
    if ended.returncode:
        sys.exit(ended.stderr)
    return took


def sent(output: Path) -> float:
    """Wait until nothing is left to send, and return how long that took."""
    began = time.perf_counter()
    while any((output / "tracking").glob("*.json")):
        time.sleep(0.1)
    return time.perf_counter() - began


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="bench-tracking-") as name, server(Path(name)) as address:
        output = Path(name, "output")
        seconds(output)
        without, with_mlflow, after = [], [], []
        for _ in range(rounds):
            without.append(seconds(output))
            with_mlflow.append(seconds(output, "--set", f"track.mlflow={address}"))
            after.append(sent(output))  # so that it does not run beside the next command
        found = _answers(
            f"{address}/api/2.0/mlflow/runs/search", {"experiment_ids": ["1"], "max_results": 1000}
        )
        medians = statistics.median(without), statistics.median(with_mlflow)
        print(
            json.dumps(
                {
                    "without_s": [round(each, 2) for each in without],
                    "with_s": [round(each, 2) for each in with_mlflow],
                    "difference_of_medians_s": round(medians[1] - medians[0], 2),
                    "bar_s": BAR_S,
                    "sent_s_later": [round(each, 1) for each in after],
                    "runs_in_mlflow": len(found.get("runs", [])) if isinstance(found, dict) else 0,
                    "load": round(os.getloadavg()[0], 1),
                }
            )
        )


if __name__ == "__main__":
    main()
