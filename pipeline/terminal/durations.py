"""Formats durations for people."""


def seconds(value: float) -> str:
    """Format a duration in seconds with its unit: `0.4 s`, `36 s`, `2 min 5 s`."""
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    return f"{value // 60:.0f} min {value % 60:.0f} s"
