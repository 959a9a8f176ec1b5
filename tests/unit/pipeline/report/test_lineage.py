"""Where a run's model comes from."""

from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.report.lineage import lineage


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
