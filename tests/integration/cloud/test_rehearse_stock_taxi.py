"""TFX's own taxi example, unchanged, rehearsed through `--pipeline`: a whole walk, left to CI.

Its parts are seen in less: the example runs here in test_stock_taxi.py, its constructs are rehearsed in
test_any_pipeline.py.
"""

import importlib.util
import itertools
import json
from pathlib import Path

import pytest

pytest.importorskip("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = [pytest.mark.slow, pytest.mark.external]

ROWS = 4_000
PIPELINE = "tfx.examples.chicago_taxi_pipeline.taxi_pipeline_native_keras:_create_pipeline"


def test_stock_taxi_example_is_rehearsed_and_pushes(cloud_here, tmp_path):
    [package] = importlib.util.find_spec("tfx").submodule_search_locations
    example = Path(package, "examples", "chicago_taxi_pipeline")
    (tmp_path / "data").mkdir()
    with (example / "data" / "simple" / "data.csv").open() as data:
        (tmp_path / "data" / "data.csv").write_text("".join(itertools.islice(data, ROWS + 1)))
    settings = {
        "data_root": tmp_path / "data",
        "module_file": example / "taxi_utils_native_keras.py",
        "serving_model_dir": tmp_path / "serving",
    }
    arguments = [item for key, value in settings.items() for item in ("--set", f"{key}={value}")]
    output = tmp_path / "output"
    finished = cloud_here("rehearse", "--pipeline", PIPELINE, *arguments, "--output", str(output))
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
