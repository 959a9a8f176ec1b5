"""Faulty models with what the preflight's remedy says done to them; then the finding must be gone.

Each function builds the model of `judged_models` that it names, with what the remedy says and nothing else.
The last part has faults of the training's settings and its data, which are in no model.
"""

from collections.abc import Callable
from dataclasses import replace

import judged_models as judged
import keras
import numpy as np
from judged_models import BUCKETS, CASES, CODES, ON_EIGHT, ONE_EACH, Case, answered, dotted, given, through
from keras import layers, ops


def mends(fault: str, by: str = "", **asked) -> Callable:
    """Says that the function builds a faulty model after a remedy. Arguments are those of `settles`."""

    def keep(build: Callable) -> Callable:
        settles(build.__name__, fault, by, model=dotted(build), **asked)
        return build

    return keep


def settles(
    name: str, fault: str, by: str = "", *, rules: tuple[str, ...] = (), says: str = "", **asked
) -> None:
    """Keep a faulty model's case after a remedy, under a name of its own.

    Args:
        fault: the name of the faulty model.
        by: words of the remedy that is followed; "": those that the faulty model's case has.
        rules: that are found all the same, such as notes.
        says: words of one of these findings.
        asked: other fields of the case that the remedy changes; without `model` it is the same model.
    """
    faulty = CASES[fault]
    words = by or (faulty.remedy if isinstance(faulty.remedy, str) else faulty.remedy[faulty.rules[0]])
    asked = {"remedy": dict.fromkeys(rules, ""), **asked}
    CASES[name] = replace(faulty, rules=rules, says=says, mends=fault, by=words, **asked)


IN_TENSORFLOW = {"rules": ("backend",), "backend": "tensorflow"}
AS_CODES = {"dtype": "int64"}


# ------------------------------------------------------------------------- what no compiler takes
@mends("tensorflow_in_a_layer")
def with_unique_of_keras(features, _):
    def call(values):
        # Of a fixed number, as the remedy of `distinct_values` says.
        found = ops.unique(ops.reshape(values, (-1,)), size=values.shape[0], fill_value=0)
        return values + ops.sum(found)

    return through(features, call)


settles(
    "with_tensorflow_trained_by_it",
    "tensorflow_in_a_layer",
    "--set train.backend=tensorflow",
    **IN_TENSORFLOW,
    says="is not known",
)


@mends("tensorflow_in_a_lambda")
def with_a_lambda_of_keras(features, _):
    x = given(features)
    return answered(x, layers.Lambda(ops.square, output_shape=(256,), name="culprit")(x))


@mends("numpy_through_tensorflow", "keras.ops instead", **IN_TENSORFLOW, says="is the same model")
def with_tanh_of_keras(features, _):
    return through(features, ops.tanh)


@mends("numpy_through_tensorflow_in_jax", "keras.ops instead")
def with_tanh_of_keras_in_jax(features, _):
    return with_tanh_of_keras(features, _)


@mends("numpy_through_tensorflow_in_jax", "compute it in preprocessing_fn")
def with_tanh_computed_before(features, _):
    return with_text_made_numbers_before(features, _)


@mends("text_of_tensorflow")
def with_text_made_numbers_before(features, _):
    return through(features, lambda values: values)


def squared(label, answer):
    return ops.mean(ops.square(label - answer), axis=-1)


@mends("tensorflow_in_the_loss")
def with_a_loss_of_keras(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), loss=squared)


@mends("tensorflow_in_the_loss_that_tensorflow_trains", "--set train.backend=jax, which", backend="jax")
def with_a_loss_of_keras_in_jax(features, _):
    return with_a_loss_of_keras(features, _)


@mends("numpy_in_the_loss")
def with_a_lambda_as_loss(features, _):
    x = given(features)
    return answered(x, x, loss=lambda label, answer: ops.mean((label - answer) ** 2))


def apart(label, answer):
    return ops.abs(label - answer)


@mends("numpy_in_a_metric")
def with_a_metric_of_keras(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), metrics=[apart])


@mends("a_number_of_python", "keras.ops instead of Python")
def with_a_number_of_the_device(features, _):
    return through(features, lambda values: values * ops.mean(values))


@mends("a_number_of_python", "ops.where")
def with_a_choice_of_the_device(features, _):
    return through(features, lambda values: values * ops.where(ops.mean(values) > 0, 1.0, 2.0))


@mends("an_array_of_a_tensor")
def with_a_mean_of_keras(features, _):
    return through(features, lambda values: values * ops.mean(values))


@mends("a_tensor_changed_in_place")
def with_a_slice_updated(features, _):
    def call(values):
        return ops.slice_update(values, (0, 0), ops.zeros((1, values.shape[-1]), values.dtype))

    return through(features, call)


@mends("a_tensor_changed_in_place", "ops.scatter_update")
def with_a_row_scattered(features, _):
    def call(values):
        return ops.scatter_update(values, [[0]], ops.zeros((1, values.shape[-1]), values.dtype))

    return through(features, call)


@mends("a_tensor_changed_in_place", "ops.where")
def with_a_row_chosen(features, _):
    def call(values):
        is_first = ops.expand_dims(ops.arange(values.shape[0]) == 0, -1)
        return ops.where(is_first, ops.zeros_like(values), values)

    return through(features, call)


