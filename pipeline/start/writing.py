"""The decisions as files of a workload: plain code that the user owns."""

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from google.protobuf import text_encoding

from pipeline.errors import UsageError
from pipeline.local.printable import printable
from pipeline.start.deciding import Decision, Plan, Role
from pipeline.start.reading import Table

# Below so many rows a linear model is rarely beaten, and always faster understood.
FEW_ROWS = 2_000
_METRICS = {
    "binary": ("auc", "binary_accuracy"),
    "multiclass": ("sparse_categorical_accuracy", "sparse_categorical_crossentropy"),
    "regression": ("root_mean_squared_error", "mean_absolute_error"),
}
# A text with at most so many values gets a domain, so that the data gate names a new one.
_DOMAIN_VALUES = 20
_SAMPLE_ROWS = 5


@dataclass(frozen=True)
class _Column(Decision):
    """A decision, with what the schema says of the column."""

    @property
    def is_domain(self) -> bool:
        return self.facts.kind == "text" and not self.facts.moment and len(self.domain) > 0

    @property
    def domain(self) -> list[str]:
        few = self.role is Role.LABEL or self.facts.distinct <= _DOMAIN_VALUES
        return sorted(self.facts.counts) if few else []

    @property
    def least_share(self) -> float:
        """Half of the share seen, so that a column that goes quiet is an anomaly."""
        return round((1 - self.facts.missing_share) / 2, 3)


def files_of(plan: Plan, table: Table, *, name: str, source: str) -> dict[str, str]:
    """The files of a workload: path relative to the project's root -> content.

    Args:
        plan: what was decided.
        table: what it was decided from; a few rows become the test's.
        name: of the workload: a letter, then lower-case letters, digits and _.
        source: `data.source`.
    """
    values = _values(plan, table, name=name, source=source)
    here = f"workloads/{name}"
    templates = {
        f"schemas/{name}.pbtxt": "schema.pbtxt",
        f"{here}/workload.yaml": "workload.yaml",
        f"{here}/preprocessing.py": "preprocessing.py",
        f"{here}/model.py": "model.py",
        f"{here}/README.md": "README.md",
        f"tests/unit/workloads/test_{name}.py": "test.py",
    }
    environment = _environment()
    files = {
        path: environment.get_template(f"{template}.j2").render(values)
        for path, template in templates.items()
    }
    return {f"{here}/__init__.py": f'"""Predicts {_line(plan.label.name)}; see README.md."""\n', **files}


def write_files(files: Mapping[str, str], root: Path) -> None:
    """Writes new files below the project's root; never over one that is there.

    Raises:
        UsageError: a file is there already; nothing is written.
    """
    if there := [path for path in files if (root / path).exists()]:
        raise UsageError(
            f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} there already; nothing is written.",
            hint="choose another name, or move them away",
        )
    written: list[Path] = []
    try:
        for path, content in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("x", encoding="utf-8") as file:
                written.append(target)
                file.write(content)
    except OSError as error:
        for target in written:
            target.unlink(missing_ok=True)
        raise UsageError(f"{error.filename} cannot be written: {error.strerror}; nothing is left.") from error


def _values(plan: Plan, table: Table, *, name: str, source: str) -> dict[str, Any]:
    label = plan.with_role(Role.LABEL)[0]
    moments = plan.with_role(Role.MOMENT)
    features = plan.with_role(Role.NUMBER, Role.AMOUNT, Role.CATEGORY, Role.MOMENT)
    used = [_Column(**vars(d)) for d in plan.decisions if d.role is not Role.LEFT_OUT]
    what = {"binary": "whether", "multiclass": "which", "regression": "how much"}[plan.task]
    return {
        "name": name,
        "description": f"{what.capitalize()} {_line(plan.label.name)}, from {len(features)} columns.",
        "source": source,
        "file_format": table.file_format,
        "delimiter": table.delimiter,
        "label": label,
        "used": used,
        "decisions": plan.decisions,
        "notes": plan.notes,
        "task": plan.task,
        "classes": plan.classes,
        "rows": plan.rows,
        "is_whole": table.is_whole,
        "metrics": _METRICS[plan.task],
        "numbers": plan.with_role(Role.NUMBER),
        "amounts": plan.with_role(Role.AMOUNT),
        "categories": plan.with_role(Role.CATEGORY),
        "dates": [d for d in moments if d.facts.moment in ("date", "time")],
        "times": any(d.facts.moment == "time" for d in moments),
        "seconds": [d for d in moments if d.facts.moment == "seconds"],
        "missing": [d for d in features if d.facts.missing],
        "gate": _gate(plan),
        "sample": _sample(table, used, label.facts.name),
        **_training(plan),
    }


