"""Workloads that `new` writes, without an edit, beside scikit-learn's linear models on the same split.

    .venv/bin/python benchmarks/bench_new.py [iris wine cancer diabetes taxi]

The four data sets are scikit-learn's own, written as CSV; taxi is TFX's sample of trips with a column
`big_tip` (a tip above a fifth of the fare) instead of the tip. The split is Ingest's, by the rows' hashes.
Everything is written into a copy of the project.
"""

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from components.ingest.source import resolve_source

PROJECT = Path(__file__).resolve().parent.parent
PARTS = ("pipeline", "components", "schemas", "workloads", "local_runner.py")
SETS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "cancer": datasets.load_breast_cancer,
    "diabetes": datasets.load_diabetes,
}


def main() -> None:
    """Prints a line for each data set: our metric, scikit-learn's, and the seconds of both commands."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=[*SETS, "taxi"], metavar="NAME")
    names = parser.parse_args().names
    print("| data | rows | metric | ours | scikit-learn's linear model | new, s | run, s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="bench-new-") as folder:
        project = Path(folder)
        for part in PARTS:
            source = PROJECT / part
            if source.is_dir():
                shutil.copytree(source, project / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, project / part)
        for name in names:
            print(_line(project, name), flush=True)


def _line(project: Path, name: str) -> str:
    rows = _write_taxi(project) if name == "taxi" else _write_set(project, name)
    label = "big_tip" if name == "taxi" else "target"
    workload = f"{name}_new"
    new_s = _command(project, "new", workload, "--data", f"{name}.csv", "--label", label)
    run_s = _command(project, "run", workload)
    shown = subprocess.run(
        [sys.executable, "local_runner.py", "show", "--json"],
        cwd=project, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    metrics = json.loads(shown)["metrics"]
    metric = {"diabetes": "root_mean_squared_error", "taxi": "auc", "cancer": "binary_accuracy"}.get(
        name, "sparse_categorical_accuracy"
    )
    peer = "" if name == "taxi" else f"{_peer(project, workload, label, name):.4f}"
    return f"| {name} | {rows:,} | {metric} | {metrics[metric]:.4f} | {peer} | {new_s:.1f} | {run_s:.0f} |"


def _command(project: Path, *words: str) -> float:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "local_runner.py", *words], cwd=project, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return time.monotonic() - began


def _write_set(project: Path, name: str) -> int:
    frame = SETS[name](as_frame=True).frame
    frame.to_csv(project / f"{name}.csv", index=False)
    return len(frame)


def _write_taxi(project: Path) -> int:
    taxi = resolve_source("package://tfx/examples/chicago_taxi_pipeline/data/simple/data.csv", root=project)
    path = taxi.files[0]
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        tips = float(row.pop("tips"))
        row["big_tip"] = str(int(round(tips * 100) * 5 > round(float(row["fare"]) * 100)))
    with (project / "taxi.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def _peer(project: Path, workload: str, label: str, name: str) -> float:
    """scikit-learn's linear model with its defaults, fitted and judged on Ingest's own splits."""
    train, held = (_split(project, workload, split) for split in ("train", "eval"))
    target = train.pop(label), held.pop(label)
    columns = sorted(train)
    x = [np.column_stack([part[column] for column in columns]) for part in (train, held)]
    if name == "diabetes":
        ridge = make_pipeline(StandardScaler(), Ridge()).fit(x[0], target[0])
        return float(root_mean_squared_error(target[1], ridge.predict(x[1])))
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(x[0], target[0])
    return float(accuracy_score(target[1], logistic.predict(x[1])))


def _split(project: Path, workload: str, split: str) -> dict[str, Any]:
    import tensorflow as tf

    files = sorted(map(str, (project / "output").glob(f"**/{workload}/Ingest/examples/*/Split-{split}/*")))
    found: dict[str, list[float]] = {}
    for record in tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator():
        for column, feature in tf.train.Example.FromString(record).features.feature.items():
            found.setdefault(column, []).extend(feature.float_list.value or feature.int64_list.value)
    return {column: np.array(values, dtype=np.float64) for column, values in found.items()}


if __name__ == "__main__":
    main()