class Noisy(layers.Layer):
    """Adds noise of a seed that it keeps."""

    def __init__(self, **options):
        super().__init__(**options)
        self.seeds = keras.random.SeedGenerator(7)

    def call(self, values):
        return values + keras.random.normal((256,), dtype=values.dtype, seed=self.seeds)


def _noisy(features):
    x = given(features)
    return answered(x, Noisy(name="culprit")(layers.Dense(256, activation="relu")(x)))


@mends("noise_without_a_seed")
def with_a_seed(features, _):
    return _noisy(features)


@mends("an_axis_that_is_not_there", "another line there")
def with_an_axis_that_is_there(features, _):
    return through(features, lambda values: values + ops.sum(values, axis=-1, keepdims=True))


@mends("attention_over_vectors", "keras.layers.Reshape")
def with_vectors_made_rows(features, _):
    x = given(features)
    rows = layers.Reshape((16, 16))(x)
    return answered(x, layers.Flatten()(layers.MultiHeadAttention(2, 128, name="culprit")(rows, rows)))


class Attending(keras.Model):
    """Attends over the rows of its vectors."""

    def __init__(self):
        super().__init__()
        self.rows, self.attention = layers.Reshape((16, 16)), layers.MultiHeadAttention(2, 128)
        self.flat, self.answer = layers.Flatten(), layers.Dense(1, dtype="float32")

    def call(self, inputs):
        rows = self.rows(inputs["x"])
        return self.answer(self.flat(self.attention(rows, rows)))


@mends("attention_over_vectors_that_is_not_built", "keras.layers.Reshape")
def with_vectors_made_rows_by_a_class(features, _):
    model = Attending()
    model.compile("adam", "mse")
    return model


@mends("attention_with_a_mask_of_another_shape", "equal sizes, or 1")
def with_a_mask_of_the_same_shape(features, _):
    x = given(features)
    rows = layers.Reshape((16, 16))(x)
    seen = layers.MultiHeadAttention(2, 128)(rows, rows, attention_mask=ops.ones((16, 16)))
    return answered(x, layers.Flatten()(seen))


@mends("sizes_that_do_not_go_together", "a Dense layer that makes the one as wide as the other")
def with_sizes_made_equal(features, _):
    x = given(features)
    narrow = layers.Dense(3, name="narrow")(layers.Dense(256, activation="relu")(x))
    wide = layers.Lambda(lambda values: ops.matmul(values, ops.ones((3, 256), values.dtype)))
    return answered(x, wide(narrow))


@mends("sizes_that_do_not_go_together", "or other units", rules=("padding",), says="3 units")
def with_other_units(features, _):
    x = given(features)
    wide = layers.Lambda(lambda values: ops.matmul(values, ops.ones((3, 256), values.dtype)))
    return answered(x, wide(layers.Dense(3, activation="relu", name="wide")(x)))


def halved(values):
    return ops.fori_loop(0, 9, lambda _, each: ops.where(ops.sum(each) > 1, each / 2, each), values)


@mends("a_while_of_python", "ops.fori_loop with a fixed number of turns")
def with_a_loop_of_the_device(features, _):
    return through(features, halved)


@mends("a_while_of_python_that_tensorflow_trains", "--set train.backend=jax, which", backend="jax")
def with_a_loop_of_the_device_in_jax(features, _):
    return through(features, halved)


@mends("a_loop_without_a_gradient")
def with_fixed_turns(features, _):
    return through(features, halved)


@mends("a_boolean_index", "ops.where with a mask")
def with_a_mask(features, _):
    return through(features, lambda values: values + ops.sum(ops.where(values > 0, values, 0)))


@mends("a_boolean_index", "ops.top_k")
def with_the_largest(features, _):
    return through(features, lambda values: values + ops.sum(ops.top_k(values, 8)[0]))


@mends("a_boolean_index", "compute it in preprocessing_fn")
def with_a_sum_made_before(features, _):
    return through(features, lambda values: values)


@mends("distinct_values", "a fixed size")
def with_a_fixed_number_of_distinct_values(features, _):
    def call(values):
        found = ops.unique(ops.reshape(values, (-1,)), size=values.shape[-1], fill_value=0)
        return values + ops.sum(found)

    return through(features, call)


@mends("a_shape_by_value")
def with_a_fixed_shape(features, _):
    return through(features, lambda values: values + ops.zeros((9, 256), values.dtype)[0])


@mends("places_that_are_not_zero", "ops.where with a mask")
def with_places_by_a_mask(features, _):
    def call(values):
        places = ops.where(values > 1, ops.arange(256), 0)
        return values + ops.cast(ops.sum(places), values.dtype)

    return through(features, call)


def _of_codes(features, rows):
    x = given(features, "int32")
    return answered(x, layers.Flatten()(layers.Embedding(rows, 128)(x)))


@mends("codes_hashed_in_the_model", "tft.hash_strings")
def with_codes_hashed_before(features, _):
    return _of_codes(features, 500)


@mends("codes_hashed_in_a_model_that_tensorflow_trains", "tft.hash_strings", **IN_TENSORFLOW)
def with_codes_hashed_before_tensorflow(features, _):
    return _of_codes(features, 500)


@mends("codes_crossed_in_the_model", x=(1,))
def with_codes_crossed_before(features, _):
    return _of_codes(features, 500)


@mends("codes_looked_up_in_the_model")
def with_codes_looked_up_before(features, _):
    return _of_codes(features, 4)