def _training(plan: Plan) -> dict[str, Any]:
    """Few rows: a linear model with the weight of scikit-learn's ridge; many: hidden layers beside it."""
    train_rows = max(plan.rows * 2 // 3, 1)
    is_small = plan.rows < FEW_ROWS
    batch_size = 32 if is_small else 256
    # Adam needs some thousand updates for a linear model at this rate, and some hundred for hidden layers.
    updates = 3000 if is_small else 800
    epochs = int(np.clip(updates * batch_size // train_rows, 5, 300))
    hyperparameters: dict[str, Any] = {"learning_rate": 0.01 if is_small else 0.001}
    if is_small:
        # Both penalize the sum of squares with 1 for a sum over rows; Keras' losses are means over them.
        weight = plan.deviation**2 / train_rows if plan.task == "regression" else 0.5 / train_rows
        hyperparameters |= {"hidden_units": "[]  # a linear model, as for few rows", "l2": f"{weight:.3g}"}
    if plan.task == "regression":
        hyperparameters |= {
            "label_mean": f"{plan.mean:.6g}",
            "label_deviation": f"{plan.deviation:.6g}",
        }
    return {"batch_size": batch_size, "epochs": epochs, "hyperparameters": hyperparameters}


def _gate(plan: Plan) -> dict[str, float]:
    """Limits for the skew between the splits that chance alone does not exceed; {}: the defaults hold.

    Two samples of n and m rows differ in a share by sqrt(1/n + 1/m) / 2, one standard deviation at most.
    Four of these are hardly ever exceeded, and neither by the largest of some dozen shares.
    """
    train, held = max(plan.rows * 2 // 3, 1), max(plan.rows // 3, 1)
    chance = 4 * np.sqrt(1 / train + 1 / held) / 2
    limits = {}
    if chance > 0.1:
        limits["max_skew_l_infinity"] = round(min(float(chance), 1.0), 2)
        limits["max_skew_jensen_shannon"] = round(min(float(chance), 1.0), 2)
    if chance > 0.05:
        limits["max_label_shift"] = round(min(float(chance), 1.0), 2)
    return limits


def _sample(table: Table, used: Sequence[Decision], label: str) -> list[dict[str, list[Any]]]:
    """A few rows, of as many different labels as fit, as tf.Transform takes them."""
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


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pipeline.start"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # What is written is no HTML: each place has the filter of its own language.
        autoescape=False,  # noqa: S701
    )
    environment.filters |= {"literal": _literal, "proto": _proto, "line": _line, "text": _text}
    environment.tests["required"] = lambda d: d.role is Role.LABEL or not d.facts.missing
    return environment


def _literal(value: Any) -> str:
    """The value as Python, YAML and JSON all write it."""
    return json.dumps(value, ensure_ascii=True)


def _proto(value: str) -> str:
    return f'"{text_encoding.CEscape(value.encode(), as_utf8=True)}"'


def _line(value: object) -> str:
    """One line of a comment, whatever stands in the name of a column."""
    return " ".join(printable(str(value)).replace('"""', "'''").replace("\\", "/").split())


def _text(value: object) -> str:
    """One cell of a table in Markdown."""
    escaped = html.escape(_line(value), quote=False)
    return re.sub(r"([|`*_\[\]])", r"\\\1", escaped)
