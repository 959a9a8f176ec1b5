"""The workload file as a whole: its model, and the code that loads, overrides and checks it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from slipway.components.home_folder import at_home
from slipway.components.metrics.definitions import (
    is_of_groups,
    is_of_quantiles,
    of_output,
    output_of,
    plain_name,
)
from slipway.components.nearest import nearest
from slipway.components.project import PROJECT_ROOT
from slipway.components.trainer.job import CLASS_CODE_WORDS, is_class_code
from slipway.components.trainer.labels import is_multi_label
from slipway.components.trainer.settings.pretrained import is_remote
from slipway.pipeline.config.beam import BeamConfig
from slipway.pipeline.config.cloud import CloudConfig
from slipway.pipeline.config.data import DataConfig
from slipway.pipeline.config.data_gate import (
    DataGateConfig,
    find_folder_problem,
    find_reference_problem,
    reference_folder,
)
from slipway.pipeline.config.engine import MetadataConfig, NodeConfig
from slipway.pipeline.config.evaluate import DEFAULT_METRICS, EvaluateConfig
from slipway.pipeline.config.hyperparameter_names import find_unknown_hyperparameters
from slipway.pipeline.config.importable import find_import_problem
from slipway.pipeline.config.notify import NotifyConfig
from slipway.pipeline.config.preflight import PreflightConfig
from slipway.pipeline.config.push import PushConfig
from slipway.pipeline.config.request_log import RequestLogConfig
from slipway.pipeline.config.safe_yaml import KeyPath, shown
from slipway.pipeline.config.schema_file import find_schema_problem
from slipway.pipeline.config.section import PATTERN_WORDS, SNAKE_NAME, Name, NodeId, PathText, Section
from slipway.pipeline.config.set_and_profile import (
    NOT_IN_A_PROFILE,
    Assignment,
    Layer,
    Layers,
    profile_layer,
    read_layer,
)
from slipway.pipeline.config.settings_errors import (
    KeyRuleError,
    Problem,
    find_problems,
    problem_at,
    raise_problems,
)
from slipway.pipeline.config.statistics import StatisticsConfig
from slipway.pipeline.config.track import TrackConfig
from slipway.pipeline.config.train import TrainConfig, TransformConfig
from slipway.pipeline.config.tune import TuneConfig
from slipway.pipeline.errors import ConfigError


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

    @field_validator("profiles")
    @classmethod
    def _no_name_in_profiles(cls, profiles: dict[str, Any]) -> dict[str, Any]:
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
        weights, classes = self.train.class_weights, self.transform.classes
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


@dataclass(frozen=True)
class WorkloadChoice:
    """A workload of this project, as named on a command line.

    Attributes:
        workload: the workload file, relative to the current folder or the project's; or a name in workloads/.
        sets: values that override the file and its profile, in this order.
        profile: one of the file's profiles; None: no profile.
    """

    workload: Path
    sets: tuple[Assignment, ...] = ()
    profile: str | None = None

    @property
    def file(self) -> Path:
        """The absolute path of the workload file; a path in the project's folder if there is no such file."""
        named = PROJECT_ROOT / "workloads" / self.workload / "workload.yaml"
        if self.workload.is_file():
            return self.workload.absolute()
        return (named if named.is_file() else PROJECT_ROOT / self.workload).absolute()

    @property
    def options(self) -> tuple[str, ...]:
        """The command-line options for the same profile and sets, for commands to paste."""
        profile = ("--profile", self.profile) if self.profile else ()
        return (*profile, *(word for each in self.sets for word in ("--set", each.text)))

    def config(self) -> WorkloadConfig:
        """Load the workload's settings.

        Raises:
            ConfigError: see `load_workload`.
        """
        return load_workload(self.file, sets=self.sets, profile=self.profile, root=PROJECT_ROOT)


