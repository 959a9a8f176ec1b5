"""Caches two lookups that Beam otherwise repeats thousands of times.

While it builds and translates a pipeline, Beam 2.77 reads the signatures of the same methods again and
again (146,000 times for the taxi workload's Transform, a fifth of its CPU time), and parses its options to
see whether type checks are enabled (2,800 times, a twelfth). Neither changes while a pipeline is built, so
the first result is kept. If another version of Beam lacks these functions, nothing is cached and nothing
breaks.
"""

import weakref
from collections.abc import Callable
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import core

_Signature = tuple[list[str], list[Any]]


def cache_beam_lookups() -> None:
    """Cache the results in this process and in its later forks."""
    for owner, name, keep in (
        (core, "get_function_args_defaults", cache_signatures),
        (PipelineOptions, "view_as", cache_views),
    ):
        original = getattr(owner, name, None)
        if original is not None and not hasattr(original, "original"):
            setattr(owner, name, keep(original))


def cache_signatures(original: Callable[[Any], _Signature]) -> Callable[[Any], _Signature]:
    """Cache the argument names and default values of each function."""
    # Weak references, so that the functions of a finished pipeline can be freed. A method is cached under its
    # function, bound and unbound separately, because a bound method has no `self`.
    unbound: weakref.WeakKeyDictionary[Any, _Signature] = weakref.WeakKeyDictionary()
    bound: weakref.WeakKeyDictionary[Any, _Signature] = weakref.WeakKeyDictionary()

    def get_function_args_defaults(function: Any) -> _Signature:
        plain = getattr(function, "__func__", function)
        cached = unbound if plain is function else bound
        try:
            names, defaults = cached[plain]
        except KeyError:
            names, defaults = cached[plain] = original(function)
        except TypeError:  # not hashable or not weakly referenceable, such as a builtin
            return original(function)
        return list(names), list(defaults)  # copies, because the caller may change them

    get_function_args_defaults.original = original  # type: ignore[attr-defined]
    return get_function_args_defaults


def cache_views(original: Callable[[Any, type], Any]) -> Callable[[Any, type], Any]:
    """Cache views by options and class; views share their values, so one per class is enough."""

    # Not stored in the options themselves: these are pickled with all attributes, except for the impersonated
    # service account, which Beam removes.
    kept: weakref.WeakKeyDictionary[Any, dict[type, Any]] = weakref.WeakKeyDictionary()

    def view_as(options: Any, cls: type) -> Any:
        views = kept.setdefault(options, {})
        if cls not in views:
            views[cls] = original(options, cls)
        return views[cls]

    view_as.original = original  # type: ignore[attr-defined]
    return view_as
