"""The target of a cloud run: the workload with every path as it is in the image. Pure."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from slipway.components.ingest.query.tables import SQL
from slipway.components.ingest.source import SourceError, resolve_sources
from slipway.components.store_address import (
    GS,
    HF,
    S3,
    is_elsewhere,
    is_in_store,
    is_remote,
    outlives_its_container,
)
from slipway.components.trainer.job import CustomJobRequest
from slipway.components.trainer.settings.pretrained import KEY as PRETRAINED
from slipway.pipeline.cloud.image_contents import IMAGE_ROOT, Image
from slipway.pipeline.cloud.required_settings import (
    needed_by_service,
    needed_by_vertex,
    needed_to_run,
    require,
)
from slipway.pipeline.cloud.services.kubeflow_job import check_machines
from slipway.pipeline.cloud.task_resources import resources_of
from slipway.pipeline.cloud.tpu_training_job import training_job
from slipway.pipeline.cloud.trainable import require_trainable
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.config.data_gate import DataGateConfig, reference_folder, span_of
from slipway.pipeline.config.importable import files_imported
from slipway.pipeline.config.train import PretrainedConfig, TrainConfig
from slipway.pipeline.errors import ConfigError, raised_as
from slipway.pipeline.plan.run_request import Request
from slipway.pipeline.runs.run_target import ImageRun
from slipway.pipeline.wiring.beam_engine import check_cloud_engine
from slipway.pipeline.wiring.ingest_options import source_patterns
from slipway.pipeline.wiring.vertex_tpu_slices import IMAGE_TARGETS

_COPIES = {
    S3: "; `gcloud storage cp -r` copies from s3://",
    HF: "; `gcloud storage cp -r` copies what `hf download` fetched",
}
_CODE_IN_IMAGE = "move it below workloads/, which is part of the image, or let .dockerignore take it in"
CHECKPOINTS = "checkpoints"
"""The folder below a run's artifact root in which trainings keep their checkpoints."""


