"""The layers of a workload's settings: the file, one of its profiles, and each `--set` that overrides them.

A layer remembers where each of its keys was written, so that an error in the merged settings is reported at
the place where the user has to correct it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from slipway.components.nearest import nearest_first
from slipway.pipeline.config.safe_yaml import MAX_BYTES, KeyPath, Value, read_yaml, shown, shown_key
from slipway.pipeline.errors import ConfigError, UsageError

Mapping = dict[str, Value]
NOT_IN_A_PROFILE = ("name", "profiles")
_SHOWN_WORKLOADS = 5


@dataclass(frozen=True, slots=True)
class Origin:
    """The place where a key was written.

    Attributes:
        place: "file:line" or "--set key.path".
        line: counted from 1; 0 for --set.
        text: the scalar as written; "" for a list or mapping.
        is_target: whether this is the key that a --set names, rather than a key inside its value.
    """

    place: str
    line: int = 0
    text: str = ""
    is_target: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Settings from one source; `name` is its name in messages, `origins` has every key path in `data`."""

    name: str
    data: Mapping
    origins: dict[KeyPath, Origin]

    def mapping_at(self, *path: str) -> Mapping:
        """Return the mapping at a key path; empty if there is none."""
        value: Value = self.data
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Assignment:
    """One parsed `--set KEY=VALUE` of a workload.

    Attributes:
        text: the text as given, for records, and for commands to paste.
        layer: the settings as a layer.
    """

    text: str
    layer: Layer = field(compare=False, repr=False)


class Layers:
    """Layers merged into `data`: mappings key by key, everything else replaced by the later layer."""

    def __init__(self, *layers: Layer) -> None:
        self.names = tuple(layer.name for layer in layers)
        self._layers = layers
        self.data: Mapping = {}
        for layer in layers:
            self.data = _merged(self.data, layer.data)

    def origin(self, path: KeyPath, *, first: bool = False) -> tuple[Layer, Origin]:
        """Return where `path`, or the closest key above it, was written last, or with `first` first."""
        layers = self._layers if first else self._layers[::-1]
        for length in range(len(path), 0, -1):
            for layer in layers:
                if origin := layer.origins.get(path[:length]):
                    return layer, origin
        return self._layers[0], Origin(self._layers[0].name)

    def value(self, path: KeyPath) -> Value:
        """Return the merged value at `path`; None if there is none."""
        value: Value = self.data
        for key in path:
            if isinstance(value, dict):
                value = value.get(str(key))
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value


def read_layer(path: Path, *, root: Path) -> Layer:
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
    return f"there {'is' if len(files) == 1 else 'are'} {', '.join([*there, *more])}"


def profile_layer(file: Layer, profile: str) -> Layer:
    """Return one profile of the file as a layer, without the keys that no profile may set."""
    data = {k: v for k, v in file.mapping_at("profiles", profile).items() if k not in NOT_IN_A_PROFILE}
    prefix = ("profiles", profile)
    origins = {key[2:]: origin for key, origin in file.origins.items() if key[:2] == prefix and len(key) > 2}
    return Layer(f"profile {shown_key((profile,))}", data, origins)


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
        UsageError: a text has no `=`.
    """
    parameters = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text}: must be parameter=value")
        parameters[name] = value
    return parameters


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
    document = read_yaml(text, name=place)
    origins: dict[KeyPath, Origin] = {path[:length]: Origin(place) for length in range(1, len(path))}
    origins[path] = Origin(place, text=_unbroken(text), is_target=True)
    origins |= {(*path, *inner): Origin(place, text=at.text) for inner, at in document.places.items()}
    value = document.data
    for part in reversed(path):
        value = {part: value}
    return Layer(place, cast("Mapping", value), origins)


def _merged(below: Mapping, above: Mapping) -> Mapping:
    merged = dict(below)
    for key, value in above.items():
        former = merged.get(key)
        both_map = isinstance(former, dict) and isinstance(value, dict)
        merged[key] = _merged(former, value) if both_map else value  # type: ignore[arg-type]
    return merged


def _shown_path(path: Path, root: Path) -> str:
    absolute, base = path.absolute(), root.absolute()
    return _unbroken(str(absolute.relative_to(base) if absolute.is_relative_to(base) else path))


def _unbroken(text: str) -> str:
    """Return the text unchanged if it is safe to print on a terminal, otherwise escaped."""
    return text if text.isprintable() else shown(text)
