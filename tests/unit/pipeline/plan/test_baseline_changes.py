"""What users have changed of a baseline, as it is read back."""

import errno
import json
import re
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from slipway.pipeline.errors import InUseError, PipelineError, UsageError
from slipway.pipeline.plan import baseline_changes
from slipway.pipeline.plan.baseline_changes import (
    Baseline,
    Change,
    clear_baseline,
    retired_blessings,
    set_baseline,
    show_baseline,
)
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord, RunRecord

GOOD = '{"at": "2026-01-01", "action": "clear", "run_id": "", "reason": "", "retired": ["/a/1"]}'


@pytest.fixture
def changes(tmp_path):
    """The file of the changes; to be written."""
    path = tmp_path / "baselines" / "taxi.jsonl"
    path.parent.mkdir()
    return path


def test_last_change_says_which_blessings_are_retired(changes, tmp_path):
    assert retired_blessings(tmp_path, "taxi") == frozenset()
    changes.write_text(f"{GOOD}\n{GOOD.replace('/a/1', '/a/2')}\n", encoding="utf-8")
    assert retired_blessings(tmp_path, "taxi") == {"/a/2"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (GOOD[:-20], "it is not complete JSON"),
        (GOOD.replace("/a/1", "\xff"), "it is not complete JSON"),
        ("[]", "the whole is \\[\\], where a mapping belongs"),
        (GOOD.replace('["/a/1"]', "7"), "retired is 7, where a list belongs"),
    ],
)
def test_damaged_change_is_refused_with_file_and_line(changes, tmp_path, line, why):
    changes.write_text(f"{GOOD}\n{line}\n", encoding="latin-1")
    with pytest.raises(UsageError, match=rf"taxi.jsonl, line 2 cannot be read: {why}") as refused:
        retired_blessings(tmp_path, "taxi")
    assert refused.value.hint == "fix that line, or remove it and with it its change of the baseline"


def test_empty_lines_among_the_changes_are_counted_and_say_nothing(changes, tmp_path):
    changes.write_text(f"{GOOD}\n  \n\n{GOOD}\n", encoding="utf-8")
    assert len(show_baseline("taxi", tmp_path).changes) == 2
    changes.write_text(f"{GOOD}\n  \n\n[]\n", encoding="utf-8")
    with pytest.raises(UsageError, match=f"^{re.escape(str(changes))}, line 4 cannot be read: "):
        show_baseline("taxi", tmp_path)


SET = Change("2026-01-02", "set", "run-2", "the last sound one", ("/a/9",))
CLEARED = Change("2026-01-01", "clear", "", "", ("/a/1",))


def test_baseline_is_told_on_one_line_and_each_change_on_another():
    run = RunRecord("run-2", "taxi", metrics={"auc": 0.9, "rows": 20.0})
    assert Baseline("taxi", run, (CLEARED, SET)).text() == (
        "taxi: the model of run run-2 (auc 0.9000, rows 20)\n"
        "  2026-01-01  cleared\n"
        "  2026-01-02  set to run-2: the last sound one"
    )
    run.pushed = {"version": "7", "path": "/pushed/7"}
    assert Baseline("taxi", run, ()).text() == (
        "taxi: the model of run run-2 (auc 0.9000, rows 20; pushed as version 7)"
    )
    assert Baseline("taxi", None, ()).text() == "taxi: no baseline. The next blessed model will be it."


def test_baseline_as_plain_data_has_the_run_and_all_changes():
    pushed = {"version": "7", "path": "/pushed/7"}
    run = RunRecord("run-2", "taxi", metrics={"auc": 0.9}, pushed=pushed)
    assert Baseline("taxi", run, (SET,)).to_json() == {
        "workload": "taxi",
        "baseline": {"run_id": "run-2", "metrics": {"auc": 0.9}, "pushed": pushed},
        "changes": [
            {
                "at": "2026-01-02",
                "action": "set",
                "run_id": "run-2",
                "reason": "the last sound one",
                "retired": ("/a/9",),
            }
        ],
    }
    assert Baseline("taxi", None, ()).to_json() == {"workload": "taxi", "baseline": None, "changes": []}


def blessed_run(output, run_id, uri, workload="taxi", **facts):
    """A run on record that blessed a model, by the URI of the blessing."""
    history = History(output)
    run = history.new_run(workload, run_id=run_id)
    made = {"uri": uri, "type": "ModelBlessing", "properties": {"blessed": 1}}
    run.nodes = [NodeRecord("ModelGate", type="ModelGate", outputs={"blessing": [made]})]
    run.blessed, run.state = True, "complete"
    for name, value in facts.items():
        setattr(run, name, value)
    history.save(run)
    return run


