"""A run whose training is over."""

import json

import pytest

from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord


@pytest.fixture
def trained(tmp_path):
    """A run with the files of our Trainer and of the Tuner."""
    files = {
        "result.json": {"verdict": "compute-bound", "steps": 1200, "tuned": {"learning_rate": 0.1}},
        "history.json": {"epochs": [{"epoch": 1, "loss": 0.25}]},
        "job.json": {"model": "m.build", "hyperparameters": {"learning_rate": 0.1, "units": [8]}},
        "tuner_results.json": [{"trial_id": "2", "score": 0.9}, {"trial_id": "0", "score": 0.8}],
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    record = History(tmp_path).new_run("taxi")
    outputs = {t: [{"uri": str(tmp_path), "type": t, "properties": {}}] for t in ("ModelRun", "TunerResults")}
    record.nodes = [NodeRecord("Trainer", state="complete", outputs=outputs)]
    return record
