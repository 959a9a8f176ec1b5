"""Data that does not fit into memory: the same guarantees as in memory, except for the shuffle window."""

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature
from slipway.components.trainer.input.plan import Window
from slipway.components.trainer.loss_labels import LabelRange

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

FEATURES = (Feature(name="x", dtype="int64"), Feature(name="y", dtype="int64"))
ROWS = 1000
WINDOW = Window(batch_size=32, batches=4)
STEPS = 31


@pytest.fixture
def files(write_examples):
    return write_examples(rows=ROWS, files=3)


def targets():
    from slipway.components.trainer.input.targets import Targets

    return Targets("y")


def training(files, **changes):
    from slipway.components.trainer.input.stream import training_batches

    settings = {
        "rows": ROWS, "targets": targets(), "window": WINDOW, "seed": 5, "steps_per_epoch": STEPS
    }  # fmt: skip
    return training_batches(files, FEATURES, **{**settings, **changes})


def numbers(batches, count=-1):
    return [features["x"].numpy()[:, 0].tolist() for features, _ in batches.take(count)]


def test_epoch_sees_every_row_at_most_once_and_its_steps_are_as_counted(files):
    from slipway.components.trainer.input.parsing import count_records

    rows, found = count_records(files, [Feature(name="y", dtype="int64")])
    assert rows == ROWS
    assert found == {"y": LabelRange(0.0, 2 * (ROWS - 1.0), is_whole=True)}
    epoch = list(chain.from_iterable(numbers(training(files), STEPS)))
    assert len(set(epoch)) == len(epoch) == STEPS * 32
    assert epoch != sorted(epoch)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    ("batch_size", "batches", "steps"),
    [
        (300, 1, 3),  # a hundred rows fill no batch
        (32, 4, 24),  # whole calls of 8 steps, or another host with fewer rows
        (32, 4, 8),  # another host with a quarter of the rows
    ],
)
def test_every_row_is_trained_on_sooner_or_later_wherever_in_its_file_it_is(
    write_examples, count, batch_size, batches, steps
):
    settings = {"window": Window(batch_size=batch_size, batches=batches), "steps_per_epoch": steps}
    epochs = 6 * ROWS // (batch_size * steps) + 6
    found = numbers(training(write_examples(rows=ROWS, files=count), **settings), epochs * steps)
    times = Counter(chain.from_iterable(found))
    assert len(times) >= 0.99 * ROWS
    share = batch_size * steps / ROWS
    last = [times[x] for x in range(ROWS - 60, ROWS)]
    assert abs(sum(last) / len(last) - share * epochs) < 0.2 * share * epochs


def test_files_are_mixed_from_the_first_window_on(files):
    first = chain.from_iterable(numbers(training(files, window=Window(batch_size=32, batches=24)), 4))
    assert {x * 3 // ROWS for x in first} == {0, 1, 2}


def test_epochs_differ_and_the_seed_repeats_them(files):
    first, again, other = (numbers(training(files, seed=seed), 2 * STEPS) for seed in (5, 5, 6))
    assert first == again != other
    assert first[:STEPS] != first[STEPS:]


def test_training_that_goes_on_sees_the_batches_it_would_have_seen(files):
    undisturbed = numbers(training(files), 2 * STEPS + 5)
    for step in (1, 4, 30, STEPS, STEPS + 6):
        assert numbers(training(files, first_step=step), 2 * STEPS + 5 - step) == undisturbed[step:]


def test_training_batches_have_static_shapes_and_their_labels(files):
    batches = training(files)
    assert tuple(batches.element_spec[0]["x"].shape) == (32, 1)
    for features, label in batches.take(3):
        assert label.numpy().tolist() == (2 * features["x"].numpy()).tolist()


@pytest.mark.parametrize(("static", "total"), [(False, ROWS), (True, STEPS * 32)])
def test_evaluation_reads_every_row_or_every_full_batch(files, static, total):
    from slipway.components.trainer.input.stream import eval_batches

    batches = eval_batches(files, FEATURES, targets=targets(), batch_size=32, static=static)
    assert list(chain.from_iterable(numbers(batches))) == list(range(total))


def test_wrong_examples_are_reported_before_training(files):
    from slipway.components.trainer.input.stream import require_examples

    with pytest.raises(ComponentError, match="does not have the transformed features"):
        require_examples(files, (Feature(name="z", dtype="float32"),))


def test_files_in_a_folder_whose_name_has_a_line_end_are_unpacked_too(files, tmp_path):
    from slipway.components.trainer.input.parsing import count_records

    folder = tmp_path / "a\nb"
    folder.mkdir()
    [first, *_] = files
    there = folder / Path(first).name
    there.write_bytes(Path(first).read_bytes())
    assert there.suffix == ".gz"
    labels = [Feature(name="y", dtype="int64")]
    assert count_records([str(there)], labels) == count_records([first], labels)
