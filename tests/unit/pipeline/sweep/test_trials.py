"""A sweep's trials, with runs that take no time."""

import threading
from dataclasses import replace

import pytest

from slipway.pipeline.engine.run_end import LateInterrupt
from slipway.pipeline.errors import ConfigError, PipelineError
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.sweep.record import Sweep, Trial, read_sweep
from slipway.pipeline.sweep.space import read_space
from slipway.pipeline.sweep.trials import Trials, in_words, progress, summary

SETS = ("train.batch_size=1,2,3", "train.epochs=5")
AUC = {"1": 0.7, "2": 0.9, "3": 0.8}


class Runs:
    """Runs of a workload: keeps what was asked for; `auc` by batch size, None for a failure."""

    def __init__(self, auc, interrupted_at=None):
        self.auc, self.interrupted_at, self.asked = auc, interrupted_at, []

    def __call__(self, sets, *, resumed, begun, hopeless):
        run_id = resumed or f"run-{len(self.asked)}"
        begun(run_id)
        self.asked.append((sets, resumed))
        if len(self.asked) == self.interrupted_at:
            return RunRecord(run_id, "taxi", state="interrupted")
        size = next(text for text in sets if "batch_size" in text).partition("=")[2]
        auc = self.auc[size]
        if auc is None:
            node = NodeRecord("Trainer", state="failed", error={"message": "out of memory\nat 3"})
            return RunRecord(run_id, "taxi", state="failed", nodes=[node])
        if any(text.startswith("train.seed=") for text in sets):
            auc -= 0.01
        return RunRecord(run_id, "taxi", state="complete", metrics={"auc": auc})


@pytest.fixture
def sweep(tmp_path):
    return Sweep("20261123-000000-0001", "taxi", "taxi", SETS, None, "grid", 3, "auc", False, output=tmp_path)


def carry_on(sweep, runs, told=None):
    tell = (told if told is not None else []).append
    return Trials(sweep, read_space(sweep.sets), runs, 1, tell).carry_on()


def test_each_trial_is_one_run_and_the_best_is_found(sweep):
    runs, told = Runs(AUC), []
    assert carry_on(sweep, runs, told) == 0
    assert [sets for sets, _ in runs.asked] == [
        ("train.epochs=5", f"train.batch_size={size}") for size in (1, 2, 3)
    ]
    assert sweep.best is sweep.done[1]
    assert told[1].startswith("trial 2/3  auc 0.9000, the best so far  ")
    assert "the best" not in told[2]
    assert summary(sweep)[0] == "Best: trial 2, run run-1: auc 0.9000 with batch_size 2"
    assert sweep.push_command().endswith(
        "run taxi --set train.epochs=5 --set train.batch_size=2 --output " + str(sweep.output)
    )


def test_the_least_is_the_best_of_a_loss(sweep):
    sweep = replace(sweep, is_lower_better=True)
    carry_on(sweep, Runs(AUC))
    assert sweep.best.value == 0.7


def test_settings_that_were_tried_are_not_run_again(sweep, monkeypatch):
    from slipway.pipeline.sweep import trials

    proposed = iter(["1", "2", "1"])
    monkeypatch.setattr(trials, "propose", lambda *_, **__: {"train.batch_size": next(proposed)})
    runs = Runs(AUC)
    carry_on(sweep, runs)
    assert len(runs.asked) == 2
    assert (sweep.done[2].repeats, sweep.done[2].run_id, sweep.done[2].value) == (1, "run-0", 0.7)
    assert "2 runs of 3 trials" in summary(sweep)[1]


def test_an_interrupted_sweep_goes_on_where_it_was(sweep, tmp_path):
    assert carry_on(sweep, Runs(AUC, interrupted_at=2)) == 130
    again = read_sweep("latest", tmp_path)
    assert [trial.state for trial in again.done] == ["complete", "running"]
    runs = Runs(AUC)
    assert carry_on(again, runs) == 0
    assert runs.asked[0] == (("train.epochs=5", "train.batch_size=2"), "run-1"), "the run goes on"
    assert len(runs.asked) == 2
    assert [trial.value for trial in read_sweep("2026", tmp_path).done] == [0.7, 0.9, 0.8]


def test_a_sweep_that_is_interrupted_at_the_end_of_a_trial_s_run_says_so_and_goes_on_with_it(sweep, tmp_path):
    class Late(Runs):
        def __call__(self, sets, **how):
            super().__call__(sets, **how)
            raise LateInterrupt(0)

    assert carry_on(sweep, Late(AUC)) == 130
    assert [trial.state for trial in read_sweep("latest", tmp_path).done] == ["running"]
    assert carry_on(read_sweep("latest", tmp_path), Runs(AUC)) == 0


