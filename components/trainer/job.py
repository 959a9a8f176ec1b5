"""The training job: everything the training process needs to know, in one JSON file.

The file is the boundary between the pipeline and training. The process that reads it may run in another
interpreter on another machine, so it holds only plain values and paths.
"""

import hashlib
import json
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypedDict

from slipway.components.errors import ComponentError
from slipway.components.setting_fields import broken_rule, setting
from slipway.components.trainer.buckets import Buckets
from slipway.components.trainer.features import Feature
from slipway.components.trainer.labels import columns_of, is_multi_label
from slipway.components.trainer.settings.blow_up import BlowUpSettings
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.compute import ComputeSettings
from slipway.components.trainer.settings.early_stopping import EarlyStoppingSettings
from slipway.components.trainer.settings.group import SettingsGroup
from slipway.components.trainer.settings.input_cache import InputSettings
from slipway.components.trainer.settings.learning_rate import LearningRateSettings
from slipway.components.trainer.settings.pretrained import Pretrained
from slipway.components.trainer.settings.step import StepSettings
from slipway.components.trainer.settings.watch import WatchSettings

JOB_FILE = "job.json"
WEIGHTS_FILE = "model.weights.h5"
HISTORY_FILE = "history.json"
RESULT_FILE = "result.json"
BALANCED = "balanced"
"""The value of `class_weights` that gives every class of the train split the same total weight."""
MOST_CLASSES = 10_000
"""The exclusive upper limit of the codes of classes with a weight."""
GROUPS: dict[str, type[SettingsGroup]] = {
    "compute": ComputeSettings,
    "step": StepSettings,
    "learning_rate": LearningRateSettings,
    "input": InputSettings,
    "checkpoint": CheckpointSettings,
    "early_stopping": EarlyStoppingSettings,
    "blow_up": BlowUpSettings,
    "watch": WatchSettings,
}
"""The groups of settings, by the name of their field in `TrainingJob`."""


class CustomJobRequest(TypedDict):
    """A training job on other machines, and where to send it; see `remote.vertex.VertexTraining`.

    `customJob` is the JSON of Vertex AI's CustomJob, whose names its client checks.
    """

    project: str
    region: str
    endpoint: str
    customJob: dict[str, Any]


_JSON_VALUES: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("train_files", "eval_files", "features"), (list, "a list")),
    **dict.fromkeys(("model", "output_dir"), (str, "a string")),
    "label": (str | dict | list, "a string, a mapping or a list"),
    **dict.fromkeys(("checkpoint_dir", "log_dir", "weight", "group"), (str | None, "a string or null")),
    "class_weights": (dict | str | None, "a mapping, balanced or null"),
    "pretrained": (dict | None, "a mapping or null"),
    "hyperparameters": (dict, "a mapping"),
}


CLASS_CODE_WORDS = f"code of a class (0, 1, ... below {MOST_CLASSES:,})"


