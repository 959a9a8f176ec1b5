"""A rehearsal of the reviews: a packed file of texts, a vocabulary and its codes survive the job."""

import pytest

pytest.importorskip("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = [pytest.mark.slow, pytest.mark.external]

FEWER = (
    "--set", "train.epochs=3", "--set", "train.hyperparameters={learning_rate: 0.003}",
    "--set", "evaluate.thresholds.auc.min=0.8", "--set", "evaluate.thresholds.binary_accuracy.min=0.7",
)  # fmt: skip


def test_model_of_texts_is_trained_judged_and_pushed_from_the_compiled_job(cloud_runner, tmp_path):
    finished = cloud_runner("rehearse", "reviews", *FEWER, "--output", str(tmp_path / "output"))
    assert finished.returncode == 0, finished.stderr
    told = f"{finished.stdout}{finished.stderr}"
    assert "Pushed: reviews version" in told
    assert "auc 0.8" in told
