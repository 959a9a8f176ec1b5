"""Runs thirty days of data through Airflow's own scheduler and through the local engine, and compares them.

    python benchmarks/airflow_month.py FOLDER                # all thirty, from nothing
    python benchmarks/airflow_month.py FOLDER --days 11 20   # a part, after those before it
    python benchmarks/airflow_month.py FOLDER --length 6     # a short month, in which as much happens

Each day has 500 real taxi trips in a file of its own, and a run of the taxi workload that takes them,
scheduled in Berlin over the change to summer time. One file is empty, one comes late, one lacks the values
of a column; a model is rolled back; then the DAG is written anew with another training; and one day is
missed, and back-filled after all others. The local engine gets the same days in the same order.

Needs `make airflow`. Prints a line per day with what both made of it, and ends with 1 if anything differs:
how the run ended, the state of each node, whether the model was blessed and pushed, the metrics, what is
served, and, on Airflow's side, the state of the DAG's run and its version.
"""

import argparse
import importlib.util
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime, time, timedelta
from pathlib import Path
from time import monotonic
from zoneinfo import ZoneInfo

from bench_workers import PROJECT

sys.path.insert(0, str(PROJECT))
sys.path.append(str(PROJECT / "tests/support"))
from airflow_server import Airflow, wait

from slipway.components.ingest.spans import span_number
from slipway.pipeline.engine.processes.os_processes import RUN_VARIABLE, end_leftovers
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import RunRecord

HOUR = time(3, tzinfo=ZoneInfo("Europe/Berlin"))
ROWS = 500
DAG = "taxi"
SETTINGS = (
    "train.batch_size=32",
    "evaluate.thresholds={auc: {min: 0.55, max_drop: 0.3}, binary_accuracy: {min: 0.5, max_drop: 0.3}}",
    "evaluate.slice_thresholds={payment_type: {binary_accuracy: {max_drop: 0.5}}}",
    "evaluate.beat_trivial=none",
    "evaluate.serving=null",  # two more processes with TensorFlow a day
    # 500 trips of all years differ more from day to day than those of real days, and are not in order.
    "data_gate={freshness: null, max_drift_l_infinity: 1, max_drift_jensen_shannon: 1, max_scale: 1000}",
    "data_gate={max_missing_rise: 0.3, max_label_shift: 0.3, max_label_score_drop: 0.5}",
    "nodes={Ingest: {retries: 1, backoff_s: 3}}",
)
METRIC_LIMIT = 1e-6
DAY_LIMIT_S = 300
"""A day took 88 s on two cores with a load of 10."""


class Month:
    """The days of a month, numbered from 1, and what happens on which."""

    def __init__(self, last: int) -> None:
        self.last = last
        shares = (1 / 6, 4 / 15, 2 / 5, 1 / 2, 2 / 3)  # of thirty: 5, 8, 12, 15, 20
        days = (max(number, round(share * last)) for number, share in enumerate(shares, 1))
        self.empty, self.late, self.broken, self.rolled_back, self.missed = days
        # The run of a day is scheduled for the next: that of the missed day for the beginning of summer time.
        self._first = date(2025, 3, 30) - timedelta(days=self.missed)

    def day(self, number: int) -> date:
        """Return the date of a day."""
        return self._first + timedelta(days=number - 1)

    def number(self, day: date) -> int:
        """Return the number of a date."""
        return (day - self._first).days + 1

    def settings(self, folder: Path, number: int) -> list[str]:
        """Return the `--set` of a day's run, without the day."""
        epochs = 3 if number <= self.rolled_back else 4
        sets = (*SETTINGS, f"data.source={folder}/{{YYYY}}-{{MM}}-{{DD}}.csv", f"train.epochs={epochs}")
        return [word for each in sets for word in ("--set", each)]

    def write(self, folder: Path, number: int) -> None:
        """Write the file of a day."""
        package = importlib.util.find_spec("tfx")
        source = Path(package.origin).parent / "examples/chicago_taxi_pipeline/data/simple/data.csv"
        header, *lines = source.read_text(encoding="utf-8").splitlines()
        random.Random(1).shuffle(lines)  # noqa: S311 (like trips lie together there: some days would be of one kind)
        rows = [line.split(",") for line in lines[ROWS * (number - 1) : ROWS * number]]
        if number == self.empty:
            rows = []
        if number == self.broken:
            column = header.split(",").index("payment_type")
            rows = [[*row[:column], "", *row[column + 1 :]] for row in rows]
        folder.mkdir(parents=True, exist_ok=True)
        text = "\n".join([header, *map(",".join, rows), ""])
        (folder / f"{self.day(number)}.csv").write_text(text, encoding="utf-8")

    def parts(self, first: int, last: int) -> Iterator[range]:
        """Yield the days between two, with a part of its own for what changes: a rollback, a missed day."""
        starts = sorted(
            {first, *(day for day in (self.rolled_back + 1, self.missed + 1) if first < day <= last)}
        )
        for start, after in zip(starts, [*starts[1:], last + 1], strict=True):
            end = after - 1 if after - 1 == self.missed else after
            if start < end:
                yield range(start, end)


