"""The training process on real files: it trains, repeats itself, fails in words and dies with its parent."""

import json
import os
import random
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import psutil
import pytest
from small_job import small_job

from slipway.components.errors import ComponentError
from slipway.components.event_lines import read_event
from slipway.components.trainer.features import Feature
from slipway.components.trainer.launch import TrainingProcess, launch
from slipway.components.trainer.result import TrainingPreemptedError
from slipway.components.trainer.settings.checkpoint import CheckpointSettings
from slipway.components.trainer.settings.compute import ComputeSettings
from slipway.components.trainer.settings.early_stopping import EarlyStoppingSettings
from slipway.components.trainer.settings.input_cache import InputSettings
from slipway.components.trainer.settings.pretrained import sha256_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("forked"),
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

MODEL = """
    import keras

    def build_model(features, hyperparameters):
        inputs = {name: keras.Input(feature.shape, name=name) for name, feature in features.items()}
        hidden = keras.layers.Dropout(0.2)(inputs["x"])
        model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
        rate = hyperparameters.get("learning_rate", 0.1)
        model.compile(optimizer=keras.optimizers.SGD(rate), loss="mse")
        return model

    def uncompiled(features, hyperparameters):
        return keras.Sequential([keras.layers.Dense(1)])

    def wrong(features, hyperparameters):
        return features["no such feature"]

    def with_state(features, hyperparameters):
        # All sorts of state: bfloat16, moving averages, a seed generator, an optimizer's moments.
        import tensorflow as tf

        tf.config.experimental.enable_op_determinism()
        inputs = {name: keras.Input(feature.shape, name=name) for name, feature in features.items()}
        hidden = keras.layers.Dense(8, activation="relu", dtype="bfloat16")(inputs["x"])
        hidden = keras.layers.Dropout(0.3)(keras.layers.BatchNormalization()(hidden))
        model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
        rate = hyperparameters.get("learning_rate", 0.001)
        model.compile(optimizer=keras.optimizers.Adam(rate), loss="mse", metrics=["mae"])
        return model
"""


@pytest.fixture
def job(tmp_path):
    """A training of a moment; see `job_in`."""
    return job_in(tmp_path)


def job_in(tmp_path):
    """Two files, one of them gzip, of 50 rows in all, y = 2 x; and a model in a module beside them."""
    import tensorflow as tf

    files = []
    for number, (suffix, compression) in enumerate([("", ""), (".gz", "GZIP")]):
        files.append(str(tmp_path / f"rows-{number}{suffix}"))
        with tf.io.TFRecordWriter(files[-1], compression) as writer:
            for row in range(25):
                x = (row - 12 + number / 2) / 12
                example = tf.train.Example()
                example.features.feature["x"].float_list.value.append(x)
                example.features.feature["y"].float_list.value.append(2 * x)
                writer.write(example.SerializeToString())
    (tmp_path / "tiny_model.py").write_text(textwrap.dedent(MODEL))
    return small_job(
        train_files=tuple(files),
        eval_files=tuple(files),
        model="tiny_model.build_model",
        batch_size=16,
        epochs=4,
        seed=3,
        output_dir=str(tmp_path),
    )


def run(job, tmp_path, **changes):
    """Carries out the job with some of its values changed; returns the result and the lines."""
    values = {**json.loads(job.to_json()), **changes}
    file = tmp_path / "job.json"
    file.write_text(json.dumps(values), encoding="utf-8")
    lines = []
    with TrainingProcess(file, import_roots=[tmp_path]) as process:
        return process.wait(show=lines.append), lines


OWN_FIT = """
    import keras
    import numpy as np

    def build_model(features, hyperparameters):
        inputs = {name: keras.Input(feature.shape, name=name) for name, feature in features.items()}
        model = keras.Model(inputs, keras.layers.Dense(1, name="linear")(inputs["x"]))
        model.compile(loss="mse")
        return model

    def fit(model, rows, hyperparameters):
        x = np.hstack([np.ones((len(rows.labels), 1)), *(rows.values[name] for name in rows.features)])
        weights = np.linalg.lstsq(x, rows.labels.reshape(-1), rcond=None)[0]
        model.get_layer("linear").set_weights([weights[1:, None], weights[:1]])
        rows.tell("solved")
"""