def is_class_code(text: str) -> bool:
    """Return True if a text is a plainly written class code: "7", but neither "07" nor "-1"."""
    return text.isascii() and text.isdecimal() and str(int(text[:9])) == text and int(text) < MOST_CLASSES


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """The model to train, the data to train on, and where the results go.

    Attributes:
        train_files: TFRecord files of transformed tf.Examples; names ending in .gz are gzip.
        eval_files: the same, for the metrics after each epoch; empty: no such metrics.
        features: every transformed column that the model may use, and the label.
        label: the name of the feature to predict, or several, see `labels`.
        weight: the name of the feature with each example's weight; None: equal weights.
        group: the name of the transformed column with the number of each row's group, which is not among the
            features; a model that is fitted at once gets it, and early stopping holds out whole groups. None:
            rows have no groups.
        class_weights: by class code of the label, as text, the factor that its examples are weighted with in
            training; `BALANCED`: all classes have the same total weight; None: no factors.
        model: dotted path of a function `build_model(features, hyperparameters)` that returns a compiled
            `keras.Model`.
        hyperparameters: passed to that function; JSON values.
        output_dir: an existing folder for the weights, the history and the result.
        pretrained: the weights file to start from, see `pretrained.Pretrained`; None: none.
        checkpoint_dir: where checkpoints are kept and resumed from, an existing folder or SCHEME://...; None:
            no checkpoints.
        log_dir: where scalars for TensorBoard and profiles go; None: nowhere.
        blow_up: the reaction to a loss that is no longer a number.

    Raises:
        ComponentError: a value breaks one of these rules.
    """

    train_files: tuple[str, ...]
    eval_files: tuple[str, ...]
    features: tuple[Feature, ...]
    label: str | dict[str, str] | list[str]
    model: str
    hyperparameters: dict[str, object]
    batch_size: int = setting(MISSING, "Examples per training step.", ge=1)
    epochs: int = setting(MISSING, "Passes over the training split.", ge=1)
    seed: int = setting(MISSING, "Seed of the weights and of the order of the examples.", ge=0, lt=2**31)
    output_dir: str
    weight: str | None = None
    group: str | None = None
    class_weights: dict[str, float] | str | None = None
    pretrained: Pretrained | None = None
    checkpoint_dir: str | None = None
    log_dir: str | None = None
    compute: ComputeSettings = field(default_factory=ComputeSettings)
    step: StepSettings = field(default_factory=StepSettings)
    learning_rate: LearningRateSettings = field(default_factory=LearningRateSettings)
    input: InputSettings = field(default_factory=InputSettings)
    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)
    early_stopping: EarlyStoppingSettings = field(default_factory=EarlyStoppingSettings)
    blow_up: BlowUpSettings = field(default_factory=BlowUpSettings)
    watch: WatchSettings = field(default_factory=WatchSettings)

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.metadata and (rule := broken_rule(getattr(self, each.name), each)):
                raise ComponentError(f"{each.name} ({getattr(self, each.name)!r}) {rule}")
        if not self.train_files:
            raise ComponentError(
                "the training job names no train_files", hint="the train split of the examples is empty"
            )
        names = [feature.name for feature in self.features]
        if len(set(names)) != len(names):
            raise ComponentError(f"the training job names a feature twice: {', '.join(sorted(names))}")
        for label in self.labels:
            if label not in names:
                raise ComponentError(
                    f"label {label!r} is not a transformed feature; there are {', '.join(sorted(names))}",
                    hint="name the label as preprocessing_fn returns it",
                )
        self._check_labels()
        self._check_weights()
        Buckets.of(self.input.bucket_by_length, self.inputs)
        if not self.inputs:
            told = ", ".join(map(repr, self.labels))
            raise ComponentError(f"the training job has only the label {told} and no feature")
        if not all(part.isidentifier() for part in self.model.split(".")) or "." not in self.model:
            raise ComponentError(
                f"model {self.model!r} is not the dotted path of a function",
                hint="write it as package.module.function, for instance workloads.taxi.model.build_model",
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of all features to predict."""
        return columns_of(self.label)

    @property
    def label_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each label in one row, by the name of its feature."""
        return {each.name: each.shape for each in self.features if each.name in self.labels}

    @property
    def inputs(self) -> dict[str, Feature]:
        """The features by name, without label and weight: what `build_model` gets."""
        apart = (*self.labels, self.weight)
        return {feature.name: feature for feature in self.features if feature.name not in apart}

    @property
    def buckets(self) -> Buckets:
        """The lengths to which batches are cut; of no column without `train.input.bucket_by_length`."""
        return Buckets.of(self.input.bucket_by_length, self.inputs)

    @property
    def trained_inputs(self) -> dict[str, Feature]:
        """The features by name as `build_model` gets them for training: bucketed ones have any length."""
        return self.buckets.any_length(self.inputs)

    def _check_labels(self) -> None:
        if not is_multi_label(self.label):
            return
        shapes = {each.name: each.shape for each in self.features}
        for name in self.labels:
            if shapes[name] != (1,):
                raise ComponentError(
                    f"label {name!r} has the shape {list(shapes[name])}, but each of several labels of a "
                    "row must be one 0 or 1",
                    hint="return a column for each label from preprocessing_fn, or name this one alone",
                )

    def _check_weights(self) -> None:
        if isinstance(self.class_weights, str) and self.class_weights != BALANCED:
            raise ComponentError(f"class_weights ({self.class_weights!r}) is a mapping or {BALANCED}")
        for code in self.class_weights if isinstance(self.class_weights, dict) else ():
            if not is_class_code(code):
                raise ComponentError(f"class_weights names {code!r}, which is not a {CLASS_CODE_WORDS}")
        if self.class_weights is not None and not isinstance(self.label, str):
            raise ComponentError(
                f"class weights need one label, but there are {len(self.labels)}",
                hint="remove train.class_weights; transform.weight can weigh the rows",
            )
        if self.weight is None:
            return
        if self.weight in self.labels:
            raise ComponentError(f"the label {self.weight!r} cannot be the weight as well")
        found = next((feature for feature in self.features if feature.name == self.weight), None)
        if found is None:
            raise ComponentError(
                f"weight {self.weight!r} is not a transformed feature; there are "
                f"{', '.join(sorted(feature.name for feature in self.features))}",
                hint=f"let preprocessing_fn return it, for example {{..., {self.weight!r}: inputs[...]}}",
            )
        if found.shape != (1,) or found.dtype == "uint8":
            raise ComponentError(
                f"weight {self.weight!r} is {found.dtype} {list(found.shape)}, but must be one number per row"
            )

    @property
    def serves_best(self) -> bool:
        """Whether the best epoch's weights are exported instead of the last one's."""
        return self.checkpoint.serve_best or self.early_stopping.patience is not None

    @property
    def identity(self) -> str:
        """A digest of what is trained, on what and how, but not of where files go or what is recorded.

        By which metric an epoch is the best is part of it: a checkpoint holds the best epoch's value. Groups
        are where they decide what is held out.
        """
        values = json.loads(self.to_json())
        for name in ("output_dir", "checkpoint_dir", "log_dir", "checkpoint", "watch", "group"):
            del values[name]
        by, usual = self.checkpoint, CheckpointSettings()
        if (best := [by.best_metric, by.best_goal]) != [usual.best_metric, usual.best_goal]:
            values["best"] = best  # only then, so that checkpoints of earlier releases are still found
        if self.group is not None and self.early_stopping.patience is not None:
            values["group"] = self.group
        if (pretrained := values.pop("pretrained")) is not None:
            values["pretrained"] = pretrained["sha256"]  # wherever the file is
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def to_json(self) -> str:
        """Return the text of the job file; `from_json` reads it back."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values["features"] = [feature.to_json() for feature in self.features]
        values.update({name: values[name].to_json() for name in GROUPS})
        return json.dumps(values, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "TrainingJob":
        """Read what `to_json` wrote.

        Raises:
            ComponentError: the text is not JSON, a key is missing or unknown, or a value breaks a rule.
        """
        try:
            values = json.loads(text)
        except ValueError as error:
            raise ComponentError(f"the training job is not JSON: {error}") from error
        if isinstance(values, dict):
            values = {"pretrained": None, "group": None, **values}  # older job files lack them
        known = {each.name for each in fields(cls)}
        if not isinstance(values, dict) or set(values) != known:
            found = set(values) if isinstance(values, dict) else set()
            raise ComponentError(
                f"the training job lacks {sorted(known - found)} and does not know {sorted(found - known)}"
            )
        for name, (kind, words) in _JSON_VALUES.items():
            if not isinstance(values[name], kind):
                raise ComponentError(f"{name} of the training job must be {words}, not {values[name]!r}")
        return cls(
            **{
                **values,
                "train_files": tuple(values["train_files"]),
                "eval_files": tuple(values["eval_files"]),
                "features": tuple(Feature.from_json(feature) for feature in values["features"]),
                **{name: group.from_json(values[name]) for name, group in GROUPS.items()},
            }
        )

    @classmethod
    def load(cls, path: Path) -> "TrainingJob":
        """Read a job file.

        Raises:
            ComponentError: the file does not exist, or `from_json` rejects it.
        """
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise ComponentError(f"there is no training job {path}") from error
