"""Queries the exported model and the trained one with the same rows, and reports how the answers agree."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from slipway.components.serving_check.answer_difference import difference, feature_differences
from slipway.components.serving_check.clean_process import ask_in_clean_process
from slipway.components.serving_check.perturbations import perturbations
from slipway.components.serving_check.requests import columns_with_marks, only_columns, perturbed, write_rows
from slipway.components.serving_check.training_side import TrainingAnswers, TrainingSide

SIGNATURES = ("serving_default", "serve_raw", "transform_features")
"""The signatures of every exported model; see components/trainer/saved_model_export.py."""
ALONE_ROWS = 16
"""Number of rows that are also sent one by one, to detect whether the rest of a batch changes an answer."""
BATCHES = (1, 128)
"""Batch sizes whose speed is measured."""
BUDGET_S = 0.5
"""How long each batch size is measured, unless 20 calls take longer."""


def check_served_model(
    model: Path, rows: Sequence[bytes], training: TrainingSide, *, limit_s: float
) -> dict[str, object]:
    """Load the model in a clean process, query it, and compare its answers with those of training.

    Args:
        model: the folder of the SavedModel.
        rows: serialized raw examples with all their columns.
        training: computes training's answers to the same rows.
        limit_s: seconds after which the clean process is killed.

    Returns:
        `clean_process.report_of`, with `rows` (number of real rows), `size_bytes`, `missing_signatures`,
        `wrong_arguments` ({missing, unexpected} of `serve_raw`), `marked` (columns with a value that
        `serve_raw` takes for an empty cell), `outputs` (numbers per row), `perturbed` (number of
        perturbations), `not_finite_rows` (of the real rows), `strange` (perturbations in words whose answer
        is not finite), `refused` (perturbations that were refused but should not be, {words, error}), and
        the differences `parity`, `alone`, `raw` ({largest, row, got, wanted}) and `features` by name.

    Raises:
        ComponentError: training's own answers cannot be computed.
        OSError: the machine has no room for another process.
    """
    columns = training.columns()
    names = [column.name for column in columns]
    requests = [only_columns(row, names) for row in rows]
    changes = list(perturbations(columns))
    with tempfile.TemporaryDirectory(prefix="serving-check-") as name:
        folder = Path(name)
        write_rows(folder / "real.tfrecord", requests)
        write_rows(folder / "full.tfrecord", rows)
        write_rows(folder / "perturbed.tfrecord", [perturbed(requests[0], change) for change in changes])
        questions = {"alone_rows": ALONE_ROWS, "batches": BATCHES, "budget_s": BUDGET_S}
        (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
        # The client mostly waits for TensorFlow's import; compute training's answers meanwhile.
        with ThreadPoolExecutor(1) as beside:
            asking = beside.submit(ask_in_clean_process, model, folder, limit_s=limit_s)
            wanted = training.answers(rows)
            report: dict[str, Any] = asking.result()
        answers = _answers(folder / "answers.npz")
    report |= {
        "rows": len(rows),
        "size_bytes": sum(path.stat().st_size for path in model.rglob("*") if path.is_file()),
        "missing_signatures": [each for each in SIGNATURES if each not in report["signatures"]],
        "wrong_arguments": _wrong_arguments(report["signatures"], training.arguments()),
        "marked": columns_with_marks(requests, columns),
        "perturbed": len(changes),
        "strange": [changes[row].words for row in report.pop("not_finite")],
        "refused": [
            {"words": changes[each["row"]].words, "error": each["error"]}
            for each in report["refused"]
            if not (changes[each["row"]].may_refuse and each["type"] == "InvalidArgumentError")
        ],
    }
    return {**report, **_agreement(answers, wanted)}


def _answers(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        return {}
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _wrong_arguments(
    signatures: Mapping[str, Mapping[str, Mapping[str, object]]], wanted: list[str]
) -> dict[str, list[str]]:
    found = set(signatures.get("serve_raw", {}).get("inputs", {}))
    if not found:
        return {"missing": [], "unexpected": []}
    return {"missing": sorted(set(wanted) - found), "unexpected": sorted(found - set(wanted))}


def _agreement(answers: dict[str, np.ndarray], wanted: TrainingAnswers) -> dict[str, object]:
    found: dict[str, object] = {"not_finite_rows": 0, "outputs": int(wanted.answers.shape[1]), "features": {}}
    if "real" not in answers:
        return found
    real = answers["real"]
    found["outputs"] = int(real.shape[1])
    found["not_finite_rows"] = int((~np.isfinite(real)).any(axis=1).sum())
    found["parity"] = difference(real, wanted.answers).to_json()
    if "alone" in answers:
        found["alone"] = difference(answers["alone"], real[: len(answers["alone"])]).to_json()
    if "raw" in answers:
        found["raw"] = difference(answers["raw"], real).to_json()
    prefix = "transformed/"
    transformed = {name.removeprefix(prefix): v for name, v in answers.items() if name.startswith(prefix)}
    if transformed:
        compared = feature_differences(transformed, wanted.features)
        found["features"] = {name: each.to_json() for name, each in compared.items() if each.largest > 0}
    return found
