"""Keeps Beam from working out the same two answers thousands of times.

While it builds and translates a pipeline, Beam 2.77 reads the signatures of the same methods again and again
(146,000 times for the taxi workload's Transform, a fifth of its CPU time), and parses its options again
to look whether types are checked (2,800 times, a twelfth). Neither changes while a pipeline is built, so the
first answer is kept. Where another version lacks these functions, nothing is kept and nothing breaks.
"""

import weakref
from collections.abc import Callable
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import core

_Signature = tuple[list[str], list[Any]]


def keep_beams_answers() -> None:
    """Caches the answers in this process and in its later forks."""
    for owner, name, keep in (
        (core, "get_function_args_defaults", keep_signatures),
        (PipelineOptions, "view_as", keep_views),
    ):
        original = getattr(owner, name, None)
        if original is not None and not hasattr(original, "original"):
            setattr(owner, name, keep(original))


def keep_signatures(original: Callable[[Any], _Signature]) -> Callable[[Any], _Signature]:
    """Caches the argument names and default values of each function."""
    # Weak, so that the functions of a finished pipeline can go. A method counts as its function, once bound
    # and once unbound: bound, it has no `self`.
    unbound: weakref.WeakKeyDictionary[Any, _Signature] = weakref.WeakKeyDictionary()
    bound: weakref.WeakKeyDictionary[Any, _Signature] = weakref.WeakKeyDictionary()

    def get_function_args_defaults(function: Any) -> _Signature:
        plain = getattr(function, "__func__", function)
        answers = unbound if plain is function else bound
        try:
            names, defaults = answers[plain]
        except KeyError:
            names, defaults = answers[plain] = original(function)
        except TypeError:  # neither hashable nor weakly referable, such as a builtin
            return original(function)
        return list(names), list(defaults)  # copies: the caller owns them, as without the cache

    get_function_args_defaults.original = original  # type: ignore[attr-defined]
    return get_function_args_defaults


def keep_views(original: Callable[[Any, type], Any]) -> Callable[[Any, type], Any]:
    """Caches views by options and class of options; views share their values, so one serves for all."""

    # Beside the options, not in them: options are pickled whole, and Beam drops only its own secret.
    kept: weakref.WeakKeyDictionary[Any, dict[type, Any]] = weakref.WeakKeyDictionary()

    def view_as(options: Any, cls: type) -> Any:
        views = kept.setdefault(options, {})
        if cls not in views:
            views[cls] = original(options, cls)
        return views[cls]

    view_as.original = original  # type: ignore[attr-defined]
    return view_as
