"""The workload file's `transform` and `train`: from raw columns to a trained model."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Self

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    field_validator,
    model_validator,
)
from pydantic_core.core_schema import (
    CoreSchema,
    no_info_wrap_validator_function,
    plain_serializer_function_ser_schema,
)

from slipway.components.nearest import nearest
from slipway.components.store_address import is_remote
from slipway.components.trainer.job import BALANCED, TrainingJob
from slipway.components.trainer.labels import columns_of, served_label_columns
from slipway.components.trainer.settings.blow_up import BlowUpSettings
from slipway.components.trainer.settings.checkpoint import CheckpointSettings, wrong_goal
from slipway.components.trainer.settings.compute import Axis, Backend, ComputeSettings, Device
from slipway.components.trainer.settings.early_stopping import EarlyStoppingSettings
from slipway.components.trainer.settings.export import QUANTIZED, ExportKind
from slipway.components.trainer.settings.input_cache import InputSettings
from slipway.components.trainer.settings.learning_rate import LearningRateSettings
from slipway.components.trainer.settings.step import Precision, StepSettings, XlaUse
from slipway.components.trainer.settings.watch import WatchSettings, step_range
from slipway.pipeline.config.section import (
    PATTERN_WORDS,
    SNAKE_NAME,
    Column,
    Columns,
    DottedPath,
    PathText,
    Section,
    SettingsOf,
    Sha256,
    SnakeName,
    StepRange,
    Text,
    Texts,
    drop_schema_default,
    setting_of,
)
from slipway.pipeline.config.settings_errors import KeyRuleError

# YAML has lists but no tuples, so the tuple itself is not strict; its items are.
Axes = Annotated[tuple[Axis | None, ...], Field(strict=False, min_length=1)]
Exports = Annotated[tuple[ExportKind, ...], Field(strict=False)]


class _ColumnOrKeys:
    """Accepts a name or a list besides a mapping; pydantic's own union would report each error twice."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_wrap_validator_function(
            self._read,
            handler(dict[SnakeName, Column]),
            # Serialized unchanged: the mapping's serializer would warn of a name.
            serialization=plain_serializer_function_ser_schema(lambda value: value),
        )

    @staticmethod
    def _read(value: Any, keys: Callable[[Any], dict[str, str]]) -> dict[str, str] | list[str] | str:
        if isinstance(value, list | tuple):
            return _several(value)
        if not isinstance(value, dict):
            if not isinstance(value, str) or not value:
                raise KeyRuleError(
                    "must be a column's name, one for each output, such as {sold: sold, price: price}, or a "
                    "list of columns that together are one label, such as [sport, music]"
                )
            return value
        found = keys(value)
        if len(found) < 2:
            raise KeyRuleError("names one output; write the column's name alone")
        if len(set(found.values())) < len(found):
            raise KeyRuleError("names a column twice; every output has a label of its own")
        return found

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        names = {"items": {"pattern": SNAKE_NAME, "type": "string"}, "minItems": 2, "type": "array"}
        return {"anyOf": [{"type": "string", "minLength": 1}, names, handler(schema)]}


def _several(names: Sequence[Any]) -> list[str]:
    for index, name in enumerate(names):
        if not isinstance(name, str) or not re.fullmatch(SNAKE_NAME, name):
            raise KeyRuleError(f"must be {PATTERN_WORDS[SNAKE_NAME]}: metrics are named by it", index)
        if name in names[:index]:
            raise KeyRuleError("given twice; keep one", index)
    if len(names) < 2:
        raise KeyRuleError("names one column; write it alone")
    return list(names)


Label = Annotated[str | dict[str, str] | list[str], _ColumnOrKeys()]


