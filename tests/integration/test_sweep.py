"""A sweep of the real pipeline: what runs, and how often.

External: trials, their order, seeds and failures are seen in tests/unit/pipeline/sweep/, and that a setting
of the training runs nothing before the Trainer again in tests/e2e/test_taxi.py.
"""

import itertools
from collections import Counter

import pytest

from slipway.pipeline.config import WorkloadChoice, read_assignments
from slipway.pipeline.engine.graphs import plan_only
from slipway.pipeline.plan.run_request import workload_request
from slipway.pipeline.runs.history import History
from slipway.pipeline.sweep.command import Asked, begin, carry_out

pytestmark = [pytest.mark.slow, pytest.mark.external]

ROWS = 3_000


def test_a_sweep_of_two_trials_runs_two_trainings_and_evaluations_and_nothing_else_twice(
    project, tmp_path, warm, taxi_csv
):
    taxi, output = project / "workloads/taxi/workload.yaml", tmp_path / "output"
    with taxi_csv.open(encoding="utf-8") as trips:
        (tmp_path / "trips.csv").write_text("".join(itertools.islice(trips, ROWS + 1)), encoding="utf-8")
    sets = ["train.batch_size=512,1024", "train.epochs=1", f"data.source={tmp_path / 'trips.csv'}"]
    sweep = begin(taxi, output, Asked(sets=sets))

    assert carry_out(sweep, jobs=None, tell=lambda _: None, warm=warm) == 0

    history = History(output)
    ran = Counter(node.id for run in history.runs() for node in run.nodes if node.attempts)
    assert (ran.pop("Trainer"), ran.pop("Evaluator")) == (2, 2)
    assert set(ran.values()) == {1}
    assert not ran.keys() & {"ModelGate", "Pusher"}
    assert not (output / "serving").exists()
    assert all(trial.value is not None for trial in sweep.done)

    # The best is pushed without training it again.
    best = read_assignments(sweep.settings(sweep.best))
    plan = plan_only(workload_request(WorkloadChoice(taxi, best), output=output, beam_args=()), history)
    told = {node: decided.why for node, decided in plan.decisions.items() if decided.action == "run"}
    assert list(told) == [
        "ServingCheck",
        "ModelGate",
        "Pusher",
    ], told
