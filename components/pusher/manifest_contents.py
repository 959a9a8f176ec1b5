"""The description of a model in a version's manifest: plain data, in which any key may be missing."""

from collections.abc import Mapping
from types import UnionType
from typing import (
    Any,
    NotRequired,
    TypedDict,
    TypeGuard,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from slipway.components.saved_model.signatures import PlainSignature


class About(TypedDict, total=False):
    """The workload's description of itself.

    Attributes:
        model, preprocessing_fn: dotted paths.
        classes: names in the order of the label's codes.
        output_classes: the same by output, of a model with several.
        task: the model's purpose in the terms of the Hugging Face Hub, e.g. `tabular-classification`.
        pretrained: the file of weights that the training began with: its path and its sha256.
    """

    workload: str
    description: str
    source: str
    label: str
    model: str
    preprocessing_fn: str
    classes: list[str]
    output_classes: dict[str, list[str]]
    task: str
    pretrained: dict[str, str]


class ModelProvenance(TypedDict, total=False):
    """The model: its signatures by name; one SHA-256 over its files."""

    signatures: Mapping[str, PlainSignature]
    digest: str


class DataProvenance(TypedDict, total=False):
    """The data: its source, digest and span, and its row counts from Ingest's summary.

    Attributes:
        units: of columns of durations, what their whole numbers count, e.g. `ms`.
    """

    source: str
    digest: str
    span: str
    rows_in: int
    rows_out: dict[str, int]
    rejected: dict[str, int]
    unlabelled: int
    units: dict[str, str]


class DataGateProvenance(TypedDict, total=False):
    """The data gate's message, its findings in words, and the `reason` why they were overridden."""

    message: str
    findings: list[str]
    overrides: list[dict[str, str]]


class SchemaProvenance(TypedDict, total=False):
    """The schema of the raw data.

    Attributes:
        digest: SHA-256 of its file.
        columns: the type of each raw column, by name.
        needed: the columns that every row of a request must have.
        dates: the columns of which all texts were ISO dates.
    """

    digest: str
    columns: dict[str, str]
    needed: list[str]
    dates: list[str]


class GateProvenance(TypedDict):
    """The model gate's reasons in words, its checks and overrides, as in its verdict."""

    reasons: list[str]
    checks: list[Mapping[str, object]]
    overrides: list[Mapping[str, object]]


class Republished(TypedDict):
    """The version that was published again, the one that it replaced, when (ISO 8601), by whom, and why.

    Attributes:
        instead_of_model: the digest of the model that it replaced, whose version may be removed.
    """

    version: int
    instead_of: int
    at: str
    by: str
    reason: NotRequired[str]
    instead_of_model: NotRequired[str]


class SbomProvenance(TypedDict):
    """The version's file that lists the software of the training, and its SHA-256."""

    file: str
    sha256: str


class Provenance(TypedDict, total=False):
    """The origin and quality of a model.

    Attributes:
        run: id of the run that pushed it; `pushed_at`: time of the push, ISO 8601.
        code: one SHA-256 for each package of code, by its name.
        metrics: overall, by name; `slices`: by slice and name.
        exports: the `exports.json` of the model's smaller forms.
        classes, output_classes, task, pretrained: as in `About`.
    """

    workload: str
    description: str
    label: str
    classes: list[str]
    output_classes: dict[str, list[str]]
    task: str
    run: str
    pushed_at: str
    model: ModelProvenance
    code: dict[str, str]
    pretrained: dict[str, str]
    data: DataProvenance
    data_gate: DataGateProvenance
    schema: SchemaProvenance
    metrics: dict[str, float]
    baseline_metrics: dict[str, float]
    slices: dict[str, dict[str, float]]
    gate: GateProvenance
    exports: Mapping[str, object]
    stack: dict[str, str]
    sbom: SbomProvenance
    republished: Republished


def is_provenance(document: Mapping[str, object]) -> TypeGuard[Provenance]:
    """Return True if every known key has a text, a list or a mapping where `Provenance` has one.

    The model, the schema, the metrics and a republication, which commands use, are checked to the last value;
    what the other lists and mappings hold is not looked at.
    """
    hints = get_type_hints(Provenance)
    return all(
        _fits(hints[key] if key in _USED else _plain_type(hints[key]), value)
        for key, value in document.items()
        if key in hints
    )


_USED = ("model", "schema", "metrics", "republished")


def _fits(kind: Any, value: object) -> bool:
    """Return True if a value in JSON is of that type; keys may be missing, and there may be more."""
    arguments = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        return any(_fits(each, value) for each in arguments)
    if is_typeddict(kind):
        hints = get_type_hints(kind)
        return isinstance(value, dict) and all(_fits(hints.get(key, object), value[key]) for key in value)
    plain = _plain_type(kind)
    if plain is dict and arguments:
        return isinstance(value, dict) and all(_fits(arguments[1], each) for each in value.values())
    if plain is list and arguments:
        return isinstance(value, list) and all(_fits(arguments[0], each) for each in value)
    if plain is int and isinstance(value, bool):
        return False
    return isinstance(value, int | float if plain is float else plain)


def _plain_type(kind: Any) -> Any:
    """Return the type in JSON: `list` for a list of anything, `dict` for a mapping."""
    origin = get_origin(kind) or kind
    return dict if is_typeddict(origin) or origin is Mapping else origin
