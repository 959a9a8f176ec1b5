"""Writes a workload as an Airflow DAG: one task per node, each a step of `engine.stepwise_run`. Pure."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from slipway.components.project import IS_CHECKOUT
from slipway.pipeline.cloud.scheduled_span import scheduled_kind
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.engine.retries import MAX_BACKOFF_S
from slipway.pipeline.exit_codes import GATE_STOPPED, WRONG_USAGE
from slipway.pipeline.runs.graph import Graph, Node

# Added to a node's own time limit, which the step itself enforces: seconds for its process to start, to wait
# until another engine has ended, and to save when it is signalled to end. Airflow's limit is a safety net.
AROUND_S = 900

# The interpreter's arguments for the command line of local runs, and the command that writes the file.
_RUNNER = '"local_runner.py"' if IS_CHECKOUT else '"-m", "slipway"'
_AIRFLOW = "cloud_runner.py airflow" if IS_CHECKOUT else "slipway cloud airflow"

_HEAD = '''\
"""The workload {name} as an Airflow DAG: one task for each node of the pipeline.

Written by `{airflow}`: to change it, edit the workload file and write it again.
Airflow's own environment needs no TensorFlow: each task calls the project's interpreter.
"""

import os
from datetime import timedelta

import pendulum
from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, BaseOperator, CronTriggerTimetable, Param
from airflow.sdk.exceptions import AirflowException, AirflowFailException

PROJECT = {project}
PYTHON = {python}
OUTPUT = {output}
WORKLOAD = {workload}
TIME_ZONE = {time_zone}
# Exit codes after which a retry would end the same.
FINAL = {{{wrong_usage}: "wrong usage or a wrong workload file", {gate_stopped}: "a gate stopped the run"}}
# On the form of a trigger, and in its --conf: for this run only, the reason is kept with what it pushes.
PARAMS = {{
    "accept_data": Param("", type="string", description="Why the data may pass despite its findings."),
    "bless": Param("", type="string", description="Why the model may pass despite failed checks."),
}}
'''
_OPERATORS = '''\


class Step(BaseOperator):
    """One step of a run, in a process of the project's own interpreter."""

    process = None

    def words(self, context):
        """The step and its arguments."""
        raise NotImplementedError

    def execute(self, context):
        """Runs it; what it says goes to the task's log."""
        # Airflow's settings hold its secrets, and its Python path is not the project's.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW_", "_AIRFLOW_", "PYTHON"))}
        self.process = SubprocessHook()
        command = [PYTHON, __RUNNER__, "step", *self.words(context), "--output", OUTPUT]
        ended = self.process.run_command(command, cwd=PROJECT, env=kept)
        if ended.exit_code in FINAL:
            raise AirflowFailException(f"{FINAL[ended.exit_code]}: the log above says more")
        if ended.exit_code != 0:
            raise AirflowException(f"it ended with code {ended.exit_code}: the log above says more")
        return ended.output

    def on_kill(self):
        """Passes on that the task is to end: what it has begun is saved."""
        if self.process is not None:
            self.process.send_sigterm()


class Begin(Step):
    """Makes and plans a run; its id is the task's result."""

    def words(self, context):
        """With what is run, as on the command line."""
        return ["begin", *WORKLOAD, *span(context), *overrides(context), f"--airflow={again(context)}"]


class Node(Step):
    """Runs one node of the run; one that is cached is done at once."""

    def words(self, context):
        """With the node, which the task is named after."""
        return ["node", context["ti"].xcom_pull(task_ids="begin"), self.task_id]


class Finish(Step):
    """Closes the run, and fails where it did not achieve what it should."""

    def words(self, context):
        """With the run, if it has begun."""
        run = context["ti"].xcom_pull(task_ids="begin")
        if not run:
            raise AirflowFailException("there is no run to close: the task begin did not succeed")
        return ["finish", run]


def overrides(context):
    """Why this run may pass a gate despite its findings."""
    given = {"--accept-data": context["params"]["accept_data"], "--bless": context["params"]["bless"]}
    return [f"{option}={reason}" for option, reason in given.items() if reason]
'''


_LATEST = '''\


def span(context):
    """Every run takes the latest data there is."""
    return []


def again(context):
    """Airflow's command that begins such a run again, up to the JSON of its parameters."""
    return f"airflow dags trigger {context['dag'].dag_id} --conf"
'''
_OF_THE_DAY = '''\


def span(context):
    """The span of the day{less} for which the run is scheduled; by hand, the latest."""
    day = context.get("logical_date")
    if day is None:
        return []
    day = day.in_timezone(TIME_ZONE){subtracted}
    return ["--set", f"data.span={value}"]


def again(context):
    """Airflow's command that begins such a run again, up to the JSON of its parameters."""
    dag_id, day = context["dag"].dag_id, context.get("logical_date")
    if day is None:
        return f"airflow dags trigger {{dag_id}} --conf"
    dates = f"--from-date {{day.isoformat()}} --to-date {{day.isoformat()}}"
    return f"airflow backfill create --dag-id {{dag_id}} {{dates}} --reprocess-behavior failed --dag-run-conf"
