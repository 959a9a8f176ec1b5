"""`cloud_runner.py airflow`: writes a workload as an Airflow DAG."""

from collections.abc import Sequence
from pathlib import Path

from slipway.pipeline.cloud.airflow.dag_file import Place, dag_id, dag_text
from slipway.pipeline.engine.graphs import find_graph
from slipway.pipeline.errors import UsageError
from slipway.pipeline.plan.request import workload_file, workload_request
from slipway.pipeline.root import PROJECT_ROOT
from slipway.pipeline.terminal.invocation import DEFAULT_OUTPUT


def write_dag(
    workload: Path, *, sets: Sequence[str], profile: str | None, folder: Path, place: Place
) -> Path:
    """Writes the DAG of a workload.

    Args:
        workload: the workload file, or its name in workloads/.
        sets: `key=value` over the file; they hold for every run of the DAG.
        profile: one of the file's profiles; it is part of the DAG's name.
        folder: Airflow's folder of DAGs; made where it is not there.
        place: where the tasks will work.

    Returns:
        The file.

    Raises:
        UsageError: the workload is not there or wrong, or the folder cannot be written.
    """
    request = workload_request(
        workload, sets=sets, profile=profile, output=DEFAULT_OUTPUT.absolute(), beam_args=()
    )
    config = request.workload_run.settings
    name = dag_id(config, profile)
    words = [_known_there(workload_file(workload))]
    words += ["--profile", profile] if profile else []
    words += [word for item in sets for word in ("--set", item)]
    text = dag_text(find_graph(request), config, name=name, workload=words, place=place)
    file = folder / f"{name}.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from error
    return file


def _known_there(path: Path) -> str:
    """The workload file as seen from the checkout's folder, wherever that lies."""
    absolute = path.absolute()
    return str(absolute.relative_to(PROJECT_ROOT) if absolute.is_relative_to(PROJECT_ROOT) else absolute)