@dataclass(frozen=True)
class Target:
    """A workload as it will run in containers.

    Attributes:
        config: the workload, with the paths of the image.
        source: the folder of the data, in the image or in a store, and the patterns in it by input split.
        overrides: reasons to pass a gate despite its findings; see `slipway.pipeline.dag.build_pipeline`.
        training_job: the job that trains on other machines; see `slipway.pipeline.cloud.tpu_training_job`.
    """

    config: WorkloadConfig
    source: tuple[str, Mapping[str, str]]
    image: str
    root: str
    overrides: Mapping[str, str]
    training_job: CustomJobRequest | None = None

    @property
    def images(self) -> dict[str, str]:
        """The container images that a run needs, each with the Dockerfile target that builds it."""
        images = {self.image: ""}
        if self.training_job is not None:
            for pool in self.training_job["customJob"]["jobSpec"]["workerPoolSpecs"]:
                images[pool["containerSpec"]["imageUri"]] = IMAGE_TARGETS[self.config.train.backend]
        return images

    @property
    def places(self) -> dict[str, str]:
        """The folders in a store that a run writes or reads, by the key that names each."""
        places = {
            "cloud.root": self.root,
            "push.destination": str(self.config.push.destination),
            "data.source": self.source[0],
        }
        return {key: place for key, place in places.items() if "://" in place}

    @property
    def image_run(self) -> ImageRun:
        """This target in a form that another process and the record of a rehearsal can hold."""
        return ImageRun(
            config=self.config.model_dump_json(by_alias=True),
            source=(self.source[0], dict(self.source[1])),
            image=self.image,
            root=self.root,
            overrides=dict(self.overrides),
        )

    @classmethod
    def of_run(cls, run: ImageRun) -> Self:
        """Restore a target from its `image_run`."""
        return cls(run.settings, run.source, run.image, run.root, run.overrides)

    @classmethod
    def for_cloud_run(cls, request: Request, image: Image, *, is_sent: bool = False) -> Self:
        """Return the target of a cloud run.

        Args:
            is_sent: whether the run goes to a service; the settings of that service are then required, too.

        Raises:
            ConfigError: settings are missing, the data or the schema is on this machine only, or no machine
                can train as requested; the message lists every problem found.
        """
        config = request.workload_run.settings
        needed = needed_to_run(config)
        if is_sent:
            needed += needed_by_service(config)
        if config.train.device == "tpu" and config.cloud.service == "vertex":
            needed += [each for each in needed_by_vertex(config.cloud.vertex) if each not in needed]
        wrong = _errors_of(
            lambda: _refuse_name(config),
            lambda: _refuse_destination_here(config),
            lambda: _refuse_signing_key_here(config),
            lambda: _refuse_hook_here(config, image),
            lambda: _refuse_checkpoints_here(config),
            lambda: _check_machines(config),
            lambda: _refuse_missing_accelerator(config),
            lambda: _refuse_interpreter_here(config),
            lambda: _refuse_named_span(config),
            lambda: _schema(config, image),
            lambda: _refuse_code_here(config, image),
            lambda: _pretrained(config, image),
            lambda: _gate(config, image),
            lambda: _source(request, config, image),
        )
        require(needed, who="a cloud run", profiles=config.profiles, wrong=list(wrong))
        target = cls.with_places(
            request,
            image,
            name=str(config.cloud.image),
            root=str(config.cloud.root).rstrip("/"),
            destination=str(config.push.destination),
        )
        _require_trainable_on_gpus(target.config)
        if (job := training_job(target.config)) is None:
            return target
        # The training image has the backend in its only environment.
        train = target.config.train.model_copy(update={"interpreter": None})
        return replace(target, config=target.config.model_copy(update={"train": train}), training_job=job)

    @classmethod
    def with_places(cls, request: Request, image: Image, *, name: str, root: str, destination: str) -> Self:
        """Return the target of a run whose artifacts and models go to the given places.

        Otherwise it is like `for_cloud_run`.

        Raises:
            ConfigError: the first problem that `for_cloud_run` would report in the workload.
        """
        config = request.workload_run.settings
        _refuse_name(config)
        _refuse_interpreter_here(config)
        _refuse_named_span(config)
        return cls(
            config=config.model_copy(
                update={
                    "schema_path": _schema(config, image),
                    "push": config.push.model_copy(update={"destination": destination}),
                    "train": _train(config, image, root),
                    "data_gate": _gate(config, image),
                    "metadata": None,  # the service keeps its own
                }
            ),
            source=_source(request, config, image),
            image=name,
            root=root,
            overrides=dict(request.overrides),
        )


def _errors_of(*checks: Callable[[], object]) -> Iterable[ConfigError]:
    for check in checks:
        try:
            check()
        except ConfigError as error:
            yield error


def _refuse_name(config: WorkloadConfig) -> None:
    """Reject a name that no job may have: TFX's compiler, and the services' ids, take no underscore."""
    if "_" in config.name:
        other = config.name.replace("_", "-").rstrip("-")
        raise ConfigError(
            f"name: {config.name} cannot be the name of a job, which has lower-case letters, digits and '-'",
            hint=f"rename the workload, or give its cloud runs another name: --set name={other}",
        )


def _refuse_destination_here(config: WorkloadConfig) -> None:
    destination = config.push.destination
    if destination is not None and is_in_store(destination):
        _refuse_other_store(config, "push.destination", destination)
    elif destination is not None:
        raise ConfigError(
            f"push.destination: {destination} is a folder of this machine, which a cloud run cannot see",
            hint="name gs://BUCKET/PATH, for example in a profile: --profile prod",
        )


def _refuse_signing_key_here(config: WorkloadConfig) -> None:
    """Reject a private key given by its path: it would have to be in the image, readable by everybody."""
    if config.push.sign is not None and config.push.sign.key is not None:
        raise ConfigError(
            f"push.sign.key: {config.push.sign.key} is a file of this machine, which a cloud run cannot see",
            hint="mount the key into the Pusher's container as a secret, and name the environment variable "
            "that holds its path there: push.sign.key_env",
        )


def _refuse_hook_here(config: WorkloadConfig, image: Image) -> None:
    """Reject a hook that is, or that names, a file of the project which the image lacks.

    It would fail after each push. What is outside of the project may be the image's own.
    """
    for number, word in enumerate(config.push.hook):
        if number == 0 and "/" not in word:
            continue  # a program on the PATH
        file = image.root / word
        is_named = number == 0 or os.path.isfile(file)  # noqa: PTH113  (False for a long text)
        if (
            is_named
            and file.is_relative_to(image.root)
            and image.path_of(Path(os.path.normpath(file))) is None
        ):
            raise _not_in_image("push.hook", word, hint=_CODE_IN_IMAGE)


