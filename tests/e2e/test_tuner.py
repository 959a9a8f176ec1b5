"""A workload that searches: TFX's Tuner before the Trainer; what it found is trained with and shown.

Seen only here: what TFX's Tuner writes reaches the Trainer and the report.
"""

import json

import pytest

pytestmark = pytest.mark.slow

TUNE = (
    "tune={trials: 2, algorithm: random, epochs: 1, metric: val_accuracy, goal: max, "
    "search: {units: {choices: [8, 64]}, learning_rate: {low: 0.001, high: 0.01, log: true}}}"
)


def test_best_hyperparameters_of_the_tuner_go_to_the_trainer_and_into_the_report(local_runner, tmp_path):
    output = tmp_path / "output"
    finished = local_runner(
        "run", "digits", "--profile", "dense", "--set", "train.epochs=2", "--set", TUNE,
        "--to", "Trainer", "--output", str(output),
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    record = json.loads(local_runner("show", "--json", "--output", str(output)).stdout)
    tuned = record["training"]["tuned"]
    assert set(tuned) == {"units", "learning_rate"}
    artifacts = output / "artifacts/digits"
    [trials] = artifacts.glob("Tuner/tuner_results/*/*.json")
    ranked = json.loads(trials.read_text())
    assert len(ranked) == 2
    best = max(ranked, key=lambda trial: trial["score"])
    assert tuned == {name: best[name] for name in tuned}
    [job] = artifacts.glob("Trainer/model_run/*/job.json")
    found = json.loads(job.read_text())["hyperparameters"]
    assert {name: found[name] for name in tuned} == tuned
    assert "tuned" in local_runner("show", "--output", str(output)).stdout