@mends("text_split_in_the_model", **AS_CODES, x=(12,))
def with_text_split_before(features, _):
    return _of_codes(features, 4)


@mends("text_looked_up_in_the_model", **AS_CODES)
def with_text_looked_up_before(features, _):
    return _of_codes(features, 3)


class Falling(keras.optimizers.schedules.LearningRateSchedule):
    """Asks on the device how far it is."""

    def __call__(self, step):
        return ops.cond(step < 100, lambda: 1e-3, lambda: 1e-4)


@mends("a_schedule_of_python")
def with_a_schedule_of_the_device(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), optimizer=keras.optimizers.Adam(Falling()))


def _of(kind, features, **options):
    x = given(features)
    model = kind({"x": x}, layers.Dense(1, dtype="float32")(x))
    model.compile("adam", **options)
    return model


class OwnLoss(keras.Model):
    """A loss of its own, which all backends call."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.mean(ops.square(y - y_pred))


@mends("a_train_step_of_tensorflow", "or compute_loss, which all backends call")
def with_compute_loss_for_a_step_of_tensorflow(features, _):
    return _of(OwnLoss, features)


@mends("a_train_step_of_tensorflow", "train_step(self, state, data)")
def with_a_step_of_jax_for_one_of_tensorflow(features, _):
    return _of(judged.StepOfJax, features, loss="mse")


settles(
    "with_a_step_of_tensorflow_trained_by_it",
    "a_train_step_of_tensorflow",
    "--set train.backend=tensorflow",
    **IN_TENSORFLOW,
    says="is not known",
)


@mends("a_train_step_of_tensorflow_that_tensorflow_trains", "--set train.backend=jax", backend="jax")
def with_compute_loss_in_jax(features, _):
    return _of(OwnLoss, features)


@mends("a_train_step_that_is_a_function_of_tensorflow", "or compute_loss, which all backends call")
def with_compute_loss_for_a_function_of_tensorflow(features, _):
    return _of(OwnLoss, features)


@mends(
    "a_train_step_that_is_a_function_of_tensorflow_that_trains_it", "--set train.backend=jax", backend="jax"
)
def with_compute_loss_for_a_function_in_jax(features, _):
    return _of(OwnLoss, features)


@mends("no_optimizer")
def with_an_optimizer(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x))


settles(
    "with_a_step_of_jax_trained_by_it",
    "a_train_step_of_jax_under_tensorflow",
    "--set train.backend=jax",
    backend="jax",
)


@mends("a_train_step_of_jax_under_tensorflow", "or compute_loss, which all", **IN_TENSORFLOW)
def with_compute_loss_for_a_step_of_jax(features, _):
    return _of(OwnLoss, features)


@mends("numpy_in_compute_loss")
def with_compute_loss_of_keras(features, _):
    return _of(OwnLoss, features)


settles("with_a_label_for_each_head", "two_heads_for_one_label", settings={"label": {"a": "y", "b": "y"}})


@mends("classes_for_a_number", "a sparse_ loss")
def with_a_sparse_loss(features, _):
    x = given(features)
    return answered(x, x, units=10, loss="sparse_categorical_crossentropy", activation="softmax")


@mends("three_classes_for_four", "as many units as the label has numbers")
def with_four_classes(features, _):
    x = given(features)
    return answered(x, x, units=4, loss="categorical_crossentropy", activation="softmax")


@mends("sparse_input", "dense ones of a fixed shape")
def with_a_dense_input(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x))


@mends("lists_of_any_length", "leave ragged out: keras.Input(features[NAME].shape)")
def with_lists_of_equal_length(features, _):
    x = given(features, "int32")
    return answered(x, layers.GlobalAveragePooling1D()(layers.Embedding(100, 128)(x)))


@mends("unknown_length", "give keras.Input")
def with_a_known_length(features, _):
    x = given(features)
    return answered(x, layers.LSTM(128)(x))


@mends("unknown_length", "Reshape")
def with_a_length_by_reshape(features, _):
    x = given(features)
    return answered(x, layers.LSTM(128)(layers.Reshape((64, 64))(x)))


@mends("unknown_length", "padding")
def with_a_length_by_padding(features, _):
    x = given(features)
    return answered(x, layers.LSTM(128)(layers.ZeroPadding1D((0, 64))(x)))


@mends("input_that_is_no_feature")
def with_inputs_that_are_features(features, _):
    x = given(features)
    return answered(x, x)


@mends("sequential_with_an_input_of_another_name")
def with_an_input_of_the_features_name(features, _):
    model = keras.Sequential([keras.Input(features["x"].shape, name="x"), layers.Dense(1)])
    model.compile("adam", "mse")
    return model


@mends("never_compiled")
def with_a_call_of_compile(features, _):
    model = judged.never_compiled(features, _)
    model.compile("adam", "mse")
    return model


class Remembering(layers.Layer):
    """Adds the mean of what it was called with before, which it keeps in a weight."""

    def build(self, shape):
        self.before = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, values):
        before = ops.cast(self.before.value, values.dtype)
        self.before.assign(ops.mean(values))
        return values + before


@mends("tensors_kept_in_a_list_and_read")
def with_a_mean_kept_in_a_weight(features, _):
    x = given(features)
    return answered(x, Remembering(name="culprit")(layers.Dense(256)(x)))


# ------------------------------------------------------------------------- what trains otherwise than meant
class Counting(layers.Layer):
    """Counts its calls in a weight."""

    def build(self, shape):
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, values):
        self.calls.assign_add(1)
        return values / ops.cast(self.calls, values.dtype)


def _counting(features):
    x = given(features)
    return answered(x, Counting(name="culprit")(layers.Dense(256)(x)))


@mends("counter_in_python")
def with_a_counter_in_a_weight(features, _):
    return _counting(features)


@mends("counter_under_a_name_of_its_own")
def with_a_counter_in_a_weight_for_one_of_another_name(features, _):
    return _counting(features)


@mends("counter_in_the_module")
def with_a_counter_in_a_weight_for_one_in_the_module(features, _):
    return _counting(features)


class Fading(keras.Model):
    """Its loss weighs less in each step."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.times = self.add_weight(shape=(), initializer="zeros", trainable=False, name="times")

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        self.times.assign_add(1)
        return ops.mean(ops.square(y - y_pred)) / self.times


