"""Finds the name that a mistyped one most probably meant."""

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str], *, at_any_distance: bool = False) -> str:
    """The most similar of some names, or "" if none is similar.

    Args:
        name: what was given.
        names: what there is.
        at_any_distance: also a name that is not similar, so that there is an answer if there is any name.
    """
    cutoff = 0.0 if at_any_distance else 0.6  # the second is difflib's own
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)), "")
