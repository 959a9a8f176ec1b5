"""A workload as the text of an Airflow DAG. Airflow itself takes it in tests/e2e/test_taxi_in_airflow.py."""

import ast
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
import yaml
from taxi_workload import taxi_workload

from slipway.components.ingest.spans import span_number
from slipway.pipeline.cloud import scheduled_span
from slipway.pipeline.cloud.airflow.dag_file import AROUND_S, Place, dag_id, dag_text, not_replaced
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.runs.graph import Graph, Node

PLACE = Place("/opt/slipway", "/opt/slipway/.venv/bin/python", "/data/slipway")
NASTY = 'a "quoted" \\ text\n"""\nimport os  # {{ ti }} %s ü'
GRAPH = Graph(
    "taxi",
    (
        Node("Ingest", "Ingest", ()),
        Node("StatisticsGen", "StatisticsGen", ("Ingest",), retries=1, backoff_s=0.5),
        Node("Transform", "Transform", ("Ingest", "StatisticsGen"), timeout_s=600),
        Node("Trainer", "Trainer", ("Ingest", "Transform"), retries=2, timeout_s=7200, backoff_s=60),
        Node("Evaluator", "Evaluator", ("Ingest", "Trainer")),
        Node("ServingCheck", "ServingCheck", ("Trainer",)),
        Node("Pusher", "Pusher", ("Evaluator", "ServingCheck", "Trainer")),
    ),
)


@pytest.fixture
def text():
    """Makes the file."""

    def make(*sets, workload=("workloads/taxi/workload.yaml",), place=PLACE):
        config = taxi_workload(*sets)
        return dag_text(GRAPH, config, name=dag_id(config, None), workload=workload, place=place)

    return make


def constants(text):
    """The values that are assigned to names at the top."""
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and node.targets[0].id != "PARAMS"
    }


class Moment(datetime):
    """As far as the file uses pendulum's."""

    def in_timezone(self, name):
        return self.astimezone(ZoneInfo(name))

    def add(self, **parts):
        return self + timedelta(**parts)

    def subtract(self, **parts):
        return self - timedelta(**parts)

    def to_date_string(self):
        return self.date().isoformat()


TOKYO_MORNING = Moment(2027, 1, 1, 22, tzinfo=UTC)  # the second of January there


def function_of(text, name):
    """One of the file's functions."""
    body = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    names = {"TIME_ZONE": constants(text)["TIME_ZONE"]}
    exec(ast.unparse(next(node for node in body if node.name == name)), names)  # noqa: S102
    return names[name]


def span_of(text, logical_date):
    """What the file's function `span` gives for a run."""
    return function_of(text, "span")({"logical_date": logical_date})


def dag_arguments(text):
    """The arguments of DAG(...), as written."""
    block = next(node for node in ast.parse(text).body if isinstance(node, ast.With))
    return {word.arg: ast.unparse(word.value) for word in block.items[0].context_expr.keywords}


def test_file_is_the_golden_one(text, project):
    made = text(
        "cloud.schedule={cron: '30 4 * * 1-5', time_zone: Europe/Berlin, start: 2027-01-01}",
        "cloud.schedule={catch_up: true, lag_days: 1}",
        "data.source=trips/{YYYY}-{MM}-{DD}.csv",
        workload=("workloads/taxi/workload.yaml", "--profile", "prod"),
    )
    golden = project / "tests/data/airflow/taxi.py"
    assert made == golden.read_text(encoding="utf-8")


def test_whatever_a_user_writes_stays_text(text):
    place = Place(NASTY, NASTY, NASTY)
    made = text(f"description={NASTY!r}", workload=("w.yaml", "--set", NASTY), place=place)
    found = constants(made)
    assert found["WORKLOAD"] == ["w.yaml", "--set", NASTY]
    assert {found[name] for name in ("PROJECT", "PYTHON", "OUTPUT")} == {NASTY}
    assert ast.parse(made).body[1].names[0].name == "os"  # the docstring is one, and the imports follow
    assert sum(isinstance(node, ast.Import) for node in ast.walk(ast.parse(made))) == 2


def test_moments_are_those_of_the_schedule_s_time_zone(text):
    made = dag_arguments(
        text("cloud.schedule={time_zone: Asia/Tokyo, start: '2027-01-01T00:00Z', end: '2027-02-01T10:30'}")
    )
    assert made["start_date"] == "pendulum.datetime(2027, 1, 1, 9, tz=TIME_ZONE)"
    assert made["end_date"] == "pendulum.datetime(2027, 2, 1, 10, 30, tz=TIME_ZONE)"


def test_schedule_that_names_no_start_and_no_end_has_none(text):
    arguments = dag_arguments(text())
    assert "start_date" not in arguments
    assert "end_date" not in arguments
    assert arguments["catchup"] == "False"
    assert arguments["max_active_runs"] == "1"


def test_runs_that_are_made_up_for_from_no_day_on_are_refused(text):
    with pytest.raises(ConfigError, match=r"catch_up is true, and there is no cloud\.schedule\.start") as no:
        text("cloud.schedule.catch_up=true")
    assert "add start" in no.value.hint
    assert dag_arguments(text("cloud.schedule={catch_up: true, start: '2027-01-01'}"))["catchup"] == "True"


