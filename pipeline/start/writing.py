"""Writes the decisions as the files of a workload: plain code that the user owns."""

import contextlib
import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from slipway.components.counted_words import counted
from slipway.components.data_profile.columns import is_missing
from slipway.pipeline.config import DataConfig
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.deciding import NO_FEATURES, Decision, Plan, Role
from slipway.pipeline.start.facts import EPOCH_UNITS, Facts
from slipway.pipeline.start.reading import Table
from slipway.pipeline.start.rendering import line, workload_files
from slipway.pipeline.start.split_rule import Split
from slipway.pipeline.start.value_formats import ValueFormats

# With fewer rows a linear model is rarely beaten, and always easier to understand.
FEW_ROWS = 2_000
# If one of two classes is rarer than this, always predicting the other is hard to beat in accuracy.
_RARE_SHARE = 0.2
# A text with at most this many values gets a domain, so that the data gate reports a new one. Not where only
# the first rows were looked at: others may be sorted behind them.
_DOMAIN_VALUES = 20
# So many letters of a free text are in a row of the generated test, which need not hold whole articles.
_SAMPLE_TEXT = 60
_SAMPLE_ROWS = 5
# The vocabulary of a categorical feature takes 0.07 s of CPU to load, and as long again for its first lookup.
# With more features than this, a slow or busy machine would reach the default limits of the serving check.
_MANY_CATEGORIES, _LOAD_S, _CHECK_S = 100, 0.6, 1.2


@dataclass(frozen=True)
class _Column(Decision):
    """A decision with the properties of the column's schema entry.

    Attributes:
        least_share: the share of rows with a value below which a split is an anomaly.
        is_all: whether its values are those of all rows of the data.
    """

    least_share: float = 0.0
    is_all: bool = True

    @property
    def is_domain(self) -> bool:
        is_plain = self.facts.kind == "text" and not self.facts.moment and not self.facts.is_list
        return is_plain and self.role is not Role.GROUP and len(self.domain) > 0

    @property
    def length(self) -> int:
        """The number of values in every row; 0 if it varies or may be 0."""
        return self.facts.longest if self.is_required and self.facts.shortest == self.facts.longest else 0

    @property
    def is_required(self) -> bool:
        return self.role is Role.LABEL or not self.facts.missing

    @property
    def domain(self) -> list[str]:
        few = self.role is Role.LABEL or (self.is_all and self.facts.distinct <= _DOMAIN_VALUES)
        return sorted(self.facts.counts) if few else []


def files_of(plan: Plan, table: Table, split: Split, *, name: str, source: str) -> dict[str, str]:
    """Return the files of a workload: path relative to the project's root -> content.

    Args:
        table: the data that the plan was made from; a few of its rows go into the generated test.
        name: the workload's name: a letter, then lower-case letters, digits and _.
        source: `data.source`.
    """
    values = _values(plan, table, split, name=name, source=source)
    return workload_files(name, values, about=f"Predicts {plan.label.name}")


def written_lines(files: Sequence[str]) -> list[str]:
    """Return the lines in which `new` lists the files that it wrote."""
    shown = (f"  {path}" for path in files if "__init__" not in path)
    return ["Written; the files are yours to edit:", *shown]


