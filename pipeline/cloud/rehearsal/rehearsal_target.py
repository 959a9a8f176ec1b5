"""The target of a rehearsal: a workload, or any TFX pipeline, with places on this machine. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from slipway.pipeline.cloud.image import IMAGE_PACKAGES, IMAGE_ROOT, Image
from slipway.pipeline.cloud.rehearsal.services import ServiceName
from slipway.pipeline.cloud.services.kubeflow_job import check_machines
from slipway.pipeline.cloud.workload_in_image import Target
from slipway.pipeline.config import BeamConfig, WorkloadConfig
from slipway.pipeline.errors import UsageError
from slipway.pipeline.plan.run_request import Request
from slipway.pipeline.runs.run_target import ImageModuleRun, ImageRun, ModuleRun
from slipway.pipeline.wiring.vertex_tpu_machines import tpu_slice

_OF_THE_IMAGE = ("/tmp", IMAGE_ROOT, IMAGE_PACKAGES)  # noqa: S108 (every container has its own there)
WITHOUT_IMAGE = "slipway:rehearsed"
"""Used if the workload names no image: a rehearsal needs only the image's files."""
_AFTER_A_PUSH: Mapping[str, object] = {"hook": (), "endpoint": None}
"""What a push leads to elsewhere, by its key, and the value with which it leads to nothing."""


def rehearsal_target(
    request: Request,
    image: Image,
    *,
    output: Path,
    staged: Path,
    root: str | None,
    service: ServiceName = ServiceName.VERTEX,
) -> ImageRun | ImageModuleRun:
    """The target that the task server compiles.

    Args:
        output: the folder of rehearsals.
        root: folder for the artifacts, on gs:// or here; None: in `output`.
        service: the service as which the tasks are run; only Vertex AI's takes `root` and other pipelines.

    Raises:
        ConfigError: the workload cannot run in containers, or asks for machines that the service rules out.
        UsageError: the service takes no such pipeline or folder.
    """
    name = request.workload.replace(":", ".")
    if service is not ServiceName.VERTEX:
        _check_kubeflow(request, root)
    root = (root or str(output / "artifacts" / name)).rstrip("/") or "/"
    if "://" not in root:  # by a path of its own: the tasks run elsewhere, and containers mount it there
        root = str(Path(root).resolve())
    if isinstance(request.target, ModuleRun):
        # Files of the project are found only as far as they are in the image.
        is_ours = Path(request.target.folder) == image.root
        return ImageModuleRun(
            pipeline=request.target.pipeline,
            folder=str(staged) if is_ours else request.target.folder,
            output=output,
            parameters=request.parameters,
            image=WITHOUT_IMAGE,
            root=root,
            serving=str(output / "serving" / name),
            beam_args=request.beam_args,
        )
    config = request.workload_run.settings
    target = Target.at(
        request,
        image,
        name=config.cloud.image or WITHOUT_IMAGE,
        root=root,
        destination=str(output / "serving" / name),
    )
    target = _publishing_nothing(_trained_here(_with_beam_here(target), image))
    return replace(target.image_run, service=service.value)


def left_out(config: WorkloadConfig) -> tuple[str, ...]:
    """The keys of what would follow a push, and does not follow a rehearsal's: nothing is published."""
    return tuple(f"push.{key}" for key in _AFTER_A_PUSH if getattr(config.push, key))


def with_image(target: ImageRun | ImageModuleRun) -> ImageRun:
    """A target whose tasks can run in containers of its image.

    Raises:
        UsageError: the target's image is not known, it is rehearsed as Kubeflow Pipelines runs it, or it
            needs something of this machine that no container has.
    """
    if isinstance(target, ImageModuleRun):
        raise UsageError(
            "--containers: the content of the image of a --pipeline is not known here.",
            hint="leave --containers out, or make it a workload",
        )
    if target.service != ServiceName.VERTEX:
        raise UsageError(
            f"--containers: the tasks run as Vertex AI runs them, not as {target.service} does.",
            hint="leave --containers or --service out",
        )
    if target.image == WITHOUT_IMAGE:
        raise UsageError(
            "--containers runs each task in the workload's image, but cloud.image names none.",
            hint="make image IMAGE=slipway:1 BUILDER=buildah, then --set cloud.image=slipway:1",
        )
    interpreter = target.settings.train.interpreter
    if interpreter is not None and "/" in interpreter:
        raise UsageError(
            f"--containers: train.interpreter, {interpreter}, exists on this machine only.",
            hint="leave --containers out, or train with the image's own: --set train.interpreter=null",
        )
    for folder in (target.root, str(target.settings.push.destination)):
        if "," in folder or any(Path(each).is_relative_to(folder) for each in _OF_THE_IMAGE):
            raise UsageError(
                f"--containers: tasks write to {folder}, and containers mount it under its own path, which "
                "is not possible with this one.",
                hint="name another with --root or --output: no comma, and none of the image's folders in it",
            )
    return target


def _check_kubeflow(request: Request, root: str | None) -> None:
    if isinstance(request.target, ModuleRun):
        raise UsageError(
            "a pipeline of --pipeline cannot be rehearsed as Kubeflow Pipelines would run it: its containers "
            "run TFX's own entry point, which fails at whon Kubeflow's launcher gives it.",
            hint="rehearse it without --service, or make it a workload",
        )
    if root is not None:
        raise UsageError(
            f"--root {root}: Kubeflow's launcher brings artifacts to its tasks and away, here from a folder.",
            hint="leave --root out",
        )
    # Now: what is compiled has Beam and the training on this machine.
    check_machines(request.workload_run.settings)


def _with_beam_here(target: Target) -> Target:
    """Beam's steps inside the tasks' processes: other engines may not see this machine's disk."""
    return replace(target, config=target.config.model_copy(update={"beam": BeamConfig()}))


def _publishing_nothing(target: Target) -> Target:
    """Without the endpoint, whose machines cost money, and without the command that announces a version."""
    push = target.config.push.model_copy(update=_AFTER_A_PUSH)
    return replace(target, config=target.config.model_copy(update={"push": push}))


def _trained_here(target: Target, image: Image) -> Target:
    """A training for TPUs, on this machine's devices; what no TPU supports is still rejected."""
    train = target.config.train
    if train.device != "tpu":
        return target
    tpu_slice(train.tpu, backend=train.backend)
    interpreter = train.interpreter
    if interpreter is not None and "/" in interpreter:
        interpreter = str(image.root / interpreter)
    train = train.model_copy(update={"device": "auto", "interpreter": interpreter})
    return replace(target, config=target.config.model_copy(update={"train": train}))
