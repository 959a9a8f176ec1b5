"""Writes the decisions as files of a workload: plain code that the user owns."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slipway.components.counted_words import counted
from slipway.pipeline.config import DataConfig
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.deciding import Decision, Plan, Role
from slipway.pipeline.start.reading import Table
from slipway.pipeline.start.rendering import line, workload_files
from slipway.pipeline.start.splitting import Split

# With fewer rows a linear model is rarely beaten, and always easier to understand.
FEW_ROWS = 2_000
# If one of two classes is rarer, always answering the other one is hard to beat in accuracy.
_RARE_SHARE = 0.2
# A text with at most this many values gets a domain, so that the data gate reports a new one.
_DOMAIN_VALUES = 20
_SAMPLE_ROWS = 5
# A category's vocabulary takes 0.07 s of CPU to load, and as long again to be asked for the first time.
# With more of them the limits of the serving check would be reached on a slow or busy machine.
_MANY_CATEGORIES, _LOAD_S, _CHECK_S = 100, 0.6, 1.2


@dataclass(frozen=True)
class _Column(Decision):
    """A decision, and the schema's entry for the column."""

    @property
    def is_domain(self) -> bool:
        return self.facts.kind == "text" and not self.facts.moment and len(self.domain) > 0

    @property
    def is_required(self) -> bool:
        return self.role is Role.LABEL or not self.facts.missing

    @property
    def domain(self) -> list[str]:
        few = self.role is Role.LABEL or self.facts.distinct <= _DOMAIN_VALUES
        return sorted(self.facts.counts) if few else []

    @property
    def least_share(self) -> float:
        """Half of the observed share, so that a column that loses its values is an anomaly."""
        return round((1 - self.facts.missing_share) / 2, 3)


def files_of(plan: Plan, table: Table, split: Split, *, name: str, source: str) -> dict[str, str]:
    """The files of a workload: path relative to the project's root -> content.

    Args:
        table: what it was decided from; a few rows become the test's.
        name: of the workload: a letter, then lower-case letters, digits and _.
        source: `data.source`.
    """
    values = _values(plan, table, split, name=name, source=source)
    return workload_files(name, values, about=f"Predicts {plan.label.name}")


def written_lines(files: Sequence[str]) -> list[str]:
    """The lines of `new` about the files that it wrote."""
    shown = (f"  {path}" for path in files if "__init__" not in path)
    return ["Written; the files are yours to edit:", *shown]


