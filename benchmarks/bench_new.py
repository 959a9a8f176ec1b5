"""Compares workloads that `new` writes, unedited, with scikit-learn's models on the same splits.

    .venv/bin/python benchmarks/bench_new.py [--seeds 5] [--tables FOLDER] [--jobs N] [NAME ...]

iris, wine, cancer and diabetes are scikit-learn's own data sets, written as CSV; taxi is TFX's sample of taxi
trips with a column `big_tip` (a tip above a fifth of the fare) instead of the tip. churn, codes and risk are
generated: whole numbers whose order tells, codes without an order, and an age that is a risk at both ends.
The other names in `LABELS` are read from FOLDER/NAME.csv: tables from the Python packages pydataset and
vega_datasets.

Our two models, the trees that a run trains by default and the network of `--profile network`, use the columns
that `new` chose. The peers use the same columns of Ingest's splits, prepared as is usual with scikit-learn:
categories one-hot for the linear model and as categories for the trees, dates split into parts, empty cells
filled with the mean or left to the trees. "early" is HistGradientBoosting with early_stopping=True. Each
number is the mean over the seeds, followed by the standard deviation over the seeds if there is one. "se" is
the standard error of an accuracy or an AUC due to the number of rows in the eval split: differences of its
size mean nothing.
For tables with free text, "TF-IDF" is a logistic or ridge regression on scikit-learn's TfidfVectorizer of
words and pairs of words plus the columns of the linear model. debian is apt's list of packages (`apt-cache
dumpavail`); the label is the section.

Each table is run in a separate process and a separate copy of the project, so that a failure affects no other
table. With --jobs N, N tables run in parallel, each on its share of the cores; lines are printed as they are
done, and again at the end in the requested order.
"""

import argparse
import csv
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import datetime
from pathlib import Path
from typing import Any

# The peers' threads sleep while they wait, as ours do: spinning is many times slower on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import pandas as pd
import yaml
from scipy.sparse import csr_matrix, hstack
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, roc_auc_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from slipway.components.ingest.source import resolve_source

PROJECT = Path(__file__).resolve().parent.parent
PARTS = ("pipeline", "components", "schemas", "slipway", "workloads", "local_runner.py", "pyproject.toml")
SETS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "cancer": datasets.load_breast_cancer,
    "diabetes": datasets.load_diabetes,
}
LABELS: dict[str, tuple[str, ...]] = {
    "iris": ("target",), "wine": ("target",), "cancer": ("target",), "diabetes": ("target",),
    "taxi": ("big_tip",), "churn": ("churned",), "codes": ("sold",), "risk": ("failed",),
    "cars": ("Miles_per_Gallon",), "titanic": ("survived",), "weather": ("weather",), "hdma": ("deny",),
    "males": ("occupation",), "flchain": ("death",), "temperatures": ("temp",), "baseball": ("r",),
    "diamonds": ("price",), "movies": ("rating",), "insteval": ("y", "--task", "multiclass"),
    "computers": ("price",), "housing": ("price",), "slid": ("wages",), "boston": ("medv",),
    "debian": ("section",),
    "hi": ("whrswk", "--task", "regression"), "vietnami": ("pharvis", "--task", "regression"),
}  # fmt: skip
"""By table: its label, and further arguments of `new`. Rows with an empty label are removed beforehand."""
METRICS = {"auc": roc_auc_score, "sparse_categorical_accuracy": accuracy_score,
           "root_mean_squared_error": root_mean_squared_error}  # fmt: skip
TEXT_WORDS = 2
MOST_CATEGORIES, ROWS_PER_CATEGORY = 254, 10


HEAD = "| data | rows | metric | se | ours | network | linear | trees | early | TF-IDF | new, s | run, s |"


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=[*SETS, "taxi"], metavar="NAME")
    parser.add_argument("--tables", type=Path, help="folder of NAME.csv")
    parser.add_argument("--seeds", type=int, default=5, help="how many, for ours and for the peers")
    parser.add_argument("--network", action="store_true", help="train the profile network as well")
    parser.add_argument("--jobs", type=int, default=1, help="tables side by side, which share the cores")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in LABELS]:
        parser.error(f"no table is called {unknown[0]}; there are {', '.join(LABELS)}")
    print(f"{HEAD}\n|{' --- |' * (HEAD.count('|') - 1)}", flush=True)
    if len(options.names) > 1:
        sys.exit(_each_alone(options))
    with tempfile.TemporaryDirectory(prefix="bench-new-") as folder:
        project = Path(folder)
        for part in PARTS:
            source = PROJECT / part
            if source.is_dir():
                shutil.copytree(
                    source, project / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
                )
            else:
                shutil.copy(source, project / part)
        print(_line(project, options.names[0], options), flush=True)


