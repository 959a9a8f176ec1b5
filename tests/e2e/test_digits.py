"""The digits workload as a user runs it: 1,797 real images to a served model.

Seen only here: images as tensors all the way from the file to the answer, a file of MNIST's layout, what
TFX's Tuner writes on its way to the Trainer and into the report, and that TFX's own executors
(`beam.stock_nodes`) make the same of images and of ten classes.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from same_evaluation import assert_same, content

pytestmark = [
    pytest.mark.slow,
    pytest.mark.external,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]

TUNE = (
    "tune={trials: 2, algorithm: random, epochs: 1, metric: val_accuracy, goal: max, "
    "search: {units: {choices: [8, 64]}, learning_rate: {low: 0.001, high: 0.01, log: true}}}"
)


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return tmp_path_factory.mktemp("digits") / "output"


@pytest.fixture(scope="module")
def record(record_of, output):
    # What is served is asked below; in a clean process, models of tables are.
    return record_of("digits", output, "--set", "evaluate.serving=null")


@pytest.fixture(scope="module")
def answers(record, project):
    """What the pushed model answers; that a process which knows nothing of this project gets the same is
    seen of a model in test_taxi.py, and is the serving check's to find.
    """
    import tensorflow as tf

    model = tf.saved_model.load(record["pushed"]["path"])
    with np.load(project / "workloads/digits/digits.npz") as arrays:
        images = arrays["x_test"].reshape(-1, 784).astype(np.int64)
    raw = model.signatures["serve_raw"]
    _, wanted = raw.structured_input_signature

    def example(image):
        pixels = tf.train.Feature(int64_list=tf.train.Int64List(value=image))
        return tf.train.Example(features=tf.train.Features(feature={"image": pixels})).SerializeToString()

    examples = tf.constant([example(image) for image in images[:3]])
    return {
        "raw_inputs": {name: spec.shape.as_list() for name, spec in wanted.items()},
        "raw": raw(image=tf.constant(images))["outputs"].numpy(),
        "serialized": model.signatures["serving_default"](examples=examples)["outputs"].numpy(),
    }


def test_pushed_model_knows_the_digits_of_the_test_images(record, answers, project):
    assert record["metrics"]["example_count"] == 355
    assert record["metrics"]["sparse_categorical_accuracy"] >= 0.97
    with np.load(project / "workloads/digits/digits.npz") as arrays:
        right = np.argmax(answers["raw"], axis=1) == arrays["y_test"]
    # Judged and served alike: the Evaluator's number is what a client gets.
    assert right.mean() == pytest.approx(record["metrics"]["sparse_categorical_accuracy"], abs=1e-6)


def test_raw_tensor_is_a_whole_image_and_serialized_examples_are_answered_alike(answers):
    assert answers["raw_inputs"] == {"image": [None, 784]}
    assert np.allclose(answers["serialized"], answers["raw"][:3], atol=1e-6)


def test_training_step_goes_through_the_preflight(record, preflight, output, jax_python):
    # With all its effort libtpu takes 20 s more for convolutions: in integration/preflight/ it does so.
    found = preflight("digits", output, "--fast")

    assert found["step"]["error"] == ""
    assert found["parameters"] > 1000
    assert not [each for each in found["findings"] if each["severity"] == "error"]
    assert found["can_train"] == (found["target"] == "tpu")  # nothing is promised without libtpu


def test_best_hyperparameters_of_the_tuner_go_to_the_trainer_and_into_the_report(record, output, warm_runner):
    finished = warm_runner(
        "run", "digits", "--profile", "dense", "--set", "train.epochs=2", "--set", TUNE,
        "--to", "Trainer", "--output", str(output),
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    again = json.loads(warm_runner("show", "--json", "--output", str(output)).stdout)
    made = {node["id"]: node["outputs"] for node in again["nodes"] if node["state"] == "complete"}
    assert set(made) == {"Tuner", "Trainer"}, "all before them is cached"
    tuned = again["training"]["tuned"]
    assert set(tuned) == {"units", "learning_rate"}
    [trials] = Path(made["Tuner"]["tuner_results"][0]["uri"]).glob("*.json")
    ranked = json.loads(trials.read_text())
    assert len(ranked) == 2
    best = max(ranked, key=lambda trial: trial["score"])
    assert tuned == {name: best[name] for name in tuned}
    job = json.loads(Path(made["Trainer"]["model_run"][0]["uri"], "job.json").read_text())
    assert {name: job["hyperparameters"][name] for name in tuned} == tuned
    assert "tuned" in warm_runner("show", "--output", str(output)).stdout


def test_tfx_s_statistics_and_transformed_images_are_ours(record, differences_in_data, output):
    outputs = ("statistics", "transform_graph", "transformed_examples")
    assert differences_in_data("digits", output) == dict.fromkeys(outputs, ())


def test_tfx_s_metrics_of_every_class_model_and_difference_are_ours(record, evaluations, output):
    from slipway.components.model_gate.evaluation import read_evaluation

    ours, theirs = evaluations("digits", output)
    assert_same(content(ours), content(theirs))
    found = read_evaluation(theirs)
    assert found.candidate.keys() == {"overall", *(f"label={digit}" for digit in range(10))}
    assert found.baseline.keys() == found.candidate.keys()
    accuracies = [
        each["overall"]["sparse_categorical_accuracy"] for each in (found.candidate, found.baseline)
    ]
    assert len(set(accuracies)) == 2, "two models"


def test_file_of_mnist_trains_the_network_of_the_tutorials_with_their_batch_and_epochs(
    warm_runner, project, tmp_path
):
    """MNIST's own file is not here: one of its layout, each image at 8 places within its white border."""
    places = [(down, right) for down in range(-1, 1) for right in range(-2, 2)]
    with np.load(project / "workloads/digits/digits.npz") as digits:
        arrays = {name: digits[name] for name in ("x_test", "y_test")}
        moved = [np.roll(digits["x_train"], place, axis=(1, 2)) for place in places]
        arrays["x_train"] = np.concatenate(moved)
        arrays["y_train"] = np.tile(digits["y_train"], len(places))
    np.savez(tmp_path / "mnist.npz", **arrays)
    source = ("--set", f"data.source={tmp_path / 'mnist.npz'}", "--output", str(tmp_path / "output"))
    finished = warm_runner("run", "digits", "--profile", "dense_mnist", *source, "--to", "Trainer")
    assert finished.returncode == 0, finished.stderr
    [run] = (tmp_path / "output/artifacts/digits/Trainer/model_run").iterdir()
    job, result = (json.loads((run / name).read_text()) for name in ("job.json", "result.json"))
    assert (job["model"], job["batch_size"]) == ("workloads.digits.model.build_model", 1024)
    assert (result["train_rows"], result["epochs"], result["eval_rows"]) == (8 * 1442, 5, 355)
    assert result["metrics"]["val_accuracy"] > 0.9
