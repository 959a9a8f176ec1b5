"""Composes the notes about a table that `new` shows to the user. Pure."""

import math
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.counted_words import agreeing, counted
from slipway.components.escaped_text import short
from slipway.pipeline.start.facts import (
    EPOCH_UNITS,
    LONE_CODES,
    Facts,
    likely_epoch_unit,
    lone_code,
    zones_of,
)
from slipway.pipeline.start.value_formats import MISSING_WORDS

_LEAST_CLASSES = 2
# Between the labels of a row that has several.
_LABEL_SEPARATORS = ("; ", ";", "|", ", ", ",")
# So many numbers below a thousand and with three digits behind the point may be such and above a thousand.
_THOUSAND, _LEAST_OF_BOTH = 1000, 3
# Of many classes, none has a large share: a rare one has less than half of what each would have.
_RARE_CLASS, _OF_EQUAL_SHARE = 0.1, 0.5
_FEW_OF_A_CLASS = 20
# From this many features on, a run takes minutes: Transform takes _TRANSFORM_S per column, however few rows.
_MANY_FEATURES, _TRANSFORM_S = 500, 0.1
# A smaller share is shown as a row count instead of a percentage.
_SHOWN_SHARE = 0.001
# A total is at least of so many rows, and may be rounded.
_LEAST_SUMMED, _ROUNDED = 10, 1e-5
# One cell without a number may be a slip; in two columns, the row is of another kind.
_LEAST_ODD, _SHOWN_ODD = 2, 3
# Qualtrics writes the questions and their ids below the column names.
_MOST_HEADERS, _DIGIT = 3, re.compile(r"\W*\d")
# The first or last word in rows of totals. Other rows may have it, too, so such a row must hold a sum.
_TOTALS = {
    "total", "totals", "subtotal", "subtotals", "sum", "sums", "summe", "gesamt", "insgesamt", "ergebnis",
}  # fmt: skip
# What nothing but a total is called, whatever it holds.
_ONLY_TOTALS = {
    "subtotal", "sub total", "grand total", "zwischensumme", "zwischenergebnis", "gesamtsumme",
    "gesamtergebnis",
}  # fmt: skip
_MOST_WORDS, _LEAST_SUMMED_OF_GROUP, _SHOWN_TOTALS = 4, 2, 5


def notes_of(
    label: Facts,
    task: str,
    suspicions: Mapping[str, str],
    unread: Mapping[str, str],
    kept_leaks: Mapping[str, str],
) -> Sequence[str]:
    """Return what the user should check in the data, a sentence or two each.

    Args:
        task: binary, multiclass or regression.
        suspicions: feature that alone predicts much of the label -> its score, as text.
        unread: column that is not read -> what it holds, as text.
        kept_leaks: feature that gives the label away, but that the user keeps -> why it does.
    """
    notes = [
        f"Gives {label.name} away, but is kept: {column} ({why}). "
        f"data_gate.features.{column}.max_label_score is 1; otherwise, the data gate would stop the run."
        for column, why in kept_leaks.items()
    ]
    if suspicions:
        notes.append(
            f"Much of {label.name} can be predicted from one column alone: "
            f"{', '.join(f'{c} ({why})' for c, why in suspicions.items())}. That may be a good feature, but "
            f"a column that is known only after {label.name} is not: remove it from data.columns and "
            "preprocessing.py."
        )
    notes += [f"{column} holds {what}: left out." for column, what in unread.items()]
    if label.missing:
        them = "it" if label.missing == 1 else "them"
        notes.append(
            f"{label.missing:,} of {label.rows:,} rows {agreeing(label.missing, 'have')} no {label.name}: "
            f"a run leaves {them} out of training and evaluation, and counts {them} "
            "(data.unlabelled_rows: leave_out)."
        )
    if task != "regression":
        if numbers := label.unread_numbers:
            notes.append(
                f"{label.name} holds {numbers.what}, and each text is a class: to predict a number, "
                f"{numbers.remedy}, and start again."
            )
        notes += _several_labels_note(label)
        rarest, rows = min(label.counts.items(), key=lambda item: item[1])
        rarest = short(rarest)
        if rows < min(_RARE_CLASS, _OF_EQUAL_SHARE / label.distinct) * label.present:
            share = f"{rows / label.present:.1%} of the rows have"
            if rows < _SHOWN_SHARE * label.present:
                share = f"{rows:,} of {counted(label.present, 'row')} {agreeing(rows, 'have')}"
            notes.append(f"Only {share} {label.name} {rarest}: accuracy says little. {_instead(task)}")
        if rows < _FEW_OF_A_CLASS:
            count = counted(rows, "row")
            notes.append(
                f"{label.name} {rarest} occurs in {count} only: too few to learn anything reliable about it."
            )
        notes += [
            f"{label.name} {_listed(alike)} are different classes: spell them the same if they mean the same."
            for alike in _spellings(label)
        ]
    elif label.distinct == label.present and (label.is_whole or label.kind == "int"):
        notes.append(
            f"{label.name} holds another whole number in every row, as ids do. If it is one, name another "
            "column with --label."
        )
    if label.present < 1000:
        few = f"{label.present:,} rows{f' with {label.name}' if label.missing else ''}"
        notes.append(f"{few} are few: differences of a few percent between two models are luck.")
    return notes