def _each_alone(options: argparse.Namespace) -> int:
    """Run this script once for each table; return 1 if one of them failed, else 0."""
    cores = sorted(os.sched_getaffinity(0))
    shares: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
    for job in range(options.jobs):
        shares.put(cores[job :: options.jobs] or [cores[job % len(cores)]])
    # The processes that a thread starts inherit its cores.
    with ThreadPoolExecutor(
        options.jobs, initializer=lambda: os.sched_setaffinity(0, shares.get())
    ) as threads:
        running = {threads.submit(_alone, name, options): name for name in options.names}
        found = {}
        for done in as_completed(running):
            found[running[done]] = done.result()
            print(found[running[done]], flush=True)
    if options.jobs > 1:
        print("", *(found[name] for name in options.names), sep="\n", flush=True)
    return int(any("| failed |" in line for line in found.values()))


def _alone(name: str, options: argparse.Namespace) -> str:
    words = [name, "--seeds", str(options.seeds), *(["--network"] if options.network else [])]
    words += ["--tables", str(options.tables)] if options.tables else []
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True)
    print(done.stderr, end="", file=sys.stderr, flush=True)
    return done.stdout.splitlines()[-1] if done.returncode == 0 else f"| {name} | failed |"


def _line(project: Path, name: str, options: argparse.Namespace) -> str:
    rows, workload = _write(project, name, options.tables), f"my_{name}"
    label, *words = LABELS[name]
    new_s, _ = _command(project, "new", workload, "--data", f"{name}.csv", "--label", label, *words)
    settings = yaml.safe_load((project / "workloads" / workload / "workload.yaml").read_text())
    metric = settings["evaluate"]["metrics"][0]
    seeds = range(1, options.seeds + 1)
    ours, network, run_s = [], [], 0.0
    for seed in seeds:
        took_s, value = _run(project, workload, metric, seed)
        ours.append(value)
        run_s = run_s or took_s
    if options.network:
        network = [_run(project, workload, metric, seed, "--profile", "network")[1] for seed in seeds]
    train, held = (_split(project, workload, split) for split in ("train", "eval"))
    for part in (train, held):
        part.pop(settings["transform"].get("group"), None)
    peers = _peers(train, held, settings["data"]["label"], metric, seeds)
    return (
        f"| {name} | {rows:,} | {metric} | {_standard_error(metric, ours, held, label)} | {_told(ours)} | "
        f"{_told(network)} | {' | '.join(map(_told, peers))} | {new_s:.1f} | {run_s:.0f} |"
    )


def _run(project: Path, workload: str, metric: str, seed: int, *words: str) -> tuple[float, float]:
    """Return a run's seconds and its metric on the eval split, NaN if a gate stopped the run before that."""
    took_s, code = _command(project, "run", workload, "--set", f"train.seed={seed}", *words, allowed=(0, 3))
    shown = subprocess.run(
        [sys.executable, "local_runner.py", "show", "--json"],
        cwd=project, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = json.loads(shown)
    if code:
        print(f"{workload}, seed {seed}: {found.get('blessing_reasons') or found['state']}", file=sys.stderr)
    return took_s, (found.get("metrics") or {}).get(metric, float("nan"))


def _command(project: Path, *words: str, allowed: tuple[int, ...] = (0,)) -> tuple[float, int]:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "local_runner.py", *words], cwd=project, capture_output=True, text=True
    )
    if done.returncode not in allowed:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return time.monotonic() - began, done.returncode


def _told(values: Sequence[float]) -> str:
    if not len(values):
        return ""
    spread = f" ± {np.std(values):.2g}" if len(values) > 1 and np.std(values) > 0 else ""
    return f"{np.mean(values):.4g}{spread}"


def _standard_error(metric: str, values: Sequence[float], held: dict[str, Any], label: str) -> str:
    """Return the standard error: binomial for an accuracy, Hanley and McNeil's (1982) for an AUC, else ""."""
    at, truth = float(np.mean(values)), held[label]
    if metric == "sparse_categorical_accuracy":
        return f"{np.sqrt(at * (1 - at) / len(truth)):.3f}"
    if metric != "auc":
        return ""
    _, (few, many) = np.unique(truth, return_counts=True)
    first, second = at / (2 - at), 2 * at**2 / (1 + at)
    spread = at * (1 - at) + (few - 1) * (first - at**2) + (many - 1) * (second - at**2)
    return f"{np.sqrt(spread / few / many):.3f}"


