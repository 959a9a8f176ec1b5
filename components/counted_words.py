"""Counts in words: noun and verb agree with the number."""

_SINGULAR = {"are": "is", "have": "has"}


def counted(number: int, noun: str) -> str:
    """`1 row`, `1,234 rows`: the noun, given in the singular, gets an -s unless the number is one."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def agreeing(number: float, verb: str) -> str:
    """Return the verb that agrees with the number: `are` or `have`; `is` or `has` after one.

    Raises:
        KeyError: another verb.
    """
    singular = _SINGULAR[verb]
    return singular if number == 1 else verb
