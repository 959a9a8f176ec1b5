"""The texts that are dates to the code that `new` writes."""

ISO_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:.*)?$"
"""Matches a date YYYY-MM-DD, also one with a time behind it. Other texts count as missing there."""
