"""A sweep of the real pipeline: what runs, and how often.

External: trials, their order, seeds and failures are seen in tests/unit/pipeline/sweep/, and that a setting
of the training runs nothing before the Trainer again in tests/e2e/test_taxi.py.
"""

import itertools
from collections import Counter

import pytest

from slipway.components.event_lines import read_event
from slipway.pipeline.config import WorkloadChoice, read_assignments
from slipway.pipeline.engine.local_run import execute
from slipway.pipeline.engine.plan_without_run import plan_only
from slipway.pipeline.plan.run_request import again, workload_request
from slipway.pipeline.runs.history import History
from slipway.pipeline.screen.display import RunDisplay
from slipway.pipeline.sweep.command import Asked, begin, carry_out
from slipway.pipeline.sweep.record import Trial
from slipway.pipeline.tracking.node_times import run_times

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


def test_trials_side_by_side_run_each_node_of_equal_settings_once(project, tmp_path, warm, taxi_csv):
    """Also those before the Trainer, of which two trials need the same at the same time."""
    taxi, output = project / "workloads/taxi/workload.yaml", tmp_path / "output"
    with taxi_csv.open(encoding="utf-8") as trips:
        (tmp_path / "trips.csv").write_text("".join(itertools.islice(trips, ROWS + 1)), encoding="utf-8")
    splits = "data.split={train: 2, eval: 1},{train: 1, eval: 1}"
    sets = [splits, "train.batch_size=512,1024", "train.epochs=1", f"data.source={tmp_path / 'trips.csv'}"]
    sweep = begin(taxi, output, Asked(sets=sets))

    assert carry_out(sweep, jobs=2, tell=lambda _: None, warm=warm) == 0

    assert all(trial.value is not None for trial in sweep.done)
    runs = list(History(output).runs())
    assert [run.state for run in runs] == ["complete"] * 4
    ran = Counter((node.id, node.key) for run in runs for node in run.nodes if node.attempts)
    assert set(ran.values()) == {1}, ran
    assert Counter(node for node, _ in ran)["Trainer"] == 4
    assert Counter(node for node, _ in ran)["Transform"] == 2
    # Some ran at the same time.
    times = sorted((run_times(run).begin, run_times(run).end) for run in runs)
    assert any(later < end for (_, end), (later, _) in itertools.pairwise(times))


def test_a_hopeless_training_is_pruned_and_can_be_resumed_to_its_end(project, tmp_path, warm, taxi_csv):
    taxi, output = project / "workloads/taxi/workload.yaml", tmp_path / "output"
    with taxi_csv.open(encoding="utf-8") as trips:
        (tmp_path / "trips.csv").write_text("".join(itertools.islice(trips, ROWS + 1)), encoding="utf-8")
    sizes, epochs = ("1", "2", "3", "4", "5", "128"), 60
    sets = [f"train.batch_size={','.join(sizes)}", f"train.epochs={epochs}"]
    sweep = begin(taxi, output, Asked(sets=[*sets, f"data.source={tmp_path / 'trips.csv'}"], prune=2))
    # Five trainings that no other can match.
    perfect = [(epoch, 1.0) for epoch in range(1, epochs + 1)]
    sweep.done = [
        Trial({"train.batch_size": size}, f"run-{size}", "complete", 1.0, curve=perfect)
        for size in sizes[:-1]
    ]
    told = []

    assert carry_out(sweep, jobs=None, tell=told.append, warm=warm) == 0

    trial = sweep.done[-1]
    assert (trial.state, trial.value, sweep.prune_by) == ("pruned", None, "val_auc")
    assert sweep.best is sweep.done[0]
    assert any(line.startswith("trial 6/6  pruned after epoch ") for line in told), told
    (record,) = History(output).runs()
    assert (record.run_id, record.state) == (trial.run_id, "pruned")
    states = {node.id: node.state for node in record.nodes}
    assert (states["Transform"], states["Trainer"], states["Evaluator"]) == ("complete", "skipped", "skipped")
    assert len(trial.curve) < epochs

    ended = execute(again(record, jobs=None), display=RunDisplay(), resumed=record, warm=warm)

    assert ended.state == "complete"
    assert ended.metrics["auc"] > 0.5
    assert not (output / "serving").exists()
    events = [read_event(line) for line in (ended.folder / "logs/Trainer.log").read_text().splitlines()]
    resumed = [event["epoch"] for event in events if event and event["event"] == "resumed"]
    assert resumed, "it trains on from where it was"
    assert resumed[0] >= len(trial.curve)
