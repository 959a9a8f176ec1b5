"""The workload file: what it may hold, and how it is loaded, overridden and checked.

The models below are the one description of the file: they refuse what is wrong, their descriptions become
`schemas/workload.schema.json` (pipeline.config_schema), and their attributes are what the pipeline reads.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from pipeline.config_layers import NOT_IN_A_PROFILE, Layer, Layers, profile_layer, read_layer, set_layer
from pipeline.config_problems import KeyRuleError, Problem, find_problems, problem_at, raise_problems
from pipeline.errors import ConfigError
from pipeline.importable import find_import_problem
from pipeline.safe_yaml import KeyPath, shown

DEFAULT_PORTS = {"postgresql": 5432, "mysql": 3306}

_NAME = r"^[a-z][a-z0-9_-]{0,62}$"
_SNAKE_NAME = r"^[a-z][a-z0-9_]*$"
_DOTTED_PATH = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$"
_VARIABLE_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
_NODE_ID = r"^[A-Za-z][A-Za-z0-9_.-]*$"
_LETTER = r"^[\t\x20-\x7e]$"
_PATTERN_WORDS = {
    _LETTER: "one ASCII character, as ',' or \"\\t\"",
    _NAME: "a letter, then letters, digits, - and _, all lower case and at most 63",
    _SNAKE_NAME: "a letter, then letters, digits and _, all lower case",
    _DOTTED_PATH: "a dotted path, module and function, as workloads.taxi.model.build_model",
    _VARIABLE_NAME: "the name of an environment variable: letters, digits and _, no leading digit",
    _NODE_ID: "a node id: a letter, then letters, digits, '.', '_' and '-'",
}

Text = Annotated[str, Field(min_length=1)]
Column = Text
Name = Annotated[str, Field(pattern=_NAME)]
SnakeName = Annotated[str, Field(pattern=_SNAKE_NAME)]
DottedPath = Annotated[str, Field(pattern=_DOTTED_PATH)]
VariableName = Annotated[str, Field(pattern=_VARIABLE_NAME)]
NodeId = Annotated[str, Field(pattern=_NODE_ID)]
# YAML has lists only; everything inside them stays strict.
Metrics = Annotated[tuple[SnakeName, ...], Field(strict=False, min_length=1)]
Slice = Annotated[tuple[Column, ...], Field(strict=False, min_length=1)]
Columns = Annotated[tuple[Column, ...], Field(strict=False)]
Texts = Annotated[tuple[Text, ...], Field(strict=False)]
# One ASCII character that can stand in a line.
Letter = Annotated[str, Field(pattern=_LETTER)]
Moment = Annotated[int | float | str, Field(union_mode="left_to_right")]
Slices = Annotated[tuple[Slice, ...], Field(strict=False)]


def _without_default(schema: dict[str, Any]) -> None:
    """Drops from the JSON Schema a default that another key decides."""
    schema.pop("default", None)


class _Model(BaseModel):
    """Frozen, strict (no text for numbers), and without room for unknown keys."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, serialize_by_alias=True
    )


class SplitByConfig(_Model):
    """What decides over a row's split; exactly one of key, time, files and parts."""

    key: Column | None = Field(
        default=None, description="Rows with the same value in this column fall into the same split."
    )
    time: Column | None = Field(
        default=None, description="Rows are split by this column of numbers or ISO dates; needs starts."
    )
    starts: dict[SnakeName, Moment | None] | None = Field(
        default=None,
        description="For time: the first moment of each split; null for the earliest. A split ends where "
        "the next begins.",
    )
    files: dict[SnakeName, Text] | None = Field(
        default=None, description="Patterns below data.source, which is then a folder, by split."
    )
    parts: dict[SnakeName, Text] | None = Field(
        default=None,
        description="For npz: the arrays of each split; {train: train, eval: test} is x_train and x_test.",
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in ("key", "time", "files", "parts") if getattr(self, name) is not None]
        if len(given) != 1:
            raise KeyRuleError("must hold exactly one of key, time, files and parts")
        if (self.time is None) != (self.starts is None):
            raise KeyRuleError("time and starts belong together, as {time: day, starts: {train: null, ...}}")
        if self.starts is not None and [*self.starts.values()].count(None) != 1:
            raise KeyRuleError("must hold null for the earliest split, and for no other", "starts")
        for name in ("starts", "files", "parts"):
            splits = getattr(self, name)
            for needed in ("train", "eval") if splits is not None else ():
                if needed not in splits:
                    raise KeyRuleError(f"must hold '{needed}'", name)
        return self