def _several_labels_note(label: Facts) -> list[str]:
    """Tell of classes that are combinations of fewer labels, such as `red` and `blue` in `red;blue`."""
    classes = [str(value) for value in label.counts]
    for separator in _LABEL_SEPARATORS:
        combined = [each for each in classes if separator in each]
        parts = {part for each in classes for part in each.split(separator)}
        # Rows with one label are there, too, unlike in texts of several parts, such as a colour and a size.
        if 0 < len(combined) < len(classes) and "" not in parts and len(parts) < len(classes):
            return [
                f"{label.name} seems to hold several labels, as in {short(combined[0])!r}, and each "
                "combination is a class: to predict each label by itself, give each a column of 0 and 1 "
                "(Several labels in docs/training.md)."
            ]
    return []


def _instead(task: str) -> str:
    if task == "binary":
        return "Look at auc, and at the precision-recall curve in the report of a run."
    return "Look at the recall and the precision of each class in the report of a run."


def spelling_notes(columns: Sequence[Facts]) -> list[str]:
    """Return a note for each column with categories that differ only in case and blanks.

    Args:
        columns: those of categories.
    """
    notes = []
    for column in columns:
        if groups := _spellings(column):
            rest = len(groups) - 1
            more = f", and so {agreeing(rest, 'are')} {counted(rest, 'other group')}" if rest else ""
            notes.append(
                f"{column.name} {_listed(groups[0])} are different categories{more}: spell them the same if "
                "they mean the same."
            )
    return notes


def zone_notes(columns: Sequence[Facts]) -> list[str]:
    """Return a note for each column with times of several time zones."""
    return [
        f"{column.name} holds times of several time zones ({', '.join(sorted(zones))}): of each, the time of "
        "day there is read, without its zone. Write them in one zone if their order matters."
        for column in columns
        if len(zones := zones_of(column)) > 1
    ]


def width_notes(features: int) -> list[str]:
    """Return a note about the duration of a run with many features; empty if it is below minutes."""
    if features < _MANY_FEATURES:
        return []
    minutes = math.ceil(features * _TRANSFORM_S / 60)
    return [
        f"{features:,} features: Transform alone takes about {counted(minutes, 'minute')} on new data, "
        "and other nodes take longer, too. A run is faster with fewer columns in data.columns and "
        "preprocessing.py (docs/scale.md)."
    ]


def placeholder_notes(
    columns: Sequence[Facts], *, is_csv: bool, rewritten: Collection[str], categories: Collection[str]
) -> list[str]:
    """Return a note for each column with numbers or dates that may stand for a missing value.

    Args:
        is_csv: whether the files are CSV, for which `--null-value` can name such values.
        rewritten: columns of dates that the files write in another way than YYYY-MM-DD.
        categories: columns each of whose values stands for itself.
    """
    return [
        _placeholder_note(
            column,
            is_csv=is_csv,
            is_rewritten=column.name in rewritten,
            kind="category of its own"
            if column.name in categories
            else "date"
            if column.moment
            else "number",
        )
        for column in columns
        if column.missing_value_placeholders
    ]


def point_notes(columns: Sequence[Facts]) -> list[str]:
    """Return a note for each column whose points may separate thousands, as in 950 and 1.250.

    Args:
        columns: those of numbers that are read as a CSV has them, without a notation of their own.
    """
    notes = []
    for column in columns:
        numbers = [abs(number) for number in column.counts]
        if max(numbers, default=_THOUSAND) >= _THOUSAND:
            continue
        whole = [number for number in numbers if number >= _THOUSAND / 10 and not number % 1]
        parts = [number for number in numbers if number % 1]
        digits = [round(number * _THOUSAND) for number in parts]
        fits = all(math.isclose(n * _THOUSAND, d, rel_tol=1e-9) for n, d in zip(parts, digits, strict=True))
        # A number of two digits behind the point has a zero there.
        has_three = 2 * sum(digit % 10 != 0 for digit in digits) > len(digits)
        if min(len(whole), len(parts)) >= _LEAST_OF_BOTH and min(parts) > 1 and fits and has_three:
            notes.append(
                f"{column.name} holds {whole[0]:g} and {parts[0]:.3f}, with three digits behind each point, "
                "which are read as fractions. If the point separates thousands, write the numbers without "
                "it, and start again."
            )
    return notes


