"""Models with what is right to say of them before a training on a TPU; `benchmarks/preflight_suite.py` asks.

`x` is the input and `y` the label. `CASES` has what each function is about: the rules that must be found, and
no others (none: nothing may be), and words of what the findings must say. What mends them is in
mended_models.py.
"""

import functools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import keras
import numpy as np
from keras import layers, ops


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question and its correct answer.

    Attributes:
        model: dotted path of the function that builds it.
        rules: that must be found, all and no others; "refused": the model is refused before; (): nothing may
            be found.
        says: words of the message of one of these findings.
        remedy: words of the remedy of each of them, or by rule; "" where the model is refused without one.
        x: shape of the input.
        dtype: of the input.
        y: shape of the label.
        batch_size: examples.
        backend: `train.backend`.
        slice: one of `benchmarks.preflight_suite.SLICES`.
        needs_compiler: whether tracing alone cannot find it.
        settings: other fields of the question.
        training: other facts of the training.
        mends: the name of the model with a fault that this one is, with what a remedy says done to it.
        by: words of that remedy.
    """

    model: str
    rules: tuple[str, ...] = ()
    says: str = ""
    remedy: str | dict[str, str] = ""
    x: tuple[int, ...] = (256,)
    dtype: str = "float32"
    y: tuple[int, ...] = (1,)
    batch_size: int = 1024
    backend: str = "jax"
    slice: str = "v5e-1"
    needs_compiler: bool = False
    settings: dict = field(default_factory=dict)
    training: dict = field(default_factory=dict)
    mends: str = ""
    by: str = ""


CASES: dict[str, Case] = {}
CODES = {"dtype": "int64", "x": (16,)}
WORDS = {"x": (32, 64), "batch_size": 128}
ON_EIGHT = {"slice": "v5e-8"}
ERROR = "does_not_compile"


def right(*rules: str, says: str = "", remedy: str | dict[str, str] = "", **asked) -> Callable:
    """Says what is right of the model that the function builds."""

    assert remedy or rules in ((), ("refused",))

    def keep(build: Callable) -> Callable:
        CASES[build.__name__] = Case(model=dotted(build), rules=rules, says=says, remedy=remedy, **asked)
        return build

    return keep


def dotted(build: Callable) -> str:
    return f"{build.__module__}.{build.__name__}"


def given(features, dtype="float32"):
    return keras.Input(features["x"].shape, name="x", dtype=dtype)


def answered(x, hidden, *, units=1, loss="mse", optimizer="adam", activation=None, metrics=(), **options):
    answer = layers.Dense(units, dtype="float32", activation=activation, name="answer")(hidden)
    model = keras.Model({"x": x}, answer)
    model.compile(optimizer=optimizer, loss=loss, metrics=list(metrics), **options)
    return model


def through(features, call, **options):
    """A model with a layer `culprit` that computes `call` and keeps the shape."""

    class Own(layers.Layer):
        def call(self, values):
            return call(values)

        def compute_output_spec(self, values):
            return keras.KerasTensor(values.shape, values.dtype)

    x = given(features)
    hidden = layers.Dense(256, activation="relu", name="wide")(x)
    return answered(x, Own(name="culprit")(hidden), **options)


# ------------------------------------------------------------------------- what no compiler takes
@right(ERROR, says="'culprit' (Own), judged_models.py", remedy="keras.ops instead of tf")
def tensorflow_in_a_layer(features, _):
    import tensorflow as tf

    return through(features, lambda values: values + tf.reduce_sum(tf.unique(tf.reshape(values, [-1]))[0]))


@right(ERROR, says="TensorFlow is called", remedy="keras.ops instead of tf")
def tensorflow_in_a_lambda(features, _):
    import tensorflow as tf

    x = given(features)
    return answered(x, layers.Lambda(tf.square, output_shape=(256,), name="culprit")(x))


@right(ERROR, says="computes on the host", remedy="compute it in preprocessing_fn", backend="tensorflow")
def numpy_through_tensorflow(features, _):
    import tensorflow as tf

    return through(features, lambda values: tf.numpy_function(np.tanh, [values], tf.float32))


@right(ERROR, says="'culprit' (Own), judged_models.py, line", remedy="compute it in preprocessing_fn")
def numpy_through_tensorflow_in_jax(features, _):
    return numpy_through_tensorflow(features, _)


@right(ERROR, says="computes on the host", remedy="compute it in preprocessing_fn")
def text_of_tensorflow(features, _):
    import tensorflow as tf

    return through(features, lambda values: tf.strings.to_number(tf.strings.as_string(values)))


def tensorflows_loss(label, answer):
    import tensorflow as tf

    return tf.reduce_mean(tf.math.squared_difference(label, answer), axis=-1)


@right(ERROR, says="the loss 'tensorflows_loss', judged_models.py", remedy="keras.ops instead of tf")
def tensorflow_in_the_loss(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), loss=tensorflows_loss)


@right("backend", says="is not known. The loss", backend="tensorflow", remedy="keras.ops instead of tf")
def tensorflow_in_the_loss_that_tensorflow_trains(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), loss=tensorflows_loss)


@right(ERROR, says="the loss 'lambda'", remedy="keras.ops instead of numpy")
def numpy_in_the_loss(features, _):
    x = given(features)
    return answered(x, x, loss=lambda label, answer: np.mean((np.asarray(label) - np.asarray(answer)) ** 2))


def numpys_metric(label, answer):
    return np.abs(np.asarray(label) - np.asarray(answer))


@right(ERROR, says="the metric 'numpys_metric', judged_models.py", remedy="keras.ops instead of numpy")
def numpy_in_a_metric(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), metrics=[numpys_metric])


@right(ERROR, says="Python wants a value", remedy="ops.cond")
def a_number_of_python(features, _):
    return through(features, lambda values: values * float(ops.mean(values)))


@right(ERROR, says="NumPy wants a value", remedy="keras.ops instead of numpy")
def an_array_of_a_tensor(features, _):
    return through(features, lambda values: values * values.numpy().mean())


@right(ERROR, says="is changed in place", remedy="ops.slice_update")
def a_tensor_changed_in_place(features, _):
    def first_is_zero(values):
        values[0] = 0
        return values

    return through(features, first_is_zero)


@right(ERROR, says="without a seed that changes", remedy="SeedGenerator")
def noise_without_a_seed(features, _):
    return through(features, lambda values: values + keras.random.normal((256,), dtype=values.dtype))


@right(ERROR, says="judged_models.py, line", remedy="on any CPU")
def an_axis_that_is_not_there(features, _):
    return through(features, lambda values: ops.sum(values, axis=7))


@right(ERROR, says="'culprit' (MultiHeadAttention), judged_models.py, line", remedy="positions and values")
def attention_over_vectors(features, _):
    x = given(features)
    return answered(x, layers.MultiHeadAttention(2, 128, name="culprit")(x, x))


class Attending(keras.Model):
    """Attends over vectors, and is built by its first batch."""

    def __init__(self):
        super().__init__()
        self.attention = layers.MultiHeadAttention(2, 128, name="culprit")
        self.answer = layers.Dense(1, dtype="float32")

    def call(self, inputs):
        return self.answer(self.attention(inputs["x"], inputs["x"]))


@right(ERROR, says="'culprit' (MultiHeadAttention), judged_models.py, line", remedy="positions and values")
def attention_over_vectors_that_is_not_built(features, _):
    model = Attending()
    model.compile("adam", "mse")
    return model


@right(ERROR, says="the shapes (1024, 2, 16, 16) and (1, 1, 3, 5) do not", remedy="ops.expand_dims")
def attention_with_a_mask_of_another_shape(features, _):
    x = given(features)
    rows = layers.Reshape((16, 16))(x)
    seen = layers.MultiHeadAttention(2, 128)(rows, rows, attention_mask=ops.ones((3, 5)))
    return answered(x, layers.Flatten()(seen))


@right(ERROR, says="two equal sizes, and has 256 and 3", remedy="as wide as the other")
def sizes_that_do_not_go_together(features, _):
    return through(features, lambda values: ops.matmul(values, ops.ones((3, 256), values.dtype)))


@right(ERROR, says="Python wants a value", remedy="ops.cond")
def a_while_of_python(features, _):
    def halved(values):
        while ops.sum(values) > 1:
            values = values / 2
        return values

    return through(features, halved)


@right("backend", says="TensorFlow may take: whether", remedy="ops.cond", backend="tensorflow")
def a_while_of_python_that_tensorflow_trains(features, _):
    return a_while_of_python(features, _)


@right(ERROR, says="judged_models.py, line", remedy="ops.fori_loop with a fixed number of turns")
def a_loop_without_a_gradient(features, _):
    def halved(values):
        return ops.while_loop(lambda each: ops.sum(each) > 1, lambda each: (each / 2,), (values,))[0]

    return through(features, halved)


@right()
def a_loop_of_fixed_turns(features, _):
    def halved(values):
        return ops.fori_loop(0, 9, lambda _, each: ops.where(ops.sum(each) > 1, each / 2, each), values)

    return through(features, halved)


@right(ERROR, says="the shape of a result depends on values", remedy="a fixed size")
def a_boolean_index(features, _):
    return through(features, lambda values: values + ops.sum(values[values > 0]))


@right(ERROR, says="the shape of a result depends on values", remedy="a fixed size")
def distinct_values(features, _):
    return through(features, lambda values: values + ops.size(ops.unique(ops.reshape(values, (-1,)))))


@right(ERROR, says="the shape of a result depends on values", remedy="a fixed size")
def a_shape_by_value(features, _):
    return through(features, lambda values: values + ops.zeros((ops.cast(ops.sum(values), "int32"), 256))[0])


@right(ERROR, says="the shape of a result depends on values", remedy="a fixed size")
def places_that_are_not_zero(features, _):
    return through(
        features, lambda values: values + ops.cast(ops.sum(ops.nonzero(values > 1)[1]), values.dtype)
    )


@right(ERROR, says="'culprit' (Hashing), judged_models.py, line", remedy="tft.hash_strings", **CODES)
def codes_hashed_in_the_model(features, _):
    x = given(features, "int64")
    codes = layers.Hashing(500, name="culprit")(x)
    return answered(x, layers.Flatten()(layers.Embedding(500, 128)(codes)))


@right(ERROR, says="'culprit' (Hashing)", remedy="tft.hash_strings", backend="tensorflow", **CODES)
def codes_hashed_in_a_model_that_tensorflow_trains(features, _):
    return codes_hashed_in_the_model(features, _)


@right(ERROR, says="'culprit' (HashedCrossing)", remedy="preprocessing_fn", dtype="int64", x=(2,))
def codes_crossed_in_the_model(features, _):
    x = given(features, "int64")
    crossed = layers.HashedCrossing(500, output_mode="one_hot", name="culprit")
    return answered(x, crossed((x[:, :1], x[:, 1:])))


@right(ERROR, says="'culprit' (IntegerLookup)", remedy="tft.compute_and_apply_vocabulary", **CODES)
def codes_looked_up_in_the_model(features, _):
    x = given(features, "int64")
    known = layers.IntegerLookup(vocabulary=[3, 5, 8], name="culprit")(x)
    return answered(x, layers.Flatten()(layers.Embedding(4, 128)(known)))


@right(ERROR, says="it works on strings", remedy="integers in preprocessing_fn", x=(1,))
def text_split_in_the_model(features, _):
    x = given(features, "string")
    split = layers.TextVectorization(vocabulary=["good", "bad"], output_sequence_length=12)
    return answered(x, layers.Flatten()(layers.Embedding(4, 128)(split(x))))


@right(ERROR, says="it works on strings", remedy="integers in preprocessing_fn", x=(3,))
def text_looked_up_in_the_model(features, _):
    x = given(features, "string")
    known = layers.StringLookup(vocabulary=["red", "green"])(x)
    return answered(x, layers.Flatten()(layers.Embedding(3, 128)(known)))


class Falling(keras.optimizers.schedules.LearningRateSchedule):
    """Asks in Python how far it is."""

    def __call__(self, step):
        return 1e-3 if step < 100 else 1e-4


@right(ERROR, says="judged_models.py, line", remedy="ops.cond")
def a_schedule_of_python(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), optimizer=keras.optimizers.Adam(Falling()))


class Taped(keras.Model):
    """A train_step as TensorFlow's guide has it."""

    def train_step(self, data):
        import tensorflow as tf

        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        slopes = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(slopes, self.trainable_variables)
        return {"loss": loss}