class DataConfig(_Model):
    """Where the raw examples come from and how they are split."""

    source: Text = Field(
        description="A file, a directory, a glob, gs://BUCKET/PATH, or package://PACKAGE/PATH inside an "
        "installed package; relative to the project's root.",
        examples=["data/trips.csv"],
    )
    format: Literal["csv", "jsonl", "parquet", "tfrecord", "npz", "images"] = Field(
        default="csv",
        description="How the source's files are encoded; files named .gz, .bz2 and .zst are unpacked. "
        "images: a folder of images for each class.",
    )
    label: Column = Field(
        description="The raw column that the label comes from; it is never a feature when serving.",
        examples=["tips"],
    )
    split: dict[SnakeName, Annotated[int, Field(ge=1)]] = Field(
        default={"train": 2, "eval": 1},
        description="Hash buckets per split: {train: 2, eval: 1} trains on two thirds of the rows.",
    )
    split_by: SplitByConfig | None = Field(
        default=None,
        description="What decides over a row's split instead of a hash of the whole row; null: that hash.",
    )
    max_bad_share: float = Field(
        default=0.001,
        ge=0,
        le=1,
        description="Share of the rows that may be unreadable; they go to the quarantine. More stop the run.",
    )
    delimiter: Letter = Field(default=",", description="CSV: the character between two fields.")
    quote: Letter | None = Field(
        default='"', description="CSV: the character around fields; null where it has no meaning."
    )
    encoding: Text = Field(default="utf-8", description="CSV and JSON Lines: the encoding of the text.")
    column_names: Columns = Field(
        default=(), description="CSV: names of the columns of files that have no header."
    )
    columns: Columns = Field(
        default=(), description="The columns that are read; none named: all. Not for tfrecord and images."
    )
    null_values: Texts = Field(
        default=(), description="CSV: texts that mean a missing value, beside the empty one."
    )
    shard_mb: int = Field(default=100, ge=1, description="Megabytes of a file of examples, about.")
    min_shards: int = Field(
        default=1,
        ge=1,
        le=4096,
        description="Files of examples per split, at least; as many as there are hosts to read them.",
    )
    compression: Literal["gzip", "none"] = Field(default="gzip", description="How the examples are stored.")
    gzip_level: int = Field(default=1, ge=1, le=9, description="1 is fast, 9 is small.")

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, encoding: str) -> str:
        try:
            "".encode(encoding)
        except LookupError:
            raise KeyRuleError("no text encoding that Python knows, as utf-8, utf-16 or latin-1") from None
        return encoding

    @model_validator(mode="after")
    def _names_of_columns(self) -> Self:
        for key in ("column_names", "columns"):
            names = getattr(self, key)
            for index, name in enumerate(names):
                if name in names[:index]:
                    raise KeyRuleError("given twice; keep one", key, index)
        if self.split_by is not None and self.split_by.key is None and "split" in self.model_fields_set:
            raise KeyRuleError("split_by names the splits already; remove this key", "split")
        if self.split_by is not None and self.split_by.parts is not None and self.format != "npz":
            raise KeyRuleError("only files of the format npz have parts", "split_by", "parts")
        return self

    @model_validator(mode="after")
    def _train_and_eval(self) -> Self:
        for needed in ("train", "eval"):
            if needed not in self.split:
                raise KeyRuleError(f"must hold '{needed}'; write for example {{train: 2, eval: 1}}", "split")
        return self


class TransformConfig(_Model):
    """How raw columns become features."""

    preprocessing_fn: DottedPath = Field(
        description="Dotted path of the preprocessing function for TensorFlow Transform.",
        examples=["workloads.taxi.preprocessing.preprocessing_fn"],
    )
    label: Column = Field(
        default="",
        description="The transformed feature that holds the label; the name of data.label where not given.",
        json_schema_extra=_without_default,
    )


