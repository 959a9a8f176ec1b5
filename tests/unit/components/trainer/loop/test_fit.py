"""A fit that goes on within an epoch comes to the weights of one that was not interrupted.

And what callbacks of the user see and ask for.
"""

import importlib
import sys
import textwrap
import time

import numpy as np
import pytest
from small_job import small_job

from slipway.components.errors import ComponentError
from slipway.components.trainer.devices.devices import Devices
from slipway.components.trainer.devices.hosts import Hosts
from slipway.components.trainer.loop.preemption import Preemption
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.early_stopping import EarlyStoppingSettings

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

STEPS = 4


def fitted(folder, optimizer, hosts, *, epochs=3, loop=None, **checkpoint):
    """The weights after the epochs, from the newest checkpoint in the folder on.

    With the module of a loop, this takes the steps.
    """
    import keras
    import tensorflow as tf

    from slipway.components.trainer.loop.fit import Input, fit

    job = small_job(
        model=f"{loop or 'keras'}.build_model",
        batch_size=2,
        epochs=epochs,
        output_dir=str(folder),
        checkpoint_dir=str(folder),
        checkpoint=CheckpointSettings(steps=2, keep=10, **checkpoint),
    )
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    model.compile(optimizer(), "mse", jit_compile=False)
    model.set_weights([np.array([[0.25]])])
    rows = np.random.default_rng(1).normal(size=(3 * STEPS, 2, 1)).astype("float32")
    data = Input(
        steps_per_epoch=STEPS,
        in_blocks=False,
        wait=None,
        batches_from=lambda step, _: tf.data.Dataset.from_tensor_slices((rows[step:], 3 * rows[step:])),
        eval_batches=None,
        is_custom_loop=loop is not None,
    )
    devices = Devices(kind="cpu", backend="tensorflow", words="", hosts=hosts)
    fit(model, job, data, Preemption(), began_at=time.time(), devices=devices)
    return model.get_weights()


def sgd():
    import keras

    return keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)


def scaled():
    import keras

    return keras.optimizers.LossScaleOptimizer(sgd())


def several():
    import keras

    return keras.optimizers.MultiOptimizer(keras.optimizers.OptimizerMap(sgd()))


@pytest.mark.parametrize("optimizer", [sgd, scaled, several])
@pytest.mark.parametrize("hosts", [Hosts(), Hosts(index=1, count=2)], ids=["alone", "second of two hosts"])
def test_weights_are_averaged_at_the_end_only(tmp_path, optimizer, hosts):
    undisturbed = fitted(tmp_path, optimizer, Hosts())
    for later in [each for each in tmp_path.glob("step-*") if int(each.stem[5:]) > 2]:
        later.unlink()
    assert max(int(each.stem[5:]) for each in tmp_path.glob("step-*")) == 2
    np.testing.assert_array_equal(fitted(tmp_path, optimizer, hosts), undisturbed)


@pytest.mark.parametrize("optimizer", [sgd, scaled, several])
def test_best_epoch_s_weights_are_averaged_as_those_of_a_last_one(tmp_path, optimizer):
    """The loss of the third epoch is worse than that of the second."""
    (tmp_path / "last").mkdir()
    (tmp_path / "best").mkdir()
    last = fitted(tmp_path / "last", optimizer, Hosts(), epochs=2)
    best = fitted(tmp_path / "best", optimizer, Hosts(), serve_best=True, best_metric="loss")
    np.testing.assert_array_equal(best, last)


LOOP = """
    def fit(model, data, context):
        for batch in data:
            context.step_done(model.train_on_batch(*batch, return_dict=True)["loss"])
"""


def test_best_epoch_s_weights_are_averaged_after_a_loop_of_the_user_s_own(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "averaged_loop.py").write_text(textwrap.dedent(LOOP))
    (tmp_path / "last").mkdir()
    (tmp_path / "best").mkdir()
    last = fitted(tmp_path / "last", sgd, Hosts(), epochs=2, loop="averaged_loop")
    best = fitted(tmp_path / "best", sgd, Hosts(), loop="averaged_loop", serve_best=True, best_metric="loss")
    np.testing.assert_array_equal(best, last)


def one_output():
    import keras

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    return model


def two_outputs():
    import keras

    given = keras.Input((1,))
    model = keras.Model(given, {name: keras.layers.Dense(1, name=name)(given) for name in ("a", "b")})
    model.compile("sgd", {"a": "mse", "b": "mae"}, jit_compile=False)
    return model


