"""Times `watch` over many logged requests of taxi.

    .venv/bin/python benchmarks/bench_watch.py [--requests 1000000]

Runs taxi once, up to the push, and logs its rows again and again as requests to that version: as `serve` logs
them, in JSON Lines, and as TF Serving would, in its own messages with a tf.Example each. Prints the wall and
CPU seconds of each whole command, and what it said. The bar is 60 s for a million requests.
"""

import argparse
import csv
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from slipway.components.example_records import records  # noqa: E402
from slipway.components.ingest.tfrecord import frame  # noqa: E402
from slipway.components.request_log.prediction_log_message import MESSAGES  # noqa: E402

BAR_S = 60.0
GATE_STOPPED = 3  # something has drifted
_LABEL = "tips"
_FLOAT, _STRING = 1, 7  # TensorFlow's numbers of these types


def call(output: Path, *words: str) -> tuple[float, float, str]:
    """Run a command; return its wall and CPU seconds and the first line that it said."""
    command = [sys.executable, str(PROJECT / "local_runner.py"), *words, "--output", str(output)]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    ended = subprocess.run(
        command, cwd=PROJECT, env={**os.environ, "CI": "true"}, capture_output=True, text=True, check=False
    )
    took, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in (0, GATE_STOPPED):
        sys.exit(ended.stderr)
    cpu_s = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return took, cpu_s, next(iter(ended.stdout.splitlines()), "")


def logged_rows(version: int, at: datetime) -> Iterator[str]:
    """Yield TFX's sample of trips without their labels, as `serve` logs them."""
    [package] = importlib.util.find_spec("tfx").submodule_search_locations
    with Path(package, "examples/chicago_taxi_pipeline/data/simple/data.csv").open() as file:
        for row in csv.DictReader(file):
            values = {name: _value(text) for name, text in row.items() if name != _LABEL}
            logged = {
                "logged_at": at.isoformat(),
                "logged_version": version,
                **values,
                "logged_prediction": [0.5],
            }
            yield json.dumps(logged) + "\n"


def _value(text: str) -> float | str | None:
    try:
        number = float(text)
    except ValueError:
        return text or None
    return int(number) if number.is_integer() and "." not in text else number


def logged_examples(version: int, at: datetime, files: list[Path]) -> Iterator[bytes]:
    """Yield the examples of a run as TF Serving logs requests, each as a record of a TFRecord file."""
    for file in files:
        for example in (each for some in records(str(file)) for each in some):
            log = MESSAGES["PredictionLog"]()
            log.log_metadata.timestamp_secs = int(at.timestamp())
            request, response = log.predict_log.request, log.predict_log.response
            response.model_spec.version.value = version
            for tensor, kind, shape in (
                (request.inputs["examples"], _STRING, (1,)),
                (response.outputs["outputs"], _FLOAT, (1, 1)),
            ):
                tensor.dtype, tensor.tensor_shape = kind, _shape(shape)
            request.inputs["examples"].string_val.append(example)
            response.outputs["outputs"].float_val.append(0.5)
            yield frame([log.SerializeToString()])


def _shape(sizes: Sequence[int]) -> bytes:
    shape = MESSAGES["TensorShapeProto"]()
    for size in sizes:
        shape.dim.add(size=size)
    return bytes(shape.SerializeToString())


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=1_000_000)
    requests = parser.parse_args().requests
    with tempfile.TemporaryDirectory(prefix="bench-watch-") as name:
        folder, at = Path(name), datetime.now(UTC)
        output = folder / "output"
        call(output, "run", "taxi")
        [version] = [
            int(each.name) for each in (output / "serving" / "taxi").iterdir() if each.name.isdecimal()
        ]
        examples = sorted((output / "artifacts/taxi/Ingest/examples").glob("*/Split-*/*.gz"))
        own, theirs = folder / "own", folder / "tf-serving"
        own.mkdir()
        theirs.mkdir()
        with (own / "requests-1.jsonl").open("w") as file:
            file.writelines(islice(cycle(logged_rows(version, at)), requests))
        with (theirs / "requests.tfrecord").open("wb") as file:
            file.writelines(islice(cycle(logged_examples(version, at, examples)), requests))
        for what, logs in (("serve's own", own), ("TF Serving's", theirs)):
            wall_s, cpu_s, said = call(output, "watch", "taxi", "--on", str(logs))
            found = {"logs": what, "requests": requests, "wall_s": round(wall_s, 1), "cpu_s": round(cpu_s, 1)}
            print(
                json.dumps({**found, "bar_s": BAR_S, "load": round(os.getloadavg()[0], 1), "said": said}),
                flush=True,
            )


if __name__ == "__main__":
    main()