class TrainConfig(_Model):
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


class Threshold(_Model):
    """Bounds of one metric; a model outside them is not blessed."""

    min: float | None = Field(default=None, description="The lowest value that is blessed.")
    max: float | None = Field(default=None, description="The highest value that is blessed.")
    max_drop: float | None = Field(
        default=None, ge=0, description="How far below the last blessed model's value it may lie."
    )

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise KeyRuleError(f"min ({self.min}) is above max ({self.max}); no value can pass")
        if self.min is None and self.max is None and self.max_drop is None:
            raise KeyRuleError("holds no bound; give min, max or max_drop")
        return self


class EvaluateConfig(_Model):
    """How the trained model is judged on the eval split."""

    metrics: Metrics = Field(
        default=("auc", "binary_accuracy"), description="Keras metrics to compute, by their snake_case names."
    )
    slices: Slices = Field(
        default=(),
        description="Lists of raw columns; the metrics are also computed for each of their values.",
    )
    thresholds: dict[SnakeName, Threshold] = Field(
        default={}, description="Bounds per metric that the model must keep to be blessed and pushed."
    )

    @model_validator(mode="after")
    def _names_agree(self) -> Self:
        for key, items in (("metrics", self.metrics), ("slices", self.slices)):
            for index, item in enumerate(items):
                if item in items[:index]:
                    raise KeyRuleError("given twice; keep one", key, index)
        for metric in self.thresholds:
            if metric not in self.metrics:
                listed = ", ".join(self.metrics)
                raise KeyRuleError(
                    f"not one of evaluate.metrics ({listed}); add it there", "thresholds", metric
                )
        return self


class PushConfig(_Model):
    """Where a blessed model goes."""

    destination: Text | None = Field(
        default=None,
        description="Directory that receives the versions, relative to the project's root; "
        "null: serving/NAME in the output directory.",
    )


class NodeConfig(_Model):
    """How one node of the pipeline is run."""

    retries: int = Field(default=0, ge=0, description="How often the node is tried again after a failure.")
    timeout_s: float | None = Field(
        default=None, gt=0, description="Seconds after which the node is stopped; null: no limit."
    )
    backoff_s: float = Field(default=1.0, ge=0, description="Seconds to wait before the node is tried again.")


class MetadataConfig(_Model):
    """The database server that ML Metadata is kept in."""

    type: Literal["postgresql", "mysql"] = Field(description="Kind of database.", examples=["postgresql"])
    host: Text = Field(default="localhost", description="Host name or address of the server.")
    port: int = Field(
        default=0,
        ge=1,
        le=65535,
        description="Port of the server; 5432 for postgresql and 3306 for mysql where not given.",
        json_schema_extra=_without_default,
    )
    database: Text = Field(description="Name of the database; it must exist.", examples=["mlmd"])
    user: Text = Field(description="User that may create tables there.", examples=["slipway"])
    password_env: VariableName | None = Field(
        default=None,
        description="Name of the environment variable that holds the password; null: no password.",
    )

    @model_validator(mode="before")
    @classmethod
    def _usual_port(cls, data: Any) -> Any:
        if isinstance(data, dict) and "port" not in data and data.get("type") in DEFAULT_PORTS:
            return {**data, "port": DEFAULT_PORTS[data["type"]]}
        return data


