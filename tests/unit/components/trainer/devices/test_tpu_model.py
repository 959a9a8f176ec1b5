"""Operations that no TPU supports are refused with their layer; the included models pass."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


def strings(keras):
    given = keras.Input((1,), dtype="string", name="company")
    codes = keras.layers.StringLookup(vocabulary=["a", "b"], name="lookup")(given)
    return keras.Model(given, codes)


def unknown_length(keras):
    given = keras.Input((None, 4), name="words")
    return keras.Model(given, keras.layers.LSTM(3, name="reader")(given))


def python_inside(keras):
    import tensorflow as tf

    class Printed(keras.layers.Layer):
        def call(self, values):
            doubled = tf.py_function(lambda each: 2 * each, [values], tf.float32)
            return tf.ensure_shape(doubled, values.shape)

    given = keras.Input((4,))
    hidden = keras.layers.Dense(3, name="before")(given)
    return keras.Model(given, keras.layers.Dense(1, name="after")(Printed(name="python")(hidden)))


def counted_categories(keras):
    given = keras.Input((1,), dtype="int32")
    return keras.Model(given, keras.layers.CategoryEncoding(5, output_mode="count", name="counted")(given))


def shape_by_value(keras):
    import tensorflow as tf

    class Longer(keras.layers.Layer):
        def call(self, values):
            length = tf.cast(tf.reduce_max(values), tf.int32)
            return tf.ensure_shape(values + tf.reduce_sum(tf.zeros([length])), values.shape)

    given = keras.Input((4,))
    return keras.Model(given, keras.layers.Dense(1)(Longer(name="longer")(given)))


@pytest.mark.parametrize(
    ("build", "layer", "rule"),
    [
        (strings, r"'company' \(InputLayer\)", "strings"),
        (unknown_length, r"'words' \(InputLayer\)", r"only the batch may be unknown in .*None, None, 4"),
        (python_inside, r"'python' \(Printed\)", "XLA does not compile it"),
        (counted_categories, r"'counted' \(CategoryEncoding\)", "XLA does not compile it"),
        (shape_by_value, r"'longer' \(Longer\)", "XLA does not compile it"),
    ],
)
def test_layer_that_no_tpu_computes_is_named(build, layer, rule):
    import keras

    from slipway.components.trainer.devices.tpu_model import require_tpu_model

    with pytest.raises(ComponentError, match=f"a TPU cannot compute the layer {layer}: .*{rule}"):
        require_tpu_model(build(keras), batch_size=8)


def test_model_of_the_taxi_workload_passes():
    from slipway.components.trainer.devices.tpu_model import require_tpu_model
    from workloads.taxi.model import build_model

    features = {
        "fare": Feature(name="fare", dtype="float32"),
        "hour": Feature(name="hour", dtype="int64", categories=24),
    }
    require_tpu_model(build_model(features, {}), batch_size=8)