@mends("counter_in_the_loss", "compute_loss")
def with_a_counter_in_compute_loss(features, _):
    return _of(Fading, features)


@mends("counter_around_the_loss", "compute_loss")
def with_a_counter_in_compute_loss_for_a_function(features, _):
    return _of(Fading, features)


class Keeping(layers.Layer):
    """Keeps the mean of its last values in a weight."""

    def build(self, shape):
        self.last = self.add_weight(shape=shape[1:], initializer="zeros", trainable=False)

    def call(self, values):
        self.last.assign(ops.mean(values, axis=0))
        return values * 2


@mends("tensor_kept")
def with_a_tensor_kept_in_a_weight(features, _):
    x = given(features)
    return answered(x, Keeping(name="culprit")(layers.Dense(256)(x)))


class Giving(layers.Layer):
    """Returns its values beside what it makes of them."""

    def call(self, values):
        return values * 2, values


@mends("tensor_kept", "return it")
def with_a_tensor_returned(features, _):
    x = given(features)
    doubled, values = Giving(name="culprit")(layers.Dense(256)(x))
    return answered(x, layers.Concatenate()([doubled, values]))


class Watching(keras.Model):
    """Keeps the mean of its last errors in a weight."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.error = self.add_weight(shape=(), initializer="zeros", trainable=False, name="error")

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = ops.mean(ops.square(y - y_pred))
        self.error.assign(loss)
        return loss


@mends("tensor_kept_in_the_loss", "compute_loss")
def with_an_error_kept_by_compute_loss(features, _):
    return _of(Watching, features)


class Masked(layers.Layer):
    """Has its mask as a weight."""

    def build(self, shape):
        mask = np.tril(np.ones((256, 256), "float32"))[100]
        self.mask = self.add_weight(shape=(256,), trainable=False)
        self.mask.assign(mask)

    def call(self, values):
        return values * ops.cast(self.mask, values.dtype)


def _masked(features):
    x = given(features)
    return answered(x, Masked(name="culprit")(layers.Dense(256)(x)))


@mends("mask_kept_in_the_only_trace")
def with_a_mask_in_a_weight(features, _):
    return _masked(features)


@mends("mask_kept_from_the_building")
def with_a_mask_in_a_weight_from_the_building(features, _):
    return _masked(features)


class Looking(keras.metrics.Mean):
    """Keeps the mean of what it saw last in a weight."""

    def __init__(self, **options):
        super().__init__(**options)
        self.seen = self.add_weight(name="seen", initializer="zeros")

    def update_state(self, label, answer, sample_weight=None):
        self.seen.assign(ops.mean(answer))
        super().update_state(answer - label)


@mends("tensor_kept_in_a_metric")
def with_a_metric_that_keeps_a_weight(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), metrics=[Looking(name="looking")])


class Value(keras.metrics.Metric):
    """Gives the value of its variable."""

    def __init__(self, **options):
        super().__init__(**options)
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, label, answer, sample_weight=None):
        self.total.assign_add(ops.sum(answer - label))

    def result(self):
        return self.total.value


@mends("metric_that_gives_its_variable")
def with_a_metric_that_gives_the_value(features, _):
    x = given(features)
    return answered(x, layers.Dense(512)(x), metrics=[Value()])


class Converted(Value):
    """Gives its variable as a tensor."""

    def result(self):
        return ops.convert_to_tensor(self.total)


@mends("metric_that_gives_its_variable", "ops.convert_to_tensor(variable)")
def with_a_metric_that_converts_it(features, _):
    x = given(features)
    return answered(x, layers.Dense(512)(x), metrics=[Converted()])


@mends("noise_of_a_fixed_seed")
def with_a_generator_for_a_fixed_seed(features, _):
    return _noisy(features)


@mends("noise_of_numpy_of_a_fixed_seed")
def with_a_generator_for_numpys_fixed_seed(features, _):
    return _noisy(features)


class Shifted(layers.Layer):
    """Adds the same numbers in each step, which are a weight."""

    def build(self, shape):
        self.shift = self.add_weight(shape=(256,), trainable=False)
        self.shift.assign(np.random.default_rng(7).normal(size=256).astype("float32"))

    def call(self, values):
        return values + ops.cast(self.shift, values.dtype)


@mends("noise_of_numpy_of_a_fixed_seed", "make what must stay constant a weight")
def with_noise_as_a_weight(features, _):
    x = given(features)
    return answered(x, Shifted(name="culprit")(layers.Dense(256)(x)))


@mends("noise_of_a_random_state")
def with_a_generator_for_a_random_state(features, _):
    return _noisy(features)


@mends("noise_after_a_seed_of_keras")
def with_a_generator_for_a_seed_of_keras(features, _):
    return _noisy(features)


@mends("noise_of_numpy")
def with_a_generator_for_numpy(features, _):
    return _noisy(features)


@mends("noise_of_python")
def with_a_generator_for_python(features, _):
    return _noisy(features)


@mends("the_time_of_day", "a weight (add_weight) for what changes")
def with_a_counter_for_the_time_of_day(features, _):
    return _counting(features)


SMALL = np.asarray(judged.HASHES % 500, "int32")


@mends("numbers_beyond_int32")
def with_smaller_numbers(features, _):
    return through(features, lambda values: values + ops.cast(SMALL, values.dtype))


@mends("a_number_beyond_int32_in_the_midst", "smaller codes")
def with_a_smaller_number_in_the_midst(features, _):
    return through(
        features, lambda values: values + ops.cast(ops.cast(values, "int32") + np.int32(5), values.dtype)
    )


@mends("unsigned_numbers_beyond_uint32", "smaller codes")
def with_smaller_unsigned_numbers(features, _):
    def call(values):
        mixed = ops.bitwise_xor(ops.cast(values, "uint32"), np.uint32(0x9E3779B9))
        return values + ops.cast(mixed, values.dtype)

    return through(features, call)


@mends("a_number_of_python_beyond_int32")
def with_an_unsigned_number(features, _):
    return through(
        features, lambda values: ops.cast(ops.cast(values, "uint32") * np.uint32(2_654_435_761), values.dtype)
    )


@mends("a_number_of_python_beyond_int32_among_fractions")
def with_a_float(features, _):
    return through(features, lambda values: values * 2.0**40)


@mends("a_list_of_numbers_beyond_int32")
def with_a_list_of_smaller_numbers(features, _):
    return through(features, lambda values: values + ops.cast(ops.array([7] * 256), values.dtype))


@mends("float64_in_a_layer")
def with_float32_in_a_layer(features, _):
    return through(features, lambda values: ops.cast(values, "float32") * 2)


@mends("float64_in_the_loss")
def with_float32_in_the_loss(features, _):
    def precise(label, answer):
        return ops.mean(ops.square(ops.cast(label - answer, "float32")))

    x = given(features)
    return answered(x, layers.Dense(256)(x), loss=precise)


@mends("int64_in_a_layer")
def with_int32_in_a_layer(features, _):
    return through(features, lambda values: ops.cast(ops.cast(values * 1e9, "int32"), "float32"))


@mends("int64_in_a_layer", "belong in preprocessing_fn")
def with_integers_made_before(features, _):
    return through(features, lambda values: values)


@mends("complex128_in_a_layer")
def with_complex64_in_a_layer(features, _):
    return through(features, lambda values: ops.real(ops.cast(values, "complex64")))


@mends("eager")
def with_run_eagerly_off(features, _):
    x = given(features)
    return answered(x, layers.Dense(256)(x), run_eagerly=False)


@mends("eager_and_not_built")
def with_run_eagerly_off_and_not_built(features, _):
    model = judged.Subclassed()
    model.compile("adam", "mse", run_eagerly=False)
    return model


@mends("nothing_to_train")
def with_something_to_train(features, _):
    model = judged.nothing_to_train(features, _)
    model.trainable = True
    model.compile("adam", "mse")
    return model


@mends("a_print")
def without_a_print(features, _):
    return through(features, lambda values: values)


@mends("a_step_of_the_host", "compute it with keras.ops")
def with_a_sign_of_keras(features, _):
    return through(features, lambda values: values + ops.sign(ops.stop_gradient(values)))


@mends("a_step_of_the_host", "or before the training")
def with_a_sign_made_before(features, _):
    return through(features, lambda values: values)


settles(
    "with_all_normalized_together_by_jax", "normalized_by_replica", "--set train.backend=jax", backend="jax"
)


settles(
    "with_all_normalized_together",
    "normalized_by_replica",
    "or synchronized=True, which preflight cannot check",
    **IN_TENSORFLOW,
    model="judged_models.normalized_together",
)


settles(
    "without_synchronization_in_jax",
    "normalized_together",
    "leave it out: JAX normalises all",
    backend="jax",
    model="judged_models.normalized_by_replica",
)


settles("without_synchronization", "synchronized_by_jax", model="judged_models.normalized_by_replica")
settles(
    "with_synchronization_by_tensorflow",
    "synchronized_by_jax",
    "--set train.backend=tensorflow",
    **IN_TENSORFLOW,
    says="is not known",
)


# ------------------------------------------------------------------------- batches of several lengths
IN_BUCKETS = {"rules": ("buckets",), "says": "compiled 3 times", "remedy": ONE_EACH}
WITHOUT_BUCKETS = {"rules": (), "settings": {}}


def _pooled(x, words):
    return answered(x, layers.GlobalAveragePooling1D()(words, mask=x > 0))


@mends("lists_in_buckets_flattened", **IN_BUCKETS)
def with_a_pool_instead_of_flatten(features, _):
    x = given(features, "int32")
    return _pooled(x, layers.Embedding(100, 128, mask_zero=True)(x))


settles(
    "without_buckets_for_flatten", "lists_in_buckets_flattened", "or leave the key out", **WITHOUT_BUCKETS
)


@mends("lists_in_buckets_with_units_of_their_length", **IN_BUCKETS)
def with_units_that_are_a_hyperparameter(features, _):
    x = given(features, "int32")
    return answered(x, layers.GRU(128)(layers.Embedding(100, 128, mask_zero=True)(x)))


settles(
    "with_greater_lengths",
    "lists_in_buckets_shorter_than_a_filter",
    rules=("buckets", "padding_counts"),
    remedy={"buckets": ONE_EACH, "padding_counts": "mask_zero=True"},
    settings={"bucket_by_length": {"x": [8]}},
)


settles(
    "without_buckets_for_a_filter",
    "lists_in_buckets_shorter_than_a_filter",
    "or leave the key out",
    **WITHOUT_BUCKETS,
)


@mends("lists_in_buckets_whose_padding_counts", "mask_zero=True", **IN_BUCKETS)
def with_a_mask_before_a_recurrent_layer(features, _):
    x = given(features, "int32")
    return answered(x, layers.GRU(128)(layers.Embedding(100, 128, mask_zero=True)(x)))


@mends("lists_in_buckets_whose_padding_counts", "multiply by codes > 0 before a sum or a mean", **IN_BUCKETS)
def with_padding_multiplied_by_zero(features, _):
    x = given(features, "int32")
    words = layers.Embedding(100, 128)(x)
    known = ops.expand_dims(ops.cast(x > 0, words.dtype), -1)
    mean = ops.sum(words * known, axis=1) / ops.maximum(ops.sum(known, axis=1), 1)
    return answered(x, mean)


# ------------------------------------------------------------------------- what only a compiler refuses
@mends("eigenvalues_of_a_matrix")
def with_eigenvalues_of_a_symmetric_matrix(features, _):
    def call(values):
        square = ops.stop_gradient(ops.cast(values[:256], "float32"))
        found = ops.eigh(square + ops.transpose(square))[0]
        return values + ops.cast(ops.sum(found), values.dtype)

    return through(features, call)


@mends("eigenvalues_of_a_matrix", "or compute it in preprocessing_fn")
def with_eigenvalues_made_before(features, _):
    return through(features, lambda values: values)


@mends("a_matrix_inverted_in_bfloat16")
def with_a_matrix_inverted_in_float32(features, _):
    def call(values):
        found = ops.inv(ops.cast(ops.eye(256, dtype=values.dtype) * 2, "float32"))
        return values + ops.cast(ops.mean(found), values.dtype)

    return through(features, call)


@mends("a_kernel_over_eight_devices", "keras.ops in its place")
def with_a_product_for_a_kernel(features, _):
    return through(features, lambda values: values * 3)


@mends("a_kernel_over_eight_devices", "jax.shard_map around it")
def with_a_kernel_on_each_device(features, _):
    import jax

    def call(values):
        mesh = keras.distribution.distribution().device_mesh.backend_mesh
        rows = jax.sharding.PartitionSpec(mesh.axis_names[0])
        return jax.shard_map(judged.by_kernel, mesh=mesh, in_specs=rows, out_specs=rows, check_vma=False)(
            values
        )

    return through(features, call)


settles("a_kernel_on_one_device", "a_kernel_over_eight_devices", "or a slice of one device", slice="v5e-1")
settles(
    "a_kernel_of_fewer_rows", "a_kernel_of_all_rows", "fewer examples (train.batch_size)", batch_size=1024
)


@mends("a_kernel_of_all_rows", "smaller windows")
def with_a_kernel_of_some_rows(features, _):
    return through(features, lambda values: judged.by_kernel(values, rows=1024))


settles("with_a_spectrum_of_float32", "a_spectrum_of_bfloat16", model="judged_models.a_spectrum_of_float32")


class Spectrum(layers.Layer):
    """Adds the mean of its values' spectrum."""

    def call(self, values):
        return values + ops.mean(ops.rfft(values)[0])


