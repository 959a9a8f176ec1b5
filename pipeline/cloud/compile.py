"""Compiles a workload to a job for Vertex AI Pipelines and Kubeflow with TFX's own compiler. Imports TFX."""

import importlib
import re
import traceback
from pathlib import Path
from typing import Any

from tfx.dsl.component.experimental.utils import ArgFormats
from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner, pipeline_builder

from slipway.pipeline.cloud.complete_job import TASK, complete, complete_any_job, container_tasks
from slipway.pipeline.cloud.pipeline_job import PipelineJob
from slipway.pipeline.cloud.rehearsal.rehearsable import (
    check_jobs,
    check_waits,
    redirect_pushes,
    runtime_values,
)
from slipway.pipeline.cloud.workload_in_image import Target
from slipway.pipeline.dag import build_pipeline
from slipway.pipeline.engine.tfx.load_pipeline import load_pipeline
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.run_target import ImageModuleRun
from slipway.pipeline.wiring.beam_engine import completed_args

# The names that `_check_name` of TFX's pipeline_builder accepts.
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,127}")


def compile_job(target: Target) -> PipelineJob:
    """Compile a workload to the JSON of a PipelineJob.

    Args:
        target: the workload with the paths of the image.

    Raises:
        ConfigError: see `complete_job.complete`.
        UsageError: the pipeline contains something that TFX cannot compile for Kubeflow.
    """
    # The output folder is a placeholder: the job's runtime configuration says where artifacts go.
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
    """Compile any TFX pipeline for a rehearsal; its containers run TFX's own entry point.

    Returns:
        The JSON of a PipelineJob.

    Raises:
        UsageError: there is no such pipeline, it contains something that TFX cannot compile for Kubeflow,
            it pushes to a destination that only it knows, or its Beam steps would listen on the network.
    """
    module = target.pipeline.partition(":")[0].rpartition(".")[2]
    # An argument that the pipeline's function may take; the service allows no underscores in it.
    offered = {"pipeline_name": module.replace("_", "-").lower()}
    pipeline, parameters = load_pipeline(target, target.parameters, offered=offered)
    _check_name(pipeline.pipeline_info.pipeline_name)
    _check_values(pipeline)
    job = complete_any_job(_compiled(pipeline, name=target.pipeline, image=target.image), root=target.root)
    wanted = completed_args(pipeline.beam_pipeline_args, target.beam_args)
    for _, container in container_tasks(job["pipelineSpec"]):
        for part in (container, container.get("lifecycle", {}).get("preCacheCheck", {})):
            # Executors and drivers pass options that they do not know themselves on to Beam.
            part.setdefault("args", []).extend(wanted)
    check_waits(job["pipelineSpec"])
    check_jobs(job["pipelineSpec"])
    redirect_pushes(job, folder=target.serving)
    job["runtimeConfig"]["parameterValues"] = runtime_values(
        job["pipelineSpec"],
        name=target.pipeline,
        given=parameters,
        defaults=_defaults(pipeline),
    )
    return job


def _defaults(pipeline: Any) -> dict[str, object]:
    """Return the defaults of those runtime parameters of a pipeline that have one."""
    values = (value for node in pipeline.components for value in node.exec_properties.values())
    found = (value for value in values if isinstance(value, RuntimeParameter))
    return {each.name: each.default for each in found if each.default is not None}


def _component(path: str) -> Any:
    """Return the exit handler that a user's function makes."""
    module, _, name = path.rpartition(".")
    try:
        made = getattr(importlib.import_module(module), name)()
    except Exception as error:  # of the user's code
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"cloud.exit_handler: {path} cannot be called: {why}") from error
    if not isinstance(made, BaseNode):
        raise UsageError(
            f"cloud.exit_handler: {path} returns {made!r}, which is no component",
            hint="return what a function gives that TFX's exit_handler decorates, called with its parameters",
        )
    return made


def _compiled(
    pipeline: Any, *, name: str, image: str, commands: list[str] | None = None, exit_handler: Any = None
) -> PipelineJob:
    config = kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
        display_name=name,
        default_image=image,
        default_commands=commands,
        use_pipeline_spec_2_1=True,  # with 2.0, {SPAN} breaks at run time
    )
    runner = kubeflow_v2_dag_runner.KubeflowV2DagRunner(config=config)
    if exit_handler is not None:
        runner.set_exit_handler(exit_handler)
    try:
        job: PipelineJob = runner.run(pipeline, write_out=False)
    except (NotImplementedError, TypeError, ValueError, LookupError, AssertionError) as error:
        node = _node_of(error)
        raise UsageError(
            f"{name} cannot be compiled to a job: {f'{node}: ' if node else ''}"
            f"{error.args[0] if error.args else type(error).__name__}",
            hint="docs/any-pipeline.md lists what TFX compiles; rehearse the pipeline without it, e.g. by an "
            "argument of its function: --set NAME=VALUE",
        ) from error
    return job


def _node_of(error: BaseException) -> str:
    """Return the node at which TFX's compiler failed, which its messages omit; empty if at none."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == pipeline_builder.__file__ and "component" in frame.f_locals:
            return str(frame.f_locals["component"].id)
    return ""


def _check_name(name: str) -> None:
    """Reject a pipeline name that the service does not accept; TFX's own message omits the name."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"the pipeline is named {name!r}; a job's name may have only lower-case letters, digits and "
            "dashes, must not start with a dash, and has at most 128 characters.",
            hint="rename it; a function that takes pipeline_name is given one: --set pipeline_name=NAME",
        )


def _check_values(pipeline: Any) -> None:
    """Reject functions that take another node's value: TFX's entry point calls them before it has read it."""
    for node in pipeline.components:
        formats = getattr(getattr(node.executor_spec, "executor_class", None), "_ARG_FORMATS", {})
        taken = [key for key in node.inputs if formats.get(key) is ArgFormats.ARTIFACT_VALUE]
        if taken:
            raise UsageError(
                f"{node.id} takes {', '.join(taken)} as the value of another node's output. That runs here, "
                "and fails in TFX's containers, which call the function before they have read the value.",
                hint="declare it as Parameter[...], and pass it node.outputs[...].future()[0].value",
            )