class WorkloadConfig(_Model):
    """One workload: from raw files to a served model."""

    name: Name = Field(
        description="Name of the workload; it stands in paths and in the report.", examples=["taxi"]
    )
    description: str = Field(default="", description="One line for people about what the model predicts.")
    data: DataConfig = Field(
        description="Where the raw examples come from and how they are split.",
        examples=[{"source": "data/trips.csv", "label": "tips"}],
    )
    schema_path: Text | None = Field(
        default=None,
        alias="schema",
        description="Schema file (.pbtxt) relative to the project's root; null: inferred from the data.",
    )
    transform: TransformConfig = Field(
        description="How raw columns become features.",
        examples=[{"preprocessing_fn": "workloads.taxi.preprocessing.preprocessing_fn"}],
    )
    train: TrainConfig = Field(
        description="What is trained, and for how long.",
        examples=[{"model": "workloads.taxi.model.build_model"}],
    )
    evaluate: EvaluateConfig = Field(
        default=EvaluateConfig(), description="How the trained model is judged on the eval split."
    )
    push: PushConfig = Field(default=PushConfig(), description="Where a blessed model goes.")
    nodes: dict[NodeId, NodeConfig] = Field(
        default={}, description="Retries and time limits per node id, for example {Trainer: {retries: 1}}."
    )
    metadata: MetadataConfig | None = Field(
        default=None,
        description="Database server for ML Metadata; null: SQLite in the output directory.",
    )
    # Not dumped: what a run used is the merged file, not the profiles that it did not choose.
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
                    raise KeyRuleError("cannot stand in a profile; remove it there", name, key)
        return profiles

    @model_validator(mode="before")
    @classmethod
    def _label_keeps_its_name(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        raw, transform = data.get("data"), data.get("transform")
        label = raw.get("label") if isinstance(raw, dict) else None
        # A label that is wrong itself is told once, where it stands.
        if isinstance(transform, dict) and isinstance(label, str) and label:
            return {**data, "transform": {"label": label, **transform}}
        return data


def load_workload(
    path: Path, *, sets: Sequence[str] = (), profile: str | None = None, root: Path
) -> WorkloadConfig:
    """Loads a workload file, lays the profile and then each `key.path=value` of `sets` over it, checks all.

    The functions that it names are looked for without importing them. `schema_path` and `push.destination`
    are made absolute; `data.source` stays as written, for `components.ingest.source.resolve_source`.

    Args:
        path: the workload file, absolute or relative to `root`.
        sets: `key.path=value`, the value in YAML; mappings are merged, lists and scalars replaced.
        profile: one of the file's profiles; None: the file as it is.
        root: the project's root, which relative paths in the file are relative to.

    Raises:
        ConfigError: every problem found, one a line, with file, line, key, value, rule and nearest name.
    """
    file = read_layer(root / path, root=root)
    profiles = {name: profile_layer(file, name) for name in file.mapping_at("profiles")}
    if profile is not None and profile not in profiles:
        there = ", ".join(map(shown, profiles)) or "none"
        raise ConfigError(f"{file.name}: no profile {shown(profile)}; there are: {there}")
    chosen = [profiles[profile]] if profile is not None else []
    merged = Layers(file, *chosen, *map(set_layer, sets))
    problems = _find_problems(merged, root=root)
    seen = {(problem.path, problem.words) for problem in problems}
    for layer in profiles.values():  # a profile that is not chosen now will be some day
        if layer not in chosen:
            found = _find_problems(Layers(file, layer), root=root, only=layer)
            problems += [problem for problem in found if (problem.path, problem.words) not in seen]
    raise_problems(problems, name=file.name)
    return _with_absolute_paths(WorkloadConfig.model_validate(merged.data), root)


def _find_problems(layers: Layers, *, root: Path, only: Layer | None = None) -> list[Problem]:
    found = find_problems(WorkloadConfig, layers, patterns=_PATTERN_WORDS)
    wrong = {problem.path for _, problem in found}
    checks: tuple[tuple[KeyPath, Callable[..., str]], ...] = (
        (("schema",), _find_file_problem),
        (("transform", "preprocessing_fn"), find_import_problem),
        (("train", "model"), find_import_problem),
    )
    for path, check in checks:
        value = layers.value(path)
        if isinstance(value, str) and path not in wrong and (words := check(value, root=root)):
            found.append(problem_at(path, words, layers))
    return [problem for layer, problem in found if only is None or layer is only]


def _find_file_problem(value: str, *, root: Path) -> str:
    try:
        return "" if (root / value).is_file() else "does not exist; null infers it from the data"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _with_absolute_paths(config: WorkloadConfig, root: Path) -> WorkloadConfig:
    def absolute(value: str | None) -> str | None:
        return value if value is None or "://" in value else str(root.absolute() / value)

    push = config.push.model_copy(update={"destination": absolute(config.push.destination)})
    return config.model_copy(update={"schema_path": absolute(config.schema_path), "push": push})
