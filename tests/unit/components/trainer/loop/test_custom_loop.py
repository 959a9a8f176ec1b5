"""A loop of the user's own drives what surrounds a step as Keras' fit does, and is refused in words."""

from types import SimpleNamespace

import numpy as np
import pytest

from slipway.components.errors import ComponentError

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

STEPS = 3
FACTS = dict.fromkeys(
    ("hyperparameters", "batch_size", "seed", "log_dir", "device", "replicas", "hosts", "host"), None
) | {"strategy": None, "distribution": None, "epochs": 2, "steps_per_epoch": STEPS, "first_step": 0}


@pytest.fixture
def loop():
    """Runs a function through so many steps; returns what the callbacks were told, and the model."""
    import keras
    import tensorflow as tf

    from slipway.components.trainer.loop.custom_loop import OwnLoop

    class Noted(keras.callbacks.Callback):
        def __init__(self, stop_after=None):
            super().__init__()
            self.told, self.stop_after = [], stop_after

        def on_epoch_begin(self, epoch, logs=None):
            self.told.append(f"epoch {epoch} begins")

        def on_train_batch_end(self, batch, logs=None):
            self.told.append((batch, float(logs["loss"])))

        def on_epoch_end(self, epoch, logs=None):
            self.told.append((f"epoch {epoch} ends", logs))
            self.model.stop_training = epoch == self.stop_after

    def call(fit, *, first_step=0, stop_after=None, evaluates=False, optimizer="sgd", metrics=()):
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        if optimizer == "ema":
            optimizer = keras.optimizers.SGD(use_ema=True)
            optimizer.build(model.trainable_variables)
            for average in optimizer._model_variables_moving_average:
                average.assign(keras.ops.full(average.shape, 5.0))
        model.compile(optimizer=optimizer, loss="mse", metrics=[metric() for metric in metrics])
        noted = Noted(stop_after)
        x = tf.ones((4, 2))
        batches = tf.data.Dataset.from_tensors((x, x[:, :1])).repeat()
        loop = OwnLoop(
            model=model,
            batches=batches,
            eval_batches=batches.take(1) if evaluates else None,
            epochs=2,
            steps_per_epoch=STEPS,
            first_step=first_step,
            callbacks=[noted],
            where="mine.fit",
        )
        loop.run(fit, {**FACTS, "first_step": first_step})
        return SimpleNamespace(told=noted.told, model=model)

    return call


def steps_of(loss=lambda step: step):
    def fit(model, data, context):
        for _ in data:
            model.optimizer.iterations.assign_add(1)
            context.step_done(loss(context.step))

    return fit


def test_steps_and_epochs_are_reported_with_the_mean_of_their_losses(loop):
    assert loop(steps_of(float)).told == [
        "epoch 0 begins",
        *[(0, 0.0), (1, 1.0), (2, 2.0)],
        ("epoch 0 ends", {"loss": 1.0}),
        "epoch 1 begins",
        *[(0, 3.0), (1, 4.0), (2, 5.0)],
        ("epoch 1 ends", {"loss": 4.0}),
    ]


def test_attempt_within_an_epoch_takes_the_steps_that_are_left(loop):
    assert loop(steps_of(float), first_step=4).told == [
        "epoch 1 begins",
        *[(0, 4.0), (1, 5.0)],
        ("epoch 1 ends", {"loss": 4.5}),
    ]


def test_keras_own_step_learns_in_it_and_the_epoch_is_evaluated(loop):
    def fit(model, data, context):
        assert (context.steps, context.step) == (6, 0)
        for batch in data:
            context.step_done(model.train_on_batch(*batch))

    found = loop(fit, evaluates=True)
    ends = [each[1] for each in found.told if str(each[0]).endswith("ends")]
    assert ends[1]["val_loss"] < ends[0]["val_loss"]
    assert int(found.model.optimizer.iterations) == 6


def test_a_metric_of_several_numbers_is_evaluated_as_by_keras_own_fit(loop):
    import keras

    class TwoNumbers(keras.metrics.Metric):
        def update_state(self, *_, **__):
            pass

        def result(self):
            return keras.ops.convert_to_tensor([0.25, 0.75])

    found = loop(steps_of(float), evaluates=True, metrics=[lambda: TwoNumbers(name="two")])
    [ends, _] = [each[1] for each in found.told if str(each[0]).endswith("ends")]
    assert (ends["val_two_0"], ends["val_two_1"]) == (0.25, 0.75)


