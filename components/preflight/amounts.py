"""Sizes and times in words. Pure."""

from slipway.components.preflight.chip_specs import GIB


def memory(size_bytes: float) -> str:
    """Return a size as MiB or GiB, whichever is easier to read."""
    return f"{size_bytes / GIB:.2f} GiB" if size_bytes >= GIB / 10 else f"{size_bytes / 2**20:.2f} MiB"


def duration(seconds: float) -> str:
    """Return a time in the unit that is easiest to read, from microseconds to hours."""
    for limit, unit, factor in (
        (1e-3, "µs", 1e6),
        (1.0, "ms", 1e3),
        (120.0, "s", 1.0),
        (7200.0, "min", 1 / 60),
    ):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds / 3600:.3g} h"
