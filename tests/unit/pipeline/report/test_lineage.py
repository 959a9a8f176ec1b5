"""Where a run's model comes from."""

import json

import pytest

from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.report.lineage import lineage
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


def test_lineage_tells_data_code_and_versions_apart(trained):
    parts = {
        "code:workloads/a.py": "c1",
        "code:pipeline/dag.py": "c2",
        "data:a.csv": "d",
        "stack:tfx": "1.21",
    }
    found = lineage(trained, {"Trainer": Fingerprint(parts)})

    assert found.data == (("a.csv", "d"),)
    assert found.code == (("workloads/a.py", "c1"),)
    assert (found.code_files, found.stack) == (2, (("tfx", "1.21"),))
    changed = lineage(trained, {"Trainer": Fingerprint(parts | {"code:pipeline/dag.py": "c3"})})
    assert changed.code_digest != found.code_digest


def test_a_run_that_ended_before_its_plan_has_no_lineage(trained):
    assert lineage(trained, {}) is None