def test_a_model_with_a_fit_of_its_own_is_fitted_to_all_rows_at_once(job, tmp_path):
    (tmp_path / "solved.py").write_text(textwrap.dedent(OWN_FIT))
    result, lines = run(job, tmp_path, model="solved.build_model")
    assert (result["train_rows"], result["steps"], result["epoch"]) == (50, 1, 1)
    assert result["metrics"]["val_loss"] < 1e-9
    assert result["verdict"].endswith("s: solved")
    history = json.loads((tmp_path / "history.json").read_text())["epochs"]
    assert history == [{"epoch": 1, **result["metrics"]}]
    assert (tmp_path / "model.weights.h5").exists()
    assert [event["message"] for event in map(json.loads, lines) if event["event"] == "fit"] == ["solved"]


OWN_LOOP = """
    import os
    import signal
    from pathlib import Path

    import keras
    import tensorflow as tf

    HERE = Path(__file__).parent

    def build_model(features, hyperparameters, pretrained):
        inputs = {name: keras.Input(feature.shape, name=name) for name, feature in features.items()}
        model = keras.Model(inputs, keras.layers.Dense(1, name="linear")(inputs["x"]))
        if pretrained is not None:
            model.load_weights(pretrained)
        model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse")
        return model

    class Noted(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            with (HERE / "epochs").open("a") as file:
                file.write(f"{epoch}\\n")

    def callbacks(context):
        assert (context.steps_per_epoch, context.batch_size, context.device) == (3, 16, "cpu")
        return [Noted()]

    def fit(model, data, context):
        if context.first_step == 0:
            assert float(model.get_layer("linear").kernel[0, 0]) == 7, "the pretrained weight"
        for features, label in data:
            with tf.GradientTape() as tape:
                loss = keras.ops.mean(keras.ops.square(model(features, training=True) - label))
            gradients = tape.gradient(loss, model.trainable_variables)
            model.optimizer.apply(gradients, model.trainable_variables)
            if context.step + 1 == context.hyperparameters.get("told_to_end") and not context.first_step:
                os.kill(os.getpid(), signal.SIGTERM)
            context.step_done(loss)
"""


def test_a_loop_of_the_users_own_is_kept_told_to_end_and_gone_on_with(job, tmp_path):
    (tmp_path / "looped.py").write_text(textwrap.dedent(OWN_LOOP))
    changes = {"model": "looped.build_model", "pretrained": _pretrained(tmp_path)}
    undisturbed, _ = run(job, tmp_path, **changes)
    assert (undisturbed["steps"], undisturbed["speed"]["constant_batch_step_ms"]) == (12, None)
    assert undisturbed["metrics"]["val_loss"] < undisturbed["metrics"]["loss"] < 15
    expected = _trained_weights(tmp_path)
    changes["hyperparameters"] = {"told_to_end": 5}
    (tmp_path / "kept").mkdir()
    changes["checkpoint_dir"] = str(tmp_path / "kept")
    with pytest.raises(TrainingPreemptedError, match="ended after step 5"):
        run(job, tmp_path, **changes)
    resumed, lines = run(job, tmp_path, **changes)
    assert [e["step"] for e in map(read_event, lines) if e and e["event"] == "resumed"] == [5]
    assert _trained_weights(tmp_path) == pytest.approx(expected, abs=1e-6)
    assert resumed["metrics"]["val_loss"] == pytest.approx(undisturbed["metrics"]["val_loss"])
    assert (tmp_path / "epochs").read_text().split() == [*"0123", *"0", *"123"]


LOWERED = """
    class Noted(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            with (HERE / "rates").open("a") as file:
                file.write(f"{float(self.model.optimizer.learning_rate):.3g}\\n")

        def on_epoch_end(self, epoch, logs=None):
            self.model.optimizer.learning_rate = 0.5 * float(self.model.optimizer.learning_rate)
"""


