"""Formats durations for people."""


def seconds(value: float) -> str:
    """Format a duration in seconds with its unit: `0.4 s`, `36 s`, `2 min 5 s`."""
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    # Rounded before it is divided; not by `round`, which takes no infinity.
    minutes, rest = divmod(float(f"{value:.0f}"), 60)
    return f"{minutes:.0f} min {rest:.0f} s"
