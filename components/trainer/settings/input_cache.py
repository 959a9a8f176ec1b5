"""Settings for keeping the parsed examples during a training, and for batching them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from slipway.components.errors import ComponentError
from slipway.components.setting_fields import setting
from slipway.components.trainer.settings.group import SettingsGroup


@dataclass(frozen=True, kw_only=True)
class InputSettings(SettingsGroup):
    """Settings for keeping the parsed examples during a training, and for batching them.

    Raises:
        ComponentError: a value breaks one of these rules.
    """

    key: ClassVar[str] = "input"
    section: ClassVar[str] = "input"

    cache: Literal["auto", "memory", "file", "none"] = setting(
        "auto",
        "file: parsed once into a mapped file; none: read again in every epoch; auto: in memory if they "
        "fit, else none.",
    )
    shuffle_rows: int = setting(
        65536,
        "Size of the shuffle buffer in examples without a cache; with a cache, all examples are shuffled.",
        ge=1,
    )
    bucket_by_length: dict[str, list[int]] = setting(
        {},
        "Lengths of a transformed column to which batches are cut, besides its own: the rows of a batch are "
        "of similar length, and the step is compiled once for each. The padding must be 0.",
        examples=[{"words": [16, 64]}],
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted: Any = self.bucket_by_length
        if not isinstance(wanted, Mapping):
            raise ComponentError(f"{self._shown('bucket_by_length')} maps columns to lengths, not {wanted!r}")
        for name, lengths in wanted.items():
            is_list = (
                isinstance(lengths, list) and bool(lengths) and all(type(each) is int for each in lengths)
            )
            if not is_list or lengths[0] < 1 or sorted(set(lengths)) != lengths:
                raise ComponentError(
                    f"{self._shown('bucket_by_length')}.{name} ({lengths!r}) must list whole numbers >= 1, "
                    "each greater than the one before"
                )
        if len({len(lengths) for lengths in wanted.values()}) > 1:
            raise ComponentError(
                f"{self._shown('bucket_by_length')} gives its columns different numbers of lengths",
                hint="a bucket has a length for each column: write equally many",
            )
        if wanted and self.cache == "none":
            raise ComponentError(
                f"{self._shown('bucket_by_length')} needs rows in memory or in a file, but "
                f"{self._shown('cache')} is none",
                hint=f"set {self._shown('cache')} to file, memory or auto",
            )
