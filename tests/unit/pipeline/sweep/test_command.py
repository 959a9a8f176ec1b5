"""What the command refuses before anything runs."""

import errno
import re
import sys
from pathlib import Path

import pytest

from slipway.components.trainer.devices.evidence import Evidence
from slipway.pipeline.errors import ConfigError, DataSourceError, InUseError, PipelineError, UsageError
from slipway.pipeline.exit_codes import FAILED
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import locked
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.sweep import basis, command
from slipway.pipeline.sweep.command import Asked, begin, carry_out, resume
from slipway.pipeline.sweep.record import read_sweep

TUNED = "tune.search.learning_rate={low: 0.1, high: 1}"
SETS = ("train.batch_size=128,256",)
# The last two values are allowed one by one, and not together.
TOGETHER = ("evaluate.thresholds.auc.min=0.1,0.9", "evaluate.thresholds.auc.max=0.95,0.5")


@pytest.fixture
def taxi(project):
    return project / "workloads/taxi/workload.yaml"


def test_a_sweep_is_judged_by_the_first_metric(taxi, tmp_path):
    found = begin(taxi, tmp_path, Asked(sets=SETS))
    assert (found.workload, found.by, found.is_lower_better, found.trials) == ("taxi", "auc", False, 2)


def test_a_sweep_may_be_judged_by_a_metric_of_one_s_own(taxi, tmp_path):
    own = "evaluate.own_metrics.gain.class=tensorflow_model_analysis.metrics.MeanLabel"
    assert begin(taxi, tmp_path, Asked(sets=(*SETS, own), by="gain")).by == "gain"


@pytest.mark.parametrize(
    ("name", "bound", "is_lower_better"),
    [
        ("waste", "max_rise=0.1", True),
        ("waste", "max=20", True),
        ("gain", "min=1", False),
        ("cost_error", "max_drop=1", False),
        ("cost_error", None, True),
        ("waste", None, False),
    ],
)
def test_thresholds_say_which_side_of_a_metric_of_one_s_own_is_better(
    taxi, tmp_path, name, bound, is_lower_better
):
    own = f"evaluate.own_metrics.{name}.class=tensorflow_model_analysis.metrics.MeanLabel"
    limits = () if bound is None else (f"evaluate.thresholds.{name}.{bound}",)
    found = begin(taxi, tmp_path, Asked(sets=(*SETS, own, *limits), by=name))
    assert found.is_lower_better == is_lower_better


def test_a_sweep_varies_what_the_tuner_does_not_search(taxi, tmp_path):
    varied = "train.hyperparameters.learning_rate=0.1,0.2"
    assert begin(taxi, tmp_path, Asked(sets=["train.batch_size=128,256", TUNED])).trials == 2
    assert begin(taxi, tmp_path, Asked(sets=[varied, "tune=null"])).trials == 2


def test_a_metric_without_a_better_side_judges_no_trial(taxi, tmp_path):
    sets = (
        *SETS,
        "evaluate.metrics=[interval_coverage,pinball_loss,auc,binary_accuracy]",
        "evaluate.quantiles=[0.1,0.9]",
        "evaluate.baselines=[]",
    )
    assert begin(taxi, tmp_path, Asked(sets=sets)).by == "pinball_loss"
    with pytest.raises(UsageError, match="--by interval_coverage: neither its higher nor its lower values"):
        begin(taxi, tmp_path, Asked(sets=sets, by="interval_coverage"))


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        (Asked(sets=["train.batch_size=128,0"]), ConfigError, "batch_size"),
        (Asked(sets=TOGETHER), ConfigError, "is above max"),
        (Asked(sets=["train.batch_siz=1,2"]), ConfigError, "batch_siz"),
        (Asked(sets=SETS, by="acu"), UsageError, "--by acu: the workload does not measure it; nearest: auc"),
        (Asked(sets=SETS, prune=0), UsageError, "--prune 0: must be at least 1, the first epoch"),
        (
            Asked(sets=[*SETS, "train.epochs=2,3"], prune=3),
            UsageError,
            "no trial trains longer than 3 epochs",
        ),
        (Asked(sets=["train.seed=1,2"], seeds=2), UsageError, "--set names train.seed as well"),
        (
            Asked(sets=["train.hyperparameters.learning_rate=0.1,0.2", TUNED]),
            UsageError,
            "varies train.hyperparameters.learning_rate, in whose place the Tuner puts what it finds",
        ),
    ],
)
def test_what_is_wrong_is_refused(taxi, tmp_path, asked, error, message):
    with pytest.raises(error, match=message):
        begin(taxi, tmp_path, asked)
    assert not (tmp_path / "sweeps").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("set", {"sets": tuple(SETS)}),
        ("profile", {"profile": "long"}),
        ("method", {"method": "random"}),
        ("trials", {"trials": 40}),
        ("by", {"by": "auc"}),
        ("seed", {"seed": 7}),
        ("seeds", {"seeds": 3}),
        ("prune", {"prune": 2}),
    ],
)
def test_a_sweep_goes_on_with_its_own_settings(tmp_path, option, value):
    with pytest.raises(UsageError, match=f"--{option} cannot be combined with it"):
        resume("latest", tmp_path, asked=Asked(**value))


