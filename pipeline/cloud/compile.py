"""From a workload to a job for Vertex AI Pipelines and Kubeflow, through TFX's own compiler. Imports TFX."""

import importlib
from pathlib import Path
from typing import Any

from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner

from slipway.pipeline.cloud.complete_job import TASK, complete, container_tasks, mend
from slipway.pipeline.cloud.pipeline_job import PipelineJob
from slipway.pipeline.cloud.rehearsal.rehearsable import redirect_pushes
from slipway.pipeline.cloud.workload_in_image import Target
from slipway.pipeline.dag import build_pipeline
from slipway.pipeline.engine.tfx.load_pipeline import load_pipeline
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.run_target import ImageModuleRun
from slipway.pipeline.wiring.beam_engine import completed_args


def compile_job(target: Target) -> PipelineJob:
    """Compiles a workload to the JSON of a PipelineJob.

    Args:
        target: the workload with the paths of the image.

    Raises:
        ConfigError: see `job.complete`.
        UsageError: the pipeline holds what TFX cannot compile for Kubeflow.
    """
    # The folder is a placeholder: the job's runtime configuration says where artifacts go.
    pipeline = build_pipeline(
        config=target.config,
        data=target.source,
        output=Path("/"),
        overrides=target.overrides,
        training_job=target.training_job,
    )
    handler = target.config.cloud.exit_handler
    job = _compiled(
        pipeline,
        name=target.config.name,
        image=target.image,
        commands=["python", "-m", TASK],
        exit_handler=_component(handler) if handler else None,
    )
    return complete(job, target.config, root=target.root)


def compile_other(target: ImageModuleRun) -> PipelineJob:
    """Compiles any TFX pipeline, to be rehearsed; its containers run TFX's own entry point.

    Returns:
        The JSON of a PipelineJob.

    Raises:
        UsageError: there is no such pipeline, it holds what TFX cannot compile for Kubeflow, pushes to where
            only it knows, or its Beam steps would listen on the network.
    """
    module = target.pipeline.partition(":")[0].rpartition(".")[2]
    # Arguments that a function may ask for; the service allows no underscores in them.
    known = {"pipeline_name": module.replace("_", "-").lower()}
    pipeline, parameters = load_pipeline(target, {**known, **target.parameters})
    job = mend(_compiled(pipeline, name=target.pipeline, image=target.image), root=target.root)
    redirect_pushes(job, folder=target.serving)
    wanted = completed_args(pipeline.beam_pipeline_args, target.beam_args)
    for _, container in container_tasks(job["pipelineSpec"]):
        for part in (container, container.get("lifecycle", {}).get("preCacheCheck", {})):
            # An executor passes options that it does not know itself on to Beam, and so does the driver.
            part.setdefault("args", []).extend(wanted)
    job["runtimeConfig"]["parameterValues"] = {
        name: value for name, value in parameters.items() if name in target.parameters
    }
    return job


def _component(path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"cloud.exit_handler: {path} cannot be called: {error}") from error


def _compiled(
    pipeline: Any, *, name: str, image: str, commands: list[str] | None = None, exit_handler: Any = None
) -> PipelineJob:
    config = kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
        display_name=name,
        default_image=image,
        default_commands=commands,
        use_pipeline_spec_2_1=True,  # 2.0 breaks {SPAN} when it runs
    )
    runner = kubeflow_v2_dag_runner.KubeflowV2DagRunner(config=config)
    if exit_handler is not None:
        runner.set_exit_handler(exit_handler)
    try:
        job: PipelineJob = runner.run(pipeline, write_out=False)
    except (NotImplementedError, TypeError, ValueError) as error:
        raise UsageError(f"{name} cannot be compiled for Kubeflow: {error}") from error
    return job
