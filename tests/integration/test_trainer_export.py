"""run_fn on real taxi trips, and what the SavedModel answers.

That it answers in a process that knows nothing of TFX, the serving check sees of each model: in test_taxi.py.
"""

import csv
import importlib.util
import json
import os
import platform
import subprocess
import textwrap
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

from slipway.components.errors import ComponentError
from slipway.components.python_process import ForkedProcess
from slipway.pipeline.config.train import TrainConfig
from slipway.pipeline.config.tune import TuneConfig

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("forked"),
    # TensorFlow's, Beam's and TFX's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

ROWS = 600
SCHEMA = Path("schemas/taxi.pbtxt")
SETTINGS = TrainConfig(
    model="workloads.taxi.model.build_model",
    hyperparameters={"hidden_units": [16]},
    batch_size=64,
    epochs=2,
    seed=1,
    exports=["litert_int8"],
    tensorboard=True,
    profile_steps="4:6",
    steps_per_execution=1,
).run_fn_settings() | {
    "label": "big_tip",
    "raw_label": "tips",
    "weight": None,
    "group": None,
    "pass_through": [],
}


def ask(model_dir, file):
    """The served model's signatures, and its predictions for 40 rows in all three forms of request."""
    import tensorflow as tf

    model = tf.saved_model.load(model_dir)
    records = list(tf.data.TFRecordDataset(str(file)).take(40))
    by_example = model.signatures["serving_default"](examples=tf.stack(records))["outputs"]
    serve_raw = model.signatures["serve_raw"]
    columns = serve_raw.structured_input_signature[1]
    empty = {tf.string: b"", tf.float32: float("nan"), tf.int64: -(2**63)}
    raw = {name: [] for name in columns}
    without_tips = []
    for record in records:
        example = tf.train.Example.FromString(record.numpy())
        features = example.features.feature
        for name, spec in columns.items():
            kind = features[name].WhichOneof("kind") if name in features else None
            raw[name].append([getattr(features[name], kind).value[0] if kind else empty[spec.dtype]])
        del features["tips"]
        without_tips.append(example.SerializeToString())
    tensors = {name: tf.constant(raw[name], spec.dtype) for name, spec in columns.items()}
    by_column = serve_raw(**tensors)["outputs"]
    by_request = model.signatures["serving_default"](examples=tf.constant(without_tips))["outputs"]
    return {
        "signatures": sorted(model.signatures),
        "columns": sorted(columns),
        "transformed": sorted(model.signatures["transform_features"].structured_outputs),
        "answers": [values.numpy().tolist() for values in (by_example, by_column, by_request)],
        "dtype": by_example.dtype.name,
    }


@pytest.fixture(scope="module")
def taxi_examples(tmp_path_factory):
    """A TFRecord file of the first trips of the sample; an empty cell is an absent feature."""
    import tensorflow as tf

    tfx = Path(importlib.util.find_spec("tfx").origin).parent
    file = tmp_path_factory.mktemp("raw") / "trips"
    floats = {"fare", "tips", "trip_miles"}
    with (
        (tfx / "examples/chicago_taxi_pipeline/data/simple/data.csv").open(newline="") as source,
        tf.io.TFRecordWriter(str(file)) as writer,
    ):
        for _, row in zip(range(ROWS), csv.DictReader(source), strict=False):
            example = tf.train.Example()
            for name, text in row.items():
                feature = example.features.feature
                if not text:
                    continue
                if name in ("payment_type", "company"):
                    feature[name].bytes_list.value.append(text.encode())
                elif name in floats or name.endswith("itude"):
                    feature[name].float_list.value.append(float(text))
                else:
                    feature[name].int64_list.value.append(int(float(text)))
            writer.write(example.SerializeToString())
    return file


@pytest.fixture(scope="module")
def fn_args(taxi_examples, tmp_path_factory, project, forked):
    """The arguments that the Trainer passes to run_fn, after a transform of the real trips."""
    folder = tmp_path_factory.mktemp("run")
    here = os.pathsep.join([str(project), str(Path(__file__).parent)])
    words = [str(taxi_examples), str(SCHEMA), str(folder)]
    process = ForkedProcess(forked._line, "trips_transformed", words, {**os.environ, "PYTHONPATH": here})
    with process.stdout as stdout:
        told = stdout.read()
    assert process.wait() == 0, told
    return SimpleNamespace(
        transform_output=str(folder / "transform"),
        schema_path=str(SCHEMA),
        train_files=[str(folder / "rows*")],
        eval_files=[str(folder / "rows*")],
        serving_model_dir=str(folder / "model"),
        model_run_dir=str(folder / "model_run"),
        custom_config=SETTINGS,
        hyperparameters=None,  # no Tuner
    )