class _BalancedOrKeys:
    """Accepts one keyword besides a mapping; pydantic's own union would report each error twice."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_wrap_validator_function(
            self._read,
            handler(dict[Text, Annotated[float, Field(gt=0)]]),
            # Serialized unchanged: the mapping's serializer would warn of the keyword.
            serialization=plain_serializer_function_ser_schema(lambda value: value),
        )

    @staticmethod
    def _read(value: Any, keys: Callable[[Any], dict[str, float]]) -> dict[str, float] | str:
        if isinstance(value, str) and value != BALANCED:
            raise KeyRuleError(f"must be {BALANCED}, or keys with values, such as {{yes: 3}}")
        return value if isinstance(value, str) else keys(value)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {"anyOf": [{"const": BALANCED, "type": "string"}, handler(schema)]}


ClassWeights = Annotated[dict[str, float] | str, _BalancedOrKeys()]


class _NamesOrKeys:
    """Accepts a list for each key besides a list; pydantic's own union would report each error twice."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_wrap_validator_function(
            self._read,
            handler(Texts),
            # Serialized unchanged: the list's serializer would warn of a mapping.
            serialization=plain_serializer_function_ser_schema(lambda value: value),
        )

    @staticmethod
    def _read(
        value: Any, names: Callable[..., tuple[str, ...]]
    ) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
        if not isinstance(value, dict):
            return names(value)
        found = {key: names(each, key) for key, each in value.items()}
        for key, each in found.items():
            if len(each) < 2:
                raise KeyRuleError("must name the classes of this output, two or more, or be left out", key)
        return found

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        names = handler(schema)
        of_outputs = {
            "additionalProperties": False,
            "patternProperties": {SNAKE_NAME: {**names, "minItems": 2}},
            "type": "object",
        }
        return {"anyOf": [names, of_outputs]}


ClassNames = Annotated[tuple[str, ...] | dict[str, tuple[str, ...]], _NamesOrKeys()]

_BOOSTED_TREES = "slipway.components.trainer.models.boosted_trees.build_model"

ImageShape = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False, min_length=2, max_length=3)
]


class TransformConfig(Section):
    """How raw columns become features."""

    preprocessing_fn: DottedPath = Field(
        description="Dotted path of the preprocessing function for TensorFlow Transform.",
        examples=["workloads.taxi.preprocessing.preprocessing_fn"],
    )
    label: Label = Field(
        default="",
        description="The transformed feature that holds the label; by default the name in data.label. For "
        "a model with several outputs, one for each: {sold: sold, price: price_scaled}. If a row may have "
        "any of several labels, a column of 0 and 1 for each: [sport, music].",
        json_schema_extra=drop_schema_default,
    )
    weight: Column | None = Field(
        default=None,
        description="The transformed feature with each row's weight in training, metrics and gates; it "
        "is not an input of the model, and predict copies a raw column of its name to its output. null: all "
        "rows count the same.",
        examples=["weight"],
    )
    group: Column | None = Field(
        default=None,
        description="The raw column that names the group of each row, such as a search, within which ndcg, "
        "ndcg_5, ndcg_10 and mean_reciprocal_rank rank the rows; it is not an input of the model. If "
        "preprocessing_fn returns a whole number by its name, boosted trees and train.early_stopping hold "
        "out whole groups.",
        examples=["query_id"],
    )
    pass_through: Columns = Field(
        default=(),
        description="Columns that are not inputs of the model, such as an id or a group: requests do "
        "not need them, the evaluation can slice by them, and predict copies them to its output.",
        examples=[["customer_id"]],
    )
    classes: ClassNames = Field(
        default=(),
        description="Names of the label's classes, in the order of the codes 0, 1, ... that preprocessing_fn "
        "gives them; a pushed version names them in its predictions. With several outputs a list for each "
        "that has names: {payment: [cash, card]}. []: numbers only.",
        examples=[["setosa", "versicolor", "virginica"]],
    )

    @property
    def labels(self) -> tuple[str, ...]:
        """The transformed columns that the model predicts."""
        return columns_of(self.label)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the served model's outputs if it has several; otherwise empty."""
        answers = served_label_columns(self.label)
        return () if isinstance(answers, str) else tuple(answers)

    @property
    def classes_by_output(self) -> dict[str, tuple[str, ...]]:
        """The names of the classes of each output that has them; the only output has the name ""."""
        if isinstance(self.classes, dict):
            return self.classes
        return {"": self.classes} if self.classes else {}

    @property
    def apart(self) -> tuple[str, ...]:
        """The columns, besides the label, that are not inputs of the model, including group and weight."""
        named = (each for each in (self.group, self.weight) if each is not None)
        return tuple(dict.fromkeys((*self.pass_through, *named)))

    @property
    def copied(self) -> tuple[str, ...]:
        """The raw columns that are not inputs, and that predictions copy if their rows have them."""
        group = () if self.group is None else (self.group,)
        return tuple(dict.fromkeys((*self.pass_through, *group)))

    @model_validator(mode="after")
    def _apart_from_the_label(self) -> Self:
        self._check_classes()
        if self.weight is not None and self.weight in self.labels:
            raise KeyRuleError("is transform.label as well; a label cannot be its own weight", "weight")
        for index, name in enumerate(self.pass_through):
            if name in self.pass_through[:index]:
                raise KeyRuleError("given twice; keep one", "pass_through", index)
            if isinstance(self.label, str) and name == self.label:
                raise KeyRuleError(
                    "is the label, which is not an input anyway; remove it here", "pass_through", index
                )
        return self

    def _check_classes(self) -> None:
        is_by_output = isinstance(self.classes, dict)
        if self.classes and is_by_output and not self.outputs:
            words = "names classes by output, but transform.label names one output; write the list alone"
            raise KeyRuleError(words, "classes")
        if self.classes and self.outputs and not is_by_output:
            words = f"write a list for each output that has names: {{{self.outputs[0]}: [a, b]}}"
            raise KeyRuleError(
                f"names the classes of one label, but transform.label names several; {words}", "classes"
            )
        for output, names in self.classes_by_output.items():
            path = ("classes", output) if is_by_output else ("classes",)
            if is_by_output and output not in self.outputs:
                near = nearest(output, list(self.outputs))
                there = f"nearest: {near}" if near else f"there are: {', '.join(self.outputs)}"
                raise KeyRuleError(f"no output of transform.label; {there}", *path)
            if len(set(names)) < len(names):
                twice = next(index for index, name in enumerate(names) if name in names[:index])
                raise KeyRuleError("given twice; each code needs a name of its own", *path, twice)


