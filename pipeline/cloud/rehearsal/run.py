"""A rehearsal from start to end: the engine runs the compiled job's tasks on this machine.

The tasks run from a staged copy of the image's files, with the image's environment, in separate processes
or in containers of the image; their artifacts are kept under `output/rehearsal/`.
"""

import functools
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from slipway.components.store_address import speaks_s3
from slipway.components.stored_objects import StoredObjects
from slipway.pipeline.cloud.complete_job import TFX_DAG
from slipway.pipeline.cloud.executor_input import PipelineTaskFinalStatus
from slipway.pipeline.cloud.image_contents import Image, image_environment, read_image
from slipway.pipeline.cloud.rehearsal.container_environment import container_environment
from slipway.pipeline.cloud.rehearsal.containers import remove_left, stores_of
from slipway.pipeline.cloud.rehearsal.local_image import check_image_sources, find_image
from slipway.pipeline.cloud.rehearsal.rehearsal_target import rehearsal_target, with_image
from slipway.pipeline.cloud.rehearsal.services import ServiceName
from slipway.pipeline.cloud.rehearsal.tasks import EXIT_HANDLER, STATUS_FILE
from slipway.pipeline.engine.journal import Journal
from slipway.pipeline.engine.processes.client import ForkServerClient
from slipway.pipeline.engine.processes.default_jobs import default_jobs
from slipway.pipeline.engine.processes.os_processes import end_leftovers
from slipway.pipeline.engine.processes.temporary import remove_left as remove_left_temporary
from slipway.pipeline.engine.processes.temporary import temporary_folder
from slipway.pipeline.engine.result_store import Results
from slipway.pipeline.engine.run_end import closed_at_end
from slipway.pipeline.engine.scheduler import Engine
from slipway.pipeline.plan.run_request import Request
from slipway.pipeline.runs.graph import Graph
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import locked
from slipway.pipeline.runs.record import NodeRecord, RunRecord, write_json
from slipway.pipeline.runs.run_target import ImageModuleRun, ImageRun, Order, RecordedRequest
from slipway.pipeline.screen.display import RunDisplay
from slipway.pipeline.wiring.keras_choice import KERAS_VARIABLES

_STAGED = "image"


def rehearse(
    request: Request,
    *,
    display: RunDisplay,
    again: str,
    jobs: int | None = None,
    root: str | None = None,
    service: ServiceName = ServiceName.VERTEX,
    in_containers: bool = False,
) -> RunRecord:
    """Run the compiled job of a workload or another pipeline, task by task, as the service would.

    Args:
        request: what to run; `request.output` is the folder of the local runs.
        again: the command that rehearses once more, for hints.
        jobs: the number of tasks that run at once, >= 1; None means a default for this machine.
        root: the folder for the artifacts, see `rehearsal_target`; None means a folder among the rehearsals.
        in_containers: whether each task runs in a container of the workload's image.

    Returns:
        The finished record, in the form of a local run's.

    Raises:
        UsageError: the workload cannot run in containers, or this machine cannot run containers; the
            message says why.
        ComponentError: the store of `root` refuses or does not answer.
    """
    began = time.monotonic()
    output = request.output / "rehearsal"  # which has its own runs
    history = History(output)
    image = read_image()
    staged = output / _STAGED
    target = rehearsal_target(request, image, output=output, staged=staged, root=root, service=service)
    if in_containers:
        target = _in_containers(target, image)
    if root is not None and speaks_s3(root):
        StoredObjects(root).exist()  # what is wrong with the store is told now, not by the first upload
    run_id = history.new_run_id()
    with locked(output, run_id=run_id):
        end_leftovers(output / "runs")
        remove_left_temporary(output / "runs")
        record = history.new_run(
            request.workload, RecordedRequest(target=target, output=output, again=again), run_id=run_id
        )
        record.overrides = dict(request.overrides)
        history.save(record)
        display.begins(record)
        journal = Journal(record, history, began)
        with closed_at_end(journal, display) as end:
            # Always the same folder, not the run's: its path is in parameters, which the cache compares.
            shutil.rmtree(staged, ignore_errors=True)
            image.stage(staged)
            with _containers_removed(target, output):
                end.nodes_are_over(interrupted=_run(target, journal, display, jobs or default_jobs()))
    return record


