"""Scalars for TensorBoard: every hundred steps and every epoch, numbered over the whole training."""

import pytest

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

EPOCH_STEPS = 250


@pytest.fixture
def scalars(tmp_path):
    """The scalars by their step, after two epochs of calls of so many steps, from a first step on."""

    def watched(*, call=1, first_step=0):
        import tensorflow as tf

        from slipway.components.trainer.loop.callback import FitStart
        from slipway.components.trainer.loop.tensorboard import Scalars

        folder = tmp_path / f"{call}-{first_step}"
        start = FitStart(steps_per_epoch=EPOCH_STEPS, first_step=first_step)
        callback = Scalars(str(folder), start, batch_size=32)
        for epoch in range(first_step // EPOCH_STEPS, 2):
            callback.on_epoch_begin(epoch)
            begin = max(first_step - epoch * EPOCH_STEPS, 0)
            for batch in range(call - 1, EPOCH_STEPS - begin, call):
                callback.on_train_batch_end(batch, {"loss": epoch + (begin + batch + 1) / 1000})
            callback.on_epoch_end(epoch, {"loss": 0.5, "val_auc": 0.9 + epoch / 100})
        found = {}
        for file in folder.iterdir():
            for record in tf.data.TFRecordDataset(str(file)):
                event = tf.compat.v1.Event.FromString(record.numpy())
                if values := {each.tag: each.simple_value for each in event.summary.value}:
                    found.setdefault(event.step, {}).update(values)
        return found

    return watched


def with_loss(found):
    return {step: values["loss"] for step, values in sorted(found.items()) if "loss" in values}


def test_loss_of_the_call_before_is_written_every_hundred_steps_of_the_training(scalars):
    expected = {100: 0.099, 200: 0.199, 300: 1.049, 400: 1.149, 500: 1.249}
    assert with_loss(scalars()) == pytest.approx(expected)


def test_where_several_steps_are_one_call_the_next_call_is_written(scalars):
    assert list(with_loss(scalars(call=25))) == [100, 200, 300, 400, 500]
    assert list(with_loss(scalars(call=50))) == [100, 200, 300, 400, 500]


def test_training_that_goes_on_counts_from_its_first_step(scalars):
    assert list(with_loss(scalars(first_step=310))) == [400, 500]


def test_speed_processor_memory_and_disk_stand_beside_the_loss(scalars):
    watched = scalars()[200]
    assert watched["speed/step_ms"] > 0
    assert watched["speed/examples_per_s"] == pytest.approx(32e3 / watched["speed/step_ms"], rel=1e-4)
    assert watched["memory/resident_bytes"] > 2**20
    assert {"machine/cpu_cores", "machine/read_bytes_per_s"} <= watched.keys()


def test_metrics_of_an_epoch_stand_at_its_last_step(scalars):
    found = scalars()
    assert found[EPOCH_STEPS]["epoch/val_auc"] == pytest.approx(0.9)
    assert found[2 * EPOCH_STEPS]["epoch/val_auc"] == pytest.approx(0.91)
