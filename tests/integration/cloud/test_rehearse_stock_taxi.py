"""TFX's own taxi example, unchanged, rehearsed through `--pipeline`: a whole walk, left to CI.

Its parts are seen in less: its constructs run, and are rehearsed, in test_any_pipeline.py.
"""

import json
from pathlib import Path

import pytest
from installed import needed
from stock_taxi import stock_taxi

needed("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = [pytest.mark.slow, pytest.mark.external]

ROWS = 1_500


def test_stock_taxi_example_is_rehearsed_and_pushes(cloud_here, tmp_path):
    output = tmp_path / "output"
    finished = cloud_here("rehearse", *stock_taxi(tmp_path, rows=ROWS), "--output", str(output))
    assert finished.returncode == 0, finished.stderr
    [run] = (output / "rehearsal" / "runs").glob("*/run.json")
    record = json.loads(run.read_text())
    assert {node["state"] for node in record["nodes"]} == {"complete"}
    tasks = {node["id"] for node in record["nodes"]}
    assert {"CsvExampleGen", "Transform", "Trainer", "Evaluator", "Pusher"} <= tasks
    assert len(tasks) == 10, "the resolver of the latest blessed model is two tasks there"
    job = json.loads((run.parent / "job.json").read_text())
    trainer = job["pipelineSpec"]["deploymentSpec"]["executors"]["Trainer_executor"]["container"]
    assert "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor" in trainer["command"]
    pushed = Path(record["pushed"]["path"])
    assert (pushed / "saved_model.pb").is_file()
    assert pushed.is_relative_to(output / "rehearsal" / "serving")
    assert not (tmp_path / "serving").exists(), "a rehearsal publishes nothing"
