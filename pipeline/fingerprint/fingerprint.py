"""The inputs of a node's result as named parts, so that the cache can say why a node runs.

Pure and quick to import: an unchanged rerun is answered from here before TFX, TensorFlow or Beam are
imported.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.rerun_reasons import reasons


@dataclass(frozen=True)
class Fingerprint:
    """Everything that a node's result depends on, and its owner: equal keys may share a result.

    `parts` maps names to values, both text. A name begins with its kind and a colon:

        node:pipeline                   the owner of the result: nodes of equal settings never share one
        code:workloads/taxi/model.py    digest of the file (`source_closure`)
        data:trips-02.csv               digest of the file (`data_digests`)
        param:train.batch_size          canonical JSON of the value (`flatten_params`)
        external:latest_blessed_model   identity of something outside this run
        stack:tfx                       a version
        upstream:Transform              key of a node that this one reads from
        input:examples                  which output of such a node an input reads

    Immutable: the mapping is copied and made read-only.

    Raises:
        PipelineError: a part is not text, or has none of these kinds.
    """

    parts: Mapping[str, str]

    KINDS: ClassVar[tuple[str, ...]] = (
        "node",
        "code",
        "data",
        "param",
        "external",
        "stack",
        "upstream",
        "input",
    )

    def __post_init__(self) -> None:
        for name, value in self.parts.items():
            if not (isinstance(name, str) and isinstance(value, str)):
                raise PipelineError(f"fingerprint part {name!r}: {value!r} is not text, as both must be")
            if name.partition(":")[0] not in self.KINDS or ":" not in name:
                raise PipelineError(
                    f"fingerprint part {name!r} has no known kind",
                    hint=f"Begin its name with one of {', '.join(f'{kind}:' for kind in self.KINDS)}",
                )
        object.__setattr__(self, "parts", MappingProxyType(dict(sorted(self.parts.items()))))

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self) -> tuple[type["Fingerprint"], tuple[dict[str, str]]]:
        """Make a fingerprint picklable, which its read-only mapping is not."""
        return Fingerprint, (dict(self.parts),)

    @cached_property
    def key(self) -> str:
        """The cache key: sha256 hex digest over the canonical JSON of the parts."""
        return hashlib.sha256(canonical_json(self.parts).encode("ascii")).hexdigest()

    def to_json(self) -> str:
        """Return the fingerprint as one line of JSON, `{"key": ..., "parts": {...}}`."""
        return json.dumps({"key": self.key, "parts": dict(self.parts)})

    @classmethod
    def from_json(cls, text: str) -> "Fingerprint":
        """Read the result of `to_json`.

        Raises:
            PipelineError: the text is not a fingerprint, or its parts do not match its key.
        """
        try:
            content = json.loads(text)
            found = cls(content["parts"])
            key = content["key"]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise PipelineError(
                f"not a fingerprint: {text[:60]!r} ({type(error).__name__})",
                hint="The record is damaged or of another version; run the node with --no-cache.",
            ) from error
        if key != found.key:
            raise PipelineError(
                f"damaged fingerprint: its parts give the key {found.key}, but it says {key!r}",
                hint="The record was truncated or edited; run the node with --no-cache.",
            )
        return found


def explain(new: Fingerprint, old: Fingerprint | None) -> list[str]:
    """Explain in words why a node with fingerprint `new` cannot reuse the result made under `old`.

    Causes that a user set off come first (code, parameters, data), then those from outside (a baseline, the
    stack), and last the nodes upstream, which only pass on a cause that is explained there. Changes of the
    same kind are summarized, and long values shortened.

    Returns:
        One line for each reason; `["first run"]` without `old`, `[]` if the keys are equal.
    """
    return ["first run"] if old is None else reasons(new.parts, old.parts)


def flatten_params(prefix: str, params: Mapping[Any, Any]) -> dict[str, str]:
    """Flatten nested parameters into parts: `{"train": {"steps": 5}}` gives `{"param:train.steps": "5"}`.

    Different values never have the same result, whatever the order of their keys: 1, 1.0, "1" and true stay
    distinct, as do an empty mapping and a missing one. Lists stay whole. A key that is not a plain name is
    put in brackets, as JSON: `param:weights[0]`, `param:slices["a.b"]`.

    Args:
        prefix: put before every name, such as `param:` or `param:train`.
        params: values of JSON's types: None, bool, int, float, str, lists and mappings of them.

    Raises:
        PipelineError: a value or key is of another type.
    """
    flat: dict[str, str] = {}
    for key, value in params.items():
        if isinstance(key, str) and key.isidentifier():
            name = f"{prefix}{key}" if prefix.endswith(":") or not prefix else f"{prefix}.{key}"
        else:
            name = f"{prefix}[{_canonical(key, prefix)}]"
        if isinstance(value, Mapping) and value:
            flat.update(flatten_params(name, value))
        else:
            flat[name] = _canonical(value, name)
    return dict(sorted(flat.items()))


def canonical_json(value: Any) -> str:
    """Return the canonical JSON text of a value: keys sorted, no spaces, ASCII only.

    Keys other than text, which YAML allows and JSON does not, are written bare: `{0:"a"}`.

    Raises:
        PipelineError: the value holds something that JSON cannot represent.
    """
    return _canonical(value, "value")


def _canonical(value: Any, name: str) -> str:
    if isinstance(value, Mapping):
        items = sorted(f"{_canonical(key, name)}:{_canonical(item, name)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_canonical(item, name) for item in value) + "]"
    if value is None or isinstance(value, (bool, int, float, str)):
        return json.dumps(value)
    raise PipelineError(
        f"{name}: {value!r} is a {type(value).__name__}, which has no canonical text for the cache key",
        hint="Use text, numbers, true, false, null, lists and mappings of them.",
    )
