"""The targets of a fit: the label beside the features, and the rows' weights."""

from types import SimpleNamespace

import numpy as np
import pytest

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def split(columns, **job):
    """The parts of a batch as lists, as they are fitted to and as they are judged."""
    import tensorflow as tf

    from slipway.components.trainer.input.targets import Targets

    given = SimpleNamespace(**{"label": "y", "weight": None, "class_weights": None, **job})
    batch = {name: tf.constant(values) for name, values in columns.items()}
    return [
        [tf.nest.map_structure(lambda each: each.numpy().tolist(), part) for part in found[1:]]
        + [sorted(found[0])]
        for found in (Targets.for_training(given).split(batch), Targets.for_evaluation(given).split(batch))
    ]


COLUMNS = {"x": [[1.0], [2.0], [3.0]], "y": [[0], [1], [7]], "w": [[0.5], [2.0], [0.0]]}
LABELS = [[0.0], [1.0], [7.0]]


def test_without_weights_there_are_features_and_a_label():
    assert split(COLUMNS) == [[LABELS, ["w", "x"]]] * 2


def test_a_weight_is_no_feature_and_counts_in_both():
    assert split(COLUMNS, weight="w") == [[LABELS, [0.5, 2.0, 0.0], ["x"]]] * 2


def test_classes_weigh_in_the_training_alone_and_those_without_a_weight_one():
    fitted, judged = split(COLUMNS, class_weights={"1": 3.0})
    assert fitted == [LABELS, [1.0, 3.0, 1.0], ["w", "x"]]
    assert judged == [LABELS, ["w", "x"]]


def test_both_are_multiplied_also_in_blocks_of_batches():
    fitted, _ = split(
        {name: [values] for name, values in COLUMNS.items()}, weight="w", class_weights={"0": 4.0}
    )
    assert fitted == [[LABELS], [[2.0, 2.0, 0.0]], ["x"]]


def test_every_output_has_a_label_of_its_own():
    fitted, judged = split({**COLUMNS, "z": [[1], [2], [3]]}, label={"a": "y", "b": "z"}, weight="w")
    assert fitted == judged
    assert fitted[1:] == [[0.5, 2.0, 0.0], ["x"]]
    assert fitted[0] == {"a": LABELS, "b": [[1.0], [2.0], [3.0]]}


def test_several_columns_are_one_label_side_by_side():
    fitted, judged = split({**COLUMNS, "z": [[1], [2], [3]]}, label=["z", "y"], weight="w")
    assert fitted == judged == [[[1.0, 0.0], [2.0, 1.0], [3.0, 7.0]], [0.5, 2.0, 0.0], ["x"]]


def test_a_one_hot_label_is_its_class():
    columns = {"x": [[1.0], [2.0]], "y": [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]}
    fitted, _ = split(columns, class_weights={"2": 5.0})
    assert fitted[1] == [5.0, 1.0]


def test_balanced_weights_must_have_been_counted():
    with pytest.raises(ValueError, match="not been counted"):
        split(COLUMNS, class_weights="balanced")


@pytest.mark.parametrize("block", [(), (1,)], ids=["batch", "block of one batch"])
def test_a_row_of_weight_0_has_a_label_that_the_loss_knows_and_every_other_keeps_its_own(block):
    import tensorflow as tf

    from slipway.components.trainer.input.targets import with_known_labels

    nan = float("nan")

    def told(label, classes, values=(0.0, 2.0, -1.0, 3.0), hinged=()):
        shaped = tf.constant(values, shape=(*block, 4, 1))
        weight = tf.constant([0.0, 0.0, 0.0, 5.0], shape=(*block, 4))
        batches = tf.data.Dataset.from_tensors(({"x": shaped}, label(shaped), weight))
        features, found, _ = next(iter(with_known_labels(batches, classes, hinged)))
        np.testing.assert_array_equal(features["x"].numpy().ravel(), values)
        return tf.nest.map_structure(lambda each: each.numpy().ravel().tolist(), found)

    assert told(lambda label: label, {"": 2}) == [0, 0, 0, 3]
    assert told(lambda label: label, {}) == [0, 2, -1, 3]
    assert told(lambda label: label, {}, (nan, float("inf"), -7.0, 3.0)) == [0, 0, -7, 3]
    assert told(lambda label: label, {"": 4}, (nan, -float("inf"), 3.0, 3.0)) == [0, 0, 3, 3]
    np.testing.assert_array_equal(told(lambda label: label, {}, (nan, 1.0, 1.0, nan)), [0, 1, 1, nan])
    assert told(lambda label: label, {}, (2.0**100, -(2.0**120), 1e9, 2.0**100)) == [0, 0, 1e9, 2.0**100]
    assert told(lambda label: label, {}, (nan, -1.0, 7.0, 0.0), hinged={""}) == [1, 1, 1, 0], (
        "one label other than 0 and 1 changes what a hinge makes of the others"
    )
    assert told(lambda label: label, {}, (0.0, 1.0, -1.0, -1.0), hinged={""}) == [0, 1, 1, -1]
    assert told(lambda label: {"a": label, "b": label}, {"b": 3}, (nan, 2.0, 5.0, 3.0)) == {
        "a": [0, 2, 5, 3],
        "b": [0, 2, 0, 3],
    }
    assert told(lambda label: {"a": label, "b": label}, {"b": 3}) == {"a": [0, 2, -1, 3], "b": [0, 2, 0, 3]}