'''
# TFX numbers the days from 1970-01-01, whose ordinal in Python is 719163.
_SPANS = {"date": "'{day.to_date_string()}'", "number": "{day.toordinal() - 719163}"}


@dataclass(frozen=True)
class Place:
    """The paths of the tasks, as Airflow's machines see them.

    Attributes:
        output: the folder for everything that runs write; the same for all tasks.
    """

    project: str
    python: str
    output: str


def dag_id(config: WorkloadConfig, profile: str | None) -> str:
    """Return the name of the DAG: the workload's, followed by the profile's if one is chosen."""
    return f"{config.name}-{profile}" if profile else config.name


def dag_text(
    graph: Graph, config: WorkloadConfig, *, name: str, workload: Sequence[str], place: Place
) -> str:
    """Return the text of the DAG file.

    Args:
        graph: the compiled workload, with retries and time limits filled in.
        config: the workload; `cloud.schedule` says when it runs.
        workload: the arguments that name the workload on the command line, with its options.

    Raises:
        ConfigError: see `scheduled_kind`.
    """
    schedule = config.cloud.schedule
    head = _HEAD.format(
        name=config.name,
        airflow=_AIRFLOW,
        project=_quoted(place.project),
        python=_quoted(place.python),
        output=_quoted(place.output),
        workload=_list([_quoted(word) for word in workload]),
        time_zone=_quoted(schedule.time_zone),
        wrong_usage=WRONG_USAGE,
        gate_stopped=GATE_STOPPED,
    )
    return (
        head
        + _OPERATORS.replace("__RUNNER__", _RUNNER)
        + _span_function(config)
        + "".join(f"{line}\n" for line in _dag_lines(graph, config, name))
    )


def _span_function(config: WorkloadConfig) -> str:
    kind, lag_days = scheduled_kind(config), config.cloud.schedule.lag_days
    if kind is None:
        return _LATEST
    return _OF_THE_DAY.format(
        less=f" (less {lag_days})" if lag_days else "",
        subtracted=f".subtract(days={lag_days})" if lag_days else "",
        value=_SPANS[kind],
    )


def _dag_lines(graph: Graph, config: WorkloadConfig, name: str) -> Iterator[str]:
    schedule = config.cloud.schedule
    yield from ("", "")
    yield "with DAG("
    yield f"    dag_id={_quoted(name)},"
    yield f"    description={_quoted(config.description)},"
    yield f"    schedule=CronTriggerTimetable({_quoted(schedule.cron)}, timezone=TIME_ZONE),"
    for key, moment in (("start_date", schedule.starts_at), ("end_date", schedule.ends_at)):
        if moment is not None:
            yield f"    {key}={_moment(moment, schedule.time_zone)},"
    yield f"    catchup={schedule.catch_up},"
    yield f"    max_active_runs={schedule.max_concurrent_runs},"
    yield "    # Whatever Airflow's own default is: the workload says what is tried again."
    yield '    default_args={"retries": 0},'
    yield "    params=PARAMS,"
    yield '    tags=["slipway"],'
    yield ") as dag:"
    yield from _task_lines("begin", "Begin", _retries(_ingest(graph)))
    for node in graph.nodes:
        yield from _task_lines(node.id, "Node", _limits(node))
    yield "    # Whatever has become of the others."
    yield '    finish = Finish(task_id="finish", trigger_rule="all_done")'
    yield ""
    for node in graph.nodes:
        before = [_variable(up) for up in _direct(node, graph)] or ["begin"]
        yield f"    {before[0] if len(before) == 1 else _list(before)} >> {_variable(node.id)}"
    yield "    [task for task in dag.tasks if task is not finish] >> finish"


def _task_lines(task_id: str, operator: str, settings: Iterator[str]) -> Iterator[str]:
    given = list(settings)
    if not given:
        yield f"    {_variable(task_id)} = {operator}(task_id={_quoted(task_id)})"
        return
    yield f"    {_variable(task_id)} = {operator}("
    yield f"        task_id={_quoted(task_id)},"
    yield from (f"        {each}," for each in given)
    yield "    )"


def _ingest(graph: Graph) -> Node | None:
    return next((node for node in graph.nodes if node.id == "Ingest"), None)


def _retries(node: Node | None) -> Iterator[str]:
    if node is not None and node.retries:
        yield f"retries={node.retries}"
        yield f"retry_delay=timedelta(seconds={node.backoff_s:g})"
        yield "retry_exponential_backoff=2"
        yield f"max_retry_delay=timedelta(seconds={MAX_BACKOFF_S:g})"


def _limits(node: Node) -> Iterator[str]:
    yield from _retries(node)
    if node.timeout_s is not None:
        # The step ends the node at the node's own limit and reports it; this limit is for a step that hangs.
        yield f"execution_timeout=timedelta(seconds={node.timeout_s + AROUND_S:g})"


def _direct(node: Node, graph: Graph) -> list[str]:
    """Return the upstream nodes, except those that another upstream node already waits for."""
    behind = {far for up in node.upstream for far in graph.upstream_of([up]) - {up}}
    return [up for up in node.upstream if up not in behind]


def _moment(moment: datetime, time_zone: str) -> str:
    local = moment.astimezone(ZoneInfo(time_zone))
    parts = [local.year, local.month, local.day, local.hour, local.minute, local.second]
    while len(parts) > 3 and parts[-1] == 0:
        parts.pop()
    return f"pendulum.datetime({', '.join(map(str, parts))}, tz=TIME_ZONE)"


def _variable(node_id: str) -> str:
    """Return a node's id as a Python name: `StatisticsGen` becomes `statistics_gen`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", node_id)
    return re.sub(r"\W", "_", words).lower()


def _quoted(text: str) -> str:
    """Return text as a Python string literal, so that nothing in it can become code."""
    return json.dumps(text, ensure_ascii=False)


def _list(items: Sequence[str]) -> str:
    return f"[{', '.join(items)}]"
