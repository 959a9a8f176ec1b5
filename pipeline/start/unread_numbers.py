"""Recognises columns of texts that are numbers to a reader, but that no one notation describes. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

# 12, -1,234.50, ($5), 5-, 12 %; not a code with leading zeros.
_NUMBER = re.compile(
    r"[-+(\u2212]?\s?[$€£¥₹]?\s?(?!0\d)(\d{1,3}([.,'\u2019 \u00a0\u202f]?\d{3})*|\d{1,2}(,\d\d)+,\d{3})"
    r"([.,]\d+)?([eE]-?\d+)?"
    r"\s?[%$€£¥₹]?[)-]?"
)
# If at least this share of the texts are numbers, the other texts are reported.
_MOSTLY = 0.9
_PLAIN = re.compile(r"[-+]?\d+([.,]\d+)?")
# 80 kg, 12.5°C, 23 kg/m2, 48.1° N: after the digits come a letter or a sign, and no other number.
_WITH_UNIT = re.compile(
    r"[-+\u2212]?(?!0\d)\d[\d.,' \u00a0\u202f]*"
    r"(?P<unit>(?:[^\W\d_]|[°µ%‰℃℉㎡$€£¥₹])[^\s\d]{0,11}[23]?(?: [^\W\d_])?|)"
)
# 1 year beside 2 years, 1 Tag beside 2 Tage: the first is but one text.
_PLURALS = {"s", "es", "e", "n", "en"}
# A column of numbers has few units, each of which recurs; house numbers such as 12B and addresses have more.
_MOST_UNITS, _LEAST_OF_UNIT = 3, 10
# 50% beside 0.5, however few: nothing but shares has a percent sign.
_SHARES = {"", "%"}
# 3k beside 1.2M, however few: one of the sure ones is among them, and no other unit.
_SURE_MAGNITUDES = {"k", "K", "M", "Mio", "mio", "Mio.", "Tsd", "Tsd.", "mln", "million"}
_MAGNITUDES = {
    *_SURE_MAGNITUDES, "", "m", "mn", "B", "b", "bn", "Bn", "T", "Mrd", "Mrd.", "thousand", "billion",
}  # fmt: skip
_FRACTION = re.compile(r"\d[.,]\d")
# 48.137, 11.575 or (48.1° N; 11.6° E), also with decimal commas, and 48.137 11.575: never 1,234 or 1 234.
_DEGREES = r"\s?°?\s?[NSEWO]?"
_WITH_POINT, _ANY = r"[-+\u2212]?\d+\.\d+", r"[-+\u2212]?\d+(?:[.,]\d+)?"
_PAIR = re.compile(
    rf"[(\[]?\s*(?:{_WITH_POINT}{_DEGREES}(?:\s*[,;/]\s*|\s+){_WITH_POINT}{_DEGREES}"
    rf"|{_ANY}{_DEGREES}(?:\s*[;/]|,(?=\s))\s*{_ANY}{_DEGREES})\s*[)\]]?"
)
CURRENCY = (
    r"(?:(?:\b(?:US|HK|NZ|[ACRS]))?\$|[€£¥₹₩₽]|\b(?:Rs|kr)\b\.?|\b(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD"
    r"|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|TRY|SGD|HKD|KRW)\b)"
)
"""The pattern of a currency beside a number."""
# $1.2M, €350, CHF 20, 5 £: one notation of them all would be read as numbers.
_MONEY = re.compile(rf"[-+(]?\s?{CURRENCY}\s?\d.*|[-+(]?\d[^$€£¥]*{CURRENCY}\)?")
_SHOWN = 3


@dataclass(frozen=True)
class UnreadNumbers:
    """What the texts of a column are that would be numbers if they were written in another way.

    Attributes:
        what: in words, such as "numbers in several units: 'kg' and 'lb'".
        remedy: what to do to have numbers, in words.
        may_be_codes: whether they may as well be codes, most of which have no letters.
    """

    what: str
    remedy: str
    may_be_codes: bool = False


def unread_numbers(texts: Sequence[str], others: Sequence[str]) -> UnreadNumbers | None:
    """Return what texts are that look like numbers, but are not read as such; None if they don't.

    Args:
        texts: the distinct texts of a column, at least one.
        others: those of them that are no numbers, if nearly all are.
    """
    if other := _of_other_digits(texts):
        return UnreadNumbers(
            f"numbers in other digits than 0 to 9, such as {few([other])}", "write them with 0 to 9"
        )
    if _are_of_two_kinds(texts):
        return UnreadNumbers("numbers, some with a decimal point and some with a comma", "write them alike")
    if units := _units(texts):
        named = " and ".join(repr(unit) if unit else "none" for unit in units)
        return UnreadNumbers(f"numbers in several units: {named}", "write them in one unit")
    if _are_pairs(texts):
        return UnreadNumbers(
            f"two numbers in each text, such as {few(texts[:1])}", "write them in two columns"
        )
    if all(_MONEY.fullmatch(text) for text in texts):
        what = f"amounts in several currencies or notations, such as {few(texts[:2])}"
        return UnreadNumbers(what, "write them as numbers")
    if others:
        return UnreadNumbers(
            f"numbers except {few(others)}",
            "fix these cells, or if they mean no value, in a CSV name them with --null-value",
            may_be_codes=True,
        )
    return None


def few(texts: Sequence[str]) -> str:
    """Return the first texts as an enumeration, such as "'Total' and 7 more"."""
    shown = [repr(text[:40]) for text in texts[:_SHOWN]]
    if more := len(texts) - len(shown):
        shown.append(f"{more:,} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def others_of(counts: Collection[str], *, most: int) -> tuple[str, ...]:
    """Return the few texts that are not numbers, which turn a column of numbers into a column of text.

    Args:
        most: the number of texts to return at most.
    """
    others = no_numbers(counts)
    is_few = len(others) <= (1 - _MOSTLY) * len(counts)
    if any(text.strip().isdigit() for text in others):
        return ()  # digits with leading zeros are codes
    return tuple(sorted(others)[:most]) if is_few else ()


def no_numbers(texts: Collection[str]) -> list[str]:
    """Return the texts that are not numbers, in their order."""
    return [text for text in texts if not _NUMBER.fullmatch(text.strip())]


def _units(texts: Collection[str]) -> tuple[str, ...]:
    """Return the units if all texts are numbers in several units, such as 80 kg and 176 lb, or 3k and 2M."""
    units: Counter[str] = Counter()
    for text in texts:
        match = with_unit(text)
        if match is None:
            return ()
        units[match] += 1
        if len(units) > _MOST_UNITS and not units.keys() <= _MAGNITUDES:
            return ()
    are_magnitudes = bool(units.keys() & _SURE_MAGNITUDES) and units.keys() <= _MAGNITUDES
    recur = len(units) <= _MOST_UNITS and all(rows >= _LEAST_OF_UNIT for rows in units.values())
    # 12 and 12k may be house numbers, and 34M and 36B sizes; 3 Mio and 1.2M are neither.
    are_amounts = any(len(unit) > 1 for unit in units) or any(_FRACTION.search(text) for text in texts)
    shortest, longest = min(units, key=len), max(units, key=len)
    is_plural = len(units) == 2 and len(shortest) > 1 and longest.removeprefix(shortest) in _PLURALS
    is_sure = recur or (are_magnitudes and are_amounts) or set(units) == _SHARES or is_plural
    return tuple(sorted(units)) if is_sure and len(units) > 1 else ()


def _of_other_digits(texts: Collection[str]) -> str:
    """Return the first text with Arabic, Devanagari or full-width digits if all are numbers; else ""."""
    if not all(_NUMBER.fullmatch(text.strip()) for text in texts):  # which of prose is soon known
        return ""
    return next((text for text in texts if any(not s.isascii() and s.isdecimal() for s in text)), "")


def _are_of_two_kinds(texts: Collection[str]) -> bool:
    """Whether numbers are written as 1.5 and as 1,5: one of the two may be meant for thousands."""
    signs = {sign for text in texts for sign in ".," if sign in text}
    return len(signs) > 1 and all(_PLAIN.fullmatch(text.strip()) for text in texts)


def _are_pairs(texts: Collection[str]) -> bool:
    """Whether each text holds two numbers, some with a fraction, such as the coordinates 48.137, 11.575."""
    has_fractions = False
    for text in texts:
        if not _PAIR.fullmatch(text.strip()):
            return False
        has_fractions = has_fractions or bool(re.search(r"\d[.,]\d", text))
    return has_fractions


def with_unit(text: str) -> str | None:
    """Return the unit of a number, such as kg of 80 kg; empty if it has none, None if it is no number."""
    match = _WITH_UNIT.fullmatch(text.strip())
    return match["unit"] if match else None