def write_files(files: Mapping[str, str | bytes], root: Path) -> None:
    """Writes new files below the project's root; never overwrites an existing one.

    Args:
        files: path relative to the root -> content.
        root: is made where it is missing.

    Raises:
        UsageError: a file is there already, or one cannot be written; nothing new is left.
    """
    if there := [path for path in files if (root / path).exists()]:
        raise UsageError(
            f"{', '.join(there)} already {'exists' if len(there) == 1 else 'exist'}; nothing is written.",
            hint="choose another name, or move them away",
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
            with contextlib.suppress(OSError):  # was not made, or somebody else has put something there
                folder.rmdir()
        raise UsageError(
            f"{error.filename or target} cannot be written: {error.strerror}; nothing is left."
        ) from error


def _values(plan: Plan, table: Table, split: Split, *, name: str, source: str) -> dict[str, object]:
    label = plan.with_role(Role.LABEL)[0]
    moments = plan.with_role(Role.MOMENT)
    features = plan.with_role(Role.NUMBER, Role.AMOUNT, Role.CATEGORY, Role.TEXT, Role.MOMENT)
    used = [_Column(**vars(d)) for d in plan.decisions if d.role is not Role.LEFT_OUT]
    return {
        "name": name,
        "description": f"Predicts {line(plan.label.name)} from {counted(len(features), 'column')}.",
        "source": source,
        "file_format": table.file_format,
        "delimiter": table.delimiter,
        "quote": table.quote,
        "label": label,
        "weight": next(iter(plan.with_role(Role.WEIGHT)), None),
        "used": used,
        "decisions": plan.decisions,
        "notes": plan.notes,
        "task": plan.task,
        "classes": plan.classes,
        "rows": plan.rows,
        "is_whole": table.is_whole,
        "metrics": _metrics(plan),
        "split": split,
        "forms": table.forms,
        "bytes_as_text": [d.facts.name for d in used if d.facts.name in table.texts],
        "numbers": plan.with_role(Role.NUMBER),
        "amounts": plan.with_role(Role.AMOUNT),
        "categories": plan.with_role(Role.CATEGORY),
        "texts": plan.with_role(Role.TEXT),
        "dates": [d for d in moments if d.facts.moment in ("date", "time")],
        "times": any(d.facts.moment == "time" for d in moments),
        "seconds": [d for d in moments if d.facts.moment == "seconds"],
        "missing": [d for d in features if d.facts.missing],
        "serving": _serving_limits(len(plan.with_role(Role.CATEGORY))),
        "gate": {**skew_limits(split.units or plan.rows), **split.gate},
        "kept_leaks": plan.kept_leaks,
        "rejected": table.rejected,
        "max_bad_share": bad_share_limit(table.rejected, table.rows + table.rejected),
        "sample": _sample(table, used, label.facts.name),
        **_training(plan),
    }


def _metrics(plan: Plan) -> tuple[str, ...]:
    """The metrics in which a good model beats the best constant answer; the first is the main one."""
    if plan.task == "multiclass":
        return ("sparse_categorical_accuracy", "sparse_categorical_crossentropy")
    if plan.task == "regression":
        return ("root_mean_squared_error", *(() if plan.is_skewed else ("mean_absolute_error",)))
    is_rare = min(plan.label.counts.values()) < _RARE_SHARE * plan.label.present
    return ("auc", "binary_crossentropy" if is_rare else "binary_accuracy")


def _training(plan: Plan) -> dict[str, object]:
    """The profile `network`. Few rows: a linear model, with the weight of scikit-learn's ridge."""
    train_rows = max(plan.rows * 2 // 3, 1)
    is_small = plan.rows < FEW_ROWS
    batch_size = 32 if is_small else 256
    # Adam needs some thousand updates for a linear model at this rate; hidden layers stop by themselves.
    epochs = int(np.clip(3000 * batch_size // train_rows, 5, 300)) if is_small else 100
    hyperparameters: dict[str, object] = {"learning_rate": 0.01 if is_small else 0.001}
    if is_small:
        # Both penalize the sum of squares with 1 for a sum over rows; Keras' losses are means over them.
        weight = plan.deviation**2 / train_rows if plan.task == "regression" else 0.5 / train_rows
        hyperparameters |= {"hidden_units": "[]  # a linear model, as for few rows", "l2": f"{weight:.3g}"}
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
    """Keys of `evaluate.serving` for a wide table; {}: use the defaults."""
    if categories <= _MANY_CATEGORIES:
        return {}
    return {"limit_s": round(_CHECK_S * categories), "max_load_s": round(_LOAD_S * categories)}


def bad_share_limit(bad: int, rows: int) -> float | None:
    """A `data.max_bad_share` that lets a first run begin: twice the observed share; None: use the default.

    Args:
        bad: rows that cannot be read.
        rows: of all, these included; >= 1.
    """
    if bad <= DataConfig.model_fields["max_bad_share"].default * rows:
        return None
    return min(math.ceil(200 * bad / rows) / 100, 1.0)


def skew_limits(rows: int) -> dict[str, float]:
    """Limits for the skew between the splits that chance alone does not exceed; {}: use the defaults.

    Two samples of n and m rows differ in a share by sqrt(1/n + 1/m) / 2, one standard deviation at most.
    Four of these are hardly ever exceeded, and neither by the largest of some dozen shares.

    Args:
        rows: of both splits, of which two thirds are trained on; >= 1.
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
    """A few rows, with as many different labels as possible, as tf.Transform takes them."""
    first: dict[Any, int] = {}
    for row, value in enumerate(table.columns[label].tolist()):
        if value is not None and value == value:
            first.setdefault(value, row)
            if len(first) == _SAMPLE_ROWS:
                break
    others = [row for row in range(table.rows) if row not in first.values()]
    rows = sorted([*first.values(), *others[: _SAMPLE_ROWS - len(first)]])
    return [{d.facts.name: _cell(table, d, row) for d in used} for row in rows]


def _cell(table: Table, decision: Decision, row: int) -> list[Any]:
    value = table.columns[decision.facts.name][row]
    if value is None or value != value:
        return []
    if decision.facts.kind == "text":
        return [value]
    return [int(value) if decision.facts.kind == "int" else float(value)]
