"""The taxi workload as a DAG in a real Airflow, in an environment of its own without TensorFlow.

It starts from the cache of a local run, which spares minutes: the Trainer and what follows run in it.
From nothing it is run by hand (docs/airflow.md). The scheduler runs all DAGs side by side, and the steps are
forked from warm processes; those that import TFX are seen in tests/integration/engine/test_steps.py.

Seen only here: Airflow's own scheduler, retries, limits and triggers.
"""

import importlib.util
import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from called import called, forked_servers

from slipway.components.ingest.spans import span_number
from slipway.pipeline.cloud.airflow.dag_file import AROUND_S, Place, dag_text
from slipway.pipeline.config import load_workload, read_assignments
from slipway.pipeline.engine.processes.os_processes import RUN_VARIABLE, end_leftovers, leftovers
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import History

pytestmark = [pytest.mark.slow, pytest.mark.external]

# The schedule has one time, in the past: with catch_up, the scheduler starts that run at once.
DAY = "2025-01-02"
SCHEDULE = f"cloud.schedule={{start: '{DAY}', end: '{DAY}T12:00', catch_up: true}}"
# Another number than in the run of the other modules: what is before the Trainer is cached, and no more.
EPOCHS = "train.epochs=4"
# It would start two more processes with TensorFlow, and Airflow has no part in it.
NO_CHECK = "evaluate.serving=null"
# A gate that always stops, and may be tried again.
NEVER_ENOUGH = ("data_gate.min_rows=1000000", "nodes.DataGate={retries: 2, backoff_s: 7, timeout_s: 600}")
LIMIT_S = 600.0


