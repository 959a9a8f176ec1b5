"""The rule that decides which split a row belongs to."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Split:
    """The rule that decides a row's split.

    Attributes:
        by: `data.split_by`; empty: by a hash of the whole row.
        why: the reason, as text; may be empty.
        gate: limits of the data gate that must be raised for this way of splitting.
        unit_count: the number of units that are assigned to a split, each with all of its rows.
        keeps_neighbours_together: whether neighbouring rows, which are of about one time, stay in one split.
        present_shares: for a split by time, the smaller of the shares of rows that have a value in the two
            splits, by column: a column may have begun, or ended, meanwhile.
    """

    by: Mapping[str, object] = field(default_factory=dict)
    why: str = ""
    gate: Mapping[str, float] = field(default_factory=dict)
    unit_count: int = 0
    keeps_neighbours_together: bool = False
    present_shares: Mapping[str, float] = field(default_factory=dict)

    @property
    def column(self) -> str | None:
        """The column that decides a row's split, which need not be a feature; None if none does."""
        found = self.by.get("key") or self.by.get("time")
        return None if found is None else str(found)