@pytest.mark.parametrize("first_step", [0, 2])
def test_a_loop_may_change_nothing_in_its_first_few_steps(loop, first_step):
    """Of an epoch of few steps, or the rest of one after a restart, gradients may only be summed up."""

    def fit(model, data, context):
        for _ in data:
            if context.step == 3:
                model.optimizer.iterations.assign_add(1)
            context.step_done(1.0)

    assert loop(fit, first_step=first_step).told[-1] == ("epoch 1 ends", {"loss": 1.0})


def test_early_stop_and_a_return_at_the_end_of_an_epoch_end_it(loop):
    assert loop(steps_of(float), stop_after=0).told[-1] == ("epoch 0 ends", {"loss": 1.0})

    def fit(model, data, context):
        for _ in data:
            model.optimizer.iterations.assign_add(1)
            context.step_done(np.float64(1))
            if context.step == STEPS:
                return

    assert loop(fit).told[-1] == ("epoch 0 ends", {"loss": 1.0})


def returns_model(model, data, context):
    steps_of(float)(model, data, context)
    return model


def takes_two(_model, data, _context):
    next(data)
    next(data)


def ends_twice(_model, data, context):
    next(data)
    context.step_done(1.0)
    context.step_done(1.0)


def keeps_its_weights_in_arrays(model, data, context):
    kernel = model.weights[0].numpy()
    for _ in data:
        kernel += 1
        context.step_done(1.0)
    model.weights[0].assign(kernel)


def leaves_early(_model, data, context):
    next(data)
    context.step_done(1.0)


def test_loop_that_is_gone_on_with_at_the_end_of_an_epoch_may_have_nothing_left(loop):
    assert loop(lambda *_: None, first_step=STEPS).told == []


def test_training_that_is_complete_ends_with_the_averages_in_the_weights_place(loop):
    model = loop(None, first_step=2 * STEPS, optimizer="ema").model
    assert model.get_weights()[0].tolist() == [[5.0], [5.0]]


def test_error_of_a_step_is_raised_again_where_the_users_function_went_on(loop):
    seen = []

    def fit(_model, data, context):
        try:
            for _ in data:
                try:
                    context.step_done("low" if context.step == 1 else 1.0)
                except Exception as error:
                    seen.append(str(error))
        except ComponentError as error:
            seen.append(str(error))

    with pytest.raises(ComponentError, match=r"gave context\.step_done str") as raised:
        loop(fit)
    assert seen == [str(raised.value)] * 2, "once at the step, once at the next batch"


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (returns_model, "mine.fit returned Sequential; it changes the model in place"),
        (lambda *_: None, "mine.fit returned without a step"),
        (takes_two, "mine.fit took another batch before it ended step 1"),
        (ends_twice, "mine.fit called context.step_done twice for step 1, or before a batch"),
        (
            keeps_its_weights_in_arrays,
            "mine.fit took 6 steps, and changed no variable of the model or of its",
        ),
        (leaves_early, "mine.fit returned after step 1, within an epoch of 3"),
        (steps_of(lambda _: [1.0, 2.0]), r"gave context.step_done an array of shape \(2,\); the loss of a"),
        (steps_of(lambda _: "low"), "gave context.step_done str; the loss of a step is one number"),
        (steps_of(lambda _: None), "gave context.step_done NoneType"),
    ],
)
def test_what_a_loop_does_wrong_is_reported_in_words(loop, fit, words):
    with pytest.raises(ComponentError, match=words):
        loop(fit)


def test_settings_that_a_loop_cannot_follow_are_refused():
    from slipway.components.trainer.loop.custom_loop import require_custom_loop

    def job(steps):
        return SimpleNamespace(model="mine.build_model", step=SimpleNamespace(steps_per_execution=steps))

    one, several = (SimpleNamespace(strategy=each, words="2 GPUs") for each in (None, object()))
    require_custom_loop(job(None), one)
    with pytest.raises(
        ComponentError, match=r"mine\.fit takes the steps itself and gets whole batches, which"
    ):
        require_custom_loop(job(1), several)
    with pytest.raises(
        ComponentError, match=r"train\.steps_per_execution is 8, and mine.fit takes steps itself"
    ):
        require_custom_loop(job(8), one)
