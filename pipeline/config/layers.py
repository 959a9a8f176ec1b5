"""Settings in layers, merged: a workload's file, one of its profiles, and each `--set` that overrides them.

A layer remembers where each of its keys was written, so that an error in the merged settings is reported at
the place where the user has to correct it.
"""

from dataclasses import dataclass

from slipway.pipeline.config.safe_yaml import KeyPath, Value

Mapping = dict[str, Value]


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


class Layers:
    """Layers merged into `data`: mappings key by key, everything else replaced by the later layer.

    An empty mapping would add nothing, so it is what empties one.
    """

    def __init__(self, *layers: Layer) -> None:
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


def _merged(below: Mapping, above: Mapping) -> Mapping:
    merged = dict(below)
    for key, value in above.items():
        former = merged.get(key)
        both_map = isinstance(former, dict) and isinstance(value, dict) and value != {}
        merged[key] = _merged(former, value) if both_map else value  # type: ignore[arg-type]
    return merged