def load_workload(
    path: Path, *, sets: Sequence[Assignment] = (), profile: str | None = None, root: Path
) -> WorkloadConfig:
    """Load a workload file, override it by the profile and then by each of `sets`, and check the result.

    The functions that the file names are located without importing them. `schema_path` and the paths of
    `push` and `data_gate` become absolute; `data.source` stays as written, for
    `slipway.components.ingest.source.resolve_source`.

    Args:
        path: the workload file, absolute or relative to `root`.
        sets: values that override the file; mappings are merged, lists and scalars replaced.
        profile: one of the file's profiles; None: no profile.
        root: the project's root, to which relative paths in the file are relative.

    Raises:
        ConfigError: lists every problem found, one per line, with file, line, key, value, rule and nearest
            name.
    """
    file = read_layer(root / path, root=root)
    profiles = {name: profile_layer(file, name) for name in file.mapping_at("profiles")}
    if profile is not None and profile not in profiles:
        there = ", ".join(map(shown, profiles)) or "none"
        raise ConfigError(f"{file.name}: no profile {shown(profile)}; there are: {there}")
    chosen = [profiles[profile]] if profile is not None else []
    merged = Layers(file, *chosen, *(each.layer for each in sets))
    problems = _find_problems(merged, root=root)
    seen = {(problem.path, problem.words) for problem in problems}
    for layer in profiles.values():  # the other profiles are checked too
        if layer not in chosen:
            found = _find_problems(Layers(file, layer), root=root, only=layer)
            problems += [problem for problem in found if (problem.path, problem.words) not in seen]
    raise_problems(problems, name=file.name)
    return _with_absolute_paths(WorkloadConfig.model_validate(merged.data), root)


def _find_problems(layers: Layers, *, root: Path, only: Layer | None = None) -> list[Problem]:
    found = find_problems(WorkloadConfig, layers, patterns=PATTERN_WORDS)
    wrong = {problem.path for _, problem in found}
    checks: tuple[tuple[KeyPath, Callable[..., str]], ...] = (
        (("schema",), find_schema_problem),
        (("data_gate", "reference"), find_reference_problem),
        (("data_gate", "serving_statistics"), find_folder_problem),
        (("transform", "preprocessing_fn"), find_import_problem),
        (("train", "model"), find_import_problem),
        (("train", "pretrained", "path"), _find_missing_file),
    )
    for path, check in checks:
        value = layers.value(path)
        if isinstance(value, str) and path not in wrong and (words := check(value, root=root)):
            found.append(problem_at(path, words, layers))
    own = layers.value(("evaluate", "own_metrics"))
    for name in own if isinstance(own, dict) else ():
        path = ("evaluate", "own_metrics", name, "class")
        value = layers.value(path)
        if isinstance(value, str) and path not in wrong:
            words = find_import_problem(value, root=root, kind="class")
            found += [problem_at(path, words, layers)] if words else []
    model = layers.value(("train", "model"))
    if isinstance(model, str) and not any(problem.path == ("train", "model") for _, problem in found):
        for section in (("train", "hyperparameters"), ("tune", "search")):
            named = layers.value(section)
            names = named if isinstance(named, dict) else {}
            unknown = find_unknown_hyperparameters(names, model=model, root=root)
            found += [problem_at((*section, name), words, layers) for name, words in unknown.items()]
    return [problem for layer, problem in found if only is None or layer is only]


def _find_missing_file(value: str, *, root: Path) -> str:
    """Return the problem with the file of pretrained weights; the training checks for a remote file."""
    return "" if is_remote(value) or (root / at_home(value)).is_file() else "there is no such file"


def _with_absolute_paths(config: WorkloadConfig, root: Path) -> WorkloadConfig:
    def absolute(value: str | None) -> str | None:
        return value if value is None or "://" in value else str(root.absolute() / value)

    sign = config.push.sign
    push = config.push.model_copy(
        update={
            "destination": absolute(config.push.destination),
            "sign": sign and sign.model_copy(update={"key": absolute(sign.key)}),
            "verify_key": absolute(config.push.verify_key),
        }
    )
    gate = config.data_gate
    gate = gate.model_copy(
        update={
            "reference": absolute(reference_folder(gate.reference) or None) or gate.reference,
            "serving_statistics": absolute(gate.serving_statistics),
        }
    )
    return config.model_copy(
        update={"schema_path": absolute(config.schema_path), "push": push, "data_gate": gate}
    )
