"""What the stock TFX Trainer calls: `run_fn='components.trainer.run_fn.run_fn'`.

Lays out the training job, has a process of its own carry it out, and exports the SavedModel from the weights
that come back.
"""

import json
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components import kept_state, progress
from components.errors import ComponentError
from components.trainer.checkpoint_storage import storage
from components.trainer.export import ServedModel, require_tensorflow_backend
from components.trainer.features import Feature
from components.trainer.job import GROUPS, HISTORY_FILE, RESULT_FILE, WEIGHTS_FILE, TrainingJob
from components.trainer.loop.preemption import PREEMPTED_EXIT_CODE
from components.trainer.process import TrainingPreemptedError, TrainingProcess
from components.trainer.settings.compute import ComputeSettings
from components.trainer.settings.group import SettingsGroup
from components.trainer.settings.step import StepSettings
from components.trainer.settings.watch import WatchSettings
from components.trainer.trained_model import load_weights
from components.trainer.user_model import build_model, describe, source_root

SETTINGS = frozenset(
    {"model", "hyperparameters", "batch_size", "epochs", "seed", "interpreter", "label", "raw_label"}
)
FLAT_GROUPS: dict[str, type[SettingsGroup]] = {
    "compute": ComputeSettings,
    "step": StepSettings,
    "watch": WatchSettings,
}
"""Groups of the job whose settings stand directly in the workload's `train`; the others are its sections."""
SECTIONS = {name: group for name, group in GROUPS.items() if name not in FLAT_GROUPS}
ALL_SETTINGS = SETTINGS.union(SECTIONS, *(group.names() for group in FLAT_GROUPS.values()))
SERVING_ENVIRONMENT = "SERVING"
LOG_FOLDER = "tensorboard"
RESTARTS_WITHOUT_PROGRESS = 3
"""How often a training that was told to end is started again from the same step."""


def run_fn(fn_args: Any) -> None:
    """Trains and exports.

    Args:
        fn_args: `tfx.components.FnArgs` with transform_output, schema_path, train_files, eval_files,
            serving_model_dir, model_run_dir, and in custom_config the plain values
            model: dotted path of `build_model`;
            hyperparameters: a mapping for it;
            batch_size, epochs, seed: whole numbers;
            interpreter: path of the Python that trains; None: this one;
            label: the label's name among the transformed columns;
            raw_label: the raw column that it is made of, which no request carries;
            and those of `FLAT_GROUPS` and `SECTIONS`.

    Raises:
        ComponentError: a setting, the data or the user's model is wrong, or the training process died.
    """
    settings = _settings(fn_args.custom_config)
    require_tensorflow_backend()
    transform = tft.TFTransformOutput(fn_args.transform_output)
    with tempfile.TemporaryDirectory(prefix="training-") as folder:
        job = TrainingJob(
            train_files=_matching(fn_args.train_files),
            eval_files=_matching(fn_args.eval_files),
            features=features_of(transform.transformed_metadata.schema),
            label=settings["label"],
            model=settings["model"],
            hyperparameters=dict(settings["hyperparameters"]),
            batch_size=settings["batch_size"],
            epochs=settings["epochs"],
            seed=settings["seed"],
            output_dir=folder,
            log_dir=f"{fn_args.model_run_dir}/{LOG_FOLDER}",
            **_groups(settings),
        )
        job = replace(job, checkpoint_dir=_checkpoint_dir(job))
        job_file = Path(folder, "job.json")
        job_file.write_text(job.to_json(), encoding="utf-8")
        # While it starts and trains, build what will be exported: the same model, not yet trained.
        served = _carry_out(
            job,
            job_file,
            interpreter=settings["interpreter"],
            meanwhile=lambda: _served_model(job, transform, fn_args.schema_path, settings["raw_label"]),
        )
        load_weights(served.model, Path(folder, WEIGHTS_FILE))
        tf.io.gfile.makedirs(fn_args.model_run_dir)
        for name in (job_file.name, HISTORY_FILE, RESULT_FILE, WEIGHTS_FILE):
            tf.io.gfile.copy(str(Path(folder, name)), f"{fn_args.model_run_dir}/{name}", overwrite=True)
    served.save(fn_args.serving_model_dir)
    _forget_checkpoints(job)


def _carry_out(
    job: TrainingJob, job_file: Path, *, interpreter: str | None, meanwhile: Callable[[], ServedModel]
) -> ServedModel:
    """Has the job carried out, again from where it was each time that process is told to end.

    Raises:
        SystemExit: this process was told to end; the training has saved what it could.
    """
    served, step, trials = None, -1, 0
    while True:
        with (
            _leaves_on_sigterm(),
            TrainingProcess(
                job_file,
                import_roots=[source_root(job.model)],
                backend=job.compute.backend,
                interpreter=interpreter,
            ) as process,
        ):
            served = served or meanwhile()
            try:
                process.wait(show=_show)
            except TrainingPreemptedError as error:
                trials = 0 if error.step > step else trials + 1
                step = error.step
                if trials >= RESTARTS_WITHOUT_PROGRESS:
                    raise
                progress.report(f"told to end after step {step}, starts again")
            else:
                return served


