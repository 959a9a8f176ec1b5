"""What the words of texts say, as numbers for trees."""

import numpy as np
import pytest
from rows_for_trees import SMALL, WORDS, drawn_notes, drawn_values, growth_of, told_by_words

from slipway.components.trainer.boosting.matrix import Columns
from slipway.components.trainer.boosting.texts import fit_texts, scaled_others
from slipway.components.trainer.features import Feature
from slipway.components.trainer.models import boosted_trees

pytestmark = pytest.mark.filterwarnings("default")  # TensorFlow's own imports warn


def test_words_add_up_in_the_graph_as_in_the_fit():
    values, new = drawn_notes(500), drawn_notes(50, seed=9)
    new["note"][:5] = 0  # empty texts
    new["note"][5] = 999  # words that no row trained on had
    found = fit_texts(WORDS, values, told_by_words(values, 3), growth_of(3))
    model = boosted_trees.build_model(WORDS, {"classes": 3, **SMALL})
    layer = model.get_layer("words_of_note")
    layer.learn(found.words["note"], found.kernels["note"])
    summed = layer(new["note"]).numpy()
    np.testing.assert_allclose(
        summed, found.words["note"].matrix(new["note"]) @ found.kernels["note"], atol=1e-5
    )
    assert not summed[:6].any()


def test_trees_never_see_what_a_row_itself_taught_the_words():
    values = drawn_notes(400)
    labels = np.random.default_rng(2).normal(size=400)  # nothing to learn
    found = fit_texts(WORDS, values, labels, growth_of(None))
    assert abs(np.corrcoef(found.answers[:, 0], labels)[0, 1]) < 0.2


def test_a_rare_flag_beside_words_stays_a_flag_and_numbers_get_one_spread():
    values = {"size": np.zeros((1000, 1), np.float32), "number": drawn_values(1000)["size"] * 50}
    values["size"][3] = 1.0
    features = {name: Feature(name=name, dtype="float32") for name in values}
    table, scale = scaled_others(Columns.of(features), values, 1000)
    assert table[:, 1].max() == 1.0
    assert scale == pytest.approx([50, 1], rel=0.1)