def test_a_sweep_that_is_done_runs_nothing(sweep, tmp_path):
    carry_on(sweep, Runs(AUC))
    runs = Runs(AUC)
    assert carry_on(read_sweep(sweep.sweep_id, tmp_path), runs) == 0
    assert runs.asked == []


def test_the_best_is_trained_with_more_seeds(sweep):
    sweep.seeds = 3
    runs = Runs(AUC)
    carry_on(sweep, runs)
    assert [sets[-1] for sets, _ in runs.asked[3:]] == ["train.seed=2", "train.seed=3"]
    mean, deviation, count = sweep.spread
    assert (round(mean, 6), round(deviation, 6), count) == (0.893333, 0.005774, 3)
    assert sweep.best.seed is None
    assert "Over 3 seeds: 0.8933, standard deviation 0.0058" in summary(sweep)


def test_a_trial_that_fails_is_reported_and_the_others_go_on(sweep):
    told = []
    assert carry_on(sweep, Runs({**AUC, "2": None}), told) == 0
    assert told[1].startswith("trial 2/3  failed: Trainer: out of memory  ")
    assert [trial.state for trial in sweep.done] == ["complete", "failed", "complete"]


def test_if_the_first_trial_fails_the_sweep_ends(sweep):
    with pytest.raises(PipelineError, match="The first trial failed: Trainer: out of memory") as refused:
        carry_on(sweep, Runs({**AUC, "1": None}))
    assert "show run-0" in refused.value.hint


def test_a_full_disk_ends_the_sweep_and_the_trial_runs_again_when_it_goes_on(sweep, tmp_path):
    def full(sets, *, resumed, begun, hopeless):
        if "train.batch_size=2" not in sets:
            return Runs(AUC)(sets, resumed=resumed, begun=begun, hopeless=hopeless)
        begun("run-full")
        said = {"message": "OSError: [Errno 28] No space left on device: 'model'"}
        node = NodeRecord("Trainer", state="failed", error=said)
        return RunRecord("run-full", "taxi", state="failed", nodes=[node])

    with pytest.raises(PipelineError, match=r"trial 2/3: Trainer: .*No space left") as ended:
        carry_on(sweep, full)
    assert ended.value.hint == "make room on the disk"
    again = read_sweep("latest", tmp_path)
    assert carry_on(again, Runs(AUC)) == 0
    assert [trial.value for trial in again.done] == [0.7, 0.9, 0.8]


def test_a_run_without_the_metric_is_a_failure(sweep):
    with pytest.raises(PipelineError, match="its run is complete, and has no auc that is a number"):
        carry_on(sweep, Runs(dict.fromkeys("123", float("nan"))))


def test_values_are_reported_by_the_last_words_of_their_keys(sweep):
    carry_on(sweep, Runs(AUC))
    assert in_words(sweep.done[0]) == "batch_size 1"


class Refusing(Runs):
    """As `Runs`, but the settings with some batch sizes are refused."""

    def __init__(self, auc, refused):
        super().__init__(auc)
        self.refused = refused

    def __call__(self, sets, *, resumed, begun, hopeless):
        if sets[-1].partition("=")[2] in self.refused:
            raise ConfigError("taxi: 2 problems\none\nanother")
        return super().__call__(sets, resumed=resumed, begun=begun, hopeless=hopeless)


@pytest.mark.parametrize("refused", ["1", "2", "12"])
def test_a_trial_whose_settings_are_refused_failed_and_the_others_go_on(sweep, tmp_path, refused):
    told = []
    assert carry_on(sweep, Refusing(AUC, refused), told) == 0
    found = read_sweep("latest", tmp_path).done
    assert [trial.state for trial in found] == ["failed" if size in refused else "complete" for size in "123"]
    assert found[int(refused[0]) - 1].why == "taxi: 2 problems; one; another"
    assert "refused: taxi: 2 problems" in told[int(refused[0]) - 1]
    assert f"{3 - len(refused)} run" in summary(sweep)[1]
    assert f"of 3 trials, {len(refused)} failed" in summary(sweep)[1]


def test_a_refused_trial_that_was_kept_as_running_does_not_stop_a_resumed_sweep(sweep):
    sweep.done.append(Trial({"train.batch_size": "1"}))
    assert carry_on(sweep, Refusing(AUC, "1")) == 0
    assert [trial.state for trial in sweep.done] == ["failed", "complete", "complete"]


def test_the_first_run_decides_whether_a_sweep_goes_on(sweep):
    with pytest.raises(PipelineError, match="The first trial failed"):
        carry_on(sweep, Refusing({**AUC, "2": None}, "1"))