def fit_it(
    folder, model, *, in_one_call=1, order="", evaluated=True, dotted_path="keras.build_model", **changes
):
    """The state after three epochs, from the newest checkpoint in the folder on."""
    import keras
    import tensorflow as tf

    from slipway.components.trainer.loop.fit import Input, fit

    keras.utils.set_random_seed(1)
    model = model()
    model.steps_per_execution = in_one_call
    job = small_job(
        **{
            "model": dotted_path,
            "batch_size": 2,
            "epochs": 3,
            "output_dir": str(folder),
            "checkpoint_dir": str(folder),
            "checkpoint": CheckpointSettings(steps=2, keep=10),
            **changes,
        }
    )
    rows = np.random.default_rng(1).normal(size=(3 * STEPS, 2, 1)).astype("float32")
    names = getattr(model, "output_names", [])

    def label(x):
        return 3 * x if len(names) < 2 else {"a": 3 * x, "b": -x}

    def batches(step):
        return tf.data.Dataset.from_tensor_slices((rows[step:], label(rows[step:])))

    data = Input(
        steps_per_epoch=STEPS,
        in_blocks=False,
        wait=None,
        batches_from=lambda step, _: batches(step),
        eval_batches=batches(0) if evaluated else None,
        order=order,
    )
    devices = Devices(kind="cpu", backend="tensorflow", words="")
    reached, _ = fit(model, job, data, Preemption(), began_at=time.time(), devices=devices)
    return reached


def without(folder, *, after):
    """Removes the checkpoints after a step, as if the training had been killed there."""
    for later in [each for each in folder.glob("step-*") if int(each.stem[5:]) > after]:
        later.unlink()


def test_losses_of_several_outputs_are_those_of_the_whole_epoch_after_a_restart_within_it(tmp_path):
    undisturbed = fit_it(tmp_path, two_outputs)
    without(tmp_path, after=STEPS + 2)
    resumed = fit_it(tmp_path, two_outputs)
    assert resumed.history[1]["a_loss"] == pytest.approx(undisturbed.history[1]["a_loss"])
    assert resumed.history[1]["loss"] == pytest.approx(undisturbed.history[1]["loss"])


CALLBACKS = """
    import keras

    SEEN = []

    class {name}(keras.callbacks.Callback):
        {body}

    def callbacks(context):
        return [{name}()]
"""


def written(tmp_path, monkeypatch, name, body):
    """Writes a module with a callback; returns the dotted path of its `build_model` and what it saw."""
    monkeypatch.syspath_prepend(tmp_path)
    text = textwrap.dedent(CALLBACKS).format(name=name, body=body)
    module = f"{name.lower()}_module"
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.delitem(sys.modules, module, raising=False)  # that of this test in another folder
    return f"{module}.build_model", importlib.import_module(module).SEEN


def test_a_callback_for_steps_is_called_at_each_of_them(tmp_path, monkeypatch):
    body = "on_train_batch_end = lambda self, batch, logs=None: SEEN.append(batch)"
    path, seen = written(tmp_path, monkeypatch, "Each", body)
    fit_it(tmp_path, one_output, in_one_call=4, dotted_path=path, checkpoint_dir=None)
    assert seen == [*range(STEPS)] * 3


def test_a_callback_for_epochs_alone_leaves_several_steps_in_a_call(tmp_path, monkeypatch):
    path, seen = written(
        tmp_path,
        monkeypatch,
        "Ends",
        "on_epoch_end = lambda self, epoch, logs=None: SEEN.append(self.model.steps_per_execution)",
    )
    fit_it(tmp_path, one_output, in_one_call=4, dotted_path=path, checkpoint_dir=None)
    assert seen == [4] * 3


def test_a_callback_that_stops_within_an_epoch_ends_the_training_at_its_end(tmp_path, monkeypatch):
    body = (
        "on_train_batch_end = lambda self, batch, logs=None: SEEN.append(batch) or "
        "setattr(self.model, 'stop_training', self.model.stop_training or len(SEEN) == 6)"
    )
    path, seen = written(tmp_path, monkeypatch, "Stops", body)
    reached = fit_it(tmp_path, one_output, dotted_path=path)
    assert len(seen) == reached.step == 2 * STEPS
    assert [each["epoch"] for each in reached.history] == [1, 2]


