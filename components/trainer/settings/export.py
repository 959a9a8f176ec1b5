"""The smaller forms of a model that can be written beside it, and the report on them."""

from typing import Literal, NotRequired, TypedDict

ExportKind = Literal["litert", "litert_dynamic", "litert_int8", "keras_int8"]
QUANTIZED: tuple[ExportKind, ...] = ("litert_dynamic", "litert_int8")
"""The forms in which every weight is int8."""


class Export(TypedDict):
    """A smaller form; `change` is each of its metrics minus the model's own.

    `no_number` names the metrics that are numbers of the model, and NaN or infinite of this form.
    """

    kind: ExportKind
    file: str
    size_bytes: int
    metrics: dict[str, float]
    change: dict[str, float]
    no_number: NotRequired[list[str]]


class Exports(TypedDict):
    """The content of `exports.json`: rows measured on, the model's own weights and metrics, and each form."""

    rows: int
    weights_bytes: int
    metrics: dict[str, float]
    exports: list[Export]
