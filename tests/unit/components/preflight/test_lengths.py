"""Models for batches of several lengths; the traces are tested with JAX, on tests/data/preflight's models."""

import keras
import numpy as np
import pytest

from slipway.components.preflight.lengths import BucketedModel, made_up_rows
from slipway.components.preflight.model_traits import only_shapes_of_large_weights, with_all_arrays
from slipway.components.trainer.any_length import change_by_padding
from slipway.components.trainer.buckets import Buckets
from slipway.components.trainer.features import Feature

WORDS = Feature(name="words", dtype="int64", shape=(6,), categories=4)
PRICES = Feature(name="prices", dtype="float32", shape=(6, 2))
AGE = Feature(name="age", dtype="float32")


def rows_of(*features):
    inputs = {each.name: each for each in features}
    wanted = {name: [3, 4] for name in inputs if name != "age"}
    return made_up_rows(inputs, Buckets.of(wanted, inputs))


def test_made_up_rows_fill_the_first_bucket_with_codes_that_there_are():
    rows = rows_of(WORDS, PRICES)
    assert rows["words"].tolist() == [[1, 2, 3, 0, 0, 0], [1, 0, 0, 0, 0, 0]]
    assert rows["prices"].shape == (2, 6, 2)
    assert (rows["prices"][0, :3] > 0).all()
    assert not rows["prices"][0, 3:].any()


def test_a_column_of_unknown_categories_has_the_code_that_all_have():
    (row, _) = rows_of(Feature(name="words", dtype="int64", shape=(6,)))["words"]
    assert row.tolist() == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("more", [AGE, Feature(name="none", dtype="int64", shape=(6,), categories=1)])
def test_no_row_is_made_up_where_another_column_may_say_how_long_it_is(more):
    assert rows_of(WORDS, more) is None


MODEL = """
import keras

def build_model(features, hyperparameters):
    words = keras.Input(features["words"].shape, dtype="int32", name="words")
    vectors = keras.layers.Embedding(5000, 64, mask_zero=hyperparameters["mask"])(words)
    pooled = keras.layers.GlobalAveragePooling1D()(vectors)
    model = keras.Model({"words": words}, keras.layers.Dense(1)(pooled))
    model.compile("sgd", loss="mse")
    return model
"""


@pytest.mark.parametrize("mask", [True, False])
def test_answers_to_made_up_rows_show_whether_padding_counts(tmp_path, monkeypatch, mask):
    (tmp_path / f"made_up_{mask}.py").write_text(MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    inputs = {"words": WORDS}
    buckets = Buckets.of({"words": [3]}, inputs)
    asked = BucketedModel(f"made_up_{mask}.build_model", {"mask": mask}, inputs, buckets)
    with only_shapes_of_large_weights():
        with with_all_arrays():
            change = change_by_padding(asked, made_up_rows(inputs, buckets))
        table = keras.layers.Embedding(5000, 64)
        table.build()
        assert table.embeddings._value is None, "only shapes again"
    assert (change > 0) == (not mask)
    assert np.isfinite(change)