def epoch_notes(columns: Sequence[Facts]) -> list[str]:
    """Return a note for each column whose numbers may be times, which only its name would tell.

    Args:
        columns: those that are treated as numbers.
    """
    return [
        f"{column.name} may hold {unit} since 1970, {_day(column.least, unit)} to "
        f"{_day(column.greatest, unit)}; its name does not say so, and they are treated as numbers. If they "
        f"are times, call the column {column.name}_time and start again: then it gives months, days of the "
        "week and hours, and may split the rows by time."
        for column in columns
        if (unit := likely_epoch_unit(column))
    ]


def _day(number: float, unit: str) -> str:
    return datetime.fromtimestamp(number / EPOCH_UNITS[unit], UTC).strftime("%Y-%m-%d")


def missing_class_notes(label: Facts, *, is_csv: bool) -> list[str]:
    """Return a note about classes whose names are words or codes for a missing value; empty if there is none.

    Args:
        label: the column to predict, of a classification.
        is_csv: as for `placeholder_notes`.
    """
    words = [value for value in label.counts if str(value).strip().lower() in ("", *MISSING_WORDS)]
    codes = lone_code(label.counts)
    words += codes
    if not words or label.distinct - len(words) < _LEAST_CLASSES:
        return []
    count = counted(sum(label.counts[value] for value in words), "row")
    options = " ".join(f"--null-value={shlex.quote(str(value))}" for value in words)
    remedy = f"start again with {options}" if is_csv else "empty these cells"
    if codes and is_csv:  # in another column, such a number may be a value
        remedy += ", if no other column has it as a number, or empty these cells"
    what, mean = (
        ("a class of its own", "it means") if len(words) == 1 else ("classes of their own", "they mean")
    )
    return [
        f"{label.name} {' and '.join(map(repr, words))} ({count}) {agreeing(len(words), 'are')} {what}. If "
        f"{mean} that the answer is not known, {remedy}: such rows are left out then."
    ]


def totals_note(columns: Mapping[str, npt.NDArray[Any]]) -> list[str]:
    """Return a note about rows that hold the sums of rows above them, as sheets do; else nothing.

    Args:
        columns: all rows of the data, in order: float64 with NaN, or texts.
    """
    numbers = {name: values for name, values in columns.items() if values.dtype != object}
    notes = []
    called = _called_totals(columns)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite and huge numbers equal no sum
        summed = _summed(numbers, sorted(called))
        sums = [name for name, values in numbers.items() if _ends_with_sum(values)]
    # If many rows share a text, such as the name of a statistic, some of them hold a sum by chance.
    with_text, with_sum = Counter(called.values()), Counter(called[row] for row in summed)
    totals = {each for each in with_text if 2 * with_sum[each] >= with_text[each]}
    totals |= {each for each in with_text if _words(each[1]) in _ONLY_TOTALS}
    if rows := [row for row in sorted(called) if called[row] in totals]:
        column, text = called[rows[0]]
        shown = [f"{row + 1:,}" for row in rows[:_SHOWN_TOTALS]]
        more = [f"{len(rows) - len(shown):,} more"] if len(rows) > len(shown) else []
        *firsts, last = shown + more
        which = f"Rows {', '.join(firsts)} and {last} are totals" if firsts else f"Row {last} is a total"
        example = f"row {shown[0]} holds {column} {text!r}" if firsts else f"it holds {column} {text!r}"
        them = "these rows" if firsts else "that row"
        notes.append(
            f"{which} of the rows above: {example}. A model would learn from {them}: remove {them}, and "
            "create the workload again."
        )
    rows_in_all = len(next(iter(columns.values()), ()))
    if sums and rows_in_all - 1 not in rows:
        what = "is the sum" if len(sums) == 1 else "are the sums"
        notes.append(
            f"The last row is a total: its {' and '.join(sums)} {what} of the rows above. A model would "
            "learn from it: remove that row, and create the workload again."
        )
    return notes