def test_baseline_is_the_latest_blessed_model_of_the_workload_that_is_not_retired(changes, tmp_path):
    blessed_run(tmp_path, "run-1", "/a/0")
    blessed_run(tmp_path, "run-2", "/a/1")
    blessed_run(tmp_path, "run-3", "/a/3", workload="digits")
    found = show_baseline("taxi", tmp_path)
    assert (found.workload, found.run.run_id, found.changes) == ("taxi", "run-2", ())
    changes.write_text(f"{GOOD}\n", encoding="utf-8")
    found = show_baseline("taxi", tmp_path)
    assert (found.workload, found.run.run_id, found.changes) == ("taxi", "run-1", (CLEARED,))


def test_model_of_a_run_that_was_resumed_after_a_later_one_is_the_baseline_if_it_was_made_last(tmp_path):
    for second, execution_id, resumed in ((0, 30, 1), (1, 20, 0)):
        run = blessed_run(tmp_path, f"20200101-00000{second}-0000", f"/a/{second}", resumed=resumed)
        model = {"uri": f"/m/{second}", "type": "Model", "properties": {}}
        run.nodes.append(
            NodeRecord(
                "Trainer",
                type="Trainer",
                state="complete",
                execution_id=execution_id,
                outputs={"model": [model]},
            )
        )
        History(tmp_path).save(run)
    assert show_baseline("taxi", tmp_path).run.run_id == "20200101-000000-0000"


class Store:
    """Stands for a metadata store with blessings, by default one."""

    def __init__(self, error=None, ids=(9,), model="gs://bucket/model"):
        self.written, self._error = [], error
        self.blessings = [
            SimpleNamespace(
                uri=f"/a/{abs(number)}",
                custom_properties={
                    "current_model_id": SimpleNamespace(int_value=number),
                    "current_model": SimpleNamespace(string_value=str(model)),
                },
            )
            for number in ids
        ]

    @property
    def ids(self):
        return [each.custom_properties["current_model_id"].int_value for each in self.blessings]

    def put_artifacts(self, artifacts):
        if self._error:
            raise self._error
        self.written.append([each.uri for each in artifacts])


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Lets a workload's blessings be those of a store; the rest is tried with a real one, as integration."""

    def let(store):
        held = {("taxi", tmp_path): (store, store.blessings)}
        monkeypatch.setattr(baseline_changes, "_blessings", lambda config, output: held[config.name, output])
        return SimpleNamespace(name="taxi")

    return let


@pytest.fixture
def clear(tmp_path, stored):
    """Clears the baseline of taxi in a store."""
    return lambda store: clear_baseline(stored(store), tmp_path, reason="why")


def recorded(changes):
    return [json.loads(line) for line in changes.read_text(encoding="utf-8").splitlines()]


def test_cleared_baseline_retires_every_blessing_once_and_says_when(clear, changes):
    store = Store(ids=(5, -7, 9))
    begun = datetime.now(UTC).replace(microsecond=0)
    found = clear(store)
    assert (found.workload, found.run) == ("taxi", None)
    assert store.ids == [-5, -7, -9]
    assert store.written == [["/a/5", "/a/7", "/a/9"]]
    [change] = recorded(changes)
    at = change.pop("at")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", at)
    assert begun <= datetime.fromisoformat(at) <= datetime.now(UTC)
    assert change == {
        "action": "clear",
        "run_id": "",
        "reason": "why",
        "retired": ["/a/5", "/a/7", "/a/9"],
    }


def test_set_baseline_retires_the_later_blessings_and_takes_its_own_back(changes, tmp_path, stored):
    earlier = GOOD.replace('"/a/1"', '"/a/5", "/a/7"')
    changes.write_text(f"{earlier}\n", encoding="utf-8")
    run = blessed_run(tmp_path, "run-2", "/a/7")
    store = Store(ids=(-5, -7, 11, 9))
    found = set_baseline(stored(store), tmp_path, run, reason="the last sound one")
    assert found.run.run_id == "run-2"
    assert store.ids == [-5, 7, -11, -9]
    assert store.written == [["/a/11", "/a/9", "/a/7"]]
    change = recorded(changes)[-1]
    assert (change["action"], change["run_id"], change["reason"]) == ("set", "run-2", "the last sound one")
    assert change["retired"] == ["/a/11", "/a/5", "/a/9"]
    assert [each.retired for each in found.changes] == [("/a/5", "/a/7"), ("/a/11", "/a/5", "/a/9")]


