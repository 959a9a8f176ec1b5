"""Batches that are on a device before they are asked for: a CPU cut in two, in a process of its own."""

import json
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

PROBE = """
    import json, time
    from slipway.components.large_imports import large_imports

    with large_imports(keep=True):
        import keras
        import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

    from slipway.components.trainer.checkpoint_files import Clock
    from slipway.components.trainer.devices.devices import Devices
    from slipway.components.trainer.devices.with_tensorflow import AHEAD, prefetched
    from slipway.components.trainer.loop.train_function import train_in_blocks
    from slipway.components.trainer.loop.step_time import constant_batch_step_s

    found = {"made": []}

    def made(number):
        found["made"].append(int(number))
        return number

    def block(number):  # whole numbers among the columns, as categories are
        x = tf.fill([4, 8, 3], tf.cast(number, tf.float32) / 20)
        return {"x": x, "code": tf.ones([4, 8, 1], tf.int32)}, tf.ones([4, 8, 1])

    def blocks():
        numbers = tf.data.Dataset.range(20).repeat()
        return numbers.map(lambda number: tf.numpy_function(made, [number], tf.int64)).map(block)

    prefetch = lambda batches: prefetched(batches, device="/cpu:1")
    iterator = iter(prefetch(blocks()))
    (first, _) = next(iterator)
    found["devices"] = sorted({column.device.rpartition("/")[2] for column in first.values()})
    limit = time.monotonic() + 60
    while len(found["made"]) < 1 + AHEAD and time.monotonic() < limit:
        time.sleep(0.01)
    found["made_ahead"] = found["made"][: 1 + AHEAD]
    found["second"] = float(next(iterator)[0]["x"][0, 0, 0])

    def trained(prefetch):
        keras.utils.set_random_seed(1)
        x, code = keras.Input((3,), name="x"), keras.Input((1,), dtype="int32", name="code")
        both = keras.layers.Concatenate()([x, keras.ops.cast(code, "float32")])
        model = keras.Model({"x": x, "code": code}, keras.layers.Dense(1)(both))
        model.compile(optimizer="sgd", loss="mse")
        model.steps_per_execution = 8
        data = prefetch(blocks())
        train_in_blocks(model, data)
        loss = model.fit(data, epochs=2, steps_per_epoch=16, shuffle=False, verbose=0).history["loss"]
        devices = Devices(kind="gpu", backend="tensorflow", words="", prefetch_to_device=prefetch)
        clock = Clock(timed_steps=32, stepping_s=0.1)
        return loss, constant_batch_step_s(model, prefetch(blocks()), clock, devices) > 0

    found["trained"] = [trained(lambda batches: batches), trained(prefetch)]
    print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(project):
    code = textwrap.dedent(PROBE)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_next_batches_are_on_the_device_before_they_are_asked_for(found):
    assert found["devices"] == ["device:CPU:1"]
    assert found["made_ahead"] == [0, 1, 2], "made while only the first was asked for"
    assert found["second"] == pytest.approx(1 / 20)


def test_training_and_its_probe_over_such_batches_do_what_they_do_without(found):
    assert found["trained"][0] == found["trained"][1]
    assert found["trained"][1][1], "the probe timed steps"
