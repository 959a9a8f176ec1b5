"""Which runs gc keeps, and why."""

from slipway.pipeline.commands.gc.kept_runs import kept_runs
from slipway.pipeline.runs.record import RunRecord


def test_reasons_are_reported_in_the_order_of_the_runs():
    runs = [RunRecord(str(i), "taxi", pushed={"version": "1", "path": f"/s/{i}"}) for i in range(3)]
    kept = kept_runs(runs, keep=1, exists=lambda path: path == "/s/2")
    assert list(kept.items()) == [("0", "among the newest"), ("2", "pushed version 2")]


def test_blessed_runs_whose_nodes_have_no_keys_are_kept_as_baselines():
    runs = [RunRecord(run_id=name, workload="taxi") for name in ("2", "1", "0")]
    runs[1].blessed = runs[2].blessed = True
    kept = kept_runs(runs, keep=1, exists=lambda path: False)
    assert kept == {"2": "among the newest", "1": "made a baseline", "0": "made a baseline"}