def test_trials_run_up_to_the_evaluator_in_one_warm_process(taxi, tmp_path, monkeypatch):
    """Nothing is pushed, and no model is blessed, which the next trial would be compared with."""
    asked = []

    class Warm:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    def execute(request, *, display, resumed, warm, listeners, hopeless, beside):
        record = RunRecord(f"run-{len(asked)}", "taxi", state="complete", metrics={"auc": 0.5})
        asked.append((request.end, request.origin.sets, type(warm)))
        display.begins(record)
        return record

    monkeypatch.setattr(command, "Warm", Warm)
    monkeypatch.setattr(command, "execute", execute)
    told = []
    sweep = begin(taxi, tmp_path, Asked(sets=SETS))
    assert carry_out(sweep, jobs=None, tell=told.append) == 0
    assert asked == [("Evaluator", (f"train.batch_size={size}",), Warm) for size in (128, 256)]
    assert told[-1].startswith("hint: ")
    assert (sweep.folder / "report.html").is_file()


def test_two_processes_do_not_work_on_one_sweep(taxi, tmp_path):
    sweep = begin(taxi, tmp_path, Asked(sets=SETS))
    with (
        locked(sweep.folder, run_id="sweep"),
        pytest.raises(UsageError, match=f"sweep {sweep.sweep_id} is in use"),
    ):
        carry_out(sweep, jobs=None, tell=lambda _: None, warm=object())
    assert not (sweep.folder / "sweep.json").exists()


def test_a_sweep_that_ends_at_its_first_run_has_a_page(taxi, tmp_path, monkeypatch):
    def execute(request, *, display, **_):
        record = RunRecord("run", "taxi", state="failed")
        display.begins(record)
        return record

    monkeypatch.setattr(command, "execute", execute)
    sweep = begin(taxi, tmp_path, Asked(sets=SETS))
    with pytest.raises(PipelineError, match="The first trial failed"):
        carry_out(sweep, jobs=None, tell=lambda _: None, warm=object())
    assert (sweep.folder / "report.html").is_file()


@pytest.mark.parametrize(("jobs", "expected"), [(None, ""), (2, " --jobs 2")])
def test_an_interrupted_sweep_tells_how_it_goes_on(taxi, tmp_path, monkeypatch, jobs, expected):
    def execute(request, *, display, **_):
        record = RunRecord("run", "taxi", state="interrupted")
        display.begins(record)
        return record

    monkeypatch.setattr(command, "execute", execute)
    sweep, told = begin(taxi, tmp_path, Asked(sets=SETS)), []
    assert carry_out(sweep, jobs=jobs, tell=told.append, warm=object()) == 130
    assert told[-2] == "Interrupted after 0 of 2 trials; what is finished is kept."
    assert f"sweep --resume {sweep.sweep_id}{expected} --output" in told[-1]


@pytest.mark.parametrize(
    "error",
    [InUseError("/out is in use by process 7 (gc)."), OSError(errno.ENOSPC, "No space left on device")],
)
def test_a_sweep_that_ends_at_a_later_trial_tells_how_it_goes_on(taxi, tmp_path, monkeypatch, error):
    def execute(request, *, display, **_):
        if sweep.best:
            raise error
        record = RunRecord("run", "taxi", state="complete", metrics={"auc": 0.5})
        display.begins(record)
        return record

    monkeypatch.setattr(command, "execute", execute)
    sweep, told = begin(taxi, tmp_path, Asked(sets=SETS)), []
    with pytest.raises(type(error)):
        carry_out(sweep, jobs=None, tell=told.append, warm=object())
    assert told[-2] == "The sweep has ended after 1 of 2 trials; what is finished is kept."
    assert f"sweep --resume {sweep.sweep_id} --output" in told[-1]