@mends("a_spectrum_of_bfloat16", 'dtype="float32" for the layer')
def with_a_layer_of_float32(features, _):
    x = given(features)
    hidden = layers.Dense(256, activation="relu", name="wide")(x)
    return answered(x, Spectrum(dtype="float32", name="culprit")(hidden))


@mends("flash_attention_of_keras", by="leave flash_attention out")
def without_flash_attention(features, _):
    x = given(features)
    hidden = layers.Dense(256)(x)
    return answered(x, layers.GlobalAveragePooling1D()(layers.MultiHeadAttention(2, 128)(hidden, hidden)))


# ------------------------------------------------------------------------- what costs, or does not fit
settles("with_more_examples", "few_examples_normalized", "64", batch_size=64)
settles("with_more_examples_that_nothing_normalizes", "few_examples", batch_size=64)
settles(
    "with_more_examples_by_replica",
    "few_examples_normalized_by_replica",
    "64",
    rules=("batch_norm",),
    says="normalises its own 8 examples",
    batch_size=64,
)
settles(
    "with_few_examples_normalized_by_jax",
    "few_examples_normalized_by_replica",
    "backend=jax",
    rules=("batch_padding",),
    says="2 examples a core",
    backend="jax",
)


@mends("a_layer_of_half_precision", "give these layers no dtype")
def with_a_layer_of_the_policy(features, _):
    x = given(features)
    return answered(x, layers.Dense(256, name="half")(x))