def _write(project: Path, name: str, tables: Path | None) -> int:
    if name in SETS:
        frame = SETS[name](as_frame=True).frame
        frame.to_csv(project / f"{name}.csv", index=False)
        return len(frame)
    if name == "taxi":
        return _write_taxi(project)
    if name in GENERATED:
        frame = GENERATED[name]()
        frame.to_csv(project / f"{name}.csv", index=False)
        return len(frame)
    if name == "debian":
        return _write_csv(project / "debian.csv", list(_packages()))
    if tables is None:
        sys.exit(f"{name} is read from a folder: add --tables FOLDER")
    with (tables / f"{name}.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row[LABELS[name][0]]]
    return _write_csv(project / f"{name}.csv", rows)


def _churn(rows: int = 3000) -> pd.DataFrame:
    random = np.random.default_rng(0)
    table = {
        "age": random.integers(18, 81, rows),
        "tenure": np.minimum(random.geometric(1 / 25, rows) - 1, 72),
        "visits": random.poisson(4, rows),
        "kids": random.choice(5, rows, p=[0.4, 0.25, 0.2, 0.1, 0.05]),
        "plan": random.choice(["basic", "plus", "pro"], rows, p=[0.5, 0.3, 0.2]),
        "charge": np.round(random.gamma(4, 15, rows), 2),
    }
    score = -0.6 - 0.5 * (table["age"] - 49) / 18 - 0.8 * table["tenure"] / 30 - 0.12 * (table["visits"] - 4)
    score += 0.15 * table["kids"] + 0.4 * (table["plan"] == "basic") + 0.006 * (table["charge"] - 60)
    return pd.DataFrame({**table, "churned": (random.random(rows) < 1 / (1 + np.exp(-score))).astype(int)})


def _codes(rows: int = 4000) -> pd.DataFrame:
    random = np.random.default_rng(1)
    places = {"product": (1, 21), "district": (1, 51), "month": (1, 13), "weekday": (0, 7), "hour": (0, 24)}
    table = {name: random.integers(*ends, rows) for name, ends in places.items()}
    table["x"] = np.round(random.normal(size=rows), 3)
    score = random.normal(0, 0.8, 21)[table["product"]] + random.normal(0, 0.6, 51)[table["district"]]
    score += 0.7 * np.sin(2 * np.pi * table["month"] / 12) + 0.6 * (table["weekday"] >= 5)
    score += 0.5 * np.cos(2 * np.pi * (table["hour"] - 15) / 24) + 0.5 * table["x"] - 0.3
    return pd.DataFrame({**table, "sold": (random.random(rows) < 1 / (1 + np.exp(-score))).astype(int)})


def _risk(rows: int = 3000) -> pd.DataFrame:
    random = np.random.default_rng(2)
    table = {
        "age": random.integers(18, 81, rows),
        "tenure": np.minimum(random.geometric(1 / 25, rows) - 1, 72),
        "kids": random.choice(5, rows, p=[0.4, 0.25, 0.2, 0.1, 0.05]),
        "plan": random.choice(["basic", "plus", "pro"], rows, p=[0.5, 0.3, 0.2]),
        "charge": np.round(random.gamma(4, 15, rows), 2),
    }
    score = -2.6 + 0.07 * np.abs(table["age"] - 49) - 0.8 * table["tenure"] / 30 + 0.15 * table["kids"]
    score += 0.4 * (table["plan"] == "basic") + 0.006 * (table["charge"] - 60)
    return pd.DataFrame({**table, "failed": (random.random(rows) < 1 / (1 + np.exp(-score))).astype(int)})


GENERATED = {"churn": _churn, "codes": _codes, "risk": _risk}


def _packages() -> Iterator[dict[str, str]]:
    kept = ("Package", "Section", "Architecture", "Installed-Size", "Size", "Maintainer", "Description")
    if (apt := shutil.which("apt-cache")) is None:
        sys.exit("debian is read from apt-cache, which is not installed here")
    known = subprocess.run([apt, "dumpavail"], capture_output=True, text=True, check=True).stdout
    for paragraph in known.strip().split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in paragraph.split("\n") if ": " in line and line[0] != " "
        )
        row = {name.lower().replace("-", "_"): fields.get(name, "") for name in kept}
        if row["section"]:
            yield row


def _write_taxi(project: Path) -> int:
    taxi = resolve_source("package://tfx/examples/chicago_taxi_pipeline/data/simple/data.csv", root=project)
    with taxi.files[0].open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        tips = float(row.pop("tips"))
        row["big_tip"] = str(int(round(tips * 100) * 5 > round(float(row["fare"]) * 100)))
    return _write_csv(project / "taxi.csv", rows)


