"""A rehearsal of the fares: labels by output, a weight and columns that pass through survive the job.

The serving check included: the task that asks the model is one of the job's.
"""

import re

import pytest
from installed import needed

needed("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = [pytest.mark.slow, pytest.mark.external]


def test_model_with_two_heads_is_trained_judged_and_pushed_from_the_compiled_job(cloud_here, tmp_path):
    finished = cloud_here("rehearse", "fares", "--output", str(tmp_path / "output"))
    assert finished.returncode == 0, finished.stderr
    told = f"{finished.stdout}{finished.stderr}"
    assert re.search(r"✓ ServingCheck +complete", told)
    assert "Pushed: fares version" in told
    assert all(f"{metric} 0." in told for metric in ("cost/mean_absolute_error", "tip/auc"))
