"""The workload file as a whole: its sections, and the rules between them."""

import re
from typing import Any, Self

from pydantic import Field, JsonValue, PrivateAttr, field_validator, model_validator

from slipway.components.metrics.definitions import (
    is_of_groups,
    is_of_quantiles,
    of_output,
    output_of,
    plain_name,
)
from slipway.components.nearest import nearest
from slipway.components.trainer.job import CLASS_CODE_WORDS, is_class_code
from slipway.components.trainer.labels import is_multi_label
from slipway.pipeline.config.beam import BeamConfig
from slipway.pipeline.config.cloud import CloudConfig
from slipway.pipeline.config.data import DataConfig
from slipway.pipeline.config.data_gate import DataGateConfig
from slipway.pipeline.config.engine import MetadataConfig, NodeConfig
from slipway.pipeline.config.evaluate import DEFAULT_METRICS, EvaluateConfig
from slipway.pipeline.config.notify import NotifyConfig
from slipway.pipeline.config.preflight import PreflightConfig
from slipway.pipeline.config.push import PushConfig
from slipway.pipeline.config.request_log import RequestLogConfig
from slipway.pipeline.config.section import SNAKE_NAME, Name, NodeId, PathText, Section
from slipway.pipeline.config.settings_errors import KeyRuleError
from slipway.pipeline.config.statistics import StatisticsConfig
from slipway.pipeline.config.track import TrackConfig
from slipway.pipeline.config.train import TrainConfig, TransformConfig
from slipway.pipeline.config.tune import TuneConfig

NOT_IN_A_PROFILE = ("name", "profiles")