@pytest.fixture(scope="module")
def trained(fn_args):
    from slipway.components.trainer.run_fn import run_fn

    run_fn(fn_args)
    return fn_args


@pytest.fixture(scope="module")
def answers(trained, taxi_examples):
    return ask(trained.serving_model_dir, taxi_examples)


def test_model_run_keeps_weights_history_result_and_job(trained):
    found = {path.name for path in Path(trained.model_run_dir).iterdir()}
    assert found == {"model.weights.h5", "history.json", "result.json", "job.json", "tensorboard"}


def test_packages_of_the_training_are_listed_beside_the_served_folder(trained):
    file = Path(trained.serving_model_dir).parent / "environment/sbom.cdx.json"
    found = {each["name"]: each["version"] for each in json.loads(file.read_text())["components"]}
    assert found["tensorflow"] == version("tensorflow")
    assert found["CPython"] == platform.python_version()


def test_digest_of_the_exported_model_is_kept_beside_it(trained):
    from slipway.components.saved_model.digest_files import exported_digest, model_digest

    assert exported_digest(trained.serving_model_dir) == model_digest(trained.serving_model_dir)


def test_smaller_form_lies_beside_the_served_folder_with_what_it_costs(trained):
    exports = Path(trained.serving_model_dir).parent / "exports"
    report = json.loads((exports / "exports.json").read_text())
    [int8] = report["exports"]
    assert (exports / int8["file"]).stat().st_size == int8["size_bytes"]
    assert set(int8["change"]) == {"loss", "auc", "accuracy"}
    assert report["rows"] == ROWS
    assert json.loads(Path(trained.model_run_dir, "result.json").read_text())["exports"] == report["exports"]


def test_what_a_tuner_found_goes_into_the_training_and_its_result(fn_args, tmp_path):
    from slipway.components.trainer.run_fn import run_fn

    folders = {"serving_model_dir": str(tmp_path / "model"), "model_run_dir": str(tmp_path / "run")}
    found = {"values": {"hidden_units": "[4, 3]", "learning_rate": 0.02}}
    settings = {**SETTINGS, "exports": [], "profile_steps": None, "epochs": 1}
    changed = {**vars(fn_args), **folders, "custom_config": settings, "hyperparameters": found}
    run_fn(SimpleNamespace(**changed))
    job = json.loads((tmp_path / "run" / "job.json").read_text())
    tuned = {"hidden_units": [4, 3], "learning_rate": 0.02}
    assert job["hyperparameters"] == tuned  # the workload's own say [16]
    assert json.loads((tmp_path / "run" / "result.json").read_text())["tuned"] == tuned


def test_scalars_and_profile_can_be_read_by_tensorboard(trained):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logs = Path(trained.model_run_dir, "tensorboard")
    scalars = EventAccumulator(str(logs)).Reload()
    assert {"epoch/loss", "epoch/val_auc"} <= set(scalars.Tags()["scalars"])
    history = json.loads(Path(trained.model_run_dir, "history.json").read_text())["epochs"]
    told = [event.value for event in scalars.Scalars("epoch/val_auc")]
    assert told == pytest.approx([epoch["val_auc"] for epoch in history])
    assert list(logs.glob("plugins/profile/*/*.xplane.pb"))


def test_result_says_what_bounds_the_training(trained):
    result = json.loads(Path(trained.model_run_dir, "result.json").read_text())
    assert result["verdict"].startswith(("compute-bound: ", "input-bound: "))
    assert 0 < result["time"]["goodput"] < 1
    assert result["machine"]["memory_peak_bytes"] > 2**27
    assert result["speed"]["step_ms"] > 0


def test_three_signatures_stand_in_the_saved_model(answers):
    assert answers["signatures"] == ["serve_raw", "serving_default", "transform_features"]
    assert "big_tip" in answers["transformed"]


def test_requests_carry_every_column_but_tips(answers):
    assert "tips" not in answers["columns"]
    assert {"fare", "company", "pickup_census_tract"} < set(answers["columns"])


def test_examples_raw_columns_and_requests_without_tips_get_the_same_answers(answers):
    by_example, by_column, by_request = answers["answers"]
    assert answers["dtype"] == "float32"
    assert len({probability for (probability,) in by_example}) > 20
    assert by_column == by_example == by_request


