"""Models for the preflight: each wrong in one way, or right in a way that looks wrong."""

import atexit
import sys

import keras
from keras import layers, ops

from slipway.components.trainer.features import Feature

WIDTH = 256


def _finish(inputs, hidden, *, jit_compile="auto"):
    output = layers.Dense(1, dtype="float32", name="answer")(hidden)
    model = keras.Model(inputs, output)
    model.compile(optimizer="adam", loss="mse", jit_compile=jit_compile)
    return model


def _input(features: dict[str, Feature], **options):
    return {"x": keras.Input((WIDTH,), name="x", **options)}


def fine(features, hyperparameters):
    inputs = _input(features)
    return _finish(inputs, layers.Dense(512, activation="relu", name="wide")(inputs["x"]))


def talking(features, hyperparameters):
    """Prints in all that it does, up to the end of its process."""

    def said(values):
        print('{"answer": "tracing"}', end="")
        return values

    print("building")
    atexit.register(print, "the end")
    sys.stdout = sys.stderr
    inputs = _input(features)
    return _finish(inputs, layers.Lambda(said, output_shape=(WIDTH,))(inputs["x"]))


def leaving(features, hyperparameters):
    sys.exit("there is no GPU")


def badly_padded(features, hyperparameters):
    inputs = _input(features)
    return _finish(inputs, layers.Dense(130, activation="relu", name="odd")(inputs["x"]))


def top_k(features, hyperparameters):
    inputs = _input(features)
    best = layers.Lambda(lambda x: ops.top_k(x, 128)[0], output_shape=(128,), name="best")(inputs["x"])
    return _finish(inputs, layers.Dense(256, name="wide")(best))


def embedding(features, hyperparameters):
    inputs = {"x": keras.Input((WIDTH,), name="x", dtype="int32")}
    hidden = layers.GlobalAveragePooling1D()(layers.Embedding(10_000, 32, name="codes")(inputs["x"]))
    return _finish(inputs, layers.Dense(256, name="wide")(hidden))


def embedding_of_any_size(features, hyperparameters):
    inputs = {"x": keras.Input((WIDTH,), name="x", dtype="int32")}
    table = layers.Embedding(hyperparameters["rows"], hyperparameters["width"], name="codes")
    return _finish(inputs, layers.GlobalAveragePooling1D()(table(inputs["x"])))


def recurrent(features, hyperparameters):
    inputs = _input(features)
    rows = layers.Reshape((32, 8))(inputs["x"])
    return _finish(inputs, layers.LSTM(128, unroll=hyperparameters["unroll"], name="turning")(rows))


def unknown_shape(features, hyperparameters):
    inputs = {"x": keras.Input((None,), name="x")}
    hidden = layers.Reshape((-1, 1), name="column")(inputs["x"])
    return _finish(inputs, layers.GlobalAveragePooling1D(name="mean")(hidden))


def text_input(features, hyperparameters):
    inputs = {"x": keras.Input((1,), name="x", dtype="string")}
    codes = layers.StringLookup(vocabulary=["a", "b"], name="lookup")(inputs["x"])
    return _finish(inputs, layers.Dense(256)(ops.cast(codes, "float32")))


@keras.saving.register_keras_serializable("preflight")
class Doubled(layers.Layer):
    """Leaves the compiled program for NumPy."""

    def call(self, x):
        import jax

        return jax.pure_callback(lambda value: value * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    def compute_output_shape(self, shape):
        return shape


class Told(layers.Layer):
    """Prints in the middle of a step."""

    def call(self, x):
        import jax

        jax.debug.print("mean {}", x.mean())
        return x


class Numpy(layers.Layer):
    """Uses NumPy on a value that is not there yet."""

    def call(self, x):
        import numpy as np

        return x * np.asarray(x).mean()

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, x.dtype)


class Chosen(layers.Layer):
    """Has a shape that depends on values."""

    def call(self, x):
        import jax.numpy as jnp

        return jnp.zeros_like(x) + x[x > 0].sum()

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, x.dtype)


def callback(features, hyperparameters):
    inputs = _input(features)
    constant = layers.Lambda(ops.stop_gradient, name="constant")(inputs["x"])
    return _finish(inputs, layers.Dense(256, name="wide")(Doubled(name="numpy_double")(constant)))


def printing(features, hyperparameters):
    inputs = _input(features)
    return _finish(inputs, layers.Dense(256, name="wide")(Told(name="print")(inputs["x"])))


def numpy_inside(features, hyperparameters):
    inputs = _input(features)
    return _finish(inputs, layers.Dense(256, name="wide")(Numpy(name="numpy_mean")(inputs["x"])))


def shape_by_value(features, hyperparameters):
    inputs = _input(features)
    return _finish(inputs, layers.Dense(256, name="wide")(Chosen(name="chosen")(inputs["x"])))


def wide_numbers(features, hyperparameters):
    inputs = _input(features)
    return _finish(inputs, layers.Dense(256, dtype="float64", name="double")(inputs["x"]))


@keras.saving.register_keras_serializable("preflight")
class TensorFlowInside(layers.Layer):
    """Leaves Keras for TensorFlow, as a py_function does."""

    def call(self, x):
        import tensorflow as tf

        return tf.py_function(lambda value: value * 2, [x], tf.float32)

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, x.dtype)


class Branching(layers.Layer):
    """Asks Python to decide by a value that is not there yet."""

    def call(self, x):
        return x if x.sum() > 0 else -x

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, x.dtype)


class Reported(layers.Layer):
    """Sends every batch to the host."""

    def call(self, x):
        from jax.experimental import io_callback

        io_callback(lambda value: None, None, x.sum())
        return x


