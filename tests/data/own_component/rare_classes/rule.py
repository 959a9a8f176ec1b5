"""Which classes are too rare to learn. Pure: plain values in, plain values out."""

from collections.abc import Mapping


def rare_classes(counts: Mapping[str, int], *, least: int) -> list[str]:
    """The classes with fewer rows than `least`, the rarest first.

    Args:
        counts: rows of each class.
        least: rows that a class needs, >= 1.
    """
    return sorted((name for name, rows in counts.items() if rows < least), key=lambda name: counts[name])