@pytest.mark.parametrize(
    ("done", "words"),
    [
        ("setattr(self.model.layers[0], 'trainable', False)", "changed which weights are trained"),
        ("self.model.compile('sgd', 'mse')", "compiled the model"),
    ],
)
def test_what_keras_fit_would_not_see_of_a_callback_is_refused(tmp_path, monkeypatch, done, words):
    body = f"on_epoch_end = lambda self, epoch, logs=None: {done}"
    path, _ = written(tmp_path, monkeypatch, "Thaws", body)
    with pytest.raises(ComponentError, match=f"a callback {words}.* after epoch 1, within Keras' fit"):
        fit_it(tmp_path, one_output, dotted_path=path)


def adversarial():
    """Freezes a part of itself in its own step, as GANs do."""
    import keras

    class Adversarial(keras.Sequential):
        def train_step(self, data):
            self.layers[0].trainable = False
            return super().train_step(data)

    model = Adversarial([keras.Input((1,)), keras.layers.Dense(1), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    return model


def late():
    """Makes a part of its weights in the first step."""
    import keras

    class Late(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.later = keras.layers.Dense(1), keras.layers.Dense(1)

        def call(self, given, training=None):
            told = self.first(given)
            return self.later(told) if training else told

    model = Late()
    model(keras.KerasTensor((None, 1)))
    model.compile("sgd", "mse", jit_compile=False)
    return model


@pytest.mark.parametrize("model", [adversarial, late])
def test_what_a_model_changes_by_itself_is_taken_for_no_callback_s(tmp_path, model):
    assert len(fit_it(tmp_path, model).history) == 3


SCHEDULES = (
    "on_{when}_begin = lambda self, *_, **__: "
    "setattr(self.model.optimizer, 'learning_rate', keras.optimizers.schedules.CosineDecay(0.1, 12)) "
    "if {condition} else None"
)


def test_a_schedule_that_a_callback_sets_is_gone_on_with(tmp_path, monkeypatch):
    path, _ = written(tmp_path, monkeypatch, "Cosine", SCHEDULES.format(when="train", condition="True"))
    undisturbed = fit_it(tmp_path, one_output, dotted_path=path).history
    without(tmp_path, after=STEPS)
    assert fit_it(tmp_path, one_output, dotted_path=path).history == undisturbed


def test_a_schedule_that_no_callback_sets_again_is_missed(tmp_path, monkeypatch):
    body = SCHEDULES.format(when="epoch", condition="not SEEN and SEEN.append(1) is None")
    path, _ = written(tmp_path, monkeypatch, "Once", body)
    fit_it(tmp_path, one_output, dotted_path=path)
    without(tmp_path, after=STEPS)
    with pytest.raises(ComponentError, match="no callback has set it again"):
        fit_it(tmp_path, one_output, dotted_path=path)


@pytest.mark.parametrize("changes", [{"order": "file"}, {"order": ""}, {"order": "memory"}])
def test_rows_in_another_order_are_not_gone_on_with_within_an_epoch(tmp_path, changes):
    fit_it(tmp_path, one_output, order="memory")
    without(tmp_path, after=STEPS)
    fit_it(tmp_path, one_output, **changes)  # at the end of an epoch it does not matter
    without(tmp_path, after=STEPS)
    fit_it(tmp_path, one_output, order="memory")
    without(tmp_path, after=STEPS + 2)
    if changes["order"] != "file":
        fit_it(tmp_path, one_output, **changes)
        return
    with pytest.raises(
        ComponentError, match="after step 6 is within an epoch of rows in another order: memory, and now file"
    ):
        fit_it(tmp_path, one_output, **changes)


def without_number():
    import keras

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[lambda label, _: label * float("nan")], jit_compile=False)
    return model


@pytest.mark.parametrize(
    ("changes", "epochs"),
    [
        ({"early_stopping": EarlyStoppingSettings(patience=2)}, 2),
        ({"checkpoint": CheckpointSettings(serve_best=True, best_metric="val_lambda")}, 3),
    ],
)
def test_a_best_epoch_by_a_metric_that_is_never_a_number_is_refused(tmp_path, capsys, changes, epochs):
    best = CheckpointSettings(
        **{**changes.get("checkpoint", CheckpointSettings()).to_json(), "best_metric": "val_lambda"}
    )
    with pytest.raises(
        ComponentError, match=r"best_metric \(val_lambda\) was no number in any epoch, and train"
    ):
        fit_it(tmp_path, without_number, **{**changes, "checkpoint": best})
    assert capsys.readouterr().out.count('"event": "epoch"') == epochs
