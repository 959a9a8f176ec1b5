"""The process that imports TFX once and forks one child per task of a rehearsal.

It is started as the engine's fork server is, but from the staged copy of the image's files and with the
image's environment: what is not in the image is not found.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.kept_state import STATE_VARIABLE
from components.left_behind import LEFT_VARIABLE
from components.pusher.provenance import RUN_VARIABLE
from pipeline.local import fork_server
from pipeline.local.fork_server import ForkServer
from pipeline.local.node_process import NodeProcess
from pipeline.runs.target import ImageModuleRun, ImageRun, Order


class TaskProcess(NodeProcess):
    """The process of one task."""

    def launch(self, compiled: Any) -> dict[str, Any]:
        """Runs the task as its container would: without the folders and the name that the engine gives."""
        for variable in (STATE_VARIABLE, LEFT_VARIABLE, RUN_VARIABLE):
            del os.environ[variable]
        result: dict[str, Any] = compiled.run_task(self.node, attempt=self.attempt)
        return result


class TaskServer(ForkServer):
    """Serves one rehearsal."""

    node_process = TaskProcess

    def load(self, order: Order) -> Any:
        """Compiles the job, as `cloud_runner.py compile` does, and makes it one for this machine."""
        from pipeline.beam_options import run_in_process_by_default
        from pipeline.cloud.compile import compile_job, compile_other
        from pipeline.cloud.execution import check_wiring
        from pipeline.cloud.image import on_this_machine
        from pipeline.cloud.job import to_text
        from pipeline.cloud.rehearsable import check_containers
        from pipeline.cloud.rehearsed import Rehearsed
        from pipeline.cloud.remote_files import TfxFiles
        from pipeline.cloud.target import Target
        from pipeline.errors import UsageError
        from pipeline.local.beam_answers import keep_beams_answers
        from pipeline.local.listeners import bind_to_loopback

        target = order.target
        if isinstance(target, ImageModuleRun):
            job = compile_other(target)
        elif isinstance(target, ImageRun):
            job = compile_job(Target.of_run(target))
        else:
            raise UsageError(f"{type(target).__name__} is no target of a rehearsal.")
        check_containers(job["pipelineSpec"], image=target.image)
        text = to_text(job)
        (order.folder / "job.json").write_text(text, encoding="utf-8")
        job = json.loads(on_this_machine(text, staged=Path.cwd()))
        if wrong := list(check_wiring(job["pipelineSpec"])):
            raise UsageError(f"the service would refuse the job: {'; '.join(wrong)}")
        keep_beams_answers()
        bind_to_loopback()
        run_in_process_by_default()
        return Rehearsed(job=job, run_id=order.run_id, runs=order.folder.parent, files=TfxFiles())


def main(arguments: Sequence[str]) -> None:
    """Entry point: `python -m pipeline.cloud.task_server FD PARENT_PID`."""
    fork_server.main(arguments, TaskServer)


if __name__ == "__main__":
    main(sys.argv[1:])
