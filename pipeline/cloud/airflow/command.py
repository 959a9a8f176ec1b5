"""`cloud_runner.py airflow`: writes a workload as an Airflow DAG."""

import os
from pathlib import Path

from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.cloud.airflow.dag_file import Place, dag_id, dag_text, not_replaced
from slipway.pipeline.config import WorkloadChoice
from slipway.pipeline.engine.plan_without_run import find_graph
from slipway.pipeline.errors import UsageError
from slipway.pipeline.plan.run_request import workload_request
from slipway.pipeline.terminal.invocation import DEFAULT_OUTPUT


def write_dag(chosen: WorkloadChoice, *, folder: Path, place: Place) -> Path:
    """Write the DAG of a workload; return the file.

    Args:
        chosen: the workload. Its profile and overridden keys apply to every run of the DAG, and the profile
            is part of the DAG's name.
        folder: Airflow's folder of DAGs; created if it does not exist.

    Raises:
        UsageError: the workload is missing or wrong, the folder cannot be written, or has a file of that name
            which is not of this workload and profile.
    """
    request = workload_request(chosen, output=DEFAULT_OUTPUT.absolute(), beam_args=())
    config = request.workload_run.settings
    name = dag_id(config, chosen.profile)
    words = [_known_there(chosen.file), *chosen.options]
    text = dag_text(find_graph(request), config, name=name, workload=words, place=place)
    file = folder / f"{name}.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if file.exists() and (why := not_replaced(file.read_text(encoding="utf-8", errors="replace"), words)):
            raise UsageError(
                f"{file} is there already, and {why}",
                hint="remove it if it is not needed any more; or give this workload another name, or --dags",
            )
        _write(file.resolve(), text)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from error
    return file


def _write(file: Path, text: str) -> None:
    """Write a file whole, since Airflow reads it at any time and a full disk would leave half of it."""
    partial = file.with_name(f".{file.name}.{os.getpid()}")  # no *.py, which Airflow would take for a DAG
    try:
        partial.write_text(text, encoding="utf-8")
        if file.exists():
            partial.chmod(file.stat().st_mode & 0o777)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def _known_there(file: Path) -> str:
    """Return the path of the workload file relative to the checkout, or its own path if it is elsewhere."""
    return str(file.relative_to(PROJECT_ROOT) if file.is_relative_to(PROJECT_ROOT) else file)
