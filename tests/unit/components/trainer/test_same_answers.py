"""A model that is built anew for the export is the trained one, or it is refused."""

import pytest

from slipway.components.errors import ComponentError
from slipway.components.trainer.features import Feature

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

FEATURES = {
    "a": Feature(name="a", dtype="float32"),
    "b": Feature(name="b", dtype="float32", shape=(3,)),
    "code": Feature(name="code", dtype="int64", categories=5),
    "pixels": Feature(name="pixels", dtype="uint8", shape=(2, 2, 1)),
}


def built(order=("a", "b"), *, dtype="float32", factor=1.0):
    import keras

    class Times(keras.layers.Layer):
        factor = 1.0

        def call(self, given):
            return given * self.factor

    keras.utils.set_random_seed(1)
    given = {
        name: keras.Input(each.shape, name=name, dtype=each.model_dtype) for name, each in FEATURES.items()
    }
    code = keras.layers.Flatten()(keras.layers.Embedding(5, 2, dtype=dtype)(given["code"]))
    pixels = keras.layers.Flatten()(keras.layers.Rescaling(1 / 255)(given["pixels"]))
    together = keras.layers.Concatenate(dtype=dtype)([*(given[name] for name in order), code, pixels])
    hidden = keras.layers.Dense(64, activation="relu", dtype=dtype)(together)
    times = Times(dtype=dtype)
    times.factor = factor
    ends = {name: keras.layers.Dense(2, dtype=dtype, name=name)(times(hidden)) for name in ("one", "two")}
    return keras.Model(given, ends)


def answers(model):
    from slipway.components.trainer.same_answers import ROWS, sample_answers

    found = sample_answers(model, FEATURES, batch_size=ROWS)
    assert [(len(each), len(each[0])) for each in found] == [(ROWS, 2), (ROWS, 2)]
    return found


@pytest.mark.parametrize("changes", [{}, {"dtype": "mixed_bfloat16"}, {"dtype": "mixed_float16"}])
def test_the_same_model_is_taken_whatever_its_precision(changes):
    from slipway.components.trainer.same_answers import require_same_answers

    require_same_answers(answers(built(**changes)), answers(built()), "mine.build_model")


@pytest.mark.parametrize("changes", [{"order": ("b", "a")}, {"factor": 2.0}])
def test_features_in_another_order_and_an_attribute_that_was_set_are_refused(changes):
    from slipway.components.trainer.same_answers import require_same_answers

    trained = built()
    exported = built(**changes)
    exported.set_weights(trained.get_weights())
    with pytest.raises(ComponentError, match=r"not the trained one: to the same 16 made-up rows it answers"):
        require_same_answers(answers(trained), answers(exported), "mine.build_model")


def test_a_model_that_does_not_take_made_up_rows_is_not_asked():
    import keras

    from slipway.components.trainer.same_answers import require_same_answers, sample_answers

    class Strict(keras.Model):
        def call(self, given):
            raise ValueError("not such rows")

    assert sample_answers(Strict(), FEATURES, batch_size=8) == []
    require_same_answers([], answers(built()), "mine.build_model")


def test_a_model_that_draws_random_numbers_is_not_asked():
    import keras

    from slipway.components.trainer.same_answers import sample_answers

    class Drawn(keras.layers.Layer):
        def call(self, given):
            return given + keras.random.normal(keras.ops.shape(given), seed=self.seeds)

        def build(self, shape):
            self.seeds = keras.random.SeedGenerator(1)

    given = {"a": keras.Input((1,), name="a")}
    drawn = keras.Model(given, Drawn()(keras.layers.Dense(1)(given["a"])))
    assert sample_answers(drawn, {"a": FEATURES["a"]}, batch_size=8) == []


def test_no_more_rows_at_once_are_asked_than_it_was_trained_with():
    import keras

    from slipway.components.trainer.same_answers import ROWS, sample_answers

    at_once = []

    class Counted(keras.Model):
        def call(self, given):
            at_once.append(given["a"].shape[0])
            return given["a"]

    parts = sample_answers(Counted(), {"a": FEATURES["a"]}, batch_size=7)
    assert max(at_once) == 7
    assert parts == sample_answers(Counted(), {"a": FEATURES["a"]}, batch_size=100)
    assert max(at_once) == ROWS


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_a_class_so_rare_that_its_probability_is_all_rounding_is_none_of_another_model(dtype):
    import keras

    from slipway.components.trainer.same_answers import require_same_answers, sample_answers

    def sure(policy):
        keras.utils.set_random_seed(3)
        given = {"b": keras.Input((3,), name="b")}
        hidden = keras.layers.Dense(64, activation="relu", dtype=policy)(given["b"])
        rare = keras.initializers.Constant([0.0, -18.3, -43.1])
        small = keras.initializers.RandomNormal(stddev=0.001)
        ends = keras.layers.Dense(3, "softmax", bias_initializer=rare, kernel_initializer=small, dtype=policy)
        return keras.Model(given, ends(hidden))

    features = {"b": FEATURES["b"]}
    trained, exported = (sample_answers(sure(each), features, batch_size=8) for each in (dtype, "float32"))
    assert trained
    require_same_answers(trained, exported, "mine.build_model")