def test_what_a_callback_changes_and_the_averages_outlast_a_restart_at_an_epochs_end(job, tmp_path):
    own = OWN_LOOP.replace("Adam(0.05)", "Adam(0.05, use_ema=True)")
    (tmp_path / "looped.py").write_text(textwrap.dedent(own) + textwrap.dedent(LOWERED))
    (tmp_path / "kept").mkdir()
    changes = {"model": "looped.build_model", "pretrained": _pretrained(tmp_path), "epochs": 2}
    changes |= {"checkpoint_dir": str(tmp_path / "kept"), "hyperparameters": {"told_to_end": 3}}
    with pytest.raises(TrainingPreemptedError, match="ended after step 3"):
        run(job, tmp_path, **changes)
    run(job, tmp_path, **changes)
    averages = _trained_weights(tmp_path)
    run(job, tmp_path, **changes)  # from the checkpoint after the last step
    assert _trained_weights(tmp_path) == averages
    assert (tmp_path / "rates").read_text().split() == ["0.05", "0.025", "0.0125"]


def _pretrained(folder):
    weights = folder / "before.weights.h5"
    with h5py.File(weights, "w") as file:
        file["layers/dense/vars/0"], file["layers/dense/vars/1"] = [[7.0]], [0.0]
    return {"path": str(weights), "sha256": sha256_of(weights)}


def _trained_weights(folder):
    with h5py.File(folder / "model.weights.h5") as file:
        return [float(file[f"layers/dense/vars/{number}"][()].reshape(-1)[0]) for number in (0, 1)]


def test_training_learns_and_leaves_weights_history_and_result(job, tmp_path):
    result, lines = run(job, tmp_path)
    assert (result["train_rows"], result["eval_rows"], result["steps"]) == (50, 50, 4 * (50 // 16))
    history = json.loads((tmp_path / "history.json").read_text())["epochs"]
    assert [epoch["epoch"] for epoch in history] == [1, 2, 3, 4]
    assert history[-1]["val_loss"] < 0.5 * history[0]["val_loss"]
    assert json.loads((tmp_path / "result.json").read_text()) == result
    assert 0 <= result["speed"]["input_waiting_share"] <= 1
    assert result["speed"]["constant_batch_step_ms"] is None  # counted, not compared
    assert (tmp_path / "model.weights.h5").stat().st_size > 0
    assert not list(tmp_path.glob("unfinished.*"))
    events = [json.loads(line)["event"] for line in lines if line.startswith("{")]
    assert (events[:2], events.count("epoch"), events[-1]) == (["devices", "start"], 4, "done")


def test_same_seed_gives_the_same_history_and_another_seed_another(job, tmp_path):
    histories = [
        run(job, tmp_path, seed=seed) and (tmp_path / "history.json").read_text() for seed in (3, 3, 4)
    ]
    assert histories[0] == histories[1] != histories[2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"model": "tiny_model.wrong"},
            "tiny_model.py, line 16: KeyError: features has no 'no such feature'; features has x",
        ),
        (
            {"model": "tiny_model.uncompiled"},
            r"\(tiny_model.py, line \d+\) returns a model that is not compiled",
        ),
        ({"model": "tiny_model.absent"}, "tiny_model has no function absent"),
        ({"batch_size": 64}, r"train.batch_size \(64\) is larger than the 50 training examples"),
        ({"hyperparameters": {"learning_rate": 1e30}}, "the loss is (nan|inf) after epoch"),
        ({"label": "z"}, "label 'z' is not a transformed feature"),
    ],
)
def test_failure_is_reported_in_its_own_words(job, tmp_path, changes, words):
    with pytest.raises(ComponentError, match=words):
        run(job, tmp_path, **changes)
    assert not (tmp_path / "result.json").exists()


def test_examples_without_a_feature_are_refused(job, tmp_path):
    features = [{**feature.to_json(), "name": name} for feature, name in zip(job.features, "wy", strict=True)]
    with pytest.raises(ComponentError, match="does not have the transformed features"):
        run(job, tmp_path, features=features)