@pytest.mark.parametrize(
    ("source", "setting"),
    [("t-{YYYY}-{MM}-{DD}.csv", "data.span='2027-01-01'"), ("t-{SPAN}.csv", "data.span=20819")],
)
def test_span_is_that_of_the_day_in_the_schedule_s_time_zone_less_the_lag(text, source, setting):
    made = text("cloud.schedule={lag_days: 1, time_zone: Asia/Tokyo}", f"data.source={source}")
    assert span_of(made, TOKYO_MORNING) == ["--set", setting]
    at_vertex = scheduled_span.span_of(TOKYO_MORNING.isoformat(), lag_days=1, time_zone="Asia/Tokyo")
    assert span_number(yaml.safe_load(setting.removeprefix("data.span="))) == at_vertex


def test_run_that_was_started_by_hand_takes_the_latest_span(text):
    assert span_of(text("cloud.schedule.lag_days=0", "data.source=t-{SPAN}.csv"), None) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"accept_data": "", "bless": ""}, []),
        ({"accept_data": "asked on Monday", "bless": ""}, ["--accept-data=asked on Monday"]),
        ({"accept_data": "", "bless": "--odd 'one'"}, ["--bless=--odd 'one'"]),
    ],
)
def test_reasons_of_a_trigger_let_the_run_pass_its_gates(text, given, words):
    made = text()
    assert function_of(made, "overrides")({"params": given}) == words
    assert all(f'"{name}": Param("", type="string"' in made for name in given)
    assert dag_arguments(made)["params"] == "PARAMS"
    assert "*overrides(context)" in made


DAY = "--from-date 2027-01-01T22:00:00+00:00 --to-date 2027-01-01T22:00:00+00:00"


@pytest.mark.parametrize(
    ("sets", "day", "command"),
    [
        ((), TOKYO_MORNING, "airflow dags trigger taxi --conf"),
        (("cloud.schedule.lag_days=1", "data.source=t-{SPAN}.csv"), None, "airflow dags trigger taxi --conf"),
        (
            ("cloud.schedule.lag_days=1", "data.source=t-{SPAN}.csv"),
            TOKYO_MORNING,
            f"airflow backfill create --dag-id taxi {DAY} --reprocess-behavior failed --dag-run-conf",
        ),
    ],
)
def test_command_that_begins_such_a_run_again_takes_the_same_span(text, sets, day, command):
    again = function_of(text(*sets), "again")
    run = SimpleNamespace(run_type="scheduled" if day else "manual")
    assert again({"dag": SimpleNamespace(dag_id="taxi"), "dag_run": run, "logical_date": day}) == command


@pytest.mark.parametrize(
    ("local", "other"),
    [("2027-01-02T10:37:12.5", "2027-01-02T10:37:13.5"), ("2027-01-02T23:59:59", "2027-01-02T23:59:58")],
)
def test_run_of_a_moment_by_hand_is_begun_again_at_another_of_its_day_as_no_back_fill_would(
    text, local, other
):
    sets = ("cloud.schedule={lag_days: 1, time_zone: Asia/Tokyo}", "data.source=t-{SPAN}.csv")
    again = function_of(text(*sets), "again")
    day = Moment.fromisoformat(f"{local}+09:00")
    context = {"dag": SimpleNamespace(dag_id="taxi"), "logical_date": day}
    command = again(context | {"dag_run": SimpleNamespace(run_type="manual")})
    moment = command.removeprefix("airflow dags trigger taxi --logical-date ").removesuffix(" --conf")
    assert datetime.fromisoformat(moment) == datetime.fromisoformat(f"{other}+09:00")
    assert "backfill" in again(context | {"dag_run": SimpleNamespace(run_type="backfill")})


def test_run_whose_data_is_late_is_begun_again_as_often_as_ingest_is_tried(text):
    ingest = Node("Ingest", "Ingest", (), retries=24, backoff_s=300, timeout_s=60)
    config = taxi_workload()
    made = dag_text(Graph("taxi", (ingest,)), config, name="taxi", workload=("w.yaml",), place=PLACE)
    [begin] = [node for node in ast.walk(ast.parse(made)) if is_call_of(node, "Begin")]
    given = {word.arg: ast.unparse(word.value) for word in begin.keywords}
    assert (given["retries"], given["retry_delay"]) == ("24", "timedelta(seconds=300)")
    assert "execution_timeout" not in given
    assert 'begin = Begin(task_id="begin")' in text()


def is_call_of(node, name):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def test_airflow_s_own_limit_lies_behind_that_of_the_node(text):
    assert f"execution_timeout=timedelta(seconds={7200 + AROUND_S})" in text()
    assert text().count("execution_timeout") == 2


PROD = ["workloads/taxi/workload.yaml", "--profile", "prod"]


@pytest.mark.parametrize(
    ("workload", "is_replaced"),
    [
        (PROD, True),
        ([*PROD, "--set", "train.epochs=2"], True),
        ([*PROD[:2], "else"], False),
        (PROD[:1], False),
        ([PROD[0], "--set", "train.epochs=2"], False),
        (["workloads/taxi-prod/workload.yaml"], False),
    ],
)
def test_file_of_another_workload_or_profile_of_the_same_name_is_not_replaced(text, workload, is_replaced):
    for there, new in ((workload, PROD), (PROD, workload)):
        why = not_replaced(text(workload=there), new)
        assert (why == "") == is_replaced
        assert is_replaced or f"another workload or profile: {' '.join(there)}" in why


@pytest.mark.parametrize(
    "there", ["", "dag = DAG('taxi')\n", "WORKLOAD = []", "WORKLOAD = [1]", "WORKLOAD = x"]
)
def test_file_that_somebody_else_wrote_is_not_replaced(there):
    assert not_replaced(there, PROD) == "was not written by `cloud_runner.py airflow`"


def test_profile_is_part_of_the_dag_s_name():
    config = taxi_workload()
    assert (dag_id(config, None), dag_id(config, "prod")) == ("taxi", "taxi-prod")
