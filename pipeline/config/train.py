"""The workload file's `transform` and `train`: from raw columns to a trained model."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from pipeline.config.problems import KeyRuleError
from pipeline.config.section import Column, DottedPath, Section, StepRange, Text, Texts, without_default
from pipeline.config.train_loop import BlowUpConfig, CheckpointConfig, EarlyStoppingConfig, Exports

# YAML has lists only; everything inside them stays strict.
Axes = Annotated[tuple[Literal["batch", "model"] | None, ...], Field(strict=False, min_length=1)]

_BOOSTED_TREES = "components.trainer.models.boosted_trees.build_model"
# Exports in which each weight becomes int8.
_QUANTIZED = ("litert_dynamic", "litert_int8")

ImageShape = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False, min_length=2, max_length=3)
]


class TransformConfig(Section):
    """How raw columns become features."""

    preprocessing_fn: DottedPath = Field(
        description="Dotted path of the preprocessing function for TensorFlow Transform.",
        examples=["workloads.taxi.preprocessing.preprocessing_fn"],
    )
    label: Column = Field(
        default="",
        description="The transformed feature that holds the label; the name of data.label where not given.",
        json_schema_extra=without_default,
    )
    classes: Texts = Field(
        default=(),
        description="Names of the label's classes, in the order of the codes 0, 1, ... that preprocessing_fn "
        "gives them; a pushed version names them in its predictions. None: it answers numbers only.",
        examples=[["setosa", "versicolor", "virginica"]],
    )


class LearningRateConfig(Section):
    """How the model's learning rate follows the global batch."""

    scale: Literal["none", "linear", "sqrt"] = Field(
        default="none",
        description="The rate is multiplied by (batch_size x accumulate_steps / base_batch_size), its square "
        "root, or not.",
    )
    base_batch_size: int = Field(
        default=256, ge=1, description="The batch size that the model's own learning rate was chosen for."
    )
    warmup_steps: int = Field(
        default=0, ge=0, description="Updates over which the learning rate rises from 0 to its value."
    )


class InputConfig(Section):
    """Where the parsed examples are kept while a training runs over them."""

    cache: Literal["auto", "memory", "file", "none"] = Field(
        default="auto",
        description="file: parsed once into a mapped file; none: read anew in every epoch; auto: in memory "
        "where they fit, else none.",
    )
    shuffle_rows: int = Field(
        default=65536, ge=1, description="Examples shuffled at a time without a cache; with one, all are."
    )


class TrainConfig(Section):
    """What is trained, and for how long."""

    model: DottedPath = Field(
        description="Dotted path of the function that builds the Keras model.",
        examples=["workloads.taxi.model.build_model"],
    )
    hyperparameters: dict[Text, JsonValue] = Field(
        default={}, description="Free names and values that are handed to the model function."
    )
    batch_size: int = Field(default=256, ge=1, description="Examples per training step.")
    epochs: int = Field(default=10, ge=1, description="Passes over the training split.")
    seed: int = Field(
        default=42, ge=0, lt=2**31, description="Seed of the weights and of the order of the examples."
    )
    backend: Literal["tensorflow", "jax", "torch"] = Field(
        default="tensorflow", description="What Keras computes with while it trains; serving is TensorFlow."
    )
    interpreter: Text | None = Field(
        default=None,
        description="Path of the Python that trains, relative to the project; null: the one that runs this.",
        examples=[".venv-jax/bin/python"],
    )
    device: Literal["auto", "cpu", "gpu", "tpu"] = Field(
        default="auto",
        description="What to train on; auto: a TPU where there is one, else a GPU, else the CPU.",
    )
    tpu: str = Field(
        default="",
        description="The TPU slice that a cloud run trains on, where device is tpu.",
        examples=["v5e-8", "v6e-16"],
    )
    preflight: bool = Field(
        default=False,
        description="Whether the step is compiled for the slice before it is trained, where device is tpu; "
        "the run stops where it does not compile or does not fit.",
    )
    tpu_address: str = Field(
        default="",
        description="Name or grpc:// address of the TPU, or local; empty: as the environment says.",
    )
    cpu_devices: int = Field(
        default=1, ge=1, description="Devices that the CPU is cut into, to rehearse several without them."
    )
    model_parallel: int = Field(
        default=1, ge=1, description="Devices that hold one copy of the model together (jax only)."
    )
    layout: dict[Text, Axes] = Field(
        default={},
        description="Pattern of a whole variable path to the axis that divides each of its dimensions: null, "
        "batch or model.",
        examples=[{".*dense.*kernel": [None, "model"]}],
    )
    precision: Literal["auto", "float32", "mixed_bfloat16", "mixed_float16"] = Field(
        default="auto", description="Keras dtype policy; auto: mixed_bfloat16 on a TPU, float32 elsewhere."
    )
    xla: Literal["auto", "always", "never"] = Field(
        default="auto", description="Whether TensorFlow compiles the step with XLA; auto: where it helps."
    )
    steps_per_execution: int | None = Field(
        default=None, ge=1, description="Steps in one call of the compiled function; null: chosen."
    )
    accumulate_steps: int = Field(
        default=1, ge=1, description="Steps whose gradients are averaged into one update of the weights."
    )
    learning_rate: LearningRateConfig = Field(
        default=LearningRateConfig(), description="How the learning rate follows the batch size."
    )
    images: dict[Text, ImageShape] = Field(
        default={},
        description="Height, width and channels of transformed columns that are images as raw bytes "
        "(components.trainer.pixels.raw_pixels).",
        examples=[{"image": [28, 28, 1]}],
    )
    input: InputConfig = Field(
        default=InputConfig(), description="Where the parsed examples are kept between epochs."
    )
    exports: Exports = Field(
        default=(),
        description="Smaller forms of the model that are written beside it: litert, litert_dynamic, "
        "litert_int8, keras_int8.",
        examples=[["litert_int8"]],
    )
    checkpoint: CheckpointConfig = Field(
        default=CheckpointConfig(), description="When the training keeps its state, to go on from."
    )
    early_stopping: EarlyStoppingConfig = Field(
        default=EarlyStoppingConfig(), description="When the training stops before its last epoch."
    )
    blow_up: BlowUpConfig = Field(
        default=BlowUpConfig(), description="What is done when the loss is no number any more, or too high."
    )
    tensorboard: bool = Field(
        default=True, description="Whether scalars for TensorBoard are written, every 100 steps."
    )
    profile_steps: StepRange | None = Field(
        default=None,
        description="FIRST:LAST, steps counted from 1 that are profiled for TensorBoard; null: none.",
        examples=["10:20"],
    )

    @field_validator("profile_steps")
    @classmethod
    def _from_first_to_last(cls, steps: str | None) -> str | None:
        if steps is not None:
            first, last = map(int, steps.split(":"))
            if not 1 <= first <= last:
                raise KeyRuleError("counts from 1, and the first step comes first; write it as 10:20")
        return steps

    @model_validator(mode="after")
    def _trees_stay_as_they_are(self) -> Self:
        for index, kind in enumerate(self.exports if self.model == _BOOSTED_TREES else ()):
            if kind in _QUANTIZED:
                raise KeyRuleError(
                    "boosted trees hold infinite thresholds, and int8 has none; litert leaves weights as "
                    "they are, keras_int8 those of layers that it does not know",
                    "exports",
                    index,
                )
        return self

    def run_fn_settings(self) -> dict[str, Any]:
        """What `components.trainer.run_fn` takes of it, as plain values: not what other components read."""
        return self.model_dump(mode="json", exclude={"tpu", "preflight"})
