"""Reads a workload's settings: its file, with a profile and each `--set` laid over it, checked as a whole."""

import collections.abc
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from slipway.components.counted_words import agreeing
from slipway.components.home_folder import at_home
from slipway.components.nearest import nearest_first
from slipway.components.project import PROJECT_ROOT
from slipway.components.store_address import is_remote
from slipway.pipeline.config.data_gate import find_folder_problem, find_reference_problem, reference_folder
from slipway.pipeline.config.hyperparameter_names import find_unknown_hyperparameters
from slipway.pipeline.config.importable import find_import_problem
from slipway.pipeline.config.layers import Layer, Layers, Mapping, Origin
from slipway.pipeline.config.safe_yaml import MAX_BYTES, Document, KeyPath, read_yaml, shown, shown_key
from slipway.pipeline.config.schema_file import find_schema_problem
from slipway.pipeline.config.secret_names import hides_value, secrets_by_name
from slipway.pipeline.config.section import PATTERN_WORDS
from slipway.pipeline.config.settings_errors import Problem, find_problems, problem_at, raise_problems
from slipway.pipeline.config.workload import NOT_IN_A_PROFILE, WorkloadConfig
from slipway.pipeline.config.written_secrets import written_secrets
from slipway.pipeline.errors import ConfigError, UsageError

