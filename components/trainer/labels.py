"""The label in its three forms: one column, a column for each output, or several columns side by side. Pure.

    sold                              one output, and its column
    {sold: sold, price: log_price}    several outputs by name, and the column of each
    [sport, music, film]              one output of as many answers, each the probability that its column is 1

The third is a label for rows that may have any of several labels, or none. The model gives them side by side,
[rows, labels]; the served model answers each by its name, and each is evaluated by itself.
"""

from collections.abc import Mapping, Sequence

Label = str | Mapping[str, str] | Sequence[str]


def columns_of(label: Label) -> tuple[str, ...]:
    """The columns that are predicted."""
    if isinstance(label, str):
        return (label,)
    return tuple(label.values()) if isinstance(label, Mapping) else tuple(label)


def answers_of(label: Label) -> str | dict[str, str]:
    """The answers of a served model: one, or several by name, each with the column of its label."""
    if isinstance(label, str):
        return label
    return dict(label) if isinstance(label, Mapping) else {name: name for name in label}


def is_multi_label(label: Label) -> bool:
    """Whether several columns are one label."""
    return not isinstance(label, str | Mapping)
