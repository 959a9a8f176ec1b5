"""Where a split is held: as `train.input.cache` says, else in memory where it fits."""

from dataclasses import replace

import pytest
from small_job import small_job

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.features import Feature
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.early_stopping import EarlyStoppingSettings
from slipway.components.trainer.settings.input_cache import InputSettings

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

ROWS = 50
CPU = Devices(kind="cpu", backend="tensorflow", words="CPU")


@pytest.fixture
def opened(tmp_path, write_examples, monkeypatch):
    """Opens 50 rows of 8 bytes, with a cache and so much free memory; returns them and the job."""
    from slipway.components.trainer.input import examples

    files = write_examples(rows=ROWS, files=2)

    def call(*, cache, free_bytes=2**30, devices=CPU, batch_size=16):
        monkeypatch.setattr(examples, "available_memory_bytes", lambda: free_bytes)
        job = small_job(
            train_files=tuple(files),
            features=(Feature(name="x", dtype="int64"), Feature(name="y", dtype="int64")),
            model="tiny_model.build_model",
            batch_size=batch_size,
            output_dir=str(tmp_path),
            input=InputSettings(cache=cache),
        )
        return examples.open_examples(job.train_files, job, devices, split="train"), job

    return call


@pytest.mark.parametrize(
    ("cache", "free_bytes", "words"),
    [
        ("auto", 2**30, "50 examples in memory"),
        ("auto", 4 * 8 * ROWS - 4, "50 examples streamed"),  # a quarter of it is less than they take
        ("memory", 2**30, "50 examples in memory"),
        ("file", 0, "50 examples in a file"),
        ("none", 2**30, "50 examples streamed"),
    ],
)
def test_cache_says_where_the_examples_are(opened, tmp_path, cache, free_bytes, words):
    found, _ = opened(cache=cache, free_bytes=free_bytes)
    assert found.words.startswith(words)
    assert (found.count, found.full_batches) == (50, 3)
    assert (tmp_path / "train.rows").exists() == (cache == "file")


def test_hosts_hold_the_examples_in_memory_if_all_of_them_can(opened):
    asked = []

    def least(number, other):
        asked.append(number)
        return min(number, other) if len(asked) < 3 else number  # then it is of full batches

    two = replace(
        CPU,
        hosts=Hosts(index=0, count=2, coordinator="host:1"),
        sum_over_hosts=lambda number: 2 * number,
    )
    for other, words in ((1, "50 examples in memory"), (0, "50 examples streamed")):
        found, _ = opened(
            cache="auto",
            devices=replace(two, min_over_hosts=lambda number, other=other: least(number, other)),
        )
        assert found.words.startswith(words)
    assert asked[:2] == [1, 1]
    with pytest.raises(ComponentError, match="a quarter of the free memory of a host"):
        opened(cache="memory", devices=replace(two, min_over_hosts=lambda _: 0))


def test_order_of_streamed_rows_is_named_by_the_hosts_that_share_the_files(opened):
    two = replace(
        CPU, hosts=Hosts(index=0, count=2, coordinator="host:1"), min_over_hosts=lambda number: number
    )
    assert opened(cache="none")[0].order != opened(cache="none", devices=two)[0].order
    assert opened(cache="file")[0].order == opened(cache="file", devices=two)[0].order


def test_streamed_rows_are_those_of_all_hosts_whose_files_may_differ(opened):
    def two(of_the_other):
        return replace(
            CPU,
            hosts=Hosts(index=0, count=2, coordinator="host:1"),
            min_over_hosts=lambda number: min(number, of_the_other // 8),
            sum_over_hosts=lambda number: number + of_the_other,
        )

    found, _ = opened(cache="none", devices=two(20))
    assert (found.count, found.full_batches) == (found._own + 20, 2)
    with pytest.raises(
        ComponentError, match="one of the 2 hosts has less than its share of a batch, 8, of the"
    ):
        opened(cache="none", devices=two(7))


@pytest.mark.parametrize(("cache", "needed"), [("memory", 8), ("file", 8), ("none", 16)])
def test_devices_evaluate_on_as_many_as_they_are_and_streamed_on_a_whole_batch(opened, cache, needed):
    eight = replace(CPU, replicas=8, strategy=object())
    assert opened(cache=cache, devices=eight)[0].needed == needed
    assert opened(cache=cache)[0].needed == 1


def test_memory_that_does_not_hold_them_is_refused_where_memory_is_asked_for(opened):
    with pytest.raises(ComponentError, match=r"the train examples are more than .* a quarter of the free"):
        opened(cache="memory", free_bytes=8 * ROWS)


@pytest.mark.parametrize(
    ("cache", "free_bytes", "advice"),
    [
        ("auto", 2**30, ""),
        ("none", 2**30, "cache: memory would hold the set in 0 MB"),
        ("auto", 8 * ROWS, "cache: file would hold the set in 0 MB"),
        ("file", 2**30, "cache: memory would hold the set in 0 MB"),
    ],
)
def test_slow_input_is_advised_the_cache_that_would_hold_it(opened, cache, free_bytes, advice):
    from slipway.components.trainer.input.examples import input_advice

    _, job = opened(cache=cache, free_bytes=free_bytes)
    assert input_advice(job, rows=ROWS) == advice


@pytest.mark.parametrize("cache", ["memory", "none"])
@pytest.mark.parametrize(("in_one_call", "first"), [(None, (16,)), (1, (1, 16)), (3, None)])
def test_batches_come_one_by_one_or_in_blocks(opened, cache, in_one_call, first):
    found, _ = opened(cache=cache)
    batches = found.training(steps_per_epoch=3, first_step=0, seed=1, in_one_call=in_one_call)
    expected = first or ((3, 16) if cache == "memory" else (1, 16))
    assert tuple(batches.element_spec[0]["x"].shape) == (*expected, 1)


@pytest.mark.parametrize("cache", ["memory", "none"])
def test_tpu_evaluates_batches_of_one_shape_only(opened, cache):
    tpu = Devices(kind="tpu", backend="jax", words="TPU")
    found, _ = opened(cache=cache, devices=tpu)
    assert [len(label) for _, label in found.evaluation()] == [16, 16, 16]
    found, _ = opened(cache=cache)
    assert [len(label) for _, label in found.evaluation()] == [16, 16, 16, 2]


@pytest.mark.parametrize("cache", ["memory", "file"])
def test_rows_held_out_are_whole_groups(opened, cache):
    from slipway.components.trainer.input.examples import CachedExamples

    found, job = opened(cache=cache)
    job = replace(job, group="g", early_stopping=EarlyStoppingSettings(patience=1, share=0.2))
    parts = [part._rows.numbers for part in CachedExamples(found._rows, job, CPU).held_out()]
    assert [len(numbers) for numbers in parts] == [40, 10]
    assert not set(parts[0] // 5) & set(parts[1] // 5)


@pytest.mark.parametrize("cache", ["memory", "file"])
def test_rows_held_out_must_be_able_to_measure_the_metric(opened, cache):
    from slipway.components.trainer.input.examples import CachedExamples

    found, job = opened(cache=cache)
    job = replace(job, early_stopping=EarlyStoppingSettings(patience=1, share=0.01))
    train, held = CachedExamples(found._rows, job, CPU).held_out()
    assert (train.count, held.count) == (ROWS - 1, 1)
    by_area = replace(job, checkpoint=CheckpointSettings(best_metric="val_auc"))
    with pytest.raises(
        ComponentError, match=r"y is \d+ in each of the 1 rows that train.early_stopping holds"
    ):
        CachedExamples(found._rows, by_area, CPU).held_out()
