"""Rows at hand: every row at most once an epoch, in an order of its own, in batches of one shape."""

import time
from itertools import chain

import numpy as np
import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

ROWS = 50
FEATURES = (Feature(name="x", dtype="int64"), Feature(name="y", dtype="int64"))


@pytest.fixture(params=["memory", "file"])
def rows(request, tmp_path, write_examples):
    """x counts the rows and y is 2 x."""
    from slipway.components.trainer.input.arrays import FileRows, load_rows

    files = write_examples(rows=ROWS, files=1)
    if request.param == "memory":
        return load_rows(files, FEATURES)
    FileRows.write(tmp_path / "train.rows", files, FEATURES)
    return FileRows(tmp_path / "train.rows", FEATURES)


def targets():
    from slipway.components.trainer.input.targets import Targets

    return Targets("y")


def training(rows, **changes):
    from slipway.components.trainer.input.arrays import training_batches

    settings = {"targets": targets(), "batch_size": 16, "seed": 5, "steps_per_epoch": 3}
    return training_batches(rows, **{**settings, **changes})


def numbers(batches, count=-1):
    """The row numbers in the next batches, a list for each batch."""
    return [features["x"].numpy()[:, 0].tolist() for features, _ in batches.take(count)]


def test_epoch_is_a_permutation_without_what_fills_no_batch(rows):
    epoch = list(chain.from_iterable(numbers(training(rows), 3)))
    assert len(set(epoch)) == 48
    assert epoch != sorted(epoch)


def test_rows_held_out_are_never_trained_on_and_stay_the_same(rows):
    from slipway.components.trainer.input.arrays import eval_batches, held_out

    train, held = held_out(rows, share=0.2, seed=3)
    looked_at = set(chain.from_iterable(numbers(eval_batches(held, targets=targets(), batch_size=16))))
    seen = set(chain.from_iterable(numbers(training(train, steps_per_epoch=2), 12)))
    assert (len(looked_at), train.count) == (10, 40)
    assert seen == set(range(ROWS)) - looked_at
    again = held_out(rows, share=0.2, seed=3)[1]
    assert (
        set(chain.from_iterable(numbers(eval_batches(again, targets=targets(), batch_size=16)))) == looked_at
    )


@pytest.mark.parametrize(("share", "least"), [(0.2, 10), (0.01, 1), (1.0, 1)])
def test_groups_are_held_out_whole_wherever_their_rows_stand(rows, share, least):
    from slipway.components.trainer.input.arrays import held_out

    groups = 2**40 + np.arange(ROWS) % 7
    train, held = held_out(rows, share=share, seed=3, groups=groups)
    assert sorted([*train.numbers, *held.numbers]) == list(range(ROWS))
    assert train.count >= 1
    assert held.count >= least
    assert not set(groups[train.numbers]) & set(groups[held.numbers])
    if share < 0.5:
        assert held.count < least + 8, "no group more than reaches the share"


@pytest.mark.parametrize(("others", "held_rows"), [(range(1, 26), 5), ([1] * 3, 3)])
def test_group_larger_than_the_share_is_trained_on(rows, others, held_rows):
    """Rows without an id are one group: half of all rows, or all but three."""
    from slipway.components.trainer.input.arrays import held_out

    groups = np.array([0] * (ROWS - len(others)) + list(others))
    for seed in range(20):
        assert held_out(rows, share=0.1, seed=seed, groups=groups)[1].count == held_rows


def test_rows_of_one_group_are_held_out_one_by_one(rows):
    from slipway.components.trainer.input.arrays import held_out

    one, none = (held_out(rows, share=0.2, seed=3, groups=each)[1] for each in (np.ones(ROWS, int), None))
    assert one.numbers.tolist() == none.numbers.tolist()


def test_order_is_pinned_wherever_the_rows_are(rows):
    assert numbers(training(rows), 1)[0][:6] == [33, 22, 47, 11, 17, 32]


