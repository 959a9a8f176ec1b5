"""Training sees every row at most once an epoch, in an order of its own, in batches of one shape."""

from itertools import chain

import pytest

from components.errors import ComponentError
from components.trainer.features import Feature
from components.trainer.job import TrainingJob

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

ROWS = 50


@pytest.fixture
def job():
    return TrainingJob(
        train_files=("unread",),
        eval_files=(),
        features=(Feature(name="x", dtype="int64"), Feature(name="y", dtype="int64")),
        label="y",
        model="unread.build_model",
        hyperparameters={},
        batch_size=16,
        epochs=3,
        seed=5,
        output_dir="unread",
    )


@pytest.fixture
def rows():
    """x counts the rows and y is 2 x."""
    import tensorflow as tf

    x = tf.reshape(tf.range(ROWS), [ROWS, 1])
    return {"x": x, "y": 2 * x}


def numbers(batches, count):
    """The row numbers in the next batches, a list for each batch."""
    return [features["x"].numpy()[:, 0].tolist() for features, _ in batches.take(count)]


def test_epoch_is_a_permutation_without_what_fills_no_batch(rows, job):
    from components.trainer.dataset import training_batches

    epoch = list(chain.from_iterable(numbers(training_batches(rows, job, steps_per_epoch=3), 3)))
    assert len(set(epoch)) == 48
    assert epoch != sorted(epoch)


def test_epochs_differ_and_the_seed_repeats_them(rows, job):
    from components.trainer.dataset import training_batches

    first, again = (numbers(training_batches(rows, job, steps_per_epoch=3), 6) for _ in range(2))
    assert first == again
    assert first[:3] != first[3:]


def test_training_that_goes_on_sees_the_batches_it_would_have_seen(rows, job):
    from components.trainer.dataset import training_batches

    undisturbed = numbers(training_batches(rows, job, steps_per_epoch=3), 12)
    for step in (1, 5, 6):  # within an epoch, and at its beginning
        assert (
            numbers(training_batches(rows, job, steps_per_epoch=3, first_step=step), 12 - step)
            == undisturbed[step:]
        )


def test_label_goes_with_its_row(rows, job):
    from components.trainer.dataset import eval_batches, training_batches

    for batches in (training_batches(rows, job, steps_per_epoch=3).take(6), eval_batches(rows, job)):
        for features, label in batches:
            assert label.dtype.name == "float32"
            assert label.numpy().tolist() == (2 * features["x"].numpy()).tolist()


def test_training_batches_have_static_shapes(rows, job):
    from components.trainer.dataset import training_batches

    features, label = training_batches(rows, job, steps_per_epoch=3).element_spec
    assert (tuple(features["x"].shape), features["x"].dtype.name) == ((16, 1), "int32")
    assert tuple(label.shape) == (16, 1)


def test_evaluation_sees_every_row_once(rows, job):
    from components.trainer.dataset import eval_batches

    assert list(chain.from_iterable(numbers(eval_batches(rows, job), -1))) == list(range(ROWS))


def test_files_without_examples_are_named(tmp_path, job):
    import tensorflow as tf

    from components.trainer.dataset import load_rows

    file = str(tmp_path / "empty.gz")
    tf.io.TFRecordWriter(file, "GZIP").close()
    with pytest.raises(ComponentError, match=r"there are no examples in .*empty.gz"):
        load_rows([file], job.features)
