"""Decides the kind of prediction for a label, and rejects columns that cannot be a label. Pure."""

import itertools
import shlex
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from slipway.components.counted_words import agreeing, counted
from slipway.components.escaped_text import short
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.deciding import LEAST_ROWS, Task
from slipway.pipeline.start.facts import EXACT, Facts
from slipway.pipeline.start.unread_numbers import no_numbers

# An integer label with at most this many values is a class; up to twice as many, the user should decide.
_SURE_CLASSES = 10
_MOST_CLASSES = 100
# Spellings of no and yes by programs and people. If all are single letters, they may be codes.
_NO = frozenset(["0", "0.0", "false", "f", "no", "n", "off"])
_YES = frozenset(["1", "1.0", "true", "t", "yes", "y", "on"])
_SHOWN_ANSWERS = 3
_DAYS_INSTEAD = "add a column with the days since a fixed date, and name that"


@dataclass(frozen=True)
class OneCsv:
    """The single CSV that all rows come from, so that a command in a hint can rewrite it."""

    path: str
    delimiter: str = ","
    quote: str = '"'


def decide_task(
    label: Facts,
    asked: str,
    *,
    file: OneCsv | None = None,
    is_whole: bool = True,
    no_values: Mapping[str, str] | None = None,
) -> Task | None:
    """Return the kind of prediction for the label, or None if it is unclear and the user should decide.

    Args:
        asked: "auto", or the requested `Task`.
        file: the user's data, if it is a single CSV.
        is_whole: whether these are all rows of the data, and not only the first.
        no_values: words in the label that mean no value, as another column has them for that -> that column.

    Raises:
        UsageError: the column cannot be a label, or not one for the requested task.
    """
    if label.distinct < 2:
        where = "every row that has a value" if label.missing else "every row"
        same = f"the same in {where}, {next(iter(label.counts))!s:.40}" if label.distinct else "empty"
        if not is_whole:
            looked_at = f"of the first {counted(label.rows, 'row')}; only these are looked at"
            raise UsageError(
                f"{label.name} is {same}, {looked_at}.",
                hint="shuffle the rows, if they are sorted by it; or name another column with --label",
            )
        if told := no_value_notes(label, no_values or {}):
            raise UsageError(f"{label.name} is {same}: there is nothing to predict.", hint=told[0])
        other = f", or write the other answer into the {counted(label.missing, 'cell')} without a value"
        raise UsageError(
            f"{label.name} is {same}: there is nothing to predict.",
            hint="name a column with --label that holds at least two values"
            f"{other if label.distinct and label.missing else ''}",
        )
    if label.is_too_large:
        raise UsageError(
            f"{label.name} runs from {label.least:g} to {label.greatest:g}, beyond what 32-bit numbers hold.",
            hint="empty these cells, or divide the column by a power of ten",
        )
    if asked == "regression" and label.kind == "text":
        raise _no_numbers(label)
    if asked == "binary" and label.distinct != 2:
        raise UsageError(
            f"{label.name} holds {label.distinct} different values; binary needs two.",
            hint="leave --task out, or add --task multiclass",
        )
    if asked == "auto" and (spellings := _two_answers(label) or _spelt_alike(label)):
        raise _many_spellings(label, spellings, file)
    are_many = _SURE_CLASSES < label.distinct <= _MOST_CLASSES  # more are no classes, whatever is asked for
    if asked == "auto" and label.moment and label.kind == "text" and are_many:
        raise UsageError(
            f"{label.name} holds {label.distinct:,} different dates, which are hardly classes.",
            hint=f"{_DAYS_INSTEAD}; or add --task multiclass if each is a class",
        )
    if asked in ("binary", "multiclass") or (asked == "auto" and label.kind == "text"):
        if label.distinct > _MOST_CLASSES:
            raise _too_many_classes(label)
        if unnamed := label.counts.get(""):
            raise UsageError(
                f"{label.name} is a text without letters in {counted(unnamed, 'row')}: each class needs a "
                "name.",
                hint="write null there if the answer is not known, and such rows are left out; or a name",
            )
        if label.distinct == label.present >= LEAST_ROWS:
            raise UsageError(
                f"{label.name} differs in every row, such as {next(iter(label.counts))!r:.40}: what never "
                "recurs cannot be learned.",
                hint="name another column with --label",
            )
        _check_exact(label)
        return "binary" if label.distinct == 2 else "multiclass"
    if asked == "regression":
        return "regression"
    if label.distinct == 2:
        _check_exact(label)
        return "binary"
    if not label.is_whole or label.distinct > 2 * _SURE_CLASSES:
        return "regression"
    counts_up = label.least in (0, 1) and label.greatest - label.least == label.distinct - 1
    if label.distinct <= _SURE_CLASSES and counts_up:
        return "multiclass"
    return "regression" if label.kind == "float" else None  # written with fractions: 10.0, 20.0


def _no_numbers(label: Facts) -> UsageError:
    """Return the error about a label of texts that is to be a number."""
    texts = [*no_numbers(label.counts), *label.counts]
    what, remedy = f"text, such as {short(texts[0])!r}", "correct or empty the cells that hold no number"
    if unread := label.unread_numbers:
        what, remedy = unread.what, unread.remedy
    return UsageError(
        f"{label.name} holds {what}: a regression predicts numbers.",
        hint=f"{remedy}, and start again; or leave --task out, and each text is a class",
    )


