"""The kind of prediction for a label, and which columns cannot be one. Pure."""

from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.deciding import Task
from slipway.pipeline.start.facts import Facts, few

# A label of whole numbers with at most this many values is a class; between this and 20 the user should say.
_SURE_CLASSES = 10
_MOST_CLASSES = 100


def decide_task(label: Facts, asked: str) -> Task | None:
    """The kind of prediction for the label; None if it is not clear and the user should say.

    Args:
        asked: "auto", or a `Task` that is asked for.

    Raises:
        UsageError: the column cannot be a label of that kind.
    """
    if label.distinct < 2:
        same = f"the same in every row, {next(iter(label.counts))!s:.40}" if label.distinct else "empty"
        raise UsageError(
            f"{label.name} is {same}: there is nothing to predict.",
            hint="name a column with --label that holds two values at least",
        )
    if label.is_too_large:
        raise UsageError(
            f"{label.name} runs from {label.least:g} to {label.greatest:g}, beyond what 32-bit numbers hold.",
            hint="empty these cells, or divide the column by a power of ten",
        )
    if asked == "regression" and label.kind == "text":
        raise UsageError(
            f"{label.name} holds text, as {next(iter(label.counts))!r}: a regression predicts numbers."
        )
    if asked == "binary" and label.distinct != 2:
        raise UsageError(
            f"{label.name} holds {label.distinct} different values; binary needs two.",
            hint="leave --task out, or add --task multiclass",
        )
    if asked in ("binary", "multiclass") or (asked == "auto" and label.kind == "text"):
        if label.distinct > _MOST_CLASSES:
            raise _too_many_classes(label)
        return "binary" if label.distinct == 2 else "multiclass"
    if asked == "regression":
        return "regression"
    if label.distinct == 2:
        return "binary"
    if label.kind == "float" or label.distinct > 2 * _SURE_CLASSES:
        return "regression"
    counts_up = label.least in (0, 1) and label.greatest - label.least == label.distinct - 1
    return "multiclass" if label.distinct <= _SURE_CLASSES and counts_up else None


def _too_many_classes(label: Facts) -> UsageError:
    if label.kind != "text":
        remedy = "add --task regression"
    elif label.moment:
        remedy = "dates cannot be classes: add a column with the days since a fixed date, and name that"
    elif label.others:
        remedy = f"it holds numbers except {few(label.others)}: fix these cells, or remove their rows"
    else:
        remedy = "add a column in which the rare ones share a name, and name that with --label"
    return UsageError(
        f"{label.name} holds {label.distinct:,} different values: too many for classes; the limit "
        f"is {_MOST_CLASSES}.",
        hint=remedy,
    )
