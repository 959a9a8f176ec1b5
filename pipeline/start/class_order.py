"""Orders a label's classes; of two classes, the model predicts the probability of the second. Pure."""

from collections.abc import Iterable

# Words for "no" or "nothing found", in the languages of tables seen so far.
_NO = frozenset([
    "no", "nein", "non", "não", "nao", "нет", "nee", "nej", "nie", "nei", "ei", "ne", "nu", "いいえ", "否",
    "아니요", "false", "falsch", "faux", "falso", "negative", "negativ", "négatif", "negativo", "neg", "-",
    "absent", "none", "never", "off",
])  # fmt: skip
# Prefixes that negate the other class.
_NOT = frozenset(["no", "not", "non", "un", "nicht", "kein", "keine", "sin", "sans", "pas", "не"])


def ordered(values: Iterable[str | int | float]) -> tuple[str | int | float, ...]:
    """Return the classes sorted by value, except that of two classes the negative one comes first.

    Examples are ("nein", "ja"), ("notckd", "ckd") and ("-", "+"), which sorting would reverse.
    """
    classes = tuple(sorted(values))
    if len(classes) != 2:
        return classes
    first, second = classes
    is_other_way = _says_no(second, than=first) and not _says_no(first, than=second)
    return (second, first) if is_other_way else classes


def _says_no(value: str | int | float, *, than: str | int | float) -> bool:
    word, other = (str(each).strip().casefold() for each in (value, than))
    if word in _NO or (word, other) == ("n", "j"):
        return True
    return bool(other) and word.endswith(other) and word.removesuffix(other).rstrip(" -_") in _NOT