class Side:
    """One of the two: its data, its output, its commands."""

    def __init__(self, folder: Path, month: Month) -> None:
        self.month = month
        self.days, self.output = folder / "days", folder / "output"

    def command(self, *words: str, environment: dict[str, str] | None = None) -> int:
        """Run a command of the local runner on this side's output; return its exit code."""
        told = self.output.with_name("commands.log")
        told.parent.mkdir(parents=True, exist_ok=True)
        with told.open("ab") as log:
            return subprocess.run(
                [sys.executable, "local_runner.py", *words, "--output", self.output],
                cwd=PROJECT, env=environment, stdout=log, stderr=log, check=False,
            ).returncode  # fmt: skip

    def roll_back(self) -> None:
        """Publish the version before the last one again."""
        if code := self.command("rollback", DAG, "--reason", "the live model is bad"):
            sys.exit(f"rollback ended with {code}: {self.output.with_name('commands.log')} says why")


class LocalSide(Side):
    """The local engine: one run per day, in order."""

    def run(self, number: int) -> int:
        """Run a day; return the exit code."""
        words = [
            "run",
            DAG,
            *self.month.settings(self.days, number),
            "--set",
            f"data.span={self.month.day(number)}",
        ]
        return self.command(*words, environment=self._environment())

    def run_days(self, first: int, last: int) -> None:
        """Run days, with what happens between them."""
        self.output.parent.mkdir(parents=True, exist_ok=True)
        warm = [sys.executable, "local_runner.py", "warm"]
        subprocess.run(warm, cwd=PROJECT, env=self._environment(), check=True, capture_output=True)
        codes = {}
        try:
            for part in self.month.parts(first, last):
                for number in part:
                    if number == self.month.late:
                        assert self.run(number) != 0, "there is no file yet"
                    self.month.write(self.days, number)
                    codes[number] = self.run(number)
                    if number == self.month.rolled_back:
                        self.roll_back()
            if last == self.month.last:
                self.month.write(self.days, self.month.missed)
                codes[self.month.missed] = self.run(self.month.missed)
        finally:
            end_leftovers(self.output.parent)
        keep(self.output.with_name("codes.json"), codes)

    def _environment(self) -> dict[str, str]:
        here = str(self.output.parent)
        return {**os.environ, "XDG_RUNTIME_DIR": here, RUN_VARIABLE: here}


