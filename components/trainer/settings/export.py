"""The smaller forms of a model that can be written beside it."""

from typing import Literal

ExportKind = Literal["litert", "litert_dynamic", "litert_int8", "keras_int8"]
QUANTIZED: tuple[ExportKind, ...] = ("litert_dynamic", "litert_int8")
"""The forms in which each weight becomes int8."""
