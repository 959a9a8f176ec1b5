"""Spares Beam from reading the same function signatures thousands of times.

While it builds and translates a pipeline, Beam 2.77 asks `inspect.signature` for each method of each DoFn again and
again: 146,000 times for the taxi workload's Transform, 15% of that node's CPU time (sampled). A function's signature
does not change, so the answer is kept.
"""

import weakref
from collections.abc import Callable
from typing import Any

from apache_beam.transforms import core

_Signature = tuple[list[str], list[Any]]


def remember_signatures() -> None:
    """Makes Beam ask once per function, in this process and those forked from it."""
    # A private name: where another Beam has it no more, nothing is remembered and nothing breaks.
    original = getattr(core, "get_function_args_defaults", None)
    if original is not None and not hasattr(original, "__wrapped__"):
        core.get_function_args_defaults = remembered(original)


def remembered(original: Callable[[Any], _Signature]) -> Callable[[Any], _Signature]:
    """The same function, which keeps what it answered.

    Args:
        original: from a function to its argument names and default values.
    """
    # Weak, so that the functions of a finished pipeline can go. A method counts as its function, once bound
    # and once unbound: bound, it has no `self`.
    known: tuple[Any, Any] = (weakref.WeakKeyDictionary(), weakref.WeakKeyDictionary())

    def get_function_args_defaults(function: Any) -> _Signature:
        plain = getattr(function, "__func__", function)
        answers = known[plain is not function]
        try:
            names, defaults = answers[plain]
        except KeyError:
            names, defaults = answers[plain] = original(function)
        except TypeError:  # neither hashable nor weakly referable, such as a builtin
            return original(function)
        # Lists that the caller owns, as before.
        return list(names), list(defaults)

    get_function_args_defaults.__wrapped__ = original  # type: ignore[attr-defined]
    return get_function_args_defaults
