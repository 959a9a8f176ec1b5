"""Rows of tf.Examples, read without TensorFlow."""

from example_by_hand import example

from slipway.pipeline.cloud.rehearsal.example_rows import Row, row_of


def test_hand_written_examples_are_what_tensorflow_s_schema_reads():
    row = row_of(example(fare=1.5, big_tip=1, company=b"Flash"))
    assert row.floats == (1.5,)
    assert row.exact.startswith(b"['big_tip', 'int64_list', [1], 'company'"), "by name"
    assert row_of(b"no example") == Row(b"no example", ())
