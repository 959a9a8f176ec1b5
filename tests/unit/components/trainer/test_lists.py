"""Lists of any length to as many values in each row, from all that a preprocessing_fn may get."""

import pytest

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

ROWS = [["a", "b", "c"], [], ["d"]]


@pytest.mark.parametrize("kind", ["ragged", "sparse"])
def test_lists_are_cut_and_filled_up(kind):
    import tensorflow as tf

    from slipway.components.trainer.lists import padded_lists

    column = tf.ragged.constant(ROWS, tf.string)
    column = column.to_sparse() if kind == "sparse" else column
    found = tf.function(lambda rows: padded_lists(rows, length=2, padding="-"))
    traced = found.get_concrete_function(tf.type_spec_from_value(column))
    assert traced.structured_outputs.shape[1] == 2, "as training needs it"
    assert found(column).numpy().tolist() == [[b"a", b"b"], [b"-", b"-"], [b"d", b"-"]]


def test_columns_of_one_value_are_filled_and_dense_ones_stay():
    import tensorflow as tf

    from slipway.components.trainer.lists import padded_lists

    empty = tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0]), [2, 0])
    assert padded_lists(empty, length=1, padding=-1.0).numpy().tolist() == [[-1], [-1]]
    dense = tf.constant([[1, 2], [3, 4]], tf.int64)
    assert padded_lists(dense, length=2, padding=0).numpy().tolist() == [[1, 2], [3, 4]]


def test_padding_of_a_list_is_at_its_end_and_an_empty_value_before_it_keeps_its_place():
    import tensorflow as tf

    from slipway.components.trainer.lists import until_last

    column = tf.constant([["a", "", "b", ""], ["", "", "", ""], ["", "", "", "c"]])
    kept = tf.ragged.boolean_mask(column, until_last(column != "")).to_list()
    assert kept == [[b"a", b"", b"b"], [], [b"", b"", b"", b"c"]]


@pytest.mark.parametrize("rows", [ROWS, [[], [], ["a"], []], [[]], []])
def test_each_value_of_lists_has_the_row_that_tensorflow_gives_it(rows):
    import tensorflow as tf

    from slipway.components.trainer.lists import rows_of_values

    lists = tf.ragged.constant(rows, tf.string, ragged_rank=1)
    assert rows_of_values(lists).numpy().tolist() == lists.value_rowids().numpy().tolist()


def test_rows_of_a_long_list_beside_many_empty_ones_take_memory_for_their_values_only():
    """As long as the longest, all rows would take 800 GB, which TensorFlow refuses if it does not crash."""
    import tensorflow as tf

    from slipway.components.trainer.lists import rows_of_values

    lists = tf.RaggedTensor.from_row_lengths(tf.zeros(1_000_000), [0, 1_000_000, *[0] * 100_000])
    assert set(rows_of_values(lists).numpy().tolist()) == {1}
