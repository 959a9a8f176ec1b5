"""Decides the role of each column in the model, and why. Pure."""

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from slipway.components.counted_words import agreeing, counted
from slipway.components.ingest.header_names import INDEX
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start import lists
from slipway.pipeline.start.class_order import ordered
from slipway.pipeline.start.code_columns import FEW
from slipway.pipeline.start.facts import Facts
from slipway.pipeline.start.id_names import is_id
from slipway.pipeline.start.notes import notes_of
from slipway.pipeline.start.unread_dates import unread_dates

Task = Literal["binary", "multiclass", "regression"]


class Role(StrEnum):
    """The role of a column for the model."""

    LABEL = "label"
    WEIGHT = "weight"  # the weight of a row; not a feature
    NUMBER = "number"  # scaled to mean 0 and variance 1
    AMOUNT = "amount"  # spans several orders of magnitude, so its logarithm is scaled
    CATEGORY = "category"  # one of a few values
    TEXT = "text"  # hashed words and word pairs
    MOMENT = "moment"  # split into month, day of the week, hour, position in the year, trend
    ITEMS = "items"  # a list of any length: its values are hashed
    VECTOR = "vector"  # a list of the same length in every row: each place is scaled
    SERIES = "series"  # a list of numbers of any length: how many, their mean, least and greatest
    GROUP = "group"  # names the person, or the like, that a row belongs to; not a feature
    LEFT_OUT = "left out"


NO_FEATURES = (Role.LABEL, Role.WEIGHT, Role.GROUP, Role.LEFT_OUT)
"""The roles of columns that are no inputs of the model."""


@dataclass(frozen=True)
class Decision:
    """The decision about a column.

    Attributes:
        feature: the name of the feature: lower-case letters, digits and _.
        values: for a category, the number of values with their own code; the rest share one code. For a text,
            the number of words and word pairs that are read per row; for items and a vector, the number of
            values.
        codes: for items, the number of codes that their values are hashed into.
        is_kept: whether the user keeps the column as a feature despite warnings.
    """

    facts: Facts
    role: Role
    why: str
    feature: str = ""
    values: int = 0
    codes: int = 0
    is_kept: bool = False


@dataclass(frozen=True)
class Plan:
    """The plan from which all files are written.

    Attributes:
        classes: the label's values in the order of their codes; empty for a regression.
        mean: mean of the label, for a regression.
        deviation: standard deviation of the label, for a regression.
        decisions: the decision about each column, in the order of the file.
        notes: notes for the user, a sentence each.
        kept_leaks: feature that gives the label away, but that the user keeps -> why it does.
        is_skewed: whether the label of a regression has a few values far above the others.
    """

    label: Facts
    task: Task
    classes: tuple[str | int | float, ...]
    mean: float
    deviation: float
    decisions: tuple[Decision, ...]
    notes: tuple[str, ...]
    kept_leaks: Mapping[str, str] = field(default_factory=dict)
    is_skewed: bool = False

    def with_role(self, *roles: Role) -> list[Decision]:
        """Return the columns that have one of the given roles."""
        return [decision for decision in self.decisions if decision.role in roles]

    @property
    def rows(self) -> int:
        """The number of rows of the table."""
        return self.label.rows