class Airflow:
    """One Airflow: its home, its SQLite database, its DAGs; and the folder of the toys."""

    def __init__(self, bin_folder, home, toys):
        self.home, self.dags, self.toys = home, home / "dags", toys
        self._program = bin_folder / "airflow"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        kept = {name: os.environ[name] for name in ("HOME", "TMPDIR", "LANG") if name in os.environ}
        # What a step gets: nothing of Airflow's own settings.
        self.of_steps = {
            **kept,
            "PATH": f"{bin_folder}:/usr/bin:/bin",
            "TOY": str(toys),
            "XDG_RUNTIME_DIR": str(home),  # where steps look for a warm process
            RUN_VARIABLE: str(home),  # by which whatever is left of it is found
        }
        self._environment = {
            **self.of_steps,
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",  # no DAG changes
            # What an installation may say; the workload says otherwise.
            "AIRFLOW__CORE__DEFAULT_TASK_RETRIES": "3",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{self._port}/execution/",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",  # its default of 5 s is short beside a training
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        }

    def command(self, *words):
        """Runs a command of Airflow's to its end."""
        return subprocess.run(
            [self._program, *words],
            env=self._environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip

    @contextmanager
    def running(self):
        """Its processes, on this machine's loopback; none of them outlives this."""
        started = []
        try:
            started.append(
                self._start("api-server", "--host", "127.0.0.1", "--port", str(self._port), "--workers", "1")
            )
            # Tasks ask it what to do, and fail where nobody answers.
            _wait(self, self._answers)
            # Without its server of logs, which would listen on every address.
            started.append(self._start("scheduler", "--skip-serve-logs"))
            started.append(self._start("dag-processor"))
            yield
        finally:
            for process in started:
                process.terminate()
            for process in started:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=10)
            self._end(process.pid for process in started)
            for process in started:
                process.wait()

    def _end(self, sessions):
        """Kills what is left: of its sessions, whose processes write over their environment, and of tasks."""
        for session in sessions:
            for pid in _of_session(session):
                os.kill(pid, signal.SIGKILL)
        end_leftovers(self.home)

    def _start(self, *words):
        with (self.home / f"{words[0]}.log").open("wb") as log:
            return subprocess.Popen(
                [self._program, *words],
                env=self._environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _answers(self):
        with closing(socket.socket()) as line:
            return line.connect_ex(("127.0.0.1", self._port)) == 0

    def state(self, dag_id, run_type):
        """The state of a DAG's run of that type; None where there is none yet."""
        rows = self._ask("SELECT state FROM dag_run WHERE dag_id = ? AND run_type = ?", dag_id, run_type)
        return rows[0][0] if rows else None

    def tasks(self, dag_id, run_type):
        """The state and the number of tries of each task of a DAG's run of that type."""
        query = "SELECT task_id, state, try_number FROM task_instance WHERE dag_id = ? AND run_id LIKE ?"
        return {task: (state, tries) for task, state, tries in self._ask(query, dag_id, f"{run_type}__%")}

    def said(self, dag_id):
        """What the logs of a DAG's tasks say."""
        files = self.home.glob(f"logs/dag_id={dag_id}/**/*.log")
        lines = (line for file in files for line in file.read_text().splitlines())
        return "\n".join(line + str(json.loads(line)["event"]) for line in lines)

    def limits(self, dag_id, task_id):
        """A task's retries and time limit as Airflow has read them."""
        (data,) = self._ask("SELECT data FROM serialized_dag WHERE dag_id = ?", dag_id)[-1]
        tasks = [task["__var"] for task in json.loads(data)["dag"]["tasks"]]
        [found] = [task for task in tasks if task["task_id"] == task_id]
        return {key: found.get(key) for key in ("retries", "retry_delay", "execution_timeout")}

    def _ask(self, query, *values):
        with closing(sqlite3.connect(f"file:{self.home}/airflow.db?mode=ro", uri=True, timeout=30)) as store:
            return store.execute(query, values).fetchall()


@pytest.fixture(scope="module")
def airflow(project, tmp_path_factory):
    """An Airflow that is set up; nothing of it may be left."""
    folder = project / ".venv-airflow" / "bin"
    if not folder.exists():
        if os.environ.get("CI"):
            pytest.fail("there is no .venv-airflow; .ci/run makes it")
        pytest.skip("there is no .venv-airflow: `make airflow` makes it")
    made = Airflow(folder, tmp_path_factory.mktemp("airflow"), tmp_path_factory.mktemp("toys"))
    migrated = made.command("db", "migrate")
    assert migrated.returncode == 0, migrated.stderr
    yield made
    assert list(leftovers(made.home)) == []


@pytest.fixture(scope="module")
def write_dag(warm, airflow, output):
    """Writes a DAG as a user does."""

    def write(*sets, workload="taxi", profile=()):
        words = [word for item in (SCHEDULE, EPOCHS, NO_CHECK, *sets) for word in ("--set", item)]
        places = ["--dags", str(airflow.dags), "--output", str(output)]
        with forked_servers(lambda: warm):
            finished = called(
                "cloud_runner", "airflow", workload, *profile, *words, *places, cwd=airflow.home
            )
        assert finished.returncode == 0, finished.stderr
        return Path(finished.stdout.strip())

    return write


@pytest.fixture(scope="module")
def days(airflow):
    """Trips in one file a day."""
    sample = Path(importlib.util.find_spec("tfx").origin).parent
    lines = (sample / "examples/chicago_taxi_pipeline/data/simple/data.csv").read_text().splitlines()
    for number, day in enumerate(("2025-01-01", "2025-01-02", "2025-01-03")):
        rows = lines[1 + 60 * number : 61 + 60 * number]
        (airflow.home / f"{day}.csv").write_text("\n".join([lines[0], *rows, ""]))
    return f"{airflow.home}/{{YYYY}}-{{MM}}-{{DD}}.csv"


@pytest.fixture(scope="module")
def toys(airflow, project):
    """A DAG of toys: one fails once, one exceeds its own time limit, one Airflow's; returns their folder."""
    folder = airflow.toys
    for file in ("local_runner.py", "tests/data/toy/toy_pipeline.py"):
        (folder / Path(file).name).symlink_to(project / file)
    # The node's own limit is part of the toy; what Airflow has lies behind it.
    nodes = (
        Node("Once", "Misbehave", (), retries=2, backoff_s=0),
        Node("Deaf", "Misbehave", ("Once",), timeout_s=6),
        Node("Hang", "Misbehave", ("Once",), timeout_s=20 - AROUND_S),
    )
    workload = project / "workloads/taxi/workload.yaml"
    config = load_workload(workload, sets=read_assignments([SCHEDULE]), root=project)
    place = Place(str(folder), sys.executable, str(folder / "output"))
    words = ("--pipeline", "toy_pipeline:limits")
    airflow.dags.mkdir(exist_ok=True)
    (airflow.dags / "toys.py").write_text(
        dag_text(Graph("toys", nodes), config, name="toys", workload=words, place=place)
    )
    return folder


@pytest.fixture(scope="module")
def warm_here(airflow, project, toys):
    """The processes that steps are forked from, one in each of their folders; they end with Airflow."""
    command = [sys.executable, "local_runner.py", "warm"]
    for folder in (project, toys):
        subprocess.run(command, cwd=folder, env=airflow.of_steps, check=True, capture_output=True)


@pytest.fixture(scope="module")
def ended(first_run, airflow, warm_here, write_dag, days, toys):
    """The scheduler's runs of the DAG and of the toys, and beside them a back-fill of the day before."""
    write_dag()
    write_dag(
        f"data.source={days}",
        "cloud.schedule={lag_days: 1, catch_up: false}",
        *NEVER_ENOUGH,
        profile=("--profile", "prod"),
    )
    write_dag("cloud.schedule.catch_up=false", workload="digits")  # to be read, not to be run
    # Before its processes run: they and the command would wait for one another to write to SQLite.
    for words in (
        ("dags", "reserialize"),
        ("backfill", "create", "--dag-id", "taxi-prod", "--from-date", DAY, "--to-date", f"{DAY}T12:00"),
    ):
        asked = airflow.command(*words)
        assert asked.returncode == 0, asked.stderr
    with airflow.running():
        runs = (("taxi", "scheduled"), ("taxi-prod", "backfill"), ("toys", "scheduled"))
        _wait(airflow, lambda: {airflow.state(*run) for run in runs} <= {"success", "failed"})
        return [airflow.state(*run) for run in runs]


def test_scheduler_runs_the_dag_when_its_time_has_come_and_what_a_local_run_made_is_cached(
    ended, airflow, output
):
    assert ended[0] == "success", _told(airflow)
    record = next(record for record in History(output).runs() if record.state == "complete")
    states = {node.id: node.state for node in record.nodes}
    assert (record.exit_code, record.in_steps) == (0, True)
    assert {states[name] for name in ("Ingest", "StatisticsGen", "Transform")} == {"cached"}
    assert {states[name] for name in ("Trainer", "Evaluator", "ModelGate", "Pusher")} == {"complete"}
    assert record.blessed
    assert (Path(record.pushed["path"]) / "saved_model.pb").exists()


def test_log_of_a_task_tells_how_its_node_went_and_no_secret(ended, airflow):
    told = airflow.said("taxi")
    assert "✓ Trainer  complete" in told
    assert "Pushed: taxi version" in told
    assert airflow._environment["AIRFLOW__API_AUTH__JWT_SECRET"] not in told


def test_gate_that_stops_is_tried_only_once_and_the_dag_fails(ended, airflow, output):
    assert ended[1] == "failed", _told(airflow)
    tasks = airflow.tasks("taxi-prod", "backfill")
    assert tasks["DataGate"] == ("failed", 1), _told(airflow)
    assert tasks["Trainer"][0] == "upstream_failed"
    assert tasks["finish"] == ("failed", 1)
    record = next(record for record in History(output).runs() if record.state == "stopped")
    assert record.exit_code == 3
    assert record.node("Trainer").why == "DataGate stopped the run"


def test_retries_and_time_limit_of_the_workload_reach_the_task(ended, airflow):
    assert airflow.limits("taxi-prod", "DataGate") == {
        "retries": 2, "retry_delay": 7.0, "execution_timeout": 600.0 + AROUND_S
    }  # fmt: skip
    trainer = airflow.limits("digits", "Trainer")
    assert (trainer["retries"] or 0, trainer["execution_timeout"]) == (0, None)


def test_back_fill_takes_the_span_of_its_day_less_the_lag(ended, output):
    record = next(record for record in History(output).runs() if record.state == "stopped")
    [examples] = record.node("Ingest").outputs["examples"]
    assert examples["properties"]["span"] == span_number("2025-01-01")


def test_node_that_fails_once_is_tried_again_by_airflow_alone(ended, toys, airflow):
    assert airflow.tasks("toys", "scheduled")["Once"] == ("success", 2), _told(airflow)
    assert len((toys / "attempts-once").read_text().split()) == 2
    [record] = History(toys / "output").runs()
    assert record.node("Once").state == "complete"


def test_node_that_takes_too_long_is_ended_by_its_own_limit_and_by_airflow_s(ended, toys, airflow):
    assert ended[2] == "failed"
    tasks = airflow.tasks("toys", "scheduled")
    assert (tasks["Deaf"][0], tasks["Hang"][0], tasks["finish"][0]) == ("failed",) * 3
    [record] = History(toys / "output").runs()
    assert "exceeded its time limit of 6 s" in record.node("Deaf").error["message"]
    assert "AirflowTaskTimeout" in airflow.said("toys")
    assert record.node("Hang").state != "running"
    assert list(leftovers(toys / "output")) == []


def test_reasons_in_the_conf_of_a_trigger_reach_the_run(ended, airflow):
    refused = airflow.command("dags", "test", "toys", DAY, "--conf", '{"bless": "seen by hand"}')
    # A toy has no gate of ours: that it says so shows what it was given.
    assert "--bless belongs to the gates of a workload" in refused.stdout + refused.stderr
    assert airflow.tasks("toys", "manual")["begin"][0] == "failed"


def _of_session(session):
    """The processes of a session that are alive."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # proc(5): after the name in parentheses come state, parent, group, session.
            state, _, _, found = path.read_text(errors="replace").rpartition(")")[2].split()[:4]
            if int(found) == session and state != "Z":
                yield int(path.parent.name)


def _wait(airflow, true):
    until = time.monotonic() + LIMIT_S
    while not true():
        assert time.monotonic() < until, _told(airflow)
        time.sleep(0.5)


def _told(airflow):
    """The ends of all logs, to be read where a test fails."""
    files = [*airflow.home.glob("*.log"), *airflow.home.glob("logs/dag_id=*/**/*.log")]
    return json.dumps({str(file): file.read_text()[-1500:] for file in files}, indent=1).replace("\\n", "\n")