_SHOWN_WORKLOADS = 5
_NO_SECRETS = "settings are written into records and reports; have what needs it read an environment variable"
_BY_NAME = f"is a secret by its name: {_NO_SECRETS}, whose name a parameter may hold"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One parsed `--set KEY=VALUE` of a workload.

    Attributes:
        text: the text as given, for records, and for commands to paste.
        layer: the settings as a layer.
    """

    text: str
    layer: Layer = field(compare=False, repr=False)


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
        config = load_workload(self.file, sets=self.sets, profile=self.profile, root=PROJECT_ROOT)
        folder = self.file.parent
        # Not the name in the file, which may be another than that of its folder.
        is_here = folder.parent == PROJECT_ROOT / "workloads" and self.file.name == "workload.yaml"
        return config.named_by((folder.name if is_here else str(self.workload), *self.options))


def read_assignments(texts: Iterable[str]) -> tuple[Assignment, ...]:
    """Parse each `--set` of a workload, `key.path=value` with the value in YAML: `evaluate.metrics=[auc]`.

    `WorkloadChoice.config` checks that the key exists and accepts the value.

    Raises:
        ConfigError: there is no key or no '=', the value is not YAML, or the key cannot be set.
    """
    return tuple(Assignment(text, _set_layer(text)) for text in texts)


def read_parameters(texts: Iterable[str]) -> dict[str, str]:
    """Parse each `--set` of a pipeline without a workload file, `parameter=value`; the last one counts.

    Raises:
        UsageError: a text has no `=`; or see `refuse_secrets`.
    """
    parameters = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: must be parameter=value")
        parameters[name] = value
    refuse_secrets(parameters, given_by="--set ")
    return parameters


def refuse_secrets(parameters: collections.abc.Mapping[str, object], *, given_by: str) -> None:
    """Refuse parameters of a pipeline that hold a secret: records keep them, as `resume` needs them.

    Args:
        parameters: by name; from Python also numbers, lists, mappings and other objects.
        given_by: stands before the name of a parameter in the error.

    Raises:
        UsageError: a value, or one within it, has the form of a secret, or a text or number the name of one.
    """
    for name, value in parameters.items():
        for _, what in written_secrets(value):
            raise UsageError(f"{given_by}{name}: looks like {what}: {_NO_SECRETS}")
        for secret in secrets_by_name(name, value):
            raise UsageError(f"{given_by}{secret}: {_BY_NAME} ({secret}_env)")


def load_workload(
    path: Path, *, sets: Sequence[Assignment] = (), profile: str | None = None, root: Path
) -> WorkloadConfig:
    """Load a workload file, override it by the profile and then by each of `sets`, and check the result.

    The functions that the file names are located without importing them. `schema_path` and the paths of
    `push` and `data_gate` become absolute; `data.source` stays as written, for
    `slipway.components.ingest.source.resolve_source`.

    Args:
        path: the workload file, absolute or relative to `root`.
        sets: values that override the file; mappings are merged, lists and scalars replaced,
            and an empty mapping empties.
        profile: one of the file's profiles; None: no profile.
        root: the project's root, to which relative paths in the file are relative.

    Raises:
        ConfigError: lists every problem found, one per line, with file, line, key, value, rule and nearest
            name.
    """
    file = _file_layer(root / path, root=root)
    profiles = {name: _profile_layer(file, name) for name in file.mapping_at("profiles")}
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
    found += [
        problem_at(path, f"looks like {what}: {_NO_SECRETS}", layers, echo=False)
        for path, what in written_secrets(layers.data)
        # Each profile is checked over the file, by itself.
        if path[0] != "profiles" and path not in wrong
    ]
    own = _mapping_at(layers, "evaluate", "own_metrics")
    told = {problem.path for _, problem in found}
    # Values that are passed to the user's own code may have any name.
    for section in (("train", "hyperparameters"), *(("evaluate", "own_metrics", m, "settings") for m in own)):
        for name, value in _mapping_at(layers, *section).items():
            secret = next(secrets_by_name(name, value, of_a_model=True), "")
            within = "" if secret == name else f"{shown_key((secret,))} in it "
            words = f"{within}{_BY_NAME} ({secret}_env)"
            if secret and (*section, name) not in told:
                found.append(problem_at((*section, name), words, layers, echo=False))
    for name in own:
        path = ("evaluate", "own_metrics", name, "class")
        value = layers.value(path)
        if isinstance(value, str) and path not in wrong:
            words = find_import_problem(value, root=root, kind="class")
            found += [problem_at(path, words, layers)] if words else []
    model = layers.value(("train", "model"))
    if isinstance(model, str) and not any(problem.path == ("train", "model") for _, problem in found):
        for section in (("train", "hyperparameters"), ("tune", "search")):
            unknown = find_unknown_hyperparameters(_mapping_at(layers, *section), model=model, root=root)
            found += [problem_at((*section, name), words, layers) for name, words in unknown.items()]
    return [problem for layer, problem in found if only is None or layer is only]


def _mapping_at(layers: Layers, *path: str) -> Mapping:
    found = layers.value(path)
    return found if isinstance(found, dict) else {}


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


def _file_layer(path: Path, *, root: Path) -> Layer:
    """Read a workload file; messages name it relative to `root` if it is inside.

    Raises:
        ConfigError: the file does not exist, cannot be read, is not YAML or does not hold a mapping.
    """
    name = _shown_path(path, root)
    try:
        if not path.is_file():
            raise _no_file(path, root, name)
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}") from error
    document = read_yaml(raw, name=name)
    if not isinstance(document.data, dict):
        what = "is empty" if document.data is None else "does not hold keys with values"
        raise ConfigError(f"{name} {what}; a workload file begins with, for example: name: taxi")
    origins = {key: Origin(f"{name}:{at.line}", at.line, at.text) for key, at in document.places.items()}
    return Layer(name, document.data, origins)


def _no_file(path: Path, root: Path, name: str) -> ConfigError:
    if name == ".":  # no name was given; an empty path becomes "." as well
        if there := _workloads(path, root):
            return ConfigError("no workload is named", hint=there)
        return ConfigError(
            "this project has no workload yet",
            hint="make one from your rows: the command new NAME --data FILE --label COLUMN",
        )
    if path.is_dir():
        return ConfigError(f"{name} is a folder; name the workload.yaml in it")
    return ConfigError(f"{name} does not exist", hint=_workloads(path, root))


def _workloads(path: Path, root: Path) -> str:
    """List the existing workloads in words, the likeliest for `path` first; empty if there are none."""
    meant = path.parent.name if path.name == "workload.yaml" else path.stem
    files = {found.parent.name: found for found in sorted(root.glob("workloads/*/workload.yaml"))}
    there = [_shown_path(files[name], root) for name in nearest_first(meant, files)[:_SHOWN_WORKLOADS]]
    if not there:
        return ""
    more = [f"and {len(files) - len(there)} more"] if len(files) > len(there) else []
    return f"there {agreeing(len(files), 'are')} {', '.join([*there, *more])}"


def _profile_layer(file: Layer, profile: str) -> Layer:
    """Return one profile of the file as a layer, without the keys that no profile may set."""
    data = {k: v for k, v in file.mapping_at("profiles", profile).items() if k not in NOT_IN_A_PROFILE}
    prefix = ("profiles", profile)
    origins = {key[2:]: origin for key, origin in file.origins.items() if key[:2] == prefix and len(key) > 2}
    return Layer(f"profile {shown_key((profile,))}", data, origins)


def _set_layer(assignment: str) -> Layer:
    """Return the layer of one `key.path=value`.

    Raises:
        ConfigError: there is no key or no '=', the value is not YAML, or the key cannot be set.
    """
    key, equals, text = assignment.partition("=")
    path = tuple(part.strip() for part in key.split("."))
    if not equals or not all(path):
        raise ConfigError(
            f"--set {_unbroken(assignment)}: must be key=value, for example --set train.batch_size=512"
        )
    place = f"--set {shown_key(path)}"
    if path[0] == "profiles":
        raise ConfigError(f"{place}: profiles cannot be set; choose one with --profile NAME")
    if not text.strip():  # YAML's null: a night's day that the shell does not know would be the latest
        raise ConfigError(
            f"{place}: has no value; is a variable of the shell unset?",
            hint=f"--set {shown_key(path)}=null, if none is meant",
        )
    try:
        document = _read_uncommented(text, name=place)
    except ConfigError as error:
        quoted = shlex.quote(f'{key}="{text}"')
        may_be_secret = hides_value(path[-1]) or any(written_secrets(text))
        is_text = text.isprintable() and not {'"', "\\"}.intersection(text) and not may_be_secret
        hint = f"if it is a text, quote it for YAML, too: --set {quoted}" if is_text else ""
        raise ConfigError(error.message, hint=error.hint or hint) from error
    origins: dict[KeyPath, Origin] = {path[:length]: Origin(place) for length in range(1, len(path))}
    origins[path] = Origin(place, text=_unbroken(text), is_target=True)
    origins |= {(*path, *inner): Origin(place, text=at.text) for inner, at in document.places.items()}
    value = document.data
    for part in reversed(path):
        value = {part: value}
    return Layer(place, cast("Mapping", value), origins)


def _read_uncommented(text: str, *, name: str) -> Document:
    """Read YAML, but refuse a comment, which nobody means to type at a prompt."""
    document = read_yaml(text, name=name)
    before, *after = re.split(r"(?:^|\s)#", text, maxsplit=1)
    try:
        is_comment = bool(after) and read_yaml(before, name=name).data == document.data
    except ConfigError:  # the # is within quotes
        is_comment = False
    if is_comment:
        raise ConfigError(f"{name}: what follows the # would be left out, as a comment in YAML")
    return document


def _shown_path(path: Path, root: Path) -> str:
    absolute, base = path.absolute(), root.absolute()
    return _unbroken(str(absolute.relative_to(base) if absolute.is_relative_to(base) else path))


def _unbroken(text: str) -> str:
    """Return the text unchanged if it is safe to print on a terminal, otherwise escaped."""
    return text if text.isprintable() else shown(text)