_MOST_CATEGORIES = 100
# A category needs at least about this many rows to learn from.
_ROWS_PER_CATEGORY = 10
# Whole numbers with fewer rows each are numbers: too few to learn from each by itself.
_ROWS_PER_WHOLE_NUMBER = 30
# A column with one value says something by its empty cells, unless they are so few that they may be slips.
_LEAST_EMPTY = 0.05
# With this many rows, the probability that all fall into one split is about 1 in 3,000.
LEAST_ROWS = 20
_CODE_GAP, _LEAST_CODE = 50, 10_000
_TEXT_WORDS = 2.0
_LEAST_NGRAMS, _MOST_NGRAMS = 2, 256
_ID_SHARE = 0.95
# Ingest's name for an index column in a CSV, and pandas' name in Parquet, or in a CSV made of that.
_INDICES = {INDEX: "this column has no name in the file", "__index_level_0__": "pandas calls it so"}
_AMOUNT_SPAN = 30.0
# What Keras calls the layers and operations of the generated network, which its inputs cannot be called.
_LAYER_NAME = re.compile(
    r"(cast|concatenate|dense|divide|true_divide|dropout|embedding|functional|get_item|greater|maximum|multiply|"
    r"one_hot|rescaling|squeeze|sum)(_\d+)?"
)
# The vocabulary of a feature is a file of its name, of at most 255 bytes.
_LONGEST_NAME = 100
# Suffixes of the names of the features that are derived from one column.
_PARTS = (
    "_missing", "_month", "_weekday", "_hour", "_year_sin", "_year_cos", "_trend",
    "_count", "_mean", "_least", "_greatest",
)  # fmt: skip


def check_rows(rows: int, *, rejected: int = 0, first_reject: str = "") -> None:
    """Reject a table with so few rows that a split may be empty.

    Raises:
        UsageError: the table has too few rows.
    """
    if rows < LEAST_ROWS:
        others = f" {counted(rejected, 'row')} cannot be read; the first: {first_reject}" if rejected else ""
        raise UsageError(
            f"{counted(rows, 'row')} {agreeing(rows, 'are')} too few to train on some and evaluate on "
            f"others: at least {LEAST_ROWS} are needed.{others}",
            hint="collect more rows first; an evaluation is meaningful from a few hundred on",
        )


def decide(
    columns: Sequence[Facts],
    *,
    label: str,
    task: Task,
    leaks: Mapping[str, str],
    kept: Collection[str] = (),
    suspicions: Mapping[str, str] | None = None,
    unread: Mapping[str, str] | None = None,
    label_moments: tuple[float, float] = (0.0, 1.0),
    formats: Mapping[str, str] | None = None,
    weight: str | None = None,
    codes: Collection[str] = (),
) -> Plan:
    """Decide the role of every column.

    Args:
        columns: the properties of the columns, in the order of the file.
        leaks: column that gives the label away by the data gate's rule -> why, as text.
        kept: columns to keep as features despite warnings.
        suspicions: column that comes close to giving the label away -> why, as text.
        unread: column that is not read -> what it holds, as text.
        label_moments: mean and standard deviation of the label, for a regression.
        formats: column -> how its values are written, as text, if they are not written plainly.
        weight: name of the column that holds the weight of each row; None: all rows have the same weight.
        codes: columns of whole numbers that are codes, from `code_columns.columns_of_codes`.

    Raises:
        UsageError: no feature is left.
    """
    facts = {column.name: column for column in columns}
    wanted = facts[label]
    taken: set[str] = {_safe(label)}
    decisions = [
        Decision(column, Role.LABEL, "what is predicted", _safe(label))
        if column.name == label
        else _named(
            Decision(
                column, Role.WEIGHT, f"the weight of each row, from {column.least:g} to {column.greatest:g}"
            )
            if column.name == weight
            else _decision(column, leaks, codes, label=label, is_kept=column.name in kept),
            taken,
        )
        for column in columns
    ]
    if all(decision.role in NO_FEATURES for decision in decisions):
        left_out = sorted(
            (d for d in decisions if d.role is Role.LEFT_OUT), key=lambda each: each.facts.is_too_large
        )
        reasons = "; ".join(f"{d.facts.name}: {d.why}" for d in left_out)
        raise UsageError(
            f"No column is left to predict {label} from ({reasons or 'there is no other column'}).",
            hint=_way_to_keep(left_out[0].facts)
            if left_out
            else f"add columns to the file that may help to predict {label}",
        )
    used = {each.facts.name for each in decisions if each.role not in (Role.WEIGHT, Role.LEFT_OUT)}
    kept_leaks = {column: why for column, why in leaks.items() if column in used}
    suspicious = {column: why for column, why in (suspicions or {}).items() if column in used}
    classes = () if task == "regression" else ordered(wanted.counts)
    return Plan(
        label=wanted,
        task=task,
        classes=classes,
        mean=label_moments[0],
        deviation=label_moments[1] or 1.0,
        decisions=tuple(_as_written(decision, formats or {}) for decision in decisions),
        notes=tuple(notes_of(wanted, task, suspicious, unread or {}, kept_leaks)),
        kept_leaks=kept_leaks,
    )


