"""TFX's own taxi example, unchanged, through `--pipeline`.

Seen only here: a pipeline that knows nothing of this project, with its own module files, to its own Pusher.
External: of it, `make test` sees each construct of TFX in tests/integration/test_any_pipeline.py, a stock
Trainer and Pusher with a `module_file` among them, and stock components of data in test_own_parts.py.
"""

import json
from pathlib import Path

import pytest
from stock_taxi import stock_taxi

pytestmark = [pytest.mark.slow, pytest.mark.external]

ROWS = 1_500


def test_stock_taxi_example_runs_and_pushes(warm_runner, tmp_path):
    output = str(tmp_path / "output")
    finished = warm_runner("run", *stock_taxi(tmp_path, rows=ROWS), "--output", output)
    assert finished.returncode == 0, finished.stderr
    record = json.loads(warm_runner("show", "--json", "--output", output).stdout)
    assert len(record["nodes"]) == 9
    assert {node["state"] for node in record["nodes"]} == {"complete"}
    assert Path(record["pushed"]["path"], "saved_model.pb").is_file()