@pytest.fixture
def long_job(tmp_path):
    """A training that keeps its steps; see `long_job_in`."""
    return long_job_in(tmp_path)


def long_job_in(tmp_path):
    """10 epochs of 25 steps of a model with all sorts of state, kept every five steps and every epoch."""
    (tmp_path / "kept").mkdir()
    return replace(
        job_in(tmp_path),
        model="tiny_model.with_state",
        batch_size=2,
        epochs=10,
        checkpoint_dir=str(tmp_path / "kept"),
        checkpoint=CheckpointSettings(steps=5),
    )


EPOCH_STEPS = 25
LONG_STEPS = 10 * EPOCH_STEPS
MEASURED = ("fit_s", "examples_per_s", "speed", "time", "machine", "verdict")


def what_it_left(tmp_path):
    """Every array in the weights file, and the two texts; but for what was measured in the result."""
    import h5py

    arrays = {}
    with h5py.File(tmp_path / "model.weights.h5") as file:
        file.visititems(lambda name, item: arrays.update({name: item}))
        arrays = {name: item[()].tobytes() for name, item in arrays.items() if hasattr(item, "shape")}
    result = json.loads((tmp_path / "result.json").read_text())
    for name in MEASURED:
        del result[name]
    return arrays, (tmp_path / "history.json").read_text(), result


def events(lines, kind):
    return [event for line in lines if (event := read_event(line)) and event["event"] == kind]


def end_it(job, tmp_path, *, signum, step):
    """Carries out the job, sends the signal soon after that step is kept; returns its last step or words."""
    file = tmp_path / "job.json"
    file.write_text(job.to_json(), encoding="utf-8")
    kept = Path(job.checkpoint_dir)

    def when_kept():
        while not any(int(path.stem[5:]) >= step for path in kept.glob("step-*.json")):
            time.sleep(0.001)
        time.sleep(random.uniform(0, 0.01))  # noqa: S311
        os.kill(process.pid, signum)

    with TrainingProcess(file, import_roots=[tmp_path]) as process:
        watcher = threading.Thread(target=when_kept)
        watcher.start()
        try:
            process.wait(show=print)
        except TrainingPreemptedError as error:
            return error.step
        except ComponentError as error:
            return error.message
        finally:
            watcher.join()
    raise AssertionError("it came to its end")


@pytest.fixture(scope="module")
def undisturbed(forked, tmp_path_factory):
    """The result of the long training without interruption or step checkpoints."""
    folder = tmp_path_factory.mktemp("undisturbed")
    run(long_job_in(folder), folder, checkpoint_dir=None)
    left = what_it_left(folder)
    assert any(name.startswith("optimizer") for name in left[0])
    return left


@pytest.fixture(scope="module")
def killed(forked, tmp_path_factory):
    """The folder of the long training that was killed twice and then came to its end; and what that told."""
    folder = tmp_path_factory.mktemp("killed")
    long_job = long_job_in(folder)
    for first, last in ((5, 90), (120, 200)):
        step = random.randint(first, last)  # noqa: S311
        print("killed after step", step)
        said = end_it(long_job, folder, signum=signal.SIGKILL, step=step)
        assert said.endswith("by SIGKILL (out of memory?)")
    assert not (folder / "result.json").exists()
    result, lines = run(long_job, folder)
    [resumed] = events(lines, "resumed")
    assert resumed["step"] >= step
    return SimpleNamespace(folder=folder, job=long_job, result=result, lines=lines, resumed=resumed)


@pytest.mark.external  # at random; a process that leaves at a given step is seen below
def test_training_killed_at_any_step_goes_on_to_the_same_weights_and_history(undisturbed, killed):
    assert what_it_left(killed.folder) == undisturbed
    epochs = [event["epoch"] for event in events(killed.lines, "epoch")]
    assert epochs == list(range(killed.resumed["epoch"] + 1, 11))
    assert killed.result["time"]["restarts"] == 2
    assert "with 2 restarts" in killed.result["verdict"]


