"""`runs` with a workload, --by or --since."""

from datetime import UTC, datetime

import pytest

from slipway.pipeline.commands.compare_runs import begin_of, compared, named
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.history import History

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def make(output, run_id, *, workload="taxi", started_at="2026-11-20T00:00:00+00:00", **facts):
    history = History(output)
    record = history.new_run(workload, run_id=run_id)
    record.state, record.started_at = "complete", started_at
    for name, value in facts.items():
        setattr(record, name, value)
    history.save(record)


def ids(found):
    return [each.run_id for each in found.runs]


def test_runs_of_a_workload_since_a_time(tmp_path):
    make(tmp_path, "20261120-000000-0001")
    make(tmp_path, "20261122-000000-0001", started_at="2026-11-22T00:00:00+00:00")
    make(tmp_path, "20261122-000000-0002", workload="digits", started_at="2026-11-22T00:00:00+00:00")
    assert ids(compared("taxi", tmp_path, since="2026-11-21")) == ["20261122-000000-0001"]
    assert ids(compared("workloads/taxi/workload.yaml", tmp_path)) == [
        "20261122-000000-0001",
        "20261120-000000-0001",
    ]
    assert len(ids(compared(None, tmp_path))) == 3


def test_workload_is_named_by_its_file_from_beside_it(tmp_path, monkeypatch):
    make(tmp_path, "20261120-000000-0001")
    (tmp_path / "taxi").mkdir()
    monkeypatch.chdir(tmp_path / "taxi")
    assert len(ids(compared("workload.yaml", tmp_path))) == 1


def test_the_best_comes_first(tmp_path):
    make(tmp_path, "20261120-000000-0001", metrics={"auc": 0.9})
    make(tmp_path, "20261120-000000-0002", metrics={"auc": 0.8})
    assert ids(compared("taxi", tmp_path, by="auc")) == ["20261120-000000-0001", "20261120-000000-0002"]


def test_rollbacks_are_no_runs_to_compare(tmp_path):
    make(tmp_path, "20261120-000000-0001", rollback={"version": 1, "instead_of": 2, "by": "x", "reason": ""})
    assert ids(compared(None, tmp_path)) == []


def test_a_workload_that_never_ran_is_refused(tmp_path):
    make(tmp_path, "20261120-000000-0001")
    with pytest.raises(UsageError, match=r"has no run of 'taxy'; nearest: taxi") as refused:
        compared("taxy", tmp_path)
    assert refused.value.hint.startswith("it has runs of: taxi; all runs: ")


def test_of_an_empty_folder_nothing_is_compared_and_it_is_named(tmp_path):
    assert compared("taxi", tmp_path, by="auc").text() == f"No run in {tmp_path} fits."


@pytest.mark.parametrize(
    ("since", "begin"),
    [
        ("30m", datetime(2026, 11, 23, 11, 30, tzinfo=UTC)),
        ("12h", datetime(2026, 11, 23, tzinfo=UTC)),
        ("7d", datetime(2026, 11, 16, 12, tzinfo=UTC)),
        ("1.5d", datetime(2026, 11, 22, 0, tzinfo=UTC)),
        ("2w", datetime(2026, 11, 9, 12, tzinfo=UTC)),
        ("2026-11-20", datetime(2026, 11, 20, tzinfo=UTC)),
        ("2026-11-20T18:00+02:00", datetime(2026, 11, 20, 16, tzinfo=UTC)),
    ],
)
def test_times_that_since_takes(since, begin):
    assert begin_of(since, now=NOW) == begin


@pytest.mark.parametrize("since", ["", "yesterday", "7", "-7d", "7 years", "2026-13-01"])
def test_what_is_no_time_is_refused(since):
    with pytest.raises(UsageError, match="is not a time") as refused:
        begin_of(since)
    assert "7d" in refused.value.hint


def test_ages_ago_is_before_every_run():
    assert begin_of("99999999999w", now=NOW).year < 1930


def test_more_than_two_named_runs_are_side_by_side_as_given(tmp_path):
    names = [f"20261120-000000-000{at}" for at in (2, 1, 3)]
    for name in names:
        make(tmp_path, name, metrics={"auc": 0.5})
    assert ids(named(names, tmp_path)) == names
    with pytest.raises(UsageError, match="a page shows two runs, but 3 are named"):
        named(names, tmp_path, page=tmp_path / "diff.html")
    with pytest.raises(UsageError, match="No run 'nope'"):
        named(["nope", *names], tmp_path)