@mends("a_layer_of_half_precision", "or mixed_bfloat16")
def with_a_layer_of_bfloat16(features, _):
    x = given(features)
    return answered(x, layers.Dense(256, dtype="mixed_bfloat16", name="half")(x))


@mends("narrow_images")
def with_wide_images(features, _):
    x = given(features)
    seen = layers.Conv2D(128, 3, activation="relu")(layers.Conv2D(128, 3, activation="relu")(x))
    return answered(x, layers.GlobalMaxPooling2D()(seen))


class Table(layers.Layer):
    """A table that is not trained."""

    def build(self, shape):
        self.table = self.add_weight(shape=(2**17, 128), initializer="ones", trainable=False)

    def call(self, values):
        found = ops.take(self.table, ops.cast(values[:, 0:4], "int32"), axis=0)
        return values + ops.cast(ops.mean(found), values.dtype)


@mends("large_constant", "add_weight(trainable=False)")
def with_a_weight_instead_of_a_constant(features, _):
    x = given(features)
    return answered(x, Table(name="culprit")(layers.Dense(256, activation="relu")(x)))


@mends("large_constant", "an Embedding with trainable=False")
def with_an_embedding_instead_of_a_constant(features, _):
    x = given(features)
    codes = layers.Embedding(2**17, 128, trainable=False)(ops.cast(x[:, 0:4], "int32"))
    return answered(x, layers.Dense(256, activation="relu")(x) + ops.mean(codes))