def no_value_notes(label: Facts, no_values: Mapping[str, str]) -> list[str]:
    """Return a note about words in the label that mean no value, but may be answers; empty if there are none.

    Args:
        no_values: as for `decide_task`.
    """
    if not (words := [word for word in no_values if word.strip()]):
        return []
    columns = " and ".join(dict.fromkeys(no_values[word] for word in words))
    if_answers = "it is an answer, write it" if len(words) == 1 else "they are answers, write them"
    return [
        f"{label.name} {_listed(words)} {agreeing(len(words), 'are')} read as no value, as in {columns}. If "
        f"{if_answers} differently in {label.name}, and start again."
    ]


def _check_exact(label: Facts) -> None:
    """Reject classes that are known here as other numbers than the files hold: those are none of these."""
    if label.kind == "int" and not label.is_whole:
        raise UsageError(
            f"{label.name} holds whole numbers beyond {EXACT:,}, which cannot be told from others here.",
            hint="write the classes as texts, such as a1, or as smaller numbers",
        )


def _two_answers(label: Facts) -> dict[str, list[str]]:
    """Return the spellings of no and of yes, most frequent first, if the label holds nothing else.

    The result is empty if there are other values, or only one spelling of each.
    """
    plain = _plain_texts(label)
    found = {
        answer: [text for text, word in plain.items() if word in words]
        for answer, words in (("no", _NO), ("yes", _YES))
    }
    is_all = all(found.values()) and sum(map(len, found.values())) == len(plain)
    return found if is_all and label.distinct > 2 else {}


def _spelt_alike(label: Facts) -> dict[str, list[str]]:
    """Return the spellings of each answer, most frequent first, if some differ in case, spaces or form only.

    In Unicode, é has two forms: one character, or e and an accent.
    """
    found: dict[str, list[str]] = {}
    for text, word in _plain_texts(label).items():
        found.setdefault(word, []).append(text)
    return found if 1 < len(found) < label.distinct else {}


def _plain_texts(label: Facts) -> dict[str, str]:
    """Return the label's texts without case and outer spaces; none if they are single letters."""
    if label.kind != "text" or label.distinct > len(label.counts):
        return {}
    plain = {text: unicodedata.normalize("NFC", text).strip().casefold() for text in label.counts}
    return {} if all(word.isalpha() and len(word) == 1 for word in plain.values()) else plain


def _many_spellings(label: Facts, spellings: dict[str, list[str]], file: OneCsv | None) -> UsageError:
    written = {text: first for first, *others in spellings.values() for text in others}
    several = {answer: texts for answer, texts in spellings.items() if len(texts) > 1}
    shown = spellings if len(spellings) == 2 else dict(itertools.islice(several.items(), _SHOWN_ANSWERS))
    remedy = f"write {_listed([texts[0] for texts in shown.values()])} only"
    if file:
        how = f", sep={file.delimiter!r}" if file.delimiter != "," else ""
        how += f", quotechar={file.quote!r}" if file.quote != '"' else ""
        # Without index_col=False, pandas takes the first column as the index if rows end with a delimiter.
        reading = f"dtype=str, keep_default_na=False, index_col=False{how}"
        code = (
            f"import pandas as pd; t = pd.read_csv({file.path!r}, {reading}); "
            f"t[{label.name!r}] = t[{label.name!r}].replace({_literal(written)}); "
            f"t.to_csv('one-spelling.csv', index=False{how})"
        )
        remedy = f"python -c {shlex.quote(code)}"
    count = "two" if len(spellings) == 2 else len(spellings)
    told = ", ".join(f"{_listed(texts)} for {answer}" for answer, texts in shown.items())
    more = ", and more" if len(several) > len(shown) else ""
    return UsageError(
        f"{label.name} holds {count} answers in {label.distinct} spellings: {told}{more}. A model would "
        "learn each spelling as a separate class.",
        hint=f"{remedy}   # then name that file; or add --task multiclass if all are different classes",
    )


def _listed(texts: list[str]) -> str:
    return " and ".join(map(_literal, texts))


def _literal(value: object) -> str:
    """Return a value in Python's notation, with escapes if a letter is in parts, which would look alike."""
    text = repr(value)
    return text if unicodedata.is_normalized("NFC", text) else ascii(value)


def _too_many_classes(label: Facts) -> UsageError:
    if label.kind != "text":
        remedy = "add --task regression"
    elif label.moment:
        remedy = f"dates cannot be classes: {_DAYS_INSTEAD}"
    elif unread := label.unread_numbers:
        remedy = f"it holds {unread.what}: {unread.remedy}"
        remedy += ", or remove their rows" if unread.may_be_codes else ""
    else:
        remedy = "add a column in which the rare ones share a name, and name that with --label"
    return UsageError(
        f"{label.name} holds {label.distinct:,} different values: too many for classes; the limit "
        f"is {_MOST_CLASSES}.",
        hint=remedy,
    )
