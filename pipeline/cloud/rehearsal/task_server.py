"""The process that imports TFX once and forks one child per task of a rehearsal.

It is started like the engine's fork server, but from the staged copy of the image's files and with the
image's environment, so that it finds only what is in the image.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slipway.components.failure_files import LEFT_VARIABLE
from slipway.components.kept_state import STATE_VARIABLE
from slipway.components.pusher.provenance import RUN_VARIABLE
from slipway.pipeline.engine.processes import fork_server
from slipway.pipeline.engine.processes.fork_server import ForkServer
from slipway.pipeline.engine.processes.node_process import NodeProcess
from slipway.pipeline.runs.record import NodeOutputs
from slipway.pipeline.runs.run_target import ImageModuleRun, ImageRun, Order


class TaskProcess(NodeProcess):
    """The process of one task."""

    def launch(self, compiled: Any) -> NodeOutputs:
        """Run the task as its container would, without the variables that the engine sets for a node."""
        for variable in (STATE_VARIABLE, LEFT_VARIABLE, RUN_VARIABLE):
            del os.environ[variable]
        result: NodeOutputs = compiled.run_task(self.start.node, attempt=self.start.attempt)
        return result


class TaskServer(ForkServer):
    """Serves one rehearsal."""

    node_process = TaskProcess

    def load(self, order: Order) -> Any:
        """Compile the job, as `cloud_runner.py compile` does, and adapt it to this machine."""
        from slipway.components.store_address import speaks_s3
        from slipway.pipeline.cloud.compile import compile_job, compile_other
        from slipway.pipeline.cloud.complete_job import to_text
        from slipway.pipeline.cloud.container.task import find_our_types
        from slipway.pipeline.cloud.executor_input import check_wiring
        from slipway.pipeline.cloud.image_contents import on_this_machine
        from slipway.pipeline.cloud.rehearsal.containers import containers_of
        from slipway.pipeline.cloud.rehearsal.kubeflow import BUCKET, Kubeflow, ObjectStore, RemoteStore
        from slipway.pipeline.cloud.rehearsal.rehearsable import check_containers, run_every_task
        from slipway.pipeline.cloud.rehearsal.remote_files import TfxFiles
        from slipway.pipeline.cloud.rehearsal.services import Service, ServiceName
        from slipway.pipeline.cloud.rehearsal.tasks import Files, Rehearsed
        from slipway.pipeline.cloud.services.kubeflow_job import kubeflow_job
        from slipway.pipeline.cloud.workload_in_image import Target
        from slipway.pipeline.engine.processes.grpc_on_loopback import bind_to_loopback
        from slipway.pipeline.engine.tfx.beam_caching import cache_beam_lookups
        from slipway.pipeline.errors import UsageError
        from slipway.pipeline.wiring.beam_options import run_in_process_by_default

        target, output = order.target, order.folder.parent.parent
        files: Files = TfxFiles()
        service = Service()
        if isinstance(target, ImageModuleRun):
            job = compile_other(target)
        elif isinstance(target, ImageRun):
            job = compile_job(Target.of_run(target))
            if target.service != ServiceName.VERTEX:
                records = None  # below the artifacts' root
                store: ObjectStore | RemoteStore = RemoteStore(others=files)
                if not speaks_s3(target.root):
                    # Only the launcher can reach these artifacts: their address is none that tasks can use.
                    job["runtimeConfig"]["gcsOutputDirectory"] = f"{BUCKET}/{target.settings.name}"
                    records = str(output / "records" / target.settings.name)
                    store = ObjectStore(output / "artifacts", others=files)
                job = kubeflow_job(job, target.settings, records=records)
                files = store
                service = Kubeflow(store, with_mlmd=target.service == ServiceName.KUBEFLOW)
        else:
            raise UsageError(f"{type(target).__name__} cannot be rehearsed.")
        check_containers(job["pipelineSpec"], image=target.image)
        text = to_text(job)
        (order.folder / "job.json").write_text(text, encoding="utf-8")
        containers = containers_of(target, rehearsals=output)
        # Inside containers, the image's paths are valid.
        job = json.loads(text if containers else on_this_machine(text, staged=Path.cwd()))
        if isinstance(target, ImageModuleRun):
            run_every_task(job["pipelineSpec"])
        if wrong := list(check_wiring(job["pipelineSpec"])):
            raise UsageError(f"the service would refuse the job: {'; '.join(wrong)}")
        cache_beam_lookups()
        bind_to_loopback()
        run_in_process_by_default()
        find_our_types()  # also for a user's own pipeline, whose tasks TFX's entry point runs
        return Rehearsed(
            job=job,
            run_id=order.run_id,
            runs=order.folder.parent,
            files=files,
            service=service,
            containers=containers,
        )


def main(arguments: Sequence[str]) -> None:
    """Run the server: `python -m slipway.pipeline.cloud.rehearsal.task_server FD PARENT_PID`."""
    fork_server.main(arguments, TaskServer)


if __name__ == "__main__":
    main(sys.argv[1:])