def test_saved_model_answers_as_the_trained_weights_do(trained, answers):
    import keras
    import tensorflow as tf

    from slipway.components.trainer.input.arrays import load_rows
    from slipway.components.trainer.job import TrainingJob
    from slipway.components.trainer.user_model import build_model

    job = TrainingJob.load(Path(trained.model_run_dir, "job.json"))
    model = build_model(job.model, job.inputs, job.hyperparameters)
    model.optimizer.build(model.trainable_variables)
    model.load_weights(Path(trained.model_run_dir, "model.weights.h5"))
    rows = {name: values[:40] for name, values in load_rows(job.train_files, job.features).columns.items()}
    del rows["big_tip"]
    expected = keras.ops.convert_to_numpy(model(rows, training=False))
    tf.debugging.assert_near(sorted(expected[:, 0]), sorted(p for (p,) in answers["answers"][0]), atol=1e-5)


PREDICT_WITH_JAX = """
    import json, sys
    from pathlib import Path
    import keras
    from slipway.components.trainer.input.arrays import load_rows
    from slipway.components.trainer.job import TrainingJob
    from slipway.components.trainer.user_model import build_model
    assert keras.backend.backend() == "jax"
    run = Path(sys.argv[1])
    job = TrainingJob.load(run / "job.json")
    model = build_model(job.model, job.inputs, job.hyperparameters)
    model.optimizer.build(model.trainable_variables)
    model.load_weights(run / "model.weights.h5")
    rows = load_rows(job.train_files, job.features).columns
    inputs = {name: rows[name].numpy()[:40] for name in job.inputs}
    print(json.dumps(model.predict(inputs, verbose=0).tolist()))
"""


def test_model_trained_on_jax_serves_the_same_answers_from_the_saved_model(
    fn_args, taxi_examples, tmp_path, jax_python, project
):
    from slipway.components.trainer.run_fn import run_fn

    folders = {"serving_model_dir": str(tmp_path / "model"), "model_run_dir": str(tmp_path / "run")}
    settings = {**SETTINGS, "backend": "jax", "interpreter": jax_python}
    run_fn(SimpleNamespace(**{**vars(fn_args), **folders, "custom_config": settings}))
    environment = {**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(project)}
    command = [jax_python, "-c", textwrap.dedent(PREDICT_WITH_JAX), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    by_jax = [answer for (answer,) in json.loads(done.stdout.splitlines()[-1])]
    served = [answer for (answer,) in ask(str(tmp_path / "model"), taxi_examples)["answers"][0]]
    assert len(set(served)) > 20
    # The transform may have written the rows in another order.
    assert sorted(served) == pytest.approx(sorted(by_jax), abs=1e-5)


def test_tuner_tries_the_search_space_with_trainings_like_this_and_ranks_them(fn_args, tmp_path):
    from slipway.components.trainer.job_layout import tuned_values
    from slipway.components.trainer.tuner_fn import tuner_fn

    tune = TuneConfig(
        search={
            "hidden_units": {"choices": [[4], [8, 4]]},
            "learning_rate": {"low": 1e-9, "high": 0.01, "log": True},
        },
        trials=3,
        algorithm="random",
        metric="val_auc",
        goal="max",
    )
    changed = SimpleNamespace(
        **vars(fn_args),
        transform_graph_path=fn_args.transform_output,
        working_dir=str(tmp_path),
    )
    changed.custom_config = {**SETTINGS, "profile_steps": None, "tune": tune.model_dump(mode="json")}
    tuner = tuner_fn(changed).tuner
    tuner.search()
    trials = tuner.oracle.get_best_trials(3)
    scores = [trial.score for trial in trials]
    assert (len(scores), scores) == (3, sorted(scores, reverse=True))
    best = tuned_values(tuner.get_best_hyperparameters()[0].get_config())
    assert best["hidden_units"] in ([4], [8, 4])
    assert best["learning_rate"] == trials[0].hyperparameters.values["learning_rate"]


@pytest.mark.parametrize(
    ("metric", "patience", "notes"), [("val_auc", None, 1), ("val_auc", 3, 0), ("auc", None, 0)]
)
def test_tuner_notes_that_the_rows_it_chooses_by_judge_the_model(
    fn_args, tmp_path, caplog, metric, patience, notes
):
    from slipway.components.trainer.tuner_fn import tuner_fn

    tune = TuneConfig(search={"hidden_units": {"choices": [[4], [8]]}}, metric=metric, goal="max")
    asked = SimpleNamespace(
        **vars(fn_args), transform_graph_path=fn_args.transform_output, working_dir=str(tmp_path)
    )
    early_stopping = {**SETTINGS["early_stopping"], "patience": patience}
    asked.custom_config = {**SETTINGS, "early_stopping": early_stopping, "tune": tune.model_dump(mode="json")}
    tuner_fn(asked)
    assert caplog.text.count("are a bit too good; train.early_stopping holds out rows") == notes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "workloads.taxi.no_such.build_model"}, "there is no module workloads.taxi.no_such"),
        ({"label": "tips"}, "'tips' is not a transformed feature"),
        ({"hyperparameters": {"learning_rat": 1}}, "takes no 'learning_rat'; nearest: learning_rate"),
        (
            {"pass_through": ["payment_type"]},
            "a request cannot give the model payment: preprocessing_fn makes it of a column that no request "
            "carries, one of payment_type, tips",
        ),
        ({"batch_size": 10_000}, rf"train.batch_size \(10000\) is larger than the {ROWS} training examples"),
    ],
)
def test_wrong_setting_stops_before_anything_is_exported(fn_args, tmp_path, change, words):
    from slipway.components.trainer.run_fn import run_fn

    folders = {"serving_model_dir": str(tmp_path / "model"), "model_run_dir": str(tmp_path / "run")}
    changed = SimpleNamespace(**{**vars(fn_args), **folders, "custom_config": {**SETTINGS, **change}})
    with pytest.raises(ComponentError, match=words):
        run_fn(changed)
    assert not list(tmp_path.iterdir())