def _refuse_checkpoints_here(config: WorkloadConfig) -> None:
    """Reject a folder that is gone with its container, so that the next attempt would begin anew."""
    folder = config.train.checkpoint.folder
    is_path_on_kubeflow = config.cloud.service == "kubeflow" and "://" not in (folder or "://")
    if folder is not None and (is_path_on_kubeflow or not outlives_its_container(folder)):
        raise ConfigError(
            f"train.checkpoint.folder: {folder} would be in the container of one attempt, and gone with it",
            hint="name gs://BUCKET/PATH, or null, for example in a profile: null keeps them below cloud.root",
        )


def _check_machines(config: WorkloadConfig) -> None:
    """Reject machines that the service's tasks cannot use, before what such machines would need."""
    if config.cloud.service == "kubeflow":
        check_machines(config)
    check_cloud_engine(config.beam, config.cloud)


def _refuse_named_span(config: WorkloadConfig) -> None:
    """Reject a named span: Vertex AI's resolvers find only the latest artifact and blessed model."""
    if span_of(config.data_gate.reference) is not None:
        raise ConfigError(
            f"data_gate.reference: {config.data_gate.reference} can be looked up by a run on this machine, "
            "not by one in a cloud",
            hint="name that span's statistics, the folder of StatisticsGen's artifact on gs://: "
            "--set data_gate.reference=gs://...; or compare with last_blessed or last_passed",
        )


def _refuse_missing_accelerator(config: WorkloadConfig) -> None:
    """Reject train.device gpu without a GPU: the run would fail only after an hour of other tasks."""
    trainer = config.cloud.tasks.get("Trainer", config.cloud.resources)
    asked = trainer.accelerator or config.cloud.resources.accelerator
    if config.train.device == "gpu" and asked is None:
        raise ConfigError(
            "train.device is gpu, but the Trainer's container asks for no accelerator",
            hint="name it as the service does: --set cloud.tasks.Trainer.accelerator=...",
        )


def _require_trainable_on_gpus(config: WorkloadConfig) -> None:
    """Reject what the training refuses on as many GPUs as its container gets; torch takes one of them."""
    if config.train.device == "gpu":
        asked = int(resources_of("Trainer", config.cloud)["accelerator"]["count"])
        count = 1 if config.train.backend == "torch" else asked
        where = f"{count} GPUs" if count > 1 else "a GPU"
        require_trainable(
            config.train, kind="gpu", devices=count, where=f"{where} of the Trainer's container"
        )


def _refuse_interpreter_here(config: WorkloadConfig) -> None:
    train = config.train
    if train.interpreter is not None and "/" in train.interpreter and train.device != "tpu":
        raise ConfigError(
            f"train.interpreter: {train.interpreter} is on this machine only, but the image has one Python",
            hint="--set train.interpreter=null and a backend that the image has",
        )


def _schema(config: WorkloadConfig, image: Image) -> str | None:
    if config.schema_path is None:
        return None
    schema = image.path_of(Path(config.schema_path))
    if schema is None:
        raise _not_in_image("schema", config.schema_path)
    return schema


def _refuse_code_here(config: WorkloadConfig, image: Image) -> None:
    """Reject functions of modules that the image lacks: their task would fail at its import."""
    named = {
        "transform.preprocessing_fn": config.transform.preprocessing_fn,
        "train.model": config.train.model,
        **{f"evaluate.own_metrics.{n}.class": m.class_path for n, m in config.evaluate.own_metrics.items()},
        "cloud.exit_handler": config.cloud.exit_handler,
    }
    for key, path in named.items():
        for file in files_imported(path, root=image.root) if path else ():
            # If a folder is a link, the image has the link, and the files in the folder that it leads to.
            real, root = file.resolve(), image.root.resolve()
            own = image.root / real.relative_to(root) if real.is_relative_to(root) else real
            if image.path_of(own) is None:
                raise _not_in_image(key, str(file), hint=_CODE_IN_IMAGE)


