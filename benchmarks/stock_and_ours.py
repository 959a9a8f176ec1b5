"""What the benchmarks share that run one of our executors beside TFX's own, in turns.

Each measurement is a process of its own, which has imported TFX before the clock starts.
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
    """What all of them are asked by."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, help="of a taxi run")
    parser.add_argument("--only", choices=WHICH)
    parser.add_argument("--one", nargs=2, metavar=("WHICH", "FOLDER"), help=argparse.SUPPRESS)
    return parser


def measured_here(asked: argparse.Namespace, measure: Callable[..., Measured]) -> bool:
    """Whether this process is the one of a measurement; then it has been made."""
    if not asked.one:
        return False
    os.environ["TF_USE_LEGACY_KERAS"] = "0"
    which, folder = asked.one
    print(json.dumps(measure(asked.output, Path(folder), stock=which == "stock")))
    return True


def compare(script: str, asked: argparse.Namespace, folder: str, **size: int) -> None:
    """Measures both, and prints lines of JSON: each of them, and how many times as long TFX's own takes.

    Args:
        script: the benchmark's file.
        asked: its arguments.
        folder: where the rows are.
        size: of the work, as it is told.
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
    """The newest artifact of a node."""
    return max(output.joinpath("artifacts", "taxi", *parts).iterdir(), key=lambda path: int(path.name))


def repeat_rows(source: Path, target: Path, times: int) -> None:
    """Writes the records of all splits again and again."""
    for file in source.glob("Split-*/*.gz"):
        path = target / file.relative_to(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        records = gzip.decompress(file.read_bytes())
        with gzip.open(path, "wb", compresslevel=1) as written:
            for _ in range(times):
                written.write(records)


def artifact(kind: Callable[[], object], uri: object) -> list[object]:
    """An artifact, as an executor is given it."""
    found = kind()
    found.uri = str(uri)
    return [found]


def examples_in(folder: Path, splits: Iterable[str]) -> list[object]:
    """The examples of a folder, as Ingest describes them."""
    from tfx.types import standard_artifacts

    [found] = artifact(standard_artifacts.Examples, folder)
    found.split_names = json.dumps(list(splits))
    found.set_string_custom_property("payload_format", "FORMAT_TF_EXAMPLE")
    found.set_string_custom_property("file_format", "tfrecords_gzip")
    return [found]


def in_process(executor: type, folder: Path) -> object:
    """An executor with Beam's runner inside the process."""
    return executor(
        executor.Context(
            beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=none"],
            tmp_dir=str(folder / "beam"),
            unique_id="1",
        )
    )