def _taped(features):
    x = given(features)
    model = Taped({"x": x}, layers.Dense(1, dtype="float32")(x))
    model.compile("adam", "mse")
    return model


@right(ERROR, says="the train_step of Taped (judged_models.py, line", remedy="compute_loss")
def a_train_step_of_tensorflow(features, _):
    return _taped(features)


@right("backend", says="is not known. The train_step of Taped (", remedy="compute_loss", backend="tensorflow")
def a_train_step_of_tensorflow_that_tensorflow_trains(features, _):
    return _taped(features)


def _taped_function(features):
    import tensorflow as tf

    class Compiled(keras.Model):
        train_step = tf.function(Taped.train_step)

    x = given(features)
    model = Compiled({"x": x}, layers.Dense(1, dtype="float32")(x))
    model.compile("adam", "mse")
    return model


@right(ERROR, says="the train_step of Compiled (judged_models.py, line", remedy="compute_loss")
def a_train_step_that_is_a_function_of_tensorflow(features, _):
    return _taped_function(features)


@right("backend", says="The train_step of Compiled (", remedy="compute_loss", backend="tensorflow")
def a_train_step_that_is_a_function_of_tensorflow_that_trains_it(features, _):
    return _taped_function(features)


class OfAny(keras.Model):
    """A train_step that hands on what it is given."""

    def train_step(self, *given):
        return super().train_step(*given)


def _of_any(features):
    x = given(features)
    model = OfAny({"x": x}, layers.Dense(1, dtype="float32")(x))
    model.compile("adam", "mse")
    return model


