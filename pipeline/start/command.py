"""`new`: look, decide, write, and say what was decided."""

import keyword
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from components.data_gate.limits import Limits
from components.data_profile.single_scores import single_scores
from components.errors import ComponentError
from pipeline.config.section import PATTERN_WORDS, SnakeName
from pipeline.errors import UsageError
from pipeline.local.invocation import command
from pipeline.start.deciding import Plan, Task, decide, decide_task
from pipeline.start.facts import facts_of
from pipeline.start.reading import Table, read_table
from pipeline.start.writing import files_of, write_files

TASKS = ("auto", *get_args(Task))
# From here on, somebody should ask whether the column is known before the label is.
_SUSPICIOUS_SCORE = 0.8

# Asked with a question and the answers that it may have; raises where nobody is there to answer.
Ask = Callable[[str, list[str]], str]


@dataclass(frozen=True)
class Begun:
    """A new workload.

    Attributes:
        name: of the workload.
        files: that were written, relative to the project's root.
        plan: what was decided.
        rows: that were looked at.
        rejected: rows that could not be read.
    """

    name: str
    files: tuple[str, ...]
    plan: Plan
    rows: int
    rejected: int

    def text(self) -> str:
        """What was decided and why, what was written, and the next command."""
        width = max(len(d.facts.name) for d in self.plan.decisions)
        width = min(width, 30)
        kinds = {"binary": "one of two classes", "multiclass": f"one of {len(self.plan.classes)} classes"}
        lines = [f"{self.rows:,} rows, {len(self.plan.decisions)} columns."]
        if self.rejected:
            lines.append(f"{self.rejected:,} rows cannot be read: a run puts them into the quarantine.")
        lines.append(f"To predict: {self.plan.label.name}, {kinds.get(self.plan.task, 'a number')}.")
        lines.append("")
        lines += [f"  {d.facts.name[:30]:{width}}  {d.role:8}  {d.why}" for d in self.plan.decisions]
        lines += ["", *self.plan.notes] if self.plan.notes else []
        lines += [
            "",
            "Written, and yours from now on:",
            *(f"  {path}" for path in self.files if "__init__" not in path),
        ]
        lines.append(f"hint: {command('run', self.name)}")
        return "\n".join(lines)


def new(
    name: str,
    *,
    data: str,
    label: str | None,
    task: str,
    keep: Collection[str],
    root: Path,
    ask: Ask,
) -> Begun:
    """Begins a workload from files of examples.

    Args:
        name: of the workload.
        data: file, folder, glob or gs:// address; relative to where the user is.
        label: the column to predict; None: asked for.
        task: one of TASKS.
        keep: columns that become features whatever speaks against them.
        root: the project's root.
        ask: asks the user.

    Raises:
        UsageError: something of this cannot be; nothing is written.
    """
    _check_name(name)
    if task not in TASKS:
        raise UsageError(f"--task {task} is none of {', '.join(TASKS)}.")
    if "://" not in data:
        data = str(Path(data).absolute())  # typed in a shell, so from where that is
    try:
        table = read_table(data, root=root)
    except UsageError:
        raise
    except ComponentError as error:  # what cannot be read here is a wrong argument
        raise UsageError(error.message, hint=error.hint) from error
    columns = [facts_of(column, table.kinds[column], values) for column, values in table.columns.items()]
    facts = {column.name: column for column in columns}
    for wanted in [*keep, *([label] if label is not None else [])]:
        if wanted not in facts:
            raise UsageError(f"{data} has no column {wanted!r}; there are: {', '.join(facts)}.")
    if label is None:
        label = ask("Which column is to be predicted? (--label)", list(facts))
    decided = decide_task(facts[label], task) or _asked_task(label, ask)
    leaks, suspicions = _leaks(table, label)
    numbers = table.columns[label] if decided == "regression" else np.zeros(1)
    plan = decide(
        columns,
        label=label,
        task=decided,
        leaks=leaks,
        kept=keep,
        label_moments=(float(np.nanmean(numbers)), float(np.nanstd(numbers))),
        suspicions=suspicions,
        lists=table.lists,
    )
    files = files_of(plan, table, name=name, source=_source(data, root))
    write_files(files, root)
    return Begun(name=name, files=tuple(files), plan=plan, rows=table.rows, rejected=table.rejected)


def _check_name(name: str) -> None:
    pattern = SnakeName.__metadata__[0].metadata[0].pattern  # type: ignore[attr-defined]
    if not re.fullmatch(pattern, name):
        raise UsageError(
            f"{name!r} is no name of a workload: {PATTERN_WORDS[pattern]}.", hint="as: new churn"
        )
    if keyword.iskeyword(name):
        raise UsageError(
            f"{name!r} is a word of Python, and cannot name a package.", hint=f"as: new {name}_1"
        )


def _asked_task(label: str, ask: Ask) -> Task:
    answer = ask(
        f"{label} holds whole numbers. Are they classes (multiclass) or an amount (regression)? (--task)",
        ["multiclass", "regression"],
    )
    return "multiclass" if answer == "multiclass" else "regression"


def _leaks(table: Table, label: str) -> tuple[dict[str, str], dict[str, str]]:
    """What the data gate would stop at, and what comes close to it: column -> in words."""
    scores = single_scores(table.columns, label)
    words = {
        column: f"predicts it alone, {score:.2f} where 1 is perfect"
        for column, score in scores.items()
        if score > _SUSPICIOUS_SCORE
    }
    sure = {column for column in words if scores[column] > Limits().max_label_score}
    return {c: words[c] for c in words if c in sure}, {c: words[c] for c in words if c not in sure}


def _source(data: str, root: Path) -> str:
    """Relative to the project's root where it lies there, so that the workload can move with it."""
    is_below = "://" not in data and Path(data).is_relative_to(root)
    return str(Path(data).relative_to(root)) if is_below else data
