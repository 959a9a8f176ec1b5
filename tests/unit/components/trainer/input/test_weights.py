"""Weights that are none are refused in words, and balanced classes weigh the same."""

import re

import numpy as np
import pytest
from small_job import small_job

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

NAN = float("nan")


@pytest.fixture
def weigh(tmp_path):
    """The job after its rows were weighed: pairs of a label and a weight, of the train and the eval split."""

    def call(train, held=((0, 1.0),), *, weight="w", class_weights=None):
        import tensorflow as tf

        from slipway.components.trainer.input.weights import weighed

        files = []
        for name, rows in (("train", train), ("eval", held)):
            files.append(str(tmp_path / f"{name}.gz"))
            with tf.io.TFRecordWriter(files[-1], "GZIP") as writer:
                for label, value in rows:
                    example = tf.train.Example()
                    example.features.feature["x"].float_list.value.append(1.0)
                    example.features.feature["y"].float_list.value.append(label)
                    example.features.feature["w"].float_list.value.append(value)
                    writer.write(example.SerializeToString())
        job = small_job(
            train_files=(files[0],),
            eval_files=(files[1],),
            features=tuple(Feature(name=name, dtype="float32") for name in "xyw"),
            weight=weight,
            class_weights=class_weights,
            model="a.build_model",
            batch_size=1,
            output_dir=str(tmp_path),
        )
        found = weighed(job)
        return found.job.class_weights, found.class_words or found.mean_words

    return call


def test_balanced_classes_weigh_the_same_and_all_rows_what_they_did(weigh):
    rows = [(0, 1.0)] * 6 + [(1, 1.0)] * 3 + [(5, 1.0)]
    weights, words = weigh(rows, weight=None, class_weights="balanced")
    assert weights == {"0": pytest.approx(10 / 18), "1": pytest.approx(10 / 9), "5": pytest.approx(10 / 3)}
    assert words == "classes weigh 0: 0.5556, 1: 1.111, 5: 3.333"


def test_they_are_balanced_by_what_their_rows_weigh(weigh):
    weights, _ = weigh([(0, 3.0), (0, 0.0), (1, 1.0)], class_weights="balanced")
    assert {code: weight * total for (code, weight), total in zip(weights.items(), (3, 1), strict=True)} == {
        "0": pytest.approx(2.0),
        "1": pytest.approx(2.0),
    }


def test_weights_that_were_given_stay(weigh):
    assert weigh([(0, 1.0), (1, 1.0)], class_weights={"1": 3.0}) == ({"1": 3.0}, "classes weigh 1: 3")
    assert weigh([(0, 1.0)]) == (None, "")


@pytest.mark.parametrize(("weight", "is_told"), [(0.3, True), (0.5, False), (2.0, False), (40.0, True)])
def test_mean_weight_far_from_one_is_told_for_it_scales_the_loss(weigh, weight, is_told):
    _, words = weigh([(0, weight), (1, weight)])
    assert words.startswith(f"the weight w is {weight:g} on average") == is_told


def test_class_that_no_row_has_is_refused_with_those_that_are_there(weigh):
    with pytest.raises(ComponentError, match=r"weighs the class 3, but no row .*; there are: 0, 1\n"):
        weigh([(0, 1.0), (1, 1.0)], weight=None, class_weights={"1": 2.0, "3": 9.0})


@pytest.mark.parametrize(
    ("train", "held", "words"),
    [
        ([(0, 1.0), (0, -2.0)], [(0, 1.0)], "the weight w of a row of the train split is -2; weights must"),
        (
            [(0, 1.0)],
            [(0, NAN)],
            "the weight w of a row of the eval split is nan; weights must be finite",
        ),
        ([(0, float("inf"))], [(0, 1.0)], "the weight w of a row of the train split is inf"),
        ([(0, 0.0), (1, 0.0)], [(0, 1.0)], "the weight w is 0 in every row of the train split"),
        ([(0, 1.0)], [(0, 0.0)], "the weight w is 0 in every row of the eval split"),
    ],
)
def test_weights_that_are_none_are_refused_in_words(weigh, train, held, words):
    with pytest.raises(ComponentError, match=words):
        weigh(train, held)


@pytest.mark.parametrize("class_weights", ["balanced", {"0": 2.0}])
@pytest.mark.parametrize("label", [0.5, -1, NAN])
def test_a_row_of_weight_0_may_have_a_label_that_is_no_class(weigh, label, class_weights):
    rows = [(0, 1.0), (1, 1.0)]
    alone = weigh(rows, class_weights=class_weights)[0]
    assert weigh([*rows, (label, 0.0)], class_weights=class_weights)[0] == alone


@pytest.mark.parametrize("class_weights", ["balanced", {"0": 2.0}])
@pytest.mark.parametrize("label", [0.5, -1, NAN, 1e9])
def test_a_label_that_is_no_class_cannot_be_weighed_by_it(weigh, label, class_weights):
    with pytest.raises(
        ComponentError, match=f"class_weights is given, but a label .* is {re.escape(f'{label:g}')}"
    ):
        weigh([(0, 1.0), (label, 1.0)], weight=None, class_weights=class_weights)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (
            [1, 1, 0, 0],
            "all 2 of 4 rows .* holds out, so nothing could be measured",
        ),
        (
            [0, 0, 1, 1],
            "all 2 of 4 rows .* leaves, so nothing could be learned",
        ),
        ([0, 1, 1, 0], None),
    ],
)
def test_rows_that_weigh_nothing_measure_no_epoch(weights, words):
    from slipway.components.trainer.input.weights import require_weights_on_both_sides

    values, held = np.array(weights, np.float32)[:, None], np.array([2, 3])
    if words is None:
        require_weights_on_both_sides(values, held, name="w")
        return
    with pytest.raises(ComponentError, match=words) as refused:
        require_weights_on_both_sides(values, held, name="w")
    assert "train.early_stopping.share" in refused.value.hint
