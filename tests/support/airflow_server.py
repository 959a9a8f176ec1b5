"""A real Airflow with its scheduler, in an environment of its own, which `make airflow` makes."""

import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from loopback import reserved_port

from slipway.pipeline.engine.processes.os_processes import RUN_VARIABLE, end_leftovers

LIMIT_S = 600.0


class Airflow:
    """One Airflow: its home, its SQLite database, its DAGs; `more` are further variables of the steps."""

    def __init__(self, bin_folder, home, **more):
        self.home, self.dags = home, home / "dags"
        self._program = bin_folder / "airflow"
        self._port = 0
        kept = {name: os.environ[name] for name in ("HOME", "TMPDIR", "LANG") if name in os.environ}
        # What a step gets: nothing of Airflow's own settings.
        self.of_steps = {
            **kept,
            "PATH": f"{bin_folder}:/usr/bin:/bin",
            **more,
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
            with reserved_port() as self._port:
                address = f"127.0.0.1:{self._port}"
                self._environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] = f"http://{address}/execution/"
                place = ("--host", "127.0.0.1", "--port", str(self._port))
                started.append(self._start("api-server", *place, "--workers", "1"))
                # Tasks ask it what to do, and fail where nobody answers.
                wait(self, self._answers)
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
                with suppress(ProcessLookupError):  # it has ended since
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
        rows = self.ask("SELECT state FROM dag_run WHERE dag_id = ? AND run_type = ?", dag_id, run_type)
        return rows[0][0] if rows else None

    def tasks(self, dag_id, run_type):
        """The state and the number of tries of each task of a DAG's run of that type."""
        query = "SELECT task_id, state, try_number FROM task_instance WHERE dag_id = ? AND run_id LIKE ?"
        return {task: (state, tries) for task, state, tries in self.ask(query, dag_id, f"{run_type}__%")}

    def failed_tries(self, dag_id, task_id, day):
        """How many tries of a task have failed in the DAG's run whose logical date is on a day."""
        query = (
            "SELECT task.try_number, task.state FROM task_instance AS task "
            "JOIN dag_run AS run ON run.run_id = task.run_id AND run.dag_id = task.dag_id "
            "WHERE task.dag_id = ? AND task.task_id = ? AND run.logical_date LIKE ?"
        )
        found = self.ask(query, dag_id, task_id, f"{day}%")
        return sum(max(0, tries - (state in ("queued", "running", "scheduled"))) for tries, state in found)

    def said(self, dag_id):
        """What the logs of a DAG's tasks say."""
        files = self.home.glob(f"logs/dag_id={dag_id}/**/*.log")
        lines = (line for file in files for line in file.read_text().splitlines())
        return "\n".join(line + str(json.loads(line)["event"]) for line in lines)

    def limits(self, dag_id, task_id):
        """A task's retries and time limit as Airflow has read them."""
        (data,) = self.ask("SELECT data FROM serialized_dag WHERE dag_id = ?", dag_id)[-1]
        tasks = [task["__var"] for task in json.loads(data)["dag"]["tasks"]]
        [found] = [task for task in tasks if task["task_id"] == task_id]
        return {key: found.get(key) for key in ("retries", "retry_delay", "execution_timeout")}

    def ask(self, query, *values):
        """What a query of its database finds."""
        with closing(sqlite3.connect(f"file:{self.home}/airflow.db?mode=ro", uri=True, timeout=30)) as store:
            return store.execute(query, values).fetchall()


def _of_session(session):
    """The processes of a session that are alive."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # proc(5): after the name in parentheses come state, parent, group, session.
            state, _, _, found = path.read_text(errors="replace").rpartition(")")[2].split()[:4]
            if int(found) == session and state != "Z":
                yield int(path.parent.name)


def wait(airflow, true, *, limit_s=LIMIT_S):
    """Waits until something is true."""
    until = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < until, told(airflow)
        time.sleep(0.5)


def told(airflow):
    """The ends of all logs, to be read where a test fails."""
    files = [*airflow.home.glob("*.log"), *airflow.home.glob("logs/dag_id=*/**/*.log")]
    return json.dumps({str(file): file.read_text()[-1500:] for file in files}, indent=1).replace("\\n", "\n")
