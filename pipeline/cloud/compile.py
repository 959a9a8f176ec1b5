"""From a workload to a job for Vertex AI Pipelines and Kubeflow, through TFX's own compiler. Imports TFX."""

from pathlib import Path

from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner

from pipeline.cloud.job import Job, complete
from pipeline.cloud.target import Target
from pipeline.dag import build_pipeline
from pipeline.errors import UsageError


def compile_job(target: Target) -> Job:
    """Compiles a workload.

    Args:
        target: the workload with the paths of the image.

    Returns:
        The JSON of a PipelineJob.

    Raises:
        ConfigError: see `job.complete`.
        UsageError: the pipeline holds what TFX cannot compile for Kubeflow.
    """
    # The folder stands for nothing: where artifacts go is said by the job's runtime configuration.
    pipeline = build_pipeline(
        config=target.config,
        data=target.source,
        output=Path("/"),
        overrides=target.overrides,
        training_job=target.training_job,
    )
    config = kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
        display_name=target.config.name,
        default_image=target.image,
        default_commands=["python", "-m", "pipeline.cloud.container"],
        use_pipeline_spec_2_1=True,  # 2.0 breaks {SPAN} when it runs
    )
    runner = kubeflow_v2_dag_runner.KubeflowV2DagRunner(config=config)
    try:
        job: Job = runner.run(pipeline, write_out=False)
    except (NotImplementedError, TypeError, ValueError) as error:
        raise UsageError(f"{target.config.name} cannot be compiled for Kubeflow: {error}") from error
    return complete(job, target.config, root=target.root)
