"""The columns that input files must have, and the error for a file that lacks some. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from slipway.components.counted_words import first_of
from slipway.components.errors import ComponentError
from slipway.components.nearest import nearest

_SHOWN_COLUMNS = 5


class InputError(ComponentError):
    """A file of the input cannot be read, or is not a table that the model takes."""


@dataclass(frozen=True)
class InputColumns:
    """The columns that each file of the input must have.

    A missing column is more often a mistake than a column of empty cells, but the model would answer as if
    every cell were empty. So users must add an empty column explicitly.

    Attributes:
        taken: the columns that the model takes, under their names in the files.
        needed: the columns of `taken` that must have a value in every row.
        known: other columns of the training data, such as the label: they are not suggested as a misspelled
            name of one in `taken`.
    """

    taken: tuple[str, ...]
    needed: Collection[str] = ()
    known: Collection[str] = ()

    def missing(self, names: Collection[str]) -> dict[str, str]:
        """Return the columns that a file with these names lacks, each with the nearest unknown name or "".

        The columns that must have a value in every row come first.
        """
        unknown = {name.casefold(): name for name in names if name not in {*self.taken, *self.known}}
        lacking = [name for name in self.taken if name not in names]
        lacking.sort(key=lambda name: name not in self.needed)
        return {name: _nearest(name, unknown) for name in lacking}

    def error(self, file: str, missing: Mapping[str, str], *, hint: str = "") -> InputError:
        """Return the error for a file.

        Args:
            missing: the result of `missing`; not empty.
            hint: another remedy than to correct the columns of the file.
        """
        told = [f"{name} (nearest: {near})" if near else name for name, near in missing.items()]
        what = "a column" if len(missing) == 1 else "columns"
        return InputError(
            f"{file} lacks {what} that the model needs: {first_of(told, _SHOWN_COLUMNS)}.",
            hint=hint or self._remedy(missing),
        )

    def _remedy(self, missing: Collection[str]) -> str:
        rule = "a file must have each column that the model was trained on; rename the columns of the file"
        never_empty = [name for name in missing if name in self.needed]
        if not never_empty:
            return f"{rule}, or, if it is unknown for every row, add the column and leave it empty"
        more = len(missing) > len(never_empty)
        others = "; add any other that is unknown for every row, and leave it empty" if more else ""
        return f"{rule}: no row may lack {first_of(never_empty, _SHOWN_COLUMNS)}{others}"


def _nearest(name: str, others: Mapping[str, str]) -> str:
    """Return the most similar name in `others`, whose keys are casefolded names; "" if none is similar."""
    return others.get(nearest(name.casefold(), others), "")
