"""A sweep of the real pipeline: what runs, and how often."""

from collections import Counter

import pytest

from slipway.pipeline.config import WorkloadChoice, read_assignments
from slipway.pipeline.engine.graphs import plan_only
from slipway.pipeline.plan.run_request import workload_request
from slipway.pipeline.runs.history import History
from slipway.pipeline.sweep.command import Asked, begin, carry_out

pytestmark = pytest.mark.slow


def test_a_sweep_of_two_trials_runs_two_trainings_and_evaluations_and_nothing_else_twice(
    project, tmp_path, warm
):
    taxi = project / "workloads/taxi/workload.yaml"
    sweep = begin(taxi, tmp_path, Asked(sets=["train.batch_size=512,1024", "train.epochs=1"]))

    assert carry_out(sweep, jobs=None, tell=lambda _: None, warm=warm) == 0

    history = History(tmp_path)
    ran = Counter(node.id for run in history.runs() for node in run.nodes if node.attempts)
    assert (ran.pop("Trainer"), ran.pop("Evaluator")) == (2, 2)
    assert set(ran.values()) == {1}
    assert not ran.keys() & {"ModelGate", "Pusher"}
    assert not (tmp_path / "serving").exists()
    assert all(trial.value is not None for trial in sweep.done)

    # The best is pushed without training it again.
    best = read_assignments(sweep.settings(sweep.best))
    plan = plan_only(workload_request(WorkloadChoice(taxi, best), output=tmp_path, beam_args=()), history)
    told = {node: decided.why for node, decided in plan.decisions.items() if decided.action == "run"}
    assert list(told) == [
        "ServingCheck",
        "ModelGate",
        "Pusher",
    ], told