class WorkloadConfig(Section):
    """One workload: from raw files to a served model."""

    name: Name = Field(
        description="Name of the workload; it is part of paths and of the report.", examples=["taxi"]
    )
    description: str = Field(default="", description="One line that describes what the model predicts.")
    data: DataConfig = Field(
        description="Where the raw examples come from and how they are split.",
        examples=[{"source": "data/trips.csv", "label": "tips"}],
    )
    schema_path: PathText | None = Field(
        default=None,
        alias="schema",
        description="Schema file (.pbtxt) relative to the project's root; null: inferred from the data.",
    )
    statistics: StatisticsConfig = Field(
        default=StatisticsConfig(), description="Which statistics of the raw examples are computed."
    )
    data_gate: DataGateConfig = Field(
        default=DataGateConfig(), description="Rules for the data; the run stops if it breaks them."
    )
    transform: TransformConfig = Field(
        description="How raw columns become features.",
        examples=[{"preprocessing_fn": "workloads.taxi.preprocessing.preprocessing_fn"}],
    )
    train: TrainConfig = Field(
        description="The model to train, and for how long.",
        examples=[{"model": "workloads.taxi.model.build_model"}],
    )
    tune: TuneConfig | None = Field(
        default=None, description="A search for hyperparameters before the training; null: none."
    )
    preflight: PreflightConfig = Field(
        default=PreflightConfig(), description="Checks of a training on a TPU before you pay for it."
    )
    evaluate: EvaluateConfig = Field(
        default=EvaluateConfig(), description="How the trained model is judged on the eval split."
    )
    push: PushConfig = Field(default=PushConfig(), description="Where a blessed model goes.")
    nodes: dict[NodeId, NodeConfig] = Field(
        default={}, description="Retries and time limits per node id, for example {Trainer: {retries: 1}}."
    )
    beam: BeamConfig = Field(default=BeamConfig(), description="The engine of the pipeline's Beam steps.")
    notify: NotifyConfig | None = Field(
        default=None, description="Notifications at the end of a run; null: none."
    )
    request_log: RequestLogConfig | None = Field(
        default=None,
        description="What `serve` and `predict` log of requests and answers; null: nothing.",
    )
    track: TrackConfig = Field(
        default=TrackConfig(), description="Trackers to send each run to when it has ended."
    )
    metadata: MetadataConfig | None = Field(
        default=None,
        description="Database server for ML Metadata; null: SQLite in the output directory.",
    )
    cloud: CloudConfig = Field(
        default=CloudConfig(),
        description="Where the pipeline runs in the cloud, and the resources of its tasks.",
    )
    # Not dumped, because a run uses the merged settings, not the profiles.
    profiles: dict[Name, dict[str, JsonValue]] = Field(
        default={},
        exclude=True,
        description="Named sets of keys to lay over the file with --profile NAME; any but name and profiles.",
    )

    _words: tuple[str, ...] = PrivateAttr(default=())

    @property
    def words(self) -> tuple[str, ...]:
        """The words that name the workload on a command line, with its settings, for commands to paste."""
        return self._words or (self.name,)

    def named_by(self, words: tuple[str, ...]) -> Self:
        """Return the same settings with other `words`."""
        named = self.model_copy()
        named._words = words
        return named

    @field_validator("profiles")
    @classmethod
    def _no_name_in_profiles(
        cls, profiles: dict[str, dict[str, JsonValue]]
    ) -> dict[str, dict[str, JsonValue]]:
        for name, keys in profiles.items():
            for key in NOT_IN_A_PROFILE:
                if key in keys:
                    raise KeyRuleError("is not allowed in a profile; remove it there", name, key)
        return profiles

    @model_validator(mode="after")
    def _endpoint_has_a_place(self) -> Self:
        for key in ("project", "region"):
            if self.push.endpoint is not None and not getattr(self.cloud.vertex, key):
                raise KeyRuleError(f"needs cloud.vertex.{key}: where the endpoint is", "push", "endpoint")
        return self

    @model_validator(mode="after")
    def _experiment_is_no_pipeline(self) -> Self:
        if self.cloud.vertex.experiment == self.name:
            words = "is the workload's own name, which Vertex AI gives to the pipeline; choose another"
            raise KeyRuleError(words, "cloud", "vertex", "experiment")
        return self

    @model_validator(mode="after")
    def _metrics_are_of_outputs(self) -> Self:
        outputs = self.transform.outputs
        is_multi = is_multi_label(self.transform.label)
        averaged = [name for name in self.evaluate.metrics if is_multi and not output_of(name)]
        named: dict[tuple[str | int, ...], str] = {
            **{("metrics", index): name for index, name in enumerate(self.evaluate.metrics)},
            **{("own_metrics", name): name for name in self.evaluate.own_metrics},
        }
        for key, metric in named.items():
            if output_of(metric) not in (outputs or ("",)) and metric not in averaged:
                there = (
                    f"OUTPUT/METRIC, with one of {', '.join(outputs)}"
                    if outputs
                    else "the metric's name alone"
                )
                words = f"must be {there}: transform.label names {len(outputs) or 'one'} output"
                raise KeyRuleError(words + "s" * bool(outputs), "evaluate", *key)
        for output in outputs:
            if not any(output_of(metric) == output for metric in self.evaluate.metrics):
                words = f"has none of the output {output}, so that output would not be evaluated; add one"
                raise KeyRuleError(words, "evaluate", "metrics")
        if outputs and self.train.exports:
            raise KeyRuleError("need a model with one output; remove this key", "train", "exports")
        if outputs and self.train.class_weights is not None:
            words = "needs one label, but transform.label names several; transform.weight weights rows"
            raise KeyRuleError(words, "train", "class_weights")
        return self

    @model_validator(mode="after")
    def _class_weights_name_classes(self) -> Self:
        weights, classes = self.train.class_weights, self.transform.classes_by_output.get("", ())
        for name in weights if isinstance(weights, dict) else ():
            if classes and name not in classes:
                near = nearest(name, list(classes))
                there = f"nearest: {near}" if near else f"there are: {', '.join(classes)}"
                raise KeyRuleError(f"no class of transform.classes; {there}", "train", "class_weights", name)
            if not classes and not is_class_code(name):
                words = f"no {CLASS_CODE_WORDS}; transform.classes can give the codes names"
                raise KeyRuleError(words, "train", "class_weights", name)
        return self

    @model_validator(mode="before")
    @classmethod
    def _metrics_of_each_label(cls, data: Any) -> Any:
        """Add the metric of each label to a metric of several labels, which is the mean over them."""
        parts = [data.get(key) if isinstance(data, dict) else None for key in ("transform", "evaluate")]
        transform, evaluate = (part if isinstance(part, dict) else {} for part in parts)
        label, metrics = transform.get("label"), evaluate.get("metrics", list(DEFAULT_METRICS))
        if not isinstance(label, list | tuple) or not isinstance(metrics, list | tuple):
            return data
        names = [name for name in metrics if isinstance(name, str) and plain_name(name) == name]
        labels = [each for each in label if isinstance(each, str) and re.fullmatch(SNAKE_NAME, each)]
        of_each = [of_output(each, name) for name in names for each in labels]
        every = [*metrics, *(name for name in dict.fromkeys(of_each) if name not in metrics)]
        return {**data, "evaluate": {**evaluate, "metrics": every}}

    @model_validator(mode="after")
    def _quantiles_are_those_of_the_training(self) -> Self:
        trained, evaluated = self.train.hyperparameters.get("quantiles"), self.evaluate.quantiles
        if isinstance(trained, list) and evaluated and trained != list(evaluated):
            words = f"differs from train.hyperparameters.quantiles, {trained}: the metrics would be of others"
            raise KeyRuleError(words, "evaluate", "quantiles")
        return self

    @model_validator(mode="after")
    def _groups_are_whole(self) -> Self:
        group, by = self.transform.group, self.data.split_by
        for index, name in enumerate(self.evaluate.metrics):
            if is_of_groups(name) and group is None:
                words = "ranks rows within groups; name the group's column in transform.group"
                raise KeyRuleError(words, "evaluate", "metrics", index)
        if group is None:
            return self
        if group in (self.transform.weight, self.data.label, *self.transform.labels):
            raise KeyRuleError("is the label or the weight as well", "transform", "group")
        if self.data.columns and group not in self.data.columns:
            words = "is not in data.columns, but the Evaluator reads it from the rows; add it there"
            raise KeyRuleError(words, "transform", "group")
        if by is None or by.row or by.key not in (None, group):
            words = f"would have rows in both splits; write data.split_by: {{key: {group}}}"
            raise KeyRuleError(words, "transform", "group")
        return self

    @model_validator(mode="after")
    def _stock_evaluator_knows_the_metrics(self) -> Self:
        averaged = [name for name in self.evaluate.metrics if self.transform.outputs and not output_of(name)]
        quantiles = [name for name in self.evaluate.metrics if is_of_quantiles(name) or is_of_groups(name)]
        if averaged and quantiles:
            words = f"{quantiles[0]} is for one number, but transform.label names several labels of 0 and 1"
            raise KeyRuleError(words, "evaluate", "metrics", self.evaluate.metrics.index(quantiles[0]))
        if (averaged or quantiles) and "Evaluator" in self.beam.stock_nodes:
            words = (
                f"has no mean of {averaged[0]} over the labels; name it for each label"
                if averaged
                else (f"has no {quantiles[0]}")
            )
            raise KeyRuleError(f"{words}, or let our Evaluator run", "beam", "stock_nodes")
        return self

    @model_validator(mode="before")
    @classmethod
    def _label_keeps_its_name(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        raw, transform = data.get("data"), data.get("transform")
        label = raw.get("label") if isinstance(raw, dict) else None
        # An invalid data.label is not copied, so that it is reported only once, at its own key.
        if isinstance(transform, dict) and isinstance(label, str) and label:
            return {**data, "transform": {"label": label, **transform}}
        return data