@right()
def a_train_step_of_any_backend(features, _):
    return _of_any(features)


@right(backend="tensorflow")
def a_train_step_of_any_backend_under_tensorflow(features, _):
    return _of_any(features)


@right(ERROR, says="judged_models.py, line", remedy='optimizer="adam"', settings={"accumulate_steps": 4})
def no_optimizer(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), optimizer=None)


class OfJax(keras.Model):
    """A train_step in JAX's form, which wants the weights of the rows, too."""

    def _loss(self, trained, others, x, y, weights):
        answers, others = self.stateless_call(trained, others, x, training=True)
        return self.compute_loss(x, y, answers, weights), others

    def train_step(self, state, data):
        import jax

        trained, others, optimizer, metrics = state
        x, y, weights = data
        graded = jax.value_and_grad(self._loss, has_aux=True)
        (loss, others), gradients = graded(trained, others, x, y, weights)
        trained, optimizer = self.optimizer.stateless_apply(optimizer, gradients, trained)
        return {"loss": loss}, (trained, others, optimizer, metrics)


def _of_jax(features):
    x = given(features)
    model = OfJax({"x": x}, layers.Dense(1, dtype="float32")(x))
    model.compile("adam", "mse")
    return model


@right(settings={"is_weighted": True})
def a_train_step_of_jax_over_weights(features, _):
    return _of_jax(features)


@right("train_step", says="OfJax", remedy="backend=jax", backend="tensorflow", settings={"is_weighted": True})
def a_train_step_of_jax_under_tensorflow(features, _):
    return _of_jax(features)


class NumpyLoss(keras.Model):
    """A loss of its own that leaves the device."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return np.mean(np.square(np.asarray(y) - np.asarray(y_pred)))


@right(ERROR, says="judged_models.py, line", remedy="keras.ops instead of numpy")
def numpy_in_compute_loss(features, _):
    x = given(features)
    model = NumpyLoss({"x": x}, layers.Dense(1, dtype="float32")(x))
    model.compile("adam")
    return model


@right("refused", says="two_heads_for_one_label (judged_models.py, line", remedy="transform.label as {OUTPUT")
def two_heads_for_one_label(features, _):
    x = given(features)
    model = keras.Model({"x": x}, {name: layers.Dense(1, name=name)(x) for name in ("a", "b")})
    model.compile("adam", {"a": "mse", "b": "mse"})
    return model


@right(ERROR, says="'categorical_crossentropy', judged_models.py, line", remedy="class indices")
def classes_for_a_number(features, _):
    x = given(features)
    return answered(x, x, units=10, loss="categorical_crossentropy", activation="softmax")


@right(ERROR, says="the label has the shape (1024, 4), the model's", remedy="as many units", y=(4,))
def three_classes_for_four(features, _):
    x = given(features)
    return answered(x, x, units=3, loss="categorical_crossentropy", activation="softmax")


@right(ERROR, says="sparse", remedy="dense")
def sparse_input(features, _):
    x = keras.Input(features["x"].shape, name="x", sparse=True)
    return answered(x, layers.Dense(256)(x))


@right(ERROR, says="judged_models.py, line", remedy="padded_lists", **CODES)
def lists_of_any_length(features, _):
    x = keras.Input((None,), name="x", dtype="int32", ragged=True)
    return answered(x, layers.GlobalAveragePooling1D()(layers.Embedding(100, 128)(x)))


@right(ERROR, says="only the batch may be unknown", x=(64, 64), remedy="a fixed size")
def unknown_length(features, _):
    x = keras.Input((None, 64), name="x")
    return answered(x, layers.LSTM(128)(x))


@right("refused", says="the model takes z, which is not a feature; there are: x", remedy="name=FEATURE")
def input_that_is_no_feature(features, _):
    x, z = given(features), keras.Input((4,), name="z")
    model = keras.Model({"x": x, "z": z}, layers.Dense(1)(layers.Concatenate()([x, z])))
    model.compile("adam", "mse")
    return model


@right("refused", says="judged_models.py, line")
def images_that_are_none(features, _):
    x = given(features)
    return answered(x, layers.Conv2D(8, 3)(x))


@right("refused", says="the model takes other, which is not a feature; there are: x", remedy="name=FEATURE")
def sequential_with_an_input_of_another_name(features, _):
    model = keras.Sequential([keras.Input(features["x"].shape, name="other"), layers.Dense(1)])
    model.compile("adam", "mse")
    return model


@right("refused", says="never_compiled (judged_models.py, line", remedy="model.compile")
def never_compiled(features, _):
    x = given(features)
    return keras.Model({"x": x}, layers.Dense(1)(layers.Dense(128)(x)))


class Remembering(layers.Layer):
    """Adds the mean of what it was called with before."""

    def __init__(self, **options):
        super().__init__(**options)
        self.before = []

    def call(self, values):
        mean = ops.mean(self.before[-1]) if self.before else 0.0
        self.before.append(values)
        return values + mean


@right(ERROR, says="'culprit', judged_models.py", remedy="add_weight")
def tensors_kept_in_a_list_and_read(features, _):
    x = given(features)
    return answered(x, Remembering(name="culprit")(layers.Dense(256)(x)))


# ------------------------------------------------------------------------- what trains otherwise than meant
class Counting(layers.Layer):
    """Counts its calls in Python."""

    calls = 0

    def build(self, shape):
        self.calls = 0

    def call(self, values):
        self.calls += 1
        return values / self.calls


@right("side_effect", says="'culprit' (Counting), judged_models.py, line", remedy="add_weight")
def counter_in_python(features, _):
    x = given(features)
    return answered(x, Counting(name="culprit")(layers.Dense(256)(x)))


class Keeping(layers.Layer):
    """Makes its mask in its first call, as a tensor."""

    def __init__(self, **options):
        super().__init__(**options)
        self.last = None

    def call(self, values):
        self.last = values
        return values * 2


@right("leaked_tracer", says="'culprit' (Keeping), judged_models.py, line", remedy="add_weight")
def tensor_kept(features, _):
    x = given(features)
    return answered(x, Keeping(name="culprit")(layers.Dense(256)(x)))


class Masked(layers.Layer):
    """Makes a mask in its first call of a training, which is the only one that is traced."""

    def __init__(self, **options):
        super().__init__(**options)
        self.mask = None

    def call(self, values, training=False):
        if not training:
            return values
        if self.mask is None:
            self.mask = ops.tril(ops.ones((256, 256)))[100]
        return values * ops.cast(self.mask, values.dtype)


@right("leaked_tracer", says="its value mask", remedy="add_weight")
def mask_kept_in_the_only_trace(features, _):
    x = given(features)
    return answered(x, Masked(name="culprit")(layers.Dense(256)(x)))


class MaskedAlways(Masked):
    """Makes it when the model is built, and needs it in the training."""

    def call(self, values):
        return super().call(values, training=True)


@right(ERROR, says="'culprit', judged_models.py", remedy="add_weight")
def mask_kept_from_the_building(features, _):
    x = given(features)
    return answered(x, MaskedAlways(name="culprit")(layers.Dense(256)(x)))


@right("same_noise", says="'culprit', judged_models.py", remedy="SeedGenerator")
def noise_of_a_fixed_seed(features, _):
    return through(features, lambda values: values + keras.random.normal((256,), seed=7))


class Hidden(layers.Layer):
    """Counts its calls in Python under a name as Keras' own have."""

    def __init__(self, **options):
        super().__init__(**options)
        self._calls = 0

    def call(self, values):
        self._calls += 1
        return values / self._calls


