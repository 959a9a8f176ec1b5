"""The taxi workload as a DAG in a real Airflow, in an environment of its own without TensorFlow.

It starts from the cache of a local run, which spares minutes: the Trainer and what follows run in it.
From nothing it is run by hand (docs/airflow.md). The scheduler runs all DAGs side by side, and the steps are
forked from warm processes; those that import TFX are seen in tests/integration/engine/test_steps.py.

Seen only here: Airflow's own scheduler, retries, limits and triggers.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from airflow_server import Airflow, told, wait
from called import called, forked_servers

from slipway.components.ingest.spans import span_number
from slipway.pipeline.cloud.airflow.dag_file import AROUND_S, Place, dag_text
from slipway.pipeline.config import load_workload, read_assignments
from slipway.pipeline.engine.processes.os_processes import leftovers
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


@pytest.fixture(scope="module")
def airflow(project, tmp_path_factory):
    """An Airflow that is set up; nothing of it may be left."""
    folder = project / ".venv-airflow" / "bin"
    if not folder.exists():
        if os.environ.get("CI"):
            pytest.fail("there is no .venv-airflow; .ci/run makes it")
        pytest.skip("there is no .venv-airflow: `make airflow` makes it")
    made = Airflow(folder, tmp_path_factory.mktemp("airflow"), TOY=str(tmp_path_factory.mktemp("toys")))
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
    folder = Path(airflow.of_steps["TOY"])
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
        wait(airflow, lambda: {airflow.state(*run) for run in runs} <= {"success", "failed"})
        return [airflow.state(*run) for run in runs]


def test_scheduler_runs_the_dag_when_its_time_has_come_and_what_a_local_run_made_is_cached(
    ended, airflow, output
):
    assert ended[0] == "success", told(airflow)
    record = next(record for record in History(output).runs() if record.state == "complete")
    states = {node.id: node.state for node in record.nodes}
    assert (record.exit_code, record.in_steps) == (0, True)
    assert {states[name] for name in ("Ingest", "StatisticsGen", "Transform")} == {"cached"}
    assert {states[name] for name in ("Trainer", "Evaluator", "ModelGate", "Pusher")} == {"complete"}
    assert record.blessed
    assert (Path(record.pushed["path"]) / "saved_model.pb").exists()


def test_log_of_a_task_tells_how_its_node_went_and_no_secret(ended, airflow):
    said = airflow.said("taxi")
    assert "✓ Trainer  complete" in said
    assert "Pushed: taxi version" in said
    assert airflow._environment["AIRFLOW__API_AUTH__JWT_SECRET"] not in said


def test_gate_that_stops_is_tried_only_once_and_the_dag_fails(ended, airflow, output):
    assert ended[1] == "failed", told(airflow)
    tasks = airflow.tasks("taxi-prod", "backfill")
    assert tasks["DataGate"] == ("failed", 1), told(airflow)
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
    assert airflow.tasks("toys", "scheduled")["Once"] == ("success", 2), told(airflow)
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