def _way_to_keep(column: Facts) -> str:
    name = shlex.quote(column.name)
    if not column.is_too_large:
        return f"add --keep {name} if it is a feature after all"
    # With all digits, because --null-value compares text.
    worst = max(column.least, column.greatest, key=abs)
    return f"empty the cells of {name} with {worst!r}; in a CSV: add --null-value={worst!r}, as it is written"


def _as_written(decision: Decision, formats: Mapping[str, str]) -> Decision:
    words = formats.get(decision.facts.name)
    return replace(decision, why=f"{decision.why}; {words}") if words else decision


def _decision(
    column: Facts, leaks: Mapping[str, str], codes: Collection[str], *, label: str, is_kept: bool
) -> Decision:
    are_codes = column.name in codes
    if is_kept:
        return replace(_feature(column, label, are_codes=are_codes), is_kept=True)
    if why := _reason_against(column, leaks):
        return Decision(column, Role.LEFT_OUT, why)
    return _feature(column, label, are_codes=are_codes)


def _list_feature(column: Facts) -> Decision:
    what = "texts" if column.kind == "text" else "numbers"
    words = f"lists of {what}, {lists.length_words(column)}"
    if lists.are_categories(column):
        why = f"{words}, {column.distinct:,} different: each is hashed"
        size, codes = lists.codes_per_row(column), lists.codes_of(column)
        return Decision(column, Role.ITEMS, why, values=size, codes=codes)
    if lists.is_vector(column):
        return Decision(column, Role.VECTOR, f"{words}: each place is a number", values=column.longest)
    return Decision(column, Role.SERIES, f"{words}: how many, their mean, least and greatest")