def second_header_note(columns: Mapping[str, npt.NDArray[Any]]) -> list[str]:
    """Return a note about first rows that are no rows but units, or other words below the column names.

    Args:
        columns: all rows of the data, in order: float64 with NaN, or texts.
    """
    texts = {name: values for name, values in columns.items() if values.dtype == object}
    for rows in range(1, _MOST_HEADERS + 1):
        odd = [f"{name} {short(each[0])!r}" for name, each in texts.items() if _begins_with_words(each, rows)]
        if len(odd) < _LEAST_ODD:
            continue
        more = [f"{len(odd) - _SHOWN_ODD:,} more"] if len(odd) > _SHOWN_ODD else []
        where = " and ".join(odd[:_SHOWN_ODD] + more)
        which, seem, them = "row is the only one", "it seems", "that row"
        if rows > 1:
            which, seem, them = f"{rows} rows are the only ones", "they seem", "these rows"
        return [
            f"The first {which} without a number in {where}: {seem} to belong to the column names, such as "
            f"units. Remove {them}, and create the workload again."
        ]
    return []


def _begins_with_words(values: npt.NDArray[Any], rows: int) -> bool:
    """Whether all texts but the first few begin with a digit, as numbers, dates and codes do."""
    first, others = values[:rows], [text for text in values[rows:] if text]
    are_words = all(
        text and not _DIGIT.match(text) and text.strip().lower() not in MISSING_WORDS for text in first
    )
    return are_words and len(others) >= _LEAST_SUMMED and all(map(_DIGIT.match, others))


def _called_totals(columns: Mapping[str, npt.NDArray[Any]]) -> dict[int, tuple[str, str]]:
    """Return the rows with a text that totals are called by: row -> the column and the text."""
    found: dict[int, tuple[str, str]] = {}
    for name, values in columns.items():
        if values.dtype != object:
            continue
        texts = {each for each in set(values) if each and _may_be_total(_words(each))}
        if texts:
            found = {row: (name, text) for row, text in enumerate(values) if text in texts} | found
    return found


def _words(text: str) -> str:
    return " ".join(text.casefold().replace("-", " ").rstrip(": ").split())


def _may_be_total(words: str) -> bool:
    each = words.split(" ", _MOST_WORDS)
    return words in _ONLY_TOTALS or (len(each) <= _MOST_WORDS and bool({each[0], each[-1]} & _TOTALS))


def _summed(numbers: Mapping[str, npt.NDArray[np.float64]], rows: Sequence[int]) -> set[int]:
    """Return those of the rows that hold a sum: of all rows above, or of those since the last of `rows`."""
    found = set()
    for values in numbers.values():
        others = np.nan_to_num(values)
        others[list(rows)] = 0.0
        above = np.concatenate([[0.0], np.cumsum(others)])
        addends = np.concatenate([[0], np.cumsum(others != 0)])
        for last, row in zip([-1, *rows], rows, strict=False):
            for start in (0, last + 1):
                difference = abs(above[row] - above[start] - values[row])
                is_several = addends[row] - addends[start] >= _LEAST_SUMMED_OF_GROUP
                is_number = np.isfinite(values[row]) and values[row] != 0
                if is_several and is_number and difference <= _ROUNDED * abs(values[row]):
                    found.add(row)
    return found


def _ends_with_sum(values: npt.NDArray[np.float64]) -> bool:
    above, last = values[:-1], values[-1]
    above = above[~np.isnan(above)]
    if len(above) < _LEAST_SUMMED or not np.isfinite(last) or not last > above.max():
        return False
    return bool(abs(above.sum() - last) <= _ROUNDED * last)


def _placeholder_note(column: Facts, *, is_csv: bool, is_rewritten: bool, kind: str) -> str:
    placeholders = column.missing_value_placeholders
    shown = [each if isinstance(each, str) else f"{each:.15g}" for each in placeholders]
    options = " ".join(f"--null-value={shlex.quote(each)}" for each in shown)
    remedy = f"start again with {options}" if is_csv else "empty these cells"
    if is_csv and is_rewritten:
        remedy = "start again with --null-value and the date as the file writes it"
    where = "far from its other values"
    if LONE_CODES.issuperset(placeholders):
        where = "and no other number below 0"
        # Elsewhere, such a number may be a value.
        remedy += ", if no other column has it as a number, or empty these cells" if is_csv else ""
    rows = counted(sum(placeholders.values()), "row")
    return (
        f"{column.name} holds {' and '.join(shown)} in {rows}, {where}. If it "
        f"means a missing value, {remedy}; otherwise it is treated as a {kind}."
    )


def _spellings(column: Facts) -> list[list[str]]:
    """Return groups of values that differ only in case and whitespace."""
    found: dict[str, list[str]] = {}
    for value in sorted(map(str, column.counts)):
        found.setdefault(" ".join(value.casefold().split()), []).append(value)
    return [alike for alike in found.values() if len(alike) > 1]


def _listed(alike: Sequence[str]) -> str:
    *firsts, last = (repr(short(each)) for each in alike)
    return f"{', '.join(firsts)} and {last}"
