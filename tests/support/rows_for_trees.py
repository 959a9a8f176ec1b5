"""Rows that boosted trees learn from: their features, values drawn by a seed, and labels that follow."""

from typing import Any

import numpy as np
import numpy.typing as npt

from slipway.components.trainer.boosting.growing import Growth
from slipway.components.trainer.features import Feature

FEATURES = {
    "size": Feature(name="size", dtype="float32"),
    "pair": Feature(name="pair", dtype="float32", shape=(2,)),
    "kind": Feature(name="kind", dtype="int64", categories=70),
    "zone": Feature(name="zone", dtype="int64", categories=4),
    "shop": Feature(name="shop", dtype="int64", categories=400),
}
WORDS = {
    "note": Feature(name="note", dtype="int64", shape=(4,), categories=1000),
    "title": Feature(name="title", dtype="int64", shape=(2,), categories=500),
    "size": FEATURES["size"],
    "zone": FEATURES["zone"],
}
"""Features of which two are texts."""
SMALL = {"max_rounds": 25, "patience_rounds": 5, "learning_rate": 0.4, "min_leaf_rows": 5}
"""Hyperparameters of a model that is fitted soon."""


def growth_of(classes: int | None, **changed: Any) -> Growth:
    """How small trees grow, of classes or (None) of a number."""
    return Growth(
        **{
            "classes": classes, "max_rounds": 20, "patience_rounds": 10, "learning_rate": 0.3,
            "max_leaves": 31, "max_depth": 12, "min_leaf_rows": 5, "linear_rows": 0, "seed": 1, **changed,
        }
    )  # fmt: skip


def drawn_values(rows: int, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Values of FEATURES."""
    rng = np.random.default_rng(seed)
    return {
        "size": rng.normal(size=(rows, 1)).astype(np.float32),
        "pair": rng.normal(size=(rows, 2)).astype(np.float32),
        "kind": rng.integers(0, 60, (rows, 1)).astype(np.int32),
        "zone": rng.integers(0, 3, (rows, 1)).astype(np.int32),
        "shop": rng.integers(0, 400, (rows, 1)).astype(np.int32),
    }


def labels_of(values: dict[str, npt.NDArray[Any]], classes: int | None) -> npt.NDArray[Any]:
    """Labels by a pattern of FEATURES that trees find and a linear model does not."""
    amounts = np.where(values["kind"] % 3 == 0, 3.0, -1.0) * np.sign(values["size"]) + values["zone"] ** 2
    amounts = amounts.astype(np.float32)[:, 0]
    if classes is None:
        return amounts
    return np.digitize(amounts, np.quantile(amounts, np.arange(1, classes) / classes)).astype(np.float32)


def drawn_notes(rows: int, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Values of WORDS."""
    rng = np.random.default_rng(seed)
    notes = rng.integers(1, 300, (rows, 4)).astype(np.int32)
    notes[rng.random((rows, 4)) < 0.3] = 0
    return {
        "note": notes,
        "title": rng.integers(0, 400, (rows, 2)).astype(np.int32),
        "size": rng.normal(size=(rows, 1)).astype(np.float32),
        "zone": rng.integers(0, 3, (rows, 1)).astype(np.int32),
    }


def told_by_words(values: dict[str, npt.NDArray[Any]], classes: int | None) -> npt.NDArray[Any]:
    """Labels that depend on words of the notes: each of many adds its own part."""
    effect = np.random.default_rng(5).normal(size=1000)
    effect[0] = 0.0
    amounts = effect[values["note"]].sum(axis=1) + (values["size"] * (values["zone"] == 1))[:, 0]
    return amounts if classes is None else np.digitize(amounts, [-0.5, 0.5][: classes - 1]).astype(float)