@right("side_effect", says="its value _calls", remedy="add_weight")
def counter_under_a_name_of_its_own(features, _):
    x = given(features)
    return answered(x, Hidden(name="culprit")(layers.Dense(256)(x)))


class Fading(keras.losses.Loss):
    """A loss that weighs less in each call."""

    calls = 0

    def call(self, label, answer):
        self.calls += 1
        return ops.mean(ops.square(label - answer), axis=-1) / self.calls


@right("side_effect", says="the loss 'fading' (Fading), judged_models.py, line", remedy="add_weight")
def counter_in_the_loss(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), loss=Fading())


CALLED = {"times": 0}


@right("side_effect", says="the module judged_models, judged_models.py, line", remedy="add_weight")
def counter_in_the_module(features, _):
    def call(values):
        CALLED["times"] += 1
        return values / CALLED["times"]

    return through(features, call)


@right("side_effect", says="the function 'fading', judged_models.py, line", remedy="add_weight")
def counter_around_the_loss(features, _):
    times = [0]

    def fading(label, answer):
        times[0] += 1
        return ops.mean(ops.square(label - answer), axis=-1) / times[0]

    x = given(features)
    return answered(x, layers.Dense(256)(x), loss=fading)


class Looking(keras.metrics.Mean):
    """Keeps what it saw last."""

    def update_state(self, label, answer, sample_weight=None):
        self._seen = answer
        super().update_state(answer - label)


@right("leaked_tracer", says="(Looking), judged_models.py, line", remedy="add_weight")
def tensor_kept_in_a_metric(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), metrics=[Looking(name="looking")])


class Watching(keras.losses.Loss):
    """Keeps the last errors."""

    def call(self, label, answer):
        self.errors = ops.square(label - answer)
        return ops.mean(self.errors, axis=-1)


@right("leaked_tracer", says="the loss 'watching' (Watching), judged_models.py, line", remedy="compute_loss")
def tensor_kept_in_the_loss(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), loss=Watching())


@right("same_noise", says="'culprit' (Own), judged_models.py", remedy="SeedGenerator")
def noise_of_numpy_of_a_fixed_seed(features, _):
    return through(
        features, lambda values: values + np.random.default_rng(7).normal(size=256).astype("float32")
    )


@right("same_noise", says="'culprit' (Own), judged_models.py", remedy="SeedGenerator")
def noise_of_a_random_state(features, _):
    return through(
        features, lambda values: values + np.random.RandomState(7).normal(size=256).astype("float32")
    )


@right("same_noise", says="'culprit' (Own), judged_models.py", remedy="SeedGenerator")
def noise_after_a_seed_of_keras(features, _):
    def drawn():
        keras.utils.set_random_seed(7)
        return np.random.normal(size=256).astype("float32")

    return through(features, lambda values: values + drawn())


HASHES = np.arange(256) * 11_400_714_819


@right(
    "wide_integers",
    says="'culprit' (Own), judged_models.py, line",
    remedy="preprocessing_fn",
)
def numbers_beyond_int32(features, _):
    return through(features, lambda values: values + ops.cast(HASHES, values.dtype))


@right("wide_integers", says="the integer 1,099,511,627,781 has", remedy="preprocessing_fn")
def a_number_beyond_int32_in_the_midst(features, _):
    return through(
        features,
        lambda values: values + ops.cast(ops.cast(values, "int32") + np.int64(2**40 + 5), values.dtype),
    )


@right("wide_integers", says="the integer 11,400,714,819,323,198,485 has", remedy="preprocessing_fn")
def unsigned_numbers_beyond_uint32(features, _):
    return through(
        features,
        lambda values: (
            values
            + ops.cast(
                ops.bitwise_xor(ops.cast(values, "uint32"), np.uint64(0x9E3779B97F4A7C15)), values.dtype
            )
        ),
    )


@right(ERROR, says="line", remedy="np.uint32(...)")
def a_number_of_python_beyond_int32(features, _):
    return through(features, lambda values: ops.cast(ops.cast(values, "int32") * 2_654_435_761, values.dtype))


@right(ERROR, says="the integer 1099511627776 does not fit into int32", remedy="a float (2.0**40)")
def a_number_of_python_beyond_int32_among_fractions(features, _):
    return through(features, lambda values: values * 2**40)


@right(ERROR, says="the integer 1099511627776 does not fit into int32", remedy="made in preprocessing_fn")
def a_list_of_numbers_beyond_int32(features, _):
    return through(features, lambda values: values + ops.cast(ops.array([2**40] * 256), values.dtype))


@right("each_trace", says="'culprit', judged_models.py", remedy="SeedGenerator")
def noise_of_numpy(features, _):
    return through(
        features, lambda values: values + np.random.default_rng().normal(size=256).astype("float32")
    )


@right("each_trace", says="'culprit', judged_models.py", remedy="SeedGenerator")
def noise_of_python(features, _):
    def drawn():
        return np.array([random.random() for _ in range(256)], "float32")  # noqa: S311 (noise)

    return through(features, lambda values: values + drawn())


@right("each_trace", says="'culprit', judged_models.py", remedy="SeedGenerator")
def the_time_of_day(features, _):
    def call(values):
        # Byte by byte, each of which bfloat16 holds exactly: no two traces have the same.
        return values + np.tile(np.frombuffer(time.time_ns().to_bytes(8, "big"), "uint8"), 32).astype(
            "float32"
        )

    return through(features, call)


@right("cast", says="float64 to float32", remedy="smaller type")
def float64_in_a_layer(features, _):
    return through(features, lambda values: ops.cast(ops.cast(values, "float64") * 2, "float32"))


@right("cast", says="the loss 'precise', judged_models.py", remedy="smaller type")
def float64_in_the_loss(features, _):
    def precise(label, answer):
        return ops.mean(ops.square(ops.cast(label - answer, "float64")))

    x = given(features)
    return answered(x, layers.Dense(256)(x), loss=precise)


@right("cast", says="int64 to int32", remedy="smaller type")
def int64_in_a_layer(features, _):
    return through(features, lambda values: ops.cast(ops.cast(values * 1e9, "int64"), "float32"))


@right("cast", says="complex128 to complex64", remedy="smaller type")
def complex128_in_a_layer(features, _):
    return through(features, lambda values: ops.real(ops.cast(values, "complex128")))


@right("run_eagerly", says="judged_models.py, line", remedy="run_eagerly=False")
def eager(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), run_eagerly=True)


