"""The label in its three forms: one column, a column for each output, or several columns side by side. Pure.

    sold                              one output, and its column
    {sold: sold, price: log_price}    several outputs by name, and the column of each
    [sport, music, film]              one output with an answer per column: the probability that it is 1

The third form is for rows that may have any of several labels, or none. The model returns their answers side
by side, [rows, labels]; the served model returns each answer by its name, and each is evaluated separately.
"""

from collections.abc import Mapping, Sequence

Label = str | Mapping[str, str] | Sequence[str]


def columns_of(label: Label) -> tuple[str, ...]:
    """Return the columns to predict."""
    if isinstance(label, str):
        return (label,)
    return tuple(label.values()) if isinstance(label, Mapping) else tuple(label)


def served_label_columns(label: Label) -> str | dict[str, str]:
    """Return the label column of a served model's single answer, or of each of several answers by name."""
    if isinstance(label, str):
        return label
    return dict(label) if isinstance(label, Mapping) else {name: name for name in label}


def is_multi_label(label: Label) -> bool:
    """Return True if several columns form one label."""
    return not isinstance(label, str | Mapping)