ANNEALED = """
    import keras

    class Times(keras.layers.Layer):
        factor = 1.0

        def call(self, given):
            return given * self.factor

    class Sets(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            self.model.get_layer("times").factor = 5.0

    def callbacks(context):
        return [Sets()]

    def build_model(features, hyperparameters):
        numbers = {name: each for name, each in features.items() if each.dtype == "float32"}
        given = {name: keras.Input(each.shape, name=name) for name, each in numbers.items()}
        told = Times(name="times")(keras.layers.Concatenate()(list(given.values())))
        model = keras.Model(given, keras.layers.Dense(1)(told))
        model.compile("sgd", "mse")
        return model
"""


def test_model_that_is_not_the_trained_one_when_it_is_built_anew_is_not_exported(
    fn_args, tmp_path, monkeypatch
):
    from slipway.components.trainer.run_fn import run_fn

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "annealed.py").write_text(textwrap.dedent(ANNEALED))
    folders = {"serving_model_dir": str(tmp_path / "model/m"), "model_run_dir": str(tmp_path / "run")}
    settings = {**SETTINGS, "model": "annealed.build_model", "hyperparameters": {}, "exports": []}
    settings["profile_steps"] = None
    with pytest.raises(ComponentError, match="the exported model is not the trained one"):
        run_fn(SimpleNamespace(**{**vars(fn_args), **folders, "custom_config": settings}))


UNCONVERTIBLE = """
    import keras
    import tensorflow as tf

    class Odd(keras.layers.Layer):
        def call(self, given):
            return tf.cast(tf.bitwise.bitwise_and(tf.cast(given, tf.int32), 1), tf.float32)

    def build_model(features, hyperparameters):
        given = {"fare_scaled": keras.Input((1,), name="fare_scaled")}
        model = keras.Model(given, keras.layers.Dense(1)(Odd()(given["fare_scaled"])))
        model.compile("sgd", "mse")
        return model
"""


def test_model_that_does_not_convert_is_refused_before_the_training_ends(fn_args, tmp_path, monkeypatch):
    from slipway.components.trainer.run_fn import run_fn

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "unconvertible.py").write_text(textwrap.dedent(UNCONVERTIBLE))
    folders = {"serving_model_dir": str(tmp_path / "model/m"), "model_run_dir": str(tmp_path / "run")}
    settings = {**SETTINGS, "model": "unconvertible.build_model", "hyperparameters": {}}
    settings |= {"exports": ["litert_int8"], "profile_steps": None}
    with pytest.raises(ComponentError, match="does not convert to LiteRT: it has no BitwiseAnd"):
        run_fn(SimpleNamespace(**{**vars(fn_args), **folders, "custom_config": settings}))
    assert not (tmp_path / "run/model.weights.h5").exists()


def test_missing_setting_is_named(fn_args):
    from slipway.components.trainer.run_fn import run_fn

    settings = {name: value for name, value in SETTINGS.items() if name != "seed"}
    with pytest.raises(ComponentError, match=r"lacks \['seed'\]"):
        run_fn(SimpleNamespace(**{**vars(fn_args), "custom_config": settings}))