def tensorflow_inside(features, hyperparameters):
    inputs = _input(features)
    return _finish(inputs, layers.Dense(256, name="wide")(TensorFlowInside(name="py_function")(inputs["x"])))


def branching(features, hyperparameters):
    inputs = _input(features)
    return _finish(inputs, layers.Dense(256, name="wide")(Branching(name="if_positive")(inputs["x"])))


def reporting(features, hyperparameters):
    inputs = _input(features)
    return _finish(inputs, layers.Dense(256, name="wide")(Reported(name="report")(inputs["x"])))


def huge_embedding(features, hyperparameters):
    """4 GiB of weights, and as much of their gradients: more than a device of v2-8 has."""
    inputs = {"x": keras.Input((WIDTH,), name="x", dtype="int32")}
    codes = layers.Embedding(2**20, 1024, embeddings_initializer="zeros", name="codes")(inputs["x"])
    model = _finish(inputs, layers.GlobalAveragePooling1D()(codes))
    model.compile(optimizer="sgd", loss="mse")
    return model


def too_big(features, hyperparameters):
    inputs = _input(features)
    hidden = layers.Reshape((WIDTH, 1))(inputs["x"])
    hidden = layers.Dense(128, name="wide", activation="gelu")(hidden)
    for _ in range(2):
        hidden = layers.Dense(128, activation="gelu")(hidden)
    return _finish(inputs, layers.GlobalAveragePooling1D()(hidden))


def masked(features, hyperparameters):
    inputs = _input(features)
    kept = layers.Lambda(lambda x: ops.where(x > 0, x, 0.0), name="kept")(inputs["x"])
    return _finish(inputs, layers.Dense(256, name="wide")(kept))


class OfOneBatch(layers.Layer):
    """Takes batches of 512 only."""

    def call(self, values):
        return ops.reshape(ops.reshape(values, (512, 2, -1)), (512, -1))

    def compute_output_spec(self, values):
        return keras.KerasTensor(values.shape, values.dtype)


def fixed_batch(features, hyperparameters):
    inputs = _input(features)
    return _finish(inputs, layers.Dense(256, name="wide")(OfOneBatch()(inputs["x"])))


def convolution(features, hyperparameters):
    inputs = _input(features)
    image = layers.Reshape((16, 16, 1))(inputs["x"])
    hidden = layers.Conv2D(128, 3, padding="same", name="first")(image)
    hidden = layers.BatchNormalization()(layers.Conv2D(128, 3, padding="same", name="second")(hidden))
    return _finish(inputs, layers.GlobalAveragePooling2D()(hidden))


def attention(features, hyperparameters):
    inputs = _input(features)
    sequence = layers.Reshape((16, 16))(inputs["x"])
    hidden = layers.Dense(128, name="wide")(sequence)
    hidden = layers.MultiHeadAttention(2, 64, name="attention")(hidden, hidden)
    return _finish(inputs, layers.GlobalAveragePooling1D()(layers.LayerNormalization()(hidden)))


def wide_activations(features, hyperparameters):
    """Little to compile and much to hold: some 65,536 values of two bytes for each example."""
    inputs = _input(features)
    return _finish(inputs, layers.Dense(2**16, activation="gelu", name="wide")(inputs["x"]))


def eight_dense(features, hyperparameters):
    """As wide as its input and its label, so that weights and activations are easily counted."""
    inputs = {"x": keras.Input((2048,), name="x")}
    hidden = inputs["x"]
    for _ in range(8):
        hidden = layers.Dense(2048)(hidden)
    model = keras.Model(inputs, hidden)
    model.compile(optimizer="adam", loss="mse")
    return model


def resnet50(features, hyperparameters):
    inputs = {"x": keras.Input(features["x"].shape, name="x")}
    application = keras.applications.ResNet50(
        weights=None,
        classes=hyperparameters["classes"],
        classifier_activation=None,
        input_tensor=inputs["x"],
    )
    return _with_momentum(keras.Model(inputs, application.output))


def short_resnet(features, hyperparameters):
    """Four blocks as Keras' own ResNet50 has them, each kind; 8,966,912 numbers below its top.

    None has 64 filters, of which ResNet50 has so few that their padding is not worth telling.
    """
    from keras.src.applications import resnet

    def blocks(x):
        x = resnet.stack_residual_blocks_v1(x, 128, 1, stride1=1, name="conv2")
        x = resnet.stack_residual_blocks_v1(x, 256, 2, name="conv3")
        return resnet.stack_residual_blocks_v1(x, 512, 1, name="conv4")

    inputs = {"x": keras.Input(features["x"].shape, name="x")}
    application = resnet.ResNet(
        blocks,
        preact=False,
        use_bias=True,
        weights=None,
        classes=hyperparameters["classes"],
        classifier_activation=None,
        input_tensor=inputs["x"],
        weights_name="short_resnet",
    )
    return _with_momentum(keras.Model(inputs, application.output))


def _with_momentum(model):
    momentum = keras.optimizers.SGD(0.1, momentum=0.9)
    model.compile(optimizer=momentum, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


class Indexed(keras.Model):
    """Takes the label for an index as it is; a training gives it as a float."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return -ops.mean(ops.log(ops.take_along_axis(y_pred, y, axis=-1)))


def label_as_index(features, hyperparameters):
    inputs = _input(features)
    answers = layers.Dense(128, activation="softmax", dtype="float32", name="answer")(inputs["x"])
    model = Indexed(inputs, answers)
    model.compile(optimizer="adam")
    return model
