"""Callbacks of the user's own module: found, checked, and what they may not be said in words."""

import pytest

from slipway.components.errors import ComponentError

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture
def found(tmp_path, monkeypatch, request):
    """What the function of a module with that source returns for the context "facts"."""
    monkeypatch.syspath_prepend(tmp_path)

    def call(source):
        from slipway.components.trainer.loop.custom_callbacks import custom_callbacks

        name = f"called_back_{abs(hash(source))}"
        (tmp_path / f"{name}.py").write_text(f"import keras\n{source}\n")
        return custom_callbacks(f"{name}.build_model", "facts")

    return call


def test_callbacks_are_made_with_the_facts_of_the_training(found):
    [made] = found(
        "def callbacks(context):\n    return [keras.callbacks.LambdaCallback(on_epoch_end=context)]"
    )
    assert made.on_epoch_end == "facts"
    assert found("def build_model(features, hyperparameters): ...") == []


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ("None", r"\.callbacks must return a list of Keras callbacks, not NoneType"),
        ("[keras.callbacks.EarlyStopping]", "returns EarlyStopping, which is not a Keras callback"),
        (
            "[keras.callbacks.BackupAndRestore('backup')]",
            "BackupAndRestore, which begins from its own backup",
        ),
        (
            "[keras.callbacks.SwapEMAWeights(swap_on_epoch=True)]",
            r"SwapEMAWeights\(swap_on_epoch=True\), which leaves the averages in the model",
        ),
        ("[print]", "returns builtin_function_or_method, which is not a Keras callback"),
    ],
)
def test_what_is_no_list_of_callbacks_is_refused(found, returned, words):
    with pytest.raises(ComponentError, match=words):
        found(f"def callbacks(context):\n    return {returned}")


@pytest.mark.parametrize(
    ("rate", "warmup_steps", "words"),
    [
        (0.1, 0, None),
        (0.1, 5, r"sets the learning rate, but train\.learning_rate\.warmup_steps makes a schedule of it"),
        (
            "schedule",
            0,
            "ReduceLROnPlateau sets the learning rate, but the model is compiled with a schedule",
        ),
    ],
)
def test_a_callback_that_sets_a_rate_which_is_a_schedule_is_refused_before_it_does(rate, warmup_steps, words):
    import keras

    from slipway.components.trainer.learning_rate import scale_learning_rate
    from slipway.components.trainer.loop.custom_callbacks import require_settable_rate
    from slipway.components.trainer.settings.learning_rate import LearningRateSettings

    if rate == "schedule":
        rate = keras.optimizers.schedules.CosineDecay(0.1, 10)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(rate), "mse")
    scale_learning_rate(model, LearningRateSettings(warmup_steps=warmup_steps), batch_size=4)
    require_settable_rate([keras.callbacks.TerminateOnNaN()], model)
    if words is None:
        require_settable_rate([keras.callbacks.ReduceLROnPlateau()], model)
        return
    with pytest.raises(ComponentError, match=words):
        require_settable_rate([keras.callbacks.ReduceLROnPlateau()], model)


def test_callbacks_that_do_something_at_each_step_are_known():
    import keras

    from slipway.components.trainer.loop.custom_callbacks import sees_steps

    class Old(keras.callbacks.Callback):
        def on_batch_end(self, batch, logs=None):
            pass

    made = keras.callbacks
    assert not any(map(sees_steps, [made.Callback(), made.ReduceLROnPlateau(), made.EarlyStopping()]))
    assert not sees_steps(made.LambdaCallback(on_epoch_end=print))
    assert all(map(sees_steps, [made.TerminateOnNaN(), made.LambdaCallback(on_train_batch_end=print), Old()]))


def test_what_callbacks_forget_over_a_resumption_is_said_of_those_that_choose_what_is_exported():
    import keras

    from slipway.components.trainer.loop.custom_callbacks import words_of_forgotten

    made = keras.callbacks
    assert words_of_forgotten([made.SwapEMAWeights(), made.ReduceLROnPlateau()]) == ""
    assert words_of_forgotten([made.EarlyStopping()]).startswith("Keras' EarlyStopping has forgotten")
