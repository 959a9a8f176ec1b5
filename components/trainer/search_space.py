"""The hyperparameters that a tuner tries: the workload's `tune.search`, checked. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from slipway.components.errors import ComponentError

Algorithm = Literal["random", "bayesian"]


@dataclass(frozen=True, kw_only=True)
class Range:
    """Numbers from `low` to `high`, both included.

    Attributes:
        low, high: `low` < `high`; if both and `step` are integers, only integers are tried.
        step: values are `low` plus multiples of this step, or times its powers with `log`; None: any value.
        log: whether to sample logarithmically, so that 0.001 .. 0.01 is as likely as 0.01 .. 0.1; requires
            `low` > 0.
    """

    low: float
    high: float
    step: float | None = None
    log: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether only integers are tried."""
        return isinstance(self.low, int) and isinstance(self.high, int) and not isinstance(self.step, float)


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Values to choose from, as KerasTuner takes them: all numbers, or all texts, see `choices_of`."""

    values: tuple[int | float | str, ...]


def choices_of(values: Sequence[object]) -> Choices:
    """Return values to choose from; `chosen` turns each back into what it was.

    KerasTuner has whole numbers, fractions and texts, and no mixture of them. Whole numbers among fractions
    become fractions, and anything else travels as JSON, as does a text that could be taken for JSON.
    """
    if any(not isinstance(each, int | float) or isinstance(each, bool) for each in values):
        return Choices(values=tuple(each if _is_plain(each) else json.dumps(each) for each in values))
    numbers = [each for each in values if isinstance(each, int | float)]
    kind = float if any(isinstance(each, float) for each in numbers) else int
    return Choices(values=tuple(map(kind, numbers)))


def chosen(value: Any) -> Any:
    """Return the value of the workload file that KerasTuner's value stands for."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _is_plain(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and chosen(value) is value


def search_space(search: Mapping[str, Mapping[str, object]]) -> dict[str, Range | Choices]:
    """Return the search space that the workload describes.

    Args:
        search: by hyperparameter, `{choices: [...]}` or `{low, high, step, log}`; null values are ignored.

    Raises:
        ComponentError: there is no hyperparameter, an entry has neither form, or a range is empty.
    """
    if not search:
        raise ComponentError(
            "tune.search names no hyperparameter", hint="as {learning_rate: {low: 0.0001, high: 0.01}}"
        )
    space = {}
    for name, entry in search.items():
        try:
            space[name] = read_entry(entry)
        except ValueError as error:
            raise ComponentError(
                f"tune.search.{name} ({', '.join(sorted(_given(entry))) or 'empty'}) {error}",
                hint="as {low: 0.0001, high: 0.01, log: true} or {choices: [32, 64]}",
            ) from error
    return space


def read_entry(entry: Mapping[str, Any]) -> Range | Choices:
    """Return the values to choose one hyperparameter from.

    Raises:
        ValueError: the entry breaks a rule; the message states the rule in words that follow the entry's
            name.
    """
    given = _given(entry)
    if set(given) == {"choices"}:
        if not given["choices"]:
            raise ValueError("must not have empty choices")
        return choices_of(given["choices"])
    if "choices" in given:
        others = ", ".join(sorted(given.keys() - {"choices"}))
        raise ValueError(f"must have only choices, but has {others}")
    if not {"low", "high"} <= set(given) <= {"low", "high", "step", "log"}:
        raise ValueError("must have either choices, or low and high")
    found = Range(**given)
    if not found.low < found.high or (found.log and not found.low > 0):
        rule = "0 < low < high with log" if found.log else "low < high"
        raise ValueError(f"must have {rule}; low is {found.low}, high {found.high}")
    if found.log and found.step is not None and not found.step > 1:
        raise ValueError(f"must have a step above 1 with log, as it multiplies; step is {found.step}")
    return found


def _given(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value is not None and value is not False}