@pytest.mark.external  # after the same kills; of damage alone tells .../trainer/loop/test_resume.py
def test_damaged_checkpoint_is_reported_and_the_one_before_leads_to_the_same(undisturbed, killed):
    newest = killed.folder / "kept" / f"step-{LONG_STEPS:09d}.npz"
    newest.write_bytes(newest.read_bytes()[:-100])
    _, lines = run(killed.job, killed.folder)
    assert events(lines, "damaged")[0]["message"].endswith(f"{newest.name} is damaged")
    assert LONG_STEPS - 5 <= events(lines, "resumed")[0]["step"] < LONG_STEPS
    assert what_it_left(killed.folder) == undisturbed
    # Killed after its last epoch, before its result was taken: nothing is trained again.
    _, lines = run(killed.job, killed.folder)
    assert (events(lines, "resumed")[0]["step"], events(lines, "epoch")) == (LONG_STEPS, [])
    assert what_it_left(killed.folder) == undisturbed


@pytest.mark.external  # at random; a SIGTERM soon after the first kept step is seen below
def test_sigterm_saves_the_step_it_strikes_at_and_leaves_with_its_own_code(long_job, tmp_path):
    # Without an evaluation, which takes most of the time here, it strikes in the middle of an epoch.
    long_job = replace(long_job, eval_files=())
    run(long_job, tmp_path, checkpoint_dir=None)
    undisturbed = what_it_left(tmp_path)
    before = 0
    for first, last in ((1, 90), (120, 200)):
        step = random.randint(first, last)  # noqa: S311
        print("told to end after step", step)
        left_at = end_it(long_job, tmp_path, signum=signal.SIGTERM, step=step)
        assert left_at > before
        assert (tmp_path / "kept" / f"step-{left_at:09d}.json").exists()
        before = left_at
    _, lines = run(long_job, tmp_path)
    assert [event["step"] for event in events(lines, "resumed")] == [left_at]
    assert what_it_left(tmp_path) == undisturbed


def test_training_process_that_leaves_is_started_again_and_comes_to_the_same(
    undisturbed, long_job, warm, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)

    def tell_it_to_end():
        while not list(Path(long_job.checkpoint_dir).glob("step-*.json")):
            time.sleep(0.001)
        [training] = psutil.Process(warm.pid).children()
        training.terminate()

    watcher = threading.Thread(target=tell_it_to_end)
    made, result = launch(long_job, interpreter=None, meanwhile=lambda: watcher.start() or "made")
    watcher.join()
    assert (made, result["time"]["restarts"]) == ("made", 1)
    assert what_it_left(Path(long_job.output_dir)) == undisturbed


def test_sigterm_before_anything_is_trained_ends_at_once(long_job, tmp_path):
    (tmp_path / "tiny_model.py").write_text("print('waiting', flush=True)\nimport time\ntime.sleep(300)\n")
    file = tmp_path / "job.json"
    file.write_text(long_job.to_json(), encoding="utf-8")
    with (
        TrainingProcess(file, import_roots=[tmp_path]) as process,
        pytest.raises(TrainingPreemptedError) as told,
    ):
        process.wait(show=lambda line: line == "waiting" and os.kill(process.pid, signal.SIGTERM))
    assert told.value.step == 0


def test_best_epoch_stays_and_is_what_is_served_when_asked_for(long_job, tmp_path):
    # The rate is so high that later epochs are worse than the best.
    settings = CheckpointSettings(keep=1, serve_best=True).to_json()
    changes = {"hyperparameters": {"learning_rate": 0.5}, "epochs": 6, "checkpoint": settings}
    result, _ = run(long_job, tmp_path, **changes)
    history = json.loads((tmp_path / "history.json").read_text())["epochs"]
    best = min(history, key=lambda epoch: epoch["val_loss"])
    assert best["epoch"] < 6
    assert (result["epoch"], result["metrics"]["val_loss"]) == (best["epoch"], best["val_loss"])
    kept = sorted(int(path.stem[5:]) for path in (tmp_path / "kept").glob("step-*.json"))
    assert kept == [EPOCH_STEPS * best["epoch"], EPOCH_STEPS * 6]
    with np.load(tmp_path / "kept" / f"step-{kept[0]:09d}.npz") as stored:
        assert stored["variable_0"].tobytes() in what_it_left(tmp_path)[0].values()