@right("run_eagerly", says="judged_models.py, line", remedy="run_eagerly=False")
def eager_and_not_built(features, _):
    model = Subclassed()
    model.compile("adam", "mse", run_eagerly=True)
    return model


@right("frozen", says="judged_models.py, line", remedy="trainable = True")
def nothing_to_train(features, _):
    x = given(features)
    model = answered(x, layers.Dense(256)(x))
    model.trainable = False
    model.compile("adam", "mse")
    return model


@right("callback", says="the layer 'culprit', judged_models.py, line", remedy="remove prints")
def a_print(features, _):
    import jax

    def printed(values):
        jax.debug.print("{}", values.sum())
        return values

    return through(features, printed)


@right(
    "callback", says="the layer 'culprit', judged_models.py, line", remedy="keras.ops, or before the training"
)
def a_step_of_the_host(features, _):
    import jax

    def call(values):
        shape = jax.ShapeDtypeStruct(values.shape, values.dtype)
        return values + jax.pure_callback(np.sign, shape, jax.lax.stop_gradient(values))

    return through(features, call)


@right(
    "batch_norm",
    says="batch_normalization (judged_models.py, line",
    remedy="backend=jax; or synchronized",
    **ON_EIGHT,
    backend="tensorflow",
)
def normalized_by_replica(features, _):
    x = given(features)
    return answered(x, layers.BatchNormalization()(layers.Dense(256)(x)))


@right(
    "backend",
    says="is not known. The layer",
    remedy="--set train.backend=jax",
    **ON_EIGHT,
    backend="tensorflow",
)
def normalized_together(features, _):
    x = given(features)
    return answered(x, layers.BatchNormalization(synchronized=True)(layers.Dense(256)(x)))


@right(**ON_EIGHT)
def normalized_together_by_jax(features, _):
    return normalized_by_replica(features, _)


@right(ERROR, says="judged_models.py, line", remedy="leave it out: JAX normalises all")
def synchronized_by_jax(features, _):
    return normalized_together(features, _)


# ------------------------------------------------------------------------- batches of several lengths
BUCKETS = {"dtype": "int64", "x": (16,), "settings": {"bucket_by_length": {"x": [4, 8]}}}
ONE_EACH = "each length costs a compilation"


@right(
    ERROR,
    "buckets",
    says="takes x of one length only: judged_models.py, line",
    remedy={ERROR: "no Flatten", "buckets": ONE_EACH},
    **BUCKETS,
)
def lists_in_buckets_flattened(features, _):
    x = given(features, "int32")
    return answered(x, layers.Flatten()(layers.Embedding(100, 128, mask_zero=True)(x)))


@right(
    ERROR,
    "buckets",
    says="has other weights for batches of several lengths",
    remedy={ERROR: "from a hyperparameter", "buckets": ONE_EACH},
    **BUCKETS,
)
def lists_in_buckets_with_units_of_their_length(features, _):
    x = given(features, "int32")
    words = layers.Embedding(100, 128, mask_zero=True)(x)
    return answered(x, layers.GRU(128 * (features["x"].shape[0] or 1))(words))


@right(
    ERROR,
    "buckets",
    says="the model does not take x of 4: ",
    remedy={ERROR: "greater lengths", "buckets": ONE_EACH},
    **BUCKETS,
)
def lists_in_buckets_shorter_than_a_filter(features, _):
    x = given(features, "int32")
    seen = layers.Conv1D(128, 6)(layers.Embedding(100, 128)(x))
    return answered(x, layers.GlobalMaxPooling1D()(seen))