@contextmanager
def _leaves_on_sigterm() -> Iterator[None]:
    """SIGTERM ends this process in order: the training process is told, too, and has time to save."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can listen
        return

    def leave(*_: object) -> None:
        sys.exit(PREEMPTED_EXIT_CODE)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _checkpoint_dir(job: TrainingJob) -> str | None:
    """Where the job's checkpoints lie: in the folder for them, else where the engine keeps them."""
    folder = job.checkpoint.folder
    if folder is None:
        kept = kept_state.state_folder()
        return str(kept) if kept else None
    own = f"{folder.rstrip('/')}/{job.identity[:16]}"
    if "://" not in own:
        Path(own).mkdir(parents=True, exist_ok=True)
    return own


def _forget_checkpoints(job: TrainingJob) -> None:
    """Removes them where the engine does not: a later training of the same job begins at the beginning."""
    if job.checkpoint.folder is None or job.checkpoint_dir is None:
        return
    files = storage(job.checkpoint_dir)
    for name in files.names():
        files.remove(name)


def features_of(schema: schema_pb2.Schema) -> tuple[Feature, ...]:
    """The features that a transformed schema describes.

    Raises:
        ComponentError: a column is a string or sparse, which no accelerator takes.
    """
    return tuple(_feature(column) for column in schema.feature)


def _feature(column: schema_pb2.Feature) -> Feature:
    dtypes = {schema_pb2.INT: "int64", schema_pb2.FLOAT: "float32"}
    if not column.HasField("shape"):
        raise ComponentError(
            f"the transformed column {column.name} is sparse", hint="make it dense in preprocessing_fn"
        )
    domain = column.int_domain
    counted = column.HasField("int_domain") and domain.is_categorical and domain.min == 0 and domain.max >= 0
    return Feature(
        name=column.name,
        dtype=dtypes.get(column.type, schema_pb2.FeatureType.Name(column.type)),
        shape=tuple(int(dimension.size) for dimension in column.shape.dim) or (1,),
        categories=int(domain.max) + 1 if counted else None,
    )


def serving_columns(schema: schema_pb2.Schema, raw_label: str) -> tuple[str, ...]:
    """The raw columns that a request carries: the schema's SERVING environment, never the label's."""
    default = SERVING_ENVIRONMENT in schema.default_environment or not schema.default_environment
    return tuple(
        column.name
        for column in schema.feature
        if column.name != raw_label
        and SERVING_ENVIRONMENT not in column.not_in_environment
        and (default or SERVING_ENVIRONMENT in column.in_environment)
    )


def _served_model(job: TrainingJob, transform: Any, schema_path: str, raw_label: str) -> ServedModel:
    if not schema_path:
        raise ComponentError(
            "the Trainer got no schema", hint="wire schema= of the Trainer in pipeline/dag.py"
        )
    with tf.io.gfile.GFile(schema_path) as file:
        schema = text_format.Parse(file.read(), schema_pb2.Schema())
    try:
        model = build_model(job.model, job.inputs, job.hyperparameters)
    except ComponentError:
        raise
    except Exception as error:
        raise ComponentError(f"{job.model} failed: {describe(error, job.model)}") from error
    return ServedModel(
        model=model,
        transform=transform,
        features=job.inputs,
        serving_columns=serving_columns(schema, raw_label),
    )


def _settings(custom_config: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The trainer's settings, all of them and no other."""
    found = set(custom_config or {})
    if not custom_config or found != ALL_SETTINGS:
        raise ComponentError(
            f"the Trainer's custom_config lacks {sorted(ALL_SETTINGS - found)} and does not know "
            f"{sorted(found - ALL_SETTINGS)}"
        )
    return custom_config


def _groups(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The job's groups of settings."""
    return {name: group.from_json(settings[name]) for name, group in SECTIONS.items()} | {
        name: group.from_json({key: settings[key] for key in group.names()})
        for name, group in FLAT_GROUPS.items()
    }


def _matching(patterns: Iterable[str]) -> tuple[str, ...]:
    """The files behind TFX's file patterns, in order."""
    return tuple(sorted(file for pattern in patterns for file in tf.io.gfile.glob(pattern)))


def _show(line: str) -> None:
    """Progress goes to the node's output as it comes, and in words beside the running node."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    try:
        told = json.loads(line)
    except ValueError:
        return  # what a library printed
    if isinstance(told, dict) and told.get("event") == "resumed":
        progress.report(f"goes on after step {told['step']}")
    if isinstance(told, dict) and told.get("event") == "devices":
        progress.report(told["words"])
    if isinstance(told, dict) and told.get("event") == "step":
        progress.report(f"loss {told['loss']:.4f}", done=told["step"], total=told["steps"])
