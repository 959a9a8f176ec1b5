"""The workload file's `tune`: the hyperparameters to search before the training."""

from typing import Annotated, Any

from pydantic import Field, JsonValue, model_validator

from slipway.components.trainer.search_space import Algorithm, read_entry
from slipway.components.trainer.settings.checkpoint import Goal, goal_of, wrong_goal
from slipway.pipeline.config.section import Section, Text
from slipway.pipeline.config.settings_errors import KeyRuleError

Values = Annotated[tuple[JsonValue, ...], Field(strict=False, min_length=1)]


class SearchConfig(Section):
    """The values of one hyperparameter: a list of choices, or a range."""

    choices: Values | None = Field(default=None, description="Values to choose from.")
    low: int | float | None = Field(default=None, description="The lowest value of a range.")
    high: int | float | None = Field(
        default=None, description="The highest value of a range; whole numbers only if both ends are."
    )
    step: int | float | None = Field(
        default=None, gt=0, description="Distance between two values, counted from low; null: any value."
    )
    log: bool = Field(default=False, description="Whether to search on a logarithmic scale.")

    @model_validator(mode="after")
    def _choices_or_range(self) -> "SearchConfig":
        try:
            read_entry(self.model_dump())
        except ValueError as error:
            raise KeyRuleError(str(error)) from error
        return self


class TuneConfig(Section):
    """A search with KerasTuner, in which each trial is a training like the Trainer's."""

    search: dict[Text, SearchConfig] = Field(
        min_length=1,
        description="The values to try, by hyperparameter of the model function.",
        examples=[{"learning_rate": {"low": 0.0001, "high": 0.01, "log": True}}],
    )
    trials: int = Field(default=10, ge=1, description="How many combinations to try.")
    algorithm: Algorithm = Field(default="bayesian", description="How the next combination is chosen.")
    metric: Text = Field(
        default="val_loss", description="The Keras metric that decides; val_ stands for the eval split."
    )
    goal: Goal | None = Field(
        default=None,
        description="Whether a lower or a higher metric is better; null: as is known of it, if it is.",
    )
    epochs: int | None = Field(default=None, ge=1, description="Epochs of a trial; null: train.epochs.")

    @model_validator(mode="before")
    @classmethod
    def _known_goal(cls, data: Any) -> Any:
        metric = data.get("metric", "val_loss") if isinstance(data, dict) else None
        if not isinstance(metric, str) or data.get("goal") is not None:
            return data
        return {**data, "goal": goal_of(metric)}

    @model_validator(mode="after")
    def _goal_of_the_metric(self) -> "TuneConfig":
        if words := wrong_goal(self.metric, self.goal):
            raise KeyRuleError(words, "goal")
        return self
