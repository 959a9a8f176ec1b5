"""The training process on real files: it trains, repeats itself, fails in words and dies with its parent."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from components.errors import ComponentError
from components.trainer.features import Feature
from components.trainer.job import TrainingJob
from components.trainer.process import TrainingProcess, read_event

pytestmark = [
    pytest.mark.slow,
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
        model.compile(optimizer="adam", loss="mse", metrics=["mae"])
        return model
"""


@pytest.fixture
def job(tmp_path):
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
    return TrainingJob(
        train_files=tuple(files),
        eval_files=tuple(files),
        features=(Feature(name="x", dtype="float32"), Feature(name="y", dtype="float32")),
        label="y",
        model="tiny_model.build_model",
        hyperparameters={},
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


def test_training_learns_and_leaves_weights_history_and_result(job, tmp_path):
    result, lines = run(job, tmp_path)
    assert (result["train_rows"], result["eval_rows"], result["steps"]) == (50, 50, 4 * (50 // 16))
    history = json.loads((tmp_path / "history.json").read_text())["epochs"]
    assert [epoch["epoch"] for epoch in history] == [1, 2, 3, 4]
    assert history[-1]["val_loss"] < 0.5 * history[0]["val_loss"]
    assert json.loads((tmp_path / "result.json").read_text()) == result
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
        ({"model": "tiny_model.wrong"}, r"tiny_model.py, line 16: KeyError: 'no such feature'"),
        ({"model": "tiny_model.uncompiled"}, "returns a model that is not compiled"),
        ({"model": "tiny_model.absent"}, "tiny_model has no function absent"),
        ({"batch_size": 64}, r"train.batch_size \(64\) is larger than the 50 training examples"),
        ({"hyperparameters": {"learning_rate": 1e30}}, "the loss is (nan|inf) after epoch"),
        ({"label": "z"}, "label 'z' is not a transformed feature"),
    ],
)
def test_failure_is_told_in_its_own_words(job, tmp_path, changes, words):
    with pytest.raises(ComponentError, match=words):
        run(job, tmp_path, **changes)
    assert not (tmp_path / "result.json").exists()


def test_examples_without_a_feature_are_refused(job, tmp_path):
    features = [{**feature.to_json(), "name": name} for feature, name in zip(job.features, "wy", strict=True)]
    with pytest.raises(ComponentError, match="does not have the transformed features"):
        run(job, tmp_path, features=features)


@pytest.fixture
def long_job(job, tmp_path):
    """40 epochs of 3 steps of a model with all sorts of state, each epoch kept."""
    (tmp_path / "kept").mkdir()
    return replace(job, model="tiny_model.with_state", epochs=40, checkpoint_dir=str(tmp_path / "kept"))


def what_it_left(tmp_path):
    """Every array in the weights file, and the two texts; but for the times in the result."""
    import h5py

    arrays = {}
    with h5py.File(tmp_path / "model.weights.h5") as file:
        file.visititems(lambda name, item: arrays.update({name: item}))
        arrays = {name: item[()].tobytes() for name, item in arrays.items() if hasattr(item, "shape")}
    result = json.loads((tmp_path / "result.json").read_text())
    del result["fit_s"], result["examples_per_s"]
    return arrays, (tmp_path / "history.json").read_text(), result


def events(lines, kind):
    return [event for line in lines if (event := read_event(line)) and event["event"] == kind]


def killed_at(job, tmp_path, *, epoch, after_s):
    """Carries out the job and kills it that long after the epoch."""
    file = tmp_path / "job.json"
    file.write_text(job.to_json(), encoding="utf-8")

    def show(line):
        if (event := read_event(line)) and event["event"] == "epoch" and event["epoch"] == epoch:
            time.sleep(after_s)
            os.kill(process.pid, signal.SIGKILL)

    with (
        pytest.raises(ComponentError, match="was killed by SIGKILL"),
        TrainingProcess(file, import_roots=[tmp_path]) as process,
    ):
        process.wait(show=show)


def test_training_killed_at_any_moment_goes_on_to_the_same_weights_and_history(long_job, tmp_path):
    run(long_job, tmp_path, checkpoint_dir=None)
    undisturbed = what_it_left(tmp_path)
    assert any(name.startswith("optimizer") for name in undisturbed[0])
    (tmp_path / "result.json").unlink()
    for first, last in ((1, 12), (16, 30)):
        moment = {"epoch": random.randint(first, last), "after_s": random.uniform(0, 0.05)}  # noqa: S311
        print("killed at", moment)
        killed_at(long_job, tmp_path, **moment)
    assert not (tmp_path / "result.json").exists()
    _, lines = run(long_job, tmp_path)
    assert what_it_left(tmp_path) == undisturbed
    [resumed] = events(lines, "resumed")
    assert resumed["epoch"] >= moment["epoch"] - 1
    assert [event["epoch"] for event in events(lines, "epoch")] == list(range(resumed["epoch"] + 1, 41))


def test_damaged_checkpoint_is_told_and_the_one_before_leads_to_the_same(long_job, tmp_path):
    run(long_job, tmp_path)
    first = what_it_left(tmp_path)
    newest = tmp_path / "kept" / "epoch-00040.npz"
    newest.write_bytes(newest.read_bytes()[:-100])
    _, lines = run(long_job, tmp_path)
    assert events(lines, "damaged")[0]["message"].endswith("epoch-00040.npz is damaged")
    assert events(lines, "resumed")[0]["epoch"] == 39
    assert what_it_left(tmp_path) == first
    # Killed after its last epoch, before its result was taken: nothing is trained again.
    _, lines = run(long_job, tmp_path)
    assert (events(lines, "resumed")[0]["epoch"], events(lines, "epoch")) == (40, [])
    assert what_it_left(tmp_path) == first


def test_killed_process_is_told_as_killed(job, tmp_path):
    (tmp_path / "tiny_model.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    with pytest.raises(ComponentError, match="was killed by SIGKILL"):
        run(job, tmp_path)


def test_training_dies_with_its_parent(job, tmp_path):
    (tmp_path / "tiny_model.py").write_text("print('waiting', flush=True)\nimport time\ntime.sleep(300)\n")
    file = tmp_path / "job.json"
    file.write_text(job.to_json(), encoding="utf-8")
    code = textwrap.dedent(f"""
        from pathlib import Path
        from components.trainer.process import TrainingProcess
        with TrainingProcess(Path({str(file)!r}), import_roots=[Path({str(tmp_path)!r})]) as process:
            print(process.pid, flush=True)
            process.wait(show=lambda line: print(line, flush=True))
    """)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert any("waiting" in line for line in iter(parent.stdout.readline, ""))
        parent.send_signal(signal.SIGKILL)
    limit = time.monotonic() + 10
    while _alive(child) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not _alive(child)


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"  # a zombie that nobody has collected yet is not alive
