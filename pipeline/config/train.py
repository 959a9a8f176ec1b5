"""The workload file's `transform` and `train`: from raw columns to a trained model."""

from typing import Literal

from pydantic import Field, JsonValue

from pipeline.config.section import Column, DottedPath, Section, Text, without_default


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
