"""Lays out a training job from the settings of TFX's components, the transform's features and the files."""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy.typing as npt
import tensorflow as tf

from slipway.components.errors import ComponentError
from slipway.components.even_sample import even_sample
from slipway.components.example_records import records
from slipway.components.trainer.input.parsing import parsed_records
from slipway.components.trainer.input.targets import Targets
from slipway.components.trainer.job import GROUPS, CustomJobRequest, TrainingJob
from slipway.components.trainer.labels import columns_of
from slipway.components.trainer.search_space import chosen
from slipway.components.trainer.settings.compute import ComputeSettings
from slipway.components.trainer.settings.group import SettingsGroup
from slipway.components.trainer.settings.step import StepSettings
from slipway.components.trainer.settings.watch import WatchSettings
from slipway.components.trainer.transformed_features import features_of, has_numbers, require_known

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
        "weight",
        "group",
        "class_weights",
        "pass_through",
    }
)
FLAT_GROUPS: dict[str, type[SettingsGroup]] = {
    "compute": ComputeSettings,
    "step": StepSettings,
    "watch": WatchSettings,
}
"""Groups of the job whose settings are direct keys of the workload's `train`; the others are its sections."""
TRAINING_JOB = "training_job"
"""The setting that names other machines to train on."""
PRETRAINED = "pretrained"
"""The setting that names a weights file to start from; optional."""
SECTIONS = {name: group for name, group in GROUPS.items() if name not in FLAT_GROUPS}
ALL_SETTINGS = SETTINGS.union(SECTIONS, *(group.names() for group in FLAT_GROUPS.values()))


def lay_out(
    settings: Mapping[str, Any],
    *,
    files: tuple[Iterable[str], Iterable[str]],
    transform: Any,
    hyperparameters: Mapping[str, object],
    folder: Path,
) -> TrainingJob:
    """Return the job that the settings describe.

    Args:
        settings: as `read_settings` returns them.
        files: patterns of the transformed examples of the train and of the eval split.
        transform: `tft.TFTransformOutput` of the Transform node.
        folder: for the results of the training.

    Raises:
        ComponentError: a setting or a transformed column breaks a rule.
    """
    train_files, eval_files = files
    transformed = transform.transformed_metadata.schema
    others = [name for name in settings["pass_through"] if name != settings["weight"]]
    require_known(others, raw=transform.raw_metadata.schema, transformed=transformed)
    return TrainingJob(
        train_files=_matching(train_files),
        eval_files=_matching(eval_files),
        features=features_of(
            transformed,
            images=settings["images"],
            apart=set(settings["pass_through"]) - {*columns_of(settings["label"]), settings["weight"]},
            weight=settings["weight"],
        ),
        label=settings["label"],
        weight=settings["weight"],
        group=settings["group"] if has_numbers(transformed, settings["group"]) else None,
        class_weights=settings["class_weights"],
        pretrained=settings.get(PRETRAINED),
        model=settings["model"],
        hyperparameters=dict(hyperparameters),
        batch_size=settings["batch_size"],
        epochs=settings["epochs"],
        seed=settings["seed"],
        output_dir=str(folder),
        **_groups(settings),
    )


def tuned_values(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values of a KerasTuner `HyperParameters` config from a Tuner node; {} without one."""
    return {} if config is None else {name: chosen(value) for name, value in config["values"].items()}


def some_rows(
    files: Collection[str], job: TrainingJob, *, rows: int
) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[Any], npt.NDArray[Any] | None]:
    """Return rows spread evenly over files: arrays by feature, their labels, and their weights if any.

    Args:
        rows: the most rows to return, >= 1.

    Raises:
        ComponentError: the files hold no row, or a row lacks a feature; or there are several outputs.
    """
    if not isinstance(job.label, str):
        raise ComponentError(
            "train.exports are of models with one output", hint="remove train.exports, or name one label"
        )
    taken = even_sample(chain.from_iterable(chain.from_iterable(map(records, files))), most=rows)
    if not taken:
        raise ComponentError(f"there are no examples in {', '.join(files)}")
    features, label, *weights = Targets.for_evaluation(job).split(parsed_records(taken, job.features))
    arrays = {name: values.numpy() for name, values in features.items()}
    return arrays, label.numpy(), weights[0].numpy() if weights else None


def read_settings(
    custom_config: Mapping[str, Any] | None,
) -> tuple[Mapping[str, Any], CustomJobRequest | None]:
    """Return the trainer's settings, which must be complete, and the machines to train on; None: this one."""
    settings = dict(custom_config or {})
    machines = settings.pop(TRAINING_JOB, None)
    pretrained = settings.pop(PRETRAINED, None)
    if set(settings) != ALL_SETTINGS:
        raise ComponentError(
            f"the Trainer's custom_config lacks {sorted(ALL_SETTINGS - set(settings))} and does not know "
            f"{sorted(set(settings) - ALL_SETTINGS)}"
        )
    if pretrained is not None:
        settings[PRETRAINED] = pretrained
    return settings, machines


def _groups(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the job's groups of settings."""
    return {name: group.from_json(settings[name]) for name, group in SECTIONS.items()} | {
        name: group.from_json({key: settings[key] for key in group.names()})
        for name, group in FLAT_GROUPS.items()
    }


def _matching(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the files that match TFX's file patterns, in order."""
    return tuple(sorted(file for pattern in patterns for file in tf.io.gfile.glob(pattern)))