def _pretrained(config: WorkloadConfig, image: Image) -> PretrainedConfig | None:
    """Return the pretrained weights, with a path relative to the project's root here and in the image."""
    given = config.train.pretrained
    if given is None or is_remote(given.path):
        return given
    file = image.path_of(image.root / given.path)
    if file is None or not file.startswith(f"{IMAGE_ROOT}/"):
        raise _not_in_image(PRETRAINED, given.path)
    return given.model_copy(update={"path": file.removeprefix(f"{IMAGE_ROOT}/")})


def _gate(config: WorkloadConfig, image: Image) -> DataGateConfig:
    """Return the data gate's settings, with the folders of statistics as they are in the image."""
    gate = config.data_gate
    folders = {"reference": reference_folder(gate.reference), "serving_statistics": gate.serving_statistics}
    there: dict[str, str] = {}
    for key, folder in folders.items():
        if folder and not outlives_its_container(folder):
            if (path := image.path_of(Path(folder))) is None:
                raise _not_in_image(f"data_gate.{key}", folder)
            there[key] = path
    return gate.model_copy(update=there)


def _train(config: WorkloadConfig, image: Image, root: str) -> TrainConfig:
    """Return the training settings, with a checkpoint folder that the next attempt finds."""
    train = config.train.model_copy(update={"pretrained": _pretrained(config, image)})
    if train.checkpoint.folder is not None:
        return train
    checkpoint = replace(train.checkpoint, folder=f"{root}/{CHECKPOINTS}/{config.name}")
    return train.model_copy(update={"checkpoint": checkpoint})


def _source(request: Request, config: WorkloadConfig, image: Image) -> tuple[str, Mapping[str, str]]:
    source = request.workload_run.source
    refuse_sql(config)
    if config.data.query is not None:
        return source.directory, source.patterns
    if is_elsewhere(source.directory):
        _refuse_other_store(config, "data.source", source.directory)
        return source.directory, source.patterns
    with raised_as(ConfigError, SourceError):  # files may be gone since the request was checked
        found = resolve_sources(source_patterns(config.data), root=image.root, file_format=config.data.format)
    for file in found.files:
        if image.path_of(file) is None:
            raise _not_in_image("data.source", str(file))
    directory = image.path_of(Path(source.directory))
    if directory is None:
        raise _not_in_image("data.source", source.directory)
    return directory, source.patterns


def _refuse_other_store(config: WorkloadConfig, key: str, address: str) -> None:
    """Reject an address that tasks do not open: on Vertex AI they go through TFX and TensorFlow."""
    is_kubeflow = config.cloud.service == "kubeflow"
    if address.startswith(GS) or (is_kubeflow and is_in_store(address)):
        return
    service, known = ("Kubeflow", "gs://, s3:// and az://") if is_kubeflow else ("Vertex AI", "gs://")
    if key == "data.source":
        copies = next((how for scheme, how in _COPIES.items() if address.startswith(scheme)), "")
        hint = f"name gs://BUCKET/PATH in the cloud's profile{copies}"
    else:
        hint = (
            "name gs://BUCKET/PATH in the cloud's profile; only tasks on Kubeflow, cloud.service: kubeflow, "
            "push to s3:// and az://"
        )
    raise ConfigError(
        f"{key}: {address} can be used by a run on this machine, not by one on {service}, whose tasks know "
        f"{known} only",
        hint=hint,
    )


def refuse_sql(config: WorkloadConfig) -> None:
    """Reject a SQL source, whose rows are kept on this machine.

    Raises:
        ConfigError: the workload has a SQL source.
    """
    if config.data.format == SQL:
        raise ConfigError(
            "data.format: sql runs on this machine only: a job in the cloud has neither its files nor "
            "a place to keep its rows",
            hint="`run NAME --to Ingest` keeps the rows in queries/NAME/ of the output folder: put these on "
            "gs://, and name them there: data: {source: gs://..., format: parquet}",
        )


def _not_in_image(
    key: str, path: str, *, hint: str = "put it on gs://, or below workloads/, which is part of the image"
) -> ConfigError:
    return ConfigError(
        f"{key}: {path} is on this machine only: it is not in the image (.dockerignore says what is)",
        hint=hint,
    )