class AirflowSide(Side):
    """A DAG of the workload in Airflow."""

    def __init__(self, folder: Path, month: Month) -> None:
        super().__init__(folder, month)
        home = folder / "home"
        is_new = not home.exists()
        home.mkdir(parents=True, exist_ok=True)
        self.airflow = Airflow(PROJECT / ".venv-airflow" / "bin", home)
        if is_new:
            self._ask("db", "migrate")

    def run_days(self, first: int, last: int) -> None:
        """Let the scheduler run days, with what happens between them."""
        for part in self.month.parts(first, last):
            for number in part:
                if number != self.month.late:
                    self.month.write(self.days, number)
            self._write_dag(part[0], part[-1])
            self._run(part)
            if part[-1] == self.month.rolled_back:
                self.roll_back()
        if last == self.month.last:
            self.month.write(self.days, self.month.missed)
            self._delete_empty_runs()
            moment = datetime.combine(self.month.day(self.month.missed + 1), HOUR).isoformat()
            self._ask("backfill", "create", "--dag-id", DAG, "--from-date", moment, "--to-date", moment)
            self._run(range(self.month.missed, self.month.missed + 1))

    def runs(self) -> dict[int, tuple[str, int, int]]:
        """Return by day the state of the DAG's run, the tries of its first task, and the DAG's version."""
        query = (
            "SELECT run.logical_date, run.state, task.try_number, version.version_number FROM dag_run AS run "
            "JOIN task_instance AS task ON task.run_id = run.run_id AND task.task_id = 'begin' "
            "LEFT JOIN dag_version AS version ON version.id = task.dag_version_id"
        )
        found = {}
        for moment, state, tries, version in self.airflow.ask(query):
            found[self.month.number(date.fromisoformat(moment[:10])) - 1] = (state, tries, version)
        return found

    def _run(self, part: range) -> None:
        """Run Airflow until the days of a part have ended."""
        with self.airflow.running():
            subprocess.run(
                [sys.executable, "local_runner.py", "warm"],
                cwd=PROJECT, env=self.airflow.of_steps, check=True, capture_output=True,
            )  # fmt: skip
            wait(self.airflow, lambda: self._have_ended(part), limit_s=DAY_LIMIT_S * len(part))

    def _delete_empty_runs(self) -> None:
        """Delete the run of the missed day, as its page does; no back-fill fills a run that has no tasks.

        With `catch_up`, Airflow makes the run that follows the last one even if the DAG has since got a later
        start; that is after its logical date, so it has no tasks, and is a success.
        """
        with closing(sqlite3.connect(self.airflow.home / "airflow.db", timeout=30)) as store, store:
            store.execute(
                "DELETE FROM dag_run WHERE NOT EXISTS "
                "(SELECT * FROM task_instance AS task WHERE task.run_id = dag_run.run_id)"
            )

    def _have_ended(self, part: range) -> bool:
        is_awaited = (
            self.month.late in part and not (self.days / f"{self.month.day(self.month.late)}.csv").exists()
        )
        if is_awaited and self.airflow.failed_tries(
            DAG, "begin", self.month.day(self.month.late + 1).isoformat()
        ):
            self.month.write(self.days, self.month.late)
        runs = self.runs()
        return all(runs.get(number, ("",))[0] in ("success", "failed") for number in part)

    def _write_dag(self, first: int, last: int) -> None:
        start, end = self.month.day(first + 1), self.month.day(last + 1)
        schedule = f"{{start: {start}, end: '{end}T12:00', catch_up: true, lag_days: 1"
        schedule += ', cron: "0 3 * * *", time_zone: Europe/Berlin}'
        words = ["airflow", DAG, *self.month.settings(self.days, last), "--set", f"cloud.schedule={schedule}"]
        words += ["--dags", str(self.airflow.dags), "--output", str(self.output)]
        subprocess.run([sys.executable, "cloud_runner.py", *words], cwd=PROJECT, check=True)
        self._ask("dags", "reserialize")

    def _ask(self, *words: str) -> None:
        asked = self.airflow.command(*words)
        assert asked.returncode == 0, asked.stdout[-2000:] + asked.stderr[-2000:]


def keep(file: Path, codes: dict[int, int]) -> None:
    """Add the exit codes of days to a file."""
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    file.write_text(json.dumps(before | {str(day): code for day, code in codes.items()}), encoding="utf-8")


