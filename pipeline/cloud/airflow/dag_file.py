"""Writes a workload as an Airflow DAG: one task per node, each a step of `engine.stepwise_run`. Pure."""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

from slipway.components.project import IS_CHECKOUT
from slipway.pipeline.cloud.scheduled_span import scheduled_kind
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.engine.retries import MAX_BACKOFF_S
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.exit_codes import GATE_STOPPED, WRONG_USAGE
from slipway.pipeline.runs.graph import Graph, Node

# Added to a node's own time limit, which the step itself enforces: seconds for its process to start, to wait
# until another engine has ended, and to save when it is signalled to end. Airflow's limit is a safety net.
AROUND_S = 900

# The interpreter's arguments for the command line of local runs, and the command that writes the file.
_RUNNER = '"local_runner.py"' if IS_CHECKOUT else '"-m", "slipway"'
_AIRFLOW = "cloud_runner.py airflow" if IS_CHECKOUT else "slipway cloud airflow"

# The line that names the workload, as the template has it; what follows is JSON, too.
_NAMES_WORKLOAD = "WORKLOAD = "

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
        ConfigError: see `scheduled_kind`; or runs would be made up for from no day on.
    """
    import jinja2  # imported here because each command of cloud_runner imports this module

    schedule, ingest = config.cloud.schedule, [node for node in graph.nodes if node.id == "Ingest"]
    kind = scheduled_kind(config)
    if schedule.catch_up and schedule.starts_at is None:
        raise ConfigError(
            "cloud.schedule.catch_up is true, and there is no cloud.schedule.start: Airflow makes up for "
            "runs from the start on, and would begin none at all",
            hint='add start, the day of the first run, such as start: "2027-01-01"; or leave catch_up out',
        )
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  (Python, not HTML: `quoted` makes literals of texts)
    )
    moment = partial(_moment, time_zone=schedule.time_zone)
    environment.filters |= {"quoted": _quoted, "variable": _variable, "moment": moment}
    return environment.get_template("dag.py.j2").render(
        name=name,
        config=config,
        schedule=schedule,
        place=place,
        workload=workload,
        airflow=_AIRFLOW,
        runner=_RUNNER,
        wrong_usage=WRONG_USAGE,
        gate_stopped=GATE_STOPPED,
        day_as_span=_SPANS[kind] if kind else "",
        tasks=[
            _Task("begin", "Begin", [], [limit for node in ingest for limit in _retries(node)]),
            *(
                _Task(node.id, "Node", _direct(node, graph) or ["begin"], list(_limits(node)))
                for node in graph.nodes
            ),
        ],
    )


def not_replaced(text: str, workload: Sequence[str]) -> str:
    """Return why a file of this name, which is there, is not to be written anew; "" if it may be.

    The names of a workload and of its profile joined may be another workload's name. Other settings of the
    same workload and profile are a newer version of the file.

    Args:
        text: the file's.
        workload: as `dag_text` takes it.
    """
    found = next((line for line in text.splitlines() if line.startswith(_NAMES_WORKLOAD)), None)
    try:
        known = None if found is None else json.loads(found.removeprefix(_NAMES_WORKLOAD))
    except ValueError:
        known = None
    if not isinstance(known, list) or not known or any(not isinstance(word, str) for word in known):
        return f"was not written by `{_AIRFLOW}`"
    if _file_and_profile(known) == _file_and_profile(workload):
        return ""
    return f"is of another workload or profile: {shlex.join(known)}"


def _file_and_profile(workload: Sequence[str]) -> list[str]:
    file, *options = workload
    return [file, *options[:2]] if options[:1] == ["--profile"] else [file]


@dataclass(frozen=True)
class _Task:
    """A task: its id, its operator's class, the ids of those it waits for, and its limits as arguments."""

    id: str
    operator: str
    upstream: Sequence[str]
    limits: Sequence[str]


def _retries(node: Node) -> Iterator[str]:
    if node.retries:
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