_OBJECT = re.compile(r"gs://[\w.-]+/[^?#]+")


class PretrainedConfig(Section):
    """A file of weights that the training begins with; the manifest and the model card name its path."""

    path: PathText = Field(
        description="The file, relative to the project's root, or gs://BUCKET/PATH.",
        examples=["workloads/taxi/encoder.weights.h5"],
    )
    sha256: Sha256 | None = Field(
        default=None,
        description="The SHA-256 of its content; needed for gs://, and checked if given. null: computed "
        "from the file.",
    )

    @field_validator("path")
    @classmethod
    def _no_other_address(cls, path: str) -> str:
        if is_remote(path) and not _OBJECT.fullmatch(path):
            raise ValueError("must be a path, or gs://BUCKET/PATH without a user, ? or #: it is published")
        return path

    @model_validator(mode="after")
    def _digest_of_what_is_elsewhere(self) -> Self:
        if is_remote(self.path) and self.sha256 is None:
            raise KeyRuleError(
                "missing: a run does not read an object to see whether it changed; sha256sum prints it",
                "sha256",
            )
        return self


class TrainConfig(Section):
    """The model to train, and for how long."""

    model: DottedPath = Field(
        description="Dotted path of the function that builds the Keras model.",
        examples=["workloads.taxi.model.build_model"],
    )
    hyperparameters: dict[Text, JsonValue] = Field(
        default={}, description="Any names and values to pass to the model function."
    )
    pretrained: PretrainedConfig | None = Field(
        default=None,
        description="Initial weights: build_model gets the file as its argument pretrained, and loads what "
        "it wants from it. null: it gets None.",
        examples=[{"path": "workloads/taxi/encoder.weights.h5"}],
    )
    batch_size: int = setting_of(TrainingJob, "batch_size", default=256)
    epochs: int = setting_of(TrainingJob, "epochs", default=10)
    seed: int = setting_of(TrainingJob, "seed", default=42)
    backend: Backend = setting_of(ComputeSettings, "backend")
    class_weights: ClassWeights | None = Field(
        default=None,
        description="Factors for the rows of a class in training, by the class's name or code, such as "
        "{yes: 3}; balanced: all classes have the same total weight. Metrics are not affected. null: none.",
        examples=["balanced"],
    )
    interpreter: Text | None = Field(
        default=None,
        description="Path of the Python that trains, relative to the project; null: the one that runs this.",
        examples=[".venv-jax/bin/python"],
    )
    device: Device = setting_of(ComputeSettings, "device")
    tpu: str = Field(
        default="",
        description="The TPU slice that a cloud run trains on, if device is tpu.",
        examples=["v5e-8", "v6e-16"],
    )
    preflight: bool = Field(
        default=False,
        description="Whether to compile the step for the slice before training, if device is tpu; the run "
        "stops if it does not compile or does not fit.",
    )
    tpu_address: str = setting_of(ComputeSettings, "tpu_address")
    cpu_devices: int = setting_of(ComputeSettings, "cpu_devices")
    model_parallel: int = setting_of(ComputeSettings, "model_parallel")
    layout: dict[Text, Axes] = setting_of(ComputeSettings, "layout")
    precision: Precision = setting_of(StepSettings, "precision")
    xla: XlaUse = setting_of(StepSettings, "xla")
    steps_per_execution: int | None = setting_of(StepSettings, "steps_per_execution")
    accumulate_steps: int = setting_of(StepSettings, "accumulate_steps")
    learning_rate: SettingsOf[LearningRateSettings] = Field(
        default=LearningRateSettings(), description="How the learning rate follows the batch size."
    )
    images: dict[Text, ImageShape] = Field(
        default={},
        description="Height, width and channels of transformed columns that are images as raw bytes "
        "(slipway.components.trainer.pixels.raw_pixels).",
        examples=[{"image": [28, 28, 1]}],
    )
    input: SettingsOf[InputSettings] = Field(
        default=InputSettings(), description="Where parsed examples are kept between epochs."
    )
    exports: Exports = Field(
        default=(),
        description="Smaller forms of the model to write alongside it: litert, litert_dynamic, "
        "litert_int8, keras_int8.",
        examples=[["litert_int8"]],
    )
    checkpoint: SettingsOf[CheckpointSettings] = Field(
        default=CheckpointSettings(), description="When training saves its state, to continue from."
    )
    early_stopping: SettingsOf[EarlyStoppingSettings] = Field(
        default=EarlyStoppingSettings(), description="When training stops before its last epoch."
    )
    blow_up: SettingsOf[BlowUpSettings] = Field(
        default=BlowUpSettings(), description="What to do if the loss becomes NaN or too high."
    )
    tensorboard: bool = setting_of(WatchSettings, "tensorboard")
    profile_steps: StepRange | None = setting_of(WatchSettings, "profile_steps")

    @field_validator("profile_steps")
    @classmethod
    def _from_first_to_last(cls, steps: str | None) -> str | None:
        if steps is not None and step_range(steps) is None:
            raise KeyRuleError("counts from 1, and the first step comes first; write it as 10:20")
        return steps

    @model_validator(mode="after")
    def _layout_fits_the_devices(self) -> Self:
        # Checks the rules between its keys, which the Trainer would report after everything before it.
        ComputeSettings(**{name: getattr(self, name) for name in ComputeSettings.names()})
        return self

    @model_validator(mode="after")
    def _goal_of_the_best_metric(self) -> Self:
        best = self.checkpoint
        if words := wrong_goal(best.best_metric, best.best_goal):
            raise KeyRuleError(words, "checkpoint", "best_goal")
        return self

    @model_validator(mode="after")
    def _trees_stay_as_they_are(self) -> Self:
        for index, kind in enumerate(self.exports if self.model == _BOOSTED_TREES else ()):
            if kind in QUANTIZED:
                raise KeyRuleError(
                    "boosted trees hold infinite thresholds, and int8 has none; litert leaves weights as "
                    "they are, keras_int8 those of layers that it does not know",
                    "exports",
                    index,
                )
        return self

    @property
    def serves_best(self) -> bool:
        """Whether the best epoch's weights are exported, as `TrainingJob.serves_best` says."""
        return self.checkpoint.serve_best or self.early_stopping.patience is not None

    def run_fn_settings(self) -> dict[str, object]:
        """Return the settings that the Trainer's `run_fn` takes unchanged, as plain values."""
        return self.model_dump(mode="json", exclude={"tpu", "preflight", "pretrained"})