def _feature(column: Facts, label: str, *, are_codes: bool) -> Decision:
    if column.is_list:
        return _list_feature(column)
    if _is_mark(column):
        mark = f"{next(iter(column.counts))!s:.40}"
        return _category(column, f"{mark} in {column.present:,} of {column.rows:,} rows, empty in the others")
    if column.moment:
        words = {"date": "dates", "time": "dates with times"}.get(
            column.moment, f"{column.moment} since 1970"
        )
        return Decision(column, Role.MOMENT, f"{words}, split into their parts")
    if _is_free_text(column):
        read = min(max(column.ngrams, _LEAST_NGRAMS), _MOST_NGRAMS)
        which = f"of each, the first {read}" if column.ngrams > read else "its"
        why = f"free text, {column.words:,.0f} words on average: {which} words and word pairs are hashed"
        return Decision(column, Role.TEXT, why, values=read)
    if column.kind == "text":
        but = ""
        if unread := column.unread_numbers:
            but = f", {unread.what}; to read them as numbers, {unread.remedy}, and start again"
        return _category(column, f"{column.distinct:,} different texts{but}")
    may_be_codes = column.kind == "int" and not column.has_notation
    recurs = column.distinct <= min(_MOST_CATEGORIES, column.present // _ROWS_PER_WHOLE_NUMBER)
    if may_be_codes and recurs and are_codes:
        return _category(column, f"{column.distinct} different whole numbers, {_code_words(column, label)}")
    if may_be_codes and _are_far_apart(column):
        return _category(column, f"{column.distinct:,} different codes, far apart")
    but = f"; nothing in {label} shows that they are codes" if may_be_codes and recurs else ""
    if column.least >= 0 and column.greatest > _AMOUNT_SPAN * max(column.median, 1e-9):
        half = f"half {'at' if column.median == column.least else 'below'} {column.median:g}"
        return Decision(column, Role.AMOUNT, f"from {column.least:g} to {column.greatest:g}, {half}{but}")
    return Decision(column, Role.NUMBER, f"numbers from {column.least:g} to {column.greatest:g}{but}")


def _code_words(column: Facts, label: str) -> str:
    if column.distinct > FEW:
        return f"codes it seems: neighbours differ in {label} like any two"
    return "each of which may be a code" + (
        f": {label} does not change evenly with them" if column.distinct > 2 else ""
    )


def _category(column: Facts, words: str) -> Decision:
    enough = [value for value, rows in column.counts.items() if rows >= _ROWS_PER_CATEGORY]
    values = max(min(len(enough), _MOST_CATEGORIES), min(column.distinct, 2))
    rest = column.distinct - values
    why = words if not rest else f"{words}; the {rest:,} rarest share one category"
    return Decision(column, Role.CATEGORY, why, values=values)


def _reason_against(column: Facts, leaks: Mapping[str, str]) -> str:
    if column.is_list:
        return lists.reason_against(column)
    if column.present == 0:
        return "empty in every row"
    if column.name in _INDICES and not column.moment:
        return f"the row index: {_INDICES[column.name]}"
    if column.name in leaks:
        return leaks[column.name]
    if column.missing_share > lists.MOSTLY_MISSING:
        return f"a value in {column.present:,} of {column.rows:,} rows only"
    if column.is_too_large:
        span = f"from {column.least:g} to {column.greatest:g}"
        return f"{span}, beyond what 32-bit numbers hold: empty these cells, or name them with --null-value"
    if column.distinct == 1 and not _is_mark(column):
        row = "row that has a value" if column.missing else "row"
        return f"the same in every {row}: {next(iter(column.counts))!s:.40}"
    is_unique = column.distinct >= _ID_SHARE * column.present
    if column.kind == "text" and not column.moment:
        if why := unread_dates(tuple(column.counts)):
            return why
        unread, is_mostly_unique = column.unread_numbers, is_unique or column.distinct > column.present / 2
        are_many = column.distinct > _MOST_CATEGORIES
        if unread and (is_mostly_unique or (are_many and not unread.may_be_codes)):
            return f"{unread.what}; {unread.remedy}, and start again"
        if is_mostly_unique:
            if _is_free_text(column):
                return ""
            return f"an id: {column.distinct:,} different texts in {column.present:,} rows"
    if column.is_whole and is_unique and (is_id(column.name) or _counts_rows(column)):
        return f"an id: {column.distinct:,} different numbers in {column.present:,} rows"
    return ""


def _is_mark(column: Facts) -> bool:
    """Whether a cell is either marked, such as with an x or a 1, or empty."""
    return column.distinct == 1 and column.missing_share >= _LEAST_EMPTY


def _is_free_text(column: Facts) -> bool:
    # Long texts that recur, such as the names of fifty companies, are categories.
    comes_back = column.distinct <= column.present / _ROWS_PER_CATEGORY
    is_text = column.kind == "text" and not column.moment and not column.unread_numbers
    return is_text and column.words >= _TEXT_WORDS and not comes_back


def _are_far_apart(column: Facts) -> bool:
    """Whether integers recur with wide gaps between them, such as codes of districts or companies."""
    gaps = (column.greatest - column.least) / max(column.distinct, 1)
    comes_back = column.present / max(column.distinct, 1)
    return gaps > _CODE_GAP and comes_back > _ROWS_PER_CATEGORY and column.least > _LEAST_CODE


def _counts_rows(column: Facts) -> bool:
    return column.distinct == column.present and column.greatest - column.least == column.distinct - 1


def _named(decision: Decision, taken: set[str]) -> Decision:
    if decision.role is Role.LEFT_OUT:
        return decision
    base = _safe(decision.facts.name)
    if _LAYER_NAME.fullmatch(base):
        base += "_column"
    name, number = base, 2
    while taken.intersection(made := {f"{name}{part}" for part in ("", *_PARTS)}):
        name, number = f"{base}_{number}", number + 1
    taken |= made
    return replace(decision, feature=name)


def _safe(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:_LONGEST_NAME].rstrip("_") or "column"
    return plain if plain[0].isalpha() else f"x_{plain}"
