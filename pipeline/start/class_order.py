"""The order of a label's classes: of two, the model predicts the probability of the second. Pure."""

from collections.abc import Iterable

# Words for no, or for nothing found, in the languages of tables that we have met.
_NO = frozenset([
    "no", "nein", "non", "não", "nao", "нет", "nee", "nej", "nie", "nei", "ei", "ne", "nu", "いいえ", "否",
    "아니요", "false", "falsch", "faux", "falso", "negative", "negativ", "négatif", "negativo", "neg", "-",
    "absent", "none", "never", "off",
])  # fmt: skip
# In front of the other class.
_NOT = frozenset(["no", "not", "non", "un", "nicht", "kein", "keine", "sin", "sans", "pas", "не"])


def ordered(values: Iterable[str | int | float]) -> tuple[str | int | float, ...]:
    """The classes sorted by value; of two, the negative one comes first.

    So ("nein", "ja"), ("notckd", "ckd") and ("-", "+"), which their letters alone would turn round.
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
