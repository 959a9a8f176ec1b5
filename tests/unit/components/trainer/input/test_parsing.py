"""Reading files of examples into tensors: the fast way gives what TensorFlow's own reader gives."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

X = Feature(name="x", dtype="int64", shape=(1,), categories=None)
HALVES = Feature(name="halves", dtype="float32", shape=(2,), categories=None)
PIXELS = Feature(name="pixels", dtype="uint8", shape=(2, 3), categories=None)


@pytest.fixture
def write(tmp_path):
    """Writes files of tf.Examples with all three features, compressed or not; returns their names."""

    def write(*suffixes, rows=5000):
        import tensorflow as tf

        names = [str(tmp_path / f"{number}{suffix}") for number, suffix in enumerate(suffixes)]
        for number, name in enumerate(names):
            with tf.io.TFRecordWriter(name, "GZIP" if name.endswith(".gz") else "") as writer:
                for x in range(number * rows, (number + 1) * rows):
                    example = tf.train.Example()
                    example.features.feature["x"].int64_list.value.append(x)
                    example.features.feature["halves"].float_list.value.extend([x / 2, -x / 2])
                    example.features.feature["pixels"].bytes_list.value.append(
                        bytes(x % 256 for _ in "6times")
                    )
                    writer.write(example.SerializeToString())
        return names

    return write


def joined(batches):
    batches = list(batches)
    return {name: np.concatenate([each[name].numpy() for each in batches]) for name in batches[0]}


@pytest.mark.parametrize("suffixes", [(".gz", ".gz"), ("", ""), (".gz", "", ".gz")])
def test_rows_are_those_that_tensorflow_reads(write, suffixes):
    from slipway.components.trainer.input.parsing import parsed, parsed_once, records_of_all

    files, features = write(*suffixes), (X, HALVES, PIXELS)
    found = joined(parsed_once(files, features))
    expected = joined(parsed(records_of_all(files), features, rows=100))
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)


def test_file_without_rows_gives_none(write):
    from slipway.components.trainer.input.parsing import parsed_once

    assert list(parsed_once(write(".gz", rows=0), (X,))) == []


def test_example_without_a_feature_is_told(write):
    from slipway.components.trainer.input.parsing import parsed_once

    other = Feature(name="other", dtype="int64", shape=(1,), categories=None)
    with pytest.raises(ComponentError, match="does not have the transformed features"):
        list(parsed_once(write(".gz"), (other,)))


def test_damaged_file_is_named(write):
    from slipway.components.trainer.input.parsing import parsed_once

    [file] = write(".gz")
    Path(file).write_bytes(gzip.compress(b"a" * 100)[:-9])
    with pytest.raises(ComponentError, match=r"0\.gz cannot be read"):
        list(parsed_once([file], (X,)))


def rows_of_x(path, values):
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path), "GZIP" if path.suffix == ".gz" else "") as writer:
        for value in values:
            example = tf.train.Example()
            example.features.feature["x"].int64_list.value.append(value)
            writer.write(example.SerializeToString())
    return str(path)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**32, 2**63 - 1, -(2**63)])
def test_whole_number_beyond_32_bits_is_refused_with_its_column_and_value(tmp_path, suffix, value):
    from slipway.components.trainer.input.parsing import count_records, parsed_once
    from slipway.components.trainer.input.stream import require_examples

    file = rows_of_x(tmp_path / f"x{suffix}", [*range(100), value, 7])
    words = f"the transformed column x holds {value}, beyond 32 bits"
    for read in (
        lambda: list(parsed_once([file], (X,))),
        lambda: count_records([file], [X]),
        lambda: require_examples([file], (X,)),
    ):
        with pytest.raises(ComponentError, match=words) as refused:
            read()
        assert "preprocessing_fn" in refused.value.hint


def test_whole_numbers_of_32_bits_arrive(tmp_path):
    from slipway.components.trainer.input.parsing import parsed_once

    limits = [-(2**31), 2**31 - 1]
    [columns] = parsed_once([rows_of_x(tmp_path / "x", limits)], (X,))
    assert columns["x"].numpy().ravel().tolist() == limits


def test_streamed_value_beyond_32_bits_is_found_in_the_error_of_the_batches(tmp_path):
    import tensorflow as tf

    from slipway.components.trainer.features import refused_value
    from slipway.components.trainer.input.plan import Window
    from slipway.components.trainer.input.stream import training_batches
    from slipway.components.trainer.input.targets import Targets

    file = rows_of_x(tmp_path / "x", [*range(1000), 3_000_000_000])
    batches = training_batches(
        [file],
        (X,),
        rows=1001,
        targets=Targets({}),
        window=Window(batch_size=10, batches=2),
        seed=1,
        steps_per_epoch=100,
    )
    with pytest.raises(tf.errors.InvalidArgumentError) as failed:
        list(batches.take(100))
    assert refused_value(str(failed.value)).message.startswith("the transformed column x holds 3000000000,")
