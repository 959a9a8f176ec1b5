"""Where the parsed examples are kept while a training runs over them."""

from dataclasses import dataclass
from typing import ClassVar

from components.trainer.settings.group import SettingsGroup

CACHES = ("auto", "memory", "file", "none")


@dataclass(frozen=True, kw_only=True)
class InputSettings(SettingsGroup):
    """The workload's `train.input`.

    Attributes:
        cache: "memory", "file" (parsed once into a mapped file), "none" (read and parsed in every epoch), or
            "auto": memory where they fit, else none.
        shuffle_rows: examples that are shuffled at a time without a cache, >= 1; with one, all are.
    """

    key: ClassVar[str] = "input"
    section: ClassVar[str] = "input"

    cache: str = "auto"
    shuffle_rows: int = 65536

    def __post_init__(self) -> None:
        self.require_choice("cache", CACHES)
        self.require_integer("shuffle_rows", 1)
