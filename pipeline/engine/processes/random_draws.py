"""Lets forked processes draw different random numbers, as processes do that were started one by one.

Python seeds its own generator again in each fork, and those of TensorFlow begin in the fork. NumPy's global
one, from which scikit-learn draws too, and torch's go on from a copy of their state: without this, all nodes
of a run would draw the same numbers, and with a warm process all runs.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

# torch begins with 53 random bits; a seed that somebody gives it has hardly as many.
_GIVEN_SEED_BITS = 32


def drawing_state() -> bytes:
    """Return the state of NumPy's global generator; empty if NumPy is not imported."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return b""
    return b"\0".join(_content(numpy.random.get_state(legacy=False)))


def _content(state: Any) -> Iterator[bytes]:
    """Yield what the mappings of a state hold: names, whole numbers and arrays of them."""
    if not isinstance(state, Mapping):
        yield state.tobytes() if hasattr(state, "tobytes") else repr(state).encode()
        return
    for name, value in state.items():
        yield name.encode()
        yield from _content(value)


def draw_anew(*, unless_left: bytes | None = None) -> None:
    """Seed the global generators of NumPy and torch from the system, if imported; call it in a fork.

    A seed that the user's code has given torch stays.

    Args:
        unless_left: a state of NumPy's; if the generator has left it, the user's code has seeded it, and it
            goes on from there. None: seed it in any case.
    """
    if (numpy := sys.modules.get("numpy")) and unless_left in (None, drawing_state()):
        numpy.random.seed()
    generator = getattr(sys.modules.get("torch"), "default_generator", None)  # that of the CPU
    if generator is not None and generator.initial_seed() >> _GIVEN_SEED_BITS:
        generator.seed()