def test_training_stops_by_rows_it_was_not_trained_on_and_gives_its_best_epoch(long_job, tmp_path):
    settings = {"patience": 2, "share": 0.2}
    changes = {"hyperparameters": {"learning_rate": 0.5}, "epochs": 60, "early_stopping": settings}
    result, lines = run(long_job, tmp_path, **changes)
    history = json.loads((tmp_path / "history.json").read_text())["epochs"]
    best = min(history, key=lambda epoch: epoch["val_loss"])
    assert len(history) == best["epoch"] + 2 < 60
    assert (result["epoch"], result["metrics"]["val_loss"]) == (best["epoch"], best["val_loss"])
    told = events(lines, "start")[0]
    assert told["eval_rows"] == round(0.2 * (told["train_rows"] + told["eval_rows"]))
    first = what_it_left(tmp_path)
    # Killed after it had stopped, before its result was taken: it stops where it was.
    _, lines = run(long_job, tmp_path, **changes)
    assert events(lines, "epoch") == []
    assert what_it_left(tmp_path) == first


BLOWS_UP = """
    import os
    import keras
    import tensorflow as tf

    BAD_STEP = 30

    class Bomb(keras.layers.Layer):
        # Puts out what is no number in some steps, counted in a file over all attempts and rollbacks.
        def call(self, inputs):
            def burst(values):
                with open(os.environ["BOMB"], "a") as stream:
                    stream.write("x")
                is_bad = os.path.getsize(os.environ["BOMB"]) == BAD_STEP
                return values * (float("nan") if is_bad else 0.0)

            return inputs + tf.ensure_shape(tf.numpy_function(burst, [inputs], tf.float32), inputs.shape)

        def compute_output_shape(self, shape):
            return shape

    def build_model(features, hyperparameters):
        inputs = {name: keras.Input(feature.shape, name=name) for name, feature in features.items()}
        model = keras.Model(inputs, keras.layers.Dense(1)(Bomb()(inputs["x"])))
        model.compile(optimizer=keras.optimizers.SGD(0.01), loss="mse")
        return model
"""


@pytest.mark.parametrize("trials", [0, 1])
def test_training_that_blows_up_goes_back_and_on_as_often_as_allowed(long_job, tmp_path, monkeypatch, trials):
    (tmp_path / "bomb_model.py").write_text(textwrap.dedent(BLOWS_UP))
    monkeypatch.setenv("BOMB", str(tmp_path / "bomb"))
    blow_up = {"loss_limit": 100.0, "trials": trials}
    changes = {"model": "bomb_model.build_model", "eval_files": [], "epochs": 5, "blow_up": blow_up}
    if trials == 0:
        with pytest.raises(ComponentError, match="the loss is nan after"):
            run(long_job, tmp_path, **changes)
        return
    result, lines = run(long_job, tmp_path, **changes)
    [back] = events(lines, "rolled_back")
    assert back["trial"] == 1
    assert 24 <= back["step"] < 30
    assert result["time"]["rollbacks"] == 1
    assert "with 1 rollback" in result["verdict"]
    assert len(events(lines, "epoch")) == 5


