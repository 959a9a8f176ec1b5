"""When a training is hopeless, and how its epochs are followed."""

import json

import pytest

from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.sweep.pruning import (
    TrainingLog,
    Watch,
    curve_of,
    falls,
    hopeless,
    judged_metric,
    judges_by_lower,
)
from slipway.pipeline.sweep.record import Sweep, Trial

AUC = "val_auc"


def line(epoch, *, epochs=9, **metrics):
    return json.dumps({"event": "epoch", "epoch": epoch, "epochs": epochs, "metrics": metrics}) + "\n"


def curve(*values):
    return dict(enumerate(values, 1))


def finished(*last):
    return [curve(0.5, value) for value in last]


@pytest.fixture
def log(tmp_path):
    return TrainingLog(tmp_path / "Trainer.log")


def test_no_log_has_no_epochs(log):
    assert not log.read()
    assert log.epochs == {}


def test_epochs_are_read_as_the_log_grows(log):
    log.path.write_text("2026 a message\n" + line(1, loss=0.5))
    assert log.read()
    assert not log.read(), "nothing was added"
    with log.path.open("a") as stream:
        half = line(2, loss=0.4)
        stream.write(half[:20])
        stream.flush()
        assert not log.read(), "half a line"
        stream.write(half[20:])
    assert log.read()
    assert (log.epochs, log.planned) == ({1: {"loss": 0.5}, 2: {"loss": 0.4}}, 9)


def test_a_training_that_starts_again_replaces_its_epochs(log):
    log.path.write_text(line(1, loss=0.5) + line(2, loss=0.4) + line(3, loss=9.0) + line(2, loss=0.3))
    log.read()
    assert log.epochs == {1: {"loss": 0.5}, 2: {"loss": 0.3}}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"epoch": 1, "epochs": 2},
        {"epoch": None, "epochs": 2, "metrics": {}},
        {"epoch": "x", "epochs": 2, "metrics": {}},
        {"epoch": float("inf"), "epochs": 2, "metrics": {}},
        {"epoch": 1, "epochs": 2, "metrics": 0.5},
    ],
)
def test_what_only_looks_like_an_epoch_is_passed_over(log, fields):
    log.path.write_text(json.dumps({"event": "epoch", **fields}) + "\n" + '{"event": "epoch", "epoch": \n')
    assert not log.read()
    assert (log.epochs, log.planned) == ({}, 0)


@pytest.mark.parametrize(
    ("measured", "expected"),
    [(["loss", "val_loss", AUC], AUC), (["loss", "auc", "val_loss"], "val_loss"), (["loss", "auc"], "")],
)
def test_epochs_are_judged_by_the_sweeps_metric_or_the_loss_on_the_eval_split(measured, expected):
    assert judged_metric("auc", measured) == expected


def test_a_curve_leaves_out_what_is_no_number():
    values = [0.5, float("nan"), None, "0.3", 2]
    assert curve_of({at: {AUC: value} for at, value in enumerate(values, 1)}, AUC) == {1: 0.5, 5: 2.0}
    assert curve_of({1: {"loss": 0.5}}, AUC) == {}


def test_a_sweep_s_own_metric_is_followed_as_the_sweep_judges_it(tmp_path):
    sweep = Sweep("1", "taxi", "taxi", (), None, "grid", 2, "waste", is_lower_better=True, prune_after=1)
    for prune_by, is_lower in (("val_waste", True), ("val_auc", False), ("val_loss", True)):
        sweep.prune_by = prune_by
        assert judges_by_lower(sweep) == is_lower
    others = finished(0.5, 0.6, 0.7, 0.8, 0.9)
    assert hopeless(curve(0.95, 0.9), others, metric="val_waste", after=1, is_lower=True)
    assert not hopeless(curve(0.4, 0.3), others, metric="val_waste", after=1, is_lower=True)


def test_a_loss_falls_and_an_auc_does_not():
    assert (falls("val_loss"), falls(AUC)) == (True, False)


@pytest.mark.parametrize(
    ("own", "metric", "is_hopeless"),
    [
        ((0.5, 0.69), AUC, True),
        ((0.5, 0.7), AUC, False),
        ((0.8, 0.6), AUC, False),  # its best epoch counts
        ((0.9, 0.71), "val_loss", True),
        ((0.9, 0.7), "val_loss", False),
    ],
)
def test_a_training_is_hopeless_if_its_best_epoch_is_worse_than_the_median(own, metric, is_hopeless):
    pytest.importorskip("optuna")
    others = finished(0.9, 0.8, 0.7, 0.6, 0.5)
    assert bool(hopeless(curve(*own), others, metric=metric, after=2)) == is_hopeless


