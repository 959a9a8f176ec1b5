"""Finds the name that a mistyped one most probably meant."""

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str], *, similarity: float = 0.6) -> str:
    """The most similar of some names, or "" if none is similar.

    Args:
        name: what was given.
        names: what there is.
        similarity: of the name at least, from 0, for any name at all, to 1, for the same.
    """
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=similarity)), "")


def nearest_first(name: str, names: Iterable[str]) -> list[str]:
    """All the names, the most similar first, and equally similar ones in the order given."""
    return sorted(names, key=lambda each: -difflib.SequenceMatcher(None, name, each).ratio())