def test_epochs_differ_and_the_seed_repeats_them(rows):
    first, again, other = (numbers(training(rows, seed=seed), 6) for seed in (5, 5, 6))
    assert first == again != other
    assert first[:3] != first[3:]


def test_training_that_goes_on_sees_the_batches_it_would_have_seen(rows):
    undisturbed = numbers(training(rows), 12)
    for step in (1, 5, 6):  # within an epoch, and at its beginning
        assert numbers(training(rows, first_step=step), 12 - step) == undisturbed[step:]


def test_blocks_hold_the_same_batches_and_none_is_cut_short(rows):
    settings = {"batch_size": 4, "steps_per_epoch": 12}
    singles = numbers(training(rows, **settings), 36)
    for first_step, size in ((0, 6), (6, 6), (9, 3), (11, 1)):
        blocks = training(rows, **settings, first_step=first_step, block_steps=6)
        assert blocks.element_spec[0]["x"].shape == (size, 4, 1)
        taken = [
            batch[:, 0].tolist()
            for features, _ in blocks.take((36 - first_step) // size)
            for batch in features["x"].numpy()
        ]
        assert taken == singles[first_step:]


@pytest.mark.parametrize("block_steps", [None, 3])
def test_next_batches_are_made_while_one_is_trained_on(rows, block_steps):
    import tensorflow as tf

    taken = []

    class Counted:
        count, row_bytes, words = rows.count, 2**20, rows.words  # so large that none are taken together

        def take(self, numbers):
            def note(given):
                taken.append(len(given))
                return given

            return rows.take(tf.ensure_shape(tf.numpy_function(note, [numbers], tf.int64), numbers.shape))

    batches = iter(training(Counted(), block_steps=block_steps))
    next(batches)
    until = time.monotonic() + 60
    while len(taken) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    assert len(taken) >= 3  # nobody has asked for the second yet


def test_hosts_share_every_batch(rows):
    whole = numbers(training(rows), 4)
    parts = [numbers(training(rows, hosts=Hosts(index=index, count=2)), 4) for index in range(2)]
    assert [first + second for first, second in zip(*parts, strict=True)] == whole


def test_label_goes_with_its_row(rows):
    from slipway.components.trainer.input.arrays import eval_batches

    for batches in (training(rows).take(6), eval_batches(rows, targets=targets(), batch_size=16)):
        for features, label in batches:
            assert label.dtype.name == "float32"
            assert label.numpy().tolist() == (2 * features["x"].numpy()).tolist()


def test_training_batches_have_static_shapes(rows):
    features, label = training(rows).element_spec
    assert (tuple(features["x"].shape), features["x"].dtype.name) == ((16, 1), "int32")
    assert tuple(label.shape) == (16, 1)


@pytest.mark.parametrize(("multiple", "sizes"), [(1, [16, 16, 16, 2]), (8, [16, 16, 16]), (16, [16, 16, 16])])
def test_evaluation_leaves_out_only_what_cannot_be_divided(rows, multiple, sizes):
    from slipway.components.trainer.input.arrays import eval_batches

    found = numbers(eval_batches(rows, targets=targets(), batch_size=16, multiple=multiple))
    assert [len(batch) for batch in found] == sizes
    assert list(chain.from_iterable(found)) == list(range(sum(sizes)))


def test_evaluation_of_less_than_a_batch_is_one_small_batch(rows):
    from slipway.components.trainer.input.arrays import eval_batches

    assert [len(batch) for batch in numbers(eval_batches(rows, targets=targets(), batch_size=64))] == [50]


def test_rows_beyond_the_limit_are_not_held(write_examples):
    from slipway.components.trainer.input.arrays import load_rows

    assert load_rows(write_examples(rows=ROWS, files=1), FEATURES, limit_bytes=ROWS * 8 - 1) is None


def test_files_without_examples_are_named(write_examples):
    from slipway.components.trainer.input.arrays import load_rows

    with pytest.raises(ComponentError, match=r"there are no examples in .*rows-0.gz"):
        load_rows(write_examples(rows=0, files=1), FEATURES)


WORDS = (Feature(name="words", dtype="int64", shape=(6,)), Feature(name="y", dtype="int64"))


@pytest.fixture
def ragged():
    """42 rows of 0 to 6 words; y is the number of words. And their buckets, of 2, 4 and 6 words."""
    import tensorflow as tf

    from slipway.components.trainer.buckets import Buckets
    from slipway.components.trainer.input.arrays import BucketedRows, MemoryRows

    words = [[1] * (row % 7) + [0] * (6 - row % 7) for row in range(42)]
    held = MemoryRows({"words": tf.constant(words), "y": tf.constant([[row % 7] for row in range(42)])})
    buckets = Buckets.of({"words": [2, 4]}, {"words": WORDS[0]})
    return held, BucketedRows.of(held, buckets)


def _seen(batches, count=-1):
    """Of each batch, its shape and its rows' lengths."""
    found = []
    for features, label in batches.take(count):
        words = features["words"].numpy()
        assert (words != 0).sum(1).tolist() == label.numpy()[:, 0].tolist()
        found.append((words.shape, sorted(label.numpy()[:, 0].astype(int).tolist())))
    return found


def test_batches_of_similar_rows_are_cut_to_their_bucket(ragged):
    rows, bucketed = ragged
    batches = training(rows, batch_size=6, steps_per_epoch=7, bucketed=bucketed)
    assert batches.element_spec[0]["words"].shape.as_list() == [6, None]
    first, second = _seen(batches, 7), _seen(batches.skip(7), 7)
    for epoch in (first, second):
        assert sorted(length for _, lengths in epoch for length in lengths) == sorted([*range(7)] * 6)
        # Three of seven lengths are in the first bucket, and two in each of the others.
        assert sorted(shape for shape, _ in epoch) == [(6, 2)] * 3 + [(6, 4)] * 2 + [(6, 6)] * 2
        assert all(lengths[-1] <= shape[1] for shape, lengths in epoch)
    assert first != second
    assert [shape for shape, _ in first] != sorted(shape for shape, _ in first)


def test_bucketed_batches_go_on_where_they_stopped_and_hosts_share_them(ragged):
    rows, bucketed = ragged
    settings = {"batch_size": 6, "steps_per_epoch": 7, "bucketed": bucketed}
    whole = _seen(training(rows, **settings), 12)
    assert _seen(training(rows, **settings, first_step=9), 3) == whole[9:]
    hosts = [_seen(training(rows, **settings, hosts=Hosts(index=at, count=2)), 12) for at in (0, 1)]
    for (shape, lengths), parts in zip(whole, zip(*hosts, strict=True), strict=True):
        assert all(part_shape == (3, shape[1]) for part_shape, _ in parts)
        assert sorted([*parts[0][1], *parts[1][1]]) == lengths


def test_evaluation_takes_the_shortest_rows_first(ragged):
    from slipway.components.trainer.input.arrays import eval_batches

    rows, bucketed = ragged
    found = _seen(eval_batches(rows, targets=targets(), batch_size=20, bucketed=bucketed))
    assert [shape for shape, _ in found] == [(20, 4), (20, 6), (2, 6)]
    assert sorted(length for _, lengths in found for length in lengths) == sorted([*range(7)] * 6)
    host = eval_batches(
        rows, targets=targets(), batch_size=20, multiple=2, hosts=Hosts(index=0, count=2), bucketed=bucketed
    )
    assert [shape for shape, _ in _seen(host)] == [(10, 4), (10, 6), (1, 6)]


def test_rows_held_out_keep_their_buckets(ragged):
    from slipway.components.trainer.input.arrays import BucketedRows, held_out

    rows, bucketed = ragged
    for part in held_out(rows, share=0.5, seed=3):
        own = BucketedRows.of(part, bucketed.buckets)
        assert own.of_rows.tolist() == bucketed.of_rows[part.numbers].tolist()