class Narrow(keras.Model):
    """A loss of its own that wants all of a row's words."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.mean(ops.square(y - y_pred)) + ops.mean(
            ops.cast(x["x"][:, :16] * ops.ones(16, "int32"), "float32")
        )


@right(
    ERROR,
    "buckets",
    says="with x of 4: judged_models.py, line",
    remedy={ERROR: "", "buckets": ONE_EACH},
    **BUCKETS,
)
def lists_in_buckets_with_a_loss_of_one_length(features, _):
    x = given(features, "int32")
    words = layers.Embedding(100, 128, mask_zero=True)(x)
    model = Narrow({"x": x}, layers.Dense(1, dtype="float32")(layers.GRU(128)(words)))
    model.compile("adam")
    return model


@right(
    "buckets",
    "padding_counts",
    says="made-up row changes by",
    remedy={"buckets": ONE_EACH, "padding_counts": "mask_zero=True"},
    **BUCKETS,
)
def lists_in_buckets_whose_padding_counts(features, _):
    x = given(features, "int32")
    return answered(x, layers.GlobalAveragePooling1D()(layers.Embedding(100, 128)(x)))


@right("buckets", says="compiled 3 times", remedy=ONE_EACH, **BUCKETS)
def lists_in_buckets(features, _):
    x = given(features, "int32")
    words = layers.Embedding(30_000, 128, mask_zero=True)(x)
    return answered(x, layers.Bidirectional(layers.LSTM(128))(words))


class Positions(layers.Layer):
    """Adds vectors of the places of at most 16 words."""

    def __init__(self, **options):
        super().__init__(**options)
        self.places = layers.Embedding(16, 128)
        self.supports_masking = True

    def call(self, words):
        return words + self.places(ops.arange(ops.shape(words)[1]))


@right("buckets", says="compiled 3 times", remedy=ONE_EACH, **BUCKETS)
def lists_in_buckets_under_attention(features, _):
    x = given(features, "int32")
    words = Positions()(layers.Embedding(100, 128, mask_zero=True)(x))
    seen = layers.LayerNormalization()(words + layers.MultiHeadAttention(2, 64, dropout=0.1)(words, words))
    return answered(x, layers.GlobalAveragePooling1D()(seen, mask=x > 0))


@right("buckets", says="compiled 3 times", remedy=ONE_EACH, x=(16, 8), settings=BUCKETS["settings"])
def series_in_buckets(features, _):
    x = given(features)
    steps = layers.TimeDistributed(layers.Dense(128, activation="relu"))(layers.Masking()(x))
    return answered(x, layers.GRU(128)(steps))


@right(
    ERROR,
    says="'culprit', judged_models.py, line",
    remedy="another way to compute it",
    needs_compiler=True,
)
def eigenvalues_of_a_matrix(features, _):
    import jax

    def call(values):
        return values + ops.sum(ops.real(jax.numpy.linalg.eig(jax.lax.stop_gradient(values[:256]))[0]))

    return through(features, call)


@right(
    ERROR,
    says="'culprit', judged_models.py, line",
    remedy='ops.cast(values, "float32")',
    needs_compiler=True,
)
def a_matrix_inverted_in_bfloat16(features, _):
    return through(features, lambda values: values + ops.mean(ops.inv(ops.eye(256, dtype=values.dtype) * 2)))


@right(ERROR, says="not take bfloat16, in which the layer", remedy='ops.cast(values, "float32")')
def a_spectrum_of_bfloat16(features, _):
    return through(features, lambda values: values + ops.mean(ops.rfft(values)[0]))


@right()
def a_spectrum_of_float32(features, _):
    def call(values):
        return values + ops.cast(ops.mean(ops.rfft(ops.cast(values, "float32"))[0]), values.dtype)

    return through(features, call)


def by_kernel(values, rows=None):
    """Return twice the values, by a kernel of Pallas that takes so many rows at once, or all."""
    from jax import lax
    from jax.experimental import pallas

    def double(read, write):
        write[...] = read[...] * 2

    at_once = (rows or values.shape[0], values.shape[1])
    block = pallas.BlockSpec(at_once, lambda index: (index, 0))
    grid = (values.shape[0] // at_once[0],)
    called = pallas.pallas_call(double, out_shape=values, grid=grid, in_specs=[block], out_specs=block)
    return values + called(lax.stop_gradient(values))


@right(
    ERROR,
    says="a kernel (Pallas) cannot be divided among the devices",
    remedy="jax.shard_map",
    needs_compiler=True,
    **ON_EIGHT,
)
def a_kernel_over_eight_devices(features, _):
    return through(features, by_kernel)


@right(
    ERROR,
    says="needs more of the memory within the chip",
    remedy="fewer examples",
    needs_compiler=True,
    batch_size=2**16,
)
def a_kernel_of_all_rows(features, _):
    return through(features, by_kernel)


# ------------------------------------------------------------------------- what costs, or does not fit
@right("batch_padding", says="2 examples a core", remedy="64", slice="v5e-8", batch_size=16)
def few_examples_normalized(features, _):
    return normalized_by_replica(features, _)


@right("batch_padding", says="2 examples a core", remedy="64", slice="v5e-8", batch_size=16)
def few_examples(features, _):
    x = given(features)
    return answered(x, layers.Dense(512, activation="relu")(x))


@right(
    "batch_padding",
    "batch_norm",
    says="normalises its own 2 examples",
    remedy={"batch_padding": "64", "batch_norm": "backend=jax; or synchronized"},
    slice="v5e-8",
    batch_size=16,
    backend="tensorflow",
)
def few_examples_normalized_by_replica(features, _):
    return normalized_by_replica(features, _)


@right("float16", says="half (judged_models.py, line", remedy="mixed_bfloat16")
def a_layer_of_half_precision(features, _):
    x = given(features)
    return answered(x, layers.Dense(256, dtype="mixed_float16", name="half")(x))


@right("padding", says="20 units are padded to a multiple of 128", remedy="128 units", x=(24, 24, 20))
def narrow_images(features, _):
    x = given(features)
    seen = layers.Conv2D(20, 3, activation="relu")(layers.Conv2D(20, 3, activation="relu")(x))
    return answered(x, layers.GlobalMaxPooling2D()(seen))


LONG = {"x": (8192, 64), "batch_size": 32, "needs_compiler": True}


@right("does_not_fit", says="32 examples a step need", remedy="a smaller train.batch_size", **LONG)
def attention_over_a_long_text(features, _):
    x = given(features)
    hidden = layers.Dense(256)(x)
    hidden = layers.MultiHeadAttention(8, 32, dropout=0.1)(hidden, hidden)
    return answered(x, layers.GlobalMaxPooling1D()(hidden))


@right("constant", says="64 MiB", remedy="trainable=False")
def large_constant(features, _):
    table = np.ones((2**17, 128), "float32")
    codes = slice(0, 4)
    return through(
        features,
        lambda values: (
            values + ops.mean(ops.take(ops.convert_to_tensor(table), ops.cast(values[:, codes], "int32")))
        ),
    )


@right("long_loop", says="'gru', judged_models.py, line", x=(2000, 8), batch_size=32, remedy="Conv1D")
def long_sequence(features, _):
    x = given(features)
    return answered(x, layers.GRU(128)(x))


@right("long_loop", says="'lstm', judged_models.py, line", x=(4096, 64), batch_size=256, remedy="Conv1D")
def long_text_in_an_lstm(features, _):
    x = given(features)
    return answered(x, layers.LSTM(128)(x))


@right("whole_table", says="the layer 'embedding', judged_models.py, line", **CODES, remedy="adafactor")
def large_vocabulary(features, _):
    x = given(features, "int32")
    codes = layers.Embedding(2_000_000, 128)(x)
    return answered(x, layers.GlobalAveragePooling1D()(codes))


class OfCodes(keras.Model):
    """Of a class of its own, of whose layers no graph knows."""

    def __init__(self):
        super().__init__()
        self.codes = layers.Embedding(2_000_000, 128, name="codes")
        self.answer = layers.Dense(1, dtype="float32")

    def call(self, inputs):
        return self.answer(ops.mean(self.codes(inputs["x"]), axis=1))


@right("whole_table", says="the layer 'codes', judged_models.py, line", **CODES, remedy="adafactor")
def large_vocabulary_in_a_class(features, _):
    model = OfCodes()
    model.compile("adam", "mse")
    return model


@right(
    "does_not_fit",
    "whole_table",
    says="71.53 GiB",
    **CODES,
    remedy={"does_not_fit": "fewer weights (rows, units), a slice with more", "whole_table": "adafactor"},
)
def vocabulary_beyond_all_memory(features, _):
    x = given(features, "int32")
    codes = layers.Embedding(50_000_000, 128)(x)
    return answered(x, layers.GlobalAveragePooling1D()(codes))


@right(
    "does_not_fit",
    "whole_table",
    says="17.17 GiB",
    **CODES,
    remedy={"does_not_fit": "an optimizer with fewer numbers for each weight", "whole_table": "sgd"},
)
def numbers_of_adam_beyond_memory(features, _):
    x = given(features, "int32")
    codes = layers.Embedding(12_000_000, 128)(x)
    return answered(x, layers.GlobalAveragePooling1D()(codes))


# ------------------------------------------------------------------------- what is right
@right()
def sequential_without_input(features, _):
    model = keras.Sequential([layers.Dense(512, activation="relu"), layers.Dense(1, dtype="float32")])
    model.compile("adam", "mse")
    return model


@right(**CODES)
def sequential_of_codes(features, _):
    model = keras.Sequential([layers.Embedding(1000, 128), layers.Flatten(), layers.Dense(1)])
    model.compile("adam", "mse")
    return model


class Subclassed(keras.Model):
    """As Keras' guide writes a model: built by its first batch."""

    def __init__(self):
        super().__init__()
        self.wide = layers.Dense(512, activation="relu")
        self.answer = layers.Dense(1, dtype="float32")

    def call(self, inputs, training=False):
        hidden = self.wide(inputs["x"])
        return self.answer(hidden * 2 if training else hidden)


@right()
def subclassed_and_not_built(features, _):
    model = Subclassed()
    model.compile("adam", "mse")
    return model


@right()
def subclassed_and_built(features, _):
    model = Subclassed()
    model({"x": np.zeros((1, 256), "float32")})
    model.compile("adam", "mse")
    return model


@right(**CODES)
def two_large_vocabularies(features, _):
    """Of Adagrad's numbers, each table has one."""
    x = given(features, "int32")
    codes = [layers.GlobalAveragePooling1D()(layers.Embedding(2_000_000, 128)(x)) for _ in range(2)]
    return answered(x, layers.Concatenate()(codes), optimizer="adagrad")