def _in_containers(target: ImageRun | ImageModuleRun, image: Image) -> ImageRun:
    """Return the target with the program that runs containers of its image.

    Raises:
        UsageError: there is no such program or image, or the image holds other code.
    """
    named = with_image(target)
    program, found = find_image(named.image)
    inside = check_image_sources(program, found, image, name=named.image)
    return replace(named, containers=program, container_image=found, container_user=inside["user"])


@contextmanager
def _containers_removed(target: ImageRun | ImageModuleRun, output: Path) -> Iterator[None]:
    """Remove the containers that a killed rehearsal left, and at the end those of this one."""
    program = target.containers if isinstance(target, ImageRun) else ""
    if not program:
        yield
        return
    remove_left(program, output)
    try:
        yield
    finally:
        remove_left(program, output)


def _run(target: ImageRun | ImageModuleRun, journal: Journal, display: RunDisplay, jobs: int) -> bool:
    """Compile and run the job; return True if the user cut it short."""
    record, history = journal.record, journal.history
    folder = record.folder
    staged = history.output / _STAGED
    with (
        temporary_folder(folder) as temporary,
        ForkServerClient(
            folder,
            temporary=temporary,
            module="slipway.pipeline.cloud.rehearsal.task_server",
            folder=staged,
            environment=_environment(target, staged=staged, home=temporary),
            is_ours=isinstance(target, ImageRun),
        ) as server,
    ):
        tick = functools.partial(display.waiting, record, "importing TFX")
        graph = server.compile(Order(target=target, run_id=record.run_id, folder=folder), tick=tick)

        def engine(part: Graph) -> Engine:
            return Engine(
                graph=part,
                launcher=server,
                results=Results(),  # the service's cache is used instead
                journal=journal,
                display=display,
                jobs=jobs,
            )

        tasks = Graph(graph.name, tuple(node for node in graph.nodes if node.type != EXIT_HANDLER))
        record.nodes = _records(tasks)
        history.save(record)
        display.planned(record, {})
        main = engine(tasks)
        main.run()
        # As on the service, exit handlers run after all tasks have ended, whatever the outcome.
        handlers = [replace(node, upstream=()) for node in graph.nodes if node.type == EXIT_HANDLER]
        if handlers and not main.interrupted:
            write_json(folder / STATUS_FILE, final_status(record, service=_service_of(target)))
            last = Graph(graph.name, tuple(handlers))
            record.nodes += _records(last)
            handling = engine(last)
            handling.run()
            return handling.is_cut_short
        return main.is_cut_short


def _environment(target: ImageRun | ImageModuleRun, *, staged: Path, home: Path) -> dict[str, str]:
    own = () if isinstance(target, ImageRun) else tuple(KERAS_VARIABLES)
    found = container_environment(os.environ, staged=staged, home=home, own=own, stores=stores_of(target))
    if isinstance(target, ImageRun) and target.containers:
        # No task runs in this environment; the program that starts their containers needs the user's own.
        found |= {name: value for name, value in os.environ.items() if name not in image_environment()}
        found |= {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    return found


def _records(graph: Graph) -> list[NodeRecord]:
    return [NodeRecord(id=node.id, type=node.type) for node in graph.nodes]


def _service_of(target: ImageRun | ImageModuleRun) -> ServiceName:
    return ServiceName(target.service) if isinstance(target, ImageRun) else ServiceName.VERTEX


def final_status(record: RunRecord, *, service: ServiceName) -> PipelineTaskFinalStatus:
    """Return the PipelineTaskFinalStatus that an exit handler gets, as the service writes it.

    Source: `PipelineTaskFinalStatus` in kfp's pipeline_spec.proto, and what Kubeflow's driver gave on 29
    November 2026 (backend/src/v2/driver/resolve.go at 7b70c7b): the states of ML Metadata, and no error.
    """
    failed = next((node for node in record.nodes if node.state == "failed"), None)
    if service is ServiceName.KUBEFLOW:
        return {
            "state": "FAILED" if failed else "COMPLETE",
            "pipelineJobResourceName": f"{record.workload}-{record.run_id}",
            "pipelineTaskName": TFX_DAG,
            "error": {},
        }
    status: PipelineTaskFinalStatus = {
        "state": "FAILED" if failed else "SUCCEEDED",
        "pipelineJobResourceName": f"projects/rehearsal/locations/here/pipelineJobs/{record.run_id}",
        "pipelineTaskName": TFX_DAG,
    }
    if failed is not None:
        # 13 is google.rpc.Code.INTERNAL.
        status["error"] = {"code": 13, "message": f"{failed.id}: {failed.failure['message']}"}
    return status