def test_killed_process_is_reported_as_killed(job, tmp_path):
    (tmp_path / "tiny_model.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    with pytest.raises(ComponentError, match="was killed by SIGKILL"):
        run(job, tmp_path)


def test_training_dies_with_its_parent(job, tmp_path):
    (tmp_path / "tiny_model.py").write_text("print('waiting', flush=True)\nimport time\ntime.sleep(3600)\n")
    file = tmp_path / "job.json"
    file.write_text(job.to_json(), encoding="utf-8")
    code = textwrap.dedent(f"""
        from pathlib import Path
        from slipway.components.trainer.launch import TrainingProcess
        with TrainingProcess(Path({str(file)!r}), import_roots=[Path({str(tmp_path)!r})]) as process:
            print(process.pid, flush=True)
            process.wait(show=lambda line: print(line, flush=True))
    """)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        child = os.pidfd_open(int(parent.stdout.readline()))
        assert any("waiting" in line for line in iter(parent.stdout.readline, ""))
        parent.send_signal(signal.SIGKILL)
    select.select([child], [], [])  # until it has ended
    os.close(child)


OWN_STEP = """
    import keras
    import tensorflow as tf

    class Own(keras.Model):
        def __init__(self, unpacks):
            super().__init__()
            self.answer = keras.layers.Dense(1)
            self.unpacks = unpacks

        def call(self, inputs):
            return self.answer(inputs["x"])

        def train_step(self, data):
            if self.unpacks == 3:
                x, y, weight = data
            x, y = data
            with tf.GradientTape() as tape:
                error = keras.ops.mean(keras.ops.square(self(x) - y))
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(error, weights), weights)
            return {"error": error, "halves": keras.ops.stack([error / 2, error / 2])}

    def build_model(features, hyperparameters):
        model = Own(**hyperparameters)
        model.compile(optimizer="sgd", loss="mse")
        return model
"""


def test_a_step_of_ones_own_may_name_no_loss_and_its_errors_are_reported_by_their_line(job, tmp_path):
    (tmp_path / "own_step.py").write_text(textwrap.dedent(OWN_STEP))
    result, _ = run(job, tmp_path, model="own_step.build_model", hyperparameters={"unpacks": 2})
    assert {"error", "halves_0", "halves_1", "val_loss"} <= set(result["metrics"])
    told = r"own_step\.py, line 16: ValueError: not enough values to unpack \(expected 3, got 2\)"
    with pytest.raises(ComponentError, match=told):
        run(job, tmp_path, model="own_step.build_model", hyperparameters={"unpacks": 3})


LISTS = """
    import keras

    def build_model(features, hyperparameters):
        words = keras.Input(features["words"].shape, dtype="int32", name="words")
        is_word = keras.ops.cast(words > 0, "float32")[..., None]
        hidden = keras.ops.sum(keras.layers.Embedding(9, 4)(words) * is_word, axis=1)
        model = Seen({"words": words}, keras.layers.Dense(1)(hidden))
        model.compile("adam", loss="mse")
        return model

    class Seen(keras.Model):
        def train_step(self, *data):
            print("traced", (data[-1][0]["words"]).shape[1])
            return super().train_step(*data)
"""


def lists_job(job, tmp_path, **changes):
    """A job of 50 rows of 0 to 6 words, read in batches of three lengths."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(tmp_path / "lists")) as writer:
        for row in range(50):
            example = tf.train.Example()
            words = [1 + row % 8] * (row % 7) + [0] * (6 - row % 7)
            example.features.feature["words"].int64_list.value.extend(words)
            example.features.feature["y"].float_list.value.append(row % 7)
            writer.write(example.SerializeToString())
    (tmp_path / "lists_model.py").write_text(textwrap.dedent(LISTS))
    words = Feature(name="words", dtype="int64", shape=(6,), categories=9)
    return replace(
        job,
        train_files=(str(tmp_path / "lists"),),
        eval_files=(str(tmp_path / "lists"),),
        features=(words, Feature(name="y", dtype="float32")),
        model="lists_model.build_model",
        batch_size=6,
        epochs=2,
        input=InputSettings(bucket_by_length={"words": [2, 4]}),
        **changes,
    )


def test_a_step_is_traced_for_any_length_and_the_weights_are_served_at_the_whole_one(job, tmp_path):
    from slipway.components.trainer.user_model import build_model

    lists = lists_job(job, tmp_path, early_stopping=EarlyStoppingSettings(patience=5, share=0.2))
    result, lines = run(lists, tmp_path)
    assert (result["train_rows"], result["eval_rows"], result["steps"]) == (40, 10, 12)
    inputs = {event["input"] for line in lines if (event := read_event(line)) and "input" in event}
    assert "40 of 50 examples in memory" in inputs.pop()
    assert {line.split()[1] for line in lines if line.startswith("traced")} == {"None"}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        served = build_model(lists.model, lists.inputs, {})
    assert served.input_shape == (None, 6)
    served.load_weights(tmp_path / "model.weights.h5")


def test_jax_compiles_one_program_for_each_length(job, tmp_path, jax_python):
    lists = lists_job(job, tmp_path, compute=ComputeSettings(backend="jax"))
    (tmp_path / "job.json").write_text(lists.to_json(), encoding="utf-8")
    lines = []
    with TrainingProcess(
        tmp_path / "job.json", import_roots=[tmp_path], compute=lists.compute, interpreter=jax_python
    ) as process:
        assert process.wait(show=lines.append)["steps"] == 16
    traced = [line.split()[1] for line in lines if line.startswith("traced")]
    assert sorted(set(traced)) == ["2", "4", "6"]
    assert len(traced) <= 4, "once for each, and once to make the optimizer's variables"


OF_JAX = """
    import jax
    import keras

    class Own(keras.Model):
        def train_step(self, state, data):
            trained, others, optimizer, metrics = state
            x, y, _ = keras.utils.unpack_x_y_sample_weight(data)

            def error_of(trained):
                answers, _ = self.stateless_call(trained, others, x, training=True)
                return keras.ops.mean(keras.ops.square(answers - y))

            error, slopes = jax.value_and_grad(error_of)(trained)
            trained, optimizer = self.optimizer.stateless_apply(optimizer, slopes, trained)
            return {"loss": error, "halved": error / 2}, (trained, others, optimizer, metrics)

    def build_model(features, hyperparameters):
        inputs = {name: keras.Input(feature.shape, name=name) for name, feature in features.items()}
        model = Own(inputs, keras.layers.Dense(1)(inputs["x"]))
        model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse")
        return model
"""
LOOP_OF_JAX = """
    def fit(model, data, context):
        for batch in data:
            context.step_done(model.train_on_batch(*batch, return_dict=True)["loss"])
"""


def test_jax_trains_by_a_step_and_by_a_loop_of_ones_own(job, tmp_path, jax_python):
    (tmp_path / "of_jax.py").write_text(textwrap.dedent(OF_JAX))
    (tmp_path / "loop_of_jax.py").write_text(textwrap.dedent(OF_JAX + LOOP_OF_JAX))
    results = []
    for name in ("of_jax", "loop_of_jax"):
        own = replace(job, model=f"{name}.build_model", compute=ComputeSettings(backend="jax"), epochs=6)
        (tmp_path / "job.json").write_text(own.to_json(), encoding="utf-8")
        with TrainingProcess(
            tmp_path / "job.json", import_roots=[tmp_path], compute=own.compute, interpreter=jax_python
        ) as process:
            results.append(process.wait(show=lambda _: None))
    by_step, by_loop = results
    assert by_step["metrics"]["halved"] == pytest.approx(by_step["metrics"]["loss"] / 2)
    assert by_step["steps"] == by_loop["steps"] == 18
    assert by_loop["metrics"]["val_loss"] == pytest.approx(by_step["metrics"]["val_loss"], rel=1e-3)
    assert by_step["metrics"]["val_loss"] < 10


HELD = """
    import keras
    import tensorflow as tf

    class Held(keras.Model):
        def __init__(self):
            super().__init__(name="held")
            self.slope = tf.Variable([[0.0]])
            self.head = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", trainable=False)

        def call(self, inputs):
            return self.head(tf.matmul(inputs["x"], self.slope))

        def train_step(self, data):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(data[0]) - data[1]) ** 2)
            self.slope.assign_sub(0.1 * tape.gradient(loss, self.slope))
            return {"loss": loss}

    def build_model(features, hyperparameters):
        model = Held()
        model.compile(loss="mse")
        return model
"""


def test_what_a_training_changed_and_keras_does_not_save_is_told(job, tmp_path):
    (tmp_path / "holding.py").write_text(textwrap.dedent(HELD))
    with pytest.raises(
        ComponentError, match=r"the training changed held\.slope, a tf\.Variable, which Keras does"
    ):
        run(job, tmp_path, model="holding.build_model")