def test_a_failure_that_gives_no_reason_is_reported(sweep):
    def run(sets, *, resumed, begun, hopeless):
        begun("run")
        node = NodeRecord("Trainer", state="failed", error={"message": ""})
        return RunRecord("run", "taxi", state="failed", nodes=[node])

    with pytest.raises(PipelineError, match="The first trial failed: Trainer: "):
        carry_on(sweep, run)


def test_failures_count_once_and_keep_their_reason(sweep, monkeypatch):
    from slipway.pipeline.sweep import trials

    proposed = iter(["1", "2", "2"])
    monkeypatch.setattr(trials, "propose", lambda *_, **__: {"train.batch_size": next(proposed)})
    carry_on(sweep, Runs({**AUC, "2": None}))
    assert sweep.done[2].why == sweep.done[1].why == "Trainer: out of memory"
    assert "2 runs of 3 trials, 1 failed" in summary(sweep)[1]


def test_trainings_with_other_seeds_are_counted_apart(sweep):
    sweep.seeds = 3
    carry_on(sweep, Runs(AUC))
    assert "3 runs of 3 trials and 2 runs with other seeds, 0 failed; nothing was pushed" in summary(sweep)


@pytest.mark.parametrize(
    ("at", "expected"), [(2, "1 of 3 trials"), (4, "3 of 3 trials and 0 of 2 more seeds")]
)
def test_an_interrupted_trial_has_not_ended(sweep, at, expected):
    sweep.seeds = 3
    assert carry_on(sweep, Runs(AUC, interrupted_at=at)) == 130
    assert progress(sweep) == expected


class Pruning(Runs):
    """As `Runs`, but the trainings with some batch sizes are ended as hopeless."""

    def __init__(self, auc, pruned):
        super().__init__(auc)
        self.pruned = pruned

    def __call__(self, sets, *, resumed, begun, hopeless):
        record = super().__call__(sets, resumed=resumed, begun=begun, hopeless=hopeless)
        if sets[-1].partition("=")[2] in self.pruned:
            hopeless.why, hopeless.trial.curve = "after epoch 2, it is bad", [(1, 0.5), (2, 0.6)]
            return RunRecord(record.run_id, "taxi", state="pruned")
        return record


def test_a_pruned_trial_is_reported_kept_and_never_the_best(sweep, tmp_path):
    told = []
    assert carry_on(sweep, Pruning(AUC, "2"), told) == 0
    assert told[1].startswith("trial 2/3  pruned after epoch 2, it is bad  ")
    assert sweep.best is sweep.done[2]
    assert "3 runs of 3 trials, 0 failed, 1 pruned; nothing was pushed" in summary(sweep)
    kept = read_sweep("latest", tmp_path).done[1]
    assert (kept.state, kept.run_id, kept.value) == ("pruned", "run-1", None)
    assert kept.why == "after epoch 2, it is bad"
    assert [tuple(point) for point in kept.curve] == [(1, 0.5), (2, 0.6)]
    assert progress(sweep) == "3 of 3 trials"


def test_a_pruned_trial_is_not_run_again(sweep, tmp_path, monkeypatch):
    from slipway.pipeline.sweep import trials

    carry_on(sweep, Pruning(AUC, "2"))
    again = read_sweep("latest", tmp_path)
    again.trials = 4
    monkeypatch.setattr(trials, "propose", lambda *_, **__: {"train.batch_size": "2"})
    runs = Runs(AUC)
    carry_on(again, runs)
    assert runs.asked == []
    assert (again.done[3].state, again.done[3].repeats) == ("pruned", 2)


@pytest.mark.parametrize(("by", "expected"), [("val_auc", 0.6), ("val_loss", -0.6)])
def test_the_search_learns_of_pruned_trials_in_the_direction_of_its_metric(sweep, monkeypatch, by, expected):
    from slipway.pipeline.sweep import trials

    sweep.prune_by, seen = by, []

    def propose(_space, _method, earlier, **_):
        seen.append(earlier)
        return {"train.batch_size": str(len(earlier) + 1)}

    monkeypatch.setattr(trials, "propose", propose)
    carry_on(sweep, Pruning(AUC, "2"))
    assert [tried.pruned and tried.pruned[2] for tried in seen[-1]] == [None, expected]


