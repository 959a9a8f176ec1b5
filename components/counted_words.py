"""Formats counts and long lists for messages; the noun and the verb agree with the number."""

from collections.abc import Sequence

_SINGULAR = {"are": "is", "have": "has"}


def counted(number: int, noun: str) -> str:
    """Return the number with its noun, given in the singular: `1 row`, `1,234 rows`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def agreeing(number: float, verb: str) -> str:
    """Return the form of `are` or `have` that agrees with the number: `is` or `has` for 1.

    Raises:
        KeyError: the verb is neither `are` nor `have`.
    """
    singular = _SINGULAR[verb]
    return singular if number == 1 else verb


def first_of(texts: Sequence[str], most: int) -> str:
    """Return the first texts, and how many follow them: `a, b and 3 more`."""
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest:,} more" if rest > 0 else "")