def test_run_whose_model_cannot_be_the_baseline_is_refused_and_nothing_changes(changes, tmp_path, stored):
    store = Store(model=tmp_path / "model")
    cases = {
        "Run run-1 is a run of digits: it cannot be the baseline of taxi.": ("/a/9", {"workload": "digits"}),
        "Run run-2 blessed no model: it cannot be the baseline of taxi.": ("/a/9", {"blessed": False}),
        "The metadata store does not know the blessing of run run-3.": ("/a/8", {}),
        f"The model of run run-4 is gone: {tmp_path / 'model'} was removed.": ("/a/9", {}),
    }
    for number, (said, (uri, facts)) in enumerate(cases.items(), start=1):
        run = blessed_run(tmp_path, f"run-{number}", uri, **facts)
        with pytest.raises(UsageError) as refused:
            set_baseline(stored(store), tmp_path, run, reason="")
        assert refused.value.message == said
        assert refused.value.hint == ("see runs" if number < 3 else "")
    assert store.written == []
    assert not changes.exists()
    (tmp_path / "model").mkdir()
    set_baseline(stored(store), tmp_path, run, reason="")
    assert store.written == [["/a/9"]]


@pytest.mark.parametrize("is_set", [False, True])
def test_second_command_is_told_that_the_baseline_is_being_changed(is_set, tmp_path, stored, monkeypatch):
    store = Store()
    config = stored(store)
    run = blessed_run(tmp_path, "run-1", "/a/9")

    def second(artifacts):
        del artifacts
        with pytest.raises(InUseError, match=rf"^taxi in {tmp_path} is in use by process \d+ \(baseline\)"):
            clear_baseline(config, tmp_path, reason="")

    monkeypatch.setattr(store, "put_artifacts", second)
    if is_set:
        set_baseline(config, tmp_path, run, reason="first")
    else:
        clear_baseline(config, tmp_path, reason="first")
    assert [each.reason for each in show_baseline("taxi", tmp_path).changes] == ["first"]


def test_first_change_makes_the_folder_of_the_record(tmp_path, clear):
    clear(Store())
    assert retired_blessings(tmp_path, "taxi") == {"/a/9"}


def test_change_is_added_to_the_earlier_ones(clear, changes, tmp_path):
    changes.write_text(GOOD, encoding="utf-8")  # as an editor may leave it
    store = Store()
    assert [each.reason for each in clear(store).changes] == ["", "why"]
    assert store.written == [["/a/9"]]
    assert retired_blessings(tmp_path, "taxi") == {"/a/9"}
    assert list(changes.parent.iterdir()) == [changes]


def test_earlier_changes_stay_as_a_newer_version_wrote_them(clear, changes):
    newer = GOOD.replace('"reason"', '"by":  "ann", "reason"')
    changes.write_text(f"{newer}\n\n", encoding="utf-8")
    clear(Store())
    assert changes.read_text(encoding="utf-8").startswith(f"{newer}\n\n{{")


def test_link_to_the_changes_stays_one(clear, changes, tmp_path):
    elsewhere = tmp_path / "disk" / "taxi.jsonl"
    elsewhere.parent.mkdir()
    elsewhere.write_text(f"{GOOD}\n", encoding="utf-8")
    changes.symlink_to(elsewhere)
    clear(Store())
    assert changes.is_symlink()
    assert len(elsewhere.read_text(encoding="utf-8").splitlines()) == 2


def test_full_disk_leaves_the_store_and_the_record_as_they_were(clear, changes, monkeypatch):
    changes.write_text(f"{GOOD}\n", encoding="utf-8")
    store = Store()

    def full(_descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(baseline_changes.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        clear(store)
    assert store.written == []
    assert changes.read_text(encoding="utf-8") == f"{GOOD}\n"
    assert list(changes.parent.iterdir()) == [changes]


def test_change_that_the_store_refuses_is_not_recorded(clear, changes):
    changes.write_text(f"{GOOD}\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="disk I/O error"):
        clear(Store(RuntimeError("disk I/O error")))
    assert changes.read_text(encoding="utf-8") == f"{GOOD}\n"
    assert list(changes.parent.iterdir()) == [changes]


def test_store_on_a_full_disk_is_told_and_nothing_is_recorded(clear, changes):
    from ml_metadata.errors import InternalError

    changes.write_text(f"{GOOD}\n", encoding="utf-8")
    with pytest.raises(PipelineError, match=r"store cannot be written: .*disk is full") as told:
        clear(Store(InternalError("Error when executing query: database or disk is full")))
    assert told.value.hint.startswith("the baseline is as it was; make room on the disk")
    assert changes.read_text(encoding="utf-8") == f"{GOOD}\n"


def test_damaged_record_is_refused_before_the_store_is_changed(clear, changes):
    changes.write_text(f"{GOOD[:-20]}\n", encoding="utf-8")
    store = Store()
    with pytest.raises(UsageError, match="line 1 cannot be read"):
        clear(store)
    assert store.written == []
