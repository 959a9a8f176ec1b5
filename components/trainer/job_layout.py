"""The training job as TFX's components ask for it: their settings, the transform's features, the files."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2

from components.errors import ComponentError
from components.trainer.features import Feature
from components.trainer.input.parsing import parsed, records_of_all, split_label
from components.trainer.job import GROUPS, TrainingJob
from components.trainer.settings.compute import ComputeSettings
from components.trainer.settings.group import SettingsGroup
from components.trainer.settings.step import StepSettings
from components.trainer.settings.watch import WatchSettings

SETTINGS = frozenset(
    {
        "model",
        "hyperparameters",
        "batch_size",
        "epochs",
        "seed",
        "interpreter",
        "exports",
        "images",
        "label",
        "raw_label",
    }
)
FLAT_GROUPS: dict[str, type[SettingsGroup]] = {
    "compute": ComputeSettings,
    "step": StepSettings,
    "watch": WatchSettings,
}
"""Groups of the job whose settings stand directly in the workload's `train`; the others are its sections."""
TRAINING_JOB = "training_job"
"""The setting that names other machines to train on."""
SECTIONS = {name: group for name, group in GROUPS.items() if name not in FLAT_GROUPS}
ALL_SETTINGS = SETTINGS.union(SECTIONS, *(group.names() for group in FLAT_GROUPS.values()))


def lay_out(
    settings: Mapping[str, Any],
    *,
    files: tuple[Iterable[str], Iterable[str]],
    transform: Any,
    hyperparameters: Mapping[str, Any],
    folder: Path,
) -> TrainingJob:
    """The job that the settings describe.

    Args:
        settings: as `read_settings` returns them.
        files: patterns of the transformed examples, of the train and of the eval split.
        transform: `tft.TFTransformOutput` of the Transform node.
        hyperparameters: for the model.
        folder: for what the training leaves.

    Raises:
        ComponentError: a setting or a transformed column breaks a rule.
    """
    train_files, eval_files = files
    return TrainingJob(
        train_files=_matching(train_files),
        eval_files=_matching(eval_files),
        features=features_of(transform.transformed_metadata.schema, images=settings["images"]),
        label=settings["label"],
        model=settings["model"],
        hyperparameters=dict(hyperparameters),
        batch_size=settings["batch_size"],
        epochs=settings["epochs"],
        seed=settings["seed"],
        output_dir=str(folder),
        **_groups(settings),
    )


def tuned_values(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values of a KerasTuner `HyperParameters` config, as a Tuner node leaves it; {} without one."""
    return {} if config is None else {name: untuned(value) for name, value in config["values"].items()}


def untuned(value: Any) -> Any:
    """A value as the workload names it: KerasTuner knows no lists, so they travel as JSON texts."""
    return json.loads(value) if isinstance(value, str) and value.startswith("[") else value


def first_rows(
    files: Iterable[str], job: TrainingJob, *, rows: int
) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[Any]]:
    """The first rows of some files, as arrays by feature, and their labels."""
    records = records_of_all(tuple(files)).take(rows)
    columns = next(iter(parsed(records, job.features, rows=rows)))
    features, label = split_label(columns, job.label)
    return {name: values.numpy() for name, values in features.items()}, label.numpy()


def features_of(
    schema: schema_pb2.Schema, *, images: Mapping[str, Sequence[int]] | None = None
) -> tuple[Feature, ...]:
    """The features that a transformed schema describes.

    Args:
        schema: of the transformed examples.
        images: by the name of a column of bytes, the shape of the image in it, [height, width, channels].

    Raises:
        ComponentError: a column is a string or sparse, which no accelerator takes; or an image is no column
            of bytes.
    """
    images = images or {}
    texts = {column.name for column in schema.feature if column.type == schema_pb2.BYTES}
    if wrong := sorted(set(images) - texts):
        raise ComponentError(
            f"train.images names {wrong[0]}, which is no transformed column of bytes; there are "
            f"{', '.join(sorted(texts)) or 'none'}",
            hint="let preprocessing_fn return components.trainer.pixels.raw_pixels(image)",
        )
    return tuple(
        Feature(name=column.name, dtype="uint8", shape=tuple(images[column.name]))
        if column.name in images
        else _feature(column)
        for column in schema.feature
    )


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


def read_settings(
    custom_config: Mapping[str, Any] | None,
) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """The trainer's settings, all of them and no other; and the machines to train on, None: this one."""
    settings = dict(custom_config or {})
    machines = settings.pop(TRAINING_JOB, None)
    if set(settings) != ALL_SETTINGS:
        raise ComponentError(
            f"the Trainer's custom_config lacks {sorted(ALL_SETTINGS - set(settings))} and does not know "
            f"{sorted(set(settings) - ALL_SETTINGS)}"
        )
    return settings, machines


def _groups(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The job's groups of settings."""
    return {name: group.from_json(settings[name]) for name, group in SECTIONS.items()} | {
        name: group.from_json({key: settings[key] for key in group.names()})
        for name, group in FLAT_GROUPS.items()
    }


def _matching(patterns: Iterable[str]) -> tuple[str, ...]:
    """The files behind TFX's file patterns, in order."""
    return tuple(sorted(file for pattern in patterns for file in tf.io.gfile.glob(pattern)))
