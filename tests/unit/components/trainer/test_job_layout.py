"""Rows to export by are taken from a whole split, in their order."""

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


def files_of(folder, rows):
    """Two files with a row for each number, its double as the label, and a weight of 1 or 0 in turns."""
    import tensorflow as tf

    names = [str(folder / "a.gz"), str(folder / "b.gz")]
    for place, name in enumerate(names):
        with tf.io.TFRecordWriter(name, "GZIP") as writer:
            for x in range(rows * place // 2, rows * (place + 1) // 2):
                example = tf.train.Example()
                for column, value in {"x": x, "y": 2 * x, "w": (x + 1) % 2}.items():
                    example.features.feature[column].float_list.value.append(value)
                writer.write(example.SerializeToString())
    return names


def job_of(folder, **changes):
    features = tuple(Feature(name=name, dtype="float32") for name in ("x", "y", "w"))
    return small_job(features=features, output_dir=str(folder), **{"weight": "w", **changes})


def test_some_rows_are_spread_over_all_files(tmp_path):
    from slipway.components.trainer.job_layout import some_rows

    files = files_of(tmp_path, 400)
    columns, labels, weights = some_rows(files, job_of(tmp_path), rows=40)
    assert list(columns) == ["x"]
    x = columns["x"][:, 0]
    assert len(x) == 40
    assert (np.diff(x) > 0).all()
    assert np.count_nonzero(x >= 200) == pytest.approx(20, abs=2)
    np.testing.assert_array_equal(labels[:, 0], 2 * x)
    np.testing.assert_array_equal(weights, (x + 1) % 2)
    _, labels, none = some_rows(files, job_of(tmp_path, weight=None), rows=1000)
    assert (len(labels), none) == (400, None)


def test_no_rows_and_several_outputs_are_refused_in_words(tmp_path):
    from slipway.components.trainer.job_layout import some_rows

    with pytest.raises(ComponentError, match="there are no examples in"):
        some_rows(files_of(tmp_path, 0), job_of(tmp_path), rows=40)
    with pytest.raises(ComponentError, match=r"train\.exports are of models with one output"):
        some_rows([], job_of(tmp_path, label={"a": "y"}), rows=40)