@right(**CODES)
def text_by_convolution(features, _):
    x = given(features, "int32")
    words = layers.Embedding(30_000, 128, mask_zero=True)(x)
    return answered(x, layers.GlobalMaxPooling1D()(layers.Conv1D(128, 3, activation="relu")(words)))


@right(**CODES)
def masked_text(features, _):
    x = given(features, "int32")
    words = layers.Embedding(30_000, 128, mask_zero=True)(x)
    return answered(x, layers.Bidirectional(layers.LSTM(128))(words))


@right(x=(64, 64), batch_size=256)
def text_in_an_lstm(features, _):
    return long_text_in_an_lstm(features, _)


@right(**WORDS)
def transformer(features, _):
    x = given(features)
    hidden = layers.Dense(256)(x)
    for _block in range(2):
        normal = layers.LayerNormalization()(hidden)
        hidden = hidden + layers.MultiHeadAttention(2, 128, dropout=0.1)(normal, normal)
        wide = layers.Dense(1024, activation="gelu")(layers.LayerNormalization()(hidden))
        hidden = hidden + layers.Dropout(0.1)(layers.Dense(256)(wide))
    return answered(x, layers.GlobalAveragePooling1D()(hidden))


@right(**WORDS)
def causal_attention(features, _):
    x = given(features)
    hidden = layers.Dense(256)(x)
    hidden = hidden + layers.MultiHeadAttention(2, 128, dropout=0.1)(hidden, hidden, use_causal_mask=True)
    return answered(x, layers.GlobalAveragePooling1D()(layers.LayerNormalization()(hidden)))


@right(**WORDS)
def own_attention(features, _):
    class Attention(layers.Layer):
        def call(self, values):
            weights = ops.softmax(ops.einsum("bik,bjk->bij", values, values) / 8.0)
            return ops.einsum("bij,bjk->bik", weights, values)

    x = given(features)
    return answered(x, layers.Flatten()(Attention()(layers.Dense(128)(x))))


@right()
def seeded_dropout_and_noise(features, _):
    x = given(features)
    noisy = layers.GaussianNoise(0.1, seed=3)(layers.Dropout(0.2, seed=7)(layers.Dense(512)(x)))
    return answered(x, noisy)


@right()
def own_noise(features, _):
    class Noise(layers.Layer):
        def __init__(self, **options):
            super().__init__(**options)
            self.seeds = keras.random.SeedGenerator(7)

        def call(self, values):
            return values + keras.random.normal(ops.shape(values), dtype=values.dtype, seed=self.seeds)

    x = given(features)
    return answered(x, Noise()(layers.Dense(512)(x)))


@right()
def mask_made_once(features, _):
    class Masked(layers.Layer):
        def __init__(self, **options):
            super().__init__(**options)
            self.mask = None

        def call(self, values):
            if self.mask is None:
                self.mask = np.tril(np.ones((256, 256), "float32"))[0]
            return values * self.mask

    x = given(features)
    return answered(x, Masked()(layers.Dense(256)(x)))


class Remembered(layers.Layer):
    """Keeps what does not change: in attributes of its own, a shape, numbers drawn once, a cache."""

    def __init__(self, **options):
        super().__init__(**options)
        self._kept = {}
        self._noise = np.random.default_rng(7).normal(size=256).astype("float32")
        self._rows = np.int64(2**40)

    def build(self, shape):
        self._features = np.random.default_rng(3).normal(size=shape[-1]).astype("float32")

    def call(self, values):
        self._shape = tuple(values.shape)
        if values.shape not in self._kept:
            self._kept[tuple(values.shape)] = np.random.default_rng(1).normal(size=256).astype("float32")
        return values * self._noise + self._features * self._kept[tuple(values.shape)]


@right()
def what_does_not_change_kept(features, _):
    x = given(features)
    return answered(x, Remembered()(layers.Dense(256)(x)))


@functools.cache
def places(width):
    return np.random.default_rng(width).normal(size=width).astype("float32")


@right()
def numbers_drawn_once_by_a_cached_function(features, _):
    return through(features, lambda values: values + places(256))


class Focal(keras.losses.Loss):
    """A loss with settings of its own."""

    def __init__(self, *, gamma=2.0, weights=(1.0, 3.0)):
        super().__init__(name="focal")
        self._gamma, self._weights = gamma, np.array(weights, "float32")

    def call(self, label, answer):
        error = ops.abs(label - answer)
        return ops.mean(self._weights[0] * error**self._gamma + self._weights[1] * error, axis=-1)


