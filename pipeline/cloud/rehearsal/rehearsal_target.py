"""The target of a rehearsal: a workload, or any TFX pipeline, with paths on this machine. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from slipway.components.store_address import GS, bucket_and_path, is_in_store, speaks_s3
from slipway.pipeline.cloud.image_contents import IMAGE_PACKAGES, IMAGE_ROOT, Image
from slipway.pipeline.cloud.rehearsal.services import ServiceName
from slipway.pipeline.cloud.services.kubeflow_job import check_machines
from slipway.pipeline.cloud.workload_in_image import Target
from slipway.pipeline.config import BeamConfig, WorkloadConfig
from slipway.pipeline.errors import UsageError
from slipway.pipeline.plan.run_request import Request
from slipway.pipeline.runs.run_target import ImageModuleRun, ImageRun, ModuleRun
from slipway.pipeline.wiring.vertex_tpu_slices import tpu_slice

_OF_THE_IMAGE = ("/tmp", IMAGE_ROOT, IMAGE_PACKAGES)  # noqa: S108 (every container has its own there)
WITHOUT_IMAGE = "slipway:rehearsed"
"""The image's name if the workload sets none: a rehearsal needs only the image's files."""
_AFTER_A_PUSH: Mapping[str, object] = {"hook": (), "endpoint": None}
"""The keys of `push` that have effects elsewhere after a push, with the values that turn them off."""


def rehearsal_target(
    request: Request,
    image: Image,
    *,
    output: Path,
    staged: Path,
    root: str | None,
    service: ServiceName = ServiceName.VERTEX,
) -> ImageRun | ImageModuleRun:
    """Return the target that the task server compiles.

    Args:
        output: the folder of rehearsals.
        root: the folder for the artifacts, None means a folder in `output`. On Vertex AI on gs:// or here, on
            Kubeflow on s3:// or minio://.
        service: the service that is imitated; only Vertex AI allows other pipelines.

    Raises:
        ConfigError: the workload cannot run in containers, or requests machines that the service rules out.
        UsageError: the service does not allow such a pipeline or folder.
    """
    name = request.workload.replace(":", ".")
    if service is not ServiceName.VERTEX:
        _check_kubeflow(request, root)
    elif root is not None and (speaks_s3(root) or (is_in_store(root) and not root.startswith(GS))):
        raise UsageError(
            f"--root {root}: TFX and TensorFlow read and write artifacts here or on gs://, and have no file "
            "system for s3:// and az://.",
            hint="name a folder or gs://BUCKET/PATH, or leave --root out; s3:// goes with --service kubeflow",
        )
    root = (root or str(output / "artifacts" / name)).rstrip("/") or "/"
    if "://" not in root:  # absolute: the tasks run in other folders, and containers mount it there
        root = str(Path(root).resolve())
    if isinstance(request.target, ModuleRun):
        # Tasks find only the project's files that are in the image.
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
    target = Target.with_places(
        request,
        image,
        name=config.cloud.image or WITHOUT_IMAGE,
        root=root,
        destination=str(output / "serving" / name),
    )
    if not runs_on_cluster(config, root):
        target = _with_beam_here(target)
    target = _publishing_nothing(_trained_here(target, image))
    return replace(target.image_run, service=service.value)


def runs_on_cluster(config: WorkloadConfig, root: str | None) -> bool:
    """Return True if Beam's steps are rehearsed as in the job, by the job server that the workload names.

    Args:
        root: the folder for the artifacts; the cluster's workers are sure to see it only on gs://.
    """
    names_server = config.beam.runner != "direct" and "job_endpoint" in config.beam.options
    return names_server and (root or "").startswith(GS)


def left_out(config: WorkloadConfig) -> tuple[str, ...]:
    """Return the keys of settings that take effect after a push; a rehearsal publishes nothing."""
    return tuple(f"push.{key}" for key in _AFTER_A_PUSH if getattr(config.push, key))


def with_image(target: ImageRun | ImageModuleRun) -> ImageRun:
    """Return a target whose tasks can run in containers of its image.

    Raises:
        UsageError: the target's image is not known, it is rehearsed as Kubeflow Pipelines runs it, or it
            needs something on this machine that no container has.
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
            "run TFX's own entry point, which fails at what Kubeflow's launcher gives it.",
            hint="rehearse it without --service, or make it a workload",
        )
    if root is not None and not (speaks_s3(root) and all(bucket_and_path(root))):
        raise UsageError(
            f"--root {root}: Kubeflow's launcher brings artifacts to its tasks and away, here from a folder "
            "or a store with S3's API.",
            hint="name s3:// or minio://BUCKET/PATH, or leave --root out",
        )
    own = (request.workload_run.settings.cloud.root or "").rstrip("/")
    if root is not None and speaks_s3(own) and bucket_and_path(own) == bucket_and_path(root.rstrip("/")):
        raise UsageError(
            f"--root {root}: is cloud.root, where real runs look for the model that was blessed last, and "
            "would find that of the rehearsal.",
            hint=f"name another, such as {own}-rehearsals, or leave --root out",
        )
    # Checked now, because the compiled job runs Beam and the training on this machine.
    check_machines(request.workload_run.settings)


def _with_beam_here(target: Target) -> Target:
    """Return the target with Beam in the tasks' processes: other engines may not see this machine's disk."""
    here = BeamConfig(stock_nodes=target.config.beam.stock_nodes)
    return replace(target, config=target.config.model_copy(update={"beam": here}))


def _publishing_nothing(target: Target) -> Target:
    """Return the target without the endpoint, whose machines cost money, and without the push hook."""
    push = target.config.push.model_copy(update=_AFTER_A_PUSH)
    return replace(target, config=target.config.model_copy(update={"push": push}))


def _trained_here(target: Target, image: Image) -> Target:
    """Return the target with a TPU training moved to this machine; what no TPU supports is still rejected."""
    train = target.config.train
    if train.device != "tpu":
        return target
    tpu_slice(train.tpu, backend=train.backend)
    interpreter = train.interpreter
    if interpreter is not None and "/" in interpreter:
        interpreter = str(image.root / interpreter)
    train = train.model_copy(update={"device": "auto", "interpreter": interpreter})
    return replace(target, config=target.config.model_copy(update={"train": train}))