def test_a_sweep_that_is_interrupted_between_two_trials_tells_how_it_goes_on(taxi, tmp_path, monkeypatch):
    def execute(request, **_):
        raise KeyboardInterrupt  # before the run has begun

    monkeypatch.setattr(command, "execute", execute)
    sweep, told = begin(taxi, tmp_path, Asked(sets=SETS)), []
    assert carry_out(sweep, jobs=None, tell=told.append, warm=object()) == 130
    assert f"sweep --resume {sweep.sweep_id} --output" in told[-1]


def test_a_sweep_goes_on_from_another_folder(taxi, tmp_path, monkeypatch):
    monkeypatch.chdir(taxi.parent)
    sweep = begin(Path(taxi.name), tmp_path, Asked(sets=SETS))
    assert sweep.file == "workloads/taxi/workload.yaml"
    assert begin(Path("taxi"), tmp_path, Asked(sets=SETS)).file == "taxi"


def test_a_sweep_that_prunes_needs_optuna_even_for_a_grid(taxi, tmp_path, monkeypatch):
    sweep = begin(taxi, tmp_path, Asked(sets=[*SETS, "train.epochs=3"], prune=2))
    assert sweep.prune_after == 2
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UsageError, match="--prune needs the package optuna") as refused:
        carry_out(sweep, jobs=None, tell=lambda _: None, warm=object())
    assert refused.value.hint.endswith("without --prune needs none")


def test_trials_side_by_side_share_one_lock_and_run_one_node_each(taxi, tmp_path, monkeypatch):
    asked = []

    def execute(request, *, display, beside, **_):
        with pytest.raises(UsageError, match="in use by process"), locked(tmp_path, run_id="other"):
            pass
        record = RunRecord(f"run-{len(asked)}", "taxi", state="complete", metrics={"auc": 0.5})
        asked.append((request.jobs, beside.begun))
        beside.begin()
        display.begins(record)
        return record

    monkeypatch.setattr(command, "execute", execute)
    sweep = begin(taxi, tmp_path, Asked(sets=SETS))
    assert carry_out(sweep, jobs=2, tell=lambda _: None, warm=object()) == 0
    assert asked == [(2, 0), (1, 1)]
    with locked(tmp_path, run_id="other"):
        pass


@pytest.mark.parametrize(
    ("jobs", "sets", "is_told"), [(2, (), True), (None, (), False), (2, ("train.device=cpu",), False)]
)
def test_trainings_that_share_an_accelerator_are_told(taxi, tmp_path, monkeypatch, jobs, sets, is_told):
    def execute(request, *, display, **_):
        record = RunRecord("run", "taxi", state="interrupted")
        display.begins(record)
        return record

    gpu = Evidence(kind="gpu", words="/dev/nvidia0")
    monkeypatch.setattr(command, "find_evidence", lambda *_, **__: (gpu,))
    monkeypatch.setattr(command, "execute", execute)
    told = []
    carry_out(begin(taxi, tmp_path, Asked(sets=(*SETS, *sets))), jobs=jobs, tell=told.append, warm=object())
    note = "note: the trainings of --jobs 2 share a GPU (/dev/nvidia0) and its memory; without --jobs"
    assert any(line.startswith(note) for line in told) == is_told


def test_a_sweep_of_a_workload_that_was_edited_meanwhile_is_not_continued(taxi, tmp_path):
    file = tmp_path / "workload.yaml"
    text = taxi.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    sweep = begin(file, tmp_path, Asked(sets=SETS))
    sweep.save()
    assert resume("latest", tmp_path) == sweep
    assert "  epochs: " in text
    file.write_text(re.sub(r"(?m)^  epochs: \d+", "  epochs: 77", text), encoding="utf-8")
    with pytest.raises(UsageError, match=r"have changed since sweep \S+ began: train\.epochs\. Its trials"):
        resume("latest", tmp_path)
    sweep.basis = {}  # of an earlier version
    sweep.save()
    assert resume("latest", tmp_path) == sweep


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("  epochs: 77", r"have changed since sweep \S+ began: train\.epochs\. Its trials"),
        ("  epochs: [", "yaml:"),
    ],
)
def test_a_sweep_ends_once_its_workload_is_edited_while_it_runs(taxi, tmp_path, monkeypatch, to, said):
    """Otherwise trials with other settings would be compared, or be told as failed for good."""
    file = tmp_path / "workload.yaml"
    text = taxi.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")

    def execute(request, *, display, **_):
        record = RunRecord("run", "taxi", state="complete", metrics={"auc": 0.5})
        display.begins(record)
        file.write_text(re.sub(r"(?m)^  epochs: \d+", to, text), encoding="utf-8")
        return record

    monkeypatch.setattr(command, "execute", execute)
    sweep = begin(file, tmp_path, Asked(sets=SETS))
    with pytest.raises(UsageError, match=said):
        carry_out(sweep, jobs=None, tell=lambda _: None, warm=object())
    assert [trial.state for trial in sweep.done] == ["complete", "running"]


