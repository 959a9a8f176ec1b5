"""Shared code of the benchmarks that compare one of our executors with TFX's own, in turn.

Each measurement runs in a new process, which imports TFX before the clock starts.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
WHICH = ("stock", "ours")
Measured = Mapping[str, float]


def arguments(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the arguments that these benchmarks share."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, help="of a taxi run")
    parser.add_argument("--only", choices=WHICH)
    parser.add_argument("--one", nargs=2, metavar=("WHICH", "FOLDER"), help=argparse.SUPPRESS)
    return parser


def measured_here(asked: argparse.Namespace, measure: Callable[..., Measured]) -> bool:
    """If this process was started for a measurement, make it, print the result and return True."""
    if not asked.one:
        return False
    os.environ["TF_USE_LEGACY_KERAS"] = "0"
    which, folder = asked.one
    print(json.dumps(measure(asked.output, Path(folder), stock=which == "stock")))
    return True


def compare(script: str, asked: argparse.Namespace, folder: str, **size: int) -> None:
    """Measure both executors, and print lines of JSON: both results, and the ratios of TFX's times to ours.

    Args:
        script: the file of the benchmark.
        asked: the arguments of the benchmark.
        folder: the folder with the rows.
        size: the size of the work, which is printed.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": f"{PROJECT}:{PROJECT / 'benchmarks'}",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    found = {}
    for which in [asked.only] if asked.only else WHICH:
        command = [sys.executable, script, str(asked.output), "--one", which, folder]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{which}: {done.stderr[-2000:]}")
        found[which] = json.loads(done.stdout.splitlines()[-1])
        told = {key: round(value, 2) for key, value in found[which].items()}
        print(json.dumps({"executor": which, **size, **told}), flush=True)
    if len(found) == len(WHICH):
        ratios = {key: round(found["stock"][key] / found["ours"][key], 1) for key in ("wall_s", "cpu_s")}
        print(json.dumps({"stock_to_ours": ratios, **size}), flush=True)


def latest(output: Path, *parts: str) -> Path:
    """Return the folder of the newest artifact of a node's output."""
    return max(output.joinpath("artifacts", "taxi", *parts).iterdir(), key=lambda path: int(path.name))


def repeat_rows(source: Path, target: Path, times: int) -> None:
    """Write the records of all splits, repeated `times` times."""
    for file in source.glob("Split-*/*.gz"):
        path = target / file.relative_to(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        records = gzip.decompress(file.read_bytes())
        with gzip.open(path, "wb", compresslevel=1) as written:
            for _ in range(times):
                written.write(records)


def artifact(kind: Callable[[], object], uri: object) -> list[object]:
    """Return an artifact as an executor receives it: in a list."""
    found = kind()
    found.uri = str(uri)
    return [found]


def examples_in(folder: Path, splits: Iterable[str]) -> list[object]:
    """Return the examples in a folder, with the properties that Ingest sets."""
    from tfx.types import standard_artifacts

    [found] = artifact(standard_artifacts.Examples, folder)
    found.split_names = json.dumps(list(splits))
    found.set_string_custom_property("payload_format", "FORMAT_TF_EXAMPLE")
    found.set_string_custom_property("file_format", "tfrecords_gzip")
    return [found]


def in_process(executor: type, folder: Path) -> object:
    """Return an executor that uses Beam's in-process runner."""
    return executor(
        executor.Context(
            beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=none"],
            tmp_dir=str(folder / "beam"),
            unique_id="1",
        )
    )
