"""The workload taxi as an Airflow DAG: one task for each node of the pipeline.

Written by `cloud_runner.py airflow`: to change it, edit the workload file and write it again.
Airflow's own environment needs no TensorFlow: each task calls the project's interpreter.
"""

import os
from datetime import timedelta

import pendulum
from airflow.providers.standard.hooks.subprocess import SubprocessHook
from airflow.sdk import DAG, BaseOperator, CronTriggerTimetable, Param
from airflow.sdk.exceptions import AirflowException, AirflowFailException

PROJECT = "/opt/slipway"
PYTHON = "/opt/slipway/.venv/bin/python"
OUTPUT = "/data/slipway"
WORKLOAD = ["workloads/taxi/workload.yaml", "--profile", "prod"]
TIME_ZONE = "Europe/Berlin"
# Exit codes after which a retry would fail in the same way.
FINAL = {2: "wrong usage or a wrong workload file", 3: "a gate stopped the run"}
# On the form of a trigger, and in its --conf: for this run only, the reason is kept with what it pushes.
PARAMS = {
    "accept_data": Param("", type="string", description="Why the data may pass despite its findings."),
    "bless": Param("", type="string", description="Why the model may pass despite failed checks."),
}


class Step(BaseOperator):
    """One step of a run, in a process of the project's own interpreter."""

    process = None

    def words(self, context):
        """Return the step and its arguments."""
        raise NotImplementedError

    def execute(self, context):
        """Run the step; its output goes to the task's log."""
        # Airflow's settings hold its secrets, and its Python path is not the project's.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW_", "_AIRFLOW_", "PYTHON"))}
        self.process = SubprocessHook()
        command = [PYTHON, "local_runner.py", "step", *self.words(context), "--output", OUTPUT]
        ended = self.process.run_command(command, cwd=PROJECT, env=kept)
        if ended.exit_code in FINAL:
            raise AirflowFailException(f"{FINAL[ended.exit_code]}: the log above says more")
        if ended.exit_code != 0:
            raise AirflowException(f"it ended with code {ended.exit_code}: the log above says more")
        return ended.output

    def on_kill(self):
        """Forward the signal to end, on which the step saves its progress."""
        if self.process is not None:
            self.process.send_sigterm()


class Begin(Step):
    """Begins and plans a run, and returns its id."""

    def words(self, context):
        """Return the step with the workload, as on the command line."""
        return ["begin", *WORKLOAD, *span(context), *overrides(context), f"--airflow={again(context)}"]


class Node(Step):
    """Runs one node of the run; a cached node ends at once."""

    def words(self, context):
        """Return the step with the run and the node, which the task is named after."""
        return ["node", context["ti"].xcom_pull(task_ids="begin"), self.task_id]


class Finish(Step):
    """Closes the run, and fails if the run failed."""

    def words(self, context):
        """Return the step with the run, if it has begun."""
        run = context["ti"].xcom_pull(task_ids="begin")
        if not run:
            raise AirflowFailException("there is no run to close: the task begin did not succeed")
        return ["finish", run]


def overrides(context):
    """Return the reasons to let this run pass a gate despite its findings."""
    given = {"--accept-data": context["params"]["accept_data"], "--bless": context["params"]["bless"]}
    return [f"{option}={reason}" for option, reason in given.items() if reason]


def span(context):
    """Return the span of the run's day (less 1); none, for the latest data, if it was begun by hand."""
    day = context.get("logical_date")
    if day is None:
        return []
    day = day.in_timezone(TIME_ZONE).subtract(days=1)
    return ["--set", f"data.span='{day.to_date_string()}'"]


def again(context):
    """Return Airflow's command that repeats such a run, up to the JSON of its parameters."""
    dag_id, day = context["dag"].dag_id, context.get("logical_date")
    if day is None:
        return f"airflow dags trigger {dag_id} --conf"
    if context["dag_run"].run_type not in ("scheduled", "backfill"):
        # A back-fill begins runs at the schedule's moments only, and Airflow takes each moment once.
        day = day.in_timezone(TIME_ZONE)
        later = day.add(seconds=1)
        other = later if later.to_date_string() == day.to_date_string() else day.subtract(seconds=1)
        return f"airflow dags trigger {dag_id} --logical-date {other.isoformat()} --conf"
    dates = f"--from-date {day.isoformat()} --to-date {day.isoformat()}"
    return f"airflow backfill create --dag-id {dag_id} {dates} --reprocess-behavior failed --dag-run-conf"


with DAG(
    dag_id="taxi",
    description="Whether the tip of a Chicago taxi trip exceeds 20% of the fare.",
    schedule=CronTriggerTimetable("30 4 * * 1-5", timezone=TIME_ZONE),
    start_date=pendulum.datetime(2027, 1, 1, tz=TIME_ZONE),
    catchup=True,
    # A back-fill does not ask this: give it --max-active-runs, or it begins ten days at once.
    max_active_runs=1,
    # Whatever Airflow's own default is: the workload says what is retried.
    default_args={"retries": 0},
    params=PARAMS,
    tags=["slipway"],
) as dag:
    begin = Begin(task_id="begin")
    ingest = Node(task_id="Ingest")
    statistics_gen = Node(
        task_id="StatisticsGen",
        retries=1,
        retry_delay=timedelta(seconds=0.5),
        retry_exponential_backoff=2,
        max_retry_delay=timedelta(seconds=600),
    )
    transform = Node(
        task_id="Transform",
        execution_timeout=timedelta(seconds=1500),
    )
    trainer = Node(
        task_id="Trainer",
        retries=2,
        retry_delay=timedelta(seconds=60),
        retry_exponential_backoff=2,
        max_retry_delay=timedelta(seconds=600),
        execution_timeout=timedelta(seconds=8100),
    )
    evaluator = Node(task_id="Evaluator")
    serving_check = Node(task_id="ServingCheck")
    pusher = Node(task_id="Pusher")
    # However the others ended.
    finish = Finish(task_id="finish", trigger_rule="all_done")

    begin >> ingest
    ingest >> statistics_gen
    statistics_gen >> transform
    transform >> trainer
    trainer >> evaluator
    trainer >> serving_check
    [evaluator, serving_check] >> pusher
    [task for task in dag.tasks if task is not finish] >> finish