class SideBySide(Runs):
    """As `Runs`, but a run after the first ends only when as many are at work as may be, or all are begun."""

    def __init__(self, auc, sweep, at_once, **options):
        super().__init__(auc, **options)
        self.sweep, self.most = sweep, 0
        self._gate, self._first = threading.Barrier(at_once), threading.Lock()
        self._at_work = 0

    def __call__(self, sets, *, resumed, begun, hopeless):
        with self._first:
            self._at_work += 1
            self.most = max(self.most, self._at_work)
            number = len(self.asked)
            record = super().__call__(sets, resumed=resumed, begun=begun, hopeless=hopeless)
        if number:
            self._gate.wait(60)
        with self._first:
            self._at_work -= 1
        return record


def side_by_side(sweep, runs, *, at_once=2, told=None, give_up=lambda: None):
    tell = (told if told is not None else []).append
    space = read_space(sweep.sets)
    return Trials(sweep, space, runs, 1, tell, at_once=at_once, give_up=give_up).carry_on()


def test_two_trials_run_at_once_after_the_first(sweep, tmp_path):
    runs = SideBySide(AUC, sweep, 2)
    assert side_by_side(sweep, runs) == 0
    assert runs.most == 2
    assert [trial.value for trial in read_sweep("latest", tmp_path).done] == [0.7, 0.9, 0.8]


def test_the_first_of_several_trials_runs_alone_and_decides_whether_a_sweep_goes_on(sweep):
    runs, given_up = Runs({**AUC, "1": None}), []
    with pytest.raises(PipelineError, match="The first trial failed"):
        side_by_side(sweep, runs, give_up=lambda: given_up.append(1))
    assert len(runs.asked) == 1
    assert given_up


def test_other_seeds_wait_until_the_best_is_known(sweep):
    sweep.seeds = 3
    runs = SideBySide(AUC, sweep, 2)
    assert side_by_side(sweep, runs) == 0
    # Which begins first, threads decide.
    assert sorted(sets[1:] for sets, _ in runs.asked[3:]) == [
        ("train.batch_size=2", "train.seed=2"),
        ("train.batch_size=2", "train.seed=3"),
    ]


def test_an_interrupt_begins_no_more_trials_and_the_others_end(sweep, tmp_path, monkeypatch):
    from slipway.pipeline.sweep import trials

    is_seen, wait = threading.Event(), trials.wait

    def wait_and_tell(running, **options):
        if len(runs.asked) == 3 and len(running) == 1:
            is_seen.set()
        return wait(running, **options)

    class Interrupted(SideBySide):
        """The second trial is interrupted, and the third ends once the sweep has seen that."""

        def __call__(self, sets, **options):
            record = super().__call__(sets, **options)
            if "train.batch_size=2" in sets:
                return RunRecord(record.run_id, "taxi", state="interrupted")
            if "train.batch_size=3" in sets:
                assert is_seen.wait(60)
            return record

    monkeypatch.setattr(trials, "wait", wait_and_tell)
    sweep.sets, sweep.trials = ("train.batch_size=1,2,3,4", "train.epochs=5"), 4
    runs = Interrupted({**AUC, "4": 0.1}, sweep, 2)
    assert side_by_side(sweep, runs) == 130
    assert len(runs.asked) == 3
    kept = read_sweep("latest", tmp_path).done
    assert [trial.state for trial in kept] == ["complete", "running", "complete"]
    again = Runs({**AUC, "4": 0.1})
    assert side_by_side(read_sweep("latest", tmp_path), again) == 0
    assert len(again.asked) == 2
    assert again.asked[0][1] == kept[1].run_id, "the run goes on"


def test_the_search_is_told_which_trials_still_run(sweep, monkeypatch):
    from slipway.pipeline.sweep import trials

    seen = []

    def propose(_space, _method, earlier, **_):
        seen.append([tried.is_running for tried in earlier])
        return {"train.batch_size": str(len(earlier) + 1)}

    monkeypatch.setattr(trials, "propose", propose)
    side_by_side(sweep, SideBySide(AUC, sweep, 2))
    assert seen == [[], [False], [False, True]]


def test_trials_with_the_same_settings_that_run_at_once_have_their_own_numbers(sweep, monkeypatch):
    from slipway.pipeline.sweep import trials

    proposed = iter(["1", "2", "2"])
    monkeypatch.setattr(trials, "propose", lambda *_, **__: {"train.batch_size": next(proposed)})
    both = threading.Barrier(2)
    settings = Sweep.settings

    def begin_together(self, trial):
        if trial is not self.done[0]:
            both.wait(60)
        return settings(self, trial)

    monkeypatch.setattr(Sweep, "settings", begin_together)
    told = []
    side_by_side(sweep, SideBySide(AUC, sweep, 2), told=told)
    assert sorted(line.partition("/")[0] for line in told) == ["trial 1", "trial 2", "trial 3"]