settles("with_shorter_sequences", "long_sequence", "shorter sequences", x=(200, 8))


@mends("long_sequence")
def with_a_convolution_over_the_sequence(features, _):
    x = given(features)
    return answered(x, layers.GlobalMaxPooling1D()(layers.Conv1D(128, 3, activation="relu")(x)))


@mends("long_sequence", "MultiHeadAttention")
def with_attention_over_the_sequence(features, _):
    x = given(features)
    hidden = layers.Dense(128)(x)
    return answered(x, layers.GlobalMaxPooling1D()(layers.MultiHeadAttention(1, 128)(hidden, hidden)))


settles("with_shorter_texts", "long_text_in_an_lstm", "shorter sequences", x=(64, 64))


@mends("long_text_in_an_lstm")
def with_a_convolution_over_the_text(features, _):
    return with_a_convolution_over_the_sequence(features, _)


def _of_table(features, rows, optimizer="adam"):
    x = given(features, "int32")
    mean = layers.GlobalAveragePooling1D()(layers.Embedding(rows, 128)(x))
    return answered(x, mean, optimizer=optimizer)


@mends("large_vocabulary_in_a_class")
def with_adafactor_in_a_class(features, _):
    model = judged.OfCodes()
    model.compile("adafactor", "mse")
    return model


@mends("large_vocabulary")
def with_adafactor(features, _):
    return _of_table(features, 2_000_000, "adafactor")


@mends("large_vocabulary", "sgd")
def with_sgd(features, _):
    return _of_table(features, 2_000_000, "sgd")


@mends("large_vocabulary", "fewer rows (hashing)")
def with_fewer_rows(features, _):
    return _of_table(features, 100_000)


settles("with_a_larger_batch", "large_vocabulary", "a larger batch", batch_size=16_384)


@mends("vocabulary_beyond_all_memory", "fewer weights (rows, units)")
def with_far_fewer_rows(features, _):
    return _of_table(features, 100_000)


settles(
    "with_the_table_on_eight_devices",
    "vocabulary_beyond_all_memory",
    "a slice with more devices and train.model_parallel with a train.layout",
    rules=("whole_table",),
    slice="v5e-8",
    settings={"model_parallel": 8, "layout": {"embedding/embeddings": ("model", None)}},
)


@mends("numbers_of_adam_beyond_memory", "sgd")
def with_sgd_within_memory(features, _):
    return _of_table(features, 12_000_000, "sgd")


@mends("numbers_of_adam_beyond_memory", "adafactor")
def with_adafactor_within_memory(features, _):
    return _of_table(features, 12_000_000, "adafactor")


settles(
    "on_a_chip_with_more_memory",
    "numbers_of_adam_beyond_memory",
    "a slice with more memory",
    rules=("whole_table",),
    slice="v6e-1",
)


# ------------------------------------------------------------------------- settings and data of a training
def plain(features, _):
    x = given(features)
    return answered(x, layers.Dense(512, activation="relu", name="wide")(x))


def of_float64(features, _):
    x = given(features)
    return answered(x, layers.Dense(512, dtype="float64", name="wide")(x))


def of_float32(features, _):
    x = given(features)
    return answered(x, layers.Dense(512, dtype="float32", name="wide")(x))


def of_two_units(features, _):
    x = given(features)
    return answered(x, layers.Dense(512, activation="relu", name="wide")(x), units=2)


def of_lists(features, _):
    x = given(features, "int32")
    return _pooled(x, layers.Embedding(100, 128, mask_zero=True)(x))


def faulty(name: str, rule: str, remedy: str, *, model: Callable = plain, **asked) -> None:
    """Keep a case whose fault is in the settings or in the data, under a name."""
    CASES[name] = Case(model=dotted(model), rules=(rule,), remedy={rule: remedy}, **asked)


def files(count: int, *, of_bytes: int = 10**8) -> dict:
    return {"training": {"train_files": count, "train_bytes": count * of_bytes}}


