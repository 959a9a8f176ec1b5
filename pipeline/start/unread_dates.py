"""Recognises columns of texts that are dates to a reader, but that no one format describes. Pure."""

import re
from collections.abc import Sequence

from slipway.pipeline.start.unread_numbers import few

# 1.4.7 is a version, and 4711-56-78 a code.
_DATE = re.compile(
    r"((mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?"
    r"(\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b|\d{4}[./-](?:0?\d|1[0-2])[./-](?:[0-2]?\d|3[01])\b"
    r"|(\d{1,2}[ ./-]+)?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mär|mai|okt|dez|fév|avr|juin|juil"
    r"|aoû|déc)[^\W\d_]*[ .,/-]+\d{1,4}\b)",
    re.IGNORECASE,
)
# What follows a day: a year, a time and a zone, as in "2024 at 10:20 PM CET", but not the words of a diary.
_WORD = re.compile(r"\b(?!(?:[ap]m|at|um|uhr)\b)[^\W\d_]{2}[\w/]*", re.IGNORECASE)
_MOST_WORDS = 1
# GMT+0100 (Central European Standard Time), or the zone's name alone.
_ZONE = re.compile(r"\(|(?:[a-z]{2,12} ){1,3}time$", re.IGNORECASE)
# If so many texts are dates, the others are slips, or words for no date.
_MOSTLY, _LEAST = 0.9, 5


def unread_dates(texts: Sequence[str]) -> str:
    """Return why texts that look like dates are not read as such, with the remedy; empty if they don't.

    Args:
        texts: distinct texts of a column.
    """
    others = [text for text in texts if not _DATE.match(text)]
    dates = sum(map(_is_date, texts))
    if not others and dates > len(texts) / 2:
        return (
            "dates in several formats or in an unknown one: write them as YYYY-MM-DD; one format can be "
            "named in data.dates"
        )
    if not others or dates < max(_LEAST, _MOSTLY * len(texts)):
        return ""
    return f"dates except {few(others)}; correct or empty these cells, and start again"


def _is_date(text: str) -> bool:
    """Whether a text begins with a date, and does not go on in words, such as an entry of a diary."""
    day = _DATE.match(text)
    return day is not None and len(_WORD.findall(_ZONE.split(text[day.end() :], 1)[0])) <= _MOST_WORDS
