"""The base of all groups of settings: plain values that are written to the job file and read back."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

from slipway.components.errors import ComponentError
from slipway.components.setting_fields import broken_rule


@dataclass(frozen=True, kw_only=True)
class SettingsGroup:
    """A base for frozen dataclasses of `setting_fields.setting` fields, which checks types and bounds.

    Attributes:
        key: the name of the group in the job, for messages.
        section: the name of the section in the workload's `train`; "" if the settings are direct keys of it.

    Raises:
        ComponentError: a value breaks a rule of its setting.
    """

    key: ClassVar[str] = ""
    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if rule := broken_rule(value, each):
                raise ComponentError(f"{self._shown(each.name)} ({value!r}) {rule}")

    def to_json(self) -> dict[str, object]:
        """Return the settings as plain values; `from_json` reads them back."""
        return asdict(self)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the settings' names, in order."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def from_json(cls, values: Any) -> Self:
        """Read what `to_json` wrote, or the same section of a workload file.

        Raises:
            ComponentError: a key is missing or unknown, or a value breaks a rule of the group.
        """
        known, found = set(cls.names()), set(values) if isinstance(values, Mapping) else set()
        if not isinstance(values, Mapping) or known != found:
            raise ComponentError(
                f"{cls.key} of the training job lacks {sorted(known - found)} and does not know "
                f"{sorted(found - known)}"
            )
        return cls(**values)

    def _shown(self, name: str) -> str:
        """Return the setting's name as the workload file writes it."""
        return f"train.{self.section}.{name}" if self.section else f"train.{name}"
