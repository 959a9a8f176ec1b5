"""Files of examples that count."""

import pytest


@pytest.fixture
def write_examples(tmp_path):
    """Writes files of tf.Examples: x counts the rows, over all files, and y is 2 x; five
    rows each are of one group g; returns their names.
    """

    def write(*, rows, files):
        import tensorflow as tf

        names = [str(tmp_path / f"rows-{number}.gz") for number in range(files)]
        for number, name in enumerate(names):
            with tf.io.TFRecordWriter(name, "GZIP") as writer:
                for x in range(rows * number // files, rows * (number + 1) // files):
                    example = tf.train.Example()
                    example.features.feature["x"].int64_list.value.append(x)
                    example.features.feature["y"].int64_list.value.append(2 * x)
                    example.features.feature["g"].int64_list.value.append(2**40 + x // 5)
                    writer.write(example.SerializeToString())
        return names

    return write
