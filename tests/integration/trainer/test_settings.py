"""The effect of a job's settings in the training process, and that process's requirements."""

import socket
import textwrap

import numpy as np
import pytest

from slipway.components import python_process
from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.machine import cpu_has_bfloat16
from slipway.components.trainer.features import Feature
from slipway.components.trainer.settings.compute import ComputeSettings
from slipway.components.trainer.settings.input_cache import InputSettings
from slipway.components.trainer.settings.learning_rate import LearningRateSettings
from slipway.components.trainer.settings.step import StepSettings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("forked"),
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

NOT_NEEDED = (
    "apache_beam",
    "ml_metadata",
    "pipeline",
    "pydantic",
    "tensorboard",
    "tensorflow_data_validation",
    "tensorflow_metadata",
    "tensorflow_model_analysis",
    "tensorflow_transform",
    "tfx",
    "tfx_bsl",
    "yaml",
)


def notes(training):
    return [event["message"] for event in training["events"] if event["event"] == "note"]


def same(one, other):
    assert one.keys() == other.keys()
    return all(np.array_equal(values, other[name]) for name, values in one.items())


def test_training_process_imports_keras_its_backend_and_numpy_but_nothing_of_the_pipeline(
    train, tmp_path, monkeypatch
):
    monkeypatch.setattr(python_process, "fork_channel", None)  # started afresh, with imports of its own
    with (tmp_path / "tiny_model.py").open("a") as module:
        module.write(
            "\nimport atexit, sys\nfrom pathlib import Path\n"
            "names = Path(__file__).with_name('imported')\n"
            "atexit.register(lambda: names.write_text('\\n'.join(sys.modules)))\n"
        )
    train(epochs=1)
    imported = (tmp_path / "imported").read_text().splitlines()
    assert {"keras", "numpy", "tensorflow"} <= set(imported)
    below = tuple(f"{name}." for name in NOT_NEEDED)
    found = [name for name in imported if name in NOT_NEEDED or name.startswith(below)]
    assert found == []


def test_auto_trains_on_the_cpu_where_the_tpu_of_the_environment_is_dead_and_says_so(train):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # nobody listens
        address = f"127.0.0.1:{held.getsockname()[1]}"
        trained = train(epochs=1, environment={"COLAB_TPU_ADDR": address})
        assert trained["result"]["devices"].startswith("CPU, ")
        [note] = notes(trained)
        assert note.startswith(f"TPU not used: no TPU answers at {address}: ")
        with pytest.raises(ComponentError, match=f"no TPU answers at {address}"):
            train(compute=ComputeSettings(device="tpu"), environment={"COLAB_TPU_ADDR": address})


@pytest.mark.parametrize("cache", ["memory", "file", "none"])
@pytest.mark.parametrize("column", ["id", "label", "weight"])
def test_whole_number_beyond_32_bits_is_refused_wherever_the_rows_are(train, tmp_path, cache, column):
    import tensorflow as tf

    file = str(tmp_path / "wide")
    with tf.io.TFRecordWriter(file) as writer:
        for row in range(2000):
            example = tf.train.Example()
            example.features.feature["x"].float_list.value.extend([1.0, 2.0])
            for name in ("id", "label", "weight"):
                value = 3_000_000_000 if (name, row) == (column, 1500) else 1
                example.features.feature[name].int64_list.value.append(value)
            writer.write(example.SerializeToString())
    features = [Feature(name="x", dtype="float32", shape=(2,))]
    features += [Feature(name=name, dtype="int64") for name in ("id", "label", "weight")]
    refused = f"training failed: the transformed column {column} holds 3000000000, beyond 32 bits"
    with pytest.raises(ComponentError, match=refused) as caught:
        train(
            train_files=(file,),
            eval_files=(),
            features=tuple(features),
            label="label",
            weight="weight",
            input=InputSettings(cache=cache),
        )
    assert "preprocessing_fn" in caught.value.hint


def test_rows_in_memory_in_a_file_or_streamed_are_trained_on_and_the_first_two_to_the_same_bits(train):
    memory, file, stream = (
        train(input=InputSettings(cache=cache, shuffle_rows=100)) for cache in ("memory", "file", "none")
    )
    assert [each["result"]["input"].partition(",")[0] for each in (memory, file, stream)] == [
        "240 examples in memory",
        "240 examples in a file",
        "240 examples streamed",
    ]
    assert same(memory["weights"], file["weights"])
    assert not same(memory["weights"], stream["weights"])  # another order
    for each in (memory, file, stream):
        assert each["history"][-1]["val_loss"] < each["history"][0]["val_loss"]


def test_learning_rate_follows_the_examples_of_an_update_over_accumulated_steps(train):
    plain = train()
    scaled = train(
        learning_rate=LearningRateSettings(scale="linear", base_batch_size=12, warmup_steps=2),
        step=StepSettings(accumulate_steps=2),
    )
    assert notes(plain) == []
    assert notes(scaled) == ["learning rate times 8 for 96 examples an update"]
    assert len(scaled["weights"]) > len(plain["weights"])  # the optimizer keeps what is added up
    assert scaled["history"][-1]["loss"] < scaled["history"][0]["loss"]


def test_mixed_precision_keeps_float32_weights_and_a_slow_device_is_reported(train):
    plain, mixed = train(), train(step=StepSettings(precision="mixed_bfloat16"))
    assert {values.dtype.name for values in mixed["weights"].values()} == {
        values.dtype.name for values in plain["weights"].values()
    }
    assert mixed["history"] != plain["history"]
    assert mixed["history"][-1]["loss"] == pytest.approx(plain["history"][-1]["loss"], rel=0.1)
    told = "this device computes bfloat16 more slowly than float32"
    assert notes(mixed) == ([] if cpu_has_bfloat16() else [told])


@pytest.mark.external  # left to CI: a process of eight devices for a rule that a unit test holds
def test_eval_split_that_the_devices_cannot_divide_is_refused_before_training(train, job, tmp_path):
    """How many they need where: tests/unit/components/trainer/input/test_examples.py."""
    import tensorflow as tf

    few = str(tmp_path / "few.gz")
    with tf.io.TFRecordWriter(few, "GZIP") as writer:
        for record in tf.data.TFRecordDataset(job.eval_files[0], "GZIP").take(5):
            writer.write(record.numpy())
    changes = {"eval_files": (few,), "input": InputSettings(cache="none"), "epochs": 1}
    with pytest.raises(ComponentError, match="has 5 examples, and these devices evaluate on at least 48"):
        train(compute=ComputeSettings(device="cpu", cpu_devices=8), **changes)
    assert "val_loss" in train(**changes)["history"][0]


REMEMBERING = """
    import keras

    class Last(keras.layers.Layer):
        def build(self, shape):
            self.rows = self.add_weight(shape=(), initializer="zeros", trainable=False, name="rows")

        def call(self, values):
            self.rows.assign(keras.ops.cast(keras.ops.shape(values)[0], "float32"))
            return values

    def build_model(features, hyperparameters):
        inputs = {"x": keras.Input((16,), name="x")}
        model = keras.Model(inputs, keras.layers.Dense(1)(Last()(inputs["x"])))
        model.compile(loss="mse")
        return model
"""


def test_the_rows_made_up_for_the_export_leave_nothing_in_the_weights(train, tmp_path):
    (tmp_path / "remembering.py").write_text(textwrap.dedent(REMEMBERING))
    trained = train(model="remembering.build_model", epochs=1)
    assert trained["result"]["answers"]
    [rows] = [value for name, value in trained["weights"].items() if "last" in name]
    assert rows == 48
