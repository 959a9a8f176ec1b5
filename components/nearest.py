"""Finds the name that a mistyped name most probably meant."""

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str], *, similarity: float = 0.6) -> str:
    """Return the most similar of some names, or "" if none is similar enough.

    Args:
        similarity: the least similarity, from 0 (any name) to 1 (only the same name).
    """
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=similarity)), "")


def nearest_first(name: str, names: Iterable[str]) -> list[str]:
    """Return all names, the most similar first; equally similar names keep their order."""
    return sorted(names, key=lambda each: -difflib.SequenceMatcher(None, name, each).ratio())