def write_files(files: Mapping[str, str | bytes], root: Path) -> None:
    """Write new files below the project's root; existing files are never overwritten.

    Args:
        files: path relative to the root -> content.
        root: created if it is missing.

    Raises:
        UsageError: a file exists already or cannot be written; no new file is left behind.
    """
    if there := [path for path in files if (root / path).exists()]:
        raise UsageError(
            f"{', '.join(there)} already {'exists' if len(there) == 1 else 'exist'}; nothing is written.",
            hint="choose another name; or, to write them anew without what you edited: "
            f"{shlex.join(['rm', *(str(root / path) for path in there)])}",
        )
    target = root
    written: list[Path] = []
    folders: list[Path] = []
    try:
        for path, content in files.items():
            target = root / path
            folders += reversed([folder for folder in target.parents if not folder.exists()])
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                written.append(target)
                file.write(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        for done in written:
            done.unlink(missing_ok=True)
        for folder in reversed(folders):
            with contextlib.suppress(OSError):  # not created, or another process put a file there
                folder.rmdir()
        raise UsageError(
            f"{error.filename or target} cannot be written: {error.strerror}; nothing is left behind."
        ) from error


def _values(plan: Plan, table: Table, split: Split, *, name: str, source: str) -> dict[str, object]:
    label = plan.with_role(Role.LABEL)[0]
    moments = plan.with_role(Role.MOMENT)
    features = [d for d in plan.decisions if d.role not in NO_FEATURES]
    used = [
        _Column(**vars(d), least_share=_least_share(d.facts, plan, split, table), is_all=table.is_whole)
        for d in plan.decisions
        if d.role is not Role.LEFT_OUT
    ]
    return {
        "name": name,
        "description": f"Predicts {line(plan.label.name)} from {counted(len(features), 'column')}.",
        "source": source,
        "file_format": table.file_format,
        "delimiter": table.delimiter,
        "quote": table.quote,
        "label": label,
        "weight": next(iter(plan.with_role(Role.WEIGHT)), None),
        "group": next(iter(plan.with_role(Role.GROUP)), None),
        "used": used,
        "decisions": plan.decisions,
        "notes": plan.notes,
        "task": plan.task,
        "classes": plan.classes,
        "rows": plan.rows,
        "is_whole": table.is_whole,
        "metrics": _metrics(plan),
        "split": split,
        "value_formats": _formats_of({d.facts.name for d in used} | {split.column}, table.value_formats),
        "texts_of_files": _texts_of_files([d.facts.name for d in used], table, split),
        "numbers": plan.with_role(Role.NUMBER),
        "amounts": plan.with_role(Role.AMOUNT),
        "categories": plan.with_role(Role.CATEGORY),
        "texts": plan.with_role(Role.TEXT),
        "items": plan.with_role(Role.ITEMS),
        "vectors": plan.with_role(Role.VECTOR),
        "series": plan.with_role(Role.SERIES),
        "dates": [d for d in moments if d.facts.moment in ("date", "time")],
        "times": any(d.facts.moment == "time" for d in moments),
        "seconds": [d for d in moments if d.facts.moment in EPOCH_UNITS],
        "units": EPOCH_UNITS,
        "maybe_nan": [
            d for d in features if d.facts.missing and d.facts.kind == "float" and not d.facts.is_list
        ],
        "missing": [d for d in features if d.facts.missing and not d.facts.is_list],
        "serving": _serving_limits(len(plan.with_role(Role.CATEGORY))),
        "gate": {**skew_limits(_labelled_units(plan, split)), **split.gate},
        "kept_leaks": plan.kept_leaks,
        "rejected": table.rejected,
        "max_bad_share": bad_share_limit(table.rejected, table.rows + table.rejected),
        "sample": _sample(table, used, label.facts.name),
        **_training(plan),
    }


def _texts_of_files(used: Sequence[str], table: Table, split: Split) -> dict[str, str]:
    """Return the columns that a run must be told to read as text, each with the reason.

    The schema gives the types of features, but cannot say that bytes are valid text.
    """
    found = {
        name: "bytes in the files; rows in which they are not valid text are quarantined"
        for name in used
        if name in table.texts
    }
    if split.column in table.as_text and split.column not in used:
        found[split.column] = "as written: as numbers, values may be too large, or different ones equal"
    return found


def _least_share(column: Facts, plan: Plan, split: Split, table: Table) -> float:
    """Return half of the observed share of values, so that a column that loses its values is an anomaly.

    Only rows with a label count: a run leaves out the others, in which other columns may be filled.

    If few rows have a value, the share is lower, because the third of the rows that is for evaluation differs
    by chance: its share is that of all rows times a factor with a standard deviation of sqrt(2/n), for n
    units with a value. Four standard deviations are hardly ever exceeded.
    """
    if column.name in split.present_shares:
        return round(split.present_shares[column.name] / 2, 3)
    share = 1 - column.missing_share
    if plan.label.missing and column.missing and column.name in table.columns:
        known = ~is_missing(table.columns[plan.label.name])
        share = float((~is_missing(table.columns[column.name]))[known].mean())
    units = share * _labelled_units(plan, split)
    chance = 4 * math.sqrt(2 / max(units, 1))
    return round(share * min(0.5, max(0.0, 1 - chance)), 3)


def _labelled_units(plan: Plan, split: Split) -> int:
    """Return about how many units that are assigned to a split have a label: others are in no split; >= 1."""
    return max((split.unit_count or plan.rows) * plan.label.present // plan.label.rows, 1)


def _formats_of(columns: Collection[str | None], formats: ValueFormats) -> ValueFormats:
    """Return the notations of some columns; Ingest refuses that of a column which it does not read."""
    numbers = {name: form for name, form in formats.numbers.items() if name in columns}
    dates = {name: form for name, form in formats.dates.items() if name in columns}
    return replace(formats, numbers=numbers, dates=dates)


def _metrics(plan: Plan) -> tuple[str, ...]:
    """Return the metrics in which a good model beats the best constant prediction, the main metric first."""
    if plan.task == "multiclass":
        return ("sparse_categorical_accuracy", "sparse_categorical_crossentropy")
    if plan.task == "regression":
        return ("root_mean_squared_error", *(() if plan.is_skewed else ("mean_absolute_error",)))
    is_rare = min(plan.label.counts.values()) < _RARE_SHARE * plan.label.present
    return ("auc", "binary_crossentropy" if is_rare else "binary_accuracy")


def _training(plan: Plan) -> dict[str, object]:
    """Return the profile `network`; for few rows it is a linear model with scikit-learn's ridge penalty."""
    train_rows = max(plan.label.present * 2 // 3, 1)
    is_small = plan.label.present < FEW_ROWS
    batch_size = 32 if is_small else 256
    # At this rate Adam needs a few thousand updates for a linear model; with hidden layers, it stops early.
    epochs = int(np.clip(3000 * batch_size // train_rows, 5, 300)) if is_small else 100
    hyperparameters: dict[str, object] = {"learning_rate": 0.01 if is_small else 0.001}
    if is_small:
        # scikit-learn adds the sum of squared weights to a loss summed over rows; Keras averages over rows.
        weight = plan.deviation**2 / train_rows if plan.task == "regression" else 0.5 / train_rows
        hyperparameters |= {"hidden_units": "[]  # a linear model, for few rows", "l2": f"{weight:.3g}"}
    if plan.task == "regression":
        hyperparameters |= {
            "label_mean": f"{plan.mean:.6g}",
            "label_deviation": f"{plan.deviation:.6g}",
        }
    return {
        "batch_size": batch_size,
        "epochs": epochs,
        "hyperparameters": hyperparameters,
        "patience": None if is_small else 10,
    }


def _serving_limits(categories: int) -> dict[str, float]:
    """Return keys of `evaluate.serving` for a table with many categories; {} keeps the defaults."""
    if categories <= _MANY_CATEGORIES:
        return {}
    return {"limit_s": round(_CHECK_S * categories), "max_load_s": round(_LOAD_S * categories)}


def bad_share_limit(bad: int, rows: int) -> float | None:
    """Return the `data.max_bad_share` that a first run needs: twice the observed share; None: the default.

    Args:
        rows: all rows, including those; >= 1.
    """
    if bad <= DataConfig.model_fields["max_bad_share"].default * rows:
        return None
    return min(math.ceil(200 * bad / rows) / 100, 1.0)


def skew_limits(rows: int) -> dict[str, float]:
    """Return limits for the skew between the splits that chance alone does not exceed; {}: the defaults.

    The difference of a share between two samples of n and m rows has a standard deviation of at most
    sqrt(1/n + 1/m) / 2. Four standard deviations are hardly ever exceeded, not even by the largest of a few
    dozen differences.

    Args:
        rows: rows of both splits together, two thirds of them in train; >= 1.
    """
    train, held = max(rows * 2 // 3, 1), max(rows // 3, 1)
    chance = 4 * np.sqrt(1 / train + 1 / held) / 2
    limits = {}
    if chance > 0.1:
        limits["max_skew_l_infinity"] = round(min(float(chance), 1.0), 2)
        limits["max_skew_jensen_shannon"] = round(min(float(chance), 1.0), 2)
    if chance > 0.05:
        limits["max_label_shift"] = round(min(float(chance), 1.0), 2)
    return limits


def _sample(table: Table, used: Sequence[Decision], label: str) -> list[dict[str, list[Any]]]:
    """Return a few rows with as many different labels as possible, in tf.Transform's instance format.

    Rows without a label are in no split, and the schema refuses them.
    """
    first: dict[Any, int] = {}
    labelled = np.flatnonzero(~is_missing(table.columns[label])).tolist()
    for row in labelled:
        first.setdefault(table.columns[label][row], row)
        if len(first) == _SAMPLE_ROWS:
            break
    others = [row for row in labelled[: 2 * _SAMPLE_ROWS] if row not in first.values()]
    rows = sorted([*first.values(), *others[: _SAMPLE_ROWS - len(first)]])
    return [{d.facts.name: _cell(table, d, row) for d in used} for row in rows]


def _cell(table: Table, decision: Decision, row: int) -> list[Any]:
    name = decision.facts.name
    values = table.lists[name][row] if name in table.lists else [table.columns[name][row]]
    present = [value for value in values if value is not None and value == value]
    if decision.role is Role.TEXT:
        return [_cut(text) for text in present]
    if decision.facts.kind == "text":
        return present
    return [int(value) if decision.facts.kind == "int" else float(value) for value in present]


def _cut(text: str) -> str:
    """Return the first words of a text."""
    if len(text) <= _SAMPLE_TEXT:
        return text
    return text[:_SAMPLE_TEXT].rpartition(" ")[0] or text[:_SAMPLE_TEXT]
