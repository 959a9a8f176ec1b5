"""Runs `new`: examines the data, decides, writes the files, and reports the decisions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, get_args

import numpy as np
import numpy.typing as npt

from slipway.components.counted_words import counted
from slipway.components.data_gate.rule_limits import Limits
from slipway.components.data_profile.single_scores import single_scores
from slipway.components.errors import ComponentError
from slipway.components.escaped_text import short
from slipway.components.ingest.csv_heads import check_heads
from slipway.components.ingest.options import Options
from slipway.components.ingest.source import SourceError, resolve_source
from slipway.components.ingest.spans import PLACEHOLDER
from slipway.pipeline.errors import UsageError, raised_as
from slipway.pipeline.start.arguments import (
    are_a_row,
    check_columns,
    check_name,
    check_weight,
    refuse_columns_of_images,
)
from slipway.pipeline.start.code_columns import columns_of_codes
from slipway.pipeline.start.copies import copies_of
from slipway.pipeline.start.deciding import Plan, Role, Task, check_rows, decide
from slipway.pipeline.start.encoding import WINDOWS, iconv
from slipway.pipeline.start.facts import Facts, facts_of, facts_of_lists
from slipway.pipeline.start.images.command import BegunImages, new_images
from slipway.pipeline.start.images.inspection import check_folder, existing_splits, holds_images
from slipway.pipeline.start.label import OneCsv, decide_task, no_value_notes
from slipway.pipeline.start.notes import (
    epoch_notes,
    missing_class_notes,
    placeholder_notes,
    point_notes,
    second_header_note,
    spelling_notes,
    totals_note,
    width_notes,
    zone_notes,
)
from slipway.pipeline.start.reading import Table, read_table
from slipway.pipeline.start.rendering import utf8
from slipway.pipeline.start.split_by_group import ids_of_groups
from slipway.pipeline.start.split_rule import Split
from slipway.pipeline.start.splitting import decide_split
from slipway.pipeline.start.writing import files_of, write_files, written_lines
from slipway.pipeline.terminal.invocation import command

_KEY = re.compile(r"\bdata\.(?:columns|limits|encoding|types|delimiter|max_bad_share)\b")
_SHOWN_CELLS = 5
_SKEWED = 1.1
TASKS = ("auto", *get_args(Task))
# From this score on, the user should check whether the column is known before the label is.
_SUSPICIOUS_SCORE = 0.7


class Ask(Protocol):
    """Asks the user a question."""

    def __call__(self, question: str, answers: Sequence[str], *, option: str) -> str:
        """Return one of the answers; raise UsageError that names the option if there is no terminal."""


@dataclass(frozen=True)
class Begun:
    """A new workload.

    Attributes:
        files: the written files, relative to the project's root.
        rows: the number of rows examined.
        is_whole: whether these are all rows of the data.
    """

    name: str
    files: tuple[str, ...]
    plan: Plan
    split: Split
    rows: int
    rejected: int
    first_reject: str = ""
    is_whole: bool = True

    def text(self) -> str:
        """Return the message for the user: decisions with reasons, the written files, the next command."""
        width = max(len(d.facts.name) for d in self.plan.decisions)
        width = min(width, 30)
        kinds = {"multiclass": f"one of {len(self.plan.classes)} classes"}
        if self.plan.task == "binary":
            no, yes = map(short, self.plan.classes)
            kinds["binary"] = f"the probability that it is {yes}, not {no}"
        columns = counted(len(self.plan.decisions), "column")
        lines = [f"{counted(self.rows, 'row')}, {columns}."]
        if not self.is_whole:
            lines = [f"{columns}. Only the first {counted(self.rows, 'row')} were looked at."]
        if self.rejected:
            them = "it" if self.rejected == 1 else "them"
            lines.append(
                f"{counted(self.rejected, 'row')} cannot be read: a run quarantines {them}. "
                f"The first: {self.first_reject}"
            )
        lines.append(f"To predict: {self.plan.label.name}, {kinds.get(self.plan.task, 'a number')}.")
        if self.split.why:
            lines.append(f"Two thirds of the rows are for training, split {self.split.why}.")
        lines.append("")
        lines += [f"  {d.facts.name[:30]:{width}}  {d.role:8}  {d.why}" for d in self.plan.decisions]
        lines += ["", *self.plan.notes] if self.plan.notes else []
        # A column name may hold a line break, and then text that looks like a line of this message.
        lines = [line.replace("\n", "\\n") for line in lines]
        return "\n".join([*lines, "", *written_lines(self.files), f"hint: {command('run', self.name)}"])


def new(
    name: str,
    *,
    data: str,
    label: str | None,
    task: str,
    keep: Sequence[str],
    root: Path,
    ask: Ask,
    null_values: Sequence[str] = (),
    weight: str | None = None,
) -> Begun | BegunImages:
    """Create a workload from files of examples.

    Args:
        data: file, folder, glob, or an address in an object store; relative to the current folder. An npz, or
            a folder with subfolders of images, creates a workload for images.
        label: the column to predict; None: ask the user, unless the data is images, which have no columns.
        task: one of TASKS.
        keep: columns to keep as features despite warnings.
        ask: asks the user what the arguments leave open.
        null_values: texts that mean a missing value anywhere in a CSV.
        weight: the column that holds the weight of each row, which is not a feature; None: all rows weigh the
            same.

    Raises:
        UsageError: an argument is not valid for the data; nothing is written.
    """
    check_name(name)
    if task not in TASKS:
        raise UsageError(f"--task {task} is not one of {', '.join(TASKS)}.", hint="leave --task out")
    if "://" not in data:
        data = str(Path(data).absolute())  # relative to the current folder, as typed in a shell
        utf8(data)  # raises if workload.yaml could not hold this path
        if holds_images(Path(data)) or existing_splits(Path(data)):
            refuse_columns_of_images(keep=keep, weight=weight, null_values=null_values)
            return new_images(
                name, data=Path(data), label=label, task=task, source=_source(data, root), root=root
            )
        check_folder(Path(data))
    try:
        table = read_table(data, root=root, null_values=null_values)
    except ComponentError as error:  # here unreadable data is a wrong argument, not a failed component
        raise UsageError(error.message, hint=_without_keys(error.hint, data)) from error
    columns = _facts(table)
    facts = {column.name: column for column in columns}
    check_columns(data, table, facts, label=label, weight=weight, keep=keep)
    if label is None:
        label = ask("Which column do you want to predict?", list(table.columns), option="--label")
    if weight is not None:
        check_weight(facts[weight], label=label, kept=keep)
    check_rows(table.rows, rejected=table.rejected, first_reject=table.first_reject)
    _check_heads(data, table, label=label, root=root)
    is_one_csv = table.file_format == "csv" and Path(data).is_file()
    file = OneCsv(data, table.delimiter, table.quote) if is_one_csv else None
    no_values = table.value_formats.shared.get(label, {})
    decided = decide_task(facts[label], task, file=file, is_whole=table.is_whole, no_values=no_values)
    decided = decided or _asked_task(label, ask)
    check_rows(facts[label].present, rejected=table.rejected, first_reject=table.first_reject)
    leaks, suspicions = _leaks(table, label)
    numbers = table.columns[label] if decided == "regression" else np.zeros(1)
    numbers = numbers[~np.isnan(numbers)]
    plan = decide(
        columns,
        label=label,
        task=decided,
        leaks=leaks,
        kept=keep,
        label_moments=(float(numbers.mean()), float(numbers.std())),
        formats=table.value_formats.words,
        suspicions=suspicions,
        unread=table.unread,
        weight=weight,
        codes=columns_of_codes(
            columns,
            table.columns,
            label,
            are_classes=decided != "regression",
            ids=[each.name for each in ids_of_groups(columns) if each.name in table.columns],
        ),
    )
    before = [_header_note(list(facts))] if table.file_format == "csv" and are_a_row(columns) else []
    plan = replace(
        plan,
        notes=(*before, *plan.notes, *_notes(plan, table, no_values)),
        is_skewed=decided == "regression" and _is_skewed(numbers),
    )
    grows = PLACEHOLDER.search(data) is not None  # a moment that splits this span leaves the next one whole
    plan, split = decide_split(plan, table.columns_and_lists, is_whole=table.is_whole and not grows)
    files = files_of(plan, table, split, name=name, source=_source(data, root))
    write_files(files, root)
    return Begun(
        name=name,
        files=tuple(files),
        plan=plan,
        split=split,
        rows=table.rows,
        rejected=table.rejected,
        first_reject=table.first_reject,
        is_whole=table.is_whole,
    )


def _facts(table: Table) -> list[Facts]:
    return [
        facts_of_lists(column, kind, table.lists[column])
        if column in table.lists
        else facts_of(
            column,
            kind,
            table.columns[column],
            is_duration=column in table.durations,
            has_notation=bool(table.value_formats.numbers.get(column)),
        )
        for column, kind in table.kinds.items()
    ]


def _without_keys(hint: str, data: str) -> str:
    """Adapt the hint of a failed run to a user who has no workload file yet in which to set a key."""
    if "data.encoding" in hint:
        return iconv(data, WINDOWS)
    if not _KEY.search(hint):
        return hint
    return f"{hint}. There is no workload file yet: change the data, or start with a copy of workloads/taxi"


def _check_heads(data: str, table: Table, *, label: str, root: Path) -> None:
    """Check the header by the rule that a run applies to a CSV before its first node starts."""
    if table.file_format != "csv" or "://" in data:
        return
    files = resolve_source(data, root=root, file_format="csv").files
    with raised_as(UsageError, SourceError):
        options = Options(format="csv", delimiter=table.delimiter, quote=table.quote)
        check_heads(files, label=label, options=options)


def _is_skewed(numbers: npt.NDArray[np.float64]) -> bool:
    """Whether predicting the mean has a much larger mean absolute error than predicting the median."""
    about_mean, about_median = (np.abs(numbers - each(numbers)).mean() for each in (np.mean, np.median))
    return bool(about_mean > _SKEWED * about_median)


def _notes(plan: Plan, table: Table, no_values: Mapping[str, str]) -> list[str]:
    """Return the notes on how the table is written, beside those on what it says, which the plan has."""
    is_csv, is_of_classes = table.file_format == "csv", plan.task != "regression"
    read = [d for d in plan.decisions if d.role is not Role.LEFT_OUT]
    categories = [d.facts for d in plan.with_role(Role.CATEGORY)]
    of_answers = missing_class_notes(plan.label, is_csv=is_csv) if is_of_classes else []
    notes = []
    if table.has_empty_end:
        notes.append("Rows end with a delimiter and nothing after it, which adds no column.")
    if is_csv and table.quote == "'":
        notes.append(
            "Fields are quoted with apostrophes (data.quote); if these are part of the text, remove that key."
        )
    notes += second_header_note(table.columns)
    notes += totals_note(table.columns) if table.is_whole else []
    notes += of_answers
    notes += no_value_notes(plan.label, no_values)
    notes += placeholder_notes(
        [d.facts for d in read if not (of_answers and d.role is Role.LABEL)],
        is_csv=is_csv,
        rewritten=table.value_formats.dates,
        categories=[each.name for each in categories] + [plan.label.name] * is_of_classes,
    )
    notes += spelling_notes([each for each in categories if each.kind == "text"])
    notes += zone_notes([d.facts for d in read])
    notes += epoch_notes([d.facts for d in plan.with_role(Role.NUMBER, Role.AMOUNT)])
    if is_csv:
        numbers = [d.facts for d in plan.with_role(Role.NUMBER, Role.AMOUNT, Role.LABEL)]
        plain = [each for each in numbers if each.name not in table.value_formats.numbers]
        notes += point_notes([each for each in plain if each.kind == "float"])
    notes += width_notes(sum(d.role is not Role.MOMENT for d in read) - 1)
    return notes


def _header_note(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > _SHOWN_CELLS else ""
    return (
        "The first line is read as column names, but holds only values: "
        f"{', '.join(names[:_SHOWN_CELLS])}{more}. If the file has no header, put a line with names above "
        "its rows, and create the workload again."
    )


def _asked_task(label: str, ask: Ask) -> Task:
    answer = ask(
        f"{label} holds whole numbers. Are they classes (multiclass) or an amount (regression)?",
        ["multiclass", "regression"],
        option="--task",
    )
    return "multiclass" if answer == "multiclass" else "regression"


def _leaks(table: Table, label: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the columns that would fail the data gate, and those that come close: column -> why, as text.

    Copies of the label would fail it, too, but for tables that are too small for a score.
    """
    scores = single_scores(table.columns, label)
    sure = dict.fromkeys(copies_of(label, table.columns), f"{label} in other words: one tells the other") | {
        column: f"predicts it alone, with a score of {score:.2f} where 1 is perfect"
        for column, score in scores.items()
        if score > Limits().max_label_score
    }
    close = {c: s for c, s in scores.items() if _SUSPICIOUS_SCORE < s <= Limits().max_label_score}
    return sure, {column: f"{score:.2f} where 1 is perfect" for column, score in close.items()}


def _source(data: str, root: Path) -> str:
    """Return the source, relative to the project's root if it lies there: the project can then be moved."""
    is_below = "://" not in data and Path(data).is_relative_to(root)
    return str(Path(data).relative_to(root)) if is_below else data
