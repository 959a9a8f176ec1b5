"""TFX's own taxi example, unchanged, through `--pipeline`.

Seen only here: a pipeline that knows nothing of this project, with its own module files, to its own Pusher.
"""

import importlib.util
import itertools
import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROWS = 1_500
PIPELINE = "tfx.examples.chicago_taxi_pipeline.taxi_pipeline_native_keras:_create_pipeline"


def test_stock_taxi_example_runs_and_pushes(warm_runner, tmp_path):
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
    output = str(tmp_path / "output")
    finished = warm_runner("run", "--pipeline", PIPELINE, *arguments, "--output", output)
    assert finished.returncode == 0, finished.stderr
    record = json.loads(warm_runner("show", "--json", "--output", output).stdout)
    assert len(record["nodes"]) == 9
    assert {node["state"] for node in record["nodes"]} == {"complete"}
    assert Path(record["pushed"]["path"], "saved_model.pb").is_file()