def categories(count: int) -> dict:
    codes = {"name": "x", "dtype": "int64", "shape": [16], "categories": count}
    label = {"name": "y", "dtype": "float32", "shape": [1], "categories": None}
    return {"settings": {"features": (codes, label)}}


def laid_out(pattern: str, axes: tuple[str | None, ...]) -> dict:
    return {"settings": {"model_parallel": 2, "layout": {pattern: axes}}}


faulty("in_float32", "float32", "train.precision: auto", settings={"precision": "float32"})
settles("in_bfloat16", "in_float32", settings={"precision": "auto"})

faulty("in_float16", "float16", "train.precision: auto", settings={"precision": "mixed_float16"})
settles("in_bfloat16_instead_of_float16", "in_float16", settings={})

faulty("a_layer_of_float64", "float64", "give these layers dtype float32", model=of_float64)
settles("a_layer_of_float32", "a_layer_of_float64", model=dotted(of_float32))

faulty("an_odd_batch", "indivisible", "use 1000 or 1008", **ON_EIGHT, batch_size=1001)
settles("the_batch_below", "an_odd_batch", batch_size=1000)
settles("the_batch_above", "an_odd_batch", batch_size=1008)

faulty("three_of_eight", "model_parallel", "a divisor of 8", **ON_EIGHT, settings={"model_parallel": 3})
settles("two_of_eight", "three_of_eight", settings={"model_parallel": 2})

faulty(
    "no_such_weight", "layout", "there are wide/kernel", **ON_EIGHT, **laid_out("w/kernel", (None, "model"))
)
settles("a_weight_by_its_path", "no_such_weight", **laid_out("wide/kernel", (None, "model")))

faulty("one_unit_for_two", "layout", "write null", **ON_EIGHT, **laid_out("answer/kernel", (None, "model")))
settles("one_unit_for_all", "one_unit_for_two", **laid_out("answer/kernel", (None, None)))
settles("other_units_for_two", "one_unit_for_two", "more rows or units", model=dotted(of_two_units), y=(2,))

ON_FOUR_HOSTS = {"slice": "v5e-16"}
faulty("three_files_for_four_hosts", "files", "more Beam shards", **ON_FOUR_HOSTS, **files(3))
settles("four_files_for_four_hosts", "three_files_for_four_hosts", **files(4))
settles(
    "three_files_in_memory",
    "three_files_for_four_hosts",
    "train.input.cache: memory",
    training={"train_files": 3, "input_cache": "memory"},
)

faulty("six_files_for_four_hosts", "files", "a multiple of 4", **ON_FOUR_HOSTS, **files(6))
settles("eight_files_for_four_hosts", "six_files_for_four_hosts", **files(8))
settles(
    "six_files_in_files_of_the_hosts",
    "six_files_for_four_hosts",
    "train.input.cache: memory or file",
    training={"train_files": 6, "input_cache": "file"},
)

faulty("many_small_files", "files", "fewer Beam shards", **files(2**10, of_bytes=2**20))
settles("files_of_100_mb", "many_small_files", **files(11, of_bytes=10**8))

FAR = {"data_regions": {"gs://mine": "US-EAST1"}, "tpu_region": "us-central1"}
faulty("data_elsewhere", "region", "a bucket in us-central1, or a slice in us-east1", training=FAR)
settles(
    "data_near_the_slice", "data_elsewhere", training={**FAR, "data_regions": {"gs://mine": "US-CENTRAL1"}}
)
settles("slice_near_the_data", "data_elsewhere", training={**FAR, "tpu_region": "us-east1"})

faulty("a_python_without_jax", "runtime", "train.interpreter=.venv-tpu/bin/python", training={"runtime": {}})
settles(
    "a_python_with_jax", "a_python_without_jax", training={"runtime": {"jax": "0.10.2", "libtpu": "0.0.42.1"}}
)

faulty("torch", "backend", "--set train.backend=jax; Keras code stays as it is", backend="torch")
settles("jax_instead_of_torch", "torch", backend="jax")

faulty("tensorflow_on_v6e", "backend", "--set train.backend=jax", slice="v6e-8", backend="tensorflow")
settles("jax_on_v6e", "tensorflow_on_v6e", backend="jax")

faulty("tensorflow_on_hosts", "backend", "--set train.backend=jax", **ON_FOUR_HOSTS, backend="tensorflow")
settles("jax_on_hosts", "tensorflow_on_hosts", backend="jax")

faulty("tensorflow_unchecked", "backend", "--set train.backend=jax, which is what", backend="tensorflow")
settles("jax_checked", "tensorflow_unchecked", backend="jax")

# Twice: how often the step is compiled, and that TensorFlow compiles it once only.
BY_TENSORFLOW = {"model": of_lists, "backend": "tensorflow", **BUCKETS}
faulty("buckets_of_tensorflow", "buckets", "", **BY_TENSORFLOW)
settles("buckets_of_jax", "buckets_of_tensorflow", "set train.backend to jax", **IN_BUCKETS, backend="jax")
settles("no_buckets_of_tensorflow", "buckets_of_tensorflow", "or leave the key out", **WITHOUT_BUCKETS)

faulty("too_many_codes", "wide_integers", "fewer codes", model=of_lists, **CODES, **categories(2**32))
settles("fewer_codes", "too_many_codes", **categories(2**20))

faulty("a_fast_look", "fast", "run without --fast", settings={"is_fast": True}, needs_compiler=True)
settles("a_thorough_look", "a_fast_look", settings={})