def test_the_reason_names_what_was_compared():
    pytest.importorskip("optuna")
    found = hopeless(curve(0.5, 0.61), finished(0.9, 0.8, 0.7, 0.6, 0.5), metric=AUC, after=1)
    assert found == "after epoch 2, val_auc is 0.6100 at best; the median of 5 trials is 0.7000 there"


def test_nothing_is_hopeless_before_the_first_epoch_that_counts():
    pytest.importorskip("optuna")
    assert not hopeless(curve(0.5, 0.1), finished(0.9, 0.8, 0.7, 0.6, 0.5), metric=AUC, after=3)


@pytest.mark.parametrize(
    "others", [finished(0.9, 0.8, 0.7, 0.6), [*finished(0.9, 0.8, 0.7, 0.6), curve(0.9)]]
)
def test_fewer_than_five_finished_trainings_at_that_epoch_decide_nothing(others):
    assert not hopeless(curve(0.5, 0.1), others, metric=AUC, after=1)


@pytest.fixture
def sweep(tmp_path):
    trials = [
        Trial({"a": str(value)}, f"run-{value}", "complete", value, curve=[(1, 0.5), (2, value)])
        for value in (0.9, 0.8, 0.7, 0.6, 0.5)
    ]
    found = Sweep("20261123-000000-0001", "taxi", "taxi", ("a=1,2",), None, "grid", 2, "auc", False)
    found.output, found.done, found.prune_after, found.prune_by = tmp_path, trials, 1, AUC
    return found


@pytest.fixture
def trial(sweep, tmp_path):
    (tmp_path / "runs/run/logs").mkdir(parents=True)
    found = Trial({"a": "1"}, "run")
    sweep.done.append(found)
    return found


def write(sweep, text):
    (sweep.output / "runs/run/logs/Trainer.log").write_text(text)
    return NodeRecord("Trainer", log="logs/Trainer.log")


def test_a_hopeless_training_is_named_and_its_curve_kept(sweep, trial):
    pytest.importorskip("optuna")
    watch = Watch(sweep, trial)
    node = write(sweep, line(1, auc=0.9, val_auc=0.5) + line(2, auc=0.9, val_auc=0.3))
    assert watch(node).startswith("after epoch 2, val_auc is 0.5000 at best")
    assert trial.curve == [(1, 0.5), (2, 0.3)]
    assert watch(node) == "", "nothing was added"
    assert watch.why.startswith("after epoch 2")


def test_the_last_epoch_is_the_end_anyway(sweep, trial):
    assert Watch(sweep, trial)(write(sweep, line(2, epochs=2, val_auc=0.3))) == ""
    assert trial.curve == [(2, 0.3)]


@pytest.mark.parametrize(
    ("facts", "node"), [({"prune_after": None}, "Trainer"), ({}, "Evaluator"), ({"seed": 3}, "Trainer")]
)
def test_what_is_not_pruned_is_not_followed(sweep, trial, facts, node):
    trial.seed = facts.get("seed")
    sweep.prune_after = facts.get("prune_after", sweep.prune_after)
    found = write(sweep, line(2, val_auc=0.3))
    found.id = node
    assert Watch(sweep, trial)(found) == ""
    assert trial.curve == []


def test_the_first_epoch_decides_by_what_trainings_are_judged(sweep, trial):
    sweep.prune_by = ""
    Watch(sweep, trial)(write(sweep, line(1, loss=0.5, val_loss=0.6)))
    assert (sweep.prune_by, trial.curve) == ("val_loss", [(1, 0.6)])


def complete(folder, text):
    folder.mkdir()
    (folder / "history.json").write_text(text)
    made = {"model_run": [{"uri": str(folder), "type": "ModelRun", "properties": {}}]}
    return RunRecord(
        "run", "taxi", state="complete", nodes=[NodeRecord("Trainer", state="cached", outputs=made)]
    )


def test_a_cached_training_gives_its_curve(sweep, trial, tmp_path):
    history = {"epochs": [{"epoch": 1, AUC: 0.5}, {"epoch": 2, AUC: 0.6}]}
    Watch(sweep, trial).ends(complete(tmp_path / "model_run", json.dumps(history)))
    assert trial.curve == [(1, 0.5), (2, 0.6)]


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"epochs": 3}', '{"epochs": [{}]}', '{"epochs": [3]}', '{"epochs": [{"epoch": Infinity}]}'],
)
def test_another_trainers_history_says_nothing(sweep, trial, tmp_path, text):
    trial.curve = [(1, 0.5)]
    Watch(sweep, trial).ends(complete(tmp_path / "model_run", text))
    assert trial.curve == [(1, 0.5)]
