"""The commands of cloud_runner.py, without their parsing and printing."""

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from slipway.components.large_imports import large_imports
from slipway.components.project import INSTALL
from slipway.pipeline.cloud.complete_job import to_text
from slipway.pipeline.cloud.image_contents import read_image
from slipway.pipeline.cloud.pipeline_job import PipelineJob
from slipway.pipeline.cloud.rehearsal.services import ServiceName
from slipway.pipeline.cloud.services.kubeflow_job import kubeflow_job, kubeflow_package
from slipway.pipeline.cloud.workload_in_image import Target, refuse_sql
from slipway.pipeline.config import WorkloadChoice
from slipway.pipeline.errors import UsageError
from slipway.pipeline.exit_codes import DONE, FAILED, GATE_STOPPED
from slipway.pipeline.plan.run_request import Request, workload_request
from slipway.pipeline.terminal.printable import say
from slipway.pipeline.terminal.sign_of_life import sign_of_life
from slipway.pipeline.wiring.beam_engine import check_cloud_engine


def compile_workload(chosen: WorkloadChoice, *, file: Path | None) -> Path | str:
    """Compile a workload to a job for Vertex AI Pipelines, or to a pipeline for Kubeflow.

    Args:
        file: the file to write; None means that the text is returned.

    Returns:
        The file, or the text.

    Raises:
        UsageError: kfp is not installed, or the workload does not exist or cannot run in containers; the
            message says why.
    """
    target = cloud_target(chosen)
    job = compiled_job(target)
    is_kubeflow = target.config.cloud.service == "kubeflow"
    text = kubeflow_package(kubeflow_job(job, target.config)) if is_kubeflow else to_text(job)
    if file is None:
        return text
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from error
    return file


def cloud_target(
    chosen: WorkloadChoice, *, overrides: Mapping[str, str] | None = None, is_sent: bool = False
) -> Target:
    """Return a workload as it will run in containers.

    Args:
        overrides: reasons to let the run pass a gate despite its findings.

    Raises:
        UsageError: kfp is not installed, or the workload cannot run in containers; the message says why.
    """
    refuse_sql(chosen.config())  # before its query would run
    request = workload_request(chosen, output=Path("/"), beam_args=(), overrides=overrides)
    target = Target.for_cloud_run(request, read_image(), is_sent=is_sent)
    require_kfp()
    return target


def compiled_job(target: Target) -> PipelineJob:
    """Compile a workload. This imports TFX, which takes seconds.

    Raises:
        UsageError: see `compile.compile_job`.
    """
    with sign_of_life(f"{target.config.name}: compiles"), _libraries_silent():
        with large_imports():
            from slipway.pipeline.cloud.compile import compile_job

        return compile_job(target)


def rehearse_request(
    request: Request,
    *,
    jobs: int | None,
    root: str | None,
    service: ServiceName,
    again: str,
    in_containers: bool = False,
) -> int:
    """Run the compiled job of a workload, or of any TFX pipeline, on this machine, as the service would.

    Args:
        request: what to run; `request.output` is the folder of the local runs, and rehearsals are kept in
            `rehearsal/` below it.
        jobs, root, service, in_containers, again: as in `slipway.pipeline.cloud.rehearsal.run.rehearse`.

    Returns:
        The exit code; 1 also if the outputs of the rehearsal differ from those of a local run.

    Raises:
        UsageError: kfp is not installed, or the pipeline cannot run in containers; the message says why.
    """
    require_kfp()
    if request.is_workload and request.beam_args:
        raise UsageError(
            f"--beam {request.beam_args[0]}: a rehearsal of a workload takes no options for Beam.",
            hint="leave --beam out; it is for --pipeline",
        )
    from slipway.pipeline.cloud.rehearsal.local_counterpart import compare_with_local
    from slipway.pipeline.cloud.rehearsal.rehearsal_target import left_out, runs_on_cluster
    from slipway.pipeline.cloud.rehearsal.run import rehearse
    from slipway.pipeline.screen.run_display import stderr_display

    if request.is_workload and runs_on_cluster(config := request.workload_run.settings, root):
        if in_containers:  # which are not on the host of a job server at localhost
            check_cloud_engine(config.beam, config.cloud)
        request.check_engine()
    elif request.is_workload and (runner := request.beam_runner) != "direct":
        print(f"Beam's steps are rehearsed with its direct runner, not with {runner}.", file=sys.stderr)
    if request.is_workload and (keys := left_out(request.workload_run.settings)):
        print(f"{' and '.join(keys)}: left out, because a rehearsal publishes nothing.", file=sys.stderr)
    with closing(stderr_display()) as display:
        record = rehearse(
            request,
            display=display,
            jobs=jobs,
            root=root,
            service=service,
            in_containers=in_containers,
            again=again,
        )
    code = record.exit_code or 0
    if code in (DONE, GATE_STOPPED):
        comparison = compare_with_local(request, record)
        say(*comparison.lines())
        code = FAILED if comparison.differs else code
    return code


def require_kfp() -> None:
    """Raise an error if kfp, which TFX's compiler for Kubeflow needs, is not installed."""
    if importlib.util.find_spec("kfp") is None:
        raise UsageError(
            "kfp is not installed, and jobs for Vertex and Kubeflow are compiled with it",
            hint=f"{INSTALL} with Python 3.11 (TFX brings no kfp to later versions)",
        )


@contextmanager
def _libraries_silent() -> Iterator[None]:
    """Keep TensorFlow's messages about this machine's processor off the screen.

    Its C++ code writes to file descriptor 2 before it reads any log level.
    """
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    screen = os.dup(2)
    with tempfile.TemporaryFile() as told:
        os.dup2(told.fileno(), 2)
        try:
            from absl import logging  # type: ignore[import-untyped]

            logging.set_verbosity(logging.ERROR)
            yield
        finally:
            os.dup2(screen, 2)
            os.close(screen)