def records(output: Path, month: Month) -> dict[int, RunRecord]:
    """Return the last run of each day that has read its file."""
    found: dict[int, RunRecord] = {}
    for record in History(output).runs():
        if record.rollback:
            continue
        for examples in record.node("Ingest").outputs.get("examples", ()):
            span = int(examples["properties"]["span"])
            found.setdefault(span - span_number(month.day(1).isoformat()) + 1, record)
    return found


def served(output: Path, known: dict[int, RunRecord]) -> list[str]:
    """Return what each version was made of, from the first on: its day, or a rollback."""
    days = {Path(record.pushed["path"]).name: str(day) for day, record in known.items() if record.pushed}
    versions = sorted(path.name for path in (output / "serving" / DAG).glob("[0-9]*"))
    return [days.get(version, "rollback") for version in versions]


def told(record: RunRecord | None) -> dict[str, object]:
    """Return what is compared of a day's run."""
    if record is None:
        return {"state": "no data"}
    return {
        "state": record.state,
        "exit_code": record.exit_code,
        "nodes": {node.id: node.state for node in record.nodes},
        "blessed": record.blessed,
        "reasons": record.blessing_reasons,
        "pushed": bool(record.pushed),
        "rows": record.node("Ingest").outputs["quarantine"][0]["properties"]["rows_out"],
    }


def compare(airflow: AirflowSide, local: LocalSide) -> int:
    """Print what both made of each day that both have; return how many differ."""
    file = local.output.with_name("codes.json")
    codes = {int(day): code for day, code in json.loads(file.read_text(encoding="utf-8")).items()}
    ours, theirs, runs = (
        records(local.output, local.month),
        records(airflow.output, local.month),
        airflow.runs(),
    )
    differ, furthest = 0, 0.0
    for day in sorted(codes.keys() & runs.keys()):
        state, tries, version = runs[day]
        one, other = told(theirs.get(day)), told(ours.get(day))
        names = [name for name in one.keys() | other.keys() if one.get(name) != other.get(name)]
        if (state == "success") != (codes[day] == 0):
            names.append(f"Airflow's {state}, the local exit code {codes[day]}")
        if day in ours and day in theirs:
            pairs = [(theirs[day].metrics.get(name), value) for name, value in ours[day].metrics.items()]
            distance = max((abs(a - b) if a is not None else 1.0 for a, b in pairs), default=0.0)
            furthest = max(furthest, distance)
            names += ["metrics"] if distance > METRIC_LIMIT else []
        differ += bool(names)
        said = f"differs: {', '.join(names)}" if names else "equal"
        print(
            f"{local.month.day(day)}  {state:8} tries {tries}  DAG version {version}  {one['state']:9} {said}"
        )
    lists = served(airflow.output, theirs), served(local.output, ours)
    if lists[0] != lists[1]:
        differ += 1
        print("served differs: Airflow", *lists[0], "; local", *lists[1])
    print(f"{len(codes.keys() & runs.keys())} days, {differ} differ; metrics at most {furthest:.1g} apart")
    print("served:", *lists[0])
    return differ


def main() -> None:
    """Run the days that are asked for, and compare all that are there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="for everything; a new one for a new month")
    parser.add_argument("--length", type=int, default=30, help="how many days the month has, at least 6")
    parser.add_argument("--days", type=int, nargs=2, metavar=("FIRST", "LAST"), help="only these of them")
    parser.add_argument("--side", choices=("airflow", "local"), help="only one of the two")
    options = parser.parse_args()
    folder = options.folder.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Airflow's processes end first
    month = Month(options.length)
    airflow, local = AirflowSide(folder / "airflow", month), LocalSide(folder / "local", month)
    for name, side in (("local", local), ("airflow", airflow)):
        if options.side in (None, name):
            began = monotonic()
            side.run_days(*(options.days or (1, month.last)))
            print(f"{name}: {monotonic() - began:.0f} s", flush=True)
    if local.output.exists() and airflow.output.exists():
        sys.exit(1 if compare(airflow, local) else 0)


if __name__ == "__main__":
    main()
