"""The workload file's `train.checkpoint` and `train.blow_up`: what keeps a training from being lost."""

from typing import Annotated, Literal

from pydantic import Field

from pipeline.config.section import Section, Text

# YAML has lists only; everything inside them stays strict.
Exports = Annotated[
    tuple[Literal["litert", "litert_dynamic", "litert_int8", "keras_int8"], ...], Field(strict=False)
]


class CheckpointConfig(Section):
    """When a training keeps its state; at the end of an epoch it always does."""

    steps: int | None = Field(
        default=None, ge=1, description="A checkpoint after every so many steps; null: at the end of epochs."
    )
    minutes: float | None = Field(
        default=10.0, gt=0, description="A checkpoint when the last one is so many minutes old; null: never."
    )
    keep: int = Field(default=2, ge=1, description="How many of the newest checkpoints stay.")
    folder: Text | None = Field(
        default=None,
        description="Where checkpoints lie, a path or gs://...; null: where the engine keeps them.",
    )
    best_metric: Text = Field(
        default="val_loss", description="The metric that decides which epoch's checkpoint stays as the best."
    )
    best_goal: Literal["min", "max"] = Field(
        default="min", description="Whether a low or a high best_metric is good."
    )
    serve_best: bool = Field(
        default=False, description="Whether the best epoch's weights are exported instead of the last one's."
    )


class EarlyStoppingConfig(Section):
    """When a training stops before its last epoch."""

    patience: int | None = Field(
        default=None,
        ge=1,
        description="Epochs without a better checkpoint.best_metric, after which the training stops and the "
        "best epoch's weights are exported; null: it goes on to its last epoch.",
    )
    share: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="Share of the train split that is held out to measure that; the eval split only judges.",
    )


class BlowUpConfig(Section):
    """What is done when the loss is no number any more, or too high."""

    loss_limit: float | None = Field(
        default=None,
        description="The mean loss of an epoch must not exceed it; null: it need only be finite.",
    )
    trials: int = Field(
        default=0,
        ge=0,
        description="How often the training goes back to its newest checkpoint before it stops.",
    )