def test_code_that_is_edited_while_a_sweep_runs_is_told_once(taxi, tmp_path, monkeypatch):
    def execute(request, *, display, **_):
        record = RunRecord("run", "taxi", state="complete", metrics={"auc": 0.5})
        display.begins(record)
        sweep.basis[command.CODE]["workloads/taxi/model.py"] = "that of another text"
        return record

    monkeypatch.setattr(command, "execute", execute)
    sweep = begin(taxi, tmp_path, Asked(sets=["train.batch_size=128,256,512"]))
    told = []
    assert carry_out(sweep, jobs=None, tell=told.append, warm=object()) == 0
    notes = [line for line in told if line.startswith("note: ")]
    assert notes == [
        "note: code has changed since the sweep began (workloads/taxi/model.py); trials may differ by that"
    ]


@pytest.mark.parametrize(
    ("sets", "is_told"),
    [("train.batch_size=128,256", True), ("data.min_shards=1,2", False)],
    ids=["other", "varied"],
)
def test_data_that_changes_while_a_sweep_runs_is_told_once(taxi, tmp_path, monkeypatch, sets, is_told):
    """A new span, for example, is what trials with other settings would be compared by."""
    history = History(tmp_path)

    def execute(request, *, display, **_):
        record = history.new_run("taxi")
        record.state, record.metrics = "complete", {"auc": 0.5}
        record.nodes = [NodeRecord("Ingest"), NodeRecord("Trainer", upstream=["Ingest"])]
        parts = {"data:trips.csv": f"{len(list((tmp_path / 'runs').iterdir()))}"}
        history.save_fingerprints(record.run_id, {"Ingest": Fingerprint(parts), "Trainer": Fingerprint({})})
        display.begins(record)
        return record

    monkeypatch.setattr(command, "execute", execute)
    sweep, told = begin(taxi, tmp_path, Asked(sets=[sets, "train.seed=1,2"])), []
    assert carry_out(sweep, jobs=None, tell=told.append, warm=object()) == 0
    notes = [line.partition(" (")[0] for line in told if line.startswith("note: ")]
    assert notes == ["note: the data has changed since the sweep began"] * is_told
    assert bool(read_sweep("latest", tmp_path).data) == is_told


def test_data_that_is_gone_for_now_ends_the_sweep_and_fails_no_trial(taxi, tmp_path, monkeypatch):
    """As with a disk that is not mounted: all later trials would be told as failed for good."""

    def workload_request(*_, **__):
        raise DataSourceError("trips.csv matches no file")

    monkeypatch.setattr(command, "workload_request", workload_request)
    sweep = begin(taxi, tmp_path, Asked(sets=SETS))
    with pytest.raises(UsageError, match="matches no file"):
        carry_out(sweep, jobs=None, tell=lambda _: None, warm=object())
    assert [trial.state for trial in sweep.done] == ["running"]
    varied = begin(taxi, tmp_path, Asked(sets=["data.min_shards=1,2"]))
    assert carry_out(varied, jobs=None, tell=lambda _: None, warm=object()) == FAILED


def test_a_sweep_is_continued_in_a_project_that_was_moved(taxi, tmp_path, monkeypatch):
    before, after = tmp_path / "before", tmp_path / "after"
    for module in (command, basis):
        monkeypatch.setattr(module, "PROJECT_ROOT", before)
    file = before / "workloads/mine/workload.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(taxi.read_text(encoding="utf-8"), encoding="utf-8")
    sweep = begin(file, before / "output", Asked(sets=SETS))
    assert sweep.file == "workloads/mine/workload.yaml"
    sweep.save()
    before.rename(after)
    for module in (command, basis):
        monkeypatch.setattr(module, "PROJECT_ROOT", after)
    assert resume("latest", after / "output").sweep_id == sweep.sweep_id
