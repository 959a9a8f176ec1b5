"""What the words of texts say, as numbers for trees."""

import numpy as np
import pytest

from slipway.components.trainer.boosting.growing import (
    Growth,
)
from slipway.components.trainer.boosting.matrix import Columns
from slipway.components.trainer.boosting.texts import fit_texts, scaled_others
from slipway.components.trainer.features import Feature
from slipway.components.trainer.models import boosted_trees

pytestmark = pytest.mark.filterwarnings("default")  # TensorFlow's own imports warn
FEATURES = {
    "size": Feature(name="size", dtype="float32"),
    "pair": Feature(name="pair", dtype="float32", shape=(2,)),
    "kind": Feature(name="kind", dtype="int64", categories=70),
    "zone": Feature(name="zone", dtype="int64", categories=4),
    "shop": Feature(name="shop", dtype="int64", categories=400),
}
SMALL = {"max_rounds": 25, "patience_rounds": 5, "learning_rate": 0.4, "min_leaf_rows": 5}


def _values(rows, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "size": rng.normal(size=(rows, 1)).astype(np.float32),
        "pair": rng.normal(size=(rows, 2)).astype(np.float32),
        "kind": rng.integers(0, 60, (rows, 1)).astype(np.int32),
        "zone": rng.integers(0, 3, (rows, 1)).astype(np.int32),
        "shop": rng.integers(0, 400, (rows, 1)).astype(np.int32),
    }


def _growth(classes, **changed):
    return Growth(
        **{
            "classes": classes, "max_rounds": 20, "patience_rounds": 10, "learning_rate": 0.3,
            "max_leaves": 31, "max_depth": 12, "min_leaf_rows": 5, "linear_rows": 0, "seed": 1, **changed,
        }
    )  # fmt: skip


WORDS = {
    "note": Feature(name="note", dtype="int64", shape=(4,), categories=1000),
    "title": Feature(name="title", dtype="int64", shape=(2,), categories=500),
    "size": FEATURES["size"],
    "zone": FEATURES["zone"],
}


def _notes(rows, seed=0):
    rng = np.random.default_rng(seed)
    notes = rng.integers(1, 300, (rows, 4)).astype(np.int32)
    notes[rng.random((rows, 4)) < 0.3] = 0
    return {
        "note": notes,
        "title": rng.integers(0, 400, (rows, 2)).astype(np.int32),
        "size": rng.normal(size=(rows, 1)).astype(np.float32),
        "zone": rng.integers(0, 3, (rows, 1)).astype(np.int32),
    }


def _told(values, classes):
    """A label that depends on words: each of many adds its own part."""
    effect = np.random.default_rng(5).normal(size=1000)
    effect[0] = 0.0
    amounts = effect[values["note"]].sum(axis=1) + (values["size"] * (values["zone"] == 1))[:, 0]
    return amounts if classes is None else np.digitize(amounts, [-0.5, 0.5][: classes - 1]).astype(float)


def test_words_add_up_in_the_graph_as_in_the_fit():
    values, new = _notes(500), _notes(50, seed=9)
    new["note"][:5] = 0  # empty texts
    new["note"][5] = 999  # words that no row trained on had
    found = fit_texts(WORDS, values, _told(values, 3), _growth(3))
    model = boosted_trees.build_model(WORDS, {"classes": 3, **SMALL})
    layer = model.get_layer("words_of_note")
    layer.learn(found.words["note"], found.kernels["note"])
    summed = layer(new["note"]).numpy()
    np.testing.assert_allclose(
        summed, found.words["note"].matrix(new["note"]) @ found.kernels["note"], atol=1e-5
    )
    assert not summed[:6].any()


def test_trees_never_see_what_a_row_itself_taught_the_words():
    values = _notes(400)
    labels = np.random.default_rng(2).normal(size=400)  # nothing to learn
    found = fit_texts(WORDS, values, labels, _growth(None))
    assert abs(np.corrcoef(found.answers[:, 0], labels)[0, 1]) < 0.2


def test_a_rare_flag_beside_words_stays_a_flag_and_numbers_get_one_spread():
    values = {"size": np.zeros((1000, 1), np.float32), "number": _values(1000)["size"] * 50}
    values["size"][3] = 1.0
    features = {name: Feature(name=name, dtype="float32") for name in values}
    table, scale = scaled_others(Columns.of(features), values, 1000)
    assert table[:, 1].max() == 1.0
    assert scale == pytest.approx([50, 1], rel=0.1)