class Halving(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule with a table of its own."""

    def __init__(self):
        self._turns, self._table = [1000, 2000], {"first": 1e-3}

    def __call__(self, step):
        return self._table["first"] * ops.power(0.5, ops.cast(step, "float32") / self._turns[0])


@right()
def a_loss_a_metric_and_a_schedule_of_its_own(features, _):
    x = given(features)
    options = {"loss": Focal(), "metrics": [Bias()], "optimizer": keras.optimizers.Adam(Halving())}
    return answered(x, layers.Dense(512)(x), **options)


class Clipped(layers.Dense):
    """A layer of Keras' with a step of its own."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._limit = 6.0

    def call(self, values):
        return ops.clip(super().call(values), 0.0, self._limit)


@right()
def a_layer_of_keras_extended(features, _):
    x = given(features)
    return answered(x, Clipped(512)(Clipped(512)(x)))


@right()
def numbers_beyond_int32_that_become_others_before(features, _):
    def call(values):
        rates = ops.convert_to_tensor(HASHES, dtype="float32") / 2.0**40
        return values * ops.cast(rates, values.dtype) + HASHES.max() % 7 + (2**40 % 7)

    return through(features, call)


@right()
def large_numbers_that_fit(features, _):
    limits = np.array([2**31 - 1, -(2**31)])
    return through(features, lambda values: values + ops.cast(ops.max(limits), values.dtype))


@right()
def not_a_number(features, _):
    class Unknown(layers.Layer):
        def __init__(self, **options):
            super().__init__(**options)
            self.unknown, self.others = float("nan"), {float("nan"), 1.0}

        def call(self, values):
            return ops.where(values > 0, values, np.full(256, self.unknown, "float32"))

    x = given(features)
    return answered(x, Unknown()(layers.Dense(256)(x)))


@right()
def loop_and_branch_of_known_things(features, _):
    def call(values):
        for factor in (1.0, 2.0, 3.0):
            values = ops.tanh(values) * factor
        return values if values.shape[-1] == 256 else -values

    return through(features, call)


@right()
def chosen_on_the_device(features, _):
    return through(
        features,
        lambda values: ops.where(
            values > 0, values, ops.cond(ops.sum(values) > 0, lambda: values, lambda: -values)
        ),
    )


@right()
def schedule_on_the_device(features, _):
    class Warm(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step):
            return ops.where(step < 100, 1e-3, 1e-4)

    x = given(features)
    optimizer = keras.optimizers.AdamW(Warm(), clipnorm=1.0, use_ema=True)
    return answered(x, layers.Dense(512)(x), optimizer=optimizer)


@right()
def schedule_of_keras_that_warms_up(features, _):
    x = given(features)
    rate = keras.optimizers.schedules.CosineDecay(1e-3, 10_000, warmup_steps=500, warmup_target=1e-2)
    return answered(x, layers.Dense(512)(x), optimizer=keras.optimizers.AdamW(rate, clipnorm=1.0))


@right()
def sorted_and_the_best_of(features, _):
    x = given(features)
    best = layers.Lambda(lambda values: ops.sort(ops.top_k(values, 128)[0]), output_shape=(128,))
    return answered(x, layers.Dense(256)(best(x)))


@right()
def frozen_in_part(features, _):
    x = given(features)
    body = keras.Sequential([keras.Input((256,)), layers.Dense(512), layers.BatchNormalization()])
    body.trainable = False
    return answered(x, body(x))


@right()
def shared_layer(features, _):
    x = given(features)
    shared = layers.Dense(256)
    return answered(x, shared(shared(x)))


@right()
def losses_of_layers(features, _):
    class Penalty(layers.Layer):
        def call(self, values):
            self.add_loss(1e-3 * ops.mean(ops.square(values)))
            return values

    x = given(features)
    return answered(x, Penalty()(layers.Dense(512, activity_regularizer="l2")(x)))


@right(y=(4,))
def several_labels(features, _):
    x = given(features)
    auc = keras.metrics.AUC(multi_label=True, num_labels=4)
    hidden = layers.Dense(512, activation="relu")(x)
    return answered(x, hidden, units=4, activation="sigmoid", loss="binary_crossentropy", metrics=[auc])


@right(x=(16, 16, 3), dtype="uint8", batch_size=256)
def augmented_images(features, _):
    x = given(features, "uint8")
    seen = layers.RandomFlip()(layers.Rescaling(1 / 255)(x))
    return answered(x, layers.GlobalAveragePooling2D()(layers.Conv2D(128, 3, activation="relu")(seen)))


class Bias(keras.metrics.Metric):
    """The total error of the answers."""

    def __init__(self, **options):
        super().__init__(**options)
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(ops.sum(y_pred - y_true))

    def result(self):
        return self.total.value


class BiasItself(Bias):
    """Gives the variable, which no step may return."""

    def result(self):
        return self.total


@right()
def own_metric(features, _):
    x = given(features)
    return answered(x, layers.Dense(512)(x), metrics=[Bias()])


@right(ERROR, says="a variable itself is returned", remedy="variable.value")
def metric_that_gives_its_variable(features, _):
    x = given(features)
    return answered(x, layers.Dense(512)(x), metrics=[BiasItself()])


@right()
def jax_in_a_layer(features, _):
    import jax

    return through(features, jax.checkpoint(jax.vmap(lambda value: value * jax.numpy.tanh(value))))


@right()
def adapted_normalization(features, _):
    x = given(features)
    normal = layers.Normalization(mean=np.zeros(256), variance=np.ones(256))
    return answered(x, layers.Dense(512)(normal(x)))


@right(**CODES)
def one_hot_codes(features, _):
    x = given(features, "int32")
    return answered(x, layers.Flatten()(layers.CategoryEncoding(128, output_mode="one_hot")(x)))


@right()
def numbers_in_bins(features, _):
    x = given(features)
    bins = layers.Discretization(bin_boundaries=[-1.0, 0.0, 1.0])(x)
    return answered(x, layers.GlobalAveragePooling1D()(layers.Embedding(4, 128)(bins)))


@right(
    ERROR, says="(MultiHeadAttention), judged_models.py, line", remedy="leave flash_attention out", **WORDS
)
def flash_attention_of_keras(features, _):
    x = given(features)
    hidden = layers.Dense(256)(x)
    hidden = layers.MultiHeadAttention(2, 128, flash_attention=True)(hidden, hidden)
    return answered(x, layers.GlobalAveragePooling1D()(hidden))


@right(**ON_EIGHT, x=(32, 64))
def attention_on_eight_cores(features, _):
    x = given(features)
    hidden = layers.Dense(128)(x)
    for _block in range(2):
        normal = layers.LayerNormalization()(hidden)
        hidden = hidden + layers.MultiHeadAttention(2, 64)(normal, normal)
        hidden = hidden + layers.Dense(128)(layers.Dense(512, activation="gelu")(hidden))
    return answered(x, layers.GlobalMaxPooling1D()(hidden))


@right(x=(16, 16, 128), batch_size=256)
def residual_convolutions(features, _):
    hidden = x = given(features)
    for _block in range(2):
        inner = layers.Conv2D(128, 3, padding="same", activation="relu")(hidden)
        hidden = layers.add([hidden, layers.Conv2D(128, 3, padding="same")(inner)])
    return answered(x, layers.GlobalAveragePooling2D()(hidden))


@right(x=(20, 20, 1), batch_size=256)
def images_resized(features, _):
    x = given(features)
    seen = layers.Conv2D(128, 3)(layers.Resizing(32, 32)(x))
    return answered(x, layers.GlobalMaxPooling2D()(seen))


@right(settings={"accumulate_steps": 8})
def gradients_accumulated(features, _):
    x = given(features)
    return answered(x, layers.Dense(512, activation="relu")(x), optimizer="adamw")


class StepOfJax(keras.Model):
    """A train_step in JAX's form that keeps the metrics, too."""

    def _graded(self, trained, others, x, y):
        answers, others = self.stateless_call(trained, others, x, training=True)
        return self.compute_loss(x, y, answers), (others, answers)

    def train_step(self, state, data):
        import jax

        (trained, others, optimizer, metrics), (x, y) = state, data
        (loss, (others, answers)), slopes = jax.value_and_grad(self._graded, has_aux=True)(
            trained, others, x, y
        )
        trained, optimizer = self.optimizer.stateless_apply(optimizer, slopes, trained)
        with keras.StatelessScope(zip(self.metrics_variables, metrics, strict=True)) as scope:
            told = self.compute_metrics(x, y, answers)
        metrics = [scope.get_current_value(each) for each in self.metrics_variables]
        return {**told, "loss": loss}, (trained, others, optimizer, metrics)


@right()
def a_train_step_of_jax(features, _):
    x = given(features)
    model = StepOfJax({"x": x}, layers.Dense(1, dtype="float32")(layers.Dense(512)(x)))
    model.compile("adam", "mse", metrics=["mae"])
    return model


class OwnLoss(keras.Model):
    """A loss of its own, in keras.ops."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.mean(ops.logaddexp(0.0, ops.squeeze(y_pred - y, -1)))


@right()
def a_loss_of_its_own(features, _):
    x = given(features)
    model = OwnLoss({"x": x}, layers.Dense(1, dtype="float32")(layers.Dense(512)(x)))
    model.compile("adam")
    return model


@right()
def spectrally_normalized(features, _):
    x = given(features)
    return answered(x, layers.SpectralNormalization(layers.Dense(512), power_iterations=2)(x))
