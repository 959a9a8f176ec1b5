"""A rehearsal from beginning to end: the compiled job's tasks, run on this machine by the engine.

The tasks run from a staged copy of the image's files, with the image's environment, in processes of their
own; their artifacts are kept under `output/rehearsal/`.
"""

import functools
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pipeline.cloud.image import Image, image_environment, on_this_machine, read_image
from pipeline.cloud.target import Target
from pipeline.cloud.tpu_slices import tpu_slice
from pipeline.config import BeamConfig, WorkloadConfig
from pipeline.errors import UsageError
from pipeline.fingerprint import Fingerprint
from pipeline.local.engine import Engine
from pipeline.local.execution import INTERRUPTED, RunDisplay
from pipeline.local.graph import Graph
from pipeline.local.history import History, new_run_id
from pipeline.local.lock import locked
from pipeline.local.outcome import complete_outcome, exit_code
from pipeline.local.plan import Decision
from pipeline.local.processes import default_jobs, end_leftovers
from pipeline.local.record import NodeRecord, RunRecord
from pipeline.local.request import Request
from pipeline.local.server import RefusedError, Server
from pipeline.local.temporary import remove_left, temporary_folder

# What a container gets from the service and not from its image: who it is, and how it reaches the world.
_FROM_OUTSIDE = ("GOOGLE_", "CLOUDSDK_", "STORAGE_EMULATOR_HOST", "CURL_CA_BUNDLE", "SSL_CERT_", "TMPDIR")
_STAGED = "image"
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")


def rehearsal_folder(output: Path) -> Path:
    """Where rehearsals are kept: a folder beside the local runs, with runs of its own."""
    return output / "rehearsal"


def rehearse(
    request: Request, *, display: RunDisplay, again: str, jobs: int | None = None, keep_going: bool = True
) -> RunRecord:
    """Runs the compiled job of a workload, task by task, as the service would.

    Args:
        request: the workload; `request.output` is the folder of the local runs.
        display: gets told.
        again: the command that rehearses once more, for hints.
        jobs: tasks at once, >= 1; None: from the machine.
        keep_going: whether a failure lets the tasks beside it end.

    Returns:
        The finished record, as of a local run.

    Raises:
        UsageError: the workload cannot run in containers; the message says why.
    """
    began = time.monotonic()
    output = rehearsal_folder(request.output)
    history = History(output)
    image = read_image()
    target = Target.at(
        request,
        image,
        name=WITHOUT_IMAGE if (named := _named_image(request)) is None else named,
        root=str(output / "artifacts" / request.workload),
        destination=str(output / "serving" / request.workload),
    )
    target = _trained_here(_with_beam_here(target), image)
    run_id = new_run_id()
    with locked(output, run_id=run_id):
        end_leftovers(output / "runs")
        remove_left(output / "runs")
        record = history.new_run(
            request.workload, {"output": str(output), "again": again, **target.to_json()}, run_id=run_id
        )
        history.save(record)
        display.begins(record)
        try:
            # In one place, not in the run's folder: its path is in parameters, which the cache compares.
            shutil.rmtree(output / _STAGED, ignore_errors=True)
            image.stage(output / _STAGED)
            interrupted = _run(target, history, record, display, jobs or default_jobs(), not keep_going)
        except KeyboardInterrupt:
            interrupted = True
        except UsageError as error:
            if not isinstance(error, RefusedError):  # that one points to the run's log
                history.discard(record)
            raise
        complete_outcome(record)
        record.exit_code = INTERRUPTED if interrupted else exit_code(record)
        states = {0: "complete", 1: "failed", 3: "stopped", INTERRUPTED: "interrupted"}
        record.state = states[record.exit_code]  # type: ignore[assignment]
        record.wall_s = round(time.monotonic() - began, 3)
        history.save(record)
    return record


WITHOUT_IMAGE = "slipway:rehearsed"
"""Stands for the image where the workload names none: a rehearsal needs its files only."""


def _with_beam_here(target: Target) -> Target:
    """Beam's steps inside the tasks' processes: no other engine is sure to see this machine's disk."""
    return replace(target, config=target.config.model_copy(update={"beam": BeamConfig()}))


def _trained_here(target: Target, image: Image) -> Target:
    """A training that is for TPUs, on what this machine has; what no TPU takes is refused all the same."""
    train = target.config.train
    if train.device != "tpu":
        return target
    tpu_slice(train.tpu, backend=train.backend)
    interpreter = train.interpreter
    if interpreter is not None and "/" in interpreter:
        interpreter = str(image.root / interpreter)
    train = train.model_copy(update={"device": "auto", "interpreter": interpreter})
    return replace(target, config=target.config.model_copy(update={"train": train}))


def _named_image(request: Request) -> str | None:
    return WorkloadConfig.model_validate_json(request.target["config"]).cloud.image


def _run(
    target: Target, history: History, record: RunRecord, display: RunDisplay, jobs: int, fail_fast: bool
) -> bool:
    """Compiles and runs; True when the user interrupted."""
    folder = history.folder(record.run_id)
    staged = history.output / _STAGED
    environment = container_environment(os.environ, staged=staged)
    with (
        temporary_folder(folder) as temporary,
        Server(
            folder,
            temporary=temporary,
            module="pipeline.cloud.task_server",
            folder=staged,
            environment=environment,
        ) as server,
    ):
        tick = functools.partial(display.waiting, record, "importing TFX")
        values = {"target": {**target.to_json(), "runs": str(folder.parent)}, "run_id": record.run_id}
        graph = server.compile(values, tick=tick)
        record.nodes = [
            NodeRecord(
                id=node.id,
                type=node.type,
            )
            for node in graph.nodes
        ]
        history.save(record)
        display.planned(record, {})
        engine = Engine(
            record=record,
            graph=graph,
            decisions={i: Decision(i, "run", "") for i in graph.ids},
            prints=_prints(graph, record),
            server=server,
            history=history,
            display=display,
            jobs=jobs,
            fail_fast=fail_fast,
        )
        engine.run()
        return engine.interrupted


def container_environment(here: Mapping[str, str], *, staged: Path) -> dict[str, str]:
    """The variables of a container: those of the image, and of this machine only how the world is reached.

    Args:
        here: this machine's.
        staged: where the image's files are.
    """
    from_outside = {
        name: value
        for name, value in here.items()
        if name.startswith(_FROM_OUTSIDE) or name.lower() in _PROXIES
    }
    # The image's HOME is empty; the service gives an account in another way.
    from_outside.setdefault("CLOUDSDK_CONFIG", str(Path.home() / ".config" / "gcloud"))
    image = image_environment()
    return from_outside | {name: on_this_machine(value, staged=staged) for name, value in image.items()}


def _prints(graph: Graph, record: RunRecord) -> dict[str, Fingerprint]:
    """The engine's names for results; a rehearsal keeps the cache of the service instead."""
    return {i: Fingerprint({"param:rehearsal": f"{record.run_id} {i}"}) for i in graph.ids}
