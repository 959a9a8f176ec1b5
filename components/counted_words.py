"""Formats counts for messages, with the noun and the verb in agreement with the number."""

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