def _write_csv(path: Path, rows: list[dict[str, str]]) -> int:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def _split(project: Path, workload: str, split: str) -> dict[str, Any]:
    """Return the columns of one of Ingest's splits: numbers with NaN, or texts with "", for empty cells."""
    import tensorflow as tf

    files = sorted(map(str, (project / "output").glob(f"**/{workload}/Ingest/examples/*/Split-{split}/*")))
    rows = [
        tf.train.Example.FromString(record).features.feature
        for record in tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator()
    ]
    found: dict[str, Any] = {}
    for column in sorted({name for row in rows for name in row}):
        cells = [row.get(column) for row in rows]
        if any(cell is not None and cell.bytes_list.value for cell in cells):
            found[column] = np.array(
                [
                    cell.bytes_list.value[0].decode() if cell and cell.bytes_list.value else ""
                    for cell in cells
                ],
                object,
            )
        else:
            values = [(cell.float_list.value or cell.int64_list.value) if cell else () for cell in cells]
            found[column] = np.array([each[0] if len(each) else np.nan for each in values], np.float64)
    return found


def _peers(
    train: dict[str, Any], held: dict[str, Any], label: str, metric: str, seeds: Sequence[int]
) -> list[list[float]]:
    """Return the metrics by seed of the linear model, HistGradientBoosting without and with early stopping,
    and TF-IDF."""
    is_number = metric == "root_mean_squared_error"
    truth = [part[label] for part in (train, held)]
    if not is_number:
        classes = {value: code for code, value in enumerate(sorted(set(truth[0]) | set(truth[1])))}
        truth = [np.array([classes[value] for value in part]) for part in truth]
    tables = [_taken_apart(part, label) for part in (train, held)]
    numbers, codes, hot = [], [], []
    for column in sorted(tables[0]):
        own, other = (table[column] for table in tables)
        if own.dtype == object:
            values, counts = np.unique(own.astype(str), return_counts=True)
            kept = values[np.argsort(-counts)][: max(1, int((counts >= ROWS_PER_CATEGORY).sum()))]
            places = {value: place for place, value in enumerate(kept[:MOST_CATEGORIES])}
            coded = [np.array([places.get(v, len(places)) for v in part]) for part in (own, other)]
            codes.append(coded)
            hot.append([np.eye(len(places) + 1)[part] for part in coded])
        else:
            numbers.append([own, other])
            mean = np.nanmean(own)
            hot.append([np.where(np.isnan(part), mean, part)[:, None] for part in (own, other)])
    trees = [np.column_stack([each[part] for each in (*codes, *numbers)]) for part in (0, 1)]
    flat = [np.hstack([each[part] for each in hot]) for part in (0, 1)]
    kind = HistGradientBoostingRegressor if is_number else HistGradientBoostingClassifier
    settings: dict[str, Any] = {"categorical_features": list(range(len(codes))) or None}
    linear = make_pipeline(StandardScaler(), Ridge() if is_number else LogisticRegression(max_iter=1000))
    found = [[_score(linear, flat, truth, metric)]]
    for early in ("auto", True):
        models = [kind(early_stopping=early, random_state=seed, **settings) for seed in seeds]
        found.append([_score(model, trees, truth, metric) for model in models])
    texts = [column for column, values in tables[0].items() if _is_text(values)]
    plain = Ridge() if is_number else LogisticRegression(C=10, max_iter=300)
    found.append([_score(plain, _weighed_words(texts, tables, flat), truth, metric)] if texts else [])
    return found


def _is_text(values: np.ndarray) -> bool:
    if values.dtype != object:
        return False
    different = set(values)
    return (
        np.mean([len(str(each).split()) for each in different]) >= TEXT_WORDS
        and len(different) > len(values) / ROWS_PER_CATEGORY
    )


def _weighed_words(texts: Sequence[str], tables: Sequence[dict[str, Any]], flat: Sequence[Any]) -> list[Any]:
    scaler = StandardScaler(with_mean=False).fit(csr_matrix(flat[0]))
    parts = [[scaler.transform(csr_matrix(part))] for part in flat]
    for text in texts:
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=2).fit(tables[0][text])
        for found, table in zip(parts, tables, strict=True):
            found.append(words.transform(table[text]))
    return [hstack(found, format="csr") for found in parts]


def _score(model: Any, x: Sequence[Any], truth: Sequence[Any], metric: str) -> float:
    model.fit(x[0], truth[0])
    answers = model.predict_proba(x[1])[:, 1] if metric == "auc" else model.predict(x[1])
    return float(METRICS[metric](truth[1], answers))


def _taken_apart(part: dict[str, Any], label: str) -> dict[str, Any]:
    """Return the columns without the label; dates become year, month, day of the year, weekday and hour."""
    found = {}
    for column, values in part.items():
        if column == label:
            continue
        dates = [_date(value) for value in values] if values.dtype == object else [None]
        if any(date is None for date in dates):
            found[column] = values
            continue
        for piece in ("year", "month", "hour"):
            found[f"{column} {piece}"] = np.array([float(getattr(date, piece)) for date in dates])
        found[f"{column} day"] = np.array([float(date.timetuple().tm_yday) for date in dates])
        found[f"{column} weekday"] = np.array([float(date.weekday()) for date in dates])
    return found


def _date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        return None


if __name__ == "__main__":
    main()
